"""Objects that fight back: their code is not run, what they raise is told, and the bytes stay the same."""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import importlib.abc
import importlib.util
import sys
import threading
import types
from typing import Any, NoReturn
from unittest import mock

import numpy as np
import pytest
from configurations import Net, saved, strict
from conftest import RunPython

from spinstat.config import dumps_config


class CalledError(Exception):
    """Raised by code that converting a configuration has no reason to run."""


def never(*_args: object, **_kwargs: object) -> NoReturn:
    raise CalledError


class RaisingStr:
    def __init__(self) -> None:
        self.x = 1

    __str__ = never


class RaisingEverything:
    def __init__(self) -> None:
        self.__dict__["x"] = 1

    __getattribute__ = __eq__ = __bool__ = __len__ = __iter__ = __format__ = __float__ = __index__ = never
    __hash__ = __repr__ = __reduce__ = __contains__ = __getitem__ = __int__ = __call__ = never


class AnyAttribute:
    """Has every attribute one asks for, `__name__`, `shape`, `dtype` and `tolist` among them."""

    def __getattr__(self, name: str) -> AnyAttribute:
        return self

    def __call__(self, *_args: object) -> AnyAttribute:
        return self


class RaisingProperties:
    def __init__(self) -> None:
        self.value = 1

    started = property(never)
    __name__ = property(never)
    __len__ = property(never)


class RaisingDict:
    __dict__ = property(never)
    __class__ = property(never)


class Pretender:
    """Says that it is a dict."""

    __class__ = dict  # type: ignore[assignment]


class Metaclass(type):
    __getattribute__ = __instancecheck__ = __subclasscheck__ = __eq__ = __repr__ = never
    __hash__ = type.__hash__


class RaisingClass(metaclass=Metaclass):
    pass


class RaisingDictionary(dict):  # type: ignore[type-arg]
    items = keys = values = __iter__ = __len__ = __getitem__ = __bool__ = __repr__ = never


class RaisingList(list):  # type: ignore[type-arg]
    __iter__ = __len__ = __getitem__ = __bool__ = __repr__ = never


class RaisingTuple(tuple):  # type: ignore[type-arg]
    __iter__ = __len__ = __getitem__ = __bool__ = __repr__ = never


class RaisingString(str):
    __str__ = __repr__ = __len__ = __eq__ = __lt__ = encode = never
    __hash__ = str.__hash__


class RaisingInt(int):
    __repr__ = __str__ = __int__ = __index__ = __bool__ = __eq__ = __lt__ = never
    __hash__ = int.__hash__


class RaisingFloat(float):
    __repr__ = __str__ = __float__ = __bool__ = __eq__ = __lt__ = never
    __hash__ = float.__hash__


class RaisingArray(np.ndarray):
    tolist = __array_finalize__ = view = astype = __repr__ = never
    shape = dtype = size = property(never)


class NotAString:
    def __str__(self) -> str:
        return 3  # type: ignore[return-value]


class Endless:
    def __str__(self) -> str:
        return str(self)


class Addressed:
    """Prints its own address in every way that classes do."""

    def __repr__(self) -> str:
        own = f"A at {id(self):#x}, {id(self)}, {id(self):#x}, id={id(self)}"
        return f"{own}; register at 0x1F of 0x9E3779B97F4A7C15"


def _half_made() -> object:
    return Slots.__new__(Slots)


@dataclasses.dataclass(slots=True)
class Slots:
    unset: int


def _array() -> np.ndarray[Any, Any]:
    return np.ndarray.__new__(np.ndarray, (2,), buffer=np.array([1.0, 2.0]))


def _raising_array() -> object:
    array = _array()
    finalize, RaisingArray.__array_finalize__ = RaisingArray.__array_finalize__, lambda *_: None  # type: ignore[assignment]
    try:
        return array.view(RaisingArray)
    finally:
        RaisingArray.__array_finalize__ = finalize


