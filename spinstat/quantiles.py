"""Quantiles of kept values over all ranks: what may be asked for, what a rank sends for it, what comes of it.

The values of a key on all ranks together are n numbers. Up to a budget of numbers they are all sent, and the
quantiles are those of NumPy's default definition, number 7 of Hyndman and Fan (1996): the value at position
q * (n - 1) of the sorted values, linear between two of them. Of more, each rank cuts its own sorted values
into blocks of w, the last one shorter, and sends the middle value of each, which stands for its block; w is
n / budget rounded up, the same on all ranks.

The bound of that: how many values are below t, or up to t, is off for the one block of a rank that t falls
into, by at most w // 2. So each of the sorted values that result lies between two true ones that are
e = ranks * (w // 2) places lower and higher; since w < n / budget + 1, e / n < ranks / budget. The least and
the greatest value are known from the moments and exact.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._core import Moments
from .kept import elements, missing

Array = NDArray[Any]

BUDGET = 65_536  # numbers that all ranks together send of one key: 512 KiB
LEAST_SHARE = 64  # of them for each rank, where there are so many ranks that the budget would be less

#: Before the numbers that a rank sends: how many, and for how many values. Before a text: -1, and its length.
_HEAD = struct.Struct("=qq")


def check_quantiles(quantiles: Iterable[float] | None) -> tuple[float, ...]:
    """The quantiles as floats; none for None.

    Raises:
        ValueError: one is no number from 0 to 1, or is there twice.
    """
    try:
        several = [] if quantiles is None else list(quantiles)
    except TypeError as error:
        raise ValueError(f"quantiles= takes numbers, such as (0.05, 0.5), not {quantiles!r}") from error
    checked: list[float] = []
    for given in several:
        if isinstance(given, bool) or not isinstance(given, Real) or not 0 <= given <= 1:
            raise ValueError(f"a quantile is a number from 0 to 1, such as 0.95, not {given!r}")
        # The float32 nearest to 0.05 means 0.05, as it does in a cell of the row.
        number = float(str(given)) if isinstance(given, np.floating) else float(given)
        if number in checked:
            raise ValueError(f"quantile {given!r} is there twice, and each gives one column")
        checked.append(abs(number))  # -0.0 is 0.0
    return tuple(checked)


def quantile_column(key: str, quantile: float) -> str:
    """The column of a quantile: "Q", the percentage in its shortest exact form, and the key. Q2.5EpRet."""
    from decimal import Decimal

    percentage = (Decimal(repr(quantile)) * 100).normalize()
    return f"Q{percentage:f}{key}"


class Sample(NamedTuple):
    """Numbers of one rank in ascending order, and how many values they stand for."""

    values: Array
    stands_for: int


def _sample(values: Array, step: int) -> Sample:
    """The middle of each `step` values in ascending order; sorts the values."""
    values.sort()
    count = len(values)
    if step > 1:
        starts = np.arange(0, count, step)
        values = values[starts + (np.minimum(step, count - starts) - 1) // 2]
    return Sample(values, count)


class Wanted:
    """The quantiles asked of one key: holds the values of this rank, and then what was found over all ranks.

    Args:
        quantiles: checked ones.
        moments: those of the values, taken as they were stored.
        values: what is kept of what was stored.

    Attributes:
        found: one number for each quantile; all NaN before any are found.
        trouble: why they stayed NaN where values are missing; "" where nothing went wrong.
    """

    __slots__ = ("_moments", "_values", "found", "quantiles", "trouble")

    def __init__(self, quantiles: Sequence[float], moments: Moments, values: Iterable[Any]) -> None:
        self.quantiles: Sequence[float] = quantiles
        self.found: list[float] = [math.nan] * len(quantiles)
        self.trouble: str = ""
        self._moments = moments
        self._values = values

    def sample(self, step: int) -> Sample | str:
        """The middle of each `step` sorted values of this rank; a text that says why there is none.

        Never raises an Exception: other ranks wait for what this one sends.
        """
        try:
            values = elements(self._values)
            lack = missing(self._moments, values)
            return lack if lack else _sample(values, step)
        except Exception as error:
            return f"what was stored cannot be read again: {type(error).__name__}: {error}"

    def find(self, moments: Moments, step: int, samples: Sequence[Sample | str]) -> None:
        """Find the quantiles from the moments and the samples of all ranks, in rank order."""
        whole = [sample for sample in samples if isinstance(sample, Sample)]
        if len(whole) == len(samples):
            ordered = _Ordered(moments, step, whole)
            self.found = [ordered.quantile(quantile) for quantile in self.quantiles]
            return
        prefix = "rank {}: " if len(samples) > 1 else ""
        self.trouble = "; ".join(
            prefix.format(rank) + text for rank, text in enumerate(samples) if isinstance(text, str)
        )


def gather(
    asked: Iterable[tuple[Wanted, Moments]], ranks: int, allgather: Callable[[bytes], list[bytes]]
) -> None:
    """Find the quantiles asked for. All ranks must call it alike, with the same Moments.

    Several keys share one gather as long as their values fit into one budget; a key alone may need a number
    more for each rank.

    Args:
        asked: what is wanted of each key, and the Moments of the values of all ranks.
        ranks: how many there are. One alone gathers nothing, and uses all its values.
        allgather: gives the bytes of every rank, in rank order.
    """
    possible = [(wanted, moments) for wanted, moments in asked if moments.count and not moments.nan_count]
    if ranks == 1:
        for wanted, moments in possible:
            wanted.find(moments, 1, [wanted.sample(1)])
        return
    budget = max(BUDGET, LEAST_SHARE * ranks)
    for group in _groups(possible, budget):
        steps = [-(-moments.count // budget) for _, moments in group]
        mine = [wanted.sample(step) for (wanted, _), step in zip(group, steps, strict=True)]
        everyones = [_unpack(data) for data in allgather(b"".join(map(_pack, mine)))]
        for (wanted, moments), step, samples in zip(group, steps, zip(*everyones, strict=True), strict=True):
            wanted.find(moments, step, samples)


def _groups(asked: Iterable[tuple[Wanted, Moments]], budget: int) -> Iterator[list[tuple[Wanted, Moments]]]:
    """What goes into one gather each; decided by the counts, which all ranks know."""
    group: list[tuple[Wanted, Moments]] = []
    together = 0
    for wanted, moments in asked:
        if group and together + moments.count > budget:
            yield group
            group, together = [], 0
        group.append((wanted, moments))
        together += moments.count
    if group:
        yield group


def _pack(sample: Sample | str) -> bytes:
    if isinstance(sample, str):
        text = sample.encode("utf-8", "backslashreplace")
        return _HEAD.pack(-1, len(text)) + text
    return _HEAD.pack(len(sample.values), sample.stands_for) + sample.values.tobytes()


def _unpack(data: bytes) -> Iterator[Sample | str]:
    """The samples that a rank has sent, one a key."""
    at = 0
    while at < len(data):
        sent, count = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        if sent < 0:
            yield data[at : at + count].decode()
            at += count
        else:
            yield Sample(np.frombuffer(data, np.float64, sent, at), count)
            at += 8 * sent


class _Ordered:
    """The values of all ranks in ascending order, each sample in place of those that it stands for."""

    def __init__(self, moments: Moments, step: int, samples: Sequence[Sample]) -> None:
        self._moments = moments
        values = np.concatenate([sample.values for sample in samples])
        self._ends: Array | None = None
        if step == 1:
            values.sort(kind="stable")  # which merges what is sorted by ranks
        else:
            weights = np.concatenate([_weights(sample, step) for sample in samples])
            order = np.argsort(values)  # among equal values any order gives the same
            values = values[order]
            self._ends = np.cumsum(weights[order])
        self._values = values

    def _at(self, place: int) -> float:
        """The value at a place from 0 up."""
        if place == 0:
            return self._moments.min
        if place == self._moments.count - 1:
            return self._moments.max
        if self._ends is not None:
            place = int(np.searchsorted(self._ends, place, side="right"))
        return float(self._values[place])

    def quantile(self, quantile: float) -> float:
        last = self._moments.count - 1
        position = last * quantile
        place = min(int(position), last)
        return between(self._at(place), self._at(min(place + 1, last)), position - place)


def _weights(sample: Sample, step: int) -> Array:
    """For how many values each number of a sample stands."""
    weights = np.full(len(sample.values), step)
    weights[-1:] = sample.stands_for - step * (len(sample.values) - 1)
    return weights


def between(low: float, high: float, part: float) -> float:
    """The value that part of the way from low to high; for finite ones in NumPy's formula, to the bit.

    Between a finite and an infinite value all is infinite, between both infinities NaN. (NumPy also has NaN
    where the position is that of a value itself, beside an infinity.)
    """
    if part == 0.0 or low == high:
        return low
    distance = high - low
    if math.isinf(distance):
        if math.isinf(low) or math.isinf(high):
            return low + high
        return low * (1.0 - part) + high * part  # the distance alone is beyond float64
    return high - distance * (1.0 - part) if part >= 0.5 else low + distance * part
