"""Allocations that fail, one after the other: a MemoryError, and statistics and lists that still agree."""

from __future__ import annotations

import pytest
from conftest import RunPython

pytest.importorskip(
    "_testcapi", reason="CPython's own test module makes allocations fail; this Python lacks it"
)

# In another process, since Python itself is not at its best without memory.
PROGRAM = """
import gc, math
import _testcapi
import numpy as np
from spinstat._core import EpochStore

gc.disable()
array, values, few, many = np.arange(3.0), [1.0] * 40, [1, [2.0]], np.ones(2)

def site(store):
    store.store(A=1.0, B=2, C=array)

def grow(store):
    for x in values:
        store.store(A=x)

OPERATIONS = {
    "store": site,
    "store by mapping": lambda store: store.store({"A": few, "New": 1.0}),
    "store by unpacking": lambda store: store.store(**{"D": 1, "E": few}),
    "grow": grow,
    "take": lambda store: store._take("A"),
    "discard": lambda store: store._discard("C"),
    "append": lambda store: store.epoch_dict["A"].append(array),
    "extend": lambda store: store.epoch_dict["A"].extend(values),
    "extend by arrays": lambda store: store.epoch_dict["A"].extend([array, 1.0, many, 2.0, 3.0]),
    "set": lambda store: store.epoch_dict["A"].__setitem__(0, 5.0),
    "delete": lambda store: store.epoch_dict["A"].__delitem__(0),
    "forget": lambda store: store._forget("A"),
}

def numbers(value):
    return [y for x in value for y in numbers(x)] if isinstance(value, list) else np.ravel(value).tolist()

def check(store, context):
    for key in store._keys():
        m = store._peek(key)
        held = [y for x in store.epoch_dict[key] for y in numbers(x)]
        assert m.count == len(held), (context, key, m, held)
        if held:
            assert m.max == max(held) and math.isclose(m.mean, np.mean(held)), (context, key, m, held)

failed = 0
for name, operation in OPERATIONS.items():
    for i in range(60):
        store = EpochStore()
        for _ in range(31):  # one below a full block
            store.store(A=0.5, C=1.0)
        _testcapi.set_nomemory(i, i + 1)
        try:
            operation(store)
        except MemoryError:
            failed += 1
        finally:
            _testcapi.remove_mem_hooks()
        check(store, (name, i))
        site(store)
        store.store(A=few)
        check(store, (name, i, "afterwards"))
print(failed)
"""


def test_an_allocation_that_fails_leaves_the_lists_and_their_statistics_in_step(
    run_python: RunPython,
) -> None:
    assert int(run_python("-c", PROGRAM).stdout) > 50
