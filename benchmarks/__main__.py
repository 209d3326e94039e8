"""Runs all benchmarks, or those named, and keeps what they print.

`python -m benchmarks [--quick] [NAME ...]`: a full run of all of them writes benchmarks/results/<machine>.md
and the plots of benchmarks/report.py; any other run writes build/benchmarks/results/<machine>.md. The exit
status tells of answers that were wrong and of programs that failed, never of times.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from pathlib import Path

from . import machine, report

NAMES = ("store", "moments", "epoch", "accuracy", "ranks", "logger", "imports", "plot")
KEPT = machine.ROOT / "benchmarks" / "results"
QUICK = machine.ROOT / "build" / "benchmarks" / "results"


def run(name: str, quick: bool) -> tuple[str, int]:
    """What a benchmark prints, shown while it does, and its exit status."""
    command = [sys.executable, "-m", f"benchmarks.{name}", *(["--quick"] if quick else [])]
    lines = []
    with subprocess.Popen(command, cwd=machine.ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    return "".join(lines), process.returncode


def summary(texts: dict[str, str], statuses: dict[str, int], seconds: dict[str, float]) -> str:
    """A table: floors kept and short, and how long each benchmark took. The short ones are named below it."""
    rows, short = [], []
    for name, text in texts.items():
        closing = re.findall(r"^(\d+) pass, (\d+) short(?:: (.+))?$", text, re.MULTILINE)
        if statuses[name] or not closing:
            rows.append(f"| {name} | FAILED, exit status {statuses[name]} | | {seconds[name]:.0f} |")
            continue
        passed, missed, names = closing[-1]
        rows.append(f"| {name} | {passed} | {missed} | {seconds[name]:.0f} |")
        short += [f"- {name}: {figure}" for figure in names.split("; ") if figure]
    lines = ["| benchmark | floors kept | short | seconds |", "| :--- | ---: | ---: | ---: |", *rows, ""]
    told = "Short of their floors:" if short else "None is short of its floor."
    return "\n".join([*lines, told, "", *short, ""])


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer rounds, smaller runs")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; all by default")
    options = parser.parse_args()
    unknown = set(options.names) - set(NAMES)
    if unknown:
        parser.error(f"no benchmark is called {', '.join(sorted(unknown))}")
    names = options.names or [name for name in NAMES if (Path(__file__).parent / f"{name}.py").exists()]
    texts: dict[str, str] = {}
    statuses: dict[str, int] = {}
    seconds: dict[str, float] = {}
    for name in names:
        start = time.monotonic()
        texts[name], statuses[name] = run(name, options.quick)
        seconds[name] = time.monotonic() - start
        print(flush=True)
    told = summary(texts, statuses, seconds)
    print(told)
    folder = QUICK if options.quick or options.names else KEPT
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{machine.slug()}.md"
    title = f"# Benchmarks on {machine.model()}, {time.strftime('%Y-%m-%d')}"
    kind = "a quick run, not to be quoted" if options.quick else "one full run"
    file.write_text("\n".join([f"{title}\n\n{kind}\n\n{told}", *texts.values()]), encoding="utf-8")
    print(f"written: {file.relative_to(machine.ROOT)}")
    failed = [name for name, status in statuses.items() if status]
    if not failed and set(names) >= report.NEEDED:
        report.draw(file)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
