"""What a store holds on to: values while they are stored, and nothing else."""

from __future__ import annotations

import gc
import os
import sys
import tracemalloc
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import RunPython
from stores import logged

from spinstat import EpochLogger
from spinstat._core import EpochStore

# The allocator of AddressSanitizer sets blocks apart.
SANITIZED = "asan" in os.environ.get("LD_PRELOAD", "")
KEPT_AT_MOST = 60_000_000 if SANITIZED else 44_000_000


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    """Objects must go when the last reference does, without help."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class Mark:
    """Lives as long as the graph that it is put into."""


def watched(tensor: torch.Tensor) -> weakref.ref[Mark]:
    mark = Mark()
    tensor.grad_fn.metadata["mark"] = mark
    return weakref.ref(mark)


def test_b3_no_graph_of_a_loss_is_kept(output_dir: str) -> None:
    logger = EpochLogger(output_dir, quiet=True)
    logger.epoch_dict["Assigned"] = []
    w = torch.ones(1000, requires_grad=True)
    graphs = []
    for _ in range(50):
        loss, losses = (w * w).sum(), w * 2
        nested = [loss * 3, (w * 4, [w * 5])]
        graphs += [watched(t) for t in (loss, losses, nested[0], nested[1][0], nested[1][1][0])]
        logger.store(Loss=loss, Losses=losses, Nested=nested, Assigned=losses)
        logger.store({"Loss": loss, "Assigned": nested})
        logger.epoch_dict["Losses"].append(losses)
        del loss, losses, nested
    assert [graph() for graph in graphs if graph() is not None] == []
    assert len(logger.epoch_dict["Losses"]) == 100 and len(logger.epoch_dict["Assigned"]) == 100
    assert not logger.epoch_dict["Nested"][0][1][1][0].requires_grad
    assert logged(logger, "Loss") == (1000.0, 0.0, 1000.0, 1000.0)
    assert (logger._take("Nested").count, logger._take("Assigned").max) == (50 * 2001, 3000.0)


def test_arrays_are_let_go_when_their_key_is_logged_deleted_or_replaced() -> None:
    class Array(np.ndarray):
        """An array that can be watched."""

    ends: list[Callable[[EpochStore], Any]] = [
        lambda store: store._take("A"),
        lambda store: store._discard("A"),
        lambda store: store.epoch_dict.__delitem__("A"),
        lambda store: store.epoch_dict.clear(),
        lambda store: store.epoch_dict["A"].clear(),
        lambda store: store.epoch_dict["A"].__setitem__(slice(None), [1.0]),
        lambda store: store.epoch_dict.__setitem__("A", [1.0]),
        lambda store: setattr(store, "epoch_dict", {}),
    ]
    for end in ends:
        store = EpochStore()
        array = np.ones(3).view(Array)
        watch = weakref.ref(array)
        store.store(A=array, B=1.0)
        store.store(A=2.0)
        del array
        assert watch() is not None
        end(store)
        assert watch() is None
    store = EpochStore()
    array = np.ones(3).view(Array)
    watch = weakref.ref(array)
    store.store(A=array)
    del array, store
    assert watch() is None


def test_without_kept_values_no_array_is_kept() -> None:
    store = EpochStore()
    store.keep_values = False
    array, values = np.ones(3), [1.0]
    before = sys.getrefcount(array), sys.getrefcount(values)
    for _ in range(100):
        store.store(A=array, B=values)
    assert (sys.getrefcount(array), sys.getrefcount(values)) == before


def test_no_call_keeps_or_loses_a_reference() -> None:
    store = EpochStore()
    store.keep_values = False
    key, scalar, array, numpy_scalar = "some key of ours", 1.5e300, np.ones(3), np.float32(2.5)
    bad = object()
    mapping = {key: scalar}
    watched = [key, scalar, array, numpy_scalar, bad, mapping, type(store.epoch_dict)]

    def calls() -> None:
        store.store(**mapping)
        store.store(mapping)
        store.store(mapping, A=array, B=numpy_scalar)
        store.store(A=scalar, B=numpy_scalar, C=7)
        for wrong in (
            lambda: store.store(A=1.0, B=bad),
            lambda: store.store(bad),
            lambda: store.store({1: scalar}),
            lambda: store.store(mapping, **mapping),
            lambda: store.epoch_dict[key],
        ):
            with pytest.raises((TypeError, ValueError)):
                wrong()
        store._take(key), store._peek(key), store._discard("A"), store._keys(), repr(store.epoch_dict)

    for _ in range(80):  # until as many tuples of names are remembered as ever will be
        calls()
    before = [sys.getrefcount(x) for x in watched]
    for _ in range(200):
        calls()
    assert [sys.getrefcount(x) for x in watched] == before


def grown(work: Callable[[], Any], times: int) -> int:
    """Bytes that Python's allocators hand out more after `times` rounds of work than after a few."""
    for _ in range(3):
        work()
    tracemalloc.start()
    work()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(times):
        work()
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return after - before


