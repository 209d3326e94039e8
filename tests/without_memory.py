"""Makes every allocation of many operations fail in turn; prints the faults, and last how many failed.

Run as a program, by test_without_memory.py: without memory Python itself is not at its best. Operations must
raise MemoryError, or succeed; what was there before must still be there, and the next try must succeed.
Nothing may leak: repeated, the failures leave no block of memory behind.
"""

from __future__ import annotations

import _testcapi  # type: ignore[import-not-found]
import array
import ctypes
import decimal
import gc
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from spinstat import Moments, moments
from spinstat._core import EpochStore, Message, own_results

#: Successes one after the other that show that an operation allocates no more.
ENOUGH = 12
MOST = 3000
#: How often all failures of an operation are repeated, to tell a leak from noise.
REPEATS = 4
#: Read with NumPy's nditer, which now and then keeps some blocks where an allocation of its own fails.
BY_NUMPY = {f"moments: {x}" for x in ("strided", "big-endian", "float16", "bool", "masked", "a memoryview")}

Setup = Callable[[], Any]
Operation = Callable[[Any], object]


def failures(setup: Setup, operation: Operation, shown: Callable[[Any], object]) -> tuple[int, list[str]]:
    """How often an operation failed for want of memory, and what was wrong with it."""
    target = setup()
    before = shown(target)
    operation(target)
    after = shown(target)
    failed, faults, successes, i = 0, [], 0, 0
    while successes < ENOUGH and i < MOST:
        target, error = setup(), None
        _testcapi.set_nomemory(i, i + 1)
        try:
            operation(target)
        except BaseException as caught:
            error = caught
        finally:
            _testcapi.remove_mem_hooks()
        if error is None:
            successes += 1
            if shown(target) != after:
                faults.append(f"allocation {i}: it says that all is well, but {shown(target)} is not {after}")
        else:
            failed, successes = failed + 1, 0
            if not isinstance(error, MemoryError) and not is_of_numpy(error):
                faults.append(f"allocation {i}: {error!r}")
            elif shown(target) != before:
                faults.append(f"allocation {i}: {shown(target)} is not {before}")
            error = None
            operation(target)
            if shown(target) != after:
                faults.append(f"allocation {i}: tried again, {shown(target)} is not {after}")
        i += 1
    return failed, faults


def is_of_numpy(error: BaseException) -> bool:
    """Whether it is what NumPy makes of a failed allocation."""
    return isinstance(error, SystemError) and ("nditer" in str(error) or "error return without" in str(error))


