"""Values as JSON that they can be made from again: the same types, the same bits.

JSON's own types stand for themselves. Everything else is an object with one key, its kind:

    {"$float": "nan"}   {"$tuple": [...]}   {"$dict": [[key, value], ...]}   {"$array": {dtype, shape, data}}
    {"$scalar": {dtype, data}}              of NumPy
    {"$object": "torch.nn.modules.activation:Tanh"}                          whatever has an import path
    {"$call": {"of": path, "args": [...], "kwargs": {...}}}                  partials, enums, paths, sets, ...
    {"$unrecorded": "why"}                                                   what cannot be made again
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ._describe import clip, describe
from ._static import class_attribute, class_name, mro, qualified_name, stored_attributes
from .relaunch_objects import NoPath, NotFound, find, import_path

MAX_DEPTH: Final = 50
MAX_ITEMS: Final = 20_000  # of all arguments together
MAX_ARRAY: Final = 10_000  # elements
MAX_INT_BITS: Final = 2_000  # Python refuses to read longer ones in decimal

# How builtin values that JSON has no form for are made: a path, and the arguments.
_MADE_BY: Final[dict[str, tuple[str, Callable[[Any], list[Any]]]]] = {
    "complex": ("builtins:complex", lambda obj: [obj.real, obj.imag]),
    "bytes": ("builtins:bytes.fromhex", lambda obj: [obj.hex()]),
    "bytearray": ("builtins:bytearray.fromhex", lambda obj: [obj.hex()]),
    "range": ("builtins:range", lambda obj: [obj.start, obj.stop, obj.step]),
    "slice": ("builtins:slice", lambda obj: [obj.start, obj.stop, obj.step]),
    "set": ("builtins:set", lambda obj: [_Members(obj)]),
    "frozenset": ("builtins:frozenset", lambda obj: [_Members(obj)]),
    "collections.OrderedDict": ("collections:OrderedDict", lambda obj: [[*map(list, obj.items())]]),
    "decimal.Decimal": ("decimal:Decimal", lambda obj: [str(obj)]),
    "fractions.Fraction": ("fractions:Fraction", lambda obj: [obj.numerator, obj.denominator]),
    "datetime.timedelta": ("datetime:timedelta", lambda obj: [obj.days, obj.seconds, obj.microseconds]),
    "torch.device": ("torch:device", lambda obj: [str(obj)]),
    "tensorflow.python.framework.dtypes.DType": ("tensorflow:as_dtype", lambda obj: [obj.name]),
}
_NAMESPACES: Final = ("argparse.Namespace", "types.SimpleNamespace")


class _Members(list[Any]):
    """The members of a set, which have no order of their own."""


class Unrecorded(Exception):
    """A value that cannot be recorded; the text is the reason."""


def record_value(obj: object) -> Any:
    """JSON of a value, from which a Rebuilder makes an equal one. Never raises for what the value holds."""
    return _Recorder().record(obj)


class _Recorder:
    def __init__(self) -> None:
        self._open: set[int] = set()
        self._left = MAX_ITEMS

    def record(self, obj: Any) -> Any:
        self._left -= 1
        if id(obj) in self._open:
            return {"$unrecorded": "it lies within itself"}
        if len(self._open) > MAX_DEPTH or self._left < 0:
            return {"$unrecorded": "it is nested too deeply, or too large"}
        self._open.add(id(obj))
        try:
            return self._record(obj)
        except NoPath as error:
            return {"$unrecorded": str(error)}
        except Unrecorded as error:
            return {"$unrecorded": str(error)}
        except Exception as error:  # classes may do what they like when they are asked for their parts
            reason = f"{class_name(type(error))}: {clip(describe(error), 200)}"
            return {"$unrecorded": f"looking at it raised {reason}"}
        finally:
            self._open.discard(id(obj))

    def _record(self, obj: Any) -> Any:
        cls = type(obj)
        if obj is None or cls is bool or cls is str:
            return obj
        if cls is int:
            if obj.bit_length() <= MAX_INT_BITS:
                return obj
            return self._call("builtins:int", [hex(obj), 16])
        if cls is float:
            return obj if math.isfinite(obj) else {"$float": str(obj)}
        if cls is list or cls is _Members:
            items = [self.record(item) for item in obj]
            return items if cls is list else sorted(items, key=repr)
        if cls is tuple:
            return {"$tuple": [self.record(item) for item in obj]}
        if cls is dict:
            if all(type(key) is str and not key.startswith("$") for key in obj):
                return {key: self.record(value) for key, value in obj.items()}
            return {"$dict": [[self.record(key), self.record(value)] for key, value in obj.items()]}
        if issubclass(cls, np.generic) or cls is np.ndarray:
            return _array(obj)
        return self._made(obj, cls)

    def _made(self, obj: Any, cls: type) -> Any:
        name = qualified_name(cls)
        if name in _MADE_BY:
            path, arguments = _MADE_BY[name]
            return self._call(path, arguments(obj))
        if name.startswith("pathlib.") and class_attribute(cls, "__fspath__") is not None:
            return self._call(f"pathlib:{class_name(cls)}", [str(obj)])
        if name == "torch.dtype":
            return {"$object": str(obj).replace(".", ":", 1)}
        if issubclass(cls, np.dtype):
            if obj.names is not None or obj.subdtype is not None or obj.hasobject:
                raise Unrecorded(f"the dtype {obj} is not a plain one")
            return self._call("numpy:dtype", [obj.str])
        if cls is functools.partial:
            return self._call("functools:partial", [obj.func, *obj.args], obj.keywords)
        if any(qualified_name(base) == "enum.Enum" for base in mro(cls)):
            return self._call(import_path(cls), [obj._value_])
        if name in _NAMESPACES:
            return self._call(import_path(cls), [], stored_attributes(obj))
        if issubclass(cls, tuple) and mro(cls)[1] is tuple and class_attribute(cls, "_fields") is not None:
            return self._call(f"{import_path(cls)}._make", [list(obj)])
        if class_attribute(cls, "__dataclass_params__") is not None:
            return self._call(import_path(cls), [], _fields(obj, cls))
        return {"$object": import_path(obj)}

    def _call(self, of: str, args: list[Any], kwargs: dict[str, Any] | None = None) -> Any:
        call: dict[str, Any] = {"of": of, "args": [self.record(value) for value in args]}
        if kwargs:
            call["kwargs"] = {str(key): self.record(value) for key, value in kwargs.items()}
        return {"$call": call}


def _fields(obj: Any, cls: type) -> dict[str, Any]:
    """The arguments that a dataclass makes an equal object from."""
    fields = class_attribute(cls, "__dataclass_fields__")
    stored = stored_attributes(obj)
    if (
        not class_attribute(cls, "__dataclass_params__").init
        or class_attribute(cls, "__post_init__") is not None
        or stored.keys() != fields.keys()
        or not all(field.init for field in fields.values())
    ):
        raise Unrecorded(f"{class_name(cls)} has more to it than the arguments of a dataclass")
    return stored


def _array(obj: Any) -> Any:
    """JSON of an array, or a scalar, of NumPy."""
    array = np.asarray(obj)
    if array.dtype.hasobject or array.dtype.names is not None:
        raise Unrecorded(f"an array of {array.dtype} is not a plain one")
    if array.size > MAX_ARRAY:
        raise Unrecorded(f"an array of {array.size} elements is too large to record: load it from a file")
    plain = array.dtype.kind in "biuf" and array.dtype.itemsize <= 8
    data = record_value(array.ravel().tolist()) if plain else array.tobytes().hex()
    if isinstance(obj, np.generic):
        return {"$scalar": {"dtype": array.dtype.str, "data": data}}
    return {"$array": {"dtype": array.dtype.str, "shape": list(array.shape), "data": data}}


class Rebuilder:
    """Makes values from what `record_value` gave.

    Attributes:
        problems: what could not be made again, a sentence each, beginning with where it is.
    """

    def __init__(self) -> None:
        self.problems: list[str] = []

    def rebuild(self, value: Any, where: str) -> Any:
        """A value again; None, and a problem noted, where that is not possible."""
        if isinstance(value, list):
            return [self.rebuild(item, f"{where}[{at}]") for at, item in enumerate(value)]
        if not isinstance(value, dict):
            return value
        kind = next(iter(value), "")
        if not kind.startswith("$"):
            return {key: self.rebuild(item, f"{where}[{key!r}]") for key, item in value.items()}
        try:
            return self._make(kind, value[kind], where)
        except NotFound as error:
            return self._fail(where, str(error))
        except Exception as error:  # what is called raises what it likes
            return self._fail(where, f"making it again raised {type(error).__name__}: {error}")

    def _make(self, kind: str, content: Any, where: str) -> Any:
        if kind == "$unrecorded":
            return self._fail(where, f"was not recorded: {content}")
        if kind == "$float":
            return float(content)
        if kind == "$tuple":
            return tuple(self.rebuild(content, where))
        if kind == "$dict":
            pairs = [(self.rebuild(key, f"{where}, a key"), item) for key, item in content]
            return {key: self.rebuild(item, f"{where}[{key!r}]") for key, item in pairs}
        if kind == "$array":
            return _values(content, self.rebuild(content["data"], where)).reshape(content["shape"])
        if kind == "$scalar":
            return _values(content, self.rebuild(content["data"], where))[0]
        if kind == "$object":
            return find(content)
        if kind == "$call":
            before = len(self.problems)
            make = find(content["of"])
            args = self.rebuild(content["args"], where)
            kwargs = self.rebuild(content.get("kwargs", {}), where)
            return make(*args, **kwargs) if len(self.problems) == before else None
        return self._fail(where, f"{kind} is of a later version of spinstat")

    def _fail(self, where: str, reason: str) -> None:
        self.problems.append(f"{where}: {reason}")


def _values(content: dict[str, Any], data: Any) -> Any:
    dtype = np.dtype(content["dtype"])
    if isinstance(data, str):
        return np.frombuffer(bytes.fromhex(data), dtype).copy()
    return np.array(data, dtype)
