"""The oracles themselves: against each other, the standard library, and values worked out by hand."""

from __future__ import annotations

import math
import statistics
from fractions import Fraction

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracle import TINY, Exact, Sums, U, assert_moments, by_fsum, exact, square_root, two_product, two_sum

finite = st.floats(allow_nan=False, allow_infinity=False)
near = st.integers(0, 10**6).map(lambda i: 1e15 + i / 8)
ordinary = st.floats(-1e6, 1e6)


@settings(max_examples=150, deadline=None)
@given(st.one_of(st.lists(finite, min_size=1), st.lists(near, min_size=1), st.lists(ordinary, min_size=1)))
@example([0.0, 5e-324])  # a zero has an exponent, too, and not the least one
@example([0.0, 8.53883042371013e-293])
def test_the_two_oracles_agree_within_the_bounds_stated_for_the_second(values: list[float]) -> None:
    e = exact(values)
    mean, m2 = by_fsum(values)
    n, top = len(values), 2 * e.magnitude
    assert abs(mean - e.mean) <= 2 * U * abs(e.mean) + 2 * TINY * top
    assert abs(m2 - e.m2) <= 8 * U * (e.m2 + n * (U * top) ** 2) + n * top**2 / 2**1000


@settings(max_examples=50, deadline=None)
@given(st.lists(finite, min_size=2, max_size=20))
def test_the_exact_oracle_is_the_standard_library_s_rational_arithmetic(values: list[float]) -> None:
    rationals = [Fraction(x) for x in values]
    e = exact(values)
    assert e.mean == statistics.mean(rationals)
    assert e.m2 / e.count == statistics.pvariance(rationals)
    assert e.m2 / (e.count - 1) == statistics.variance(rationals)
    assert (e.min, e.max) == (min(values), max(values))


def test_values_worked_out_by_hand() -> None:
    assert exact([1.0, 2.0, 3.0, 6.0]) == Exact(4, Fraction(3), Fraction(14), 1.0, 6.0)
    assert exact([5e-324, 0.0]).mean == TINY / 2
    assert exact([1.7e308] * 3).mean == Fraction(1.7e308)
    assert exact([]) == Exact(0, Fraction(0), Fraction(0), math.inf, -math.inf)


def test_sums_may_be_added_to() -> None:
    sums = Sums([1.0, 2.0])
    sums.add(-4.5)
    assert sums.exact() == exact([1.0, 2.0, -4.5])


@given(st.fractions(min_value=0))
def test_square_root_has_a_hundred_bits(q: Fraction) -> None:
    root = square_root(q)
    assert root * root <= q <= (root * (1 + Fraction(1, 2**100))) ** 2


@given(st.floats(-(2.0**400), 2.0**400), st.floats(-(2.0**400), 2.0**400))
def test_the_sum_and_its_error_are_the_sum(a: float, b: float) -> None:
    s, error = two_sum(a, b)
    assert Fraction(s) + Fraction(error) == Fraction(a) + Fraction(b)


@given(st.floats(1e-100, 1e100), st.floats(-1e100, -1e-100))
def test_the_product_and_its_error_are_the_product(a: float, b: float) -> None:
    p, error = two_product(a, b)
    assert Fraction(p) + Fraction(error) == Fraction(a) * Fraction(b)


class Naive:
    """What must not pass: sums in double, variance as the mean square less the squared mean."""

    def __init__(self, values: list[float]) -> None:
        self.count = len(values)
        self.mean = sum(values) / self.count
        self.m2 = max(0.0, sum(x * x for x in values) - self.count * self.mean**2)
        self.min, self.max = min(values), max(values)

    def std(self, ddof: float = 0) -> float:
        return math.sqrt(self.m2 / (self.count - ddof))


def test_a2_the_bounds_reject_the_naive_formula() -> None:
    values = [1e9, 1e9 + 1] * 500
    with pytest.raises(AssertionError, match="std"):
        assert_moments(Naive(values), exact(values))
    assert_moments(Naive([1.0, 2.0, 4.0]), exact([1.0, 2.0, 4.0]))


def test_the_bounds_reject_a_mean_in_single_precision() -> None:
    values = [0.1, 0.2, 0.4]
    wrong = Naive(values)
    wrong.mean = 0.23333333432674408  # what single precision makes of it
    with pytest.raises(AssertionError, match="mean"):
        assert_moments(wrong, exact(values))
