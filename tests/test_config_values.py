"""What each kind of value becomes in config.json, at any depth."""

from __future__ import annotations

import argparse
import collections
import datetime
import decimal
import fractions
import functools
import math
import pathlib
import types
import uuid

import numpy as np
import pytest
import torch
from configurations import (
    Colour,
    Inner,
    Level,
    Mode,
    Net,
    Point,
    Sized,
    Slotted,
    function,
    lambda_return,
    saved,
)
from conftest import RunPython

INNER = "Inner(rate=0.1, names=frozenset({'a', 'b'}))"
SPACES = types.SimpleNamespace(a=types.SimpleNamespace(b=1))
LONG = np.longdouble("1e4000")  # finite where longdouble is longer than float64
META_SUMMARY = "Tensor of shape (3,), dtype torch.float32, values not available (NotImplementedError)"

CASES: dict[str, tuple[object, object]] = {
    "E1 a tuple with something that is not JSON": ((64, np.int64(64)), [64, 64]),
    "E1 a tuple with a class": ((torch.nn.Tanh, 1), ["Tanh", 1]),
    "E1 a namedtuple": (Point(1, Net), [1, "Net"]),
    "E2 float32": (np.float32(1e-3), float(np.float32(1e-3))),
    "E2 float16": (np.float16(0.5), 0.5),
    "E2 longdouble": (np.longdouble(0.25), 0.25),
    "E2 a longdouble beyond float64": (LONG, "1e+4000" if np.isfinite(LONG) else "Infinity"),
    "E2 int64": (np.int64(3), 3),
    "E2 uint64": (np.uint64(2**64 - 1), 2**64 - 1),
    "E2 bool_": (np.bool_(True), True),
    "E2 str_": (np.str_("x"), "x"),
    "E2 bytes_": (np.bytes_(b"x"), "b'x'"),
    "E2 complex64": (np.complex64(1 + 2j), "(1+2j)"),
    "E2 an array": (np.arange(3), [0, 1, 2]),
    "E2 an array without dimensions": (np.array(1.5), 1.5),
    "E2 a strided array": (np.arange(6.0).reshape(2, 3).astype(">f4")[:, ::-2], [[2.0, 0.0], [5.0, 3.0]]),
    "E2 bools": (np.array([True, False]), [True, False]),
    "E2 E7 an array with NaN": (np.array([np.nan, np.inf, 1]), ["NaN", "Infinity", 1.0]),
    "E2 an array of objects": (np.array([Net, None, {2}], object), ["Net", None, "{2}"]),
    "E2 a masked array": (np.ma.array([1, 2], mask=[False, True]), [1, None]),
    "E2 dates": (np.array(["2020-01-01", "NaT"], "M8[ns]"), ["2020-01-01T00:00:00.000000000", "NaT"]),
    "E2 a date": (np.datetime64("2020-01-01"), "2020-01-01"),
    "E2 a duration": (np.timedelta64(5, "D"), "5 days"),
    "E2 complex numbers": (np.array([1 + 2j]), ["(1+2j)"]),
    "E2 records": (np.zeros(1, [("a", "f4"), ("b", "i4")]), [[0.0, 0]]),
    "E2 no elements": (np.zeros(0), []),
    "E2 the longest array written out": (np.zeros(1000), [0.0] * 1000),
    "E2 a long array": (np.zeros(1001), "ndarray of shape (1001,), dtype float64"),
    "E2 many empty rows": (np.zeros((10**6, 0), "i2"), "ndarray of shape (1000000, 0), dtype int16"),
    "E2 a tensor with a graph": (torch.tensor(2.0, requires_grad=True), 2.0),
    "E2 a parameter": (torch.nn.Parameter(torch.ones(2)), [1.0, 1.0]),
    "E2 bfloat16": (torch.ones(2, dtype=torch.bfloat16), [1.0, 1.0]),
    "E2 a big tensor": (torch.zeros(2, 1000), "Tensor of shape (2, 1000), dtype torch.float32"),
    "E2 a tensor on the meta device": (torch.empty(3, device="meta"), META_SUMMARY),
    "E7 NaN": (float("nan"), "NaN"),
    "E7 -inf": (-math.inf, "-Infinity"),
    "E7 NumPy's inf": (np.float64(np.inf), "Infinity"),
    "E7 inf as a key": ({math.inf: 1}, {"Infinity": 1}),
    "E8 a lambda": (lambda x: x, "<function <lambda>>"),
    "E8 a partial": (
        functools.partial(sorted, [], key=function),
        "functools.partial(<built-in function sorted>, [], key=<function function>)",
    ),
    "E8 a partial of a method": (
        functools.partial(Sized().method),
        "functools.partial(<bound method Sized.method of <configurations.Sized object>>)",
    ),
    "E8 a network without its hooks": (torch.nn.Tanh(), {"Tanh()": {"training": True}}),
    "E8 an object that stores nothing": (Net(), "<configurations.Net object>"),
    "E8 an iterator": (iter([1]), "<list_iterator object>"),
    "a function": (function, "function"),
    "a function with lambda in its name": (lambda_return, "lambda_return"),
    "a builtin": (len, "len"),
    "a ufunc": (np.tanh, "tanh"),
    "a method": (Sized().method, "method"),
    "a builtin method": ([].append, "append"),
    "a wrapped function": (functools.lru_cache(function), "function"),
    "a class": (Net, "Net"),
    "a class with lambda in its name": (type("lambda_net", (), {}), "lambda_net"),
    "a module": (math, "math"),
    "an object under its str": (
        Sized(),
        {"Sized!": {"size": 3, "act": "function", "kid": "<configurations.Net object>"}},
    ),
    "slots that are set": (Slotted(), {"<configurations.Slotted object>": {"set_one": 1}}),
    "a dataclass": (Inner(), {INNER: {"rate": 0.1, "names": "frozenset({'a', 'b'})"}}),
    "a Namespace": (argparse.Namespace(lr=1, h=[1]), {"Namespace(lr=1, h=[1])": {"lr": 1, "h": [1]}}),
    "nested namespaces": (SPACES, {"namespace(a=namespace(b=1))": {"a": {"namespace(b=1)": {"b": 1}}}}),
    "an enum": (Colour.RED, "Colour.RED"),
    "an IntEnum": (Level.HIGH, 3),
    "a str enum": (Mode.FAST, "fast"),
    "a path": (pathlib.PurePosixPath("/a/b"), "/a/b"),
    "a Decimal": (decimal.Decimal("1.50"), "1.50"),
    "a Fraction": (fractions.Fraction(1, 3), "1/3"),
    "a datetime": (datetime.datetime(2020, 1, 2, 3), "2020-01-02 03:00:00"),
    "a timedelta": (datetime.timedelta(1), "1 day, 0:00:00"),
    "a UUID": (uuid.UUID(int=5), "00000000-0000-0000-0000-000000000005"),
    "a set": ({"b", "a", "c"}, "{'a', 'b', 'c'}"),
    "a set of numbers": ({10, 9.5, 2}, "{2, 9.5, 10}"),
    "a frozenset": (frozenset([1]), "frozenset({1})"),
    "an empty set": (set(), "set()"),
    "a set of sets": ({frozenset("ba"), ("x", 1)}, "{('x', 1), frozenset({'a', 'b'})}"),
    "bytes": (b"xy", "b'xy'"),
    "a bytearray": (bytearray(b"xy"), "bytearray(b'xy')"),
    "complex": (1 + 2j, "(1+2j)"),
    "a range": (range(3), "range(0, 3)"),
    "a deque": (collections.deque([{"b", "a"}], 4), "deque([{'a', 'b'}], maxlen=4)"),
    "an OrderedDict": (collections.OrderedDict(b=1, a=2), {"a": 2, "b": 1}),
    "a Counter": (collections.Counter("aab"), {"a": 2, "b": 1}),
    "a dtype": (np.dtype("float32"), "float32"),
    "a device": (torch.device("cpu"), "cpu"),
    "a Size": (torch.Size([1, 2]), [1, 2]),
    "a generic alias": (list[int], "list[int]"),
    "an object with nothing to say": (ValueError(), "<ValueError object>"),
    "a long int": (10**400, 10**400),
    "an int that Python would refuse to read": (1 << 20_000, hex(1 << 20_000)),
    "half a surrogate pair": ("\ud83d\ude00 \ud800", "\U0001f600 \\ud800"),
    "bytes of a path that are no UTF-8": (pathlib.PurePosixPath("a\udc80"), "a\\udc80"),
}


