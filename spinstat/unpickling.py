"""Reading pickles of a run back, with errors that tell what is missing and what to do.

Pickles run code: read only those of runs that you trust.
"""

from __future__ import annotations

import os
import pickle
import re
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

# What the interpreters say of a name that a module does not have: in unpickling, and elsewhere.
_NO_ATTRIBUTE = re.compile(r"Can't get attribute '([^']+)' on <module '([^']+)'")
_NO_ATTRIBUTE_OF = re.compile(r"[Mm]odule '([^']+)' has no attribute '([^']+)'")


class MissingClassError(ImportError):
    """A pickle needs a class, function or module that cannot be imported here.

    Attributes:
        name: the class or function; None where a whole module is missing.
        module: where it was when the pickle was written.
        path: the file.
    """

    def __init__(self, path: str, module: str, name: str | None) -> None:
        needed = f"module {module}" if name is None else f"{name} of module {module}"
        message = f"{path} needs {needed}, which is not there. {_way_out(module, name)}"
        super().__init__(message, name=name, path=path)
        self.module = module


def load_pickle(path: str) -> object:
    """What joblib.dump or pickle.dump wrote: with joblib where that is installed, else with pickle.

    Raises:
        MissingClassError: the pickle needs something that cannot be imported.
        Exception: whatever else is wrong with the file; a note names it.
    """
    try:
        import joblib
    except ImportError:
        return explained(_load_plain, path)
    return explained(joblib.load, path)


def _load_plain(path: str) -> object:
    with open(path, "rb") as file:
        return pickle.load(file)


def explained(load: Callable[[str], T], path: str) -> T:
    """load(path), where errors name the file and, for a missing class or module, the ways out.

    Raises:
        ValueError: the file is empty.
        MissingClassError, Exception: as load_pickle.
    """
    try:
        if os.path.getsize(path) == 0:
            raise ValueError(f"{path} is empty (0 bytes): what was to be saved there was not")
        return load(path)
    except (ImportError, AttributeError) as error:
        missing = _missing(error)
        if missing is None:
            error.add_note(f"while loading {path}")
            raise
        raise MissingClassError(path, *missing) from error
    except Exception as error:
        if path not in str(error):
            error.add_note(f"while loading {path}")
        raise


def _missing(error: ImportError | AttributeError) -> tuple[str, str | None] | None:
    """The module and the name in it that an error is about; the name is None for the module itself."""
    if isinstance(error, ModuleNotFoundError) and error.name:
        return error.name, None
    found = _NO_ATTRIBUTE.search(str(error))
    if found:  # the script that runs calls itself by another name where it was started with -m
        return ("__main__" if found[2].endswith(".__main__") else found[2]), found[1]
    found = _NO_ATTRIBUTE_OF.search(str(error))
    return (found[1], found[2]) if found else None


def _way_out(module: str, name: str | None) -> str:
    package = module.partition(".")[0]
    if module.startswith("numpy._core"):
        return "It was written with NumPy 2: install numpy>=2 to read it."
    if package == "spinup":
        return "The run is Spinning Up's own: install Spinning Up, or put its folder in PYTHONPATH."
    if package in ("__main__", "__mp_main__"):
        return (
            "It was defined in the script that trained. Either load from a script that has it, too: by "
            f"'from your_training_script import {name}', or by its definition. Or save again with the class "
            "in a module of its own, or with cloudpickle installed, which saves the class with it."
        )
    if name is None:
        return f"Install the package that has {package}, or put its folder in PYTHONPATH."
    return (
        f"The {package} found here is another than the one that wrote the file: install the version of then, "
        f"or give {module} the name {name} again before loading."
    )
