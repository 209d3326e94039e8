"""What store() takes, what it refuses, and that a refused call stores nothing."""

from __future__ import annotations

import array
import datetime
import sys
from collections import namedtuple
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from stores import logged, row_of

from spinstat import EpochLogger
from spinstat._core import EpochStore

NAN, INF = float("nan"), float("inf")


@pytest.fixture
def logger(output_dir: str) -> EpochLogger:
    return EpochLogger(output_dir, quiet=True)


class Floats:
    """Something with a __float__, as wrappers of numbers have."""

    def __init__(self, x: Any) -> None:
        self.x = x

    def __float__(self) -> float:
        if isinstance(self.x, Exception):
            raise self.x
        return self.x  # type: ignore[no-any-return]


class Index:
    def __index__(self) -> int:
        return 3


class Half(float):
    """A subclass of float whose value is what it was made of."""


Point = namedtuple("Point", "x y")

# id -> (values stored one after the other, all the numbers that are in them)
TAKEN: dict[str, tuple[list[Any], list[float]]] = {
    "B1 array then scalar": ([np.array([1.0, 2.0]), 3.0], [1, 2, 3]),
    "B1 scalar then array": ([3.0, np.array([1.0, 2.0])], [3, 1, 2]),
    "B1 0-d then 1-d": ([np.array(1.0), np.array([3.0])], [1, 3]),
    "B1 scalar then length one": ([1.0, np.array([3.0])], [1, 3]),
    "B1 everything": ([1, [2.0], (3,), np.float32(4), torch.tensor(5), True, [[6], [7]]],
                      [1, 2, 3, 4, 5, 1, 6, 7]),
    "B2 ragged lists": ([[1, 2], [3]], [1, 2, 3]),
    "B2 a ragged list": ([[[1, 2], [3], [], 4]], [1, 2, 3, 4]),
    "B2 unequal tensors": ([torch.tensor([1.0, 2.0]), torch.tensor([3.0])], [1, 2, 3]),
    "B2 lists of tensors and arrays": ([[torch.tensor([1.0, 2.0]), np.array([[3.0]]), 4]], [1, 2, 3, 4]),
    "B8 decimal": ([Decimal("1.5"), Decimal("-0.25")], [1.5, -0.25]),
    "B8 fraction": ([Fraction(1, 2), Fraction(7, 4)], [0.5, 1.75]),
    "B8 float method": ([Floats(2.5), Floats(1.0)], [2.5, 1]),
    "B8 index method": ([Index(), 1.0], [3, 1]),
    "B12 empty": ([np.array([]), np.array([2.0]), [], (), torch.empty(0), np.empty((0, 3))], [2]),
    "B14 big-endian": ([np.arange(6, dtype=">f8")], [0, 1, 2, 3, 4, 5]),
    "B14 zero stride": ([np.broadcast_to(3.0, (4,))], [3, 3, 3, 3]),
    "B14 backwards": ([np.arange(6.0)[::-2]], [5, 3, 1]),
    "B14 packed field": ([np.array([(1, 2.5)] * 3, [("p", "i1"), ("x", "f8")])["x"]], [2.5] * 3),
    "B14 large unsigned": ([np.array([2**63 + 2**12], np.uint64)], [2.0**63 + 2**12]),
    "B14 longdouble": ([np.array([1], np.longdouble), np.longdouble(2)], [1, 2]),
    "B15 vector rewards": ([np.array([1.0]), np.array([3.0])], [1, 3]),
    "B15 environments by one": ([np.array([[1.0], [2.0]]), np.array([[3.0], [4.0]])], [1, 2, 3, 4]),
    "A16 more dimensions": ([np.ones((2, 3)), np.zeros((1, 1, 2))], [1] * 6 + [0, 0]),
    "A15 batches of unequal size": ([np.array([1.0, 2.0]), np.array([3.0])], [1, 2, 3]),
    "bools": ([True, False, np.bool_(True), np.array([True, False])], [1, 0, 1, 1, 0]),
    "numpy scalars": ([np.float32(0.1), np.float16(0.5), np.int8(-2), np.uint64(7), np.float64(0.1)],
                      [float(np.float32(0.1)), 0.5, -2, 7, 0.1]),
    "ints beyond 2^53": ([2**53 + 1, 2**70, -(2**1000)], [2.0**53, 2.0**70, -(2.0**1000)]),
    "subclasses of float and int": ([Half(0.5), type("Int", (int,), {})(3)], [0.5, 3]),
    "a memoryview": ([memoryview(array.array("d", [1, 2]))], [1, 2]),
    "an array.array": ([array.array("i", [3]), array.array("B", [255])], [3, 255]),
    "a named tuple": ([Point(1, 2.0), Point(3, [4, 5])], [1, 2, 3, 4, 5]),
    "masked": ([np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0]), np.ma.array(5.0)], [1, 3, 5]),
    "a range as a list": ([list(range(5000))], list(range(5000))),
    "the largest and the smallest": ([sys.float_info.max, 5e-324, -0.0], [sys.float_info.max, 5e-324, 0.0]),
}  # fmt: skip


