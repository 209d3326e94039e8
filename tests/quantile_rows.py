"""What the tests of quantiles share: rows of loggers without files."""

from __future__ import annotations

from typing import Any

from memory_ranks import Meeting, MemoryComm

from spinstat import EpochLogger


class Quiet(EpochLogger):
    """A logger without files: it says that it is not the rank that has them."""

    def __init__(self, **options: Any) -> None:
        super().__init__(comm=MemoryComm(Meeting(1), 0, rank=1), quiet=True, **options)


def row_of(*values: Any, **options: Any) -> dict[str, Any]:
    """The row of X after these values were stored under it."""
    logger = Quiet()
    for value in values:
        logger.store(X=value)
    logger.log_tabular("X", average_only=True, **options)
    return dict(logger.log_current_row)
