"""Choices out of bytes: the same bytes give the same choices, and bytes that have run out give the first."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")


class Draw:
    """Reads choices from data, front to back."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def bytes(self, n: int) -> bytes:
        """The next n bytes, or as many as there are."""
        found = self._data[self._at : self._at + n]
        self._at += len(found)
        return found

    def rest(self) -> bytes:
        """All bytes that are left."""
        return self.bytes(len(self._data))

    def left(self) -> int:
        """How many bytes there are left."""
        return len(self._data) - self._at

    def integer(self, low: int, high: int) -> int:
        """A whole number from low to high."""
        size = max(1, ((high - low).bit_length() + 7) // 8)
        return low + int.from_bytes(self.bytes(size), "little") % (high - low + 1)

    def flag(self) -> bool:
        """Yes or no."""
        return self.integer(0, 1) == 1

    def choice(self, items: Sequence[Item]) -> Item:
        """One of the items."""
        return items[self.integer(0, len(items) - 1)]

    def number(self) -> float:
        """A float of any kind."""
        kind = self.integer(0, 3)
        if kind == 0:
            return float(self.integer(-100, 100))
        if kind == 1:
            return self.choice([0.0, -0.0, 1e308, -1e308, 5e-324, float("nan"), float("inf"), -float("inf")])
        return struct.unpack("<d", self.bytes(8).ljust(8, b"\0"))[0]  # type: ignore[no-any-return]
