"""A run of 8 epochs that goes on where the last one ended, and is killed where it is told to be.

    mpiexec -n 2 python resuming.py FOLDER ORDER RANK GAP EPOCH

ORDER is "save first", as in the documents' scripts, or "log first". GAP names what the rank RANK has just
done in epoch EPOCH when it is killed; mpiexec then kills the others, wherever they are.
"""

from __future__ import annotations

import os
import random
import signal
import sys

import numpy as np

from spinstat import EpochLogger, proc_id

EPOCHS = 8
GAPS = ["trained", "saved", "half logged", "logged", "dumped"]


def main(folder: str, order: str, rank: int, gap: str, at: int) -> None:
    logger = EpochLogger(folder, quiet=True, resume=True)
    random.seed(proc_id())
    np.random.seed(proc_id())
    state = logger.load_state()
    first, weight = (0, 0.0) if state is None else (state["epoch"] + 1, state["weight"])
    for epoch in range(first, EPOCHS):

        def reached(name: str, epoch: int = epoch) -> None:
            if (rank, gap, at) == (proc_id(), name, epoch):
                os.kill(os.getpid(), signal.SIGKILL)

        for _ in range(10 + proc_id()):
            weight += random.random() + np.random.normal()
            logger.store(Loss=weight)
        reached("trained")
        if order == "save first":
            logger.save_state({"epoch": epoch, "weight": weight})
            reached("saved")
        logger.log_tabular("Epoch", epoch)
        reached("half logged")
        logger.log_tabular("Loss", with_min_and_max=True)
        reached("logged")
        logger.dump_tabular()
        reached("dumped")
        if order == "log first":
            logger.save_state({"epoch": epoch, "weight": weight})
            reached("saved")
    logger.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], int(sys.argv[5]))
