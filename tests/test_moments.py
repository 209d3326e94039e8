"""Moments as a class: constructor, update, merge, operators, copies, pickles, readers and their rules."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
import struct
import sys
from typing import Any

import numpy as np
import pytest
from oracle import BLOCK, assert_moments, exact

from spinstat import Moments, moments

inf, nan = math.inf, math.nan


def same(a: float, b: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b))


def test_empty_moments_have_no_values_and_no_warning() -> None:
    m = Moments()
    assert (m.count, m.nan_count, m.posinf_count, m.neginf_count) == (0, 0, 0, 0)
    assert all(
        math.isnan(value) for value in (m.mean, m.min, m.max, m.variance(), m.std(), m.std(1), m.std(-1))
    )
    assert m.m2 == 0.0
    assert Moments(None) == m == Moments([]) == Moments(np.empty((3, 0)))


def test_constructor_update_and_function_agree_to_the_bit() -> None:
    x = np.random.default_rng(0).normal(size=5000)
    m = Moments()
    assert m.update(x) is None
    assert m.to_bytes() == Moments(x).to_bytes() == moments(x).to_bytes()


def test_readers_give_plain_numbers() -> None:
    m = Moments(np.array([1, 2, 4, 5], np.float32))
    assert (m.count, m.mean, m.m2, m.min, m.max) == (4, 3.0, 10.0, 1.0, 5.0)
    assert [type(value) for value in (m.mean, m.m2, m.min, m.max, m.std(), m.variance())] == [float] * 6
    counts = (m.count, m.nan_count, m.posinf_count, m.neginf_count)
    assert [type(value) for value in counts] == [int] * 4


def test_readers_cannot_be_assigned() -> None:
    m = Moments([1.0])
    for name in ("count", "nan_count", "posinf_count", "neginf_count", "mean", "m2", "min", "max"):
        with pytest.raises(AttributeError):
            setattr(m, name, 2)
    assert m == Moments([1.0])


def test_updates_add_up() -> None:
    m = Moments()
    for x in (1.0, [2, 3], np.array([[4.0], [5.0]]), (), 6):
        m.update(x)
    assert_moments(m, exact(range(1, 7)), merges=6)


@pytest.mark.parametrize(
    ("ddof", "want"), [(0, 2.5), (1, 10 / 3), (2, 5.0), (3, 10.0), (0.5, 10 / 3.5), (-1, 2.0)]
)
def test_a18_ddof_belongs_to_the_reader(ddof: float, want: float) -> None:
    m = Moments([1.0, 2.0, 4.0, 5.0])
    assert m.variance(ddof) == m.variance(ddof=ddof) == want
    assert m.std(ddof) == m.std(ddof=ddof) == math.sqrt(want)


def test_a18_the_default_is_the_population_s_and_one_value_has_std_zero() -> None:
    assert Moments([1.0, 2.0, 4.0, 5.0]).std() == math.sqrt(2.5)
    assert Moments([5.0]).std() == 0.0 == Moments(5.0).variance()


@pytest.mark.parametrize("ddof", [4, 4.5, 100, inf, nan])
def test_a_divisor_that_is_not_positive_gives_nan(ddof: float) -> None:
    m = Moments([1.0, 2.0, 4.0, 5.0])
    assert math.isnan(m.variance(ddof)) and math.isnan(m.std(ddof))


@pytest.mark.parametrize("ddof", ["1", None, 1j])
def test_ddof_must_be_a_number(ddof: Any) -> None:
    with pytest.raises(TypeError):
        Moments([1.0, 2.0]).std(ddof)


MIXES = [
    [nan],
    [inf],
    [-inf],
    [1, nan, 3],
    [nan, 1],
    [1, inf, 2],
    [inf, inf],
    [-inf, -inf],
    [inf, -inf],
    [-inf, 1],
    [nan, inf],
    [inf, -inf, nan],
    [1.0, inf, inf],
    [0.0, -inf, 5.0],
]


@pytest.mark.parametrize("mix", MIXES, ids=str)
def test_a11_a12_non_finite_values_give_what_numpy_gives_in_any_order(mix: list[float]) -> None:
    for order in itertools.permutations(mix):
        x = np.array(order)
        with np.errstate(invalid="ignore"):
            want = [float(f(x)) for f in (np.mean, np.std, np.min, np.max)]
        by_one, merged = Moments(), Moments()
        for value in order:
            by_one.update(value)
            merged.merge(Moments([value]))
        for m in (Moments(x), Moments(x.astype("f4")), Moments(list(order)), by_one, merged):
            assert m.count == len(order)
            assert all(map(same, [m.mean, m.std(), m.min, m.max], want)), (m, want)


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("n", [1, 15, 16, 17, 48, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 17])
def test_a11_a12_non_finite_values_are_counted_wherever_they_stand(n: int, dtype: str) -> None:
    x = np.random.default_rng(n).normal(3, 2, n).astype(dtype)
    edges = {0, 1, 7, 8, 15, 16, n // 2, BLOCK - 1, BLOCK, n - 17, n - 16, n - 2, n - 1}
    for i in sorted(edge for edge in edges if 0 <= edge < n):
        for value in (nan, inf, -inf):
            y = x.copy()
            y[i] = value
            m = Moments(y)
            assert m.count == n
            assert (m.nan_count, m.posinf_count, m.neginf_count) == (
                value != value,
                value == inf,
                value == -inf,
            )
            assert same(m.mean, value) and math.isnan(m.std())
            finite = np.delete(y, i)
            m2 = exact(finite.tolist()).m2 if n < 100 else np.var(finite, dtype="f8") * (n - 1)
            assert m.m2 == pytest.approx(float(m2), rel=1e-12, abs=1e-300)


def test_the_finite_values_stay_readable_beside_the_others() -> None:
    m = Moments([1.0, inf, 3.0, nan, -inf, nan, inf])
    assert (m.count, m.nan_count, m.posinf_count, m.neginf_count) == (7, 2, 2, 1)
    assert m.m2 == 2.0
    assert struct.unpack("=q5d3q", m.to_bytes()) == (2, 2.0, 0.0, 2.0, 1.0, 3.0, 2, 2, 1)


def test_merge_adds_the_other_and_leaves_it_alone() -> None:
    a, b = Moments([1.0, 2.0]), Moments([3.0, 4.0, 5.0, nan])
    before = b.to_bytes()
    assert a.merge(b) is None
    assert b.to_bytes() == before
    assert (a.count, a.nan_count) == (6, 1)
    a, b = Moments([1.0, 2.0]), Moments([3.0, 4.0, 5.0])
    a.merge(b)
    assert_moments(a, exact(range(1, 6)), merges=2)


def test_merging_with_itself_counts_twice() -> None:
    m = Moments([1.0, 2.0, 6.0, inf])
    m.merge(m)
    assert struct.unpack("=q5d3q", m.to_bytes()) == (6, 3.0, 0.0, 28.0, 1.0, 6.0, 0, 2, 0)


def test_plus_makes_a_new_one_and_plus_equals_changes_the_left() -> None:
    a, b = Moments([1.0, 2.0]), Moments([4.0])
    c = a + b
    assert (a, b) == (Moments([1.0, 2.0]), Moments([4.0]))
    assert c.count == 3 and c.mean == pytest.approx(7 / 3, rel=1e-15)
    alias = a
    a += b
    assert a is alias and a == c
    assert sum([b, b], Moments()).count == 2


@pytest.mark.parametrize("other", [1.0, [1.0], None, "m", np.ones(2), object()], ids=repr)
def test_only_moments_merge_with_moments(other: Any) -> None:
    m = Moments([1.0, 2.0])
    with pytest.raises(TypeError):
        m.merge(other)
    if not isinstance(other, np.ndarray):  # an array takes an operator upon itself, element by element
        with pytest.raises(TypeError):
            m + other
        with pytest.raises(TypeError):
            other + m
    with pytest.raises(TypeError):
        m += other
    assert m == Moments([1.0, 2.0])


def test_equality_is_of_the_whole_state() -> None:
    m = Moments([1.0, 2.0])
    assert m == Moments([2.0, 1.0]) and not m != m.copy()
    for other in ([1.0, 2.0, nan], [1.0, 2.0, inf], [1.0, 3.0], [1.0], [1.0, 2.0, 1.0, 2.0], [1.5, 1.5]):
        assert m != Moments(other)
    assert Moments([nan, 1.0]) == Moments([1.0, nan])
    assert m != 1.5 and m != "m" and m != None  # noqa: E711
    assert m.__eq__(1.5) is NotImplemented


def test_moments_have_no_hash_as_they_change() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(Moments())


@pytest.mark.parametrize(
    "clone", [Moments.copy, copy.copy, copy.deepcopy], ids=["copy", "copy.copy", "deepcopy"]
)
def test_a_copy_is_equal_and_independent(clone: Any) -> None:
    m = Moments([1.0, 2.0, nan])
    other = clone(m)
    assert type(other) is Moments and other is not m and other.to_bytes() == m.to_bytes()
    other.update(3.0)
    assert (m.count, other.count) == (3, 4)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("values", [[], [0.1, 0.2, 1e9], [nan, inf, -inf, 1.0]], ids=str)
def test_pickles_come_back_to_the_bit(values: list[float], protocol: int) -> None:
    m = Moments(values)
    other = pickle.loads(pickle.dumps(m, protocol))
    assert type(other) is Moments and other.to_bytes() == m.to_bytes()


def test_bytes_hold_the_state_and_come_back() -> None:
    m = Moments([0.1, 0.2, nan, inf])
    data = m.to_bytes()
    assert type(data) is bytes and len(data) == 72
    assert Moments.from_bytes(data).to_bytes() == data
    for wrong in (b"", data[:-1], data + b"\0"):
        with pytest.raises(ValueError, match="72"):
            Moments.from_bytes(wrong)


def test_repr_tells_what_is_inside() -> None:
    assert repr(Moments([1.0, 2.0, 3.0])).startswith("Moments(")
    for part in ("count=3", "mean=2", "std=0.816", "min=1", "max=3"):
        assert part in repr(Moments([1.0, 2.0, 3.0]))
    assert "count=0" in repr(Moments())
    assert "count=2" in repr(Moments([nan, 1.0])) and "nan" in repr(Moments([nan, 1.0]))


@pytest.mark.parametrize(
    "bad", [[1.0, "x"], [1.0, None], [[1.0, 2.0], [1j]], np.array([1.0, None])], ids=repr
)
def test_an_update_that_fails_changes_nothing(bad: Any) -> None:
    m = Moments([1.0, 2.0])
    before = m.to_bytes()
    with pytest.raises(TypeError):
        m.update(bad)
    assert m.to_bytes() == before


def test_data_is_not_kept() -> None:
    x = np.ones(10)
    before = sys.getrefcount(x)
    m = Moments(x)
    assert sys.getrefcount(x) == before
    x[:] = 7
    assert m.mean == 1.0


def test_a_pickle_with_another_number_of_parts_is_refused() -> None:
    restore, parts = Moments([1.0, 2.0]).__reduce__()  # type: ignore[misc]
    assert restore(*parts) == Moments([1.0, 2.0])
    for wrong in ((), parts[:-1], (*parts, 0)):
        with pytest.raises(ValueError, match="9 parts"):
            restore(*wrong)


def test_a_mean_whose_rest_is_no_rounding_error_is_shown_whole() -> None:
    """As a device gives it that has float32 alone."""
    restore, _ = Moments().__reduce__()  # type: ignore[misc]
    m = restore(4, 171.25, 2.0**-20, 1.0, 170.0, 172.0, 0, 0, 0)
    assert m.mean == 171.25 + 2.0**-20
    assert (m + m).mean == m.mean
