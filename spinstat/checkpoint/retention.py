"""Which checkpoints of a run may go."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .record import Record


class Retention:
    """The rules by which numbered checkpoints are kept; without any, all are.

    Args:
        keep_last: how many of the newest.
        keep_every: those whose number is a multiple of this.
        keep_best: the one with the greatest value of this column of the row that belongs to it.

    Raises:
        ValueError: a rule that is none.
    """

    def __init__(self, keep_last: int | None, keep_every: int | None, keep_best: str | None) -> None:
        for name, number in (("keep_last", keep_last), ("keep_every", keep_every)):
            if number is not None and not (isinstance(number, int) and number > 0):
                raise ValueError(f"{name} is a number of checkpoints from 1 up, or None, not {number!r}")
        if keep_best is not None and not isinstance(keep_best, str):
            raise ValueError(f"keep_best is the name of a column, or None, not {keep_best!r}")
        self._keep_last = keep_last
        self._keep_every = keep_every
        self.keep_best = keep_best

    def superfluous(self, records: Sequence[Record], since: int = 0, resumable: int = 1) -> list[Record]:
        """The records that may go: replaced by newer ones, or numbered and kept by no rule.

        The newest stays in any case, and so do the newest ones that a run can resume from. What would stay
        if only the whole ones were there stays, too: one that something is missing of replaces none of them.

        Args:
            records: all, oldest first.
            since: the first generation of this run: the numbered checkpoints of earlier ones stay.
            resumable: of how many rows those that a run can resume from must stay, and as many of each.
        """
        whole = [record for record in records if not record.missing]
        kept = self._kept(records, since, resumable) | self._kept(whole, since, resumable)
        return [record for record in records if record.number not in kept]

    def _kept(self, records: Sequence[Record], since: int, resumable: int) -> set[int]:
        newest = {name: record.number for record in records for name in record.plain_names()}
        current = [record for record in records if record.number in newest.values()]
        kept = {record.number for record in records[-1:]}
        kept |= _resumable(records, resumable)
        kept |= {record.number for record in current if not record.itr}
        numbered = [record for record in current if record.itr]
        kept |= {record.number for record in numbered if record.number < since}
        return kept | self._kept_by_rules([record for record in numbered if record.number >= since])

    def _kept_by_rules(self, numbered: Sequence[Record]) -> set[int]:
        if self._keep_last is None and self._keep_every is None and self.keep_best is None:
            return {record.number for record in numbered}
        kept = set()
        if self._keep_last is not None:
            kept |= {record.number for record in numbered[-self._keep_last :]}
        if self._keep_every is not None:
            kept |= {record.number for record in numbered if int(record.itr) % self._keep_every == 0}
        if self.keep_best is not None:
            rated = [(self._value(record), record.number) for record in numbered]
            kept |= {number for value, number in sorted(rated)[-1:] if value > -math.inf}
        return kept

    def _value(self, record: Record) -> float:
        value = record.values.get(self.keep_best or "", -math.inf)
        return -math.inf if math.isnan(value) else value


def _resumable(records: Sequence[Record], most: int) -> set[int]:
    """The newest of each of the newest rows, `most` of each: rank 0 may save several times for one."""
    by_row: dict[int, list[int]] = {}
    for record in reversed(records):
        if record.resume is not None:
            by_row.setdefault(record.resume.rows, []).append(record.number)
    return {number for numbers in list(by_row.values())[:most] for number in numbers[:most]}
