"""The values of one key as a list: whatever a list does, beside a list that does it."""

from __future__ import annotations

import collections
import copy
import operator
import pickle
import random
import statistics
from collections.abc import Callable, MutableSequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from stores import assert_holds, numbers

from spinstat._core import EpochStore, StoredValues

# One list behind its values, one below, at and above each size of a block, and more than two of the largest.
LENGTHS = [0, 1, 2, 31, 32, 33, 63, 64, 65, 1023, 1025, 4095, 4096, 4097, 8191, 8192, 8193, 16384, 24577]


def stored(*values: Any) -> tuple[EpochStore, StoredValues]:
    """A store with these values under X, and the list that it shows."""
    store = EpochStore()
    for value in values:
        store.store(X=value)
    if not values:
        store._discard("X")
    shown = store.epoch_dict["X"]
    assert type(shown) is StoredValues
    return store, shown


def outcome(call: Callable[[], Any]) -> Any:
    """What a call gives, or the class of what it raises."""
    try:
        return call()
    except Exception as error:
        return type(error)


READS: dict[str, Callable[[Any], Any]] = {
    "first": lambda v: v[0],
    "last": lambda v: v[-1],
    "middle": lambda v: v[3],
    "beyond": lambda v: v[len(v)],
    "before": lambda v: v[-len(v) - 1],
    "numpy index": lambda v: v[np.int64(1)],
    "text index": lambda v: v["a"],
    "float index": lambda v: v[1.0],
    "huge index": lambda v: v[10**30],
    "slice": lambda v: v[2:5],
    "whole slice": lambda v: v[:],
    "tail": lambda v: v[-3:],
    "steps": lambda v: v[::3],
    "backwards": lambda v: v[::-2],
    "far slice": lambda v: v[-(10**30) : 10**30],
    "empty slice": lambda v: v[5:2],
    "zero step": lambda v: v[::0],
    "len": len,
    "bool": bool,
    "list": list,
    "reversed": lambda v: list(reversed(v)),
    "sum": sum,
    "max": max,
    "sorted": sorted,
    "in": lambda v: 3.0 in v,
    "not in": lambda v: "x" in v,
    "index": lambda v: v.index(3.0),
    "index from": lambda v: v.index(3.0, 4),
    "index of nothing": lambda v: v.index("x"),
    "count": lambda v: v.count(3.0),
    "copy": lambda v: v.copy(),
    "add": lambda v: operator.add(v, [1.5]),
    "add itself": lambda v: v + v,
    "add a tuple": lambda v: operator.add(v, (1.0,)),
    "add a number": lambda v: v + 1,
    "added to a list": lambda v: operator.add([1.5], v),
    "plus array": lambda v: (v + np.arange(8.0)).tolist(),
    "array plus": lambda v: (np.arange(8.0) + v).tolist(),
    "times": lambda v: v * 2,
    "times from the left": lambda v: 2 * v,
    "times text": lambda v: v * "a",
    "times array": lambda v: (v * np.array(2.0)).tolist(),
    "repr": repr,
    "str": str,
    "format": lambda v: f"{v}",
    "equal": lambda v: v == [0.0, 1.0, 2.0, 3.0, 3.0, 5.0, 6.0, 7.0],
    "equal from the left": lambda v: [0.0, 1.0, 2.0, 3.0, 3.0, 5.0, 6.0, 7.0] == v,
    "unequal": lambda v: v != [0.0],
    "equal to itself": lambda v: v == v,
    "equal to a tuple": lambda v: v == tuple(v),
    "less": lambda v: v < [0.0, 2.0],
    "less or equal": lambda v: v <= v,
    "greater": lambda v: v > [0.0, 1.0],
    "greater or equal": lambda v: v >= [9.0],
    "less than a number": lambda v: v < 1,
    "hash": hash,
    "unpacking": lambda v: [*v, *v[:1]],
    "mean": statistics.mean,
    "choice": lambda v: random.Random(3).choice(v),
    "deque": lambda v: list(collections.deque(v, 3)),
    "getter": lambda v: operator.itemgetter(1, slice(2, 4))(v),
    "pickle": lambda v: pickle.loads(pickle.dumps(v)),
    "shallow copy": copy.copy,
    "deep copy": copy.deepcopy,
    "numpy mean": lambda v: float(np.mean(v)),
    "asarray": lambda v: np.asarray(v).tolist(),
    "float32": lambda v: np.asarray(v, np.float32).dtype.name,
    "percentile": lambda v: float(np.percentile(v, 75)),
    "concatenate": lambda v: np.concatenate([v, v]).tolist(),
    "tensor": lambda v: torch.as_tensor(v, dtype=torch.float64).tolist(),
    "series": lambda v: pd.Series(v).tolist(),
}


