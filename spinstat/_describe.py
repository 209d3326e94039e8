"""The text of any object: its str without memory addresses, the same in every process, never an exception.

Only an object's own `__str__` or `__repr__` is run; what it returns is freed of addresses, what it raises
becomes part of the text. Where the text would be Python's own (containers, partials, dataclasses, namespaces)
it is written here, with sets in sorted order, since their order differs from process to process.
"""

from __future__ import annotations

import functools
import re
import types
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final

from ._static import (
    class_attribute,
    class_name,
    class_qualname,
    mro,
    name_of,
    qualified_name,
    stored_attributes,
)

MAX_TEXT: Final = 4_000  # characters of one text: a small network prints fewer, a large one many more
MAX_TEXT_ITEMS: Final = 1_000  # items in one text: containers within containers grow exponentially
MAX_TEXT_DEPTH: Final = 20

# Past the attributes of the same names that a subclass may have.
_maxlen: Callable[[Any], int | None] = deque.__dict__["maxlen"].__get__
_func: Callable[[Any], object] = functools.partial.__dict__["func"].__get__
_args: Callable[[Any], tuple[Any, ...]] = functools.partial.__dict__["args"].__get__
_keywords: Callable[[Any], dict[Any, Any]] = functools.partial.__dict__["keywords"].__get__


def describe(obj: object) -> str:
    """Give `str(obj)` without memory addresses, at most MAX_TEXT characters of it.

    The same text comes in every process, unless the object's own `__str__` makes it differ. An object whose
    `__str__` raises or says nothing is told by its class.
    """
    return clip(_Describer().text(obj), MAX_TEXT)


def clip(text: str, limit: int) -> str:
    """Give `text`, cut to `limit` characters with a note of how many there were."""
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text)} characters)"


class _Describer:
    """Writes one text: remembers what is open, to see cycles, and how many items may still be written."""

    def __init__(self) -> None:
        self._open: set[int] = set()
        self._left = MAX_TEXT_ITEMS

    def text(self, obj: object) -> str:
        """What str() would give."""
        cls = type(obj)
        if issubclass(cls, str):
            return str.__str__(obj)
        own_str = class_attribute(cls, "__str__") is not object.__str__ and not issubclass(cls, type)
        return _own_text(obj, str) if own_str else self._repr(obj)

    def _repr(self, obj: object) -> str:
        """What repr() would give."""
        cls = type(obj)
        if cls is str:
            return repr(obj[:MAX_TEXT])  # type: ignore[index]
        if cls is float or obj is None or cls is bool:
            return repr(obj)
        if issubclass(cls, type):
            return f"<class '{qualified_name(obj)}'>"  # type: ignore[arg-type]
        write = _writer(cls)
        if write is None:
            return _own_text(obj, repr)
        if id(obj) in self._open:
            return f"<cycle {class_name(cls)}>"
        if len(self._open) >= MAX_TEXT_DEPTH:
            return f"<{class_name(cls)} ...>"
        self._open.add(id(obj))
        try:
            return write(self, obj)
        finally:
            self._open.discard(id(obj))

    def _items(self, items: Iterable[object], count: int) -> list[str]:
        if count > self._left:
            return [f"... {count} items"]
        self._left -= count
        return [self._repr(item) for item in items]

    def _joined(self, items: list[Any] | tuple[Any, ...]) -> str:
        return ", ".join(self._items(items, len(items)))

    def _arguments(self, pairs: dict[Any, Any]) -> str:
        """`name=value, ...` in the given order."""
        values = self._items(pairs.values(), len(pairs))
        if len(values) < len(pairs):
            return values[0]
        names = [name if type(name) is str else self._repr(name) for name in pairs]
        return ", ".join(f"{name}={value}" for name, value in zip(names, values, strict=True))

    # The writers read with the methods of the builtin class, since a subclass may have redefined them.

    def list_text(self, obj: list[Any]) -> str:
        return f"[{self._joined(list.__getitem__(obj, slice(None)))}]"

    def tuple_text(self, obj: tuple[Any, ...]) -> str:
        items = tuple.__getitem__(obj, slice(None))
        return f"({self._joined(items)}{',' if len(items) == 1 else ''})"

    def dict_text(self, obj: dict[Any, Any]) -> str:
        items = list(dict.items(obj))
        if len(items) > self._left:
            return f"{{... {len(items)} items}}"
        self._left -= len(items)
        written = [f"{self._repr(key)}: {self._repr(value)}" for key, value in items]
        return f"{{{', '.join(sorted(written))}}}"  # sorted: a dict made from a set has that set's order

    def set_text(self, obj: set[Any] | frozenset[Any]) -> str:
        members: list[Any] = list(set(obj))
        name = class_name(type(obj))
        if not members:
            return f"{name}()"
        if all(type(member) is int or (type(member) is float and member == member) for member in members):
            members.sort()
            inside = f"{{{self._joined(members)}}}"
        else:
            inside = f"{{{', '.join(sorted(self._members(members)))}}}"
        return inside if type(obj) is set else f"{name}({inside})"

    def _members(self, members: list[Any]) -> list[str]:
        """Texts of a set's members, each with the same allowance, since they come in no order that lasts."""
        if len(members) > self._left:
            return [f"... {len(members)} items"]
        self._left -= len(members)
        before = self._left
        texts, spent = [], 0
        for member in members:
            self._left = before // len(members)
            texts.append(self._repr(member))
            spent += before // len(members) - self._left
        self._left = before - spent
        return texts

    def deque_text(self, obj: deque[Any]) -> str:
        limit = "" if _maxlen(obj) is None else f", maxlen={_maxlen(obj)}"
        return f"{class_name(type(obj))}([{self._joined(list(deque.__iter__(obj)))}]{limit})"

    def partial_text(self, obj: functools.partial[Any]) -> str:
        parts = [self._repr(_func(obj))]
        if _args(obj):
            parts.append(self._joined(_args(obj)))
        if _keywords(obj):
            parts.append(self._arguments(_keywords(obj)))
        return f"{qualified_name(type(obj))}({', '.join(parts)})"

    def method_text(self, obj: types.MethodType) -> str:
        function = obj.__func__
        name = function.__qualname__ if type(function) is types.FunctionType else name_of(function)
        return f"<bound method {name or class_name(type(function))} of {self._repr(obj.__self__)}>"

    def namespace_text(self, obj: object) -> str:
        name = "namespace" if type(obj) is types.SimpleNamespace else class_name(type(obj))
        return f"{name}({self._arguments(stored_attributes(obj))})"

    def dataclass_text(self, obj: object) -> str:
        stored = stored_attributes(obj)
        fields: dict[str, Any] = class_attribute(type(obj), "__dataclass_fields__")
        shown = {name: stored[name] for name, field in fields.items() if field.repr and name in stored}
        return f"{class_qualname(type(obj))}({self._arguments(shown)})"


