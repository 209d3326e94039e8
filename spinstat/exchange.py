"""The protocol by which the loggers of all ranks reduce the same keys, or all find out that they do not.

Every call sends messages of one size, a header and 64 key rows, so ranks that are in different calls meet in
the same collective and see it in the result: each row carries a hash of what it is about (logger, row,
purpose, key), whose least and greatest over the ranks then differ. All ranks hold the same result, so all
raise the same error; it names the call of every rank, which a second exchange collects.
"""

from __future__ import annotations

from itertools import takewhile
from typing import NamedTuple

from ._core import ROUND_KEYS, Moments, Result, RowInfo, own_results
from .comm import Comm, Shared
from .watchdog import watchdog

__all__ = ["Channel", "KeyMismatchError", "Result", "RowInfo"]

# What an error shows at most: lines of different calls, and keys in a line.
SHOWN_CALLS = 8
SHOWN_KEYS = 20

_REMEDY = (
    "All ranks must log the same stored keys in the same order. What one rank alone has to say is logged "
    "with its value, log_tabular(key, value), which other ranks need not call."
)


class KeyMismatchError(RuntimeError):
    """The ranks were not in the same call. Raised on all of them, with the same text."""


class Channel:
    """One logger's way to the other ranks.

    Loggers are told apart by a number, which each gets at its first call that succeeds: a rank may make
    loggers that others do not have. Rows are counted from the last mismatch of any logger, where ranks may
    have dropped different rows.

    Args:
        comm: the ranks.
        number: a number below 0 for calls that belong to no logger.
    """

    def __init__(self, comm: Comm, number: int | None = None) -> None:
        self._comm = comm
        self._number = number
        self._mismatches = 0
        self._first_row = 0

    def reduce(self, purpose: str, row_number: int, items: list[tuple[str, Moments]]) -> list[Result]:
        """Merge the moments of each key over all ranks.

        One collective, also without keys, and another one for each 64 keys after the first; none where there
        is one rank. All ranks must call it with the same keys in the same order.

        Args:
            purpose: what it is for: "row" or "get_stats". Ranks that differ in it do not match.
            row_number: rows of this logger before this one.
            items: each key with the moments that this rank has of it, empty where it has none.

        Returns:
            A Result for each item, in their order, the same bits on every rank.

        Raises:
            KeyMismatchError: the ranks are not in the same call; on all ranks alike.
        """
        if self._comm.size == 1:
            return own_results(items)
        watchdog.begin(lambda: self._describe_wait(_Call(self._number, row_number, purpose, _keys(items))))
        try:
            shared = self._comm.shared()
            with shared.lock:
                return self._reduce(shared, purpose, row_number, items)
        finally:
            watchdog.end()

    def _reduce(
        self, shared: Shared, purpose: str, row_number: int, items: list[tuple[str, Moments]]
    ) -> list[Result]:
        if self._mismatches != shared.mismatches:
            self._mismatches, self._first_row = shared.mismatches, row_number
        number = shared.numbered if self._number is None else self._number
        row = row_number - self._first_row
        message = shared.message
        results: list[Result] = []
        for start in range(0, len(items) or 1, ROUND_KEYS):
            keys = min(len(items) - start, ROUND_KEYS)
            message.pack(items, start, number, row, purpose, self._comm.rank)
            self._comm.reduce(message)
            if not message.agrees(keys):
                shared.mismatches += 1
                mine = _encode(_Call(number, row_number, purpose, _keys(items)))
                raise KeyMismatchError(_explain([_decode(each) for each in self._comm.allgather(mine)]))
            results += message.results(keys)
        if self._number is None:
            self._number = number
            shared.numbered += 1
        return results

    def _describe_wait(self, call: _Call) -> str:
        comm = self._comm
        return f"rank {comm.rank} of {comm.size} is in {_describe(call)}. {_REMEDY}"


class _Call(NamedTuple):
    """What one rank asks for; logger is None before it has a number."""

    logger: int | None
    row: int
    purpose: str
    keys: tuple[str, ...]


def _keys(items: list[tuple[str, Moments]]) -> tuple[str, ...]:
    return tuple(key for key, _ in items)


def _encode(call: _Call) -> bytes:
    import json

    return json.dumps(call).encode()


def _decode(data: bytes) -> _Call:
    import json

    logger, row, purpose, keys = json.loads(data)
    return _Call(logger, row, purpose, tuple(keys))


def _describe(call: _Call, elsewhere: list[_Call] | None = None) -> str:
    """A call as a user would name it; of many keys those that are not in all calls `elsewhere`."""
    if call.purpose == "row" and len(call.keys) == 1:
        text = f"log_tabular({call.keys[0]!r})"
    elif call.purpose == "row" and call.keys:
        text = f"a batch of {len(call.keys)} keys ({_some(call.keys, elsewhere or [])})"
    elif call.purpose == "row":
        text = "a batch without keys"
    else:
        text = f"{call.purpose}({', '.join(repr(key) for key in call.keys if key)})"
    if call.logger is not None and call.logger < 0:
        return text
    whose = "a new logger" if call.logger is None else f"logger {call.logger}"
    return f"{text} in row {call.row} of {whose}"


def _some(keys: tuple[str, ...], elsewhere: list[_Call]) -> str:
    """Up to SHOWN_KEYS keys: all if they are that few, else such as tell one call from the others."""
    shown, more = keys, f"and {len(keys) - SHOWN_KEYS} more"
    if len(keys) > SHOWN_KEYS and elsewhere:
        common = set(keys).intersection(*(call.keys for call in elsewhere))
        own = tuple(key for key in keys if key not in common)
        if own:
            shown, more = own, f"and the {len(common)} of all ranks"
        else:
            places = zip(*(call.keys for call in elsewhere), strict=False)
            alike = sum(1 for _ in takewhile(lambda place: len(set(place)) == 1, places))
            shown, more = keys[alike:], f"after {alike} that are alike"
            if not shown:
                return f"the first {alike} of those of other ranks"
    text = ", ".join(map(repr, shown[:SHOWN_KEYS]))
    return text if len(keys) <= SHOWN_KEYS else f"{text}, {more}"


def _explain(calls: list[_Call]) -> str:
    """The text of the error, from the calls of all ranks."""
    ranks_of: dict[_Call, list[int]] = {}
    for rank, call in enumerate(calls):
        ranks_of.setdefault(call, []).append(rank)
    different = list(ranks_of)
    lines = [
        f"  {_name_ranks(ranks_of[call])}: {_describe(call, different)}" for call in different[:SHOWN_CALLS]
    ]
    if len(different) > SHOWN_CALLS:
        lines.append(f"  and {len(different) - SHOWN_CALLS} more different calls")
    return "\n".join(["the ranks are not in the same call, so all of them drop the row:", *lines, _REMEDY])


def _name_ranks(ranks: list[int]) -> str:
    """Numbers in ascending order as "rank 3" or "ranks 0-2, 5"."""
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and rank == runs[-1][-1] + 1:
            runs[-1][1:] = [rank]
        else:
            runs.append([rank])
    text = ", ".join("-".join(map(str, run)) for run in runs)
    return f"rank {text}" if len(ranks) == 1 else f"ranks {text}"