@pytest.mark.parametrize("case", TAKEN)
def test_whatever_holds_real_numbers_is_taken_element_by_element(case: str) -> None:
    stored, want = TAKEN[case]
    x = np.array(want, np.float64)
    for keep in (True, False):
        store = EpochStore()
        store.keep_values = keep
        for value in stored:
            store.store(X=value)
        m = store._take("X")
        assert (m.count, m.min, m.max) == (x.size, x.min(), x.max())
        assert m.mean == pytest.approx((x / x.size).sum(), rel=1e-14)
        if np.abs(x).max() < 1e150:
            assert m.std() == pytest.approx(x.std(), rel=1e-13)


REFUSED: dict[str, tuple[Any, str]] = {
    "B7 None": (None, "NoneType"),
    "B8 numeric text": ("1.5", "str"),
    "B8 text": ("abc", "str"),
    "B8 bytes": (b"1", "bytes"),
    "B8 numpy date": (np.datetime64("2020-01-01"), "datetime64"),
    "B8 duration": (np.timedelta64(1, "s"), "timedelta64"),
    "B8 date": (datetime.datetime(2020, 1, 1), "datetime"),
    "B8 array of text": (np.array(["1.5"]), "<U3"),
    "B8 array of dates": (np.array(["2020-01-01"], "M8[D]"), "datetime64"),
    "B10 complex": (1 + 2j, "complex"),
    "B10 numpy complex": (np.complex128(1 + 2j), "complex128"),
    "B10 complex array": (np.ones(2, complex), "complex128"),
    "B10 complex tensor": (torch.ones(2, dtype=torch.complex64), "Tensor"),
    "B10 complex 0-d tensor": (torch.tensor(1 + 2j), "Tensor|complex"),
    "B4 meta tensor": (torch.empty((), device="meta"), "meta"),
    "B4 meta matrix": (torch.empty((2, 2), device="meta"), "meta"),
    "object array": (np.array([1, None], object), "object"),
    "record": (np.zeros(1, [("a", "f8")])[0], "void"),
    "dict": ({"a": 1.0}, "dict"),
    "set": ({1.0}, "set"),
    "class": (float, "type"),
    "function": (len, "builtin"),
    "plain object": (object(), "object"),
    "list with None": ([1.0, None], "NoneType"),
    "list with text": ([1.0, [2.0, ["x"]]], "str"),
    "generator": ((x for x in [1.0]), "generator"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_real_number_is_refused_naming_key_and_type_and_nothing_is_stored(case: str) -> None:
    value, what = REFUSED[case]
    store = EpochStore()
    store.store(A=1.0, Z=1.0)
    with pytest.raises(TypeError, match=rf"(?=.*'Bad key')(?=.*({what}))"):
        store.store(**{"A": 2.0, "New": np.ones(3), "Bad key": value, "Z": [3.0]})
    with pytest.raises(TypeError, match=what):
        store.store({"A": 2.0, "Bad key": value, "Z": torch.ones(2)})
    assert store.epoch_dict == {"A": [1.0], "Z": [1.0]}
    assert (store._peek("A").count, store._peek("Z").count) == (1, 1)


def test_a_list_within_itself_is_refused() -> None:
    store = EpochStore()
    endless: list[Any] = [1.0]
    endless.append(endless)
    deep: Any = 1.0
    for _ in range(20_000):
        deep = (deep,)
    for x in (endless, deep):
        with pytest.raises(TypeError, match=r"'X'.*nested"):
            store.store(X=x)
    assert store.epoch_dict == {}
    nested: Any = 2.0
    for _ in range(30):
        nested = [nested, 2.0]
    store.store(X=nested)
    assert (store._peek("X").count, store._peek("X").std()) == (31, 0.0)


def test_an_int_beyond_the_range_of_a_float_is_an_overflow_that_names_the_key() -> None:
    store = EpochStore()
    for x in (10**400, -(10**400), [1, 10**400], type("Int", (int,), {})(10**400)):
        with pytest.raises(OverflowError, match=r"'Big'.*too large"):
            store.store(A=1.0, Big=x)
    with pytest.raises(OverflowError, match=r"'Big'.*too large"):
        store.store(A=1.0, **{f"K{i}": i for i in range(40)}, Big=10**400)
    assert store.epoch_dict == {}
    store.store(Big=10**308)
    assert store._peek("Big").mean == 1e308


@pytest.mark.parametrize("wrong", ["a str", None, 1, 1j], ids=repr)
def test_a_float_method_that_gives_no_float_is_an_error_that_names_the_key(wrong: Any) -> None:
    store = EpochStore()
    with pytest.raises(TypeError, match=r"float.*'Loss'"):
        store.store(A=1.0, Loss=Floats(wrong))
    assert store.epoch_dict == {}


def test_what_a_float_method_raises_goes_through_with_the_key_as_a_note() -> None:
    store = EpochStore()
    with pytest.raises(LookupError, match="no value yet") as caught:
        store.store(A=1.0, Loss=Floats(LookupError("no value yet")), B=2.0)
    assert caught.value.__notes__ == ["while converting Floats to a number for key 'Loss'"]
    assert store.epoch_dict == {}


def test_types_that_cannot_be_hashed_are_read_as_any_other() -> None:
    class Unhashable(type):
        def __eq__(cls, other: object) -> bool:
            raise AssertionError("nobody asked")

        __hash__ = None  # type: ignore[assignment]

    class Number(metaclass=Unhashable):
        def __float__(self) -> float:
            return 1.5

    store = EpochStore()
    store.store(X=Number())
    assert store.epoch_dict == {"X": [1.5]}


# Through the row --------------------------------------------------------------------------------------------


def test_a11_a12_non_finite_values_are_told_in_the_row(logger: EpochLogger) -> None:
    assert str(row_of(logger, 1.0, NAN, np.array([3.0]))) == "(nan, nan, nan, nan)"
    assert str(row_of(logger, 1.0, INF, 2)) == "(inf, nan, inf, 1.0)"
    assert str(row_of(logger, [-INF, 1.0], 2)) == "(-inf, nan, 2.0, -inf)"
    assert str(row_of(logger, INF, [-INF, 1.0])) == "(nan, nan, inf, -inf)"
    assert row_of(logger, 1.0, 3.0) == (2.0, 1.0, 3.0, 1.0)


def test_b6_arrays_changed_after_the_store_do_not_change_the_statistics(logger: EpochLogger) -> None:
    buffer, scalar, values = np.array([1.0, 2.0]), np.array(5.0), [3.0]
    tensor = torch.tensor([1.0, 3.0])
    for _ in range(2):
        logger.store(X=buffer, S=scalar, L=values, T=tensor)
        buffer[:] = 0
        scalar += 1
        values[0] = -1.0
        tensor.zero_()
    assert logged(logger, "X") == (0.75, pytest.approx(np.std([1, 2, 0, 0])), 2.0, 0.0)
    assert logged(logger, "S") == (5.5, 0.5, 6.0, 5.0)
    assert logged(logger, "L") == (1.0, 2.0, 3.0, -1.0)
    assert logged(logger, "T") == (1.0, pytest.approx(np.std([1, 3, 0, 0])), 3.0, 0.0)


def test_b7_none_for_a_value_of_log_tabular_means_what_is_stored(logger: EpochLogger) -> None:
    logger.store(X=1.0)
    logger.store(X=4)
    logger.log_tabular("X", None, average_only=True)
    assert logger.log_current_row == {"X": 2.5}


def test_an_explicit_value_wins_and_throws_the_stored_ones_away(logger: EpochLogger) -> None:
    logger.store(A=1.0)
    logger.store(A=np.ones(3))
    logger.log_tabular("A", 99)
    assert logger.epoch_dict["A"] == [] and repr(logger.epoch_dict) == "{'A': []}"
    assert logger.log_current_row == {"A": 99}
    logger.dump_tabular()
    assert row_of(logger, 5.0) == (5.0, 0.0, 5.0, 5.0)


def test_values_are_logged_once(logger: EpochLogger) -> None:
    assert row_of(logger, 1.0, [2.0, 3.0]) == (2.0, pytest.approx(np.std([1, 2, 3])), 3.0, 1.0)
    assert logger.epoch_dict["X"] == []
    assert row_of(logger, 7.0) == (7.0, 0.0, 7.0, 7.0)


def test_a_refused_value_leaves_the_epoch_as_it_was(logger: EpochLogger) -> None:
    logger.store(X=1.0)
    for bad in (None, "x", 1j, [1.0, None]):
        with pytest.raises(TypeError, match="'X'"):
            logger.store(X=bad)
    assert row_of(logger, 3.0) == (2.0, 1.0, 3.0, 1.0)
