"""Moments against exact arithmetic: types, lengths, offsets, drifts, and both ends of the range of doubles.

The bounds and their reasons are in oracle.py; a failing case prints its values with 17 digits.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from oracle import BLOCK, LANES, Sums, assert_moments, exact, merges_of

from spinstat import Moments, moments

Array = NDArray[np.float64]
LONGEST = 3 * BLOCK + 1
GREATEST = sys.float_info.max
KERNELS = ["f8", "f4", "i8", "i4"]


def lengths() -> Iterator[int]:
    """Every length for the short; then what lies around rows and blocks, and samples of the rest."""
    rng = np.random.default_rng(7)
    edges = {k * BLOCK + d for k in (1, 2, 3) for d in range(-LANES - 1, LANES + 2)}
    rows = {k * LANES + d for k in range(LANES, LONGEST // LANES, 13) for d in (-1, 0, 1)}
    samples = set(rng.integers(0, LONGEST, 200).tolist())
    yield from (n for n in sorted({*range(300), *edges, *rows, *samples}) if n <= LONGEST)


@pytest.mark.parametrize("dtype", KERNELS)
@pytest.mark.parametrize(("offset", "scale"), [(0, 1000), (1e9, 1), (-3e6, 1e5)])
def test_every_length_is_right_for_every_kernel(dtype: str, offset: float, scale: float) -> None:
    x = np.random.default_rng(3).normal(offset, scale, LONGEST).astype(dtype)
    values = x.astype("f8").tolist()
    sums, done = Sums(), 0
    for n in lengths():
        sums.extend(values[done:n])
        done = n
        assert_moments(moments(x[:n]), sums.exact(), what=f"{dtype} n {n}")


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 15, 16, 17, 31, 33, 100])
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_every_alignment_and_neighbour_leaves_the_result(dtype: str, n: int) -> None:
    values = np.random.default_rng(n).normal(size=n).astype(dtype)
    want = moments(values).to_bytes()
    for start in range(2 * LANES):
        x = np.full(n + 3 * LANES, np.nan, dtype)  # what is read beyond the ends is counted
        x[start : start + n] = values
        assert moments(x[start : start + n]).to_bytes() == want


@pytest.mark.parametrize("n", [2, 3, 17, 1001, BLOCK, BLOCK + 1, LONGEST])
@pytest.mark.parametrize("offset", [0.0, 1.0, -1e3, 1e6, -1e9, 1e12, 1e15])
def test_a1_offsets_up_to_1e15_leave_the_spread(offset: float, n: int) -> None:
    x = offset + np.random.default_rng(n).normal(size=n)
    e = exact(x.tolist())
    pieces, single = Moments(), Moments()
    for piece in np.array_split(x, 7):
        pieces += moments(piece)
    for value in x.tolist():
        single.update(value)
    for way, m in {"one call": moments(x), "pieces": pieces, "values": single}.items():
        assert_moments(m, e, merges=None if way == "one call" else 30, what=way)
        # the deviations are exact, and no mean is rounded on the way: nothing depends on the offset
        assert m.std() == pytest.approx(float(e.std()), rel=1e-13, abs=0), way
        unit = Fraction(np.spacing(abs(float(e.mean))))
        assert abs(Fraction(m.mean) - e.mean) <= unit + Fraction(1, 10**14), way


def drifting(n: int, rng: np.random.Generator) -> dict[str, Array]:
    """Series whose mean moves, or whose first values say little about the rest."""
    noise = rng.normal(size=n)
    at = int(rng.integers(0, n + 1))
    outlier = noise.copy()
    outlier[at % n] = 1e15
    return {
        "arange": np.arange(float(n)),
        "arange at 1e9": 1e9 + np.arange(float(n)),
        "sorted": np.sort(noise * 1e6),
        "sorted downwards": np.sort(noise)[::-1].copy(),
        "random walk": 1e7 + np.cumsum(noise),
        "step up": np.where(np.arange(n) < at, noise, noise + 1e15),
        "step down": np.where(np.arange(n) < at, 1e15 + noise, noise),
        "steps at blocks": noise + 1e9 * (np.arange(n) // BLOCK),
        "sawtooth": np.arange(n) % 16 * 1e8 + noise,
        "one outlier": outlier,
        "outlier first": np.concatenate([[1e15], noise[1:]]),
        "outlier last": np.concatenate([noise[1:], [-1e15]]),
        "outliers where a pivot may be": _outliers(noise, [0, n // 2, n - 1]),
        "growing": np.exp(np.linspace(-300, 300, n)),
        "shrinking": np.exp(np.linspace(300, -300, n)) * np.sign(noise),
        "alternating": np.where(np.arange(n) % 2, 1e9, -1e9) + noise,
    }


def _outliers(noise: Array, where: list[int]) -> Array:
    x = noise.copy()
    x[where] = 1e15 + x[where]
    return x


SERIES = sorted(drifting(4, np.random.default_rng(0)))


@settings(max_examples=15, deadline=None)
@pytest.mark.parametrize("name", SERIES)
@given(n=st.integers(1, LONGEST), seed=st.integers(0, 2**32 - 1))
@example(n=LONGEST, seed=0)
@example(n=BLOCK + 1, seed=1)
def test_drifting_series_are_right_at_once_and_in_parts(name: str, n: int, seed: int) -> None:
    x = drifting(n, np.random.default_rng(seed))[name]
    e = exact(x.tolist())
    assert_moments(moments(x), e, what=f"{name} n {n} seed {seed}")
    parts = Moments()
    cuts = np.unique(np.random.default_rng(seed + 1).integers(0, n + 1, 9))
    for part in np.split(x, cuts):
        parts.update(part)
    assert_moments(parts, e, merges_of(n) + len(cuts) + 1, f"{name} n {n} seed {seed}, in parts")


@pytest.mark.parametrize("name", SERIES)
@pytest.mark.parametrize("dtype", ["f4", "i8", "i4"])
def test_drifting_series_are_right_in_the_other_types(name: str, dtype: str) -> None:
    x = drifting(LONGEST, np.random.default_rng(5))[name]
    info = np.finfo("f4") if dtype == "f4" else np.iinfo(dtype)
    x = np.clip(x, float(info.min) / 2, float(info.max) / 2).astype(dtype)
    assert_moments(moments(x), exact(x.astype("f8").tolist()), what=name)


@pytest.mark.parametrize("name", SERIES)
def test_one_value_at_a_time_is_right_too(name: str) -> None:
    x = drifting(700, np.random.default_rng(6))[name].tolist()
    m, sums = Moments(), Sums()
    for i, value in enumerate(x, 1):
        m.update(value)
        sums.add(value)
        if i < 50 or i % 50 == 0:
            assert_moments(m, sums.exact(), merges=i, what=f"{name} after {i}")


def test_every_place_of_a_step_of_1e15_is_right() -> None:
    noise = np.random.default_rng(8).normal(size=200)
    for at in range(201):
        x = np.where(np.arange(200) < at, noise, noise + 1e15)
        assert_moments(moments(x), exact(x.tolist()), what=f"step at {at}")


CONSTANTS = [
    0.0,
    -0.0,
    0.1,
    -1 / 3,
    1e9 + 0.1,
    1e-300,
    5e-324,
    -2.5e-320,
    1.1e308,
    GREATEST,
    -GREATEST,
    2.0**-500,
]


@pytest.mark.parametrize("value", CONSTANTS)
def test_a19_constant_series_have_their_mean_and_std_exactly(value: float) -> None:
    for n in [*range(1, 70), 1000, BLOCK - 1, BLOCK, BLOCK + 1, LONGEST]:
        m = moments(np.full(n, value))
        assert (m.count, m.mean, m.std(), m.m2, m.min, m.max) == (n, value, 0.0, 0.0, value, value), n
    m = Moments()
    for _ in range(100):
        m.update(value)
        m.update([value] * 3)
        assert (m.mean, m.std()) == (value, 0.0)


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (0.1, "f4"),
        (3.4e38, "f4"),
        (1e-45, "f4"),
        (2**63 - 1, "i8"),
        (-(2**63), "i8"),
        (2**53 + 1, "i8"),
        (-(2**31), "i4"),
        (0.1, "f2"),
    ],
)
def test_a19_constant_series_of_other_types_do_too(value: float, dtype: str) -> None:
    for n in (1, 2, 15, 16, 17, 1000, LONGEST):
        x = np.full(n, value, dtype)
        m = moments(x)
        assert (m.mean, m.std(), m.min, m.max) == (float(x[0]), 0.0, float(x[0]), float(x[0]))


@pytest.mark.parametrize("dtype", ["i8", "i4", "f4"])
def test_the_ends_of_a_type_s_range_are_right(dtype: str) -> None:
    info = np.finfo("f4") if dtype == "f4" else np.iinfo(dtype)
    rng = np.random.default_rng(9)
    for n in (1, 2, 3, 17, 1000, BLOCK + 1):
        for ends in ([info.min, info.max], [info.max, info.max - type(info.max)(1)], [info.min, 0]):
            x = rng.choice(np.array(ends, dtype), n)
            assert_moments(moments(x), exact(x.astype("f8").tolist()), what=f"{ends} n {n}")


def _ends_of_blocks(n: int) -> NDArray[np.bool_]:
    place = np.arange(n)
    return (place % BLOCK == 0) | (place % BLOCK == BLOCK - 1) | (place == n - 1)


def scaled(n: int, kind: str, rng: np.random.Generator) -> Array:
    """Values near the largest double, or below the smallest normal one."""
    makers: dict[str, Callable[[], Array]] = {
        "largest, both signs": lambda: rng.choice([GREATEST, -GREATEST], n),
        "largest, one sign": lambda: rng.uniform(0.9, 1.0, n) * GREATEST,
        "largest, alternating": lambda: np.where(np.arange(n) % 2, GREATEST, -GREATEST),
        "largest, halves": lambda: np.where(np.arange(n) < n // 2, GREATEST, -GREATEST),
        "largest, ends below": lambda: np.where(_ends_of_blocks(n), -GREATEST, GREATEST),
        "largest among small": lambda: np.where(np.arange(n) == n // 3, GREATEST, rng.normal(size=n)),
        "all magnitudes": lambda: np.ldexp(rng.uniform(-1, 1, n), rng.integers(-1070, 1025, n)),
        "next to the largest": lambda: GREATEST - rng.integers(0, 9, n) * 2.0**971,
        "subnormal": lambda: rng.integers(-1000, 1000, n) * 5e-324,
        "one subnormal step": lambda: rng.integers(0, 2, n) * 5e-324,
        "spread 2^-500": lambda: rng.uniform(-0.5, 0.5, n) * 2.0**-499,
        "spread 2^500": lambda: rng.uniform(-0.5, 0.5, n) * 2.0**499,
        "spread 2^-600": lambda: rng.uniform(-0.5, 0.5, n) * 2.0**-600,
    }
    return makers[kind]()


SCALES = [
    "largest, both signs",
    "largest, one sign",
    "largest, alternating",
    "largest, halves",
    "largest, ends below",
    "largest among small",
    "all magnitudes",
    "next to the largest",
    "subnormal",
    "one subnormal step",
    "spread 2^-500",
    "spread 2^500",
    "spread 2^-600",
]


@settings(max_examples=15, deadline=None)
@pytest.mark.parametrize("kind", SCALES)
@given(n=st.one_of(st.integers(1, 60), st.integers(1, LONGEST)), seed=st.integers(0, 2**32 - 1))
@example(n=LONGEST, seed=0)
def test_a8_both_ends_of_the_range_keep_their_mean(kind: str, n: int, seed: int) -> None:
    x = scaled(n, kind, np.random.default_rng(seed))
    e = exact(x.tolist())
    assert_moments(moments(x), e, what=f"{kind} n {n} seed {seed}")
    first, rest = Moments(x[: n // 3]), Moments(x[n // 3 :])
    assert_moments(first + rest, e, merges_of(n) + 1, f"{kind} n {n} seed {seed}, merged")
    by_one = Moments()
    for value in x[:60].tolist():
        by_one.update(value)
    assert_moments(by_one, exact(x[:60].tolist()), min(n, 60), f"{kind} n {n} seed {seed}, one by one")


any_finite = st.floats(allow_nan=False, allow_infinity=False)
near_an_offset = st.tuples(st.sampled_from([1e3, -1e9, 1e15]), st.integers(-1000, 1000)).map(
    lambda t: t[0] + t[1] / 8
)
mixed = st.one_of(any_finite, near_an_offset, st.floats(-1, 1), st.sampled_from(CONSTANTS))


@settings(max_examples=400, deadline=None)
@given(st.lists(mixed, max_size=60))
def test_whatever_the_values_the_moments_are_within_the_bounds(values: list[float]) -> None:
    e = exact(values)
    assert_moments(moments(np.array(values)), e, what="array")
    assert_moments(moments(values), e, what="list")
    m = Moments()
    for value in values:
        m.update(value)
    assert_moments(m, e, merges=len(values), what="one by one")


@settings(max_examples=200, deadline=None)
@given(st.lists(mixed, min_size=1, max_size=8), st.integers(1, LONGEST), st.integers(0, 4))
def test_repeated_patterns_are_right_over_several_blocks(pattern: list[float], n: int, stretch: int) -> None:
    x = np.resize(np.repeat(pattern, 10**stretch), n)
    values, counts = np.unique(x, return_counts=True)
    sums = Sums()
    for value, count in zip(values.tolist(), counts.tolist(), strict=True):
        one = Sums([value])
        sums.count += count
        sums.total += count * one.total
        sums.squares += count * one.squares
        sums.min, sums.max = min(sums.min, value), max(sums.max, value)
    assert_moments(moments(x), sums.exact(), what=f"{pattern} n {n} stretch {stretch}")
