"""Putting a folder in another one's place, in one step where the system can."""

from __future__ import annotations

import errno
import os
import shutil

_HERE = -100  # AT_FDCWD: paths are relative to the working directory
_EXCHANGE = 2  # RENAME_EXCHANGE
# A file system or kernel without the call, or one that forbids it (a container's filter).
_CANNOT = {errno.ENOSYS, errno.EINVAL, errno.EPERM, errno.EOPNOTSUPP}


def replace_folder(new: str, target: str) -> None:
    """Rename the folder `new` to `target`, and remove what was there before.

    On Linux by an exchange: at any instant a whole folder has the name. Elsewhere there is a gap of the time
    between two renames.

    Raises:
        OSError: `target` is as it was before.
    """
    if not os.path.lexists(target):
        os.rename(new, target)
        return
    if exchange(new, target):
        remove_tree(new)
        return
    old = new + "-old"
    os.rename(target, old)
    try:
        os.rename(new, target)
    except BaseException:
        os.rename(old, target)
        raise
    remove_tree(old)


def exchange(one: str, other: str) -> bool:
    """Let two paths change places in one step; False where the system cannot.

    Raises:
        OSError: it can, and refuses.
    """
    import ctypes

    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None) if os.name == "posix" else None
    if rename is None:
        return False
    if rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in _CANNOT:
        return False
    raise OSError(code, os.strerror(code), one, None, other)


def remove_tree(path: str) -> None:
    """Remove a file, a link or a folder with all that is in it; nothing where there is none.

    Raises:
        OSError: it cannot be removed.
    """
    try:
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)
    except FileNotFoundError:
        return
