"""Terminals for the tests of the rich console, and what a person reads on them."""

from __future__ import annotations

import io
import re
import sys
from typing import NamedTuple

import pytest

_STYLE = re.compile(r"\x1b\[[0-9;]*m")


class Screen(io.StringIO):
    """A stdout that is a terminal, of whatever encoding, and counts the calls it gets."""

    def __init__(self, encoding: str = "utf-8", terminal: bool = True) -> None:
        super().__init__()
        self._named = encoding
        self._terminal = terminal
        self.writes = 0

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._named

    def isatty(self) -> bool:
        return self._terminal

    def write(self, text: str) -> int:
        text.encode(self._named)  # as a file would
        self.writes += 1
        return super().write(text)


def set_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment that says nothing of colours, and a width of 100 columns."""
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")


def on_terminal(monkeypatch: pytest.MonkeyPatch) -> Screen:
    """Make stdout a terminal. Not a fixture, after whose setup pytest puts its own stdout in place."""
    monkeypatch.setattr(sys, "stdout", screen := Screen())
    return screen


class Shown(NamedTuple):
    """A line of a table: what it says of a column."""

    value: str
    change: str | None  # None where the table has no such column
    n: str | None


def without_styles(text: str) -> str:
    """The text without the codes of colours; any other escape sequence stays, and is seen."""
    return _STYLE.sub("", text)


def last_table(text: str) -> dict[str, Shown]:
    """The last table in what was printed, by column; one in a section as "section: name"."""
    lines = without_styles(text).splitlines()
    cells = [[cell.strip(" ") for cell in re.split("[│|]", line)[1:-1]] for line in lines]
    head = max(at for at, row in enumerate(cells) if row[:2] == ["", "value"])
    found: dict[str, Shown] = {}
    section = ""
    for at in range(head + 2, len(lines) - 1):
        if not cells[at]:  # a rule between sections
            continue
        if lines[at + 1][1:].startswith("   ") and not lines[at][1:].startswith("   "):
            section = cells[at][0]
            continue
        said = dict(zip(cells[head], cells[at], strict=True))
        name = f"{section}: {cells[at][0]}" if section else cells[at][0]
        found[name] = Shown(said["value"], said.get("change"), said.get("count"))
    return found
