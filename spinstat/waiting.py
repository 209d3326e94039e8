"""What waits for its statistics: keys that are being logged, and how far the ranks have come with the row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple

from ._core import EpochStore, Moments
from .exchange import Channel
from .quantiles import Wanted, quantile_column
from .row import check_key

Reader = Callable[[Moments], float]
_COUNT: Reader = attrgetter("count")
_MEAN: Reader = attrgetter("mean")
_MAX: Reader = attrgetter("max")
_MIN: Reader = attrgetter("min")


class Closed(NamedTuple):
    """A key that is being logged: its values so far, and the columns that wait for its statistics.

    Attributes:
        columns: those of the readers, in their order, and those of the quantiles.
        moments: of the values of this rank.
        wanted: the quantiles; None where none are asked for.
    """

    key: str
    columns: Sequence[str]
    readers: Sequence[Reader]
    moments: Moments
    wanted: Wanted | None

    def cells(self, moments: Moments) -> list[float]:
        """What the columns hold, from the moments of all ranks and the quantiles found by then."""
        values = [read(moments) for read in self.readers]
        return values if self.wanted is None else values + self.wanted.found


class Batch:
    """The keys of the row that wait for their statistics.

    Attributes:
        always: whether rows are batches without a block around them.
        in_block: whether a block has begun and not ended.
        waiting: the keys, in the order in which they were closed; None outside a batch.
    """

    __slots__ = ("always", "in_block", "waiting")

    def __init__(self, always: bool) -> None:
        self.always: bool = always
        self.in_block: bool = False
        self.waiting: list[Closed] | None = None
        self.end()

    def end(self) -> None:
        """Begin the next one, where there is always one."""
        self.waiting = [] if self.always else None


class Agreement:
    """How far the ranks have come with the row being built.

    Attributes:
        channel: the way to the other ranks.
        row: how many rows before this one communicated; the others may be rank 0's alone.
        communicated: whether this row has.
        info_is_old: whether last_row_info is that of the row before.
        left_over: values that were stored and not logged when the last row was dumped, by key.
    """

    __slots__ = ("channel", "communicated", "info_is_old", "left_over", "row")

    def __init__(self, channel: Channel) -> None:
        self.channel: Channel = channel
        self.row: int = 0
        self.communicated: bool = False
        self.info_is_old: bool = False
        self.left_over: dict[str, int] = {}

    def next_row(self) -> None:
        """Count the row that ends."""
        self.row += self.communicated
        self.communicated = False
        self.info_is_old = True


@lru_cache(maxsize=4096)
def statistics_columns(
    key: str, with_min_and_max: bool, average_only: bool, with_count: bool, quantiles: tuple[float, ...]
) -> tuple[Sequence[str], Sequence[Reader]]:
    """The columns of a stored key, in their order, and what reads each of them from the moments; the last
    ones are the quantiles, which are not read from there."""
    check_key(key)
    columns = {key: _MEAN} if average_only else {"Average" + key: _MEAN, "Std" + key: Moments.std}
    if with_min_and_max:
        columns |= {"Max" + key: _MAX, "Min" + key: _MIN}
    if with_count:
        columns["Count" + key] = _COUNT
    return (*columns, *(quantile_column(key, each) for each in quantiles)), tuple(columns.values())


def take_wanted(store: EpochStore, key: str, quantiles: tuple[float, ...]) -> tuple[Moments, Wanted]:
    """What is stored under a key, which is empty afterwards, for its moments and its quantiles.

    Raises:
        ValueError: the store keeps no values; nothing has changed.
    """
    if not store.keep_values:
        raise ValueError(
            f"quantiles of {key!r} need its values, which this logger does not keep: make it with "
            "EpochLogger(keep_values=True)"
        )
    taken, values = store._take_values(key)
    return taken, Wanted(quantiles, taken, values)
