"""Ranks as threads of one process, which meet in memory: for tests of what happens between them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from spinstat._core import merge_rows
from spinstat.comm import Comm

T = TypeVar("T")


class NobodyComes(Exception):
    """A rank waits in a collective, and another one has ended: under MPI it would wait for ever."""


class Meeting:
    """Where the threads of a job exchange data, one collective after the other.

    Attributes:
        collectives: how many have been completed.
    """

    def __init__(self, size: int, patience: float = 30.0) -> None:
        self.size = size
        self.collectives = 0
        self._patience = patience
        self._changed = threading.Condition()
        self._brought: dict[int, bytes] = {}
        self._gathered: list[bytes] = []
        self._left: set[int] = set()

    def gather(self, rank: int, data: bytes) -> list[bytes]:
        """The data of all ranks, once each has brought its own."""
        with self._changed:
            turn = self.collectives
            self._brought[rank] = data
            if len(self._brought) == self.size:
                self._gathered = [self._brought[each] for each in range(self.size)]
                self._brought = {}
                self.collectives += 1
                self._changed.notify_all()
            while turn == self.collectives:
                if self._left:
                    raise NobodyComes(f"rank {rank} waits, and {sorted(self._left)} have ended")
                if not self._changed.wait(self._patience):
                    raise TimeoutError(f"rank {rank} has waited {self._patience} s")
            return self._gathered

    def leave(self, rank: int) -> None:
        """This rank makes no further collective."""
        with self._changed:
            self._left.add(rank)
            self._changed.notify_all()


class MemoryComm(Comm):
    """One rank of a Meeting.

    Attributes:
        reductions: how often `reduce` was called.
    """

    def __init__(self, meeting: Meeting, place: int, rank: int | None = None) -> None:
        self.rank = place if rank is None else rank
        self.size = meeting.size
        self.reductions = 0
        self._meeting = meeting
        self._place = place

    def reduce(self, rows: Any) -> None:
        self.reductions += 1
        parts = [bytearray(part) for part in self._meeting.gather(self._place, bytes(rows))]
        for lower, higher in pairwise(parts):
            merge_rows(lower, higher)
        memoryview(rows)[:] = parts[-1]

    def allgather(self, data: bytes) -> list[bytes]:
        return self._meeting.gather(self._place, data)

    def allreduce(self, array: Any, op: object = "sum") -> None:
        parts = self._meeting.gather(self._place, array.tobytes())
        arrays = [np.frombuffer(part, array.dtype).reshape(array.shape) for part in parts]
        array[...] = {"sum": np.sum, "max": np.max, "min": np.min}[str(op)](arrays, axis=0)

    def broadcast(self, array: Any, root: int = 0) -> None:
        part = self._meeting.gather(self._place, array.tobytes())[root]
        array[...] = np.frombuffer(part, array.dtype).reshape(array.shape)

    def barrier(self) -> None:
        self._meeting.gather(self._place, b"")


def run_ranks(
    size: int, program: Callable[[MemoryComm], T], numbers: Sequence[int] | None = None
) -> list[Any]:
    """Run a program as each rank of a job; what each returned, or the exception that ended it, in rank order.

    Args:
        size: how many ranks.
        program: called with the communicator of each, in a thread of its own.
        numbers: what the ranks are to call themselves, where not 0, 1, ...
    """
    meeting = Meeting(size)
    outcomes: list[Any] = [None] * size

    def run(place: int) -> None:
        comm = MemoryComm(meeting, place, None if numbers is None else numbers[place])
        try:
            outcomes[place] = program(comm)
        except Exception as error:
            outcomes[place] = error
        finally:
            meeting.leave(place)

    threads = [threading.Thread(target=run, args=(place,), daemon=True) for place in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "a rank hangs"
    return outcomes
