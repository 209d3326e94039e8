"""EpochLogger in plain Python: lists, dicts and fractions. What the state machine compares it with."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

Row = dict[str, Any]  # by column: a float, which is a statistic, or the text of an explicit value


@dataclass
class Checkpoint:
    """What save_state was called with, and where the run stood.

    Attributes:
        rows: how many a run has that goes on from it.
        columns: of the file then; None while its row has not been dumped, and nobody can go on from it.
    """

    state: Any
    rows: int
    columns: list[str] | None


@dataclass
class Model:
    """A run in a folder, and its open logger."""

    keep: bool = True
    strict: bool = False
    new_keys: str = "add"
    stored: dict[str, list[Any]] = field(default_factory=dict)
    assigned: set[str] = field(default_factory=set)  # keys whose list is one that the caller has given
    columns: list[str] = field(default_factory=list)
    cells: Row = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    file_columns: list[str] = field(default_factory=list)
    left_over: dict[str, int] = field(default_factory=dict)
    saved: list[Checkpoint] = field(default_factory=list)
    opening: tuple[int, list[str]] = (0, [])
    start: tuple[int, list[str]] | None = None  # where the run began, once that is written down

    # Storing and logging

    def store(self, data: dict[str, Any]) -> None:
        for key, value in data.items():
            self.stored.setdefault(key, []).append(kept(value))

    def check(self, columns: Iterable[str]) -> None:
        """Raise what the logger raises for columns that it cannot take."""
        for column in columns:
            assert column not in self.cells
            assert self.new_keys == "add" or not self.rows or column in self.columns

    def log_value(self, key: str, text: str) -> None:
        self.check([key])
        self.set({key: text})
        self.take(key)

    def log_stored(self, key: str, columns: Sequence[str]) -> None:
        self.check(columns)
        values = self.take(key)
        if not values and self.strict:
            raise KeyError(key)
        self.set(statistics(key, values, columns))

    def log_batch(self, closing: Sequence[tuple[str, Sequence[str]]]) -> None:
        """Keys logged in a block; where one cannot be, the row is dropped."""
        waiting: list[tuple[str, list[float], Sequence[str]]] = []
        try:
            for key, columns in closing:
                self.check(columns)
                waiting.append((key, self.take(key), columns))
                self.set(dict.fromkeys(columns))
        except AssertionError:
            self.drop_row()
            raise
        empty = []
        for key, values, columns in waiting:
            if values or not self.strict:
                self.cells.update(statistics(key, values, columns))
                continue
            empty.append(key)
            for column in columns:
                del self.cells[column]
                if column not in self.file_columns:
                    self.columns.remove(column)
        if empty:
            raise KeyError(empty)

    def set(self, cells: Row) -> None:
        self.cells.update(cells)
        self.columns += [column for column in cells if column not in self.columns]

    def take(self, key: str) -> list[float]:
        values = elements(self.stored.get(key, []))
        self.stored[key] = []
        self.assigned.discard(key)
        return values

    def drop_row(self) -> None:
        self.cells = {}
        self.columns = list(self.file_columns)

    def dump(self) -> None:
        if self.columns:
            self.rows.append(self.cells)
            self.cells = {}
            self.file_columns = list(self.columns)
            for checkpoint in self.saved:
                if checkpoint.columns is None:
                    checkpoint.columns = list(self.columns)
        self.left_over = self.counts()

    def counts(self) -> dict[str, int]:
        """How much is stored under each key that has something."""
        found = {
            key: len(values) if key in self.assigned else len(elements(values))
            for key, values in self.stored.items()
        }
        return {key: count for key, count in found.items() if count}

    # Lists

    def assign(self, key: str, values: list[Any]) -> None:
        self.stored[key] = values
        if self.keep:
            self.assigned.add(key)

    def forget(self, key: str) -> None:
        del self.stored[key]
        self.assigned.discard(key)

    def replace(self, data: dict[str, list[Any]]) -> None:
        self.stored, self.assigned = data, set(data) if self.keep else set()

    # Saving and going on

    def note_start(self) -> None:
        self.start = self.start or self.opening

    def save(self, state: Any) -> None:
        self.note_start()
        between = not self.cells and self.counts() == self.left_over
        columns = list(self.file_columns) if between else None
        self.saved.append(Checkpoint(state, len(self.rows) + (not between), columns))

    def resume(self) -> Any:
        """Go on where the newest checkpoint stands, or else where the run began; returns the state."""
        whole = [checkpoint for checkpoint in self.saved if checkpoint.columns is not None]
        state = None
        if whole:
            self.saved = self.saved[: self.saved.index(whole[-1]) + 1]
            state = whole[-1].state
            self.cut(whole[-1].rows, whole[-1].columns or [])
        else:
            self.saved = []
            if self.start is not None:
                self.cut(*self.start)
        self.open()
        return state

    def cut(self, rows: int, columns: list[str]) -> None:
        self.rows = [{key: row[key] for key in row if key in columns} for row in self.rows[:rows]]
        self.file_columns = list(columns)

    def open(self) -> None:
        """Let a new logger be made in the folder, which has stored nothing yet."""
        self.opening = (len(self.rows), list(self.file_columns))
        self.columns = list(self.file_columns)
        self.cells, self.stored, self.assigned, self.left_over = {}, {}, set(), {}

    def begin_anew(self) -> None:
        had_checkpoints = self.start is not None
        self.rows, self.file_columns, self.saved = [], [], []
        self.open()
        self.start = self.opening if had_checkpoints else None

    # The file

    def matches(self, text: str) -> bool:
        """Whether this is the text of the file of rows."""
        lines = [self.file_columns, *([row.get(name, "") for name in self.file_columns] for row in self.rows)]
        found = [line.split("\t") for line in text.split("\n")]
        if not self.rows:
            return text == ""
        return len(found) == len(lines) + 1 and found[-1] == [""] and all(
            len(cells) == len(line) and all(map(same_text, cells, line))
            for cells, line in zip(found[:-1], lines, strict=True)
        )


def kept(value: Any) -> Any:
    """What a list of floats holds where this was stored."""
    return value if isinstance(value, (np.ndarray, list, tuple)) else float(value)


def elements(values: Iterable[Any]) -> list[float]:
    """All numbers in stored values."""
    return [x for value in values for x in np.asarray(value, np.float64).ravel().tolist()]


def statistics(key: str, values: list[float], columns: Iterable[str]) -> Row:
    """The cells of a key's columns."""
    mean, std, low, high = numbers(values)
    by_column = {"Average" + key: mean, key: mean, "Std" + key: std, "Max" + key: high, "Min" + key: low}
    return {column: by_column[column] for column in columns}


def numbers(values: list[float]) -> tuple[float, float, float, float]:
    """Mean, standard deviation, least and greatest; the first two exactly, then rounded."""
    if not values or any(map(math.isnan, values)):
        return (math.nan,) * 4
    low, high = min(values), max(values)
    if math.inf in (high, -low):
        return math.fsum((low, high)) if low != -high else math.nan, math.nan, low, high
    exact = list(map(Fraction, values))
    mean = sum(exact) / len(exact)
    return float(mean), math.sqrt(sum((x - mean) ** 2 for x in exact) / len(exact)), low, high


def near(found: float, want: float) -> bool:
    """Whether a statistic is the exact one, but for its last digits."""
    return math.isclose(found, want, rel_tol=1e-12, abs_tol=1e-9) or (math.isnan(found) and math.isnan(want))


def same_text(found: str, want: Any) -> bool:
    """Whether a field is what the model has: a text to the letter, a statistic as the shortest text."""
    if isinstance(want, str):
        return found == want
    return found == repr(float(found)) and near(float(found), want)
