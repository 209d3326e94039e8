"""Import paths: "module:Class.method" for what a program can import, and back."""

from __future__ import annotations

import sys
import types
from typing import Any, Final

from ._static import class_attribute, class_qualname, module_name, qualified_name

# Where frameworks show what they define elsewhere, or in C without saying where.
_SHOWN_IN: Final = (
    "builtins", "math", "numpy", "torch", "torch.nn.functional", "tensorflow", "tensorflow.nn",
)  # fmt: skip


class NoPath(Exception):
    """An object that cannot be imported by a path; the text is the reason."""


class NotFound(Exception):
    """A path that leads to nothing here; the text says what is missing."""


def import_path(obj: Any) -> str:
    """The path that `find` gives the very same object for.

    What the program itself defines has the module `__main__`.

    Raises:
        NoPath: there is none.
    """
    cls = type(obj)
    if cls is types.ModuleType:
        return f"{obj.__name__}:"
    if issubclass(cls, type):
        module, name = module_name(obj), class_qualname(obj)
    elif class_attribute(cls, "__call__") is not None and isinstance(getattr(obj, "__name__", None), str):
        module, name = getattr(obj, "__module__", None) or "", getattr(obj, "__qualname__", obj.__name__)
    else:
        raise NoPath(f"a {qualified_name(cls)} is made by code that is not known")
    if "<lambda>" in name:
        raise NoPath("a lambda has no import path: use a function of a module, or functools.partial")
    if "<locals>" in name:
        raise NoPath(f"{name} is defined in a function: move it to the top of its module")
    for where in (module, *_SHOWN_IN):
        for shown in (name, name.rpartition(".")[2]):
            if _is_same(_loaded(where, shown), obj):
                return f"{where}:{shown}"
    raise NoPath(f"{module or 'its module'} has something else, or nothing, under the name {name}")


def find(path: str) -> Any:
    """The object of a path; modules are imported for it.

    Raises:
        NotFound: there is none.
    """
    module, _, name = path.partition(":")
    try:
        import importlib

        found: Any = importlib.import_module(module)
    except ImportError as error:
        raise NotFound(f"{module} cannot be imported: {error}") from error
    for step in name.split(".") if name else ():
        try:
            found = getattr(found, step)
        except AttributeError:
            raise NotFound(f"{module} has no {name}") from None
    return found


def _loaded(module: str, name: str) -> Any:
    found: Any = sys.modules.get(module)
    for step in name.split("."):
        try:
            found = getattr(found, step)
        except AttributeError:
            return None
    return found


def _is_same(found: Any, obj: Any) -> bool:
    if type(found) is types.MethodType and type(obj) is types.MethodType:  # a class method: new at each look
        return found.__func__ is obj.__func__ and found.__self__ is obj.__self__
    if type(found) is types.BuiltinFunctionType and type(obj) is types.BuiltinFunctionType:
        return found is obj or (found == obj and isinstance(obj.__self__, type))
    return found is obj
