"""Forks, loggers that share a folder, sub-interpreters, clocks that go back, 100 threads: nothing is lost.

A child that stores for itself is in test_store_memory.py, rows that wait at a fork in test_rows_kept.py,
objects whose __float__ raises or stores in test_store_reentrant.py.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import joblib
import pytest
from conftest import RunPython
from rows import content, dump

from spinstat import EpochLogger, Logger
from spinstat.checkpoint import find_checkpoint, verify_checkpoints
from spinstat.files import make_default_folder

# Forks


def work_with(logger: EpochLogger, answers: Any) -> None:
    """What a worker may do that has got the trainer's logger with all else: store, ask, leave."""
    logger.store(X=100.0)
    answers.put((logger.get_stats("X"), list(logger.epoch_dict["X"])))


@pytest.mark.parametrize("number", [1, 3])
def test_workers_that_inherit_a_logger_leave_its_values_and_files_alone(
    output_dir: str, number: int
) -> None:
    context = multiprocessing.get_context("fork")
    logger = EpochLogger(output_dir, quiet=True)
    dump(logger, Epoch=0, X=0.0)
    logger.store(X=1.0)
    logger.save_state({"epoch": 0})
    before = {path: path.read_bytes() for path in Path(output_dir).rglob("*") if path.is_file()}
    answers = context.Queue()
    workers = [context.Process(target=work_with, args=(logger, answers)) for _ in range(number)]
    for worker in workers:
        worker.start()
    for _ in workers:
        assert answers.get(timeout=60) == ((50.5, 49.5), [1.0, 100.0])
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    assert {path: path.read_bytes() for path in Path(output_dir).rglob("*") if path.is_file()} == before
    logger.store(X=3.0)
    logger.log_tabular("Epoch", 1)
    logger.log_tabular("X", average_only=True)
    logger.dump_tabular()
    assert content(output_dir) == "Epoch\tX\n0\t0.0\n1\t2.0\n"
    assert EpochLogger(output_dir, quiet=True, resume=True).load_state() == {"epoch": 0}


# Two loggers in one folder


def test_two_loggers_of_a_process_in_one_folder_have_their_own_files_of_rows(output_dir: str) -> None:
    first = Logger(output_dir, quiet=True)
    dump(first, Epoch=0)
    second = Logger(output_dir, quiet=True)
    for epoch in range(1, 4):
        dump(second, Epoch=epoch * 10)
        dump(first, Epoch=epoch)
    dump(first, Epoch=4, Late=1)  # its file is written anew where it has been moved to
    assert content(output_dir, "progress.txt.1") == "Epoch\tLate\n0\t\n1\t\n2\t\n3\t\n4\t1\n"
    assert content(output_dir) == "Epoch\n10\n20\n30\n"


def test_two_loggers_that_save_into_one_folder_leave_a_whole_checkpoint(output_dir: str) -> None:
    first, second = EpochLogger(output_dir, quiet=True), EpochLogger(output_dir, quiet=True)
    for epoch in range(4):
        first.save_state({"who": 1, "epoch": epoch})
        second.save_state({"who": 2, "epoch": epoch})
    assert joblib.load(os.path.join(output_dir, "vars.pkl")) == {"who": 2, "epoch": 3}
    assert joblib.load(find_checkpoint(output_dir).vars) == {"who": 2, "epoch": 3}
    assert verify_checkpoints(output_dir) == []


SAVES = """
import sys
from spinstat import EpochLogger
logger = EpochLogger(sys.argv[1], quiet=True)
for epoch in range(30):
    logger.store(X=epoch)
    logger.save_state({"who": sys.argv[2], "epoch": epoch, "data": bytes(20_000)})
    logger.log_tabular("Epoch", epoch)
    logger.log_tabular("X", average_only=True)
    logger.dump_tabular()
logger.close()
"""


