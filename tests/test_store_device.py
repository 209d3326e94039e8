"""Tensors on a device: reduced there at the store, their numbers brought over in one copy at the log.

What the store does with them is alike on every device, so it is tested with tensors of the CPU that are taken
for such, and with a GPU where there is one.
"""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from stores import assert_holds, row_of

from spinstat import EpochLogger, Moments, _arrays, moments
from spinstat._core import EpochStore

NEEDS_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU that torch can use")


class Fetches(list[int]):
    """How many states each copy from the device brought."""

    before: Any = None  # called before each


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[Fetches]:
    """Tensors of float16 count as lying on a device."""
    fetches, fetch = Fetches(), _arrays.fetch

    def watched(states: Sequence[Any]) -> list[list[float]]:
        fetches.append(len(states))
        if fetches.before is not None:
            fetches.before()
        return fetch(states)

    monkeypatch.setattr(_arrays, "on_device", lambda x: x.dtype == torch.float16)
    monkeypatch.setattr(_arrays, "fetch", watched)
    yield fetches


def there(*values: float) -> torch.Tensor:
    """A tensor of these values, on the device that is one for `device`."""
    return torch.tensor(values, dtype=torch.float16)


def test_b4_a_store_never_waits_and_one_copy_brings_all_keys(device: Fetches) -> None:
    store = EpochStore()
    for i in range(20):
        store.store(A=there(1.0, 3.0), B=there(float(i)), C=1.0, D=[there(2.0), 4.0, (there(6.0), there())])
    assert device == []
    assert_holds(store, "A", [1.0, 3.0] * 20)
    assert device == [20 + 20 + 3 * 20]
    assert_holds(store, "B", range(20))
    assert_holds(store, "D", [2.0, 4.0, 6.0] * 20)
    assert store._take("A").count == 40 and store._take("B").count == 20 and store._take("C").count == 20
    assert device == [100]


def test_b4_what_is_pending_is_merged_on_the_device_and_stays_few(device: Fetches) -> None:
    store = EpochStore()
    for i in range(1000):
        store.store(A=there(float(i % 7), 1.0))
    assert_holds(store, "A", [x for i in range(1000) for x in (float(i % 7), 1.0)])
    assert len(device) == 1 and device[0] <= 64


def test_b4_no_tensor_of_a_device_is_kept(device: Fetches) -> None:
    store = EpochStore()
    store.epoch_dict["Assigned"] = mine = [5.0]
    tensors = [there(1.0), there(2.0), there(3.0), there(4.0)]
    watches = [weakref.ref(t) for t in tensors]
    store.store(A=tensors[0], B=[tensors[1], 7.0], Assigned=tensors[2])
    store.epoch_dict["A"].append(tensors[3])
    store.store(A=0.5)
    tensors.clear()
    gc.collect()
    assert [watch() for watch in watches] == [None] * 4
    assert store.epoch_dict == {"Assigned": [5.0], "A": [0.5], "B": [[7.0]]}
    assert mine == [5.0]
    assert_holds(store, "A", [1.0, 4.0, 0.5])
    assert_holds(store, "B", [2.0, 7.0])
    assert_holds(store, "Assigned", [5.0, 3.0])


def test_b4_edits_of_the_list_leave_the_device_values_in_and_clearing_takes_them_out(device: Fetches) -> None:
    store = EpochStore()
    store.store(A=there(10.0))
    store.store(A=1.0)
    values = store.epoch_dict["A"]
    values[0] = 2.0
    values.insert(0, there(20.0))
    values.extend([3.0, there(30.0)])
    del values[1:]
    assert values == [2.0]
    assert_holds(store, "A", [2.0, 10.0, 20.0, 30.0])
    values[0] = 4.0
    assert_holds(store, "A", [4.0, 10.0, 20.0, 30.0])
    values.clear()
    assert store._peek("A").count == 0
    store.store(A=there(10.0))
    values[:] = [1.0, there(5.0)]
    assert_holds(store, "A", [1.0, 5.0])
    store.store(A=there(10.0))
    store._discard("A")
    assert store._peek("A").count == 0


def test_b4_keys_that_share_a_list_share_its_device_values(device: Fetches) -> None:
    store = EpochStore()
    store.store(A=there(1.0))
    store.epoch_dict["B"] = store.epoch_dict["A"]
    store.store(B=there(3.0))
    store.store(A=5.0)
    for key in ("A", "B"):
        assert_holds(store, key, [1.0, 3.0, 5.0])


@pytest.mark.parametrize("keep", [True, False])
def test_b4_values_stored_while_a_copy_waits_for_the_device_are_not_lost(device: Fetches, keep: bool) -> None:
    store = EpochStore()
    store.keep_values = keep
    stored = [0]

    def store_some() -> None:
        for _ in range(50):
            store.store(A=there(1.0), B=there(2.0))

    def meanwhile() -> None:
        if stored[0] < 500:
            stored[0] += 50
            thread = threading.Thread(target=store_some)
            thread.start()
            thread.join()

    device.before = meanwhile
    store.store(A=there(1.0))
    counts = [store._take("A").count, store._take("A").count, store._peek("A").count]
    device.before = None
    assert sum(counts) == 501 and store._take("B").count == 500


