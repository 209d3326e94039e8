"""spinstat.moments beside every other way, by size: the tables of benchmarks.moments.

Everything compared is checked against an exact answer first. Then all take turns, round by round, in one
process. Warm: the same array again and again, so that it lies in whatever cache it fits into. Cold: before
each call as much other memory is read as the caches hold, and the call is timed alone.
"""

from __future__ import annotations

import itertools
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

import spinstat

from . import common, competitors, machine, native
from .common import Report, Spread, clock

Array = np.ndarray[Any, Any]

SIZES = (100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)
LARGE = 100_000_000
RIGHT, USABLE = 1e-9, 1e-2  # errors, in standard deviations: of spinstat, and of anything else that counts
SAMPLE = 5e-4  # seconds that a warm sample takes at least


class Cell(NamedTuple):
    """What was found for one way at one size."""

    seconds: Spread
    nbytes: int
    times_spinstat: Spread
    error: float


Row = dict[int, Cell]


def make_array(kind: str, count: int) -> Array:
    """Numbers from the seed: normal of mean 10 and deviation 3, or integers of up to a million either way.

    `strided`: every second number of a float64 array.
    """
    generator = common.rng()
    if kind == "strided":
        return make_array("float64", 2 * count)[::2]
    dtype = np.dtype(kind)
    if dtype.kind == "i":
        return generator.integers(-1_000_000, 1_000_000, count, dtype=dtype)
    array = np.empty(count, dtype=np.float32 if dtype == np.float16 else dtype)
    generator.standard_normal(dtype=array.dtype.type, out=array)
    array *= 3
    array += 10
    return array.astype(dtype, copy=False)


def ways(kind: str, x: Array) -> dict[str, Callable[[], competitors.Four]]:
    """spinstat and whatever else takes this kind of array at this size."""
    found: dict[str, Callable[[], competitors.Four]] = {"spinstat": partial(competitors.spinstat_four, x)}
    for rival in competitors.installed():
        if kind in rival.kinds and len(x) <= rival.most:
            found[rival.name] = rival.make(x)
    return found


def errors(functions: Mapping[str, Callable[[], competitors.Four]], x: Array) -> dict[str, float]:
    """The error of each way, in standard deviations. spinstat's is none, or this raises AssertionError."""
    wanted = competitors.exact(x)
    with np.errstate(all="ignore"):  # sums of float16 overflow: that is an answer, and a wrong one
        found = {name: competitors.greatest_error(function(), wanted) for name, function in functions.items()}
    if found["spinstat"] > RIGHT:
        raise AssertionError(f"spinstat is wrong by {found['spinstat']} deviations on {len(x)} {x.dtype}")
    return found


def fastest_way(reader: native.Reader, rounds: int) -> str:
    """The way to read that takes least time, by the median. Checks that all ways read the same bytes."""
    if len({reader.read(way) for way in reader.WAYS}) != 1:
        raise AssertionError("two ways to read do not see the same bytes")
    times = common.interleave({way: common.timed(partial(reader.read, way)) for way in reader.WAYS}, rounds)
    return min(times, key=lambda way: statistics.median(times[way]))


def warm(function: Callable[[], object], size: int) -> common.Sample:
    """Seconds a call, from as many calls in a row as take some time together."""
    times = 1
    if size < 1_000_000:
        start = clock()
        function()
        times = max(1, round(SAMPLE / max(clock() - start, 1e-7)))

    def sample() -> float:
        start = clock()
        for _ in itertools.repeat(None, times):
            function()
        return (clock() - start) / times

    return sample


def cold(function: Callable[[], object], evict: Callable[[], object]) -> common.Sample:
    """Seconds of one call, after `evict`."""

    def sample() -> float:
        evict()
        start = perf_counter()
        function()
        return perf_counter() - start

    return sample


