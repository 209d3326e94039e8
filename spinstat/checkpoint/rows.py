"""Which row of the run a checkpoint belongs to, and so whether the run can go on from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from .record import Record, Resume


class RunState(Protocol):
    """What a logger notes of the rows it has dumped."""

    rating: object  # the last row's value of the column that checkpoints are compared by
    dumped: int  # rows, since the run began


class RowHost(Protocol):
    """What a logger tells of its rows."""

    @property
    def _saved(self) -> RunState: ...

    def _is_between_rows(self) -> bool: ...

    def _position(self) -> tuple[int | None, Sequence[str]] | None: ...


@dataclass
class _Belated:
    """A checkpoint whose row is not on the disk yet."""

    record: Record
    rows: int  # how many have been dumped when its own has
    turn: int | None  # as in Resume; None for a model saved alone: no run goes on from that


class RowLinks:
    """Ties checkpoints to rows.

    A script may save before it logs, as Spinning Up's do, or after. Where values are stored or logged for a
    row that has not been dumped, the checkpoint belongs to that row: a run that went on from it, and the row
    not in the file, would never write it. So its record is completed after the dump.

    Args:
        host: the logger.
        size: the number of ranks.
        column: the one that checkpoints are compared by, if any.
        point: the checkpoint that the run has gone on from, if it has.
    """

    def __init__(self, host: RowHost, size: int, column: str | None, point: Record | None) -> None:
        self._host = host
        self._size = size
        self._column = column
        self._belated: list[_Belated] = []
        self._turns: Counter[tuple[int, str]] = Counter()  # checkpoints begun by row and number
        if point is not None and point.resume is not None:
            self._turns[point.resume.rows, point.itr] = point.resume.turn + 1

    def take_turn(self, itr: str) -> int:
        """Count a checkpoint that is begun, whether or not it can be written; returns its turn."""
        key = self._host._saved.dumped + (not self._host._is_between_rows()), itr
        self._turns[key] += 1
        return self._turns[key] - 1

    def join(self, record: Record, turn: int | None) -> None:
        """Complete the record of a checkpoint being taken, or do so when its row is dumped."""
        between = self._host._is_between_rows()
        belated = _Belated(record, self._host._saved.dumped + (not between), turn)
        if not (between and self._complete(belated)):
            self._belated.append(belated)

    def after_row(self) -> list[Record]:
        """Complete the records of the checkpoints that belong to the row just dumped; returns them."""
        dumped = self._host._saved.dumped
        self._turns = Counter({key: count for key, count in self._turns.items() if key[0] >= dumped})
        belated, self._belated = self._belated, []
        self._belated = [each for each in belated if not self._complete(each)]
        return [each.record for each in belated]

    def _complete(self, belated: _Belated) -> bool:
        """Fill in what depends on the row of a checkpoint; False where that is not on the disk yet."""
        record, host = belated.record, self._host
        if self._column is not None and belated.rows == host._saved.dumped:
            record.rate(self._column, host._saved.rating)
        if belated.turn is None:
            return True
        position = host._position()
        if position is None:
            return False
        lines, columns = position
        if lines is not None:
            lines -= host._saved.dumped - belated.rows
        record.resume = Resume(belated.rows, lines, list(columns), belated.turn, self._size)
        return True
