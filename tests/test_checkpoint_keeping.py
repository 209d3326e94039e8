"""Which checkpoints are kept, and what is cleaned up."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import joblib
import pytest
import torch
from conftest import clean_environment

from spinstat import EpochLogger
from spinstat.checkpoint import drafts
from spinstat.checkpoint.drafts import Draft
from spinstat.checkpoint.generations import Shelf


def saved(folder: str, name: str = r"vars(\d+)\.pkl") -> list[int]:
    """The numbers of the checkpoints that are there."""
    found = (re.fullmatch(name, entry) for entry in os.listdir(folder))
    return sorted(int(match[1]) for match in found if match)


def generations(folder: str) -> int:
    """How many generations are on the disk; every one has its record."""
    names = os.listdir(os.path.join(folder, ".spinstat"))
    records = {name.removesuffix(".json") for name in names if re.fullmatch(r"c\d+\.json", name)}
    assert records == {name for name in names if re.fullmatch(r"c\d+", name)}
    return len(records)


def train(output_dir: str, epochs: range, rewards: dict[int, float] | None = None, **options: Any) -> None:
    """Save before logging, as the documents do."""
    logger = EpochLogger(output_dir, quiet=True, **options)
    logger.setup_pytorch_saver(torch.ones(1))
    for epoch in epochs:
        logger.store(EpRet=(rewards or {}).get(epoch, 0.0))
        logger.save_state({"epoch": epoch}, epoch)
        logger.log_tabular("EpRet")
        logger.dump_tabular()
    logger.close()


def test_a_checkpoint_that_an_interrupt_follows_is_deleted_like_any_other(
    output_dir: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def commit_and_stop(draft: Draft, itr: str) -> None:
        commit(draft, itr)
        raise KeyboardInterrupt

    commit = Draft.commit
    logger = EpochLogger(output_dir, quiet=True, keep_last=1)
    for epoch in range(4):
        with monkeypatch.context() as patched, suppress(KeyboardInterrupt):
            if epoch == 1:
                patched.setattr(Draft, "commit", commit_and_stop)
            logger.save_state({"epoch": epoch}, epoch)
        logger.log_tabular("Epoch", epoch)
        logger.dump_tabular()
    assert saved(output_dir) == [3]
    assert generations(output_dir) == 1


def test_a_folder_cleaned_by_another_process_before_it_is_locked_is_made_again(
    output_dir: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def clean_and_lock(path: str) -> int | None:
        monkeypatch.setattr(drafts, "_lock", lock)
        Shelf(output_dir).clean()
        assert not os.path.exists(path)
        return lock(path)

    lock = drafts._lock
    monkeypatch.setattr(drafts, "_lock", clean_and_lock)
    EpochLogger(output_dir, quiet=True).save_state({"epoch": 0})
    assert joblib.load(os.path.join(output_dir, "vars.pkl")) == {"epoch": 0}
    assert generations(output_dir) == 1


def test_a_checkpoint_without_an_entry_deletes_no_whole_one(output_dir: str) -> None:
    logger = EpochLogger(output_dir, quiet=True, keep_last=2)
    for epoch in range(6):
        logger.log_tabular("Epoch", epoch)
        logger.dump_tabular()
        state = {"epoch": epoch, "agent": threading.Lock() if epoch in (2, 3, 4) else None}
        with warnings.catch_warnings(record=True):
            logger.save_state(state, epoch)
        if epoch == 4:
            assert saved(output_dir) == [0, 1, 3, 4]
    assert saved(output_dir) == [1, 4, 5]


def test_all_numbered_checkpoints_are_kept_without_a_rule(output_dir: str) -> None:
    train(output_dir, range(5))
    assert saved(output_dir) == [0, 1, 2, 3, 4]
    assert saved(os.path.join(output_dir, "pyt_save"), r"model(\d+)\.pt") == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({"keep_last": 1}, [9]),
        ({"keep_last": 3}, [7, 8, 9]),
        ({"keep_last": 99}, list(range(10))),
        ({"keep_every": 4}, [0, 4, 8, 9]),
        ({"keep_last": 2, "keep_every": 5}, [0, 5, 8, 9]),
        ({"keep_best": "AverageEpRet"}, [6, 9]),
        ({"keep_best": "AverageEpRet", "keep_last": 2}, [6, 8, 9]),
        ({"keep_best": "NoSuchColumn"}, [9]),
    ],
)
def test_the_rules_choose_what_stays_and_the_newest_always_does(
    output_dir: str, options: dict[str, Any], kept: list[int]
) -> None:
    train(output_dir, range(10), {6: 5.0, 3: 2.0, 8: -1.0}, **options)
    assert saved(output_dir) == kept
    assert saved(os.path.join(output_dir, "pyt_save"), r"model(\d+)\.pt") == kept
    assert generations(output_dir) == len(kept)


def test_keep_best_takes_the_row_before_where_a_script_logs_before_it_saves(output_dir: str) -> None:
    logger = EpochLogger(output_dir, quiet=True, keep_best="Score")
    for epoch, score in enumerate([1.0, 7.0, float("nan"), 3.0, 2.0]):
        logger.log_tabular("Score", score)
        logger.dump_tabular()
        logger.save_state({}, epoch)
    assert saved(output_dir) == [1, 4]


def test_a_rule_does_not_touch_the_checkpoint_without_a_number(output_dir: str) -> None:
    logger = EpochLogger(output_dir, keep_last=1)
    logger.save_state({"final": 1})
    for epoch in range(3):
        logger.save_state({}, epoch)
    assert saved(output_dir) == [2]
    assert joblib.load(os.path.join(output_dir, "vars.pkl")) == {"final": 1}


def test_a_rule_does_not_touch_what_an_earlier_run_has_saved(output_dir: str) -> None:
    train(output_dir, range(3))
    train(output_dir, range(10, 13), keep_last=1)
    assert saved(output_dir) == [0, 1, 2, 12]


def test_a_rule_does_not_delete_a_file_that_somebody_else_has_put_there(output_dir: str) -> None:
    logger = EpochLogger(output_dir, keep_last=1)
    logger.save_state({}, 1)
    path = os.path.join(output_dir, "vars1.pkl")
    os.unlink(path)
    joblib.dump("mine", path)
    logger.save_state({}, 2)
    logger.save_state({}, 3)
    assert saved(output_dir) == [1, 3]
    assert joblib.load(path) == "mine"


@pytest.mark.parametrize(
    "options",
    [{"keep_last": 0}, {"keep_last": 1.5}, {"keep_every": -3}, {"keep_every": "2"}, {"keep_best": 3}],
)
def test_a_rule_that_is_none_is_a_value_error_before_there_is_a_folder(
    output_dir: str, options: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        EpochLogger(output_dir, **options)
    assert not os.path.exists(output_dir)


def test_what_has_been_replaced_leaves_no_generation_behind(output_dir: str) -> None:
    logger = EpochLogger(output_dir)
    for step in range(20):
        logger.save_state({"step": step})
    assert generations(output_dir) <= 2


def test_a_killed_save_leaves_nothing_once_the_folder_is_saved_to_again(output_dir: str) -> None:
    program = """if True:
        import os, signal, sys
        from spinstat import EpochLogger
        class Bomb:
            def __reduce__(self):
                os.kill(os.getpid(), signal.SIGKILL)
        logger = EpochLogger(sys.argv[1])
        logger.save_state({"step": 1})
        logger.save_state({"big": bytes(10**6), "bomb": Bomb()})
    """
    done = subprocess.run([sys.executable, "-c", program, output_dir], env=clean_environment(), check=False)
    assert done.returncode == -9
    assert joblib.load(os.path.join(output_dir, "vars.pkl")) == {"step": 1}
    assert (Path(output_dir) / ".spinstat" / "c2").exists()
    logger = EpochLogger(output_dir)
    logger.save_state({"step": 2})
    assert generations(output_dir) == 1
