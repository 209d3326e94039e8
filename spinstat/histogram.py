"""The histogram of what was stored under a key, in a fixed number of bins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ._core import Moments
from .kept import elements

BINS = 64  # of equal width between the least and the greatest value
PIECE = 1 << 18  # values that are looked at in one go: 2 MiB
WHOLE = 1 << 21  # scalars that are copied as one array, which is ten times as fast as pieces: 16 MiB


class Histogram(NamedTuple):
    """How finite values are spread.

    Attributes:
        size: how many there are; NaN and infinities are left out of all fields.
        min, max: the least and the greatest.
        sum, sum_squares: of the values, and of their squares.
        edges: of the bins, ascending; one more than there are bins. The last bin has both its edges.
        counts: values in each bin.
    """

    size: int
    min: float
    max: float
    sum: float
    sum_squares: float
    edges: Sequence[float]
    counts: Sequence[int]


def histogram_of(values: Sequence[Any], count: int) -> Histogram | None:
    """The histogram of stored values: numbers, and arrays that count by their elements.

    Needs no more than some 50 MiB besides the values, however many there are, and a few times an array that
    was stored as such.

    Args:
        values: as `epoch_dict` has them.
        count: the number of their elements.

    Returns:
        None where no value is finite, or their range is beyond what a float can hold.
    """
    moments = Moments()
    for piece in _pieces(values, count):
        moments.update(piece)
    low, high = moments.min, moments.max
    if moments.count == 0 or not np.isfinite(high - low):
        return None
    edges = np.linspace(low, high, BINS + 1)
    if low == high or not np.all(edges[1:] > edges[:-1]):  # too close to each other for bins between them
        edges, counts = np.array([low, high]), np.array([moments.count])
    else:
        counts = np.zeros(BINS, np.int64)
        for piece in _pieces(values, count):
            counts += np.histogram(piece, BINS, (low, high))[0]
    total = moments.mean * moments.count
    squares = moments.m2 + moments.mean * total
    return Histogram(moments.count, low, high, total, squares, edges.tolist(), counts.tolist())


def _pieces(values: Sequence[Any], count: int) -> Iterator[Any]:
    """The finite values, as one-dimensional arrays of float64."""
    for piece in _scalars(values) if len(values) == count else _joined(values):
        finite = np.isfinite(piece)
        yield piece if finite.all() else piece[finite]


def _scalars(values: Sequence[Any]) -> Iterator[Any]:
    """Of values that are one number each, mostly: as many values as elements."""
    step = len(values) if len(values) <= WHOLE else PIECE
    for start in range(0, len(values), step or 1):
        piece = values if step == len(values) else values[start : start + step]
        try:
            array = np.asarray(piece, np.float64).reshape(-1)
        except ValueError:  # an empty array is among them, and one of several elements
            array = None
        if array is not None and array.size == len(piece):
            yield array
        else:  # masked arrays have more elements than count
            yield from _joined(piece)


def _joined(values: Sequence[Any]) -> Iterator[Any]:
    """Of values among which there are arrays; small ones go together."""
    waiting: list[Any] = []
    size = 0
    for value in values:
        waiting.append(elements((value,)))
        size += waiting[-1].size
        if size >= PIECE:
            yield np.concatenate(waiting)
            waiting, size = [], 0
    if waiting:
        yield np.concatenate(waiting)
