"""How to make a module again without a pickle: the import path of its class, and its arguments, as JSON."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import numpy as np

from .untrusted import Importer, UntrustedError, printable

FORMAT = 1
MAX_DEPTH = 20  # of arguments within arguments
MAX_SPACE = 2**26  # elements of an observation
_DTYPE = re.compile(r"bool|u?int(8|16|32|64)|float(16|32|64)")
_SPACES: dict[str, tuple[str, ...]] = {  # the spaces of gymnasium and gym, and the arguments they are made of
    "Box": ("low", "high", "shape", "dtype"),
    "Discrete": ("n", "start"),
    "MultiDiscrete": ("nvec", "dtype"),
    "MultiBinary": ("n",),
}


@dataclass(frozen=True)
class Recipe:
    """What makes a module.

    Attributes:
        path: the import path of its class, such as "cores:MLPActorCritic".
        args, kwargs: the arguments of the class, as JSON holds them.
        training: whether the module is in the mode for training, in which new ones are.
    """

    path: str
    args: list[Any]
    kwargs: dict[str, Any]
    training: bool = True

    @classmethod
    def of(cls, kind: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Recipe:
        """Describe a call of a class.

        Raises:
            TypeError: the class cannot be imported by another program, or an argument cannot be described;
                says which, and the way out.
        """
        return cls(
            _path_of(kind),
            [_encode(value, f"args[{number}]") for number, value in enumerate(args)],
            {str(name): _encode(value, f"kwargs[{name!r}]") for name, value in kwargs.items()},
        )

    def to_json(self) -> str:
        """The recipe as text."""
        fields = {"format": FORMAT, "class": self.path, "args": self.args, "kwargs": self.kwargs}
        return json.dumps({**fields, "training": self.training}, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Recipe:
        """Read a recipe back.

        Raises:
            UntrustedError: it is none, or of a later version.
        """
        fields = load_json(text)
        if not isinstance(fields, dict) or fields.get("format") != FORMAT:
            raise UntrustedError(f"it has no format {FORMAT}: another version of spinstat wrote it, if any")
        expected = {"class": str, "args": list, "kwargs": dict, "training": bool}
        for key, kind in expected.items():
            if type(fields.get(key)) is not kind:
                raise UntrustedError(f"its {key!r} is {type(fields.get(key)).__name__}, not {kind.__name__}")
        return cls(fields["class"], fields["args"], fields["kwargs"], fields["training"])

    def build(self, importer: Importer, base: type[Any]) -> Any:
        """Make the module: import its class and call it.

        Args:
            importer: imports the class, and the classes and functions among the arguments.
            base: what the class must be derived from.

        Raises:
            UntrustedError: the class is not allowed or no such class, or it does not take the arguments.
            ImportError: its module, or one of the arguments', is not there.
        """
        kind = importer.get(self.path)
        if not (isinstance(kind, type) and issubclass(kind, base)):
            raise UntrustedError(f"{self.path} is no class of {base.__module__}.{base.__qualname__}'s")
        try:
            args = [_decode(value, importer) for value in self.args]
            kwargs = {name: _decode(value, importer) for name, value in self.kwargs.items()}
        except RecursionError as error:
            raise UntrustedError("its arguments hold too much within each other") from error
        try:
            module: Any = kind(*args, **kwargs)
        except Exception as error:  # a constructor raises what it likes
            text = f"{type(error).__name__}: {error}"
            raise UntrustedError(f"{self.path} cannot be made with the arguments given: {text}") from error
        module.train(self.training)
        return module


def load_json(text: str | bytes) -> Any:
    """json.loads of what may be hostile.

    Raises:
        UntrustedError: it is no JSON, holds NaN or Infinity, or too much within each other.
    """

    def refuse(name: str) -> None:
        raise ValueError(f"{name} is no JSON")

    try:
        return json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise UntrustedError(f"not JSON: {error}") from error


def _path_of(thing: Any) -> str:
    """The import path of a class or function.

    Raises:
        TypeError: there is none that another program could use.
    """
    module, name = thing.__module__, thing.__qualname__
    if module == "__main__":
        raise TypeError(
            f"{name} is defined in the script itself, where another program cannot import it: put it into a "
            "module of its own, and import it from there"
        )
    if "<" in name:
        what = "a lambda" if "<lambda>" in name else "defined inside a function"
        raise TypeError(f"{module}.{name} is {what}, not importable: define it at the top of a module")
    path = f"{module}:{name}"
    found: Any = sys.modules.get(module)
    for step in name.split("."):
        found = getattr(found, step, None)
    if found is not thing:
        raise TypeError(f"{path} is not what an import gives: use a class or function as its module has it")
    return path


def _encode(value: Any, where: str, depth: int = 0) -> Any:
    """A value as JSON holds it; what JSON does not know as an object with one key that begins with "$"."""
    if depth > MAX_DEPTH:
        raise TypeError(f"{where} has more than {MAX_DEPTH} levels")
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"$float": str(value)}
    if type(value) in (list, tuple):
        parts = [_encode(part, f"{where}[{number}]", depth + 1) for number, part in enumerate(value)]
        return parts if type(value) is list else {"$tuple": parts}
    if type(value) is dict:
        for key in value:
            if type(key) is not str or key.startswith("$"):
                raise TypeError(f"{where} has the key {key!r}: keys are text that does not begin with '$'")
        return {key: _encode(part, f"{where}[{key!r}]", depth + 1) for key, part in value.items()}
    if isinstance(value, type | FunctionType):
        try:
            return {"$import": _path_of(value)}
        except TypeError as error:
            raise TypeError(f"{where}: {error}") from None
    if _library_of(type(value)) and type(value).__name__ in _SPACES:
        return {"$space": _encode_space(value, where)}
    raise TypeError(
        f"{where} is a {type(value).__module__}.{type(value).__qualname__}, which cannot be written down: "
        "only None, numbers, text, lists, tuples, dicts, classes and functions of modules, and spaces of "
        f"gymnasium ({', '.join(_SPACES)}) can. Have the class take such arguments, and make the rest itself"
    )


def _library_of(kind: type) -> str | None:
    library, _, rest = kind.__module__.partition(".")
    return library if library in ("gymnasium", "gym") and rest.startswith("spaces") else None


def _encode_space(space: Any, where: str) -> dict[str, Any]:
    kind = type(space).__name__
    fields: dict[str, Any] = {"library": _library_of(type(space)), "kind": kind}
    for name in _SPACES[kind]:
        value: Any = getattr(space, name, 0)  # gym before 0.22 has no start
        if name == "dtype":
            value = np.dtype(value).name
        elif isinstance(value, np.ndarray):
            uniform = kind == "Box" and value.size > 0 and bool((value == value.flat[0]).all())
            value = value.flat[0] if uniform else value.tolist()
        fields[name] = _encode(value, f"{where}.{name}")
    return fields


def _decode(value: Any, importer: Importer) -> Any:
    if isinstance(value, list):
        return [_decode(part, importer) for part in value]
    if not isinstance(value, dict):
        return value
    tag = next((key for key in value if key.startswith("$")), None)
    if tag is None:
        return {key: _decode(part, importer) for key, part in value.items()}
    make = _TAGS.get(tag)
    if make is None or len(value) != 1:
        raise UntrustedError(f"an argument has '{printable(tag)}', which is not known here")
    try:
        return make(value[tag], importer)
    except (KeyError, TypeError, ValueError, OverflowError, AssertionError) as error:
        if isinstance(error, UntrustedError):
            raise
        raise UntrustedError(f"an argument has a {tag!r} that is none: {error!r}") from error


def _decode_import(path: Any, importer: Importer) -> Any:
    if not isinstance(path, str):
        raise UntrustedError(f"'{printable(str(path))}' is no import path")
    return importer.get(path)


def _decode_tuple(parts: Any, importer: Importer) -> Any:
    return tuple([_decode(part, importer) for part in parts])


def _decode_float(text: Any, importer: Importer) -> Any:
    if text not in ("inf", "-inf", "nan"):
        raise UntrustedError(f"'{printable(str(text))}' is none of inf, -inf and nan")
    return float(text)


def _decode_space(fields: Any, importer: Importer) -> Any:
    from importlib import import_module

    library, kind = fields["library"], fields["kind"]
    if library not in ("gymnasium", "gym") or kind not in _SPACES:
        raise UntrustedError(f"{printable(f'{library}, {kind}')} is no space of gymnasium or gym")
    options = {name: _decode(fields[name], importer) for name in _SPACES[kind]}
    if "dtype" in options:
        if not _DTYPE.fullmatch(options["dtype"]):
            raise UntrustedError(f"'{printable(options['dtype'])}' is no dtype of a space")
        options["dtype"] = np.dtype(options["dtype"]).type
    if kind == "Box":
        if math.prod(options["shape"]) > MAX_SPACE:
            raise UntrustedError(f"a space of shape {options['shape']} is larger than any observation")
        low, high = (np.asarray(options[name], options["dtype"]) for name in ("low", "high"))
        options["low"], options["high"] = (np.broadcast_to(each, options["shape"]) for each in (low, high))
    if options.get("start") == 0:
        del options["start"]
    return getattr(import_module(f"{library}.spaces"), kind)(**options)


_TAGS: dict[str, Callable[[Any, Importer], Any]] = {
    "$float": _decode_float,
    "$import": _decode_import,
    "$space": _decode_space,
    "$tuple": _decode_tuple,
}
