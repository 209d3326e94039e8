"""Where rows go: the table on stdout and progress.txt. A writer has two methods, write(row) and close()."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Sequence
from typing import Protocol

from .files import write_atomic
from .growing import GrowingFile, TextFile
from .row import Row, escape, quote_name, unquote_name
from .terminal import show, warn

__all__ = [
    "ProgressWriter",
    "TableWriter",
    "Writer",
    "close_all",
    "close_in_process",
    "read_columns",
    "write_atomic",
]

MIN_KEY_WIDTH = 15
FRAME_WIDTH = 22  # a line without its key: bars, spaces and a value of 15 characters


class Writer(Protocol):
    """Takes rows, one at a time, in order."""

    def write(self, row: Row) -> None:
        """Take one row."""

    def close(self) -> None:
        """Finish; rows are not written after this."""


def close_all(writers: Iterable[Writer]) -> None:
    """Close all of them; raises the first error when that is done."""
    failure: BaseException | None = None
    for writer in writers:
        try:
            writer.close()
        except BaseException as error:  # it waits for the others
            failure = error if failure is None else failure
    if failure is not None:
        raise failure


def close_in_process(writers: Iterable[Writer], process: int) -> None:
    """The end of a logger that nobody closed. A forked child leaves its copies of the parent's alone."""
    if os.getpid() == process:
        close_all(writers)


class TableWriter:
    """Prints a row as the table that Spinning Up's users know, in one piece.

    Args:
        precision: significant digits of floats, and integers in full. None: three digits for all numbers.
    """

    def __init__(self, precision: int | None = None) -> None:
        self._number = f"%15.{3 if precision is None else precision}g"
        self._integer = self._number if precision is None else "%15d"
        self._columns: Sequence[str] = ()
        self._frame = ""

    def write(self, row: Row) -> None:
        """Print the row. Never raises for what a cell holds, or for stdout."""
        if row.columns != self._columns:
            self._frame = _frame(row.columns)
            self._columns = row.columns
        number = self._number
        cells = [
            number % value if type(value) is float else self._cell(value, text)
            for value, text in zip(row.values, row.texts, strict=True)
        ]
        show(self._frame % tuple(cells))

    def _cell(self, value: object, text: str) -> str:
        if hasattr(value, "__float__"):
            try:
                return (self._integer if isinstance(value, int) else self._number) % value
            except Exception:  # an integer beyond the floats, a __float__ that raises: the text shows it
                return f"{text:>15}"
        return f"{text:>15}"

    def close(self) -> None:
        """Nothing is left to print."""


def _frame(columns: Sequence[str]) -> str:
    """The table of these columns with %s for each value."""
    keys = [escape(column) for column in columns]
    width = max([MIN_KEY_WIDTH, *map(len, keys)])
    rule = "-" * (FRAME_WIDTH + width)
    lines = [f"| {key:>{width}} | ".replace("%", "%%") + "%s |" for key in keys]
    return "\n".join([rule, *lines, rule])


