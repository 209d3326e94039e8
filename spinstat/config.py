"""JSON of anything: what `save_config` writes into config.json.

JSON's own types stay what they are. NumPy scalars become numbers and bools, arrays and tensors lists, or a
summary where they are large. Functions, classes and modules become their names. Other objects become
`{str(obj): {attribute: value}}` with their public attributes, one level deep; those that store none, their
`str`. The result is strict JSON, holds no memory addresses, and is the same in every process.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from itertools import groupby
from types import FunctionType
from typing import Any, Final, TypeAlias

import numpy as np

from ._describe import clip, describe
from ._elements import NO_ARRAY, elements
from ._static import class_attribute, class_name, module_name, mro, name_of, qualified_name, stored_attributes

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

MAX_VALUES: Final = 20_000  # of a configuration; a container that goes beyond is told by its size
MAX_OBJECT_VALUES: Final = 1_000  # of one object's attributes
MAX_DEPTH: Final = 50  # of containers in containers, well inside Python's own limit on recursion
MAX_STRING: Final = 100_000  # characters
MAX_INT_BITS: Final = 2_000  # longer ints are written in hexadecimal: Python refuses to read them in decimal

_NOT_PLAIN: Final = object()
# JSON's grammar takes half of a surrogate pair, many of its readers do not.
_LONE_SURROGATE: Final = re.compile("[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]")
# Classes that hold settings: within an object they keep their attributes, others show their str alone.
_RECORD_MARKS: Final = ("__dataclass_fields__", "__attrs_attrs__", "__pydantic_fields__")
_RECORDS: Final = ("argparse.Namespace", "types.SimpleNamespace")
_LOGGING_PACKAGES: Final = ("logging", "spinstat", "spinup")


def convert_json(obj: object) -> Json:
    """Give a copy of any object that is ready for `json.dumps`, as strict JSON.

    Args:
        obj: anything. It is not changed, and no code of it is run but `__str__`, or `__repr__` where its
            class has no `__str__` of its own.

    Returns:
        None, bool, int, finite float, str, or lists and dicts of these. Non-finite floats are the strings
        "NaN", "Infinity" and "-Infinity". Dict keys are strings in sorted order, numbers by their value;
        where two keys read alike, all but one show their type as well. A container within itself is
        "<cycle ItsClass>"; what is too large or nested too deeply is told by its type and size.

    Examples:
        >>> import numpy as np
        >>> from spinstat.utils.serialization_utils import convert_json
        >>> convert_json({"lr": np.float32(0.5), "sizes": (64, 64), "limit": float("inf"), 3: None})
        {'3': None, 'limit': 'Infinity', 'lr': 0.5, 'sizes': [64, 64]}
    """
    return _Converter().convert(obj)


def dumps_config(config: object, exp_name: object = None) -> str:
    """Give the text of config.json: sorted, indented by four spaces, a colon and a tab after keys, ASCII.

    Args:
        config: the configuration, usually a dict such as `locals()`. It is not changed.
        exp_name: written as "exp_name", over an entry of that name, unless it is None.

    Raises:
        TypeError: exp_name is given, and config does not become a JSON object that could hold it.
    """
    if exp_name is None:
        converted = convert_json(config)
    elif issubclass(type(config), dict):
        # Added before the conversion, which keeps keys apart that only read alike.
        entries: list[tuple[Any, Any]] = list(dict.items(config))  # type: ignore[arg-type]
        others = [entry for entry in entries if not _is_str(entry[0], "exp_name")]
        converted = _Converter().mapping(config, [*others, ("exp_name", exp_name)])
    else:
        converted = convert_json(config)
        if not isinstance(converted, dict):
            raise TypeError(
                f"save_config needs a dict to write exp_name={clip(describe(exp_name), 100)!r} into, but got "
                f"a configuration of type {class_name(type(config))}: pass a dict, such as locals(), or make "
                "the logger without exp_name"
            )
        converted = dict(sorted({**converted, "exp_name": convert_json(exp_name)}.items()))
    return json.dumps(converted, indent=4, separators=(",", ":\t"), allow_nan=False)


def is_json_serializable(v: object) -> bool:
    """Tell whether `json.dumps(v)` works as it is, without convert_json.

    Args:
        v: anything.

    Examples:
        >>> from spinstat.utils.serialization_utils import is_json_serializable
        >>> is_json_serializable([1, "a"]), is_json_serializable({1, 2})
        (True, False)
    """
    try:
        json.dumps(v)
    except Exception:  # subclasses of dict, list and str may raise anything; all of it means no
        return False
    return True


class _Converter:
    """Converts one configuration: remembers what is open, to see cycles, and how much may still come."""

    def __init__(self) -> None:
        self._open: set[int] = set()
        self._left = MAX_VALUES

    def convert(self, obj: Any, depth: int = 0, inside_object: bool = False) -> Json:
        """JSON of obj, `depth` containers deep. Inside an object, further objects are only described."""
        cls = type(obj)
        plain = _plain(obj)
        if plain is not _NOT_PLAIN:
            return plain  # type: ignore[return-value]
        if issubclass(cls, dict):
            return self.mapping(obj, list(dict.items(obj)), depth, inside_object)
        if issubclass(cls, list):
            return self._list(obj, list.__getitem__(obj, slice(None)), depth, inside_object)
        if issubclass(cls, tuple):
            return self._list(obj, list(tuple.__getitem__(obj, slice(None))), depth, inside_object)
        values = elements(obj)
        if isinstance(values, list):
            return self._list(obj, values, depth, inside_object)
        if values is not NO_ARRAY:  # of an array without dimensions; it may hold any object, itself too
            return self._enter(obj, 1, depth, lambda: self.convert(values, depth + 1, inside_object))
        name = name_of(obj)
        return self._object(obj, depth, inside_object) if name is None else _string(name)

    def _enter(self, obj: object, count: int, depth: int, build: Callable[[], Json]) -> Json:
        """build(), unless obj lies within itself, or its `count` items are too many or too deep."""
        name = class_name(type(obj))
        if id(obj) in self._open:
            return _string(f"<cycle {name}>")
        if depth > MAX_DEPTH or (
            count > self._left and depth > 0
        ):  # the configuration itself is always written
            return _string(f"<{name} of {count} items>")
        self._left -= count
        self._open.add(id(obj))
        try:
            return build()
        finally:
            self._open.discard(id(obj))

    def _list(self, obj: object, values: list[Any], depth: int, inside_object: bool) -> Json:
        def build() -> Json:
            return [self.convert(value, depth + 1, inside_object) for value in values]

        return self._enter(obj, len(values), depth, build)

    def mapping(
        self, obj: object, items: list[tuple[Any, Any]], depth: int = 0, inside_object: bool = False
    ) -> Json:
        """JSON of obj, which holds these (key, value)."""

        def build() -> Json:
            rows = [
                (text, class_name(type(key)), self.convert(value, depth + 1, inside_object))
                for text, key, value in _sorted_by_key(items)
            ]
            return _told_apart(rows)

        return self._enter(obj, len(items), depth, build)

    def _object(self, obj: object, depth: int, inside_object: bool) -> Json:
        if id(obj) in self._open:
            return _string(f"<cycle {class_name(type(obj))}>")
        text = _string(describe(obj))
        if _says_all(obj) or (inside_object and not _is_record(type(obj))):
            return text
        public = [item for item in stored_attributes(obj).items() if _is_public(item[0])]
        if not public or depth > MAX_DEPTH or self._left <= 0:
            return text
        before = self._left
        self._left = allowed = min(before, MAX_OBJECT_VALUES)
        try:
            return {text: self.mapping(obj, public, depth, inside_object=True)}
        finally:
            self._left += before - allowed


def _plain(obj: Any) -> object:
    """JSON of None, a bool, number or str, of a subclass of these, or of a NumPy scalar; else _NOT_PLAIN."""
    cls = type(obj)
    if obj is None or cls is bool:
        return obj
    if issubclass(cls, str):
        return _string(str.__str__(obj))
    if issubclass(cls, int):
        return _integer(int.__pos__(obj))  # the plain int in a subclass; likewise below
    if issubclass(cls, float):
        return _number(float.__pos__(obj))
    if not issubclass(cls, np.generic) or issubclass(cls, (np.datetime64, np.timedelta64)):
        return _NOT_PLAIN
    value = np.generic.item(obj)
    if type(value) is np.longdouble:
        number = float(value)
        return _number(number) if math.isfinite(number) == bool(np.isfinite(value)) else describe(value)
    return _NOT_PLAIN if issubclass(type(value), np.generic) else _plain(value)


def _string(text: str) -> str:
    return _LONE_SURROGATE.sub(lambda half: f"\\u{ord(half[0]):04x}", clip(text, MAX_STRING))


def _integer(value: int) -> int | str:
    return value if value.bit_length() <= MAX_INT_BITS else _string(hex(value))


def _number(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _sorted_by_key(items: list[tuple[Any, Any]]) -> list[tuple[str, Any, Any]]:
    """(text of the key, key, value), ordered by the keys alone: numbers by value, others by text."""
    rows = [(_plain(key), key, value) for key, value in items]
    if all(isinstance(plain, (int, float)) for plain, _, _ in rows):
        rows.sort(key=lambda row: row[0])  # type: ignore[arg-type, return-value]
        return [(json.dumps(plain), key, value) for plain, key, value in rows]
    texts = [(_key_text(plain, key), key, value) for plain, key, value in rows]
    return sorted(texts, key=lambda row: (row[0], class_name(type(row[1]))))


def _key_text(plain: object, key: object) -> str:
    """A dict key as JSON writes it; plain is `_plain(key)`."""
    if plain is _NOT_PLAIN:
        return _string(name_of(key) or describe(key))
    return plain if isinstance(plain, str) else json.dumps(plain)


def _told_apart(rows: list[tuple[str, str, Json]]) -> dict[str, Json]:
    """A dict of rows (key, class of the original key, value) in which keys that read alike lose nothing."""
    told = {text: value for text, _, value in rows}
    if len(told) == len(rows):
        return told
    # A str keeps its text. The others' order must not be the dict's, which may have been that of a set.
    rows = sorted(rows, key=lambda row: (row[0], row[1] != "str", row[1], json.dumps(row[2], sort_keys=True)))
    for text, same in groupby(rows, key=lambda row: row[0]):
        counts: dict[str, int] = {}
        for place, (_, kind, value) in enumerate(same):
            name = text
            while place > 0 and name in told:
                counts[kind] = counts.get(kind, 0) + 1
                name = f"{text} ({kind})" if counts[kind] == 1 else f"{text} ({kind} {counts[kind]})"
            told[name] = value
    return dict(sorted(told.items()))


def _is_str(key: Any, text: str) -> bool:
    return issubclass(type(key), str) and str.__eq__(key, text)


def _is_public(name: object) -> bool:
    return not (issubclass(type(name), str) and str.startswith(name, "_"))  # type: ignore[arg-type]


def _says_all(obj: object) -> bool:
    """Whether the str is all there is to show: of a lambda, a UUID, a logger (its insides are the run)."""
    cls = type(obj)
    if cls is FunctionType or qualified_name(cls) == "uuid.UUID":
        return True
    loggers = (base for base in mro(cls) if class_name(base) == "Logger")
    return any(module_name(base).partition(".")[0] in _LOGGING_PACKAGES for base in loggers)


def _is_record(cls: type) -> bool:
    marked = any(class_attribute(cls, mark) is not None for mark in _RECORD_MARKS)
    return marked or any(qualified_name(base) in _RECORDS for base in mro(cls))
