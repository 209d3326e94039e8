"""Ranks as threads of this process, for what loggers do together without a launcher."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypeVar

from spinstat._core import Message, merge_rows
from spinstat.comm import Comm

T = TypeVar("T")
PATIENCE = 30  # seconds after which a rank that waits for the others fails


class ThreadComm(Comm):
    """One of several ranks that exchange bytes through a list; counts its collectives."""

    def __init__(self, rank: int, slots: list[bytes], barrier: threading.Barrier) -> None:
        self.rank = rank
        self.size = len(slots)
        self.collectives = 0
        self._slots = slots
        self._barrier = barrier

    def allgather(self, data: bytes) -> list[bytes]:
        self.collectives += 1
        self._slots[self.rank] = data
        self._barrier.wait()
        everyones = list(self._slots)
        self._barrier.wait()
        return everyones

    def reduce(self, rows: Message | bytearray) -> None:
        parts = [bytearray(part) for part in self.allgather(bytes(rows))]
        for lower, higher in pairwise(parts):
            merge_rows(lower, higher)
        memoryview(rows)[:] = parts[-1]

    def allreduce(self, array: Any, op: object = "sum") -> None:
        raise NotImplementedError("loggers reduce rows")

    def broadcast(self, array: Any, root: int = 0) -> None:
        raise NotImplementedError("loggers do not broadcast")

    def barrier(self) -> None:
        self.allgather(b"")


def on_ranks(size: int, program: Callable[[ThreadComm], T]) -> list[T]:
    """What the program returns on each rank; an error of any rank is raised here."""
    slots = [b""] * size
    barrier = threading.Barrier(size, timeout=PATIENCE)
    results: dict[int, T] = {}
    errors: list[BaseException] = []

    def run(rank: int) -> None:
        try:
            results[rank] = program(ThreadComm(rank, slots, barrier))
        except BaseException as error:
            errors.append(error)
            barrier.abort()

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in errors:
        if not isinstance(error, threading.BrokenBarrierError):
            raise error
    if errors:
        raise errors[0]
    return [results[rank] for rank in range(size)]
