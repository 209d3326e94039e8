"""The sink "jsonl": a file with a JSON object for each row."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence

from ..row import Row
from .files import FileSink


class JsonlSink(FileSink):
    """Writes rows.jsonl: a line for each row, {"Epoch": 0, "AverageEpRet": 1.5, ...}, columns in order.

    Strict JSON in ASCII. Floats read back exactly, integers are written in full, a blank is null. What JSON
    has no number for are the texts "NaN", "Infinity" and "-Infinity", as in config.json; float() takes them,
    and so does Number() of JavaScript. Values that are neither numbers nor texts are written as in
    progress.txt.

    Args:
        path: the file, relative to output_dir.

    Examples:
        >>> from spinstat import EpochLogger
        >>> from spinstat.sinks import JsonlSink
        >>> with EpochLogger("run", quiet=True, sinks=[JsonlSink("all.jsonl")]) as logger:
        ...     logger.store(Loss=[1.0, 2.0])
        ...     logger.log_tabular("Epoch", 0)
        ...     logger.log_tabular("Loss", average_only=True)
        ...     logger.dump_tabular()
        >>> open("run/all.jsonl").read().splitlines()
        ['{"Epoch": 0, "Loss": 1.5}']
    """

    name = "jsonl"

    def __init__(self, path: str = "rows.jsonl") -> None:
        super().__init__(path)

    def _append(self, row: Row) -> None:
        cells = zip(row.columns, map(_json_value, row.values, row.texts), strict=True)
        self._file.write(json.dumps(dict(cells), allow_nan=False) + "\n")

    def _row_ends(self, data: bytes) -> Sequence[int]:
        return [found.end() for found in re.finditer(b"\n", data)]


def _json_value(value: object, text: str) -> object:
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value if value is None or isinstance(value, int | str) else text
