"""What importing and installing spinstat costs. Run as `python -m benchmarks.imports [--quick]`.

Import: `python -X importtime` in fresh processes, the bytecode cached as an installation leaves it, NumPy
imported first; beside the loggers of other libraries, imported the same way. Size: the wheel that this source
gives, and what is in it.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from . import common, machine
from .common import Report, Spread
from .machine import ROOT

FLOOR = 60.0  # milliseconds

OURS = ("import spinstat", "from spinstat import EpochLogger")
OTHERS = (
    ("torchmetrics", "torchmetrics", "from torchmetrics import MeanMetric"),
    ("stable_baselines3", "stable-baselines3", "from stable_baselines3.common.logger import Logger"),
    ("ray", "ray", "from ray.rllib.utils.metrics.metrics_logger import MetricsLogger"),
)

SOURCES = (
    "import: `-X importtime`, the sum of the own times of all modules that are loaded after NumPy is",
    "wheel: `pip wheel --no-deps`, built here and now",
)


def import_milliseconds(statement: str, environment: dict[str, str]) -> float:
    """What `statement` imports after `import numpy`, in a fresh process."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", f"import numpy; {statement}"],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    lines = re.findall(r"^import time:\s+(\d+) \|\s+\d+ \|\s*(\S+)$", done.stderr, re.MULTILINE)
    names = [name for _, name in lines]
    package = statement.split()[1].partition(".")[0]
    if "numpy" not in names or package not in names:
        raise AssertionError(f"-X importtime does not name numpy and {package}:\n{done.stderr[-500:]}")
    return sum(int(microseconds) for microseconds, _ in lines[names.index("numpy") + 1 :]) / 1e3


def import_times(statement: str, count: int, cached: bool = True) -> Spread:
    """The spread over fresh processes; with the bytecode cached by a first one, or compiled by each."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory() as cache:
        environment["PYTHONPYCACHEPREFIX"] = cache
        import_milliseconds(statement, environment)
        if not cached:
            environment["PYTHONDONTWRITEBYTECODE"] = "1"
            for compiled in Path(cache).rglob("spinstat/**/*.pyc"):
                compiled.unlink()
        return Spread.of([import_milliseconds(statement, environment) for _ in range(count)])


def wheel_sizes() -> dict[str, int]:
    """Bytes of the wheel, of the extension in it as it is and compressed, and of everything unpacked."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, "."]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"pip wheel failed:\n{done.stderr}")
        (wheel,) = Path(folder).glob("spinstat-*.whl")
        members = zipfile.ZipFile(wheel).infolist()
        (extension,) = (member for member in members if re.search(r"_core\..*(so|pyd)$", member.filename))
        return {
            "the wheel": wheel.stat().st_size,
            "the extension in it": extension.compress_size,
            "the extension": extension.file_size,
            "all files, installed": sum(member.file_size for member in members),
        }


def main() -> None:
    """Prints all figures of `imports`."""
    quick = common.quick_flag(__doc__)
    machine.settle()
    count, others = (5, 1) if quick else (15, 1)
    common.header(
        "imports: what importing and installing cost",
        sources=SOURCES,
        sizes=(f"{count} processes; {others} for each other library",),
        packages=[distribution for _, distribution, _ in OTHERS],
    )
    report = Report()
    report.section("Milliseconds to import, NumPy imported before")
    for statement in OURS:
        report.at_most(statement, import_times(statement, count), FLOOR, " ms", 1)
    anew = import_times(OURS[-1], count, cached=False)
    report.figure("the same, its modules compiled anew", anew.text(" ms", 1))
    for module, _, statement in OTHERS:
        if importlib.util.find_spec(module):
            report.figure(statement, import_times(statement, others).text(" ms", 0))
    report.section("KiB")
    for what, size in wheel_sizes().items():
        report.figure(what, f"{size / 1024:.0f} KiB")
    report.close()


if __name__ == "__main__":
    main()
