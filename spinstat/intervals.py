"""What a handful of seeds tells: robust means, bootstrap intervals, and the probability of improvement.

Agarwal, Schwarzer, Castro, Courville and Bellemare 2021, "Deep reinforcement learning at the edge of the
statistical precipice" (NeurIPS), section 4, for a single task. Intervals are percentiles of resamplings of
the seeds with replacement (Efron 1979, "Bootstrap methods: another look at the jackknife", Annals of
Statistics 7).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Statistic = Callable[[Array], Array]  # of an array (resamples, seeds), one number a row

RESAMPLES: Final = 10_000
LEVEL: Final = 0.95
CHUNK: Final = 4_000_000  # resampled numbers held at once


class Estimate(NamedTuple):
    """A number and its 95 % interval; low and high are nan where no interval can be given."""

    value: float
    low: float
    high: float


def mean(values: Array) -> Array:
    """The mean over the last axis."""
    with np.errstate(invalid="ignore", over="ignore"):  # of inf and -inf; of numbers near the largest
        return np.asarray(np.mean(values, axis=-1))


def median(values: Array) -> Array:
    """The median over the last axis."""
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(np.median(values, axis=-1))


def interquartile_mean(values: Array) -> Array:
    """The mean, over the last axis, of what is left when a quarter of the values is cut off at each end.

    Of n values floor(n / 4) are cut at each end, so of three or fewer none is, and this is their mean.
    """
    count = values.shape[-1]
    cut = count // 4
    return mean(np.sort(values, axis=-1)[..., cut : count - cut])


STATISTICS: Final[dict[str, Statistic]] = {"mean": mean, "median": median, "IQM": interquartile_mean}


def estimate(
    values: npt.ArrayLike, statistic: Statistic, seed: int = 0, resamples: int = RESAMPLES
) -> Estimate:
    """A statistic of some seeds' values with its bootstrap interval.

    The interval is that between the 2.5 and 97.5 percentiles of the statistic over resamplings of the values.
    It lies within the values. With few seeds it is too narrow: docs/comparing.md has the coverage.

    Args:
        values: one of each seed, shape (n,), n >= 1; no nan. Infinite ones count as what they are.
        statistic: mean, median or interquartile_mean.
        seed: of the resampling; the same values have the same interval each time.
        resamples: how many.

    Returns:
        The statistic and its interval, which is nan where there is one value.
    """
    array = np.asarray(values, np.float64)
    rng = np.random.default_rng(seed)
    value = float(statistic(array[np.newaxis])[0])
    if len(array) < 2:
        return Estimate(value, np.nan, np.nan)
    step = max(CHUNK // len(array), 1)
    found = []
    for start in range(0, resamples, step):
        chosen = rng.integers(0, len(array), size=(min(step, resamples - start), len(array)))
        found.append(statistic(array[chosen]))
    return Estimate(value, *_percentiles(np.concatenate(found)))


def probability_of_improvement(
    values: npt.ArrayLike, over: npt.ArrayLike, seed: int = 0, resamples: int = RESAMPLES
) -> Estimate:
    """The probability that a seed of one group does better than a seed of another, ties counting half.

    P(X > Y) + P(X = Y) / 2 over all pairs, which is the Mann-Whitney U of X divided by the number of pairs
    (Mann and Whitney 1947). 0.5: neither is better; more: the first is. For the interval both groups are
    resampled, each by itself.

    Args:
        values: X, one of each seed, shape (n,), n >= 1; no nan.
        over: Y, shape (m,), m >= 1; no nan.
        seed: of the resampling.
        resamples: how many.

    Returns:
        The probability and its interval, which is nan where either group has one seed.
    """
    x, y = np.asarray(values, np.float64), np.asarray(over, np.float64)
    wins = (x[:, np.newaxis] > y) + (x[:, np.newaxis] == y) / 2
    value = float(wins.mean())
    if min(wins.shape) < 2:
        return Estimate(value, np.nan, np.nan)
    rng = np.random.default_rng(seed)
    step = max(CHUNK // sum(wins.shape), 1)
    found = []
    for start in range(0, resamples, step):
        size = min(step, resamples - start)
        times_x, times_y = (_times(rng, size, count) for count in wins.shape)
        found.append(np.sum((times_x @ wins) * times_y, axis=1) / wins.size)
    return Estimate(value, *_percentiles(np.concatenate(found)))


def _times(rng: np.random.Generator, resamples: int, count: int) -> Array:
    """How often each of `count` values is in each resample, shape (resamples, count)."""
    chosen = rng.integers(0, count, size=(resamples, count))
    chosen += np.arange(resamples)[:, np.newaxis] * count
    counts = np.bincount(chosen.reshape(-1), minlength=resamples * count)
    return counts.reshape(resamples, count).astype(np.float64)


def _percentiles(found: Array) -> tuple[float, float]:
    """The ends of the interval; nan where the statistic of a resample was, as of inf and -inf."""
    ends = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    if np.isfinite(found).all():
        low, high = np.quantile(found, ends)
        return float(low), float(high)
    if np.isnan(found).any():
        return np.nan, np.nan
    outside = int(ends[0] * (len(found) - 1))  # beside an infinite one nothing is interpolated: outwards
    ordered = np.sort(found)
    return float(ordered[outside]), float(ordered[-1 - outside])
