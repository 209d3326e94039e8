"""store() with objects that do what they like while they are read: they raise, store, log, drop keys, lie."""

from __future__ import annotations

import collections.abc
import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from spinstat import Moments
from spinstat._core import EpochStore

from .draw import Draw

KEYS = ("A", "B", "C", "a/b", "")


class Own(Exception):
    """What a hostile object raises."""


# What comes out of store(): the object's own errors, and refusals.
DOCUMENTED = (Own, TypeError, ValueError, OverflowError, ArithmeticError, BufferError)
ERRORS = (Own, TypeError, ValueError, OverflowError, AttributeError, KeyError, IndexError)


class Play:
    """One input: a store, and the objects that know it."""

    def __init__(self, data: bytes) -> None:
        self.draw = Draw(data)
        self.store = EpochStore()
        self.deep = 0  # calls of hostile objects within calls of hostile objects
        self.acts = 0  # calls of hostile objects so far
        self.arrays = 0  # how often one was read as an array, which may be another one the next time

    def plain(self) -> Any:
        """A value that runs none of the test's code."""
        draw = self.draw
        return draw.choice([
            draw.number, lambda: draw.integer(-(2**80), 2**80), draw.flag, lambda: np.float32(draw.number()),
            lambda: None, lambda: "1.5", lambda: b"12", lambda: 1j, lambda: Decimal("1.5"),
            lambda: Fraction(1, 3),
            lambda: np.full(draw.integer(0, 40), 1.5), lambda: np.array(["x"]), lambda: np.array([None, 1.0]),
            lambda: {"a": 1}, lambda: {1.0}, lambda: range(draw.integer(0, 5)), lambda: deque([1.0, 2]),
            lambda: np.datetime64("2020-01-01"), lambda: bytearray(8), lambda: memoryview(bytes(16)),
            lambda: np.ma.masked, lambda: type, lambda: float("1e400"), lambda: 10**400,
            lambda: Moments([1.0]), lambda: Decimal("NaN"), lambda: Decimal("sNaN"),
            lambda: np.longdouble("1e400"), lambda: np.void(b"ab"),
        ])()  # fmt: skip

    def value(self, depth: int = 0) -> Any:
        """Any value: a plain one, a hostile object, or a container of such."""
        kind = self.draw.integer(0, 5)
        if depth > 3 or kind < 2:
            return self.plain()
        if kind < 4:
            return self.hostile(depth)
        items = [self.value(depth + 1) for _ in range(self.draw.integer(0, 4))]
        return self.draw.choice([list, tuple, deque])(items)

    def act(self) -> Any:
        """What a hostile object does when it is asked: something to the store, then an answer or an error."""
        draw = self.draw
        self.acts += 1
        if self.deep > 3 or not draw.left():
            return 1.0
        self.deep += 1
        try:
            for _ in range(draw.integer(0, 2)):
                self.change(draw.choice(KEYS))
            if draw.integer(0, 3) == 0:
                raise draw.choice(ERRORS)("as it likes")
            return self.value(3)
        finally:
            self.deep -= 1

    def change(self, key: str) -> None:
        draw, store = self.draw, self.store
        draw.choice([
            lambda: None,
            lambda: store.store({key: draw.number()}),
            lambda: store.store({key: self.value(2)}),
            lambda: store._take(key),
            lambda: store._discard(key),
            lambda: store.epoch_dict.pop(key, None),
            lambda: store.epoch_dict.clear(),
            lambda: store.epoch_dict.__setitem__(key, [draw.number()]),
            lambda: self.edit(key),
            lambda: store._peek(key),
            lambda: setattr(store, "epoch_dict", {key: [1.0]}),
        ])()  # fmt: skip

    def edit(self, key: str) -> None:
        if not self.store.keep_values or key not in self.store.epoch_dict:
            return
        values, draw = self.store.epoch_dict[key], self.draw
        at = draw.integer(-3, 3)
        draw.choice([
            lambda: values.append(self.value(2)),
            lambda: values.insert(at, draw.number()),
            lambda: values.__delitem__(slice(at, None)),
            lambda: values.extend([draw.number()] * draw.integer(0, 40)),
            lambda: values.__setitem__(slice(0, 1), [self.value(2)]),
            lambda: values.clear(),
            lambda: list(values),
        ])()  # fmt: skip

    def hostile(self, depth: int) -> Any:
        """An object with some of the methods and attributes by which numbers and arrays are known."""
        draw = self.draw
        space: dict[str, Any] = {}
        methods: dict[str, Callable[..., Any]] = {
            "__float__": lambda _: self.act(),
            "__index__": lambda _: self.act(),
            "__int__": lambda _: self.act(),
            "__len__": lambda _: self.act() or draw.choice([0, 1, 3, 10, 2**62, -1]),
            "__getitem__": self.item,
            "__iter__": lambda _: self.items(),
            "__array__": lambda _, dtype=None, copy=None: self.array(),
            "__array_interface__": property(lambda _: self.interface()),  # type: ignore[dict-item]
            "__dlpack__": lambda _, **options: self.array(),
            "__dlpack_device__": lambda _: draw.choice([(1, 0), (2, 0), self.act]),
            "__getattr__": self.attribute,
            "__class__": property(lambda _: draw.choice([float, list, np.ndarray, dict])),  # type: ignore[dict-item]
            "dtype": property(lambda _: self.act()),  # type: ignore[dict-item]
            "shape": property(lambda _: self.act()),  # type: ignore[dict-item]
            "ndim": property(lambda _: self.act()),  # type: ignore[dict-item]
            "__eq__": lambda _, other: self.act(),
            "__hash__": lambda _: draw.integer(0, 3),
            "__del__": lambda _: self.quietly(),
            "__repr__": lambda _: self.act(),
            "flat_values": property(lambda _: self.act()),  # type: ignore[dict-item]
        }
        names = list(methods)
        for _ in range(draw.integer(1, 4)):
            name = draw.choice(names)
            space[name] = methods[name]
        base = draw.choice([object, object, object, float, int, list, str, np.ndarray, tuple])
        if draw.integer(0, 15) == 0:
            space["__module__"] = draw.choice(["tensorflow.x", "torch", "keras"])
        try:
            kind = type("Hostile", (base,), space)
            if base is object and draw.integer(0, 3) == 0:
                collections.abc.Sequence.register(kind)
            return kind((2,)) if base is np.ndarray else kind()
        except Exception:  # Python itself refuses such a class or object
            return None

    def item(self, _: Any, index: Any) -> Any:
        self.acts += 1
        if isinstance(index, int) and index < 5:
            return self.act()
        raise IndexError(index)

    def items(self) -> Iterator[Any]:
        self.acts += 1
        if self.draw.integer(0, 7) == 0:
            return self.act()  # type: ignore[no-any-return]
        return iter([self.act() for _ in range(self.draw.integer(0, 5))])

    def attribute(self, _: Any, name: str) -> Any:
        self.acts += 1
        if self.draw.flag():
            raise AttributeError(name)
        return self.act()

    def array(self) -> Any:
        self.arrays += 1
        return self.act()

    def interface(self) -> Any:
        draw = self.draw
        self.acts += 1
        self.arrays += 1
        if draw.flag():
            return self.act()
        memory = np.zeros(64)
        return {
            "version": draw.choice([3, 3, 2, "x"]),
            "typestr": draw.choice(["<f8", ">i4", "|b1", "<c16", "|O", "x"]),
            "shape": draw.choice([(2,), (), (0,), (2, 2), (-1,), 5, (1.5,)]),
            "data": draw.choice([bytes(64), memory, None, (memory.ctypes.data, True)]),
            "strides": draw.choice([None, (8,), (0,), (-8,)]), "keep": memory,
        }  # fmt: skip

    def quietly(self) -> None:
        try:
            self.act()
        except Exception:  # a finalizer that raises is printed, and ends nothing
            return


