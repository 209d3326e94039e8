"""Tells on stderr when a rank has waited long in a collective: the one sign of ranks that do not all call
it."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

DEFAULT_SECONDS = 60.0


class Watchdog:
    """Notices waits that last longer than SPINSTAT_NOTICE_SECONDS (60 where unset), and tells of each once.

    One thread a process, made at its first wait.
    """

    def __init__(self) -> None:
        self._waits: dict[int, tuple[float, Callable[[], str]]] = {}
        self._seconds = 0.0
        self._thread: threading.Thread | None = None
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    @contextmanager
    def during(self, describe: Callable[[], str]) -> Iterator[None]:
        """Watch a block that waits for other ranks. `describe` says what for, and is asked only if it
        lasts."""
        self.begin(describe)
        try:
            yield
        finally:
            self.end()

    def begin(self, describe: Callable[[], str]) -> None:
        """Start to watch this thread; `end` must follow. Waits of one thread do not nest."""
        if self._thread is None:
            self._start()
        self._waits[threading.get_ident()] = (time.monotonic(), describe)

    def end(self) -> None:
        """Stop watching this thread."""
        del self._waits[threading.get_ident()]

    def _start(self) -> None:
        text = os.environ.get("SPINSTAT_NOTICE_SECONDS") or str(DEFAULT_SECONDS)
        try:
            self._seconds = float(text)
        except ValueError:
            self._seconds = 0.0
        if not self._seconds > 0:
            raise ValueError(f"SPINSTAT_NOTICE_SECONDS={text}: a number of seconds above 0 is wanted")
        self._thread = threading.Thread(target=self._watch, name="spinstat-watchdog", daemon=True)
        self._thread.start()

    def _forget(self) -> None:
        """A forked child has neither the thread nor its waits."""
        self._waits = {}
        self._thread = None

    def _watch(self) -> None:
        told: set[tuple[float, Callable[[], str]]] = set()
        while True:
            time.sleep(min(self._seconds / 4, 5.0))
            waits = set(self._waits.copy().values())
            told &= waits
            for wait in waits - told:
                since, describe = wait
                if time.monotonic() - since >= self._seconds:
                    told.add(wait)
                    _tell(f"spinstat: waiting for other ranks for {self._seconds:g} s: {describe()}")


def _tell(text: str) -> None:
    if sys.stderr is not None:
        print(text, file=sys.stderr, flush=True)


watchdog: Watchdog = Watchdog()
