"""Other ways to mean, standard deviation, least and greatest of an array, each on one thread.

A competitor is made from an array once, untimed (its own column type may need a conversion), and gives a
function of no arguments that returns the four numbers from it. Where it has no way to take an array (its
type, a stride) it is left out there, rather than timed on something else.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
import os
import statistics
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import spinstat

Four = tuple[float, float, float, float]
Make = Callable[[np.ndarray[Any, Any]], Callable[[], Four]]


def numpy_calls(x: np.ndarray[Any, Any]) -> Callable[[], Four]:
    """The four methods that a NumPy user calls."""
    return lambda: (float(x.mean()), float(x.std()), float(x.min()), float(x.max()))


def original_way(x: np.ndarray[Any, Any]) -> Callable[[], Four]:
    """As Spinning Up does it: a copy in float32, its sum, the sum of squared deviations, min and max."""

    def four() -> Four:
        y = np.array(x, dtype=np.float32)
        mean = np.sum(y) / len(y)
        std = np.sqrt(np.sum((y - mean) ** 2) / len(y))
        return float(mean), float(std), float(np.min(y)), float(np.max(y))

    return four


def scipy_describe(x: np.ndarray[Any, Any]) -> Callable[[], Four]:
    """scipy.stats.describe, which gives skewness and kurtosis too and computes them in any case."""
    stats = importlib.import_module("scipy.stats")

    def four() -> Four:
        found = stats.describe(x, ddof=0)
        return float(found.mean), float(found.variance) ** 0.5, float(found.minmax[0]), float(found.minmax[1])

    return four


def standard_library(x: np.ndarray[Any, Any]) -> Callable[[], Four]:
    """statistics.fmean and pstdev, min and max, over a list of Python floats."""
    values = x.astype(np.float64).tolist()
    return lambda: (statistics.fmean(values), statistics.pstdev(values), min(values), max(values))


def numba_one_pass(x: np.ndarray[Any, Any]) -> Callable[[], Four]:
    """What a user of numba writes: one loop with Welford's update, compiled for the array's type."""
    numba = importlib.import_module("numba")

    def one_pass(x: Any) -> tuple[float, float, float, float]:
        mean = m2 = 0.0
        low, high = np.inf, -np.inf
        for i in range(len(x)):
            value = np.float64(x[i])
            delta = value - mean
            mean += delta / (i + 1)
            m2 += delta * (value - mean)
            low, high = min(low, value), max(high, value)
        return mean, np.sqrt(m2 / len(x)), low, high

    return partial(_compiled(numba, one_pass), x)


def numba_shifted(x: np.ndarray[Any, Any]) -> Callable[[], Four]:
    """The fastest form that survives an offset: sums shifted by the first value, with fastmath."""
    numba = importlib.import_module("numba")

    def shifted(x: Any) -> tuple[float, float, float, float]:
        first = np.float64(x[0])
        total = squares = 0.0
        low, high = first, first
        for i in range(len(x)):
            value = np.float64(x[i])
            total += value - first
            squares += (value - first) * (value - first)
            low, high = min(low, value), max(high, value)
        mean = total / len(x)
        return first + mean, np.sqrt(max(squares / len(x) - mean * mean, 0.0)), low, high

    return partial(_compiled(numba, shifted, fastmath=True), x)


_COMPILED: dict[str, Any] = {}


def _compiled(numba: Any, function: Any, **options: bool) -> Any:
    """The function compiled by numba; once a process, for whatever types it meets."""
    name = function.__name__
    if name not in _COMPILED:
        _COMPILED[name] = numba.njit(**options)(function)
    return _COMPILED[name]


def torch_fused(x: np.ndarray[Any, Any]) -> Callable[[], Four]:
    """torch.std_mean and torch.aminmax; integers as float64 first, since torch has no mean of integers."""
    torch = importlib.import_module("torch")
    torch.set_num_threads(1)
    tensor = torch.from_numpy(x)
    whole = not tensor.is_floating_point()

    def four() -> Four:
        std, mean = torch.std_mean(tensor.double() if whole else tensor, correction=0)
        low, high = torch.aminmax(tensor)
        return mean.item(), std.item(), low.item(), high.item()

    return four


def torch_calls(x: np.ndarray[Any, Any]) -> Callable[[], Four]:
    """torch's four methods; integers as float64 first."""
    torch = importlib.import_module("torch")
    torch.set_num_threads(1)
    tensor = torch.from_numpy(x)
    whole = not tensor.is_floating_point()

    def four() -> Four:
        numbers = tensor.double() if whole else tensor
        mean, std, low, high = numbers.mean(), numbers.std(correction=0), tensor.min(), tensor.max()
        return mean.item(), std.item(), low.item(), high.item()

    return four


def polars_select(x: np.ndarray[Any, Any]) -> Callable[[], Four]:
    """One select of four expressions over a polars Series (without copy where polars allows it)."""
    os.environ["POLARS_MAX_THREADS"] = "1"
    pl = importlib.import_module("polars")
    frame = pl.DataFrame({"x": x})
    column = pl.col("x")
    wanted = [
        column.mean().alias("mean"),
        column.std(ddof=0).alias("std"),
        column.min().alias("min"),
        column.max().alias("max"),
    ]
    return lambda: tuple(map(float, frame.select(wanted).row(0)))  # type: ignore[return-value]


def pyarrow_compute(x: np.ndarray[Any, Any]) -> Callable[[], Four]:
    """PyArrow's mean, stddev and min_max over an Arrow array."""
    pa = importlib.import_module("pyarrow")
    pc = importlib.import_module("pyarrow.compute")
    pa.set_cpu_count(1)
    array = pa.array(x)

    def four() -> Four:
        ends = pc.min_max(array)
        mean, std = pc.mean(array).as_py(), pc.stddev(array, ddof=0).as_py()
        return mean, std, float(ends["min"].as_py()), float(ends["max"].as_py())

    return four


