"""Named regrets: inputs on which loggers and libraries gave wrong statistics; certified NIST series."""

from __future__ import annotations

import math
import sys
from fractions import Fraction

import numpy as np
import pytest
from oracle import Exact, assert_moments, exact, merges_of, square_root

from spinstat import Moments, moments


def exact_float32(x: np.ndarray, step: int, center: int) -> Exact:
    """The exact moments of many float32 values, all multiples of 1 / step near center: sums of int64."""
    units = (x.astype("f8") * step).astype("i8") - center * step
    parts = np.array_split(units.ravel(), max(1, units.size // 100_000))
    total = sum(int(part.sum()) for part in parts)
    squares = sum(int((part * part).sum()) for part in parts)
    n = units.size
    m2 = Fraction(n * squares - total * total, n * step * step)
    return Exact(n, Fraction(total, n * step) + center, m2, float(x.min()), float(x.max()))


def test_a1_a_big_offset_leaves_the_standard_deviation() -> None:
    x = 1e9 + np.random.default_rng(1).normal(size=1000)
    m = moments(x)
    assert_moments(m, exact(x.tolist()))
    assert m.mean == pytest.approx(999999999.9457468, rel=1e-15)
    assert m.std() == pytest.approx(np.std(x), rel=1e-13)
    three = moments([1e8, 1e8 + 1, 1e8 + 2])
    assert three.mean == 100000001.0 and three.std() == pytest.approx(math.sqrt(2 / 3), rel=1e-15)


def test_a2_alternating_values_at_1e9_have_std_one_half() -> None:
    x = np.tile([1e9, 1e9 + 1], 500_000)
    m = moments(x)
    assert m.mean == 1e9 + 0.5
    assert m.std() == pytest.approx(0.5, abs=1e-7)
    by_one = Moments()
    for value in x[:5000].tolist():
        by_one.update(value)
    assert_moments(by_one, exact(x[:5000].tolist()), merges=5000)


def test_a4_tiny_magnitudes_keep_a_variance() -> None:
    m = moments([0.0, 0.0, 5.39943432e-48])
    assert m.std() ** 2 == pytest.approx(6.4786e-96, rel=1e-4)
    assert_moments(m, exact([0.0, 0.0, 5.39943432e-48]))
    after_large = [1e-16] * 10 + [1e-48, 3e-48]
    assert_moments(moments(after_large), exact(after_large))


def test_a5_counts_and_sums_go_on_beyond_2_to_the_24() -> None:
    x = np.zeros(2**24 + 1, "f4")
    x[0] = 2**24 - 1
    m = moments(x)
    assert m.count == 2**24 + 1
    assert m.mean == pytest.approx(0.9999998807907176, rel=1e-15)
    ones = moments(np.ones((10_000_001, 2), "f4"))
    assert (ones.count, ones.mean, ones.std()) == (20_000_002, 1.0, 0.0)


def test_a6_float32_is_widened_in_every_layout() -> None:
    x = np.random.default_rng(0).uniform(250, 320, 20_000_000).astype("f4")
    for view in (
        x,
        x.reshape(-1, 2)[:, 0],
        x[::-3],
        x.reshape(4000, -1).T,
        np.asfortranarray(x.reshape(4000, -1)),
    ):
        e = exact_float32(view, 2**16, 285)
        assert_moments(moments(view), e, merges_of(e.count))
        assert abs(Fraction(moments(view).mean) - e.mean) < Fraction(1, 10**12)


def test_a8_small_numbers_do_not_vanish() -> None:
    m = moments([1e-46, 3e-46])
    assert (m.mean, m.min, m.max) == (pytest.approx(2e-46, rel=1e-15), 1e-46, 3e-46)
    assert m.std() == pytest.approx(1e-46, rel=1e-15)
    m = moments([5e-324, 0.0])
    assert (m.min, m.max) == (0.0, 5e-324) and m.mean in (0.0, 5e-324)
    assert moments([5e-324] * 100).mean == 5e-324
    assert sys.float_info.min / 2 != 0  # I5: the extension has not switched subnormals off


def test_a9_half_precision_is_widened_first() -> None:
    assert moments(np.full(70000, 1.0, np.float16)).mean == 1.0
    m = moments(np.array([60000.0, 60000.0], np.float16))
    assert (m.mean, m.std(), m.min, m.max) == (60000.0, 0.0, 60000.0, 60000.0)


def test_a11_one_nan_shows_in_all_four_whatever_the_order() -> None:
    for values in ([1.0, math.nan, 3.0], [math.nan, 1.0], [1.0, math.nan]):
        m = moments(values)
        assert all(math.isnan(value) for value in (m.mean, m.std(), m.min, m.max))
    ranks = [Moments([math.nan]), Moments([1.0])]
    for a, b in (ranks, ranks[::-1]):
        assert all(math.isnan(value) for value in ((a + b).mean, (a + b).std(), (a + b).min, (a + b).max))


def test_a13_empty_moments_are_the_identity() -> None:
    some = Moments([1.0, 2.0])
    assert (Moments() + some).to_bytes() == (some + Moments()).to_bytes() == some.to_bytes()
    assert (Moments() + Moments()).to_bytes() == Moments().to_bytes()
    assert (Moments() + some + Moments() + some + Moments()).count == 4


def test_a15_parts_are_weighted_by_their_counts() -> None:
    m = Moments(np.array([1.0, 2.0])) + Moments(np.array([3.0]))
    assert m.mean == 2.0 and m.std() == pytest.approx(math.sqrt(2 / 3), rel=1e-15)
    assert (Moments(np.zeros(100)) + Moments([101.0])).mean == pytest.approx(1.0, rel=1e-15)


def test_a16_any_shape_is_flattened() -> None:
    ones = moments(np.ones((4, 3)))
    assert (ones.count, ones.mean, ones.std(), ones.min, ones.max) == (12, 1.0, 0.0, 1.0, 1.0)
    nested = moments([[1, 2], [3, 4]])
    assert (nested.count, nested.mean) == (4, 2.5) and nested.std() == pytest.approx(
        math.sqrt(1.25), rel=1e-15
    )


def test_a17_a_number_without_dimensions_is_one_value() -> None:
    for x in (3.0, 3, np.array(3.0), np.float32(3), np.int64(3), np.array(3, ">i2")):
        m = moments(x)
        assert (m.count, m.mean, m.std(), m.min, m.max) == (1, 3.0, 0.0, 3.0, 3.0)


def test_a19_a_constant_series_has_std_exactly_zero() -> None:
    m = moments(np.full(1000, 0.1))
    assert (m.mean, m.std()) == (0.1, 0.0)


def test_i5_sums_are_not_reordered_and_nan_is_seen() -> None:
    assert math.isnan(moments([1.0, math.nan, 3.0]).mean)
    x = np.full(10_000_001, 1e-16)
    x[0] = 1.0
    assert moments(x).mean * x.size == pytest.approx(1 + 1e-9, rel=1e-15)


# NIST Statistical Reference Datasets, univariate: the first value, how often which pair follows it,
# and the certified mean and standard deviation (with n - 1).
NUMACC = {
    "NumAcc1": ("10000001", ["10000003", "10000002"], 1, "10000002", "1"),
    "NumAcc2": ("1.2", ["1.1", "1.3"], 500, "1.2", "0.1"),
    "NumAcc3": ("1000000.2", ["1000000.1", "1000000.3"], 500, "1000000.2", "0.1"),
    "NumAcc4": ("10000000.2", ["10000000.1", "10000000.3"], 500, "10000000.2", "0.1"),
}


@pytest.mark.parametrize("name", NUMACC)
def test_nist_series_give_fourteen_digits_of_mean_and_std(name: str) -> None:
    """In tenths every value is a double, and fourteen digits of the certified values can be asked for."""
    first, pair, times, mean, std = NUMACC[name]
    tenths = [int(Fraction(text) * 10) for text in [first, *pair * times]]
    for x in (np.array(tenths, "f8"), np.array(tenths, "i8"), np.array(tenths, "i4"), tenths):
        m = moments(x)
        assert m.mean == pytest.approx(float(Fraction(mean) * 10), rel=1e-14, abs=0)
        assert m.std(ddof=1) == pytest.approx(float(Fraction(std) * 10), rel=1e-14, abs=0)


@pytest.mark.parametrize("name", NUMACC)
def test_nist_series_as_written_lose_only_what_rounding_to_doubles_lost(name: str) -> None:
    """As written the values are no doubles, and rounding alone leaves eight digits of NumAcc4's std: so
    fourteen digits of what the doubles themselves have, and of the certified mean."""
    first, pair, times, mean, std = NUMACC[name]
    x = [float(text) for text in [first, *pair * times]]
    e = exact(x)
    by_one = Moments()
    for value in x:
        by_one.update(value)
    assert_moments(by_one, e, merges=len(x))
    m = moments(np.array(x))
    assert m.mean == pytest.approx(float(mean), rel=1e-14, abs=0)
    assert m.std(ddof=1) == pytest.approx(float(square_root(e.m2 / (e.count - 1))), rel=1e-14, abs=0)
    assert m.std(ddof=1) == pytest.approx(float(std), rel=1e-8, abs=0)
