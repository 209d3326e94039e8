"""A generation of a checkpoint being written: files and folders added one by one, committed by one rename."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Self, TypeVar

from .pickles import NewFile, digest_of
from .record import Record, StoredFile
from .swap import remove_tree

try:
    import fcntl
except ImportError:  # no locks there: what killed processes leave stays
    fcntl = None  # type: ignore[assignment]

Answer = TypeVar("Answer")


class Draft:
    """A generation being written. Unless it is committed in the `with` block, nothing of it is left.

    Args:
        folder: the folder of generations.
        number: the least that this one may have.

    Attributes:
        record: its record so far.

    Raises:
        OSError: it cannot be begun.
    """

    def __init__(self, folder: str, number: int) -> None:
        self._folder = folder
        number = self._make(number)
        try:
            self._lock = _lock(self._path)
        except FileNotFoundError:  # another process took the new folder for one left behind
            number = self._make(number)
            self._lock = _lock(self._path)
        self.record: Record = Record(number, "", 0.0)

    def _make(self, number: int) -> int:
        """Make the folder of the first generation from a number on that nobody has; returns its number."""
        while True:
            self._path = os.path.join(self._folder, f"c{number}")
            try:
                os.mkdir(self._path)
                return number
            except FileExistsError:  # of another process in the same folder
                number += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._lock is not None:
            os.close(self._lock)
        if not self.is_committed():
            remove_tree(self._path)

    def is_committed(self) -> bool:
        """Whether its record is in place: an interrupt may follow that, before commit() returns."""
        return os.path.exists(record_path(self._folder, self.record.number))

    def add(
        self, name: str, stored: str, write: Callable[[NewFile], Answer], private: bool = False
    ) -> Answer:
        """Add a file.

        Args:
            name: its plain name; with private, a name of its own.
            stored: its name in here.
            write: writes it; its answer is this method's.

        Raises:
            OSError: the disk refuses it.
            Exception: whatever write raises. Nothing of the file is left.
        """
        with NewFile(os.path.join(self._path, stored)) as file:
            answer = write(file)
            digest = file.finish()
        files = self.record.private if private else self.record.files
        files[name] = StoredFile(stored, *digest)
        return answer

    def add_folder(self, name: str, stored: str, make: Callable[[str], None]) -> None:
        """Add a folder.

        Args:
            name: its plain name.
            stored: how the names of its files in here begin.
            make: makes the folder at the path that it is given.

        Raises:
            Exception: whatever make raises. Nothing of the folder is left.
        """
        path = os.path.join(self._path, "new")
        files: dict[str, StoredFile] = {}
        folders: list[str] = []
        try:
            make(path)
            for base, inner, names in os.walk(path):
                plain = os.path.normpath(os.path.join(name, os.path.relpath(base, path)))
                folders += [_posix(plain, folder) for folder in sorted(inner)]
                for file in sorted(names):
                    source = os.path.join(base, file)
                    _sync(source)
                    entry = StoredFile(f"{stored}-{len(files)}", *digest_of(source))
                    os.rename(source, os.path.join(self._path, entry.stored))
                    files[_posix(plain, file)] = entry
        except BaseException:
            for entry in files.values():
                os.unlink(os.path.join(self._path, entry.stored))
            raise
        finally:
            remove_tree(path)
        self.record.files.update(files)
        self.record.folders[name] = folders

    def commit(self, itr: str) -> Record:
        """Make this the newest checkpoint, by the rename of its record.

        Raises:
            OSError: the record cannot be written.
        """
        self.record.itr = itr
        self.record.time = time.time()
        sync_folder(self._path)
        write_record(self._folder, self.record)
        return self.record


def _posix(*steps: str) -> str:
    return "/".join(steps).replace(os.sep, "/")


def _sync(path: str) -> None:
    # Windows flushes only what may be written to.
    descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(path: str) -> None:
    """Have the names in a folder on the disk, where the system knows that for folders."""
    if os.name == "posix":
        _sync(path)


def _lock(path: str) -> int | None:
    """Lock a folder; the lock goes with the descriptor, and so with the process, however it ends."""
    if fcntl is None:
        return None
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BaseException as error:
        os.close(descriptor)
        if isinstance(error, OSError):  # a file system without locks: is_abandoned() cannot tell there either
            return None
        raise
    return descriptor


def is_abandoned(path: str) -> bool:
    """Whether nobody is writing the generation in a folder."""
    if fcntl is None:
        return False
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # somebody is, or the file system cannot tell
        return False
    finally:
        os.close(descriptor)
    return True


def temporary_name(folder: str) -> str:
    """A name in a folder that nobody has; of the form that Shelf.clean() knows."""
    return os.path.join(folder, f"tmp-{os.getpid()}-{os.urandom(8).hex()}")


def write_record(folder: str, record: Record) -> None:
    """Write a record, in place of the one that is there.

    Raises:
        OSError: it cannot be written; the one before is kept.
    """
    write_whole(record_path(folder, record.number), record.to_json())


def write_whole(path: str, text: str) -> None:
    """Write a file in a work folder, in place of the one that is there, and have it on the disk.

    Raises:
        OSError: it cannot be written; the one before is kept.
    """
    folder = os.path.dirname(path)
    temporary = temporary_name(folder)
    with NewFile(temporary) as file:
        file.write(text.encode())
        file.finish()
        os.replace(temporary, path)
    sync_folder(folder)


def record_path(folder: str, number: int) -> str:
    """Where the record of a generation is."""
    return os.path.join(folder, f"c{number}.json")
