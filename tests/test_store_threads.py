"""Threads that store into one logger, read it and log it at once: no value is lost or counted twice."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from spinstat._core import EpochStore


@pytest.fixture(autouse=True)
def quick_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def run(*works: Callable[[], Any]) -> None:
    """Run each in a thread, all started together; what one raises is raised here."""
    start = threading.Barrier(len(works))
    errors: list[BaseException] = []

    def thread(work: Callable[[], Any]) -> None:
        try:
            start.wait()
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=thread, args=(work,)) for work in works]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if errors:
        raise errors[0]


def call_site(i: int) -> Callable[[EpochStore, float], None]:
    """A call site of its own, of a key of its own and one that all share."""
    scope: dict[str, Any] = {}
    exec(f"def call(store, x): store.store(Own{i}=x, Shared=x)", scope)
    call: Callable[[EpochStore, float], None] = scope["call"]
    return call


@pytest.mark.parametrize("keep", [True, False])
def test_eight_threads_store_while_one_reads_and_nothing_is_lost(keep: bool) -> None:
    store = EpochStore()
    store.keep_values = keep
    done = threading.Event()
    n, threads = 4000, 8

    def writer(i: int) -> None:
        site = call_site(i)
        for k in range(n):
            site(store, 1.0)
            store.store(**{"Shared": np.float32(2.0), f"Own{i}": k})
            if k % 16 == 0:
                store.store({"Shared": [3.0, 3.0]}, Arrays=np.full(3, 4.0))

    def reader() -> None:
        seen = 0
        while not done.is_set():
            m = store._peek("Shared")
            assert m.count >= seen and (m.count == 0 or 1.0 <= m.min <= m.max <= 3.0)
            seen = m.count
            if keep:
                values = store.epoch_dict.get("Shared", [])
                assert len(values[-100:]) <= 100 and len(values) >= len(values[:50])
            repr(store.epoch_dict.keys())
            time.sleep(0)

    def writers() -> None:
        try:
            run(*[lambda i=i: writer(i) for i in range(threads)])
        finally:
            done.set()

    run(writers, reader)
    shared = store._take("Shared")
    assert shared.count == threads * (2 * n + 2 * (n // 16))
    assert shared.mean * shared.count == pytest.approx(threads * (3 * n + 6 * (n // 16)), rel=1e-12)
    assert store._peek("Arrays").count == 3 * threads * (n // 16)
    for i in range(threads):
        assert store._peek(f"Own{i}").count == 2 * n


def test_values_stored_while_another_thread_logs_are_in_one_epoch_or_the_next() -> None:
    store = EpochStore()
    n, threads = 20_000, 4
    done = threading.Event()
    taken = []

    def writer() -> None:
        for _ in range(n):
            store.store(A=1.0)
            store.store(A=[1.0])

    def logger() -> None:
        while not done.is_set():
            taken.append(store._take("A"))

    def writers() -> None:
        run(*[writer] * threads)
        done.set()

    run(writers, logger)
    taken.append(store._take("A"))
    assert sum(m.count for m in taken) == 2 * n * threads
    assert all(m.count == 0 or (m.mean, m.std()) == (1.0, 0.0) for m in taken)
    assert store.epoch_dict == {"A": []}


def test_values_appended_while_another_thread_edits_the_list_are_all_there() -> None:
    store = EpochStore()
    store.store(A=-1.0)
    values = store.epoch_dict["A"]
    n = 3000

    def writer(first: int) -> None:
        for i in range(first, first + n):
            store.store(A=float(i))
            if i % 10 == 0:
                values.append(np.full(2, 0.5))

    def editor() -> None:
        for i in range(100):
            values[0] = -float(i)
            values.insert(0, -1000.0)
            assert values.pop(0) == -1000.0

    run(lambda: writer(0), lambda: writer(n), editor)
    scalars = [x for x in values if not isinstance(x, np.ndarray)]
    assert sorted(scalars) == [-99.0, *map(float, range(2 * n))]
    assert len(values) - len(scalars) == 600
    m = store._peek("A")
    assert (m.count, m.min, m.max) == (2 * n + 1 + 1200, -99.0, 2 * n - 1)
    assert m.mean == pytest.approx((sum(scalars) + 600) / m.count, rel=1e-12)


def test_edits_by_two_threads_all_count() -> None:
    store = EpochStore()
    store.store(A=0.0)
    values = store.epoch_dict["A"]
    run(*[lambda i=i: [values.insert(0, float(i)) for _ in range(300)] for i in range(3)])
    assert sorted(values) == sorted([0.0, *[float(i) for i in range(3) for _ in range(300)]])
    assert store._peek("A").count == 901


def test_the_first_store_of_a_key_may_come_from_all_threads_at_once() -> None:
    for _ in range(50):
        store = EpochStore()
        run(*[lambda i=i, store=store: call_site(i)(store, 1.0) for i in range(6)])
        assert store._peek("Shared").count == 6
        assert sorted(store._keys()) == sorted(["Shared", *(f"Own{i}" for i in range(6))])


def test_keys_deleted_and_made_anew_by_one_thread_leave_the_others_their_values() -> None:
    store = EpochStore()
    done = threading.Event()

    def deleter() -> None:
        while not done.is_set():
            store.epoch_dict.pop("Shared", None)
            store.epoch_dict["Shared"] = []

    def writers() -> None:
        run(*[lambda i=i: [call_site(i)(store, 1.0) for _ in range(2000)] for i in range(4)])
        done.set()

    run(writers, deleter)
    assert [store._peek(f"Own{i}").count for i in range(4)] == [2000] * 4
    store.epoch_dict.pop("Shared")
    call_site(0)(store, 5.0)
    assert store.epoch_dict["Shared"] == [5.0]
