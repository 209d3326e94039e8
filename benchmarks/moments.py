"""The speed of spinstat.moments. Run as `python -m benchmarks.moments [--quick]`.

Large arrays are compared with plain reading of the same array by one core (the fastest of several ways,
benchmarks/csrc/read.c), with NumPy's mean, std, min and max, and with other libraries
(benchmarks/competitors.py), all in turn in one process; small ones are timed by the call.
"""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import spinstat

from . import calls, common, competitors, native
from .common import Report, Spread, clock

Array = np.ndarray[Any, Any]

READ_FLOORS = {"float64": 0.80, "int64": 0.80, "float32": 0.75, "int32": 0.75}
NUMPY_FLOOR = 8.0
LIBRARY_FLOOR = 3.0
RIGHT, USABLE = 1e-9, 1e-2  # errors, in standard deviations: of spinstat, and of anything else that counts
SMALL = 1000
SMALL_FLOOR = 0.5  # microseconds

SOURCES = (
    "clock: processor time of the process",
    f"reading: benchmarks/csrc/read.c, built by {' '.join(native.compiler())} {' '.join(native.FLAGS)}",
    "reading: one, two or four streams, with and without prefetch, whichever is the fastest on this array",
    "numpy: x.mean(), x.std(), x.min(), x.max() one after the other",
    "libraries: benchmarks/competitors.py, columns made beforehand, one thread each",
)


def make_array(dtype: str, nbytes: int) -> Array:
    """Numbers from the seed: normal of mean 10 and deviation 3, or integers of up to a million either way."""
    count = nbytes // np.dtype(dtype).itemsize
    generator = common.rng()
    if np.dtype(dtype).kind == "i":
        return generator.integers(-1_000_000, 1_000_000, count, dtype=dtype)
    array = np.empty(count, dtype=dtype)
    generator.standard_normal(dtype=array.dtype.type, out=array)
    array *= 3
    array += 10
    return array


def exact(x: Array) -> competitors.Four:
    """Mean, standard deviation, min and max by math.fsum over blocks summed in extended precision."""
    blocks = [x[i : i + 65536].astype(np.longdouble) for i in range(0, len(x), 65536)]
    mean = math.fsum(float(block.sum()) for block in blocks) / len(x)
    m2 = math.fsum(float(np.square(block - mean).sum()) for block in blocks)
    return mean, math.sqrt(m2 / len(x)), float(x.min()), float(x.max())


def spinstat_four(x: Array) -> competitors.Four:
    """The four numbers of spinstat.moments."""
    found = spinstat.moments(x)
    return found.mean, found.std(), found.min, found.max


def greatest_error(got: competitors.Four, wanted: competitors.Four) -> float:
    """The greatest error of mean, std, min and max, relative to the standard deviation."""
    return max(abs(a - b) for a, b in zip(got, wanted, strict=True)) / wanted[1]


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


def measure_libraries(report: Report, dtype: str, x: Array, rounds: int) -> None:
    """spinstat beside NumPy and whatever else is installed; each checked first."""
    wanted = exact(x)
    rivals: dict[str, Callable[[], competitors.Four]] = {"numpy": competitors.numpy_calls(x)}
    for name in competitors.installed():
        for make in competitors.LIBRARIES[name][2]:
            rivals[f"{name} ({make.__name__})"] = make(x)
    everyone: dict[str, Callable[[], competitors.Four]] = {"spinstat": partial(spinstat_four, x), **rivals}
    wrong = []
    for name, function in everyone.items():
        error = greatest_error(function(), wanted)
        if name == "spinstat" and error > RIGHT:
            raise AssertionError(f"spinstat is wrong by {error} standard deviations on {dtype}")
        if error > USABLE:
            wrong.append(name)
        judged = ": wrong, and not counted among the fastest" if name in wrong else ""
        report.figure(f"{dtype}: {name}", f"error {error:.1e} of a standard deviation{judged}")
    times = common.interleave({name: common.timed(function) for name, function in everyone.items()}, rounds)
    faster = {name: common.ratio(times[name], times["spinstat"]) for name in rivals}
    report.at_least(f"{dtype}: times as fast as numpy", faster.pop("numpy"), NUMPY_FLOOR, "x", 1)
    for name, spread in faster.items():
        report.figure(f"{dtype}: times as fast as {name}", spread.text("x", 1))
    right = [name for name in faster if name not in wrong]
    if right:
        best = min(right, key=lambda name: faster[name].median)
        report.at_least(f"{dtype}: the fastest of those", faster[best], LIBRARY_FLOOR, "x", 1)


def measure_small(report: Report, rounds: int) -> None:
    """Microseconds a call for 1,000 values that lie in the first-level cache, and for one."""
    report.section(f"Microseconds a call for {SMALL:,} values")
    loop_cost = calls.empty_loop_cost()
    for dtype in READ_FLOORS:
        x = make_array(dtype, SMALL * np.dtype(dtype).itemsize)
        if greatest_error(spinstat_four(x), exact(x)) > RIGHT:
            raise AssertionError(f"spinstat is wrong on {SMALL} values of {dtype}")
        loop = calls.compile_loop(["moments(x)"] * calls.LINES, {"moments": spinstat.moments, "x": x})
        times = calls.calibrate(loop)

        def sample(loop: calls.Loop = loop, times: int = times) -> float:
            start = clock()
            loop(times)
            return ((clock() - start) / times - loop_cost) / calls.LINES * 1e6

        spread = Spread.of(common.interleave({"call": sample}, rounds)["call"])
        report.at_most(f"{dtype}: spinstat.moments(x)", spread, SMALL_FLOOR, " us", 3)


def main() -> None:
    """Prints all figures of `moments`."""
    quick = common.quick_flag(__doc__)
    cache = common.last_level_cache()
    nbytes = max(256 << 20, 2 * cache)
    rounds, slow_rounds, small_rounds = (9, 3, 40) if quick else (41, 7, 200)
    missing = [name for name in competitors.LIBRARIES if name not in competitors.installed()]
    common.header(
        "moments: the speed of one call for count, mean, std, min and max",
        sources=(*SOURCES, f"not installed: {', '.join(missing) or 'none'}"),
        sizes=(
            f"arrays of {nbytes >> 20} MiB as NumPy allocates them; the largest cache has {cache >> 20} MiB",
            f"{rounds} rounds beside reading, {slow_rounds} beside libraries, {small_rounds} small",
        ),
        packages=[competitors.LIBRARIES[name][1] for name in competitors.installed()],
    )
    report = Report()
    measure_small(report, small_rounds)
    for dtype in READ_FLOORS:
        report.section(f"{dtype}, one large array")
        x = make_array(dtype, nbytes)
        measure_reading(report, dtype, x, rounds)
        measure_libraries(report, dtype, x, slow_rounds)
    report.close()


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
