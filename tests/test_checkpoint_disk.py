"""A disk that is full: simulated by a limit on the size of files, which fails a write halfway."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager

import joblib
import pytest
import torch
from checkpoints import Recorder

from spinstat import EpochLogger
from spinstat.checkpoint import find_checkpoint


@contextmanager
def full_disk(size: int) -> Iterator[None]:
    """No file grows beyond `size` bytes: a write that would is cut short, the next one fails."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def names(folder: str) -> list[str]:
    return sorted(os.path.join(base, name) for base, _, files in os.walk(folder) for name in files)


@pytest.mark.parametrize("limit", [0, 1, 50, 300, 700, 1500, 5000, 60_000])
def test_a_full_disk_keeps_the_last_checkpoint_and_is_told_once(output_dir: str, limit: int) -> None:
    logger = Recorder(output_dir)
    logger.setup_pytorch_saver(torch.full((20_000,), 1.0))
    logger.save_state({"value": 1, "data": bytes(100_000)})
    before = names(output_dir)
    logger.setup_pytorch_saver(torch.full((20_000,), 2.0))
    with full_disk(limit):
        logger.save_state({"value": 2, "data": bytes(100_000)})
    assert names(output_dir) == before
    assert joblib.load(os.path.join(output_dir, "vars.pkl"))["value"] == 1
    assert torch.load(os.path.join(output_dir, "pyt_save", "model.pt"))[0] == 1.0
    assert joblib.load(find_checkpoint(output_dir).vars)["value"] == 1
    message = logger.only_message()
    assert "File too large" in message and "vars.pkl" in message and "model.pt" in message


def test_what_fits_is_saved_though_the_rest_does_not(output_dir: str) -> None:
    logger = Recorder(output_dir)
    logger.setup_pytorch_saver(torch.full((100_000,), 1.0))
    logger.save_state({"value": 1})
    logger.setup_pytorch_saver(torch.full((100_000,), 2.0))
    with full_disk(10_000):
        logger.save_state({"value": 2})
    assert joblib.load(os.path.join(output_dir, "vars.pkl"))["value"] == 2
    assert torch.load(os.path.join(output_dir, "pyt_save", "model.pt"))[0] == 1.0
    message = logger.only_message()
    assert "model.pt" in message and "vars.pkl" not in message


@pytest.mark.parametrize("itr", [None, 1])
def test_a_checkpoint_whose_state_did_not_fit_is_not_gone_on_from(output_dir: str, itr: int | None) -> None:
    logger = EpochLogger(output_dir, quiet=True, keep_last=1)
    logger.setup_pytorch_saver(torch.ones(1))
    logger.log_tabular("Epoch", 0)
    logger.dump_tabular()
    logger.save_state({"epoch": 0, "data": bytes(100_000)}, itr and 0)
    logger.log_tabular("Epoch", 1)
    logger.dump_tabular()
    with full_disk(50_000), pytest.warns(UserWarning, match="could not write vars"):
        logger.save_state({"epoch": 1, "data": bytes(100_000)}, itr)
    logger.close()
    with pytest.warns(UserWarning, match="row 2 is without vars.* row 1"):
        logger = EpochLogger(output_dir, quiet=True, resume=True)
    state = logger.load_state()
    assert (state["epoch"], len(state["data"])) == (0, 100_000)
    assert torch.load(logger.last_checkpoint.pytorch).item() == 1.0


def test_a_run_goes_on_once_there_is_space_again(output_dir: str) -> None:
    logger = EpochLogger(output_dir, quiet=True)
    with full_disk(10), pytest.warns(UserWarning, match="File too large"):
        logger.save_state({"value": 1})
    logger.save_state({"value": 2})
    assert joblib.load(os.path.join(output_dir, "vars.pkl")) == {"value": 2}


def test_a_row_that_could_not_be_written_does_not_lose_the_checkpoint(output_dir: str) -> None:
    logger = EpochLogger(output_dir, quiet=True, keep_best="AverageX", keep_last=1)
    logger.store(X=1.0)
    logger.save_state({"value": 1}, 0)
    logger.log_tabular("X")
    with full_disk(3), pytest.warns(UserWarning):
        logger.dump_tabular()
    logger.store(X=0.0)
    logger.save_state({"value": 2}, 1)
    logger.log_tabular("X")
    logger.dump_tabular()
    assert joblib.load(os.path.join(output_dir, "vars1.pkl")) == {"value": 2}
    with open(os.path.join(output_dir, "progress.txt")) as file:
        assert file.read() == "AverageX\tStdX\n1.0\t0.0\n0.0\t0.0\n"
