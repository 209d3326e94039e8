"""Threads that store into one logger: what a store costs then. A process of benchmarks.store.

Run as `python -m benchmarks.store_threads THREADS COUNT ROUNDS`, it prints as JSON the nanoseconds of the
wall by subject, round by round: from the first store of any thread to the last, divided by all stores. That
no value is lost is checked.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import threading
from functools import partial
from time import perf_counter
from typing import Any

from . import calls, common, machine
from .lists import ListLogger

KEY = "EpRet"


def store(subject: Any, count: int, begin: threading.Barrier, times: list[float]) -> None:
    """One thread's part; leaves in `times` when it began and when it ended."""
    values = common.rng().normal(100.0, 15.0, 10).tolist()
    names = {"logger": subject, **{f"v{i}": value for i, value in enumerate(values)}}
    loop = calls.compile_loop([f"logger.store({KEY}=v{i})" for i in range(10)], names)
    begin.wait()
    times.append(perf_counter())
    loop(count // 10)
    times.append(perf_counter())


def sample(subject: Any, threads: int, count: int) -> float:
    """Nanoseconds a store."""
    begin, times = threading.Barrier(threads), list[float]()
    workers = [threading.Thread(target=store, args=(subject, count, begin, times)) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    seconds = max(times) - min(times)
    if isinstance(subject, ListLogger):
        stored = len(subject.stored[KEY])
    else:
        stored = len(subject.epoch_dict[KEY])
    if stored != threads * count:
        raise AssertionError(f"{type(subject).__name__} has {stored} values of {threads * count}")
    with contextlib.redirect_stdout(io.StringIO()):
        subject.log_tabular(KEY)
        subject.dump_tabular()
    return seconds / stored * 1e9


def main() -> None:
    """Prints the times as JSON."""
    machine.settle(pin=False)
    threads, count, rounds = map(int, sys.argv[1:])
    subjects = {"kept": calls.epoch_logger(True, subclass=False), "lists": ListLogger(open(os.devnull, "w"))}
    samples = {name: partial(sample, subject, threads, count) for name, subject in subjects.items()}
    print(json.dumps(common.interleave(samples, rounds)))


if __name__ == "__main__":
    main()
