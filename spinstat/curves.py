"""Curves over seeds: smoothing of a run, and a line with a band for a group of runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Points = tuple[Array, Array]  # x, increasing, and y, nan where there is none

ESTIMATORS: Final = ("mean", "median", "max", "min")
BANDS: Final = ("std", "bootstrap")
RESAMPLES: Final = 1000
LEVEL: Final = 0.95
MAX_PLACES: Final = 10_000  # on x, where those of the runs differ: a screen shows a fifth of them
CHUNK: Final = 1_000_000  # resampled numbers held at once


class Curve(NamedTuple):
    """A group of runs: of each place on x the line, the band (nan where there is none) and how many runs."""

    x: Array
    line: Array
    low: Array
    high: Array
    runs: npt.NDArray[np.int64]


def points(x: npt.ArrayLike, y: npt.ArrayLike, window: int = 1) -> Points:
    """The points of one run in the order of x, smoothed over `window` rows.

    Rows without an x are left out, and where an x comes again the last row counts: a run that went on from a
    checkpoint has written it anew. A y that is not finite is a gap, nan.
    """
    places, values = in_order(x, y)
    return places, smooth(np.where(np.isfinite(values), values, np.nan), window)


def in_order(x: npt.ArrayLike, y: npt.ArrayLike) -> Points:
    """The rows of a run in the order of x: those with a finite x, and of several with the same the last."""
    places, values = np.asarray(x, np.float64), np.asarray(y, np.float64)
    there = np.isfinite(places)
    places, values = places[there], values[there]
    order = np.argsort(places, kind="stable")
    places, values = places[order], values[order]
    last = np.append(places[1:] != places[:-1], True)[: len(places)]
    return places[last], values[last]


def smooth(y: Array, window: int) -> Array:
    """The mean of `window` neighbours of each value, itself included, as many as there are at the ends.

    Neighbours are those from window // 2 before a value on, as in Spinning Up's plotter. There are as many
    values as before; nan stays nan, and does not spread.

    Raises:
        ValueError: the window is less than 1.
    """
    if window < 1:
        raise ValueError(f"smooth={window}: a window has at least 1 row")
    if window == 1 or len(y) == 0:
        return y
    there = np.isfinite(y)
    ones = np.ones(min(window, 2 * len(y)))
    start = len(ones) - 1 - len(ones) // 2
    inside = slice(start, start + len(y))
    sums = np.convolve(np.where(there, y, 0.0), ones)[inside]
    counts = np.rint(np.convolve(there.astype(np.float64), ones)[inside])
    smoothed: Array = np.full(len(y), np.nan)
    np.divide(sums, counts, out=smoothed, where=there)
    return smoothed


def aggregate(runs: Sequence[Points], estimator: str = "mean", band: str = "std", seed: int = 0) -> Curve:
    """The line and the band of a group of runs.

    The line is the estimate over the runs at each x that any of them has. A run with other places on x is
    interpolated linearly between its own, and counts only from its first to its last. There is a band where
    two runs or more count, and none for max and min.

    Args:
        runs: x and y of each, as `points` gives them.
        estimator: "mean", "median", "max" or "min".
        band: "std": one standard deviation (of the population) to both sides; "bootstrap": the 95 % interval
            of the estimate by the percentiles of 1,000 resamplings of the runs (Efron 1979).
        seed: of the resampling; the same runs have the same band each time.

    Raises:
        ValueError: another estimator or band.
    """
    check_choice("estimator", estimator, ESTIMATORS)
    check_choice("band", band, BANDS)
    x = _places([run_x for run_x, _ in runs])
    table = np.array([_at(x, points) for points in runs]).reshape(len(runs), len(x))
    there = np.isfinite(table)
    counts = there.sum(axis=0)
    line, low, high = (np.full(len(x), np.nan) for _ in range(3))
    with np.errstate(over="ignore", invalid="ignore"):  # of numbers near the largest; no band comes of them
        for columns, values in _by_presence(table, there):
            line[columns] = getattr(np, estimator)(values, axis=0)
            if len(values) < 2 or estimator not in ("mean", "median"):
                continue
            if band == "std":
                deviation = values.std(axis=0)
                low[columns], high[columns] = line[columns] - deviation, line[columns] + deviation
            else:
                low[columns], high[columns] = _bootstrap(values, estimator, seed)
    return Curve(x, line, low, high, counts)


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Raise ValueError for what is none of the choices."""
    if value not in choices:
        raise ValueError(f"{name}={value!r}: choose one of {', '.join(choices)}")


def _places(grids: Sequence[Array]) -> Array:
    """All places on x of some runs, increasing; of more than MAX_PLACES, some between the ends."""
    if not grids:
        return np.empty(0)
    if all(np.array_equal(grid, grids[0]) for grid in grids[1:]):
        return grids[0]
    x = np.unique(np.concatenate(grids))
    if len(x) <= MAX_PLACES:
        return x
    ends = [end for grid in grids if len(grid) for end in (grid[0], grid[-1])]
    return np.unique(np.concatenate([x[:: -(-len(x) // MAX_PLACES)], ends]))


def _at(x: Array, run: Points) -> Array:
    """The values of a run at places on x; nan before its first, after its last, and beside its gaps."""
    own_x, own_y = run
    if len(own_x) == len(x) and np.array_equal(own_x, x):
        return own_y
    if len(own_x) == 0:
        return np.full(len(x), np.nan)
    after = np.searchsorted(own_x, x).clip(0, len(own_x) - 1)
    before = np.maximum(after - 1, 0)
    span = np.where(after > before, own_x[after] - own_x[before], 1.0)
    part = (x - own_x[before]) / span
    values = own_y[before] * (1 - part) + own_y[after] * part
    values = np.where(own_x[after] == x, own_y[after], values)
    return np.where((x < own_x[0]) | (x > own_x[-1]), np.nan, values)


def _by_presence(table: Array, there: npt.NDArray[np.bool_]) -> list[tuple[npt.NDArray[Any], Array]]:
    """Columns of a table in groups that have values in the same rows: their numbers, and those values."""
    if there.all():
        return [(np.arange(table.shape[1]), table)] if table.size else []
    patterns, groups = np.unique(np.packbits(there, axis=0), axis=1, return_inverse=True)
    found = []
    for number in range(patterns.shape[1]):
        columns = np.flatnonzero(groups.reshape(-1) == number)
        rows = there[:, columns[0]]
        if rows.any():
            found.append((columns, table[np.ix_(rows, columns)]))
    return found


def _bootstrap(values: Array, estimator: str, seed: int) -> tuple[Array, Array]:
    """The percentile interval of the estimate over rows, for each column."""
    runs, places = values.shape
    chosen = np.random.default_rng(seed).integers(runs, size=(RESAMPLES, runs))
    estimate: Callable[..., Array] = getattr(np, estimator)
    low, high = np.empty(places), np.empty(places)
    step = max(CHUNK // (RESAMPLES * runs), 1)
    for start in range(0, places, step):
        part = slice(start, start + step)
        estimates = estimate(values[:, part][chosen], axis=1)
        low[part], high[part] = np.quantile(estimates, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return low, high
