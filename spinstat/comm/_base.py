"""What every communicator offers, and the one of a process alone."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import Any

from .._core import Message

_making_shared = threading.Lock()


class Shared:
    """What all loggers of one communicator share, made at its first collective.

    Attributes:
        lock: held during a collective, which threads must not interleave.
        numbered: loggers that have their number, the same on every rank.
        mismatches: calls in which the ranks did not agree, the same on every rank.
        message: the buffer of the collective in progress.
    """

    __slots__ = ("lock", "message", "mismatches", "numbered")

    def __init__(self) -> None:
        self.lock: threading.Lock = threading.Lock()
        self.numbered: int = 0
        self.mismatches: int = 0
        self.message: Message = Message()


class Comm(ABC):
    """A group of ranks. Its methods are collectives: all ranks call them, in the same order.

    Attributes:
        rank: the number of this rank, from 0.
        size: how many ranks there are.
    """

    rank: int
    size: int
    _shared: Shared | None = None

    def shared(self) -> Shared:
        """What the loggers of these ranks share; the first call may be a collective."""
        if self._shared is None:
            with _making_shared:
                if self._shared is None:
                    self._shared = self._make_shared()
        return self._shared

    def _make_shared(self) -> Shared:
        return Shared()

    @abstractmethod
    def reduce(self, rows: Message | bytearray) -> None:
        """Replace whole rows by the merge of those of all ranks, in rank order: the same bits everywhere."""

    @abstractmethod
    def allgather(self, data: bytes) -> list[bytes]:
        """The data of every rank, in rank order."""

    @abstractmethod
    def allreduce(self, array: Any, op: object = "sum") -> None:
        """Replace a contiguous array by its "sum", "max" or "min" over the ranks, or by an MPI operation."""

    @abstractmethod
    def broadcast(self, array: Any, root: int = 0) -> None:
        """Replace a contiguous array by that of the rank `root`."""

    @abstractmethod
    def barrier(self) -> None:
        """Wait until all ranks have come here."""


class SerialComm(Comm):
    """One process alone: rank 0 of 1."""

    rank = 0
    size = 1

    def reduce(self, rows: Message | bytearray) -> None:
        """Leave the rows as they are."""

    def allgather(self, data: bytes) -> list[bytes]:
        """The data of the one rank."""
        return [data]

    def allreduce(self, array: Any, op: object = "sum") -> None:
        """Leave the array as it is."""

    def broadcast(self, array: Any, root: int = 0) -> None:
        """Leave the array as it is. Raises ValueError for a root other than 0."""
        if root != 0:
            raise ValueError(f"root is {root!r}, but there is one rank, number 0")

    def barrier(self) -> None:
        """Go on at once."""
