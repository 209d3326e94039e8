"""Exact moments of float64 values, and how far from them a right implementation may be.

Two oracles that share no code: `Sums` adds integers, so its results are exact rationals; `by_fsum` stays in
doubles and keeps every rounding error by error-free transformations and `math.fsum`. test_oracle.py checks
one against the other and both against the standard library; all else is checked against `Sums`.

The bounds are worst cases, not averages. With u = 2^-53, M = the greatest |x|, R = max - min:

- A block holds at most BLOCK values in LANES lanes, so a value meets at most BLOCK / LANES + 4 additions.
  Values are summed as differences from a point within the data, each at most R: to the block's mean the
  differences, the additions and the division bring (BLOCK / LANES + 8) u R. The point is added back in two
  doubles, which lose u^2 M.
- A merge computes mean + delta * weight: 4 u R for delta, weight and product, and u^2 M for the sum. What the
  two sides were off by enters as a weighted average, so it does not grow. A reader sees the first of the two
  doubles: u M, once. Where values are so large that their distances overflow, there is one double throughout.
- Squares: relative errors of (BLOCK / LANES + 12) u on the differences squared. An error e of a mean enters
  m2 / n as e^2 and, in a merge, as 2 delta e, which is at most 2 std e by Cauchy and Schwarz. So for the
  standard deviation the additions are relative errors of std, and what the means are off by, u R and u^2 M a
  merge, is an absolute one: M itself, the offset of the values, does not count.
- Results below the normal range lose up to 2^-1074 where a quotient or a product is rounded.

None of these terms holds a square of the mean: a formula that subtracts squares, or an accumulator in single
precision, breaks the bounds at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

U = Fraction(1, 2**53)
TINY = Fraction(1, 2**1074)
LANES = 16
BLOCK = 4096  # test_kernels.py compares both with the source
LEAST_SPREAD = Fraction(1, 2**500)  # the range in which the standard deviation is promised
GREATEST_SPREAD = Fraction(2**500)
LARGE = Fraction(2**1020)  # beyond it, sums and distances of values may overflow


class Result(Protocol):
    """What the oracle checks: the readers of Moments."""

    @property
    def count(self) -> int: ...
    @property
    def mean(self) -> float: ...
    @property
    def m2(self) -> float: ...
    @property
    def min(self) -> float: ...
    @property
    def max(self) -> float: ...
    def std(self, ddof: float = 0) -> float: ...


def square_root(q: Fraction) -> Fraction:
    """The square root of q >= 0, rounded down, with a relative error below 2^-100."""
    shift = 220 + max(0, q.denominator.bit_length() - q.numerator.bit_length())
    return Fraction(math.isqrt((q.numerator << (2 * shift)) // q.denominator), 1 << shift)


@dataclass(frozen=True)
class Exact:
    """The moments of finite values, without error. `mean` and `m2` are 0 where count is 0."""

    count: int
    mean: Fraction
    m2: Fraction
    min: float
    max: float

    def std(self, ddof: int = 0) -> Fraction:
        return square_root(self.m2 / (self.count - ddof))

    @property
    def spread(self) -> Fraction:
        return Fraction(self.max) - Fraction(self.min) if self.count else Fraction(0)

    @property
    def magnitude(self) -> Fraction:
        return max(abs(Fraction(self.max)), abs(Fraction(self.min))) if self.count else Fraction(0)


class Sums:
    """Exact sums of float64 values, to which more may be added: in units of 2^-1074 doubles are integers."""

    def __init__(self, values: Iterable[float] = ()) -> None:
        self.count = 0
        self.total = 0
        self.squares = 0
        self.min = math.inf
        self.max = -math.inf
        self.extend(values)

    def add(self, x: float) -> None:
        numerator, denominator = x.as_integer_ratio()
        units = numerator << (1075 - denominator.bit_length())
        self.count += 1
        self.total += units
        self.squares += units * units
        self.min = min(self.min, x)
        self.max = max(self.max, x)

    def extend(self, values: Iterable[float]) -> None:
        for x in values:
            self.add(float(x))

    def exact(self) -> Exact:
        if not self.count:
            return Exact(0, Fraction(0), Fraction(0), self.min, self.max)
        mean = Fraction(self.total, self.count << 1074)
        m2 = Fraction(self.count * self.squares - self.total * self.total, self.count << 2148)
        return Exact(self.count, mean, m2, self.min, self.max)


def exact(values: Iterable[float]) -> Exact:
    """The exact moments of finite values; integers are rounded to doubles first, as NumPy does."""
    return Sums(values).exact()


def by_fsum(values: Iterable[float]) -> tuple[Fraction, Fraction]:
    """(mean, m2) of finite values from `math.fsum`.

    With M twice the greatest |x|, mean is off by at most 2 u |mean| + 2^-1073 M, and m2 by at most
    8 u (m2 + n (u M)^2) + n 2^-1000 M^2.
    """
    data = [float(x) for x in values]
    if not any(data):
        return Fraction(0), Fraction(0)
    exponent = math.frexp(max(map(abs, data)))[1]
    scaled = [math.ldexp(x, -exponent) for x in data]
    mean = math.fsum(scaled) / len(data)
    squares, deviations = [], []
    for y in scaled:
        high, low = two_sum(y, -mean)
        squares += [*two_product(high, high), *two_product(2 * high, low), low * low]
        deviations += [high, low]
    rest = math.fsum(deviations)
    m2 = math.fsum([*squares, -rest * rest / len(data)])
    unit = Fraction(2) ** exponent
    return Fraction(mean) * unit, Fraction(m2) * unit * unit


def two_sum(a: float, b: float) -> tuple[float, float]:
    """a + b as a rounded sum and its error (Knuth, TAOCP 2, section 4.2.2)."""
    s = a + b
    part = s - a
    return s, (a - (s - part)) + (b - part)


def two_product(a: float, b: float) -> tuple[float, float]:
    """a * b as a rounded product and its error (Dekker, Numerische Mathematik 18, 1971)."""
    p = a * b
    a1, a2 = _split(a)
    b1, b2 = _split(b)
    return p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2


def _split(a: float) -> tuple[float, float]:
    c = 134217729.0 * a  # 2^27 + 1
    high = c - (c - a)
    return high, a - high


def merges_of(n: int) -> int:
    """Merges that a value meets in one bulk update of n: a binary tree of blocks, then the state."""
    return 1 + (max(n - 1, 0) // BLOCK).bit_length()


def mean_bound(e: Exact, merges: int) -> Fraction:
    depth = min(-(-e.count // LANES), BLOCK // LANES) + 8
    roundings = 1 + merges if e.magnitude > LARGE else 2
    return (depth + 4 * merges) * U * e.spread + roundings * U * e.magnitude + (1 + merges) * TINY


def std_bound(e: Exact, merges: int, ddof: int = 0) -> Fraction:
    depth = min(-(-e.count // LANES), BLOCK // LANES) + 12
    std = e.std(ddof)
    return (2 + merges) * depth * U * std + (1 + merges) ** 2 * (U * (e.spread + U * e.magnitude) + TINY)


def assert_moments(found: Result, e: Exact, merges: int | None = None, what: str = "") -> None:
    """Fail unless `found` has the count, min and max of e, and a mean, m2 and std within the bounds.

    merges: how many merges the worst-placed value went through; those of one bulk update by default.
    """
    if merges is None:
        merges = merges_of(e.count)
    where = f"{what}: " if what else ""
    assert found.count == e.count, f"{where}count {found.count}, want {e.count}"
    if not e.count:
        assert math.isnan(found.mean) and math.isnan(found.std()), f"{where}{found!r} is not empty"
        assert math.isnan(found.min) and math.isnan(found.max), f"{where}{found!r} is not empty"
        assert found.m2 == 0.0
        return
    assert (found.min, found.max) == (e.min, e.max), (
        f"{where}min, max {found.min:.17g}, {found.max:.17g}; want {e.min:.17g}, {e.max:.17g}"
    )
    assert_mean(found.mean, e, merges, where)
    assert_std(found, e, merges, where)


def assert_mean(mean: float, e: Exact, merges: int, where: str = "") -> None:
    assert math.isfinite(mean), f"{where}mean {mean}, want {float(e.mean):.17g}"
    off, allowed = abs(Fraction(mean) - e.mean), mean_bound(e, merges)
    assert off <= allowed, (
        f"{where}mean {mean:.17g}, want {float(e.mean):.17g}: off by {float(off):.3g}, "
        f"allowed {float(allowed):.3g} (n {e.count}, min {e.min:.17g}, max {e.max:.17g})"
    )


def assert_std(found: Result, e: Exact, merges: int, where: str = "") -> None:
    std = found.std()
    assert std >= 0 and found.m2 >= 0, f"{where}std {std}, m2 {found.m2}"
    if e.spread > GREATEST_SPREAD and math.isinf(std):
        return
    if e.spread < LEAST_SPREAD and e.spread:
        assert Fraction(std) <= e.spread, f"{where}std {std:.17g}, spread {float(e.spread):.17g}"
        return
    want = e.std()
    assert math.isfinite(std), f"{where}std {std}, want {float(want):.17g}"
    off, allowed = abs(Fraction(std) - want), std_bound(e, merges)
    assert off <= allowed, (
        f"{where}std {std:.17g}, want {float(want):.17g}: off by {float(off):.3g}, "
        f"allowed {float(allowed):.3g} (n {e.count}, min {e.min:.17g}, max {e.max:.17g})"
    )
    if math.isfinite(found.m2):
        from_m2 = square_root(Fraction(found.m2) / e.count)
        off = abs(from_m2 - Fraction(std))
        assert off <= 2 * U * from_m2 + TINY, f"{where}m2 {found.m2:.17g}, std {std:.17g}"


def assert_as_numpy(m: Result, x: Any) -> None:
    """Fail unless m is what NumPy makes of x in float64 and, where finite, what exact arithmetic does."""
    flat = np.asarray(x).astype(np.float64).ravel()
    assert m.count == flat.size
    if not flat.size:
        assert math.isnan(m.mean) and math.isnan(m.std()) and math.isnan(m.min) and math.isnan(m.max)
        return
    with np.errstate(invalid="ignore", over="ignore"):
        want = [float(f(flat)) for f in (np.mean, np.std, np.min, np.max)]
    found = [m.mean, m.std(), m.min, m.max]
    if not np.isfinite(flat).all():
        np.testing.assert_array_equal(found, want)
        return
    assert_moments(m, exact(flat.tolist()), merges=20)
    np.testing.assert_allclose(found, want, rtol=1e-13, atol=1e-14 * float(np.max(np.abs(flat))))