def evictor() -> Callable[[], object]:
    """A function that fills the caches with something else, by reading half as much again as they hold."""
    other = np.ones(machine.last_level_cache() * 3 // 2, dtype=np.uint8)
    reader = native.Reader(other.ctypes.data, other.nbytes)

    def evict(other: Array = other) -> int:  # the buffer lives as long as the function
        return reader.read("one")

    return evict


def measure(
    kind: str, sizes: Sequence[int], rounds: int, seconds: float, evict: Callable[[], object] | None = None
) -> dict[str, Row]:
    """Every way at every size, warm; with `evict`, cold."""
    rows: dict[str, Row] = {}
    for size in sizes:
        x = make_array(kind, size)
        functions = ways(kind, x)
        wrong_by = errors(functions, x)
        calls: dict[str, Callable[[], object]] = {**functions}
        nbytes = dict.fromkeys(calls, x.size * x.itemsize)
        if x.flags.c_contiguous and x.nbytes >= 1 << 18:  # the call alone takes a microsecond
            reader = native.Reader(x.ctypes.data, x.nbytes)
            calls["reading"], nbytes["reading"] = partial(reader.read, fastest_way(reader, 5)), reader.nbytes
        with np.errstate(all="ignore"):
            samples = {name: cold(call, evict) if evict else warm(call, size) for name, call in calls.items()}
            times = common.interleave(samples, rounds, seconds, warmed=size > SIZES[-1])  # by the check
        for name, of_name in times.items():
            rows.setdefault(name, {})[size] = Cell(
                Spread.of(of_name), nbytes[name], common.ratio(of_name, times["spinstat"]),
                wrong_by.get(name, 0.0),
            )  # fmt: skip
    return rows


def short_time(seconds: float) -> str:
    """Three digits and a unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def show(report: Report, rows: Mapping[str, Row]) -> None:
    """Three tables: the time of a call, GB/s, and the time as times that of spinstat."""
    sizes = sorted({size for row in rows.values() for size in row})

    def judged(row: Row) -> str:
        worst = max(row, key=lambda size: row[size].error)
        error = row[worst].error
        return f"WRONG by {error:.2g} at {worst:.0e}" if error > USABLE else f"{error:.0e}"

    def cells(text: Callable[[Cell], str]) -> list[list[str]]:
        return [[name, *(text(row[n]) if n in row else "-" for n in sizes)] for name, row in rows.items()]

    titles = [f"{size:,}" for size in sizes]
    time = cells(lambda cell: f"{short_time(cell.seconds.median)} ±{cell.seconds.percent():.0f}%")
    checks = ["" if name == "reading" else judged(row) for name, row in rows.items()]
    report.table(
        ["time of a call", *titles, "greatest error / std"],
        [[*row, check] for row, check in zip(time, checks, strict=True)],
    )
    report.table(["GB/s", *titles], cells(lambda cell: f"{cell.nbytes / cell.seconds.median / 1e9:.3g}"))
    report.table(["times spinstat's time", *titles], cells(lambda cell: f"{cell.times_spinstat.median:.2f}"))


# -- spinstat's own targets and threads, a process each


def own_speeds(kinds: Sequence[str], sizes: Sequence[int], threads: int, seconds: float) -> None:
    """Prints GB/s by kind and size as JSON: of the wall, with the target of SPINSTAT_TARGET."""
    machine.unpin(threads)
    found: dict[str, list[float]] = {}
    for kind in kinds:
        for size in sizes:
            x = make_array(kind, size)
            errors({"spinstat": partial(competitors.spinstat_four, x, threads)}, x)
            call = partial(spinstat.moments, x, threads)
            start = perf_counter()
            call()
            times = max(1, round(SAMPLE / (perf_counter() - start)))
            samples: list[float] = []
            end = perf_counter() + seconds
            while len(samples) < 5 or (perf_counter() < end and len(samples) < 200):
                start = perf_counter()
                for _ in itertools.repeat(None, times):
                    call()
                samples.append((perf_counter() - start) / times)
            found.setdefault(kind, []).append(x.nbytes / statistics.median(samples) / 1e9)
    print(json.dumps(found))


def targets() -> list[str]:
    """The targets that run on this machine, the best first."""
    names = sorted((path.stem[7:] for path in (machine.ROOT / "csrc").glob("target_*.c")), reverse=True)
    return [name for name in names if _run_with(name, "-c", "import spinstat").returncode == 0]


def _run_with(target: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "SPINSTAT_TARGET": target}
    return subprocess.run(
        [sys.executable, *arguments], cwd=machine.ROOT, env=environment, capture_output=True, text=True
    )


def show_targets(report: Report, sizes: Sequence[int], seconds: float) -> None:
    """A table: every target on one thread, the best one on two as well."""
    kinds = ("float64", "float32", "int32")
    rows: dict[str, list[list[str]]] = {kind: [] for kind in kinds}
    for place, target in enumerate(targets()):
        for threads in (1, 2) if place == 0 else (1,):
            arguments = [",".join(kinds), ",".join(map(str, sizes)), str(threads), str(seconds)]
            done = _run_with(target, "-m", "benchmarks.by_size", *arguments)
            if done.returncode:
                raise RuntimeError(f"target {target}: {done.stderr}")
            for kind, speeds in json.loads(done.stdout).items():
                label = f"{kind}, {target}, {threads} thread{'s' if threads > 1 else ''}"
                rows[kind].append([label, *(f"{speed:.3g}" for speed in speeds)])
    report.table(["GB/s", *(f"{size:,}" for size in sizes)], [row for kind in kinds for row in rows[kind]])


if __name__ == "__main__":
    own_speeds(
        sys.argv[1].split(","), [int(size) for size in sys.argv[2].split(",")],
        int(sys.argv[3]), float(sys.argv[4]),
    )  # fmt: skip
