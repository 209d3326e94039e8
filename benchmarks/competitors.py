"""Other ways to mean, standard deviation, least and greatest of an array, each on one thread.

A competitor is made from an array once, untimed (its own column type may need a conversion), and gives a
function of no arguments that returns the four numbers from it.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Callable
from typing import Any

import numpy as np

Four = tuple[float, float, float, float]
Make = Callable[[np.ndarray[Any, Any]], Callable[[], Four]]


def numpy_calls(x: np.ndarray[Any, Any]) -> Callable[[], Four]:
    """The four methods that a NumPy user calls."""
    return lambda: (float(x.mean()), float(x.std()), float(x.min()), float(x.max()))


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


LIBRARIES: dict[str, tuple[str, str, tuple[Make, ...]]] = {
    "torch": ("torch", "torch", (torch_fused, torch_calls)),
    "polars": ("polars", "polars", (polars_select,)),
    "PyArrow": ("pyarrow", "pyarrow", (pyarrow_compute,)),
    "DuckDB": ("duckdb", "duckdb", (duckdb_query,)),
    "oneDAL": ("daal4py", "scikit-learn-intelex", (onedal_own_type, onedal_double)),
}
"""Name: module, distribution, and the ways to use it."""


def installed() -> list[str]:
    """Names of the libraries that can be imported here."""
    return [name for name, (module, *_) in LIBRARIES.items() if importlib.util.find_spec(module)]