class ProgressWriter:
    """Grows progress.txt: tab-separated, the names of the columns first, a whole line for each row.

    A column that is new in a later row is added by one atomic rewrite, older rows blank. A row that cannot be
    written is kept and written, in order, with the next one.

    Args:
        name: path of the file. One that is there is moved aside.
        resume: continue the file that is there instead: its columns, after its last whole line.

    Attributes:
        file: what rows are written to: a writable text file, the caller's own, or None for none.
        columns: the columns of the file; None as long as it has none.
        rows: how many rows a resumed file has.
    """

    def __init__(self, name: str, resume: bool = False) -> None:
        self._own = GrowingFile(name, keep=resume)
        self.file: TextFile | None = self._own
        self.columns: tuple[str, ...] | None = None
        self.rows: int = 0
        self._waiting: list[Row] = []
        self._header_at: int | None = None  # bytes before the header that the newest rows stand under
        self._begin_again = False
        if resume:
            self._read_back()

    def _read_back(self) -> None:
        data = self._own.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):
            self._own.cut(len(whole))
        if whole:
            self.columns = _parse_header(whole)
            self.rows = whole.count(b"\n") - 1
            self._header_at = 0

    def write(self, row: Row) -> None:
        """Append the row, and those before it that still wait.

        A full disk or a vanished folder is a warning, and the rows wait.

        Raises:
            ValueError: the file has been closed; neither this row nor those that waited are kept.
            Exception: what else a file of the user's raises; this row is not kept.
        """
        self._waiting.append(row)
        try:
            self._catch_up()
        except OSError as error:
            # The same words each time, so that Python's filter of repeated warnings knows them again.
            warn(f"{self._own.name}: {error}; rows are kept in memory and written with the next that can be")
        except ValueError:
            self._waiting.clear()
            raise
        except Exception:
            if self._waiting and self._waiting[-1] is row:  # else whoever dumps again has it twice
                del self._waiting[-1]
            raise

    def _count(self) -> str:
        return "1 row is" if len(self._waiting) == 1 else f"{len(self._waiting)} rows are"

    def _catch_up(self) -> None:
        while self._waiting and self.file is not None:
            try:
                self._append(self.file, self._waiting[0])
            except FileNotFoundError:
                self._look_again()
                self._append(self.file, self._waiting[0])
            del self._waiting[0]

    def _append(self, file: TextFile, row: Row) -> None:
        old = self.columns
        if row.header or old is None or row.columns == old:
            columns, texts = tuple(row.columns), row.texts
        else:
            cells = dict(zip(row.columns, row.texts, strict=True))
            columns = (*old, *(name for name in row.columns if name not in old))
            texts = [cells.get(name, "") for name in columns]
        line = "\t".join(texts) + "\n"
        if row.header or self._begin_again:
            at = self._own.size() if file is self._own else 0
            file.write(_header(columns) + line)
            self._header_at = at
        elif old is None or len(columns) == len(old):
            file.write(line)
        elif file is self._own and not self._own.is_special():
            self._own.replace(self._widened(columns, len(columns) - len(old)) + _encode(line))
        else:  # what cannot be written anew gets the longer header from here on
            file.write(_header(columns) + line)
        file.flush()
        self._begin_again = False
        self.columns = columns

    def _widened(self, columns: Sequence[str], more: int) -> bytes:
        """The file's content with a longer header, and a blank field a new column in the rows under it."""
        data = self._own.read_bytes()
        at = self._header_at or 0
        lines = data[at:].removesuffix(b"\n").split(b"\n") if len(data) > at else []
        wide = [line + b"\t" * more + b"\n" for line in lines]
        if self._header_at is not None:
            wide[:1] = [_encode(_header(columns))]
        return data[:at] + b"".join(wide)

    def _look_again(self) -> None:
        """Begin a new file where ours is gone from its folder, or go on with the copy of it that is there.

        Raises:
            FileNotFoundError: the folder is gone too, or the file there is not ours.
        """
        if not os.path.isdir(os.path.dirname(self._own.path)):
            raise FileNotFoundError(errno.ENOENT, "the folder is not there any more")
        try:
            data = self._own.read_bytes()
        except FileNotFoundError:
            warn(f"{self._own.name} has been removed; a new one begins")
            self._begin_again = self._header_at is not None
            self._own.adopt()
            return
        header = b"" if self.columns is None else _encode(_header(self.columns))
        if not data.startswith(header, self._header_at or 0):
            raise FileNotFoundError(errno.ENOENT, "another file has taken its place")
        self._own.adopt()

    def opening(self) -> tuple[int, Sequence[str]]:
        """The lines and columns of a resumed file, before rows are added."""
        return self._own.read_bytes().count(b"\n"), self.columns or ()

    def position(self) -> tuple[int | None, Sequence[str]] | None:
        """The lines in the file, headers included, and its columns, once they are on the disk.

        None instead where rows still wait to be written; no number of lines where they go to a file of the
        user's.
        """
        if self.file is not self._own:
            return None, self.columns or ()
        if self._waiting:
            return None
        try:
            lines = self._own.read_bytes().count(b"\n")
            self._own.sync()
        except OSError:  # removed, or its folder: what comes next tells of that
            return None
        return lines, self.columns or ()

    def close(self) -> None:
        """Write what waits, and close the file that this writer made.

        Raises:
            OSError: rows that could not be written before cannot be written now; closing may be tried again.
        """
        try:
            self._catch_up()
        except OSError as error:
            message = f"{self._own.name}: {error}; {self._count()} lost unless close() succeeds later"
            raise OSError(error.errno, message) from None
        self._own.close()


def read_columns(path: str) -> tuple[str, ...] | None:
    """The columns of a file of rows; None where there is none, or its header is not whole."""
    try:
        with open(path, "rb") as file:
            line = file.readline()
    except FileNotFoundError:
        return None
    return _parse_header(line) if line.endswith(b"\n") else None


def _parse_header(data: bytes) -> tuple[str, ...]:
    line = data.split(b"\n", 1)[0].decode("utf-8", "replace")
    return tuple(unquote_name(name) for name in line.removesuffix("\r").split("\t"))


def _header(columns: Sequence[str]) -> str:
    return "\t".join(map(quote_name, columns)) + "\n"


def _encode(text: str) -> bytes:
    return text.encode(GrowingFile.encoding, GrowingFile.errors)