@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize("values", [[0.0, 1.0, 2.0, 3.0, 3.0, 5.0, 6.0, 7.0], []], ids=["eight", "none"])
def test_it_reads_as_a_list_of_floats(name: str, values: list[float]) -> None:
    _, shown = stored(*values)
    got, want = outcome(lambda: READS[name](shown)), outcome(lambda: READS[name](list(values)))
    assert type(got) is type(want) and repr(got) == repr(want)
    assert list(shown) == values


EDITS: dict[str, Callable[[Any], Any]] = {
    "append": lambda v: v.append(9),
    "extend": lambda v: v.extend([9.0, 10]),
    "extend by an array": lambda v: v.extend(np.array([9.0, 10.0])),
    "extend by itself": lambda v: v.extend(v),
    "extend by a generator": lambda v: v.extend(float(i) for i in range(3)),
    "extend by a number": lambda v: v.extend(3),
    "in-place add": lambda v: operator.iadd(v, [9.0]) is v,
    "in-place add of a tuple": lambda v: operator.iadd(v, (9.0,)) is v,
    "in-place times": lambda v: operator.imul(v, 3) is v,
    "in-place times nothing": lambda v: operator.imul(v, 0) is v,
    "set": lambda v: operator.setitem(v, 2, 99.0),
    "set last": lambda v: operator.setitem(v, -1, 99.0),
    "set beyond": lambda v: operator.setitem(v, 8, 99.0),
    "set slice": lambda v: operator.setitem(v, slice(1, 3), [7.0, 8.0, 9.0]),
    "set slice to itself": lambda v: operator.setitem(v, slice(1, 3), v),
    "set steps": lambda v: operator.setitem(v, slice(None, None, 4), [7.0, 8.0]),
    "set steps unequal": lambda v: operator.setitem(v, slice(None, None, 4), [7.0]),
    "set all": lambda v: operator.setitem(v, slice(None), [1.0]),
    "set slice to a number": lambda v: operator.setitem(v, slice(1, 3), 7.0),
    "delete": lambda v: operator.delitem(v, 0),
    "delete slice": lambda v: operator.delitem(v, slice(1, 4)),
    "delete all": lambda v: operator.delitem(v, slice(None)),
    "delete beyond": lambda v: operator.delitem(v, 20),
    "insert": lambda v: v.insert(2, 55.0),
    "insert far": lambda v: v.insert(100, 55.0),
    "insert before": lambda v: v.insert(-100, 55.0),
    "pop": lambda v: v.pop(),
    "pop first": lambda v: v.pop(0),
    "pop beyond": lambda v: v.pop(99),
    "remove": lambda v: v.remove(3.0),
    "remove nothing": lambda v: v.remove(77.0),
    "clear": lambda v: v.clear(),
    "reverse": lambda v: v.reverse(),
    "sort": lambda v: v.sort(),
    "sort by": lambda v: v.sort(key=lambda x: -x, reverse=False),
    "sort wrongly": lambda v: v.sort(key=lambda x: x.none),
    "sort positionally": lambda v: v.sort(len),
    "shuffle": lambda v: random.Random(5).shuffle(v),
}


@pytest.mark.parametrize("name", EDITS)
@pytest.mark.parametrize("values", [[3.0, 1.0, 2.0, 3.0, 0.0, 5.0, 6.0, 7.0], []], ids=["eight", "none"])
def test_it_changes_as_a_list_of_floats_and_its_statistics_with_it(name: str, values: list[float]) -> None:
    store, shown = stored(*values)
    plain = list(values)
    got, want = outcome(lambda: EDITS[name](shown)), outcome(lambda: EDITS[name](plain))
    assert type(got) is type(want) and got == want
    assert shown == plain and store.epoch_dict["X"] is shown
    assert_holds(store, "X", plain)
    store.store(X=4)
    plain.append(4.0)
    assert shown == plain
    assert_holds(store, "X", plain)


