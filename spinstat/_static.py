"""What an object stores and what it is called, read without running any of its code.

Attributes are read where the interpreter keeps them, in instance dictionaries and slots: no property is
called, no `__getattr__`, and no `__class__` that pretends is believed. So an object that answers to any name,
or whose attributes raise, or start a simulator, can be looked at like any other.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any, Final

_ABSENT: Final = object()
_namespace: Callable[[type], types.MappingProxyType[str, Any]] = type.__dict__["__dict__"].__get__
_module: Callable[[type], object] = type.__dict__["__module__"].__get__

# These go past the metaclass, which may redefine them.
mro: Callable[[type], tuple[type, ...]] = type.__dict__["__mro__"].__get__
class_name: Callable[[type], str] = type.__dict__["__name__"].__get__
class_qualname: Callable[[type], str] = type.__dict__["__qualname__"].__get__


def class_attribute(cls: type, name: str) -> Any:
    """What the first class of the MRO holds under `name`, unbound; None where no class has it."""
    for base in mro(cls):
        found = _namespace(base).get(name, _ABSENT)
        if found is not _ABSENT:
            return found
    return None


def module_name(cls: type) -> str:
    """The module that defined `cls`; '' where the class does not say."""
    try:
        name = _module(cls)
    except AttributeError:
        return ""
    return str.__str__(name) if issubclass(type(name), str) else ""


def qualified_name(cls: type) -> str:
    """`module.Class`, or `Class` for a builtin, as a default repr shows it."""
    module = module_name(cls)
    return class_qualname(cls) if module in ("", "builtins") else f"{module}.{class_qualname(cls)}"


def name_of(obj: object) -> str | None:
    """The `__name__` of a function, method, class, module, or whatever stores one.

    None for everything else and for lambdas, whose name says nothing.
    """
    cls = type(obj)
    if issubclass(cls, type):
        return class_name(obj)  # type: ignore[arg-type]
    if cls is types.MethodType:
        return name_of(obj.__func__)  # type: ignore[attr-defined]
    name = stored_attributes(obj).get("__name__", _ABSENT)
    if name is _ABSENT:
        name = class_attribute(cls, "__name__")
        if _is_c_attribute(name):
            name = _read(name, obj)
    if not issubclass(type(name), str):
        return None
    text = str.__str__(name)
    return None if text in ("", "<lambda>") else text


def stored_attributes(obj: object) -> dict[Any, Any]:
    """A copy of what the instance stores: its dictionary, then those of its slots that are set."""
    stored = class_attribute(type(obj), "__dict__")
    values: Any = _read(stored, obj) if _is_c_attribute(stored) else None
    found: dict[Any, Any] = dict(list(dict.items(values))) if issubclass(type(values), dict) else {}
    for base in mro(type(obj)):
        members = _namespace(base)
        if "__slots__" not in members:
            continue
        for name, member in members.items():
            if type(member) is types.MemberDescriptorType and name not in found:
                value = _read(member, obj)
                if value is not _ABSENT:
                    found[name] = value
    return found


def _is_c_attribute(found: object) -> bool:
    return type(found) is types.GetSetDescriptorType or type(found) is types.MemberDescriptorType


def _read(descriptor: Any, obj: object) -> Any:
    """An attribute that C code gives; _ABSENT where it is not set or cannot be given."""
    try:
        return descriptor.__get__(obj, type(obj))
    except Exception:  # an unset slot raises AttributeError, extension types what their authors chose
        return _ABSENT
