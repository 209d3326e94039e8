"""Containers and objects: lists, pandas, whatever has a float; and what is no number."""

from __future__ import annotations

import array
import ctypes
import decimal
import fractions
import math
import subprocess
import sys
from collections import UserList, deque
from typing import Any

import numpy as np
import pandas as pd
import pytest
from oracle import assert_as_numpy

from spinstat import Moments, moments


@pytest.mark.parametrize(
    "dtype", ["float64", "float32", "int64", "uint8", "bool", "Int64", "Float32", "boolean"]
)
def test_pandas_series_and_frames_are_read(dtype: str) -> None:
    series = pd.Series([1, 0, 1, 1], index=list("abcd"), name="reward").astype(dtype)
    assert_as_numpy(moments(series), [1, 0, 1, 1])
    assert_as_numpy(moments(series[::2]), [1, 1])
    assert_as_numpy(moments([series, series[:1]]), [1, 0, 1, 1, 1])
    if dtype.islower() and dtype != "boolean":  # of columns with masks NumPy makes objects
        assert_as_numpy(moments(pd.DataFrame({"a": series, "b": series})), [1, 0, 1, 1] * 2)
    assert_as_numpy(moments(pd.Index([1.5, 2.5])), [1.5, 2.5])
    assert_as_numpy(moments(pd.Series([1.0, None, 3.0])), [1.0, math.nan, 3.0])


def test_b1_b2_lists_and_tuples_are_read_to_any_depth_and_shape() -> None:
    ragged = [
        1,
        [2.5, (3, 4)],
        [],
        np.array([[5.0], [6.0]]),
        ([7],),
        np.float32(8),
        array.array("d", [9, 10]),
        True,
    ]
    assert_as_numpy(moments(ragged), [1, 2.5, 3, 4, 5, 6, 7, 8, 9, 10, 1])
    assert_as_numpy(moments([[1, 2], [3]]), [1, 2, 3])
    assert_as_numpy(moments((np.array(1.0), np.array([3.0]))), [1, 3])
    x = np.random.default_rng(0).normal(size=10_000)
    assert_as_numpy(moments(x.tolist()), x)
    assert_as_numpy(moments(x.reshape(100, 100).tolist()), x)
    assert_as_numpy(moments([[[[[1]]]]]), [1])


def test_other_sequences_are_taken_as_lists() -> None:
    assert_as_numpy(moments(range(10)), range(10))
    assert_as_numpy(moments(deque([1, 2.5, [3]])), [1, 2.5, 3])
    assert_as_numpy(moments(UserList([range(2), 5])), [0, 1, 5])


def test_a_list_that_holds_itself_is_an_error_and_no_crash() -> None:
    x: list[Any] = [1.0]
    x.append(x)
    with pytest.raises((TypeError, ValueError, RecursionError)):
        moments(x)


class HasFloat:
    def __init__(self, value: float) -> None:
        self.value = value

    def __float__(self) -> float:
        return self.value


class HasIndex:
    def __index__(self) -> int:
        return 7


class HasArray:
    def __init__(self, x: Any) -> None:
        self.x = np.asarray(x)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.x if dtype is None else self.x.astype(dtype)


class Raises:
    def __float__(self) -> float:
        raise ZeroDivisionError("no number today")


def test_b8_whatever_has_a_float_is_a_number() -> None:
    numbers = [
        decimal.Decimal("1.5"),
        fractions.Fraction(1, 4),
        HasFloat(2.5),
        HasIndex(),
        np.float16(0.5),
        3,
        True,
    ]
    for number in numbers:
        assert_as_numpy(moments(number), float(number))
    assert_as_numpy(moments(numbers), [float(number) for number in numbers])


def test_whatever_becomes_an_array_is_read() -> None:
    for x in (
        np.arange(6.0).reshape(2, 3).T,
        np.arange(5, dtype=">i4"),
        2.5,
        np.empty((0, 2)),
        [True, False],
    ):
        assert_as_numpy(moments(HasArray(x)), x)
    for x in (["a"], [1j], [None], np.array("2020", "M8[D]")):
        with pytest.raises(TypeError):
            moments(HasArray(x))


