"""The speed of spinstat.moments. Run as `python -m benchmarks.moments [--quick]`.

First the figures that have floors: arrays larger than the caches beside plain reading of the same array by
one core (the fastest of several ways, benchmarks/csrc/read.c), NumPy's mean, std, min and max, and other
libraries (benchmarks/competitors.py), all in turn in one process; small ones by the call. Then tables by size
(benchmarks/by_size.py).
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
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


def fastest_way(reader: native.Reader, rounds: int) -> str:
    """The way to read that takes least time, by the median. Checks that all ways read the same bytes."""
    if len({reader.read(way) for way in reader.WAYS}) != 1:
        raise AssertionError("two ways to read do not see the same bytes")
    times = common.interleave({way: common.timed(partial(reader.read, way)) for way in reader.WAYS}, rounds)
    return min(times, key=lambda way: statistics.median(times[way]))


def measure_reading(report: Report, dtype: str, x: Array, rounds: int) -> None:
    """spinstat beside reading."""
    reader = native.Reader(x.ctypes.data, x.nbytes)
    way = fastest_way(reader, max(3, rounds // 3))
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


def measure_libraries(report: Report, dtype: str, x: Array, rounds: int, seconds: float) -> None:
    """spinstat beside NumPy and whatever else is installed; each checked first."""
    everyone: dict[str, Callable[[], competitors.Four]] = {
        "spinstat": partial(competitors.spinstat_four, x),
        "numpy": competitors.numpy_calls(x),
    }
    for rival in competitors.installed():
        if rival.name in competitors.LIBRARIES and dtype in rival.kinds:
            everyone[rival.name] = rival.make(x)
    wrong_by = by_size.errors(everyone, x)
    times = common.interleave({name: common.timed(call) for name, call in everyone.items()}, rounds, seconds)
    faster = {name: common.ratio(times[name], times["spinstat"]) for name in everyone if name != "spinstat"}
    report.at_least(f"{dtype}: times as fast as numpy", faster.pop("numpy"), NUMPY_FLOOR, "x", 1)
    for name, spread in faster.items():
        wrong = f"WRONG by {wrong_by[name]:.2g} std" if wrong_by[name] > by_size.USABLE else ""
        report.figure(f"{dtype}: times as fast as {name}", spread.text("x", 1), wrong)
    right = [name for name in faster if wrong_by[name] <= by_size.USABLE]
    if right:
        best = min(right, key=lambda name: faster[name].median)
        report.at_least(f"{dtype}: the fastest library that is right", faster[best], LIBRARY_FLOOR, "x", 1)


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


def show_sizes(report: Report, quick: bool) -> None:
    """The tables by size."""
    sizes = by_size.SIZES[:5] if quick else by_size.SIZES
    some = [size for size in sizes if size in (1_000, 100_000, 10_000_000)]
    rounds, seconds = (3, 1.0) if quick else (21, 3.0)
    report.note(
        "±: half the distance of the quartiles. The errors are those of the four numbers, the greatest over "
        f"the sizes; above {by_size.USABLE:g} standard deviations an answer is called wrong."
    )
    for kind in ("float64", "float32"):
        report.section(f"{kind} by size, warm")
        by_size.show(report, by_size.measure(kind, sizes, rounds, seconds), sizes)
    for kind in ("int64", "int32", "float16", "strided"):
        report.section(f"{kind} by size, warm")
        by_size.show(report, by_size.measure(kind, some, rounds, seconds / 2), some)
    report.section("float64 by size, cold")
    cold = [size for size in sizes if 1_000 <= size <= 10_000_000]
    by_size.show(report, by_size.measure("float64", cold, rounds, seconds, by_size.evictor()), cold)
    report.section("spinstat's targets and threads, warm, by the wall clock")
    by_size.show_targets(report, sizes, 0.1 if quick else 0.3)


def main() -> None:
    """Prints all figures of `moments`."""
    quick = common.quick_flag(__doc__)
    machine.settle()
    cache = machine.last_level_cache()
    nbytes = max(256 << 20, cache * 5 // 4)
    rounds, slow_rounds, small_rounds = (9, 3, 40) if quick else (41, 7, 200)
    common.header(
        "moments: the speed of one call for count, mean, std, min and max",
        sources=(*SOURCES, f"not installed: {competitors.missing()}"),
        sizes=(
            f"arrays of {nbytes >> 20} MiB as NumPy allocates them; the largest cache has {cache >> 20} MiB",
            f"{rounds} rounds beside reading, {slow_rounds} beside libraries, {small_rounds} small",
            "by size: up to 21 rounds, or as many as 3 s allow, but 3 at least",
        ),
        packages=competitors.distributions(),
        threads=f"{machine.ONE_THREAD}; 2 where it says so",
    )
    report = Report()
    measure_small(report, small_rounds)
    for dtype in READ_FLOORS:
        report.section(f"{dtype}, one large array")
        x = by_size.make_array(dtype, nbytes // np.dtype(dtype).itemsize)
        measure_reading(report, dtype, x, rounds)
        measure_libraries(report, dtype, x, slow_rounds, 4.0 if quick else 12.0)
    report.section("By size")
    show_sizes(report, quick)
    report.close()


if __name__ == "__main__":
    main()
