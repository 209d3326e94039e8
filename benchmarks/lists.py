"""The way that Spinning Up logs an epoch, told in our own words, as the thing that spinstat is compared with.

Store: for every name of the call, look whether the dict has it (asking its keys view), give it an empty list
if not, and append the value. Statistics: all values as one float32 array, the sum and then the sum of squared
deviations gathered as on one rank. A row: printed as a table between dashes, written to a file, flushed.
"""

from __future__ import annotations

from typing import Any, TextIO

import numpy as np


class ListLogger:
    """Lists of what was stored, a key each, and rows of their statistics written to `file`."""

    def __init__(self, file: TextIO) -> None:
        self.stored: dict[str, list[Any]] = {}
        self.row: dict[str, Any] = {}
        self.columns: list[str] = []
        self.file = file

    def store(self, **values: Any) -> None:
        """Appends each value to the list of its key."""
        for key, value in values.items():
            if key not in self.stored.keys():  # the original asks the view, and pays for it
                self.stored[key] = []
            self.stored[key].append(value)

    def get_stats(self, key: str, with_min_and_max: bool = False) -> list[float]:
        """Mean and standard deviation of a key in float32; on request the least and the greatest too."""
        values = self.stored[key]
        arrays = isinstance(values[0], np.ndarray) and values[0].ndim > 0
        flat = np.array(np.concatenate(values) if arrays else values, dtype=np.float32)
        total, count = (float(part) for part in np.asarray([np.sum(flat), len(flat)], dtype=np.float32))
        mean = total / count
        squares = np.asarray(np.sum((flat - mean) ** 2), dtype=np.float32)
        stats = [mean, float(np.sqrt(squares / count))]
        if with_min_and_max:
            stats += [float(np.min(flat)), float(np.max(flat))]
        return stats

    def log_tabular(self, key: str, with_min_and_max: bool = False) -> None:
        """Puts the statistics of a key into the row, and empties its list."""
        names = ["Average", "Std", "Min", "Max"]
        for name, number in zip(names, self.get_stats(key, with_min_and_max), strict=False):
            self.row[name + key] = number
            if name + key not in self.columns:
                self.columns.append(name + key)
        self.stored[key] = []

    def dump_tabular(self) -> None:
        """Prints the row, writes it, and begins the next."""
        width = max(15, *(len(name) for name in self.columns))
        rule = "-" * (22 + width)
        print(rule)
        for name in self.columns:
            number = self.row.get(name, "")
            print(f"| {name:>{width}} | {format(number, '8.3g'):>15} |")
        print(rule, flush=True)
        if self.file.tell() == 0:
            self.file.write("\t".join(self.columns) + "\n")
        self.file.write("\t".join(str(self.row[name]) for name in self.columns) + "\n")
        self.file.flush()
        self.row.clear()