def one(data: bytes) -> None:
    """Some calls of store; after each, what is stored is whole."""
    play = Play(data)
    play.store.keep_values = not play.draw.integer(0, 3) == 0
    hook, sys.unraisablehook = sys.unraisablehook, lambda _: None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in range(6):
                if not play.draw.left():
                    break
                _call(play)
    finally:
        sys.unraisablehook = hook


def _call(play: Play) -> None:
    draw, store = play.draw, play.store
    values = {draw.choice(KEYS): play.value() for _ in range(draw.integer(1, 3))}
    acts = play.acts
    before = {key: _peek(store, key) for key in KEYS}  # which reads what the test's code has put into lists
    try:
        if draw.flag():
            store.store(values)
        else:
            store.store(**values)
    except DOCUMENTED:
        stored = False
    except (AttributeError, KeyError, IndexError):
        if play.acts == acts:
            raise
        stored = False
    else:
        stored = True
    for key, old in before.items():
        new = _peek(store, key)
        if play.acts == acts and old is not None and new is not None:  # all of it is stored, or nothing
            grown = new.count - old.count
            assert grown >= 0 if stored and key in values else grown == 0, (key, grown, values)
    for key in list(store.epoch_dict):
        _check(play, key)


def _peek(store: EpochStore, key: str) -> Moments | None:
    """The statistics of a key; None where a list that the caller assigned holds what is no number."""
    try:
        return store._peek(key)
    except (*DOCUMENTED, *ERRORS):
        return None


def _check(play: Play, key: str) -> None:
    """The statistics of a key are those of its list, where that runs none of the test's code."""
    store, acts = play.store, play.acts
    m = _peek(store, key)
    if not store.keep_values:
        assert m is not None
        return
    values = list(store.epoch_dict[key]) if key in store.epoch_dict else []
    if play.acts > acts or play.arrays:
        return
    if not all(type(x) is float or (type(x) is np.ndarray and x.dtype == np.float64) for x in values):
        return
    x = np.concatenate([np.ravel(x) for x in values]) if values else np.zeros(0)
    assert m is not None and m.count == x.size and m.nan_count == np.isnan(x).sum(), (key, values, m)
    if x.size and not m.nan_count:
        assert (m.min, m.max) == (x.min(), x.max()), (key, values, m)


