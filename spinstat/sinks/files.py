"""A sink with a file that grows by whole rows, and that is cut back when a run goes on from a checkpoint."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from ..growing import GrowingFile
from ..row import Row
from ..terminal import warn
from .base import OwnSink, Run


class FileSink(OwnSink):
    """Writes each row at once, whole and in order, to a file in output_dir.

    A file that is there is moved aside for a new run (<path>.1, .2, ...), and cut back to the checkpoint's
    row for one that is resumed. Rows that a full disk or a vanished folder keeps from being written wait for
    the next one.

    Args:
        path: relative to output_dir.
    """

    def __init__(self, path: str, **options: Any) -> None:
        super().__init__(path=path, **options)
        self.path: str = os.fspath(path)
        if not self.path or self.path.endswith(os.sep) or os.path.normpath(self.path) in (".", ".."):
            raise ValueError(f"the path of a sink names a file in output_dir, not {path!r}")
        self._waiting: list[Row] = []
        self._first = 0  # the number of the first row in the file
        self._file: GrowingFile

    def open_run(self, run: Run) -> None:
        """Begin a file, or go on with one."""
        super().open_run(run)
        path = os.path.join(run.folder, self.path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self._file = GrowingFile(path, keep=run.resumed)
        self._first = run.read_note(self._note).get("first", 0)
        self._go_on(run) if run.resumed else self._begin_at(0)

    @property
    def _note(self) -> str:
        """Where the number of the first row is kept, if it is not 0; no two sinks of a run have the same."""
        return f"{self.name}-{sha256(os.fsencode(self.path)).hexdigest()[:8]}"

    def _begin_at(self, number: int) -> None:
        if self._first != number and self.run is not None:
            self.run.write_note(self._note, first=number)
        self._first = number

    def _go_on(self, run: Run) -> None:
        data = self._file.read_bytes()
        ends = self._row_ends(data)
        keep = max(run.rows - self._first, 0)
        if not data:
            self._begin_at(run.rows)
        elif len(ends) < keep:
            warn(
                f"{self._file.name} has rows {self._first} to {self._first + len(ends) - 1}, with the "
                f"checkpoint there were {run.rows}; it is continued as it is"
            )
            self._cut(data, ends, len(ends), run)
            self._begin_at(run.rows - len(ends))
        else:
            self._cut(data, ends, keep, run)
            self._begin_at(run.rows - keep)

    def _row_ends(self, data: bytes) -> Sequence[int]:
        """Where the whole rows of a file's content end, in bytes from its beginning."""
        raise NotImplementedError

    def _cut(self, data: bytes, ends: Sequence[int], keep: int, run: Run) -> None:
        """Keep so many rows of the file; without any, it is empty."""
        size = ends[keep - 1] if keep else 0
        if size != len(data):
            self._file.cut(size)

    def _append(self, row: Row) -> None:
        """Write a row, or raise OSError with the file as it was."""
        raise NotImplementedError

    def _forget_file(self) -> None:
        """Begin a new file: the one before is gone."""

    def write(self, row: Row) -> None:
        """Write a row, and those before it that still wait.

        Raises:
            OSError: they wait for the next one.
        """
        self._waiting.append(row)
        self._catch_up()

    def _catch_up(self) -> None:
        while self._waiting:
            row = self._waiting[0]
            try:
                try:
                    self._append(row)
                except FileNotFoundError:
                    self._look_again(row)
                    self._append(row)
            except OSError:
                raise
            except Exception:  # something about this row: it would keep the later ones waiting for ever
                del self._waiting[0]
                raise
            del self._waiting[0]

    def _look_again(self, row: Row) -> None:
        """Begin a new file with this row where ours is gone from its folder."""
        if os.path.lexists(self._file.path):
            raise FileNotFoundError(errno.ENOENT, f"another file has taken the place of {self._file.name}")
        if not os.path.isdir(os.path.dirname(self._file.path)):
            raise FileNotFoundError(errno.ENOENT, f"the folder of {self._file.name} is not there any more")
        warn(f"{self._file.name} has been removed; a new one begins")
        self._file.adopt()
        self._forget_file()
        self._begin_at(row.number)

    def close(self) -> None:
        """Write what waits. Where that fails now as well, it is told, and closing may be tried again."""
        try:
            self._catch_up()
        except OSError as error:
            warn(f"{self._file.name}: {error}; {len(self._waiting)} of its rows are lost")
            return
        self._file.close()
