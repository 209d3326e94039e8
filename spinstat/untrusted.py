"""What a run folder from elsewhere may have done here: no link followed out of it, no import not allowed."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Sequence
from types import FunctionType, ModuleType
from typing import Any

_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
MAX_SHOWN = 200  # characters of a text from the folder in a message
BUILDING_BLOCKS = "torch.nn.modules"  # torch's layers: making one runs nothing of the folder's


class UntrustedError(ValueError):
    """Something in a run folder is malformed, or cannot be used without trusting it; the text says what."""


def printable(text: str) -> str:
    """Text from the folder, for a message: short, and without what terminals take for commands."""
    shown = text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "..."
    return escaped(shown)


def escaped(text: str) -> str:
    """Text in which control characters, which may move a terminal's cursor, are escapes."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def read_inside(root: str, path: str, most: int) -> bytes:
    """Read a file of a folder.

    Args:
        root: the folder.
        path: the file.
        most: the greatest number of bytes that is acceptable.

    Raises:
        FileNotFoundError: it is not there.
        UntrustedError: as check_inside; or it is larger.
    """
    check_inside(root, path)
    with open(path, "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise UntrustedError(f"{path} has more than the {most} bytes that such a file may have")
    return data


def check_inside(root: str, path: str) -> None:
    """Make sure that a path in a folder is a file, and that no link leads to it.

    Raises:
        FileNotFoundError: it is not there.
        UntrustedError: it is a link or behind one, or no file.
    """
    check_no_link(root, path)
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise UntrustedError(f"{path} is no file")


def check_no_link(root: str, path: str) -> None:
    """Make sure that no link leads to a path in a folder, which need not be there.

    Raises:
        UntrustedError: one does, or the path is not in the folder.
    """
    step = os.path.relpath(os.path.abspath(path), os.path.abspath(root))
    real = os.path.realpath(path)
    if step.split(os.sep)[0] == os.pardir or real != os.path.join(os.path.realpath(root), step):
        raise UntrustedError(f"{path} is a link, or behind one, to {real}: links in {root} are not followed")


class Importer:
    """Finds classes and functions by import path, such as "cores:MLPActorCritic".

    Args:
        allow: names of modules that may be imported, those within them included; None: all.
        folder: of the run. Nothing in it is imported, whatever sys.path says. None: no such folder.

    Raises:
        ValueError: allow has something that is no name of a module.
        UntrustedError: the folder, or one in it, is on sys.path: any import might come from there.
    """

    def __init__(self, allow: str | Sequence[str] | None = None, folder: str | None = None) -> None:
        self._all = allow is None
        self._allow = (allow,) if isinstance(allow, str) else tuple(allow or ())
        for name in self._allow:
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                raise ValueError(f"allow takes names of modules, such as 'my_package.cores', not {name!r}")
        self._folder = None if folder is None else os.path.realpath(folder)
        for entry in sys.path:
            if self._is_of_folder(entry or os.getcwd()):
                raise UntrustedError(
                    f"sys.path has {entry or os.getcwd()!r}, in the folder of the run: what is imported "
                    "might come from there. Run this from another folder"
                )

    def allows(self, module: str) -> bool:
        """Whether a module may be imported."""
        names = (*self._allow, BUILDING_BLOCKS)
        return self._all or any(module == name or module.startswith(name + ".") for name in names)

    def get(self, path: str) -> Any:
        """The class or function of an import path. Importing its module runs the module's code.

        Raises:
            UntrustedError: it is no such path, not allowed, in the folder of the run, or leads to something
                that was defined elsewhere.
            ImportError: the module is not there.
        """
        module, _, names = path.partition(":")
        if not (_NAME.fullmatch(module) and _NAME.fullmatch(names)) or "__" in path:
            raise UntrustedError(f"'{printable(path)}' is no import path, such as 'cores:ActorCritic'")
        value: Any = self.module(module)
        for name in names.split("."):
            value = getattr(value, name, None)
        if (
            not isinstance(value, type | FunctionType)
            or value.__module__ != module
            or value.__qualname__ != names
        ):
            raise UntrustedError(f"{path} is no class or function that is defined in {module}")
        return value

    def module(self, name: str) -> ModuleType:
        """Import a module, step by step from its package on.

        Raises:
            UntrustedError: not allowed, in the folder of the run, or no name of a module.
            ImportError: it is not there.
        """
        if not _NAME.fullmatch(name):
            raise UntrustedError(f"'{printable(name)}' is no name of a module")
        if not self.allows(name):
            raise UntrustedError(
                f"module {name} is not allowed: importing it runs its code, as installed here. If you trust "
                f"it, give allow=[{name!r}] (--allow {name})"
            )
        steps = name.split(".")
        for end in range(1, len(steps) + 1):
            module = self._import(".".join(steps[:end]), name)
        return module

    def _import(self, name: str, wanted: str) -> ModuleType:
        from importlib import import_module
        from importlib.util import find_spec

        module = sys.modules.get(name)
        if module is not None:
            places = [getattr(module, "__file__", None), *getattr(module, "__path__", ())]
        else:
            try:
                spec = find_spec(name)
            except ModuleNotFoundError:  # what it would be in is no package
                spec = None
            if spec is None:
                raise ModuleNotFoundError(
                    f"module {wanted} is not there: install the package that has {name}, or put its folder "
                    "in PYTHONPATH",
                    name=name,
                )
            origin = spec.origin if spec.has_location else None
            places = [origin, *(spec.submodule_search_locations or ())]
        for place in places:
            if place is not None and self._is_of_folder(place):
                raise UntrustedError(f"module {name} is in the folder of the run: {place} is not imported")
        return import_module(name)

    def _is_of_folder(self, path: str) -> bool:
        if self._folder is None:
            return False
        real = os.path.realpath(path)
        return real == self._folder or real.startswith(self._folder + os.sep)