HERE = __name__
CASES: dict[str, tuple[object, object]] = {
    "str raises": (RaisingStr(), {f"<{HERE}.RaisingStr object, str() raised CalledError>": {"x": 1}}),
    "everything raises": (
        object.__new__(RaisingEverything),
        f"<{HERE}.RaisingEverything object, repr() raised CalledError>",
    ),
    "any attribute": (AnyAttribute(), f"<{HERE}.AnyAttribute object>"),
    "properties raise": (RaisingProperties(), {f"<{HERE}.RaisingProperties object>": {"value": 1}}),
    "__dict__ and __class__ raise": (RaisingDict(), f"<{HERE}.RaisingDict object>"),
    "pretends to be a dict": (Pretender(), f"<{HERE}.Pretender object>"),
    "a class whose metaclass raises": (RaisingClass, "RaisingClass"),
    "an object whose metaclass raises": (RaisingClass(), f"<{HERE}.RaisingClass object>"),
    "a dict whose methods raise": (RaisingDictionary(a=1), {"a": 1}),
    "a list whose methods raise": (RaisingList([1, 2]), [1, 2]),
    "a tuple whose methods raise": (RaisingTuple([1, 2]), [1, 2]),
    "a str whose methods raise": (RaisingString("text"), "text"),
    "an int whose methods raise": (RaisingInt(3), 3),
    "a float whose methods raise": (RaisingFloat("nan"), "NaN"),
    "an array whose methods raise": (_raising_array(), [1.0, 2.0]),
    "keys whose methods raise": ({RaisingString("b"): 1, RaisingInt(2): 2}, {"b": 1, "2": 2}),
    "number keys whose methods raise": ({RaisingInt(20): 2, RaisingFloat(3.0): 3}, {"3.0": 3, "20": 2}),
    "str gives no string": (NotAString(), f"<{HERE}.NotAString object, str() raised TypeError>"),
    "str never ends": (Endless(), f"<{HERE}.Endless object, str() raised RecursionError>"),
    "a slot that is not set": (_half_made(), "Slots()"),
    "a mock": (mock.MagicMock(name="env"), {"<MagicMock name='env'>": {"method_calls": []}}),
    "a partial of a mock": (functools.partial(mock.Mock()), "functools.partial(<Mock>)"),
    "addresses": (Addressed(), "A, ..., 0x...,; register at 0x1F of 0x9E3779B97F4A7C15"),
    "a pointer": (ctypes.CDLL(None), "<CDLL 'None', handle ...>"),
    "a lock": (threading.Lock(), "<unlocked _thread.lock object>"),
    "a weak reference to itself in a module": (types.ModuleType("m"), "m"),
}  # fmt: skip


@pytest.mark.parametrize(("value", "expected"), CASES.values(), ids=CASES)
def test_E8_the_object_is_told_and_none_of_its_code_is_run(value: object, expected: object) -> None:
    assert saved({"k": value, "in": [(value,)]}) == {"k": expected, "in": [[expected]]}


def test_exp_name_is_added_to_a_dict_whose_methods_raise() -> None:
    assert strict(dumps_config(RaisingDictionary(a=1), "e")) == {"a": 1, "exp_name": "e"}


def test_a_library_whose_import_was_put_off_is_not_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    class Loader(importlib.abc.Loader):
        exec_module = never

    spec = importlib.util.spec_from_loader("tensorflow", importlib.util.LazyLoader(Loader()))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setitem(sys.modules, "tensorflow", module)
    assert saved([Net()]) == ["<configurations.Net object>"]
    with pytest.raises(CalledError):
        _ = module.anything


def test_interrupts_pass_through() -> None:
    class Interrupted:
        def __str__(self) -> str:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        saved({"k": Interrupted()})


