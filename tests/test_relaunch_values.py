"""Arguments in launch.json: each is made again with its type and bits, or told to be missing, and why."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import json
import math
import pathlib
import threading
import types
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from spinstat.relaunch_values import Rebuilder, record_value


class Kind(enum.Enum):
    FAST = 1


class Modes(enum.Flag):
    A = 1
    B = 2


class Pair(NamedTuple):
    one: int
    two: Any


@dataclasses.dataclass(frozen=True)
class Options:
    width: int
    sizes: tuple[int, ...] = (1,)


@dataclasses.dataclass
class Derived:
    width: int

    def __post_init__(self) -> None:
        self.width *= 2


class Net:
    @classmethod
    def small(cls) -> Net:
        return cls()

    @staticmethod
    def large() -> None: ...

    class Inner: ...


def make(width: int, *, bias: bool = True) -> tuple[int, bool]:
    return width, bias


def again(value: object) -> Any:
    """The value after a trip through the file's text."""
    rebuilder = Rebuilder()
    rebuilt = rebuilder.rebuild(json.loads(json.dumps(record_value(value))), "x")
    assert rebuilder.problems == []
    return rebuilt


def reason(value: object) -> str:
    """Why a value is not made again."""
    rebuilder = Rebuilder()
    assert rebuilder.rebuild(json.loads(json.dumps(record_value(value))), "x") is None
    (problem,) = rebuilder.problems
    return problem


EQUAL: list[Any] = [
    None,
    True,
    0,
    -7,
    2**70,
    2**9000,
    0.1,
    5e-324,
    1.7e308,
    "",
    "ü\ud800\n",
    [],
    [1, [2.5, "a"]],
    {},
    {"a": {"b": [1]}},
    (),
    (64, (64,)),
    [(1,), {"k": (2,)}],
    {1: "a", (2, 3): None, None: 0},
    {"$tuple": [1]},
    {"$": 1},
    {1, (2, 3)},
    frozenset({1}),
    1 - 2j,
    b"\0\xff",
    bytearray(b"x"),
    range(1, 9, 2),
    slice(None, 4),
    Kind.FAST,
    Modes.A | Modes.B,
    Pair(1, (2,)),
    Options(3, (4, 5)),
    pathlib.Path("a/b"),
    pathlib.PurePosixPath("/c"),
    decimal.Decimal("0.10"),
    fractions.Fraction(1, 3),
    datetime.timedelta(1, 2, 3),
    types.SimpleNamespace(a=(1,)),
    np.dtype("<f4"),
    collections.OrderedDict([("b", 1), ("a", 2)]),
    torch.float32,
    torch.device("cpu"),
]


@pytest.mark.parametrize("value", EQUAL, ids=lambda value: repr(value)[:40])
def test_a_value_comes_back_equal_and_of_its_type(value: Any) -> None:
    rebuilt = again(value)
    assert rebuilt == value
    assert type(rebuilt) is type(value)
    assert repr(rebuilt) == repr(value)  # of the types inside, too; and of the order of dicts


IMPORTABLE: list[Any] = [
    torch.nn.Tanh,
    torch.relu,
    torch.tanh,
    torch.nn.functional.gelu,
    torch,
    np.tanh,
    np.mean,
    math.sin,
    len,
    dict,
    Net,
    Net.Inner,
    Net.large,
    make,
    math,
]


@pytest.mark.parametrize("value", IMPORTABLE, ids=repr)
def test_classes_and_functions_come_back_as_themselves(value: object) -> None:
    assert again(value) is value
    assert again({"act": [value]})["act"][0] is value


def test_a_class_method_comes_back_bound() -> None:
    assert again(Net.small) == Net.small
    assert again(dict.fromkeys)([1]) == {1: None}


def test_a_partial_comes_back_with_its_arguments() -> None:
    rebuilt = again(functools.partial(functools.partial(make, 3), bias=False))
    assert rebuilt() == (3, False)
    assert rebuilt.func is make


@pytest.mark.parametrize(
    "value", [-0.0, math.inf, -math.inf, math.nan, np.float32(-0.0), np.float64("nan")], ids=repr
)
def test_special_floats_keep_their_bits(value: Any) -> None:
    rebuilt = again(value)
    assert type(rebuilt) is type(value)
    assert np.asarray(rebuilt).tobytes() == np.asarray(value).tobytes()