def bytes_in_use() -> int:
    """Memory that the C library has handed out and not got back, in bytes."""

    class Mallinfo2(ctypes.Structure):
        _fields_ = [(name, ctypes.c_size_t) for name in
                    "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()]

    mallinfo2 = ctypes.CDLL(None).mallinfo2
    mallinfo2.restype = Mallinfo2
    found = mallinfo2()
    return int(found.uordblks + found.hblkhd)


# Moments of values that are read in their own ways -----------------------------------------------

NUMBERS = np.arange(40_000.0)
NEED_NO_MEMORY = {"moments: a float", "moments: a short list", "moments: an array.array"}
VALUES: dict[str, Any] = {
    "a float": 1.5,
    "contiguous": NUMBERS[:1000],
    "without the GIL": NUMBERS,
    "strided": NUMBERS[::2],
    "big-endian": NUMBERS.astype(">f8"),
    "float16": np.arange(1000.0, dtype="f2"),
    "Fortran order": np.asfortranarray(NUMBERS.reshape(200, 200))[:, 1:],
    "bool": NUMBERS > 7,
    "masked": np.ma.masked_greater(NUMBERS[:100], 50),
    "a short list": [1, 2.0, np.float32(3)],
    "a long list": list(range(5000)),
    "nested": [[1.0, [2.0, np.ones(3)]], (4.0, np.ones((2, 2))), range(5)],
    "an array.array": array.array("d", [1, 2, 3]),
    "a memoryview": memoryview(array.array("d", range(1000)))[::3],
    "a Decimal": decimal.Decimal(3),
}


def add_moments(name: str) -> tuple[Setup, Operation, Callable[[Any], object]]:
    value = VALUES[name]
    return lambda: Moments([7.0, 9.0]), lambda m: m.update(value), lambda m: m.to_bytes()


def other_ways(m: Moments) -> None:
    m += moments([1.0])
    m.merge(m.copy() + Moments.from_bytes(m.to_bytes()))


# The store, and its lists as a caller edits them --------------------------------------------------------

ARRAY = np.arange(3.0)


def filled(scalars: int, keep: bool = True) -> Callable[[], EpochStore]:
    """Makes a store with some scalars in A, and in B, where values are kept, arrays between scalars."""

    def setup() -> EpochStore:
        store = EpochStore()
        store.keep_values = keep
        for i in range(scalars):
            store.store(A=float(i))
        store.store(B=1.0)
        store.store(B=ARRAY)
        store.store(B=2.0)
        return store

    return setup


def sharing() -> EpochStore:
    """Makes a store with a list that two keys have."""
    store = filled(32)()
    store.epoch_dict["B"] = store.epoch_dict["A"]
    return store


def numbers(value: Any) -> list[float]:
    return [y for x in value for y in numbers(x)] if isinstance(value, list) else np.ravel(value).tolist()


def contents(store: EpochStore) -> object:
    """Everything that a store holds, in numbers that must be equal; keys without values left out."""
    found: dict[str, object] = {}
    for key in store._keys():
        m = store._peek(key)
        if store.keep_values:
            values = list(store.epoch_dict[key])
            arrays = any(type(x) is not float for x in values)
            held = [y for x in values for y in numbers(x)] if arrays else values
            if m.count != len(held) or (held and (m.min, m.max) != (min(held), max(held))):
                return f"{key}: {m} of {held}"
            found[key] = held
        else:
            found[key] = m.count, m.min, m.max
    return {key: held for key, held in found.items() if held}


def replace_all(store: EpochStore) -> None:
    store.epoch_dict = {"A": [1.0, 2.0], "New": [3.0]}


NEW_KEYS = {f"Key{i}": i for i in range(50)}
STORE: dict[str, tuple[Callable[[], EpochStore], Operation]] = {
    "a block grows": (filled(32), lambda s: s.store(A=1.0)),
    "a block becomes full-size": (filled(4096), lambda s: s.store(A=1.0)),
    "a block is closed": (filled(8192), lambda s: s.store(A=1.0)),
    "a block is folded": (filled(8192, keep=False), lambda s: s.store(A=1.0)),
    "an array ends a block": (filled(100), lambda s: s.store(A=ARRAY)),
    "two keys": (filled(32), lambda s: s.store(A=1.0, B=ARRAY)),
    "two keys, one list": (sharing, lambda s: s.store(A=ARRAY, B=ARRAY)),
    "new keys": (filled(3), lambda s: s.store(**NEW_KEYS)),
    "new keys by mapping": (filled(3), lambda s: s.store(NEW_KEYS)),
    "append": (filled(32), lambda s: s.epoch_dict["A"].append(1)),
    "append an array": (filled(32), lambda s: s.epoch_dict["A"].append(ARRAY)),
    "extend": (filled(32), lambda s: s.epoch_dict["A"].extend([1.0, ARRAY, 2.0])),
    "extend by itself": (filled(40), lambda s: s.epoch_dict["A"].extend(s.epoch_dict["A"])),
    "insert": (filled(40), lambda s: s.epoch_dict["A"].insert(3, ARRAY)),
    "pop": (filled(40), lambda s: s.epoch_dict["A"].pop(3)),
    "remove": (filled(40), lambda s: s.epoch_dict["A"].remove(30.0)),
    "a slice": (filled(40), lambda s: s.epoch_dict["A"].__setitem__(slice(1, 30), [1.0, ARRAY])),
    "all": (filled(40), lambda s: s.epoch_dict["A"].__setitem__(slice(None), [1.0, 5])),
    "clear": (filled(40), lambda s: s.epoch_dict["A"].clear()),
    "sort": (filled(40), lambda s: s.epoch_dict["A"].sort(reverse=True)),
    "multiply": (filled(40), lambda s: s.epoch_dict["A"].__imul__(3)),
    "assign": (filled(40), lambda s: s.epoch_dict.__setitem__("A", [1.0, 2.0])),
    "delete": (filled(40), lambda s: s.epoch_dict.__delitem__("B")),
    "pop the last key": (filled(40), lambda s: s.epoch_dict.popitem()),
    "replace all": (filled(40), replace_all),
    "forget all": (filled(40), lambda s: s.epoch_dict.clear()),
    "read": (filled(40), lambda s: (np.array(s.epoch_dict["A"]), s.epoch_dict["B"][1:])),
    "show": (filled(40), lambda s: repr(s.epoch_dict["A"])),
}

# Rows between ranks -------------------------------------------------------------------------------------

ITEMS = [(f"Key{i}\udc80" if i % 7 == 3 else f"Key{i}", moments(NUMBERS[: i + 1])) for i in range(64)]


def packed() -> Message:
    message = Message()
    message.pack(ITEMS, 0, 1, 2, "row", 0)
    return message


def read_rows(message: Message) -> None:
    results = message.results(64)
    assert message.agrees(64) and results[5].moments.count == 6
    assert own_results(ITEMS[:3])[1].info == results[1].info
    assert results[3].info.count == 4


def scenarios() -> dict[str, tuple[Setup, Operation, Callable[[Any], object]]]:
    found: dict[str, tuple[Setup, Operation, Callable[[Any], object]]] = {}
    for name in VALUES:
        found[f"moments: {name}"] = add_moments(name)
    found["moments: arithmetic"] = (
        lambda: [Moments([1.0, 2.0])], lambda ms: other_ways(ms[0].copy()), lambda ms: ms[0].to_bytes()
    )
    for name, (setup, operation) in STORE.items():
        found[f"store: {name}"] = setup, operation, contents
    found["rows: pack"] = packed, lambda message: message.pack(ITEMS, 0, 1, 2, "row", 0), bytes
    found["rows: read"] = packed, read_rows, bytes
    return found


def leaked(scenario: tuple[Setup, Operation, Callable[[Any], object]]) -> tuple[int, int]:
    """Blocks and bytes that all failures of an operation leave behind, REPEATS times; caches grow once."""
    blocks, used = [], []
    for repeats in (1, REPEATS, REPEATS):
        for _ in range(repeats):
            failures(*scenario)
        gc.collect()
        blocks.append(sys.getallocatedblocks())
        used.append(bytes_in_use())
    return min(np.diff(blocks).tolist()), min(np.diff(used).tolist())


def main() -> None:
    gc.disable()
    total, wrong = 0, 0
    for name, scenario in scenarios().items():
        failed, faults = failures(*scenario)
        lost = leaked(scenario)
        if lost[0] > (40 if name in BY_NUMPY else 6) * REPEATS or lost[1] > 256 * REPEATS:
            faults.append(f"{lost} blocks and bytes are gone after {REPEATS} times {failed} failures")
        if not failed and name not in NEED_NO_MEMORY:
            faults.append("no allocation failed")
        for fault in faults[:5]:
            print(f"{name}: {fault}"[:1000])
        if "-v" in sys.argv:
            print(f"# {name}: {failed} failures, {lost} blocks and bytes gone")
        total, wrong = total + failed, wrong + len(faults)
    print(f"{total} failures, {wrong} faults")


if __name__ == "__main__":
    main()
