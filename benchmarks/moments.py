"""The speed of spinstat.moments. Run as `python -m benchmarks.moments [--quick]`.

First the figures that have floors: arrays larger than the caches beside plain reading of the same array by
one core (the fastest of several ways, benchmarks/csrc/read.c), NumPy's mean, std, min and max, and other
libraries (benchmarks/competitors.py), all in turn in one process; small ones by the call. Then tables by size
(benchmarks/by_size.py).
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

import spinstat

from . import by_size, calls, common, competitors, machine, native
from .common import Report, Spread, clock

Array = np.ndarray[Any, Any]

READ_FLOORS = {"float64": 0.80, "int64": 0.80, "float32": 0.75, "int32": 0.75}
NUMPY_FLOOR = 8.0
LIBRARY_FLOOR = 3.0
SMALL = 1000
SMALL_FLOOR = 0.5  # microseconds

SOURCES = (
    "clock: processor time of the process",
    f"reading: benchmarks/csrc/read.c, built by {' '.join(native.compiler())} {' '.join(native.FLAGS)}",
    "reading: one, two or four streams, with and without prefetch, whichever is the fastest on this array",
    "numpy: x.mean(), x.std(), x.min(), x.max() one after the other",
    "libraries: benchmarks/competitors.py, columns made beforehand, one thread each",
)


def measure_reading(report: Report, dtype: str, x: Array, rounds: int) -> None:
    """spinstat beside reading."""
    reader = native.Reader(x.ctypes.data, x.nbytes)
    way = by_size.fastest_way(reader, max(3, rounds // 3))
    times = common.interleave(
        {
            "read": common.timed(partial(reader.read, way)),
            "spinstat": common.timed(partial(spinstat.moments, x)),
        },
        rounds,
    )
    speeds = {name: reader.nbytes / statistics.median(seconds) / 1e9 for name, seconds in times.items()}
    report.figure(f"{dtype}: GB/s", f"spinstat {speeds['spinstat']:.1f}, read ({way}) {speeds['read']:.1f}")
    share = common.ratio(times["read"], times["spinstat"])
    report.at_least(f"{dtype}: share of the speed of reading", share, READ_FLOORS[dtype], "")


def judge_large(report: Report, dtype: str, rows: Mapping[str, by_size.Row]) -> None:
    """The floors beside NumPy and beside the other libraries, whose wrong answers do not count."""
    cells = {name: cell for name, row in rows.items() for cell in row.values()}
    report.at_least(f"{dtype}: times as fast as numpy", cells["numpy"].times_spinstat, NUMPY_FLOOR, "x", 1)
    libraries = [name for name in competitors.LIBRARIES if name in cells]
    for name in libraries:
        wrong = cells[name].error > by_size.USABLE
        text = cells[name].times_spinstat.text("x", 1)
        report.figure(f"{dtype}: times as fast as {name}", text, "its answer is wrong" if wrong else "")
    right = [name for name in libraries if cells[name].error <= by_size.USABLE]
    if right:
        best = min((cells[name].times_spinstat for name in right), key=lambda spread: spread.median)
        report.at_least(f"{dtype}: the fastest library that is right", best, LIBRARY_FLOOR, "x", 1)


def measure_small(report: Report, rounds: int) -> None:
    """Microseconds a call for 1,000 values that lie in the first-level cache, and for one."""
    report.section(f"Microseconds a call for {SMALL:,} values")
    loop_cost = calls.empty_loop_cost()
    for dtype in READ_FLOORS:
        x = by_size.make_array(dtype, SMALL)
        by_size.errors({"spinstat": partial(competitors.spinstat_four, x)}, x)
        loop = calls.compile_loop(["moments(x)"] * calls.LINES, {"moments": spinstat.moments, "x": x})
        times = calls.calibrate(loop)

        def sample(loop: calls.Loop = loop, times: int = times) -> float:
            start = clock()
            loop(times)
            return ((clock() - start) / times - loop_cost) / calls.LINES * 1e6

        spread = Spread.of(common.interleave({"call": sample}, rounds)["call"])
        report.at_most(f"{dtype}: spinstat.moments(x)", spread, SMALL_FLOOR, " us", 3)


def show_sizes(report: Report, quick: bool, large: Mapping[str, Mapping[str, by_size.Row]]) -> None:
    """The tables by size; `large`: what was found for one large array, by kind."""
    sizes = by_size.SIZES[:5] if quick else by_size.SIZES
    some = [size for size in sizes if size in (1_000, 100_000, 10_000_000)]
    rounds, seconds = (3, 1.0) if quick else (15, 1.5)
    report.note(
        "±: half the distance of the quartiles. The errors are those of the four numbers, the greatest over "
        f"the sizes; above {by_size.USABLE:g} standard deviations an answer is called wrong."
    )
    for kind in ("float64", "float32", "int64", "int32", "float16", "strided"):
        report.section(f"{kind} by size, warm")
        of_kind = sizes if kind in ("float64", "float32") else some
        rows = by_size.measure(kind, of_kind, rounds, seconds)
        for name, row in large.get(kind, {}).items():
            rows.setdefault(name, {}).update(row)
        by_size.show(report, rows)
    report.section("float64 by size, cold")
    cold = [size for size in sizes if size >= 1_000]
    by_size.show(report, by_size.measure("float64", cold, rounds, seconds, by_size.evictor()))
    report.section("spinstat's targets and threads, warm, by the wall clock")
    by_size.show_targets(report, sizes, 0.05 if quick else 0.15)


def main() -> None:
    """Prints all figures of `moments`."""
    quick = common.quick_flag(__doc__)
    machine.settle()
    cache = machine.last_level_cache()
    rounds, slow_rounds, small_rounds = (9, 3, 40) if quick else (41, 7, 200)
    common.header(
        "moments: the speed of one call for count, mean, std, min and max",
        sources=(*SOURCES, f"not installed: {competitors.missing()}"),
        sizes=(
            f"large: 10^8 floats; of integers, and in a quick run, a quarter more than the largest cache has "
            f"({cache >> 20} MiB); {rounds} rounds beside reading, up to {slow_rounds} beside others",
            f"small: {small_rounds} rounds; by size: up to 15, or as many as 1.5 s allow, but 3 at least",
        ),
        packages=competitors.distributions(),
        threads=f"{machine.ONE_THREAD}; 2 where it says so",
    )
    report = Report()
    measure_small(report, small_rounds)
    large = {}
    for dtype in READ_FLOORS:
        report.section(f"{dtype}, one large array")
        count = max(256 << 20, cache * 5 // 4) // np.dtype(dtype).itemsize
        if dtype in ("float64", "float32") and by_size.LARGE * np.dtype(dtype).itemsize > cache and not quick:
            count = by_size.LARGE
        measure_reading(report, dtype, by_size.make_array(dtype, count), rounds)
        large[dtype] = by_size.measure(dtype, [count], slow_rounds, 4.0 if quick else 12.0)
        judge_large(report, dtype, large[dtype])
    report.section("By size")
    show_sizes(report, quick, large)
    report.close()


if __name__ == "__main__":
    main()
