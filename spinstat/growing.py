"""A text file that grows by whole pieces, and that is found again where it has been moved."""

from __future__ import annotations

import errno
import io
import itertools
import os
import re
import stat
from collections.abc import Iterator
from typing import TextIO, TypeAlias

from .files import APPEND, CREATE, move_aside, write_all, write_atomic


class GrowingFile(io.TextIOBase):
    """A writable text file without a descriptor: every write opens it, appends all at once, and closes it.

    So a process can have thousands of them, what was written is in the file when `write` returns, and a
    folder that went away is noticed. The file is known by its identity, not by its name: where another run
    has moved it aside (see `move_aside`), writes follow it.

    Args:
        name: where it is; also what its `name` is.
        keep: append to a file that is there. Otherwise that one is moved aside, and this one new and empty.

    Raises:
        OSError: it can be neither made nor opened.
    """

    _kept: int | None = None  # a descriptor, for those who ask for fileno()
    mode = "a"
    encoding = "utf-8"
    errors: str = "backslashreplace"

    def __init__(self, name: str, keep: bool = False) -> None:
        super().__init__()
        self.name = name
        self.path: str = os.path.abspath(name)  # a script may change its working directory
        self._first_path = self.path
        self._good_size: int | None = None  # where the next write cuts off what a failed one may have left
        self._identity: tuple[int, int] | None = None  # None: that of the file that is next found at the path
        self._identify(self._create(keep))

    def _create(self, keep: bool) -> int:
        while True:
            try:
                if keep or self.is_special():
                    return os.open(self.path, APPEND | os.O_CREAT, 0o666)
                return os.open(self.path, CREATE, 0o666)
            except FileExistsError:
                try:
                    move_aside(self.path)
                except FileNotFoundError:  # another run has just done it
                    continue

    def _identify(self, descriptor: int) -> None:
        try:
            self._identity = _identity(descriptor)
        finally:
            os.close(descriptor)

    def is_special(self) -> bool:
        """Whether the name is a device's or a pipe's, such as /dev/null: that is never moved or replaced."""
        try:
            mode = os.stat(self.path).st_mode
        except FileNotFoundError:
            return False
        return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))

    def write(self, text: str, /) -> int:
        """Append text. What fails leaves the file as it was.

        Raises:
            ValueError: the file is closed.
            FileNotFoundError: the file, or its folder, is not there any more.
            OSError: nothing could be written: a full disk, for one.
        """
        self._check_open()
        data = text.encode(self.encoding, self.errors)
        descriptor = self._open()
        try:
            start = os.fstat(descriptor).st_size
            if self._good_size is not None:
                os.ftruncate(descriptor, start := self._good_size)
            try:
                write_all(descriptor, data)
            except BaseException:
                if not self.is_special():
                    self._good_size = start
                    os.ftruncate(descriptor, start)
                raise
            self._good_size = None
        finally:
            os.close(descriptor)
        return len(text)

    def _open(self) -> int:
        if self._identity is None:
            descriptor = os.open(self.path, APPEND)
            self._identity = _identity(descriptor)
            return descriptor
        for path in itertools.chain([self.path], self._moved_paths()):
            try:
                descriptor = os.open(path, APPEND)
            except FileNotFoundError:
                continue
            if _identity(descriptor) == self._identity:
                self.path = path
                return descriptor
            os.close(descriptor)
        raise FileNotFoundError(errno.ENOENT, "the file is not there any more")

    def _moved_paths(self) -> Iterator[str]:
        folder, name = os.path.split(self._first_path)
        for entry in os.listdir(folder):
            if re.fullmatch(re.escape(name) + r"\.\d+", entry):
                yield os.path.join(folder, entry)

    def size(self) -> int:
        """Bytes in the file."""
        descriptor = self._open()
        try:
            return os.fstat(descriptor).st_size
        finally:
            os.close(descriptor)

    def sync(self) -> None:
        """Have what was written on the disk."""
        descriptor = self._open()
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def cut(self, size: int) -> None:
        """Drop what comes after the first `size` bytes."""
        descriptor = self._open()
        try:
            os.ftruncate(descriptor, size)
        finally:
            os.close(descriptor)

    def replace(self, data: bytes) -> None:
        """Give the file another content in one step (see `write_atomic`)."""
        self._check_open()
        os.close(self._open())  # raises where it is gone
        write_atomic(self.path, data)
        self._identity, self._good_size = None, None
        self._close_kept()

    def adopt(self) -> None:
        """Take the file that is at the path now for this one, or make a new and empty one there."""
        self._good_size = None
        self._close_kept()
        self._identify(os.open(self.path, APPEND | os.O_CREAT, 0o666))

    def read_bytes(self) -> bytes:
        """All that the file at the path holds now; nothing for a device or a pipe."""
        if self.is_special():
            return b""
        with open(self.path, "rb") as file:
            return file.read()

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError(f"{self.name} is closed")

    def writable(self) -> bool:
        """True: like a file opened with mode "a"."""
        self._check_open()
        return True

    def fileno(self) -> int:
        """A descriptor of the file, which stays open; for os.fsync and the like."""
        self._check_open()
        if self._kept is None:
            self._kept = self._open()
        return self._kept

    def close(self) -> None:
        """Refuse further writes."""
        self._close_kept()
        super().close()

    def _close_kept(self) -> None:
        if self._kept is not None:
            os.close(self._kept)
            self._kept = None


# What rows can be written to: this, or a file of the caller's own.
TextFile: TypeAlias = TextIO | GrowingFile


def _identity(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino
