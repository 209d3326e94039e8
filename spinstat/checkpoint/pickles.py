"""Objects as files: pickled whole where that works, entry by entry where it does not."""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from types import ModuleType
from typing import IO, Any, NamedTuple, Protocol, Self, cast

from ..files import CREATE, write_all

PROTOCOL = 4  # the newest that every Python and joblib of the last years reads
MAX_DEPTH = 12  # how many attributes deep the culprit of a failed pickle is looked for,
MAX_PARTS = 200  # and among how many parts of each object: a long list would take as long as it is


class Digest(NamedTuple):
    """What a whole file is known by."""

    size: int
    sha256: str


class Sink(Protocol):
    """What can be pickled into; `restart` forgets what a failed attempt has left."""

    def write(self, data: Any, /) -> int: ...

    def flush(self) -> None: ...

    def restart(self) -> None: ...


class NewFile:
    """A file that is made new, written front to back, and digested on the way.

    What the disk refuses is raised by `finish` and `restart`, not by `write`: serialisers differ in what they
    make of an error there, and an object that cannot be pickled must not be confused with a full disk.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._failure: OSError | None = None
        self._hash = hashlib.sha256()
        self._size = 0
        self._descriptor = os.open(path, CREATE, 0o666)

    def write(self, data: Any, /) -> int:
        """Append bytes; after a failure, nothing."""
        view = memoryview(data).cast("B")
        if self._failure is None:
            try:
                write_all(self._descriptor, view)
            except OSError as error:
                self._failure = error
            self._hash.update(view)
            self._size += len(view)
        return len(view)

    def flush(self) -> None:
        """Nothing yet: `finish` flushes."""

    def restart(self) -> None:
        """Go back to an empty file.

        Raises:
            OSError: a write has failed.
        """
        if self._failure is not None:
            raise self._failure
        os.ftruncate(self._descriptor, 0)
        self._hash = hashlib.sha256()
        self._size = 0

    def finish(self) -> Digest:
        """Have the file on the disk, whole.

        Raises:
            OSError: this write, or one before, has failed.
        """
        if self._failure is not None:
            raise self._failure
        os.fsync(self._descriptor)
        return Digest(self._size, self._hash.hexdigest())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Close the file, and delete it after an error."""
        os.close(self._descriptor)
        if kind is not None:
            with suppress(FileNotFoundError):  # it has its final name already, or its folder is gone
                os.unlink(self.path)


class _Nowhere:
    """Takes a pickle that is only tried."""

    def write(self, data: Any, /) -> int:
        return memoryview(data).nbytes

    def flush(self) -> None:
        """Nothing to flush."""

    def restart(self) -> None:
        """Nothing to forget."""


def digest_of(path: str) -> Digest:
    """The digest of a file.

    Raises:
        OSError: it cannot be read.
    """
    with open(path, "rb") as file:
        found = hashlib.file_digest(file, "sha256")
        return Digest(file.tell(), found.hexdigest())


def dump_state(state: object, file: Sink) -> dict[str, str]:
    """Pickle what save_state was given, so that joblib.load and pickle.load read it.

    Whole, so that objects that share something still share it afterwards. A mapping that cannot be is
    tried entry by entry, and what is left is pickled whole.

    Returns:
        What is missing: the keys, and for each the reason with the path of what is to blame, such as
        "env.lock: TypeError: cannot pickle '_thread.lock' object".

    Raises:
        Exception: nothing of it can be pickled; the error is that of the whole, its culprit in a note.
    """
    try:
        _pickle(state, file)
        return {}
    except Exception as error:
        file.restart()
        if not isinstance(state, Mapping):
            error.add_note("state_dict" + _find_culprit(state))
            raise
        kept, missing = {}, {}
        for key, value in state.items():
            reason = _why_not(value)
            if reason is None:
                kept[key] = value
            else:
                missing[str(key)] = f"{key}{_find_culprit(value)}: {reason}"
        if not kept:
            error.add_note("; ".join(missing.values()))
            raise
    _pickle(kept, file)
    return missing


def dump_torch(value: object, file: Sink) -> None:
    """torch.save, by value for classes and functions of the script that runs, where cloudpickle is installed.

    Raises:
        Exception: torch.save's own.
    """
    import torch

    def save(module: ModuleType) -> None:
        torch.save(value, cast(IO[bytes], file), pickle_module=module)

    _with_first_pickler(save, file)


def _pickle(value: object, file: Sink) -> None:
    _with_first_pickler(lambda module: module.dump(value, file, protocol=PROTOCOL), file)


def _with_first_pickler(dump: Callable[[ModuleType], None], file: Sink) -> None:
    """Run dump with cloudpickle, and where that is missing or fails with pickle; the first error counts."""
    try:
        import cloudpickle
    except ImportError:
        return dump(pickle)
    try:
        dump(cloudpickle)
    except Exception as error:
        file.restart()
        try:
            dump(pickle)
        except Exception:
            raise error from None


def _why_not(value: object) -> str | None:
    """Why a value cannot be pickled; None where it can."""
    try:
        _pickle(value, _Nowhere())
    except Exception as error:
        return describe(error)
    return None


def describe(error: BaseException) -> str:
    """An error in one line, its notes included."""
    notes = getattr(error, "__notes__", ())
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return " ".join(" ".join([text, *(f"({note})" for note in notes)]).split())


def _find_culprit(value: object) -> str:
    """The path of what cannot be pickled within a value that cannot: ".lock", "['x'][0]", "" for itself."""
    path, seen = "", {id(value)}
    for _ in range(MAX_DEPTH):
        for step, part in islice(_parts(value), MAX_PARTS):
            if id(part) not in seen and _why_not(part) is not None:
                seen.add(id(part))
                path, value = path + step, part
                break
        else:
            break
    return path


def _parts(value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping):
        return ((f"[{key!r}]", part) for key, part in value.items())
    if isinstance(value, list | tuple | set | frozenset):
        return ((f"[{at}]", part) for at, part in enumerate(value))
    if isinstance(value, type) or not hasattr(value, "__dict__"):
        return iter(())
    return ((f".{name}", part) for name, part in vars(value).items())