def test_processes_that_log_into_one_folder_at_once_keep_all_rows_and_a_whole_checkpoint(
    output_dir: str, run_python: RunPython
) -> None:
    def start(name: str) -> None:
        try:
            run_python("-c", SAVES, output_dir, name)
        except BaseException as error:
            failures.append(error)

    failures: list[BaseException] = []
    threads = [threading.Thread(target=start, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]
    want = "Epoch\tX\n" + "".join(f"{epoch}\t{float(epoch)}\n" for epoch in range(30))
    names = ["progress.txt", "progress.txt.1", "progress.txt.2"]
    assert [content(output_dir, name) for name in names] == [want] * 3
    state = joblib.load(find_checkpoint(output_dir).vars)
    assert (state["epoch"], len(state["data"])) == (29, 20_000) and state["who"] in "abc"
    assert joblib.load(os.path.join(output_dir, "vars.pkl"))["epoch"] == 29


# Threads


@pytest.mark.parametrize("keep", [True, False])
def test_a_hundred_threads_store_while_one_logs_and_every_value_is_in_one_row(
    output_dir: str, keep: bool
) -> None:
    logger = EpochLogger(output_dir, quiet=True, keep_values=keep)
    logger.store(X=0.0, Y=[0.0])
    start, done = threading.Barrier(101), threading.Event()
    stores = 200

    def work(number: int) -> None:
        start.wait()
        for i in range(stores):
            logger.store(X=1.0, Y=[float(number), 2.0])
            logger.store({"X": 1, "Y": i})

    threads = [threading.Thread(target=work, args=(number,)) for number in range(100)]
    for thread in threads:
        thread.start()
    counts = {"X": 0, "Y": 0}

    def log() -> None:
        for key in counts:
            logger.log_tabular(key, with_min_and_max=True)
            counts[key] += logger.last_row_info[key].count
        logger.dump_tabular()

    def watch() -> None:
        for thread in threads:
            thread.join()
        done.set()

    threading.Thread(target=watch).start()
    start.wait()
    rows = 0
    while not done.is_set():
        logger.store(X=1.0, Y=1.0)  # so that no row is empty
        log()
        rows += 1
    logger.store(X=1.0, Y=1.0)
    log()
    assert counts == {"X": 1 + rows + 1 + 100 * 2 * stores, "Y": 1 + rows + 1 + 100 * 3 * stores}
    assert content(output_dir).count("\n") == rows + 2


# Sub-interpreters


def test_a_sub_interpreter_logs_or_says_that_it_cannot_and_the_process_goes_on(
    output_dir: str, run_python: RunPython
) -> None:
    script = """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
from spinstat import EpochLogger
inner = '''
try:
    from spinstat import EpochLogger
except ImportError as error:
    assert str(error), "an error without words"
    print("refused:", error, flush=True)
else:
    logger = EpochLogger(FOLDER, quiet=True)
    logger.store(X=1.0)
    logger.log_tabular("X", average_only=True)
    logger.dump_tabular()
    logger.close()
    print("works", flush=True)
'''
logger = EpochLogger(sys.argv[1], quiet=True)
logger.store(X=3.0)
for number in range(2):
    other = interpreters.create()
    failure = interpreters.run_string(other, f"FOLDER = {sys.argv[1] + str(number)!r}" + inner)
    assert failure is None, failure
    interpreters.destroy(other)
logger.store(X=5.0)
logger.log_tabular("X", average_only=True)
logger.dump_tabular()
"""
    shown = run_python("-c", script, output_dir).stdout.splitlines()
    assert len(shown) == 2 and all(line == "works" or line.startswith("refused: ") for line in shown), shown
    assert content(output_dir) == "X\n4.0\n"
    for number, line in enumerate(shown):
        assert line != "works" or content(f"{output_dir}{number}") == "X\n1.0\n"


# Clocks


@pytest.fixture
def backward_clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every look at the clock is an hour before the one before."""
    hours = itertools.count()
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now - 3600 * next(hours))
    yield


@pytest.mark.usefixtures("backward_clock")
def test_a_clock_that_goes_back_changes_neither_the_order_of_checkpoints_nor_rows(output_dir: str) -> None:
    logger = EpochLogger(output_dir, quiet=True, keep_last=2)
    for epoch in range(5):
        logger.store(X=epoch)
        logger.save_state({"epoch": epoch}, epoch)
        logger.log_tabular("Time", time.time())
        logger.log_tabular("X", average_only=True)
        logger.dump_tabular()
    assert sorted(path.name for path in Path(output_dir).glob("vars*")) == ["vars3.pkl", "vars4.pkl"]
    assert joblib.load(find_checkpoint(output_dir).vars) == {"epoch": 4}
    assert verify_checkpoints(output_dir) == []
    resumed = EpochLogger(output_dir, quiet=True, resume=True)
    assert resumed.load_state() == {"epoch": 4}
    values = [line.split("\t")[1] for line in content(output_dir).splitlines()]
    assert values == ["X", "0.0", "1.0", "2.0", "3.0", "4.0"]


@pytest.mark.usefixtures("backward_clock")
def test_with_a_clock_that_goes_back_default_folders_still_differ() -> None:
    folders = [make_default_folder() for _ in range(3)]
    try:
        assert len(set(folders)) == 3
    finally:
        for folder in folders:
            os.rmdir(folder)