def test_b4_two_threads_that_read_at_once_count_nothing_twice(device: Fetches) -> None:
    store = EpochStore()
    for _ in range(10):
        store.store(A=there(1.0), B=there(2.0))
    depth = [0]

    def meanwhile() -> None:
        depth[0] += 1
        if depth[0] == 1:
            thread = threading.Thread(target=lambda: store._peek("B"))
            thread.start()
            thread.join()

    device.before = meanwhile
    assert store._peek("A").count == 10
    device.before = None
    assert (store._peek("A").count, store._peek("B").count) == (10, 10)


def test_b4_states_that_have_taken_the_place_of_fetched_ones_are_not_taken_for_them(device: Fetches) -> None:
    store = EpochStore()
    for _ in range(5):
        store.store(A=there(1.0))
    depth = [0]

    def meanwhile() -> None:
        depth[0] += 1
        if depth[0] == 1:
            assert store._peek("A").count == 5
            for _ in range(5):
                store.store(A=there(7.0))

    device.before = meanwhile
    assert store._peek("A").count == 10
    device.before = None
    assert_holds(store, "A", [1.0] * 5 + [7.0] * 5)


def test_b4_what_is_stored_is_counted_without_a_wait_and_still_when_it_was_fetched(device: Fetches) -> None:
    store = EpochStore()
    store.store(A=there(1.0, 2.0), B=1.0, C=[3.0, 4.0])
    store.epoch_dict["D"] = [1.0]
    store._discard("E")
    assert device == [] and set(store._counts()) == {"A", "B", "C", "D"}
    store._peek("A")
    assert store._counts() == {"A": 2, "B": 1, "C": 2, "D": 1}


def test_b4_an_error_of_the_device_leaves_what_was_stored(device: Fetches) -> None:
    store = EpochStore()
    store.store(A=there(1.0), B=2.0)

    def fail() -> None:
        raise RuntimeError("device lost")

    device.before = fail
    for read in (store._take, store._peek):
        with pytest.raises(RuntimeError, match="device lost"):
            read("A")
    device.before = None
    assert store._take("A").mean == 1.0 and store._take("B").mean == 2.0


def test_b4_outside_a_store_device_tensors_are_fetched_at_once(device: Fetches) -> None:
    m = Moments([there(1.0), 2.0])
    m.update(there(3.0, 4.0))
    assert (m.count, m.mean) == (4, 2.5) and moments(there()).count == 0
    store = EpochStore()
    store.epoch_dict["A"] = [there(1.0), 2.0]
    store.epoch_dict["B"] = there(1.0, 5.0)
    assert store._take("A").mean == 1.5 and store._take("B").mean == 3.0


def test_b4_states_on_several_devices_are_merged_by_device() -> None:
    class State:
        """A state that says it lies elsewhere."""

        def __init__(self, numbers: torch.Tensor, device: str) -> None:
            self.numbers, self.device = numbers, device

    states = [State(_arrays.device_moments(torch.tensor([float(i)])), f"gpu{i % 2}") for i in range(6)]
    merged: list[list[float]] = []
    original = _arrays.merge_on_device
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_arrays, "merge_on_device", lambda some: original([state.numbers for state in some]))
        merged = [state.tolist() for state in _arrays.merge_by_device(states)]
    assert [row[:2] for row in merged] == [[3.0, 2.0], [3.0, 3.0]]


def test_arrays_of_other_libraries_on_a_device_are_kept_as_arrays_of_the_cpu() -> None:
    class OnDevice:
        """What says through DLPack where it lies, and gives its elements as an array."""

        def __init__(self, kind: int) -> None:
            self.kind = kind

        def __dlpack_device__(self) -> tuple[int, int]:
            return self.kind, 0

        def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
            return np.array([1.0, 3.0])

    store = EpochStore()
    here, elsewhere = OnDevice(1), OnDevice(2)
    store.store(A=here)
    store.store(A=elsewhere)
    assert store.epoch_dict["A"][0] is here and type(store.epoch_dict["A"][1]) is np.ndarray
    assert_holds(store, "A", [1.0, 3.0, 1.0, 3.0])


# On a GPU ---------------------------------------------------------------------------------------------------


@NEEDS_GPU
def test_b4_tensors_of_a_gpu_are_logged_with_what_lies_elsewhere(output_dir: str) -> None:
    logger = EpochLogger(output_dir, quiet=True)
    cuda = torch.tensor([1.0, 2.0], device="cuda", requires_grad=True)
    six = torch.tensor(6.0, device="cuda")
    mean, std, high, low = row_of(logger, cuda * 2, six, 8, np.array([10.0]), [cuda])
    want = [2, 4, 6, 8, 10, 1, 2]
    assert (mean, std) == (pytest.approx(np.mean(want)), pytest.approx(np.std(want)))
    assert (high, low) == (10.0, 1.0)


@NEEDS_GPU
def test_b4_a_store_of_gpu_tensors_neither_waits_nor_keeps_their_memory() -> None:
    store = EpochStore()
    x = torch.ones(1 << 20, device="cuda")
    store.store(A=x * 2)
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(300):
            store.store(A=x * 2, B=x.sum(), C=[x.mean(), 1.0])
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert torch.cuda.memory_allocated() - before < 1 << 20
    assert store._take("A").mean == 2.0 and store._take("C").count == 600