@pytest.mark.parametrize(("value", "expected"), CASES.values(), ids=CASES)
def test_a_value_becomes(value: object, expected: object) -> None:
    assert saved({"k": value, "nested": [{"k": (value,)}]}) == {"k": expected, "nested": [{"k": [expected]}]}


TENSORFLOW = """
import sys
from spinstat.config import convert_json
assert "tensorflow" not in sys.modules
import tensorflow as tf
print(convert_json([
    tf.constant([1.0, 2.5]), tf.constant(3), tf.Variable([[True]]), tf.constant("a"), tf.float32,
    tf.constant([float("nan")], tf.bfloat16), tf.zeros((3, 1000)),
]))
symbolic = []

@tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32), tf.TensorSpec(None, tf.float32)])
def traced(x, y):
    symbolic.extend(convert_json([x, y]))
    return x

traced.get_concrete_function()
assert "(None, 3)" in symbolic[0] and "float32" in symbolic[0], symbolic
assert isinstance(symbolic[1], str) and "float32" in symbolic[1], symbolic
"""


def test_E2_tensorflow_tensors_are_told_by_their_values(run_python: RunPython) -> None:
    done = run_python("-c", TENSORFLOW, env={"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""})
    assert done.stdout.splitlines()[-1] == (
        "[[1.0, 2.5], 3, [[True]], \"b'a'\", \"<dtype: 'float32'>\", ['NaN'], "
        "'EagerTensor of shape (3, 1000), dtype float32']"
    )
