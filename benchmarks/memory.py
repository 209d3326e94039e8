"""How much a process grows while a logger is stored into; a process a measurement.

Run as `python -m benchmarks.memory kept|dropped|lists COUNT`, it prints the greatest growth in bytes of the
memory that the process holds (resident pages), seen fifty times on the way, after 100,000 stores that are
not counted.
"""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path
from typing import Any

from . import calls
from .lists import ListLogger

WARM = 100_000
LOOKS = 50


def resident() -> int:
    """Bytes of this process that are in memory now; where the system does not tell, the most there were."""
    pages = Path("/proc/self/statm")
    if pages.exists():
        return int(pages.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def growth(mode: str, count: int) -> int:
    """Greatest growth in bytes over `count` stores of one float.

    Every float is an object of its own, as in a run: lists keep them alive.
    """
    logger: Any = ListLogger(open(os.devnull, "w"))
    if mode != "lists":
        logger = calls.epoch_logger(mode == "kept", subclass=False)
    case = calls.cases()[0]
    lines = [line.replace("=v", "=1.0 * v") for line in case.lines]
    loop = calls.compile_loop(lines, {"logger": logger, **case.values})
    loop(WARM // len(case.lines))
    calls.end_epoch(case, logger)
    before = resident()
    most = 0
    for _ in range(LOOKS):
        loop(count // len(case.lines) // LOOKS)
        most = max(most, resident() - before)
    calls.check(case, logger)
    return most


if __name__ == "__main__":
    print(growth(sys.argv[1], int(sys.argv[2])))
