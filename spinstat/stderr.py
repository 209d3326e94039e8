"""Notes and a progress bar on stderr, which leave stdout to the results."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Self

from .terminal import is_terminal

INTERVAL = 0.1  # seconds between two looks of a bar
WIDTH = 24


def note(text: str) -> None:
    """Tell something on stderr. Where that is closed, nobody is told, and nothing happens."""
    _write(sys.stderr, f"{text}\n")


def _write(stream: Any, text: str) -> None:
    if stream is None:
        return
    try:
        stream.write(text)
        stream.flush()
    except (OSError, ValueError):  # closed, or its reader is gone
        return


class Bar:
    """A line on stderr that shows how far something is, where stderr is a terminal.

    `hide` takes the line away before something else is printed; leaving the block does, too.

    Args:
        total: how many things there are to do.
        what: their name.
    """

    def __init__(self, total: int, what: str) -> None:
        self._total = total
        self._what = what
        self._stream = sys.stderr
        self._shown = False
        self._next = 0.0
        self._visible = total > 0 and is_terminal(self._stream)

    def show(self, done: int, detail: str = "") -> None:
        """Show that so many are done; at most ten times a second, so it may be called for every step."""
        if not self._visible or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + INTERVAL
        filled = WIDTH * done // self._total
        bar = "#" * filled + "." * (WIDTH - filled)
        _write(self._stream, f"\r\x1b[K[{bar}] {done}/{self._total} {self._what}{detail}")
        self._shown = True

    def hide(self) -> None:
        """Take the line away."""
        if self._shown:
            _write(self._stream, "\r\x1b[K")
            self._shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.hide()