def test_an_error_of_float_is_passed_on_and_nothing_is_added() -> None:
    m = Moments([1.0])
    for x in (Raises(), [2.0, Raises()]):
        with pytest.raises(ZeroDivisionError, match="no number today"):
            m.update(x)
    assert m == Moments([1.0])


NO_NUMBERS = {
    "None": None,
    "text": "1.5",
    "empty text": "",
    "bytes": b"12",
    "bytearray": bytearray(b"12"),
    "complex": 1 + 2j,
    "dict": {"a": 1.0},
    "set": {1.0},
    "function": assert_as_numpy,
    "class": float,
    "object": object(),
    "module": np,
    "generator": (i for i in range(3)),
    "slice": slice(3),
    "ellipsis": ...,
    "NumPy text": np.str_("1"),
    "NumPy bytes": np.bytes_(b"1"),
    "NumPy complex": np.complex64(1),
    "NumPy date": np.datetime64("2020-01-01"),
    "NumPy duration": np.timedelta64(1, "s"),
    "void": np.void(b"12345678"),
    "complex array": np.array([1 + 0j]),
    "complex array without dimensions": np.array(1j),
    "complex64 array": np.ones(3, "c8"),
    "clongdouble array": np.ones(3, "G"),
    "text array": np.array(["1.5"]),
    "bytes array": np.array([b"1"]),
    "date array": np.array(["2020-01-01"], "M8[D]"),
    "duration array": np.array([1], "m8[s]"),
    "object array": np.array([1.0, 2.0], object),
    "object array of one": np.array(1.0, object),
    "structured array": np.zeros(3, [("x", "f8"), ("y", "f8")]),
    "structured array of one field": np.zeros(3, [("x", "f8")]),
    "structured scalar": np.zeros(1, [("x", "f8")])[0],
    "void array": np.zeros(2, "V8"),
    "string dtype": np.array(["a"], np.dtypes.StringDType()),
    "empty text array": np.array([], "U1"),
    "empty object array": np.array([], object),
    "masked text": np.ma.masked_array(["a", "b"], mask=[1, 0]),
    "array of characters": array.array("u", "ab"),
    "memoryview of characters": memoryview(b"ab").cast("c"),
    "structure": np.zeros(2, "f8,i4"),
    "pandas text": pd.Series(["a"]),
    "pandas dates": pd.Series(pd.to_datetime(["2020-01-01"])),
    "pandas objects": pd.Series([1.0, "a"], dtype=object),
    "ctypes characters": (ctypes.c_char * 3)(),
    "Moments": Moments([1.0]),
}


@pytest.mark.parametrize("name", NO_NUMBERS)
def test_b7_b8_b10_what_is_no_real_number_is_a_type_error_that_tells_what_it_is(name: str) -> None:
    x = NO_NUMBERS[name]
    kind = type(x).__name__
    m = Moments([1.0, 2.0])
    for value in (x, [1.0, x], (x,), [[x]]):
        with pytest.raises(TypeError, match=rf"\b{kind}\b"):
            m.update(value)
        with pytest.raises(TypeError):
            moments(value)
    if x is not None:
        with pytest.raises(TypeError):
            Moments(x)
    assert m == Moments([1.0, 2.0])


class Shrinking(list[float]):
    """A list whose length is less each time that somebody asks, as where a thread empties it."""

    length = 5000

    def __len__(self) -> int:
        self.length = self.length // 100
        return self.length * 100


def test_a_length_that_changes_while_a_list_is_read_does_no_harm() -> None:
    m = moments(Shrinking([2.0] * 5000))
    assert (m.count, m.mean, m.std()) == (5000, 2.0, 0.0)


def test_lists_are_read_to_31_levels_and_refused_beyond() -> None:
    deep: list[Any] = [1.0]
    for _ in range(30):
        deep = [deep]
    assert moments(deep).mean == 1.0
    with pytest.raises(TypeError, match="nested more than 32 deep"):
        moments([[deep]])


def test_a_mock_in_the_place_of_torch_is_no_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    program = (
        "import sys, decimal; from unittest.mock import MagicMock; sys.modules['torch'] = MagicMock();"
        "from spinstat import moments; print(moments(decimal.Decimal('1.5')).mean, moments(range(3)).count)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "1.5 3\n"
