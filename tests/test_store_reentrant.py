"""The caller's code running in the middle of a store or a reading: conversions, finalizers, comparisons."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from stores import assert_holds

from spinstat._core import EpochStore


class Runs:
    """A number whose conversion runs something first."""

    def __init__(self, first: Callable[[], Any], x: float = 1.0) -> None:
        self.first, self.x = first, x

    def __float__(self) -> float:
        self.first()
        return self.x


class Finalized:
    """Array-like that runs something when it is dropped."""

    def __init__(self, last: Callable[[], Any], x: float = 1.0) -> None:
        self.last, self.x = last, x

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array([self.x])

    def __del__(self) -> None:
        self.last()


def test_a_float_method_may_store_into_the_same_logger() -> None:
    store = EpochStore()
    for i in range(200):
        store.store(A=1.0, B=Runs(lambda i=i: store.store(A=float(i), C=Runs(lambda: store.store(A=0.5)))))
    assert_holds(store, "A", [x for i in range(200) for x in (0.5, float(i), 1.0)])
    assert store.epoch_dict["A"][:6] == [0.5, 0.0, 1.0, 0.5, 1.0, 1.0]
    assert (store._peek("B").count, store._peek("C").count) == (200, 200)


def test_a_float_method_that_stores_and_then_raises_undoes_its_own_call_alone() -> None:
    store = EpochStore()

    def store_and_raise() -> None:
        store.store(A=5.0)
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        store.store(A=1.0, B=Runs(store_and_raise), C=2.0)
    with pytest.raises(RuntimeError, match="no"):
        store.epoch_dict["A"].extend([1.0, Runs(store_and_raise)])
    assert store.epoch_dict == {"A": [5.0, 5.0]}


def test_a_float_method_may_log_delete_or_replace_the_keys_of_the_call() -> None:
    store = EpochStore()
    changes: list[Callable[[], Any]] = [
        lambda: store._take("A"),
        lambda: store.epoch_dict.pop("A", None),
        lambda: store.epoch_dict.clear(),
        lambda: setattr(store, "epoch_dict", {"A": [7.0]}),
    ]
    want = [[2.0], [2.0], [2.0], [7.0, 2.0]]
    for change, values in zip(changes, want, strict=True):
        store.epoch_dict = {}
        store.store(A=1.0, B=1.0)
        store.store(A=2.0, B=Runs(change, 3.0))
        assert store.epoch_dict["A"] == values
        assert store.epoch_dict["B"][-1] == 3.0


@pytest.mark.parametrize("drop", ["_take", "_discard", "_forget"])
def test_a_finalizer_may_store_while_its_key_is_emptied(drop: str) -> None:
    store = EpochStore()
    for _ in range(300):
        store.store(A=1.0)
        store.store(A=Finalized(lambda: store.store(A=2.0, B=3.0)))
        getattr(store, drop)("A")
        gc.collect(0)
        assert store.epoch_dict["A"] == [2.0]
        store._discard("A")
    assert_holds(store, "B", [3.0] * 300)


def test_a_finalizer_may_store_while_all_keys_go() -> None:
    store = EpochStore()
    store.store(A=Finalized(lambda: store.store(A=2.0)), B=Finalized(lambda: store.store(B=4.0)))
    store.epoch_dict = {"C": [1.0]}
    assert store.epoch_dict == {"C": [1.0], "A": [2.0], "B": [4.0]}
    store.epoch_dict["A"].append(Finalized(lambda: store.store(A=5.0)))
    store.epoch_dict.clear()
    assert store.epoch_dict == {"A": [5.0]}
    store.epoch_dict["A"].append(Finalized(lambda: store.store(A=6.0)))
    store.epoch_dict["A"][:] = [1.0]
    assert store.epoch_dict == {"A": [1.0, 6.0]}


def test_an_index_that_empties_the_list_reads_nothing_that_is_not_there() -> None:
    store = EpochStore()
    store.store(A=1.0)
    values = store.epoch_dict["A"]

    class Empties:
        def __index__(self) -> int:
            values.clear()
            return 10_000

    values.extend(range(20_000))
    assert values[: Empties()] == []
    values.extend(range(20_000))
    with pytest.raises(IndexError):
        values[Empties()]
    values.extend(range(20_000))
    assert values[Empties() :: -1] == []
    assert list(values) == []


def test_a_value_that_edits_the_list_when_compared_cannot_break_it() -> None:
    store = EpochStore()
    store.store(A=1.0)
    values = store.epoch_dict["A"]
    values.extend([2.0] * 10_000)

    class Clears:
        def __eq__(self, other: object) -> bool:
            values.clear()
            return False

        __hash__ = None  # type: ignore[assignment]

    assert Clears() not in values
    assert values == [] and store._peek("A").count == 0
    values.extend([3.0, 4.0])
    with pytest.raises(ValueError):
        values.remove(Clears())
    assert values == [] and store._peek("A").count == 0


def test_a_collection_that_stores_when_it_is_gone_through_has_what_it_stored() -> None:
    store = EpochStore()

    class Stores:
        """An assigned collection, to which nothing can be appended."""

        started = False

        def __len__(self) -> int:
            return 1

        def __iter__(self) -> Any:
            if not self.started:
                self.started = True
                store.store(A=2.0)
            return iter([1.0])

    store.epoch_dict["A"] = Stores()
    store.store(A=3.0)
    assert store.epoch_dict["A"] == [1.0, 2.0, 3.0]
    assert_holds(store, "A", [1.0, 2.0, 3.0])


def test_an_edit_during_which_the_list_was_edited_is_done_again() -> None:
    store = EpochStore()
    store.store(A=1.0)
    values = store.epoch_dict["A"]
    values.append(2.0)

    class Inserts:
        """Equal to what it is first compared with after it has put a value before it, and to that value."""

        def __eq__(self, other: object) -> bool:
            if len(values) == 2:
                values.insert(0, 9.0)
            return True

        __hash__ = None  # type: ignore[assignment]

    values.remove(Inserts())
    assert values == [1.0, 2.0]
    assert_holds(store, "A", [1.0, 2.0])

    class Turns(Inserts):
        def __eq__(self, other: object) -> bool:
            values.reverse()
            return True

    with pytest.raises(RuntimeError, match="changed each time"):
        values.remove(Turns())
    assert sorted(values) == [1.0, 2.0]


def test_iteration_follows_a_list_that_grows_and_shrinks_as_that_of_a_list_does() -> None:
    def walk(values: Any) -> list[float]:
        seen = []
        for x in values:
            seen.append(x)
            if x in (5.0, 7.0):
                values.append(100.0 + x)
            if x == 10.0:
                del values[:3]
            if x == 20.0:
                values[:2] = [-1.0]
            if x == 105.0:
                values.clear()
        return seen

    store = EpochStore()
    for i in range(50):
        store.store(A=float(i))
    assert walk(store.epoch_dict["A"]) == walk([float(i) for i in range(50)])


def test_an_error_while_a_list_is_edited_leaves_it_as_it_was() -> None:
    store = EpochStore()
    store.store(A=1.0)
    values = store.epoch_dict["A"]
    values.extend(np.arange(9000.0).tolist())
    before = list(values)
    for edit in (
        lambda: values.append(None),
        lambda: values.extend([1.0, "x"]),
        lambda: values.__setitem__(5, "x"),
        lambda: values.__setitem__(slice(2, 5), [1.0, None]),
        lambda: values.insert(3, 1j),
        lambda: values.__setitem__(slice(0, 4, 2), [1.0]),
        lambda: values.__delitem__(slice("a", None)),
    ):
        with pytest.raises((TypeError, ValueError)):
            edit()
        assert values == before
    assert_holds(store, "A", before)
    with pytest.raises(TypeError, match="'A'"):
        values.append(None)


def test_recursion_at_its_limit_raises_and_stores_nothing() -> None:
    store = EpochStore()

    def deeper() -> None:
        store.store(A=1.0, B=Runs(deeper))

    with pytest.raises(RecursionError):
        deeper()
    assert store.epoch_dict == {}
    store.store(A=1.0)
    assert store.epoch_dict == {"A": [1.0]}


def test_stores_from_a_signal_like_interruption_and_from_a_thread_within_a_conversion_count() -> None:
    store = EpochStore()

    def in_a_thread() -> None:
        thread = threading.Thread(target=lambda: [store.store(A=1.0) for _ in range(100)])
        thread.start()
        thread.join()

    for _ in range(20):
        store.store(A=2.0, B=Runs(in_a_thread))
    assert_holds(store, "A", [1.0] * 2000 + [2.0] * 20)
    assert sys.getrefcount(store) < 10


class LoggedWhenCopied(np.ndarray):
    """An array whose copying logs its key, as another thread may at that moment."""

    store: EpochStore

    def copy(self, order: Any = "C") -> np.ndarray:  # type: ignore[override]
        self.store._take("X")
        return np.asarray(self).copy()


def test_what_is_stored_while_a_list_of_the_callers_is_logged_counts_next_time() -> None:
    store = EpochStore()
    store._assign("X", [1.0])
    array = np.array([2.0, 3.0]).view(LoggedWhenCopied)
    array.store = store
    store.store(X=array)
    assert store._take("X").count == 2


class Key(str):
    """A key whose comparison runs something first."""

    first: Callable[[], Any] | None = None

    def __eq__(self, other: object) -> bool:
        if self.first:
            self.first()
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_what_is_stored_while_a_key_is_deleted_is_not_lost() -> None:
    store = EpochStore()

    def one(x: float) -> None:
        store.store(X=x)

    one(0.0)
    key = Key("X")
    key.first = lambda: one(1.0)
    store._forget(key)
    for x in (2.0, 3.0):
        one(x)
    assert store._take("X").count == 2
