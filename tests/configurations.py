"""What the tests of config.json share: a strict reader, and a few things that configurations are made of."""

from __future__ import annotations

import collections
import dataclasses
import enum
import json
from typing import Any, NoReturn

from spinstat.config import dumps_config


def strict(text: str) -> Any:
    """Parse JSON without NaN, Infinity, repeated keys, half surrogate pairs, or anything but ASCII."""

    def no_constant(constant: str) -> NoReturn:
        raise AssertionError(f"{constant} is not JSON")

    def no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len(dict(pairs)) == len(pairs), f"repeated keys: {[key for key, _ in pairs]}"
        return dict(pairs)

    assert text.isascii()
    parsed = json.loads(text, parse_constant=no_constant, object_pairs_hook=no_repeats)
    json.dumps(parsed, ensure_ascii=False).encode("utf-8")
    return parsed


def saved(config: object) -> Any:
    """What a reader of config.json gets."""
    return strict(dumps_config(config))


def function() -> None: ...


def lambda_return() -> None: ...


class Net:
    """Stores nothing and has no str of its own."""


class Sized:
    def __init__(self) -> None:
        self.size, self.act, self.kid, self._cache = 3, function, Net(), "hidden"

    def __str__(self) -> str:
        return "Sized!"

    def method(self) -> None: ...


class Colour(enum.Enum):
    RED = 1


class Level(enum.IntEnum):
    HIGH = 3


class Mode(enum.StrEnum):
    FAST = "fast"


@dataclasses.dataclass
class Inner:
    rate: float = 0.1
    names: frozenset[str] = frozenset({"b", "a"})


@dataclasses.dataclass(slots=True)
class Outer:
    inner: Inner
    sizes: tuple[int, ...] = (64, 64)
    _private: int = 1


class Slotted:
    __slots__ = ("_hidden", "set_one", "unset")

    def __init__(self) -> None:
        self.set_one, self._hidden = 1, 2


Point = collections.namedtuple("Point", "x y")
