"""What a call of EpochLogger.store costs. Run as `python -m benchmarks.store [--quick]`.

Every figure comes from several processes, each with its own luck of addresses; in each, subjects are called
in turn for many rounds (benchmarks/calls.py). What is printed is the median over the processes, and the
quartiles.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from . import common, machine, native, store_rivals
from .common import Report, Spread
from .machine import ROOT

NS = 1e9
MIB = float(1 << 20)
MODES = ("kept", "not kept")  # keep_values=True, the default, and keep_values=False

SOURCES = (
    "empty: a METH_FASTCALL | METH_KEYWORDS method that does nothing, called with the same arguments",
    f"       (benchmarks/csrc/empty.c, built by {' '.join(native.compiler())} {' '.join(native.FLAGS)})",
    "inherited: the same method, called on an instance of a Python subclass, as EpochLogger is; floors are",
    "       set on the cheaper call, on an instance of the type itself",
    "clock: processor time of the process",
    "lists: the original's way, a dict of lists that are appended to (benchmarks/lists.py)",
)

RATIO_FLOORS = {
    "one float key": 1.3,
    "two call sites, same name": 1.3,
    "two call sites, other names": 1.3,
    "numpy float32": 1.8,
}
MORE_FLOORS = {"store(**d)": 60.0, "functools.partial": 60.0, "subclass calling super": 60.0}
LISTS_FLOORS = {"one float key": 6.0, "ten float keys": 15.0}
TEN_OVER_ONE = 60.0

Processes = list[dict[str, Any]]


def run_module(*arguments: str) -> str:
    """What a module of this package prints in a process of its own."""
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout


def gather(processes: Processes, case: str, subject: str, quantity: str, scale: float = 1.0) -> Spread:
    """One number of each process, times `scale`, as a spread."""
    return Spread.of([process[case][subject][quantity] * scale for process in processes])


def show_times(report: Report, processes: Processes) -> None:
    """A row a case: nanoseconds a call of every subject, and how the default compares."""
    subjects = ("empty", "inherited", *MODES, "lists")
    report.section("Nanoseconds a call")
    report.note("kept/empty and lists/kept: quotients of the same rounds, medians, as for the floors below.")
    rows: list[list[str]] = []
    for case, found in processes[0].items():
        cells = [
            f"{gather(processes, case, subject, 'seconds', NS).median:.1f}" if subject in found else "-"
            for subject in subjects
        ]
        cells.append(f"{gather(processes, case, 'kept', 'over empty').median:.2f}")
        cells.append(
            f"{gather(processes, case, 'kept', 'lists over this').median:.1f}" if "lists" in found else "-"
        )
        rows.append([case, *cells])
    report.table(["ns a call", *subjects, "kept/empty", "lists/kept"], rows)


def show_floors(report: Report, processes: Processes, mode: str) -> None:
    """The figures that have floors."""
    report.section(f"Values {mode}: times the empty method")
    for case, floor in RATIO_FLOORS.items():
        report.at_most(f"{case}, {mode}", gather(processes, case, mode, "over empty"), floor, "x")
    report.section(f"Values {mode}: nanoseconds more than the empty method")
    for case, floor in MORE_FLOORS.items():
        spread = gather(processes, case, mode, "more than empty", NS)
        report.at_most(f"{case}, {mode}", spread, floor, " ns", 1)
    one, ten = (
        [process[case][mode]["seconds"] * NS for process in processes]
        for case in ("one float key", "ten float keys")
    )
    report.section(f"Values {mode}: nanoseconds more than one key")
    report.at_most(f"ten float keys, {mode}", common.difference(ten, one), TEN_OVER_ONE, " ns", 1)
    report.section(f"Values {mode}: times as fast as lists")
    for case, floor in LISTS_FLOORS.items():
        spread = gather(processes, case, mode, "lists over this")
        report.at_least(f"{case}, {mode}, lists", spread, floor, "x", 1)


def show_rivals(report: Report, processes: Processes) -> None:
    """Other libraries' ways to store, nanoseconds and as times spinstat's."""
    report.section("Beside other libraries: nanoseconds to store one number a key")
    report.note("Ten keys are ten calls, with spinstat one; spinstat alone has std, min and max from them.")
    rows = []
    for name in processes[0]["one key"]:
        row = [name]
        for keys in ("one key", "ten keys"):
            row.append(f"{gather(processes, keys, name, 'seconds', NS).median:,.0f}")
            row.append(f"{gather(processes, keys, name, 'over spinstat').median:.1f}")
        rows.append(row)
    report.table(["ns", "one key", "times spinstat", "ten keys", "times spinstat "], rows)


def show_threads(report: Report, quick: bool) -> None:
    """One and four threads."""
    report.section("Threads that store into one logger: nanoseconds of the wall, a store")
    for threads in (1, 4):
        arguments = (str(threads), str(100_000 if quick else 1_000_000), "3" if quick else "7")
        times = json.loads(run_module("benchmarks.store_threads", *arguments))
        for name, title in (("kept", "spinstat"), ("lists", "lists")):
            plural = "s" if threads > 1 else ""
            report.figure(f"{threads} thread{plural}, {title}", Spread.of(times[name]).text(" ns", 1))


def show_memory(report: Report, quick: bool) -> None:
    """The floors on memory, and bytes after ten million stores."""
    report.section("Growth of the process")
    for mode, millions, floor in (("dropped", 10 if quick else 100, 1.0), ("kept", 5, 60e6 / MIB)):
        grown = float(run_module("benchmarks.memory", mode, str(millions * 1_000_000)))
        name = f"{millions} million stores, keep_values={mode == 'kept'}"
        report.at_most(name, Spread.of([grown / MIB]), round(floor, 1), " MiB")
    for mode in ("dropped", "kept", "lists"):
        grown = float(run_module("benchmarks.memory", mode, "10000000"))
        name = "lists" if mode == "lists" else f"keep_values={mode == 'kept'}"
        report.figure(f"bytes a value after 10 million stores, {name}", f"{grown / 1e7:.2f}")


def main() -> None:
    """Prints all figures of `store`."""
    quick = common.quick_flag(__doc__)
    machine.settle()
    count, rounds = (2, 20) if quick else (4, 50)
    common.header(
        "store: what a call costs, and what it leaves in memory",
        sources=(*SOURCES, f"not installed: {store_rivals.missing()}"),
        sizes=(f"{count} processes, {rounds} rounds of some 1 ms a subject; values from the seed",),
        packages=("torch", "stable-baselines3", "torchmetrics", "ray"),
        threads=f"{machine.ONE_THREAD}; 4 where it says so",
    )
    native.build("empty")
    processes: Processes = [json.loads(run_module("benchmarks.calls", str(rounds))) for _ in range(count)]
    report = Report()
    show_times(report, processes)
    for mode in MODES:
        show_floors(report, processes, mode)
    runs = range(1 if quick else 2)
    show_rivals(report, [json.loads(run_module("benchmarks.store_rivals", str(rounds))) for _ in runs])
    show_threads(report, quick)
    show_memory(report, quick)
    report.close()


if __name__ == "__main__":
    main()