@pytest.mark.parametrize("module", ["torch", "tensorflow", "numpy.ma"])
@pytest.mark.parametrize(
    "stub", [None, 3, types.ModuleType("stub"), types.SimpleNamespace(Tensor=Net)], ids=str
)
def test_what_stands_in_for_a_library_in_sys_modules_is_no_problem(
    monkeypatch: pytest.MonkeyPatch, module: str, stub: Any
) -> None:
    monkeypatch.setitem(sys.modules, module, stub)
    assert saved({"a": np.arange(2), "b": Net()}) == {"a": [0, 1], "b": "<configurations.Net object>"}


PROGRAM = """
import argparse, collections, dataclasses, functools, os, subprocess, sys, threading, multiprocessing, weakref
import numpy as np, torch, gymnasium
from spinstat.config import dumps_config

names = [os.urandom(3).hex() for _ in range(1000)]  # so that addresses differ too
@dataclasses.dataclass
class Settings:
    tags: set = dataclasses.field(default_factory=lambda: {"alpha", "beta", "gamma", "delta"})
    by_tag: dict = dataclasses.field(default_factory=lambda: {k: 1 for k in {"alpha", "beta", "gamma"}})
class Thing:
    def run(self): pass
thing, words = Thing(), {"alpha", "beta", "gamma", "delta", "epsilon"}
thread = threading.Thread(target=threading.Event().wait, daemon=True); thread.start()
process = multiprocessing.Process(target=print)
env = gymnasium.make("CartPole-v1")
config = {
    "f": lambda x: x, "p": functools.partial(print, 1, thing, key=words), "act": torch.nn.Tanh(), "env": env,
    "space": env.observation_space, "net": torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU()),
    "words": words, "sets": {frozenset(words), frozenset("ab")}, "settings": Settings(), "thing": thing,
    "method": functools.partial(thing.run), "ns": argparse.Namespace(words=words), "thread": thread,
    "queue": collections.deque([words]), "things": {Thing(): 1, Thing(): 2, Thing(): 3},
    "generator": (i for i in words), "by_word": {word: {word} for word in words}, "process": process,
    "by_function": {f: 1 for f in {print, len, thing.run}}, "rng": np.random.default_rng(),
    "torch_rng": torch.Generator(), "sampler": np.random, "held": np.array([words, thing], object),
    "ref": weakref.ref(thing), "lock": threading.RLock(),
}
config["self"] = config
sys.stdout.write(dumps_config(config, "e"))
"""


def test_E8_two_processes_write_the_same_bytes(run_python: RunPython) -> None:
    texts = {run_python("-c", PROGRAM, env={"PYTHONHASHSEED": seed}).stdout for seed in ("0", "1", "random")}
    assert len(texts) == 1
    (text,) = texts
    assert " at 0x" not in text
    assert "deque([{'alpha', 'beta', 'delta', 'epsilon', 'gamma'}])" in text


def test_E7_nothing_but_numpy_is_imported(run_python: RunPython) -> None:
    heavy = "torch tensorflow mpi4py gymnasium pandas argparse dataclasses inspect unittest numpy.ma"
    program = (
        "import sys, numpy; before = set(sys.modules)\n"
        "from spinstat.config import dumps_config\n"
        "class A: x = 1\n"
        "dumps_config({'a': numpy.arange(3), 'b': A(), 'c': {1, 2}, 'd': print}, 'e')\n"
        f"print(sorted(set({heavy!r}.split()) & (set(sys.modules) - before)))"
    )
    assert run_python("-c", program).stdout == "[]\n"


def test_it_works_where_bytes_must_not_be_mixed_with_text(run_python: RunPython) -> None:
    program = (
        "from spinstat.config import dumps_config\n"
        "print(dumps_config({'a': b'x', b'k': bytearray(b'y'), 'c': {b'q'}, 'z': 1}))"
    )
    expected = {"a": "b'x'", "b'k'": "bytearray(b'y')", "c": "{b'q'}", "z": 1}
    assert strict(run_python("-bb", "-W", "error", "-c", program).stdout) == expected
