"""The common case of a progress file, read fast: every line has the same number of cells."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

NEWLINE = 10


class RegularRows:
    """Rows of equally many cells, which are cut out of a text a column at a time.

    Args:
        text: ASCII, so that places in it are places in its bytes.
        begin: where the first row does.
        ends: the place behind each cell, shape (rows, cells).
    """

    def __init__(self, text: str, begin: int, ends: npt.NDArray[np.intp]) -> None:
        self._text = text
        self._begin = begin
        self._ends = ends

    def __len__(self) -> int:
        return len(self._ends)

    def column(self, at: int) -> list[str]:
        """The cells of a column."""
        text = self._text
        ends = self._ends[:, at].tolist()
        if at:
            starts = (self._ends[:, at - 1] + 1).tolist()
        else:
            starts = [self._begin, *(self._ends[:-1, -1] + 1).tolist()]
        return [text[start:end] for start, end in zip(starts, ends, strict=True)]


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
    return RegularRows(text, begin, table) if np.isin(firsts, allowed).all() else None