@pytest.mark.parametrize("n", LENGTHS)
def test_at_every_length_of_blocks_values_stand_where_they_were_put(n: int) -> None:
    want = np.random.default_rng(n).normal(1e6, 1, n)
    store, shown = stored(*want.tolist())
    assert len(shown) == n and bool(shown) == (n > 0)
    assert np.array_equal(np.asarray(shown), want) and np.asarray(shown).dtype == np.float64
    assert list(shown) == want.tolist() and shown == want.tolist()
    for i in {0, n // 2, n - 33, n - 1, -1, -n} & set(range(-n, n)):
        assert shown[i] == want[i]
    assert shown[max(0, n - 40) :] == want[max(0, n - 40) :].tolist()
    assert shown[:: max(1, n // 7)] == want[:: max(1, n // 7)].tolist()
    assert_holds(store, "X", want)
    store.store(X=0.5)
    shown.extend(want)
    assert np.array_equal(np.asarray(shown), [*want, 0.5, *want])
    assert_holds(store, "X", [*want, 0.5, *want])
    del shown[: n + 1]
    assert shown == want.tolist()
    assert_holds(store, "X", want)
    assert store._take("X").count == n and store.epoch_dict["X"] == [] and shown == want.tolist()


@pytest.mark.parametrize("n", [1, 31, 32, 33, 8191, 8192, 8193])
def test_arrays_between_scalars_keep_their_places(n: int) -> None:
    want: list[Any] = []
    store = EpochStore()
    for piece in range(3):
        scalars = [float(i + piece) for i in range(n)]
        array = np.full((2, 2), float(piece))
        for x in scalars:
            store.store(X=x)
        store.store(X=array)
        want += [*scalars, array]
    shown = store.epoch_dict["X"]
    assert len(shown) == len(want) == 3 * (n + 1)
    for got, x in zip(shown, want, strict=True):
        assert got is x if isinstance(x, np.ndarray) else got == x
    assert shown[n] is want[n] and shown[-1] is want[-1] and shown[n + 1] == 1.0
    for i in range(0, len(want), max(1, n // 3)):
        assert all(a is b or a == b for a, b in zip(shown[i : i + 2], want[i : i + 2], strict=True))
    assert_holds(store, "X", want)
    shown.insert(n, 7.0)
    want.insert(n, 7.0)
    assert shown[n] == 7.0 and shown[n + 1] is want[n + 1]
    assert_holds(store, "X", want)


def test_arrays_come_back_as_they_were_stored_and_zero_d_ones_as_floats() -> None:
    array, values, tensor = np.ones((2, 3), np.float32), [1, [2.0]], torch.ones(2, requires_grad=True)
    _, shown = stored(array, values, tensor, np.array(5), torch.tensor(6), True, np.float32(0.5))
    assert shown[0] is array and shown[1] is values
    assert isinstance(shown[2], torch.Tensor) and not shown[2].requires_grad
    assert [(type(x), x) for x in shown[3:]] == [(float, 5.0), (float, 6.0), (float, 1.0), (float, 0.5)]
    assert repr(stored(array, 1)[1]) == repr([array, 1.0])


def test_arrays_of_one_shape_become_one_array_and_others_do_not() -> None:
    _, shown = stored(np.ones(2), np.zeros(2))
    assert np.asarray(shown).tolist() == [[1, 1], [0, 0]] and np.mean(shown) == 0.5
    assert np.concatenate(shown).tolist() == [1, 1, 0, 0]
    shown.append(np.ones(3))
    with pytest.raises(ValueError, match="inhomogeneous"):
        np.asarray(shown)
    assert numbers(shown) == [1, 1, 0, 0, 1, 1, 1]


def test_an_array_of_it_is_always_a_copy() -> None:
    store, shown = stored(1.0, 2.0)
    np.asarray(shown)[:] = 0
    np.array(shown, copy=True)[:] = 0
    assert shown == [1.0, 2.0] and store._peek("X").mean == 1.5
    with pytest.raises(ValueError, match="always a copy"):
        np.array(shown, copy=False)


def test_it_counts_as_a_sequence_and_matches_patterns() -> None:
    _, shown = stored(1.0, 2.0, 3.0)
    assert isinstance(shown, MutableSequence) and not isinstance(shown, list)
    match shown:
        case [first, *rest]:
            assert (first, rest) == (1.0, [2.0, 3.0])
        case _:
            raise AssertionError("no sequence")


def test_one_made_alone_is_a_list_of_floats() -> None:
    assert StoredValues() == [] and StoredValues((1, 2)) == [1.0, 2.0]
    alone = StoredValues([1])
    alone += [np.ones(2)]
    assert alone[0] == 1.0 and len(alone) == 2
    with pytest.raises(TypeError, match="cannot take statistics of str"):
        alone.append("x")
    with pytest.raises(TypeError, match="cannot take statistics of NoneType"):
        StoredValues([1.0, None])


def test_it_equals_itself_even_with_nan_and_no_other_list_then() -> None:
    _, shown = stored(1.0, float("nan"))
    assert shown == shown and shown != list(shown)