@pytest.mark.parametrize("keep", [True, False])
def test_epochs_cost_no_memory_once_logged(keep: bool) -> None:
    store = EpochStore()
    store.keep_values = keep
    array, tensor = np.ones(10), torch.ones(10)

    def epoch() -> None:
        for i in range(300):
            store.store(A=1.0, B=i, C=array)
            store.store(**{"D": 1.0})
            store.store({"E": tensor}, F=[1, 2])
        if keep:
            values = store.epoch_dict["B"]
            values[0], values[-3:], list(values), np.asarray(values), repr(values), values == [1.0]
            values.append(2.0)
            values[0] = 5.0
            store.epoch_dict["C"].pop()
            store.epoch_dict["A"] = [1.0] * 10
        for key in store._keys():
            store._take(key)
        del store.epoch_dict["D"]
        exec("store.store(A=1.0, F=2.0)", {"store": store})

    assert grown(epoch, 20) < 4096


def test_stores_and_their_lists_cost_no_memory_once_gone() -> None:
    def work() -> None:
        store = EpochStore()
        store.store(A=1.0, B=np.ones(3))
        values = store.epoch_dict["A"]
        values.extend(range(100))
        store.epoch_dict["C"] = values
        store._take("A")
        with suppress(TypeError):
            store.store(A="x")

    assert grown(work, 300) < 4096


def test_keys_made_up_as_the_run_goes_are_forgotten_with_their_call_sites() -> None:
    store = EpochStore()

    def work() -> None:
        for i in range(3000):
            store.store(**{f"key/{i}": 1.0})
        store.epoch_dict.clear()

    assert grown(work, 5) < 65536


# In another process, where nothing else moves the figures.
GROWTH = """
import resource, sys
from spinstat._core import EpochStore
store = EpochStore()
store.keep_values = sys.argv[1] == "keep"
def store_some(n):
    f = store.store
    for _ in range(n // 20):
        {calls}
def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()
store_some(100_000)
before = resident()
store_some(int(sys.argv[2]))
print(resident() - before, store._peek("A").count)
""".replace("{calls}", "; ".join(["f(A=0.5)"] * 20))


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads the resident size in /proc")
@pytest.mark.parametrize(("keep", "limit"), [("keep", KEPT_AT_MOST), ("lean", 1 << 20)])
def test_b18_five_million_stores_take_eight_bytes_each_or_none(
    keep: str, limit: int, run_python: RunPython
) -> None:
    done = run_python("-c", GROWTH, keep, "5000000")
    growth, count = map(int, done.stdout.split())
    assert count == 5_100_000
    assert growth < limit


def test_a_process_forked_after_storing_goes_on_by_itself(run_python: RunPython) -> None:
    done = run_python(
        "-c",
        """
import os
from spinstat._core import EpochStore
store = EpochStore()
for i in range(20_000):
    store.store(A=float(i), B=[i])
read, write = os.pipe()
child = os.fork()
if not child:
    for i in range(20_000):
        store.store(A=float(i), B=[i])
    store.store(**{f"k{i}": i for i in range(100)})
    os.write(write, f"{store._take('A').count} {len(store.epoch_dict['B'])} {len(store.epoch_dict)}".encode())
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
store.store(A=1.0)
print(os.read(read, 100).decode(), store._take("A").count, len(store.epoch_dict["B"]))
""",
    )
    assert done.stdout.split() == ["40000", "40000", "102", "20001", "20000"]
