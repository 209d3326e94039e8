"""The common case of a progress file, read fast: every line has the same number of cells."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

NEWLINE = 10
ZERO = 48
DIGITS = 18  # any number of so many digits is an int64


class RegularRows:
    """Rows of equally many cells, which are cut out of a text a column at a time.

    Args:
        text: ASCII, so that places in it are places in its bytes.
        data: these.
        begin: where the first row does.
        ends: the place behind each cell, shape (rows, cells).
    """

    def __init__(
        self, text: str, data: npt.NDArray[np.uint8], begin: int, ends: npt.NDArray[np.intp]
    ) -> None:
        self._text = text
        self._data = data
        self._begin = begin
        self._ends = ends

    def __len__(self) -> int:
        return len(self._ends)

    def column(self, at: int) -> list[str]:
        """The cells of a column."""
        text = self._text
        places = zip(self._starts(at).tolist(), self._ends[:, at].tolist(), strict=True)
        return [text[start:end] for start, end in places]

    def integers(self, at: int) -> npt.NDArray[np.int64] | None:
        """A column all of whose cells are digits alone, at most DIGITS of them; None for any other."""
        starts, ends = self._starts(at), self._ends[:, at]
        lengths = ends - starts
        longest = int(lengths.max())
        if longest > DIGITS or not lengths.all():
            return None
        numbers = np.zeros(len(ends), np.int64)
        for place in range(longest):
            inside = place < lengths
            digits = self._data[np.where(inside, starts + place, starts)] - np.uint8(ZERO)  # others wrap
            if digits.max() > 9:
                return None
            numbers = np.where(inside, numbers * 10 + digits, numbers)
        return numbers

    def _starts(self, at: int) -> npt.NDArray[np.intp]:
        if at:
            return self._ends[:, at - 1] + 1
        return np.append(self._begin, self._ends[:-1, -1] + 1)


def regular_rows(
    text: str, begin: int, delimiter: str, width: int, beginnings: frozenset[str]
) -> RegularRows | None:
    """The rows of a text where all its lines are alike, else None.

    Args:
        text: whole lines, each ended by a newline alone.
        begin: where the first line to look at begins.
        delimiter: between cells; nothing is quoted.
        width: how many cells each line must have.
        beginnings: the characters that each line must begin with one of.
    """
    if begin == len(text) or not text.isascii():
        return None
    data = np.frombuffer(text.encode("ascii"), np.uint8)
    is_end = data == ord(delimiter)
    is_end |= data == NEWLINE
    is_end[:begin] = False
    ends = np.flatnonzero(is_end)
    if len(ends) % width:
        return None
    table = ends.reshape(-1, width)
    newlines = data[table] == NEWLINE
    if not newlines[:, -1].all() or newlines[:, :-1].any():
        return None
    firsts = data[np.append(begin, table[:-1, -1] + 1)]
    allowed = np.frombuffer("".join(beginnings).encode("ascii"), np.uint8)
    return RegularRows(text, data, begin, table) if np.isin(firsts, allowed).all() else None
