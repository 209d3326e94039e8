"""Memory: arrays that the kernels cannot read as they lie are converted block by block, never as a whole.

A process of its own takes the moments of every case and prints by how much its peak grew meanwhile.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

N = 50_000_000
CASES = {  # an expression for an array of at least 100 MB, and its mean
    "strided float32 of 200 MB": (f"np.full({2 * N}, 1.5, 'f4')[::2]", 1.5),
    "backwards float32 of 200 MB": (f"np.full({N}, 1.5, 'f4')[::-1]", 1.5),
    "transposed float64": (f"np.full(({N // 5000}, 2500), 1.5)[:, ::2].T", 1.5),
    "float16": (f"np.full({N}, 1.5, 'f2')", 1.5),
    "big-endian float64": (f"np.full({N // 3}, 1.5, '>f8')", 1.5),
    "uint8": (f"np.full({2 * N}, 7, 'u1')", 7.0),
    "unaligned float64": (f"np.ones({N // 3}, [('pad', 'i1'), ('x', 'f8')])['x']", 1.0),
    "broadcast float64": (f"np.broadcast_to(1.5, ({N},))", 1.5),
    "contiguous float64": (f"np.full({N // 3}, 1.5)", 1.5),
    "masked float32": (f"np.ma.masked_array(np.full({N // 2}, 1.5, 'f4'), np.zeros({N // 2}, bool))", 1.5),
    "torch bfloat16": (f"torch.full(({N},), 1.5, dtype=torch.bfloat16)", 1.5),
    "torch float32, strided": (f"torch.full(({N}, 1), 1.5)[::2]", 1.5),
    "torch float16, transposed": (f"torch.full((5000, {N // 5000}), 1.5, dtype=torch.half).t()", 1.5),
}
PROGRAM = """
import gc, sys, tracemalloc
import numpy as np
import torch
import spinstat

def kibibytes(name):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(name))

for expression in sys.argv[1:]:
    x = eval(expression)
    spinstat.moments(x[:7])
    gc.collect()
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak is now what is resident
    before = kibibytes("VmRSS")
    tracemalloc.start()
    m = spinstat.moments(x)
    print(kibibytes("VmHWM") - before, tracemalloc.get_traced_memory()[1] // 1024, m.count, m.mean, m.std())
    tracemalloc.stop()
    del x
"""


@pytest.fixture(scope="module")
def measured() -> dict[str, list[str]]:
    """What the process prints for each case."""
    expressions = [expression for expression, _ in CASES.values()]
    done = subprocess.run([sys.executable, "-c", PROGRAM, *expressions], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return dict(zip(CASES, (line.split() for line in done.stdout.splitlines()), strict=True))


@pytest.mark.skipif(sys.platform != "linux", reason="peaks of a process are read from /proc")
@pytest.mark.parametrize("name", CASES)
def test_a6_b14_a_large_array_is_never_copied_whole(measured: dict[str, list[str]], name: str) -> None:
    grown, traced, count, mean, std = measured[name]
    assert int(count) >= 12_500_000 and (float(mean), float(std)) == (CASES[name][1], 0.0)
    assert int(traced) < 4 * 1024, f"Python's allocators held {traced} KiB more at the peak"
    assert int(grown) < 16 * 1024, f"the process held {grown} KiB more at the peak"
