"""100,000 rounds of everything that the extension does leave the process as large as it was."""

from __future__ import annotations

from conftest import RunPython

PROGRAM = """
import gc, sys, tracemalloc
import numpy as np
from pathlib import Path
from spinstat import EpochLogger, Moments, moments
from spinstat._core import Message, merge_rows

logger = EpochLogger("run", quiet=True)
array, strided, numbers = np.arange(64.0), np.arange(64)[::2], [1, 2.5, np.float32(3)]
total = Moments()

def one_round(i):
    logger.store(Loss=1.0, Steps=i, Values=array)
    logger.store({"a key": strided, f"Made{i % 3}": numbers})
    total.merge(moments(array) + moments(strided))
    total.update(numbers)
    if i % 10 == 0:
        values = logger.epoch_dict["Loss"]
        values.append(2.0), values.extend(numbers), values.pop(), values.sort(), np.array(values), values[1:]
        try:
            logger.store(Loss="text", Steps=1)
        except TypeError:
            pass
        Moments.from_bytes(total.to_bytes()), repr(values)
    if i % 100 == 0:
        lower, higher = Message(), Message()
        for message, rank in ((lower, 0), (higher, 1)):
            message.pack([("Loss", total), ("key\\udc80", total)], 0, 1, i, "row", rank)
        merge_rows(lower, higher)
        assert higher.agrees(2) and higher.results(2)[0].info.count == 2 * total.count
        for key in list(logger.epoch_dict):
            logger.log_tabular(key, with_min_and_max=True)
        logger.dump_tabular()
        del logger.epoch_dict["a key"]

def resident():
    return next(int(line.split()[1]) for line in Path("/proc/self/status").read_text().splitlines()
                if line.startswith("VmRSS"))

def rounds(n):
    for i in range(n):
        one_round(i)
    gc.collect()

rounds(2_000)
blocks, kilobytes = sys.getallocatedblocks(), resident()
rounds(100_000)
print(sys.getallocatedblocks() - blocks, resident() - kilobytes)
tracemalloc.start()
rounds(500)
before = tracemalloc.get_traced_memory()[0]
rounds(3_000)
print(tracemalloc.get_traced_memory()[0] - before)
"""


def test_100_000_rounds_leave_the_process_as_large_as_it_was(run_python: RunPython) -> None:
    counts, traced = run_python("-c", PROGRAM, timeout=280).stdout.splitlines()
    blocks, kilobytes = map(int, counts.split())
    # A pointer lost in every hundredth round would be 1,000 blocks, or 8 KB at the least.
    assert blocks < 500
    assert kilobytes < 4096
    assert int(traced) < 30_000
