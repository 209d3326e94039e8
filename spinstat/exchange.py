"""The protocol by which the loggers of all ranks reduce the same keys, or all find out that they do not.

Every call sends messages of one size, a header and 64 key rows, so ranks that are in different calls meet in
the same collective and see it in the result: each row carries a hash of what it is about (logger, row,
purpose, keys with quantiles, key), whose least and greatest over the ranks then differ. All ranks hold the
same result, so all raise the same error; it names the call of every rank, which a second exchange collects.
Values for quantiles are gathered after that, when all ranks know that all of them will.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

from ._core import ROUND_KEYS, Moments, Result, RowInfo, own_results
from .comm import Comm, Shared
from .quantiles import Wanted, gather
from .watchdog import watchdog

__all__ = ["Channel", "KeyMismatchError", "Result", "RowInfo"]

# What an error shows at most: lines of different calls, and keys in a line.
SHOWN_CALLS = 8
SHOWN_KEYS = 20

_REMEDY = (
    "All ranks must log the same stored keys in the same order. What one rank alone has to say is logged "
    "with its value, log_tabular(key, value), which other ranks need not call."
)
_QUANTILES = " with quantiles"
_REMEDY_FOR_QUANTILES = "Ask for quantiles of a key on all ranks, or on none; which ones may differ."


class KeyMismatchError(RuntimeError):
    """The ranks were not in the same call. Raised on all of them, with the same text.

    Examples:
        >>> from spinstat.exchange import KeyMismatchError
        >>> issubclass(KeyMismatchError, RuntimeError)  # "except KeyMismatchError:" goes on with the next row
        True
    """


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

    def reduce(
        self,
        purpose: str,
        row_number: int,
        items: list[tuple[str, Moments]],
        wanted: Sequence[Wanted | None] = (),
    ) -> list[Result]:
        """Merge the moments of each key over all ranks, and find the quantiles wanted.

        One collective, also without keys, and another one for each 64 keys after the first; then those of
        `quantiles.gather`, where any are wanted. None where there is one rank. All ranks must call it with
        the same keys in the same order, and quantiles wanted of the same ones.

        Args:
            purpose: what it is for: "row" or "get_stats". Ranks that differ in it do not match.
            row_number: rows of this logger before this one.
            items: each key with the moments that this rank has of it, empty where it has none.
            wanted: for each item its quantiles, which are filled in, or None; empty where there are none.

        Returns:
            A Result for each item, in their order, the same bits on every rank.

        Raises:
            KeyMismatchError: the ranks are not in the same call; on all ranks alike.
        """
        if self._comm.size == 1:
            results = own_results(items)
            if wanted:
                self._gather(wanted, results)
            return results
        watchdog.begin(
            lambda: self._describe_wait(_Call(self._number, row_number, purpose, _keys(items, wanted)))
        )
        try:
            shared = self._comm.shared()
            with shared.lock:
                results = self._reduce(shared, purpose, row_number, items, wanted)
                if wanted:
                    self._gather(wanted, results)
                return results
        finally:
            watchdog.end()

    def _gather(self, wanted: Sequence[Wanted | None], results: list[Result]) -> None:
        asked = zip(wanted, results, strict=True)
        pairs = [(each, result.moments) for each, result in asked if each is not None]
        gather(pairs, self._comm.size, self._comm.allgather)

    def _reduce(
        self,
        shared: Shared,
        purpose: str,
        row_number: int,
        items: list[tuple[str, Moments]],
        wanted: Sequence[Wanted | None],
    ) -> list[Result]:
        if self._mismatches != shared.mismatches:
            self._mismatches, self._first_row = shared.mismatches, row_number
        number = shared.numbered if self._number is None else self._number
        row = row_number - self._first_row
        places = [str(place) for place, each in enumerate(wanted) if each is not None]
        what = f"{purpose}, quantiles of {','.join(places)}" if places else purpose
        message = shared.message
        results: list[Result] = []
        for start in range(0, len(items) or 1, ROUND_KEYS):
            keys = min(len(items) - start, ROUND_KEYS)
            message.pack(items, start, number, row, what, self._comm.rank)
            self._comm.reduce(message)
            if not message.agrees(keys):
                shared.mismatches += 1
                mine = _encode(_Call(number, row_number, purpose, _keys(items, wanted)))
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
    """What one rank asks for; logger is None before it has a number, keys are as `_keys` shows them."""

    logger: int | None
    row: int
    purpose: str
    keys: tuple[str, ...]


def _keys(items: list[tuple[str, Moments]], wanted: Sequence[Wanted | None]) -> tuple[str, ...]:
    """The keys of a call as an error shows them."""
    asked = wanted or [None] * len(items)
    return tuple(
        repr(key) + ("" if each is None else _QUANTILES) for (key, _), each in zip(items, asked, strict=True)
    )


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
        text = f"log_tabular({call.keys[0]})"
    elif call.purpose == "row" and call.keys:
        text = f"a batch of {len(call.keys)} keys ({_some(call.keys, elsewhere or [])})"
    elif call.purpose == "row":
        text = "a batch without keys"
    else:
        text = f"{call.purpose}({', '.join(key for key in call.keys if key != repr(''))})"
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
    text = ", ".join(shown[:SHOWN_KEYS])
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
    remedies = [_REMEDY]
    if any(key.endswith(_QUANTILES) for call in calls for key in call.keys):
        remedies.append(_REMEDY_FOR_QUANTILES)
    first = "the ranks are not in the same call, so all of them drop the row:"
    return "\n".join([first, *lines, *remedies])


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
