"""Train, be killed, look at what is left, go on: a program for the tests of checkpoints and of resuming.

    python killing.py FOLDER ORDER KILLS SEED

Trains in FOLDER/0, FOLDER/1, ... with KILLS kills in all: half of them at a random moment, half of them at a
random call that changes the disk, inside a write or between two renames. After each kill the folder must be
whole; once a training has come to its end, its rows must be those of one that was not killed. A failure is an
exception.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import joblib
import numpy as np
import torch

from spinstat import EpochLogger
from spinstat.checkpoint import find_checkpoint, savers
from spinstat.checkpoint.resume import shelf_of

EPOCHS = 8
FOLDER_FILES = ("saved_model.pb", "model_info.pkl", "variables/variables.index")
CALLS = ("write", "fsync", "replace", "rename", "link", "mkdir", "unlink", "ftruncate")


def save_folder(model: dict[str, int], folder: str) -> None:
    """In place of TensorFlow, which takes too long to load: a folder whose files all hold the epoch."""
    for name in FOLDER_FILES:
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(str(model["epoch"]) * 1000)


def read_folder(folder: str) -> int:
    texts = []
    for name in FOLDER_FILES:
        with open(os.path.join(folder, name)) as file:
            texts.append(file.read())
    assert len(set(texts)) == 1 and texts[0] == texts[0][0] * 1000, [text[:3] for text in texts]
    return int(texts[0][0])


def train(folder: str, order: str, comm: Any = None, gap: Callable[[str, int], None] | None = None) -> None:
    """A run of EPOCHS epochs that goes on where the last one ended.

    Args:
        order: "save first" as the documents' scripts, or "log first".
        gap: called with a name between the steps of an epoch.
    """
    gap = gap or (lambda name, epoch: None)
    logger = EpochLogger(folder, quiet=True, resume=True, comm=comm)
    savers.save_model = save_folder
    model: dict[str, Any] = {"w": torch.zeros(300), "epoch": 0}
    logger.setup_pytorch_saver(model)
    logger.tf_saver_elements = {"session": model}
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    state = logger.load_state()
    first = 0
    if state is not None:
        first = state["epoch"] + 1
        model["w"] = state["w"]

    def save(epoch: int) -> None:
        logger.save_state({"epoch": epoch, "w": model["w"], "big": bytes(50_000)})

    def log(epoch: int) -> None:
        logger.log_tabular("Epoch", epoch)
        gap("half logged", epoch)
        logger.log_tabular("Loss", with_min_and_max=True)
        if epoch >= 4:
            logger.log_tabular("Late", average_only=True)
        logger.log_tabular("Time", time.time())
        gap("logged", epoch)
        logger.dump_tabular()

    for epoch in range(first, EPOCHS):
        for _ in range(5):
            model["w"] = model["w"] + torch.rand(300) * random.random() + np.random.normal()
            logger.store(Loss=model["w"].sum().item(), Late=np.random.random())
        if epoch < 4:  # until then the key is stored, and not logged
            logger.epoch_dict["Late"] = []
        model["epoch"] = epoch
        gap("trained", epoch)
        for step in (save, log) if order == "save first" else (log, save):
            step(epoch)
            gap(step.__name__, epoch)
    logger.close()


def rows(folder: str) -> list[list[str]]:
    """The rows of a run, but for the time."""
    with open(os.path.join(folder, "progress.txt")) as file:
        table = [line.rstrip("\n").split("\t") for line in file]
    at = table[0].index("Time")
    return [row[:at] + row[at + 1 :] for row in table]


def look(folder: str) -> None:
    """Check that what a kill has left is whole."""
    plain = {
        "vars.pkl": lambda path: joblib.load(path)["epoch"],
        "pyt_save/model.pt": lambda path: torch.load(path)["epoch"],
        "tf1_save": read_folder,
    }
    paths = {os.path.join(folder, name): read for name, read in plain.items()}
    seen = [read(path) for path, read in paths.items() if os.path.exists(path)]
    assert max(seen, default=0) - min(seen, default=0) <= 1, seen
    records = shelf_of(folder, 0).records()
    if records:
        assert shelf_of(folder, 0).problems(records[-1]) == []
        found = find_checkpoint(folder)
        epochs = {joblib.load(found.vars)["epoch"], torch.load(found.pytorch)["epoch"]}
        assert epochs == {read_folder(found.tf)}
    path = os.path.join(folder, "progress.txt")
    if os.path.exists(path):
        with open(path) as file:
            lines = file.readlines()
        assert all(line.endswith("\n") for line in lines)
        assert len({line.count("\t") for line in lines}) <= 1, lines


def killed_at_call(number: int) -> None:
    """Have this process killed at the number-th call that changes the disk; for a write, in its middle."""
    left = [number]

    def wrap(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                if name == "write" and "/.spinstat/" in os.readlink(f"/proc/self/fd/{args[0]}"):
                    call(args[0], bytes(args[1])[: len(args[1]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*args, **kwargs)

        return counted

    for name in CALLS:
        setattr(os, name, wrap(name, getattr(os, name)))


def train_until_call(number: int, folder: str, order: str) -> None:
    """Train, and be killed at the number-th call that changes the disk, if there are as many."""
    killed_at_call(number)
    train(folder, order)


def in_child(work: Callable[[], None], kill_after: float | None = None) -> int:
    """Run work in a fork; returns its exit code, or minus the signal."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stderr.flush()
            os._exit(code)
    if kill_after is not None:
        timer = threading.Timer(kill_after, os.kill, (child, signal.SIGKILL))
        timer.start()
    _, status = os.waitpid(child, 0)
    if kill_after is not None:
        timer.cancel()
        timer.join()
    return os.waitstatus_to_exitcode(status)


def main(base: str, order: str, kills: int, seed: int) -> None:
    chance = random.Random(seed)
    reference = os.path.join(base, "reference")
    begun = time.monotonic()
    assert in_child(partial(train, reference, order)) == 0
    duration = time.monotonic() - begun
    want = rows(reference)
    assert len(want) == EPOCHS + 1
    done = runs = 0
    while done < kills:
        folder = os.path.join(base, str(runs))
        while True:
            if done >= kills:
                code = in_child(partial(train, folder, order))
            elif done % 2:
                code = in_child(partial(train_until_call, chance.randrange(1, 250), folder, order))
            else:
                code = in_child(partial(train, folder, order), chance.uniform(0.0, duration))
            if code == 0:
                break
            assert code == -signal.SIGKILL, f"{folder}: exit code {code}"
            done += 1
            look(folder)
        assert rows(folder) == want, f"{folder}:\n{rows(folder)}\ninstead of\n{want}"
        shutil.rmtree(folder)
        runs += 1
    print(f"{done} kills in {runs} runs")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