_Writer = Callable[[_Describer, Any], str]
_WRITERS: Final[dict[int, _Writer]] = {
    id(list.__repr__): _Describer.list_text,
    id(tuple.__repr__): _Describer.tuple_text,
    id(dict.__repr__): _Describer.dict_text,
    id(set.__repr__): _Describer.set_text,
    id(frozenset.__repr__): _Describer.set_text,
    id(deque.__repr__): _Describer.deque_text,
    id(functools.partial.__repr__): _Describer.partial_text,
    id(types.MethodType.__repr__): _Describer.method_text,
    id(types.SimpleNamespace.__repr__): _Describer.namespace_text,
}


def _writer(cls: type) -> _Writer | None:
    """Our writer in place of a repr that is Python's; None where the class has its own."""
    written = class_attribute(cls, "__repr__")
    if type(written) is not types.FunctionType:
        return _WRITERS.get(id(written))
    # argparse is told by its name, since it is not imported for this.
    if (written.__module__, written.__qualname__) == ("argparse", "_AttributeHolder.__repr__"):
        is_namespace = any(qualified_name(base) == "argparse.Namespace" for base in mro(cls))
        return _Describer.namespace_text if is_namespace else None
    # What @dataclass writes is compiled from a string and stands behind a guard against recursion.
    generated = written.__dict__.get("__wrapped__")
    if type(generated) is types.FunctionType and generated.__code__.co_filename == "<string>":
        return _Describer.dataclass_text if class_attribute(cls, "__dataclass_fields__") else None
    return None


def _own_text(obj: object, write: Callable[[object], str]) -> str:
    """What the object's own `__str__` or `__repr__` says, else what it is."""
    cls = type(obj)
    what = f"<{qualified_name(cls)} object>"
    if issubclass(cls, bytes):
        return bytes.__repr__(obj)  # str() of bytes is an error under `python -bb`
    if issubclass(cls, bytearray):
        return bytearray.__repr__(obj)
    own_str = write is str and class_attribute(cls, "__str__") is not object.__str__
    if not own_str and class_attribute(cls, "__repr__") is object.__repr__:
        return what
    try:
        text = str.__str__(write(obj))
    except Exception as error:  # whatever goes wrong in there, the configuration is saved
        return f"<{qualified_name(cls)} object, {write.__name__}() raised {class_name(type(error))}>"
    text = _without_addresses(text, id(obj))
    return text if text.strip() else what


# ' at 0x7f...' of default reprs. Fewer than five digits are no address: 'Register at 0x1F' stays.
_AT_ADDRESS: Final = re.compile(r" at 0x[0-9A-Fa-f]{5,16}\b")
# Other pointers, as ctypes prints them: from 4 GiB to 2^48, zero-padded on Windows. 64-bit constants stay.
_POINTER: Final = re.compile(r"\b0x0{0,7}[1-9A-Fa-f][0-9A-Fa-f]{8,11}\b")
_HANDLE: Final = re.compile(r"(?<=, handle )[0-9a-f]+")
_THREAD: Final = re.compile(r"(?<=started) \d{9,}|(?<=started daemon) \d{9,}")
_PROCESS: Final = re.compile(r"(?: pid=\d+)? parent=\d+(?= (?:initial|started|stopped|closed|unknown))")


def _without_addresses(text: str, address: int) -> str:
    """`text` without what differs between two runs of a program: addresses, thread and process numbers."""
    text = _AT_ADDRESS.sub("", text)
    if str(address) in text or f"{address:#x}" in text:  # seldom; and a pattern of its own is slow to compile
        text = re.sub(
            rf"\s*\bid=(['\"]?)(?:{address}|{address:#x})\b\1", "", text
        )  # as unittest.mock writes it
        text = re.sub(rf"\b{address}\b", "...", text)
    text = _HANDLE.sub("...", _POINTER.sub("0x...", text))
    return _PROCESS.sub("", _THREAD.sub("", text))