def duckdb_query(x: np.ndarray[Any, Any]) -> Callable[[], Four]:
    """One query over a table in memory that holds the array."""
    duckdb = importlib.import_module("duckdb")
    connection = duckdb.connect(config={"threads": 1})
    scanned = {"x": x}
    connection.register("scanned", scanned)
    connection.execute("create table t as select x from scanned")
    connection.unregister("scanned")
    query = "select avg(x), stddev_pop(x), min(x), max(x) from t"
    return lambda: tuple(map(float, connection.execute(query).fetchone()))  # type: ignore[return-value]


def onedal_own_type(x: np.ndarray[Any, Any]) -> Callable[[], Four]:
    """oneDAL's low order moments in the column's type, through scikit-learn-intelex; integers as float64."""
    return onedal_moments(x, "float" if x.dtype == np.float32 else "double")


def onedal_double(x: np.ndarray[Any, Any]) -> Callable[[], Four]:
    """oneDAL's low order moments in float64, whatever the column's type."""
    return onedal_moments(x, "double")


def onedal_moments(x: np.ndarray[Any, Any], kind: str) -> Callable[[], Four]:
    """oneDAL's low order moments, computed in `kind`."""
    daal = importlib.import_module("daal4py")
    daal.daalinit(1)
    column = np.ascontiguousarray(x, dtype=x.dtype if x.dtype.kind == "f" else np.float64).reshape(-1, 1)

    def four() -> Four:
        found = daal.low_order_moments(method="defaultDense", fptype=kind).compute(column)
        std = np.sqrt(found.variance[0, 0] * (len(column) - 1) / len(column))
        return float(found.mean[0, 0]), float(std), float(found.minimum[0, 0]), float(found.maximum[0, 0])

    return four


ALL = frozenset({"float64", "float32", "int64", "int32", "float16", "strided"})
WIDE = frozenset({"float64", "float32", "int64", "int32"})


class Rival(NamedTuple):
    """A way to compute the four numbers."""

    name: str
    module: str  # that has to be there
    distribution: str  # whose version is told
    make: Make
    kinds: frozenset[str] = WIDE  # of arrays that it takes
    most: float = math.inf  # values; more would take too long for what is to be seen


RIVALS = (
    Rival("numpy", "numpy", "numpy", numpy_calls, ALL),
    Rival("float32, as the original", "numpy", "numpy", original_way, ALL),
    Rival("torch (fused)", "torch", "torch", torch_fused, ALL),
    Rival("torch (four calls)", "torch", "torch", torch_calls, ALL),
    Rival("polars", "polars", "polars", polars_select),
    Rival("PyArrow", "pyarrow", "pyarrow", pyarrow_compute),
    Rival("DuckDB", "duckdb", "duckdb", duckdb_query),
    Rival("oneDAL (own type)", "daal4py", "scikit-learn-intelex", onedal_own_type),
    Rival("oneDAL (double)", "daal4py", "scikit-learn-intelex", onedal_double, frozenset({"float32"})),
    Rival("SciPy describe", "scipy.stats", "scipy", scipy_describe, ALL, 1e7),
    Rival("statistics", "statistics", "numpy", standard_library, ALL, 1e4),
    Rival("numba (one pass)", "numba", "numba", numba_one_pass, ALL - {"float16"}),
    Rival("numba (shifted sums)", "numba", "numba", numba_shifted, ALL - {"float16"}),
)
"""All of them. oneDAL's own type is double for all but float32; numba has no float16 here."""

LIBRARIES = ("torch (fused)", "torch (four calls)", "polars", "PyArrow", "DuckDB", "oneDAL (own type)",
             "oneDAL (double)")  # fmt: skip
"""Those that DESIGN's floor on libraries is about."""


def installed(rivals: Iterable[Rival] = RIVALS) -> list[Rival]:
    """Those whose module is here."""
    return [rival for rival in rivals if importlib.util.find_spec(rival.module.partition(".")[0])]


def missing() -> str:
    """Names of the distributions that are not here."""
    here = {rival.name for rival in installed()}
    return ", ".join(sorted({rival.distribution for rival in RIVALS if rival.name not in here})) or "none"


def distributions() -> list[str]:
    """Names of the distributions that are here, but for NumPy."""
    return sorted({rival.distribution for rival in installed()} - {"numpy"})


def exact(x: np.ndarray[Any, Any]) -> Four:
    """Mean, standard deviation, min and max by math.fsum over blocks.

    Blocks are summed in extended precision; above a million values, where that would take most of the time of
    a benchmark, in float64, which is right to some 15 digits for the numbers of by_size.make_array.
    """
    precision: type[np.floating[Any]] = np.longdouble if len(x) <= 1_000_000 else np.float64
    blocks = [x[i : i + 65536].astype(precision) for i in range(0, len(x), 65536)]
    mean = math.fsum(float(block.sum()) for block in blocks) / len(x)
    m2 = math.fsum(float(np.square(block - mean).sum()) for block in blocks)
    return mean, math.sqrt(m2 / len(x)), float(x.min()), float(x.max())


def spinstat_four(x: np.ndarray[Any, Any], threads: int = 1) -> Four:
    """The four numbers of spinstat.moments."""
    found = spinstat.moments(x, threads)
    return found.mean, found.std(), found.min, found.max


def greatest_error(got: Four, wanted: Four) -> float:
    """The greatest error of mean, std, min and max, relative to the standard deviation; NaN is infinite."""
    errors = [abs(a - b) / wanted[1] for a, b in zip(got, wanted, strict=True)]
    return max(math.inf if math.isnan(error) else error for error in errors)
