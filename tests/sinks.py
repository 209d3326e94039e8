"""Sinks that keep what they get, for the tests."""

from __future__ import annotations

from typing import Any

from spinstat.row import Row
from spinstat.sinks import Run


class Listing:
    """A sink that keeps what it gets."""

    wants_histograms = False

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.told: list[Any] = []

    def write(self, row: Row) -> None:
        self.rows.append(row)

    def close(self) -> None:
        self.told.append("closed")


class Told(Listing):
    """One with all the methods that a sink may have."""

    wants_histograms = True

    def open_run(self, run: Run) -> None:
        self.told.append(run)

    def save_config(self, config: object) -> None:
        self.told.append(config)