ARRAYS = [np.dtype(code) for code in "?bBhHiIlLefdgFD"] + [
    np.dtype(">f4"),
    np.dtype("S3"),
    np.dtype("U2"),
    np.dtype("M8[s]"),
]


@pytest.mark.parametrize("dtype", ARRAYS, ids=lambda dtype: dtype.str)
@pytest.mark.parametrize("shape", [(), (0,), (2, 0), (3,), (2, 3)], ids=str)
def test_arrays_and_scalars_of_numpy_keep_dtype_shape_and_bits(
    dtype: np.dtype[Any], shape: tuple[int, ...]
) -> None:
    values = (
        np.random.default_rng(0).integers(0, 2, shape)
        if dtype.kind == "b"
        else np.arange(math.prod(shape)).reshape(shape)
    )
    array = values.astype(dtype) if dtype.kind != "M" else values.astype("M8[s]")
    rebuilt = again(array)
    assert (rebuilt.dtype, rebuilt.shape, rebuilt.tobytes()) == (array.dtype, array.shape, array.tobytes())
    rebuilt[...] = rebuilt  # writable
    if array.size:
        scalar = array.ravel()[-1]
        assert type(again(scalar)) is type(scalar)
        assert np.asarray(again(scalar)).tobytes() == np.asarray(scalar).tobytes()


def test_an_array_of_any_floats_keeps_its_bits() -> None:
    array = np.array([[np.nan, np.inf], [-np.inf, -0.0]], order="F")
    assert again(array).tobytes() == array.tobytes()


class Hostile:
    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("no")

    def __repr__(self) -> str:
        raise RuntimeError("no")


cycle: list[Any] = []
cycle.append(cycle)


@pytest.mark.parametrize(
    ("value", "part"),
    [
        (lambda: 0, "a lambda has no import path"),
        (functools.partial(lambda: 0), "a lambda"),
        (threading.Lock(), "lock"),
        (Hostile(), "Hostile"),
        (torch.nn.Tanh(), "Tanh is made by code that is not known"),
        (Derived(2), "more to it"),
        (np.array([object()], object), "not a plain one"),
        (np.zeros(2, [("a", "f4")]), "not a plain one"),
        (np.zeros(20_000), "too large"),
        (np.ma.masked_array([1]), "MaskedArray"),
        (type("str", (str,), {})("a"), "made by code that is not known"),
        ([].append, "list.append"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_what_cannot_be_made_again_is_told_with_its_reason(value: object, part: str) -> None:
    told = reason(value)
    assert ": was not recorded: " in told
    assert part in told


def test_a_local_class_is_told_with_the_way_out() -> None:
    class Here: ...

    assert "Here is defined in a function: move it to the top of its module" in reason(Here)


def test_one_bad_entry_leaves_the_others_and_is_named_by_its_place() -> None:
    rebuilder = Rebuilder()
    rebuilt = rebuilder.rebuild(record_value({"a": [1, {"f": lambda: 0}], "b": (2,)}), "kwargs")
    assert rebuilt == {"a": [1, {"f": None}], "b": (2,)}
    assert [problem.split(":")[0] for problem in rebuilder.problems] == ["kwargs['a'][1]['f']"]


def test_cycles_and_depth_end() -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    for value, part in (
        (cycle, "lies within itself"),
        (deep, "nested too deeply"),
        (list(range(30_000)), "too large"),
    ):
        rebuilder = Rebuilder()
        rebuilder.rebuild(json.loads(json.dumps(record_value(value))), "x")
        assert rebuilder.problems
        assert all(part in problem for problem in rebuilder.problems)


def test_what_is_gone_is_named() -> None:
    for path, part in (
        ("no_such_module:f", "no_such_module cannot be imported"),
        ("math:sinus", "math has no sinus"),
    ):
        rebuilder = Rebuilder()
        rebuilder.rebuild({"$call": {"of": "functools:partial", "args": [{"$object": path}]}}, "act")
        (problem,) = rebuilder.problems
        assert problem.startswith("act[0]: ")
        assert part in problem


def test_a_kind_of_a_later_version_is_an_error_that_says_so() -> None:
    rebuilder = Rebuilder()
    rebuilder.rebuild([{"$hologram": 1}], "x")
    assert rebuilder.problems == ["x[0]: $hologram is of a later version of spinstat"]


def test_what_only_has_the_name_of_something_importable_is_told() -> None:
    impostor = type("Net", (), {"__module__": __name__, "__qualname__": "Net"})
    assert f"{__name__} has something else, or nothing, under the name Net" in reason(impostor)
