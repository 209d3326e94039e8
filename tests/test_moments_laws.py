"""The laws of merge: identity, order, grouping, splits, and that an update is a merge of one value."""

from __future__ import annotations

import functools
import math
import operator
import struct

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import assert_moments, exact, merges_of

from spinstat import Moments

numbers = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(-1e3, 1e3),
    st.integers(-999, 999).map(lambda i: 1e9 + i / 4),
)
anything = st.one_of(numbers, st.sampled_from([math.nan, math.inf, -math.inf]))
series = st.lists(numbers, max_size=30)
any_series = st.lists(anything, max_size=30)
laws = settings(max_examples=200, deadline=None)


def state(m: Moments) -> tuple[float, ...]:
    """(finite count, mean, what it lacks, m2, min, max of the finite, NaN, +inf, -inf), raw."""
    return struct.unpack("=q5d3q", m.to_bytes())


def counts_and_extremes(m: Moments) -> tuple[float, ...]:
    raw = state(m)
    return raw[:1] + raw[4:]


@laws
@given(any_series)
def test_a13_empty_is_the_identity_on_both_sides_to_the_bit(x: list[float]) -> None:
    m = Moments(x)
    assert (m + Moments()).to_bytes() == m.to_bytes() == (Moments() + m).to_bytes()
    m.merge(Moments())
    assert m.to_bytes() == Moments(x).to_bytes()


@laws
@given(any_series, any_series)
def test_merging_is_commutative(x: list[float], y: list[float]) -> None:
    a, b = Moments(x), Moments(y)
    assert counts_and_extremes(a + b) == counts_and_extremes(b + a) == counts_and_extremes(Moments(x + y))
    e = exact(value for value in x + y if math.isfinite(value))
    for m in (a + b, b + a):
        if math.isfinite(m.mean):
            assert_moments(m, e, merges_of(len(x + y)) + 1)


@laws
@given(series, series, series)
def test_merging_is_associative_within_the_bounds(x: list[float], y: list[float], z: list[float]) -> None:
    a, b, c = Moments(x), Moments(y), Moments(z)
    e = exact(x + y + z)
    assert counts_and_extremes((a + b) + c) == counts_and_extremes(a + (b + c))
    assert_moments((a + b) + c, e, merges=4)
    assert_moments(a + (b + c), e, merges=4)


@laws
@given(any_series, any_series, any_series)
def test_the_non_finite_merge_exactly_in_any_grouping(x: list[float], y: list[float], z: list[float]) -> None:
    a, b, c = Moments(x), Moments(y), Moments(z)
    left, right, whole = (a + b) + c, a + (b + c), Moments(x + y + z)
    for m in (left, right):
        assert counts_and_extremes(m) == counts_and_extremes(whole)
        assert m.count == len(x + y + z)
        assert math.isnan(m.mean) == math.isnan(whole.mean) and math.isinf(m.mean) == math.isinf(whole.mean)
        assert math.isnan(m.std()) == math.isnan(whole.std())
        assert not any(math.isnan(part) for part in state(m))


@laws
@given(any_series)
def test_merging_with_itself_doubles_counts_and_m2_and_nothing_else(x: list[float]) -> None:
    m = Moments(x)
    count, mean, lacks, m2, low, high, nans, ups, downs = state(m)
    m.merge(m)
    assert state(m) == (2 * count, mean, lacks, 2 * m2, low, high, 2 * nans, 2 * ups, 2 * downs)
    twice = Moments(x)
    twice += Moments(x)
    assert twice.to_bytes() == m.to_bytes()


@laws
@given(series, numbers)
def test_an_update_is_the_merge_of_one_value(x: list[float], value: float) -> None:
    updated, merged = Moments(x), Moments(x)
    updated.update(value)
    merged.merge(Moments(value))
    e = exact([*x, value])
    assert counts_and_extremes(updated) == counts_and_extremes(merged)
    for m in (updated, merged):
        assert_moments(m, e, merges_of(len(x)) + 1)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 9000),
    offset=st.sampled_from([0.0, 1e6, -1e12]),
    cuts=st.lists(st.integers(0, 9000), max_size=12),
)
def test_any_split_anywhere_gives_the_same_within_the_bounds(
    seed: int, n: int, offset: float, cuts: list[int]
) -> None:
    x = np.random.default_rng(seed).normal(offset, 3, n)
    e = exact(x.tolist())
    parts = [Moments(part) for part in np.split(x, sorted(cut % (n + 1) for cut in cuts))]
    merges = merges_of(n) + len(parts)
    assert_moments(functools.reduce(operator.add, parts, Moments()), e, merges)
    assert_moments(functools.reduce(operator.add, reversed(parts), Moments()), e, merges)
    while len(parts) > 1:  # in pairs, as a tree
        parts = [functools.reduce(operator.add, parts[i : i + 2]) for i in range(0, len(parts), 2)]
    assert_moments(parts[0], e, merges)


@laws
@given(st.lists(st.lists(st.floats(0, 1.797e308), max_size=5), max_size=6))
def test_means_near_the_largest_double_merge_without_overflow(parts: list[list[float]]) -> None:
    signed = [[-value for value in part] if i % 2 else part for i, part in enumerate(parts)]
    total = functools.reduce(operator.add, map(Moments, signed), Moments())
    assert_moments(total, exact(value for part in signed for value in part), merges=len(parts) + 2)


@laws
@given(st.integers(1, 2**52), st.integers(1, 2**52), st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
def test_huge_counts_weigh_as_they_are(na: int, nb: int, a: float, b: float) -> None:
    """Counts whose product is no 64-bit integer, set through the bytes of a state."""

    def constant(n: int, value: float) -> Moments:
        return Moments.from_bytes(struct.pack("=q5d3q", n, value, 0.0, 0.0, value, value, 0, 0, 0))

    m = constant(na, a) + constant(nb, b)
    weight = nb / (na + nb)
    assert m.count == na + nb
    assert math.isclose(m.mean, a + (b - a) * weight, rel_tol=1e-14, abs_tol=1e-9)
    assert math.isclose(m.variance(), (b - a) ** 2 * weight * (na / (na + nb)), rel_tol=1e-12, abs_tol=1e-300)
