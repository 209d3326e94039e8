"""Files replaced in one step, and names in a run folder that no two processes get."""

from __future__ import annotations

import errno
import itertools
import os
import stat
import time

WORK_FOLDER = ".spinstat"  # beside the files of a run: temporaries, and what later parts keep there

# Flags of os.open: for writing at the end; for a file that nobody has yet.
APPEND = os.O_WRONLY | os.O_APPEND | getattr(os, "O_BINARY", 0)
CREATE = APPEND | os.O_CREAT | os.O_EXCL
_numbers = itertools.count()


def write_atomic(path: str | os.PathLike[str], data: bytes | str) -> None:
    """Make the file at `path` hold `data`: wholly, or not at all.

    The data (text as UTF-8) go to a temporary file in the folder's `.spinstat/`, are flushed to the disk, and
    take the place of `path` by a rename. An existing file keeps its permissions. A link to a file stays, and
    what it leads to is replaced; one to a device or a folder is replaced itself.

    Raises:
        OSError: with the reason. The temporary file is gone, and `path` is as it was before.
    """
    path = os.path.abspath(path)
    content = data.encode("utf-8", "backslashreplace") if isinstance(data, str) else data
    temporary = None
    try:
        target = _followed(path)
        temporary, descriptor = _new_temporary(target, beside=target != path)
        try:
            write_all(descriptor, content)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        _copy_permissions(target, temporary)
        os.replace(temporary, target)
    except BaseException as error:
        if temporary is not None:
            _remove(temporary)
        if isinstance(error, OSError):
            message = f"cannot write {path}: {error.strerror}; what was there before is unchanged"
            raise OSError(error.errno, message) from error
        raise


def _followed(path: str) -> str:
    """The file that a link leads to, which may not be there yet; the path itself where it is no such link."""
    if not os.path.islink(path):
        return path
    target = os.path.realpath(path)
    return target if os.path.isfile(target) or not os.path.lexists(target) else path


def _new_temporary(target: str, beside: bool) -> tuple[str, int]:
    """A new empty file in the work folder of the target's folder, and its descriptor.

    Its name says nothing of the file it is for: readers of run folders take any "model" and any ".pkl".

    Args:
        target: what it will take the place of.
        beside: have it beside the target, hidden, instead: that folder is not a run's.
    """
    name = f"tmp-{os.getpid()}-{next(_numbers)}-{os.urandom(4).hex()}"
    folder = os.path.dirname(target)
    if beside:
        path = os.path.join(folder, f".{name}")
    else:
        work = os.path.join(folder, WORK_FOLDER)
        try:
            os.mkdir(work)
        except FileExistsError:
            pass
        path = os.path.join(work, name)
    return path, os.open(path, CREATE, 0o666)


def _copy_permissions(source: str, target: str) -> None:
    try:
        mode = os.stat(source).st_mode
    except FileNotFoundError:
        return
    os.chmod(target, stat.S_IMODE(mode))


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write all of data to a descriptor, in as many calls as the system wants."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def make_default_folder() -> str:
    """Make /tmp/experiments/<number> and return its name: the first free number from the time in seconds on.

    Where there is no /tmp, in the system's folder for temporary files. No other process gets the same folder.

    Raises:
        OSError: it cannot be made; says how to choose another place.
    """
    if os.name == "posix" and os.path.isdir("/tmp"):
        temporary = "/tmp"
    else:
        import tempfile

        temporary = tempfile.gettempdir()
    base = os.path.join(temporary, "experiments")
    try:
        os.makedirs(base, exist_ok=True)
        for number in itertools.count(int(time.time())):
            folder = os.path.join(base, str(number))
            try:
                os.mkdir(folder)
            except FileExistsError:
                continue
            return folder
    except OSError as error:
        message = f"no folder for this run in {base}: {error.strerror}; give output_dir=..."
        raise OSError(error.errno, message) from error
    raise AssertionError("unreachable: the numbers do not end")


def make_folder(path: str | os.PathLike[str]) -> bool:
    """Make a folder and those above it; False where it was there already.

    Any number of processes may do this at once.

    Raises:
        OSError: it cannot be made, or a file of that name is in the way.
    """
    try:
        os.makedirs(path)
    except FileExistsError:
        if os.path.isdir(path):
            return False
        message = f"output_dir {os.fspath(path)!r} is a file: give the name of a folder"
        raise FileExistsError(errno.EEXIST, message) from None
    return True


def move_aside(path: str) -> str:
    """Rename a file to its name and ".1", ".2", ...: the first that is free. Returns the new name."""
    for number in itertools.count(1):
        target = f"{path}.{number}"
        try:  # the name is taken first: a rename would replace what another process has put there
            os.close(os.open(target, CREATE, 0o666))
        except FileExistsError:
            continue
        try:
            os.replace(path, target)
        except BaseException:
            os.unlink(target)
            raise
        return target
    raise AssertionError("unreachable: the numbers do not end")


def move_folder_aside(path: str) -> str:
    """Rename a folder as `move_aside` does a file.

    Raises:
        FileNotFoundError: it is not there.
    """
    for number in itertools.count(1):
        target = f"{path}.{number}"
        try:
            os.mkdir(target)
        except FileExistsError:
            continue
        try:
            os.replace(path, target)  # over an empty folder
        except BaseException:
            os.rmdir(target)
            raise
        return target
    raise AssertionError("unreachable: the numbers do not end")
