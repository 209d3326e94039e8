"""Other code that runs wherever the garbage collector may: finalizers, and threads they give way to."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from stores import assert_holds

from spinstat._core import EpochStore

TIMES = range(50)  # more than there are collections in any of these calls


@contextmanager
def at_collections(work: Callable[[], Any], only: int | None = None) -> Iterator[None]:
    """Have the collector run at each allocation, and do something each time, or the time of that number."""
    seen = 0
    kept = []  # one more object each time: the collector runs when there are two more than the last time

    def callback(phase: str, info: Any) -> None:
        nonlocal seen
        if phase == "stop":
            if only is None or seen == only:
                work()
            seen += 1
            kept.append(SimpleNamespace())

    before = gc.get_threshold()
    gc.set_threshold(1, 1, 1)
    gc.callbacks.append(callback)
    try:
        yield
    finally:
        gc.callbacks.remove(callback)
        gc.set_threshold(*before)


def call_site() -> Callable[[EpochStore, Any], None]:
    scope: dict[str, Any] = {}
    exec("def call(store, x): store.store(A=x, B=x)", scope)
    call: Callable[[EpochStore, Any], None] = scope["call"]
    return call


@pytest.mark.parametrize("how", ["scalars", "lists", "mapping"])
def test_a_key_first_stored_in_the_middle_of_its_first_store_keeps_both_values(how: str) -> None:
    hits = 0
    for time in TIMES:
        store, site = EpochStore(), call_site()
        stored = [0]

        def work(store: EpochStore = store, stored: list[int] = stored) -> None:
            stored[0] += "A" not in store.epoch_dict
            store.store(A=2.0)

        with at_collections(work, time):
            if how == "mapping":
                store.store({"A": 1.0})
            else:
                site(store, 1.0 if how == "scalars" else [1.0])
        hits += stored[0]
        m = store._peek("A")
        assert m.min == 1.0 and m.count == len(store.epoch_dict["A"]) >= 1 + stored[0]
    # From 3.12 on the collector waits for the end of the call; in between, finalizers alone run.
    assert hits > 0 or sys.version_info >= (3, 12)


def test_a_key_deleted_in_the_middle_of_a_store_loses_no_later_value() -> None:
    for time in TIMES:
        store, site = EpochStore(), call_site()
        store.store(A=0.5)
        with at_collections(lambda store=store: store.epoch_dict.pop("A", None), time):
            site(store, 1.0)
        before = store._peek("A").count
        for _ in range(5):
            site(store, 3.0)
        assert store._peek("A").count == before + 5 and store.epoch_dict["A"][-5:] == [3.0] * 5
        assert store._peek("B").count == 6


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("end", ["_take", "_discard"])
def test_a_value_stored_in_the_middle_of_the_log_is_of_the_old_epoch_or_the_new_one(
    end: str, keep: bool
) -> None:
    for time in TIMES:
        store = EpochStore()
        store.keep_values = keep
        store.store(A=1.0)
        stored = [0]

        def work(store: EpochStore = store, stored: list[int] = stored) -> None:
            store.store(A=2.0)
            stored[0] += 1

        with at_collections(work, time):
            taken = getattr(store, end)("A")
        if end == "_take":
            assert taken.count + store._peek("A").count == 1 + stored[0]
        assert store._peek("A").count <= stored[0]


def test_a_list_edited_in_the_middle_of_an_edit_has_both_edits() -> None:
    for time in TIMES:
        store = EpochStore()
        store.store(A=1.0)
        values = store.epoch_dict["A"]
        values.append(2.0)
        edited = [0]

        def work(values: Any = values, edited: list[int] = edited) -> None:
            values.insert(0, 9.0)
            edited[0] += 1

        with at_collections(work, time):
            values[0] = 5.0
        assert list(values) in ([[5.0, 2.0]] if not edited[0] else [[5.0, 1.0, 2.0], [9.0, 5.0, 2.0]])
        assert_holds(store, "A", list(values))


def test_values_appended_in_the_middle_of_edits_are_not_lost() -> None:
    store = EpochStore()
    store.store(A=-1.0)
    values = store.epoch_dict["A"]
    stored = [0]

    def work() -> None:
        store.store(A=float(stored[0]))
        stored[0] += 1

    with at_collections(work):
        for _ in range(50):
            values[0] -= 1
            values.insert(0, 0.5)
            del values[0]
    assert values == [-51.0, *map(float, range(stored[0]))]
    assert_holds(store, "A", [-51.0, *range(stored[0])])


def test_values_stored_in_the_middle_of_reading_are_not_lost() -> None:
    store = EpochStore()
    stored = [0]

    def work() -> None:
        store.store(A=1.0, B=[2.0])
        stored[0] += 1

    taken = 0
    with at_collections(work):
        for i in range(400):
            values = store.epoch_dict["A"] if "A" in store.epoch_dict else []
            assert np.asarray(values).sum() <= len(values)
            assert set(values) <= {1.0}
            values[1:], repr(values)
            if i % 3 == 0:
                taken += store._take("A").count
                assert store._peek("B").count >= taken
    assert stored[0] == taken + store._peek("A").count == store._peek("B").count > 400


def test_all_keys_replaced_in_the_middle_of_anything_leave_a_store_that_works() -> None:
    store = EpochStore()
    with at_collections(lambda: setattr(store, "epoch_dict", {"A": [1.0], "C": (2.0,)})):
        for i in range(200):
            call_site()(store, float(i))
            store.store({"A": [1.0]}, C=2, D=np.ones(3))
            store._take("D"), list(store.epoch_dict.items()), repr(store.epoch_dict)
            store.epoch_dict.pop("B", None)
    store.epoch_dict.clear()
    call_site()(store, 4.0)
    assert store.epoch_dict == {"A": [4.0], "B": [4.0]}
