"""The sink "csv": a file of comma-separated values."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterable, Sequence

from ..growing import GrowingFile
from ..row import Row
from .base import Run
from .files import FileSink


class CsvSink(FileSink):
    """Writes rows.csv as RFC 4180 has it: the names of the columns first, lines that end in CR LF.

    Numbers are written as in progress.txt: floats read back exactly. Text is in quotes where it holds commas,
    quotes or line breaks; a blank is an empty field. A column that is new in a later row is added by one
    atomic rewrite, older rows blank.

    Args:
        path: the file, relative to output_dir.

    Examples:
        >>> from spinstat import EpochLogger
        >>> from spinstat.sinks import CsvSink
        >>> with EpochLogger("run", quiet=True, sinks=[CsvSink()]) as logger:
        ...     logger.store(Loss=[1.0, 2.0])
        ...     logger.log_tabular("Epoch", 0)
        ...     logger.log_tabular("Loss", average_only=True)
        ...     logger.dump_tabular()
        >>> open("run/rows.csv").read().splitlines()
        ['Epoch,Loss', '0,1.5']
    """

    name = "csv"

    def __init__(self, path: str = "rows.csv") -> None:
        super().__init__(path)
        self._columns: tuple[str, ...] = ()

    def _append(self, row: Row) -> None:
        cells = dict(zip(row.columns, map(_field, row.values, row.texts), strict=True))
        columns = (*self._columns, *(name for name in cells if name not in self._columns))
        line = _line(cells.get(name, "") for name in columns)
        if not self._columns:
            self._file.write(_line(columns) + line)
        elif len(columns) == len(self._columns):
            self._file.write(line)
        else:
            data = self._file.read_bytes()
            more = b"," * (len(columns) - len(self._columns))
            lines = [each.removesuffix(b"\r\n") + more + b"\r\n" for each in _split(data)[1:]]
            self._file.replace(b"".join([_encode(_line(columns)), *lines, _encode(line)]))
        self._columns = columns

    def _row_ends(self, data: bytes) -> Sequence[int]:
        return _line_ends(data)[1:]

    def _cut(self, data: bytes, ends: Sequence[int], keep: int, run: Run) -> None:
        """Columns that only the rows after the checkpoint had go as well."""
        self._columns = ()
        if keep == 0:
            super()._cut(data, ends, 0, run)
            return
        lines = _split(data)[: keep + 1]
        rows = list(csv.reader(io.StringIO(_decode(b"".join(lines)), newline="")))
        columns = tuple(rows[0])
        kept = [at for at, name in enumerate(columns) if name in run.columns or not run.columns]
        self._columns = tuple(columns[at] for at in kept)
        if len(kept) == len(columns):
            super()._cut(data, ends, keep, run)
        else:
            self._file.replace(_encode("".join(_line(row[at] for at in kept) for row in rows)))

    def _forget_file(self) -> None:
        self._columns = ()


def _field(value: object, text: str) -> str:
    return value if isinstance(value, str) else text


def _line(fields: Iterable[str]) -> str:
    out = io.StringIO()
    csv.writer(out).writerow(list(fields))
    return out.getvalue()


def _line_ends(data: bytes) -> list[int]:
    """Where lines end; a line break in quotes is part of a field."""
    ends, at, quotes = [], 0, 0
    for piece in data.split(b"\n")[:-1]:
        at += len(piece) + 1
        quotes += piece.count(b'"')
        if quotes % 2 == 0:
            ends.append(at)
    return ends


def _split(data: bytes) -> list[bytes]:
    """The whole lines of a file's content, each with its end."""
    ends = [0, *_line_ends(data)]
    return [data[start:end] for start, end in itertools.pairwise(ends)]


def _encode(text: str) -> bytes:
    return text.encode(GrowingFile.encoding, GrowingFile.errors)


def _decode(data: bytes) -> str:
    return data.decode(GrowingFile.encoding, "replace")
