"""The statistics of a comparison, beside scipy's, and what their intervals cover."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from spinstat.intervals import (
    STATISTICS,
    Estimate,
    estimate,
    interquartile_mean,
    mean,
    median,
    probability_of_improvement,
)

INF = math.inf
NAMES = list(STATISTICS)


def scipy_statistic(name: str) -> Any:
    return {
        "mean": np.mean,
        "median": np.median,
        "IQM": lambda values, axis: stats.trim_mean(values, 0.25, axis=axis),
    }[name]


def draws(count: int, seed: int = 0, shift: float = 0.0) -> Any:
    return np.random.default_rng([seed, count]).normal(shift, size=count)


@pytest.mark.parametrize("count", [*range(1, 21), 100])
def test_the_interquartile_mean_is_scipys_mean_with_a_quarter_cut_at_each_end(count: int) -> None:
    values = draws(count)
    assert interquartile_mean(values) == pytest.approx(stats.trim_mean(values, 0.25), rel=1e-13)


def test_the_interquartile_mean_does_not_see_how_far_off_an_outlier_is() -> None:
    assert interquartile_mean(np.array([1.0, 2.0, 3.0, -1e300])) == 1.5
    assert interquartile_mean(np.array([1.0, 2.0, 3.0, INF])) == 2.5


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("count", [2, 3, 5, 8, 20, 57])
def test_an_interval_is_scipys_of_the_same_resamples(name: str, count: int) -> None:
    values = draws(count)
    found = estimate(values, STATISTICS[name], seed=3)
    other = stats.bootstrap(
        (values,), scipy_statistic(name), n_resamples=10_000, method="percentile", vectorized=True,
        rng=np.random.default_rng(3),
    ).confidence_interval
    assert found.value == pytest.approx(scipy_statistic(name)(values, axis=0), rel=1e-13)
    assert (found.low, found.high) == pytest.approx((other.low, other.high), rel=1e-12, abs=1e-14)


@pytest.mark.parametrize(("count", "other"), [(1, 1), (2, 3), (5, 5), (10, 7), (30, 41)])
def test_the_probability_of_improvement_is_the_mann_whitney_u_over_the_pairs(count: int, other: int) -> None:
    x, y = np.round(draws(count, 1, 0.3), 1), np.round(draws(other, 2), 1)  # rounded: there are ties
    u = stats.mannwhitneyu(x, y).statistic
    assert probability_of_improvement(x, y).value == pytest.approx(u / (count * other), rel=1e-14)
    there, back = probability_of_improvement(x, y).value, probability_of_improvement(y, x).value
    assert there + back == pytest.approx(1, rel=1e-14)


@pytest.mark.parametrize(("count", "other"), [(2, 3), (5, 5), (10, 7)])
def test_its_interval_is_scipys_of_the_same_resamples(count: int, other: int) -> None:
    x, y = np.round(draws(count, 1, 0.3), 1), np.round(draws(other, 2), 1)
    found = probability_of_improvement(x, y, seed=5)
    assert (found.low, found.high) == pytest.approx(scipy_probability(x, y, 5, 10_000), rel=1e-12)


def scipy_probability(x: Any, y: Any, seed: int, batch: int) -> tuple[float, float]:
    def share(x: Any, y: Any, axis: int) -> Any:
        pairs = x[..., :, np.newaxis] - y[..., np.newaxis, :]
        return ((np.sign(pairs) + 1) / 2).mean(axis=(-1, -2))

    ends = stats.bootstrap(
        (x, y), share, n_resamples=10_000, method="percentile", vectorized=True, batch=batch,
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return float(ends.low), float(ends.high)


def test_ties_count_half() -> None:
    assert probability_of_improvement([1, 1], [1, 1]) == Estimate(0.5, 0.5, 0.5)
    assert probability_of_improvement([2, 3], [0, 1]) == Estimate(1, 1, 1)
    assert probability_of_improvement([INF, -INF], [INF, 0]).value == pytest.approx((0.5 + 1) / 4)


def test_the_same_values_have_the_same_interval_and_another_seed_has_another() -> None:
    values = draws(7)
    assert estimate(values, mean) == estimate(values.copy(), mean)
    assert estimate(values, mean) != estimate(values, mean, seed=1)
    first, second = (probability_of_improvement(values, values + 0.3) for _ in range(2))
    assert first == second


def test_many_seeds_are_resampled_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = draws(8), draws(6)
    monkeypatch.setattr("spinstat.intervals.CHUNK", 1500 * 14)
    found, probability = estimate(x, median), probability_of_improvement(x, y)
    theirs = stats.bootstrap(
        (x,), np.median, n_resamples=10_000, method="percentile", vectorized=True, batch=1500 * 14 // 8,
        rng=np.random.default_rng(0),
    ).confidence_interval
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), rel=1e-12)
    ends = scipy_probability(x, y, 0, batch=1500)
    assert (probability.low, probability.high) == pytest.approx(ends, rel=1e-12)


@pytest.mark.parametrize("statistic", [mean, median, interquartile_mean])
def test_one_seed_has_a_value_and_no_interval(statistic: Any) -> None:
    found = estimate([4.5], statistic)
    assert found.value == 4.5
    assert math.isnan(found.low) and math.isnan(found.high)
    found = probability_of_improvement([4.5], [1, 5])
    assert found.value == 0.5
    assert math.isnan(found.low) and math.isnan(found.high)


def test_equal_seeds_have_an_interval_without_width() -> None:
    assert estimate([2.0] * 5, mean) == Estimate(2, 2, 2)


@pytest.mark.parametrize(
    ("values", "statistic", "expected"),
    [
        ([1, 2, 3, 4, INF], mean, (INF, None, INF)),
        ([1, 2, 3, 4, -INF], mean, (-INF, -INF, None)),
        ([1, 2, 3, 4, 5, 6, 7, INF], interquartile_mean, (4.5, None, INF)),
        ([1, 2, 3, 4, INF], median, (3, 1, INF)),
        ([1, -INF, INF], mean, (math.nan, math.nan, math.nan)),
        ([INF, INF], mean, (INF, INF, INF)),
    ],
    ids=str,
)
def test_infinite_values_count_as_what_they_are(values: list[float], statistic: Any, expected: Any) -> None:
    for number, wanted in zip(estimate(values, statistic), expected, strict=True):
        if wanted is None:
            assert math.isfinite(number) and min(values[:-1]) <= number <= 7
        else:
            assert number == wanted or (math.isnan(number) and math.isnan(wanted))


def test_beside_infinite_resamples_the_ends_are_numbers_of_the_sample_and_the_outer_ones() -> None:
    values = np.append(draws(11), 1e9)
    chosen = np.random.default_rng(0).integers(0, 12, size=(10_000, 12))
    found = interquartile_mean(values[chosen])
    assert 0 < np.mean(found > 1e6) < 0.025  # of the resamples with so many of the last
    low = np.quantile(found, 0.025, method="lower")
    high = np.quantile(found, 0.975, method="higher")
    one = estimate(np.where(values == 1e9, INF, values), interquartile_mean)
    assert (one.low, one.high) == (low, high)


def test_numbers_near_the_largest_are_no_warning() -> None:
    assert estimate([1.7e308, 1.7e308, 1e300], mean).value == INF


ROUNDS = 1500
STATED_ROUNDS = 20_000


def coverage(count: int, name: str) -> float:
    """How often the interval of `count` normal numbers holds their true mean, which is their median, too."""
    rng = np.random.default_rng([11, count])
    hits = 0
    for number in range(ROUNDS):
        found = estimate(rng.normal(size=count), STATISTICS[name], seed=number, resamples=2000)
        hits += found.low <= 0 <= found.high
    return hits / ROUNDS


# Of n values all resamples that are n times the least one are n**-n of all: of two and three values more than
# 2.5 %, so the interval is from the least to the greatest, which misses where all lie on one side: 2 / 2**n.
# The median of five is the least one where that is drawn three times or more: 5.8 %, so 1 - 2 / 2**5.
@pytest.mark.parametrize(
    ("count", "name", "exact"),
    [(2, "mean", 0.5), (2, "IQM", 0.5), (3, "mean", 0.75), (3, "median", 0.75), (5, "median", 0.9375)],
)
def test_what_few_seeds_intervals_cover_is_known_exactly(count: int, name: str, exact: float) -> None:
    assert abs(coverage(count, name) - exact) <= 4 * math.sqrt(exact * (1 - exact) / ROUNDS)


# The shares that docs/comparing.md states, from 20,000 rounds; both they and these rounds are binomial.
@pytest.mark.parametrize(
    ("count", "name", "stated"),
    [(5, "mean", 0.84), (5, "IQM", 0.90), (10, "mean", 0.90), (10, "IQM", 0.94), (20, "mean", 0.92)],
)
def test_the_coverage_that_is_stated_is_what_intervals_have(count: int, name: str, stated: float) -> None:
    error = math.sqrt(stated * (1 - stated) * (1 / ROUNDS + 1 / STATED_ROUNDS))
    assert abs(coverage(count, name) - stated) <= 4 * error + 0.005  # stated to two digits


def test_with_fifty_seeds_the_interval_of_the_mean_is_that_of_students_distribution() -> None:
    """Its half width is then near 1.96 deviations with n in the denominator, over the root of n."""
    expected = 2 * float(stats.t.cdf(stats.norm.ppf(0.975) * math.sqrt(49 / 50), 49)) - 1
    assert expected == pytest.approx(0.942, abs=1e-3)
    assert abs(coverage(50, "mean") - expected) <= 4 * math.sqrt(expected * (1 - expected) / ROUNDS)
