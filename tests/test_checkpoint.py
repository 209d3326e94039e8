"""save_state: which files there are, what is in them, what happens to what cannot be saved."""

from __future__ import annotations

import os
import pickle
import shutil
import threading
import warnings
from pathlib import Path
from typing import Any

import gymnasium
import joblib
import numpy as np
import pytest
import torch
from checkpoints import Recorder, load, tree
from conftest import RunPython

from spinstat import EpochLogger, Logger
from spinstat.checkpoint import find_checkpoint, verify_checkpoints


class Env:
    """An environment with something in it that cannot be pickled."""

    def __init__(self) -> None:
        self.steps = 3
        self.inner = {"screens": [1, threading.Lock()]}


@pytest.mark.parametrize(
    ("itr", "name"),
    [
        (None, "vars.pkl"),
        (0, "vars0.pkl"),
        (10, "vars10.pkl"),
        (-1, "vars-1.pkl"),
        (np.int64(7), "vars7.pkl"),
        (np.uint8(7), "vars7.pkl"),
        (2.0, "vars2.pkl"),
        (np.float32(2.9), "vars2.pkl"),
        (True, "vars1.pkl"),
    ],
)
def test_itr_goes_into_the_name_whatever_type_of_number_it_is(output_dir: str, itr: Any, name: str) -> None:
    logger = EpochLogger(output_dir)
    assert logger.save_state({"step": 1, "arr": np.arange(3)}, itr) is None
    assert tree(output_dir) == ["progress.txt", name]
    state = load(output_dir, name)
    assert state["step"] == 1 and state["arr"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("itr", ["x", [1], (1, 2), {}])
def test_an_itr_that_is_no_number_is_a_type_error_and_saves_nothing(output_dir: str, itr: Any) -> None:
    logger = EpochLogger(output_dir)
    with pytest.raises(TypeError):
        logger.save_state({"step": 1}, itr)
    assert tree(output_dir) == ["progress.txt"]


def test_without_itr_each_call_replaces_the_one_before(output_dir: str) -> None:
    logger = EpochLogger(output_dir)
    for step in range(5):
        logger.save_state({"step": step})
    logger.save_state({})
    assert load(output_dir, "vars.pkl") == {}
    assert tree(output_dir) == ["progress.txt", "vars.pkl"]


def test_pickle_reads_the_state_where_joblib_is_not_installed(output_dir: str) -> None:
    EpochLogger(output_dir).save_state({"arr": np.arange(4), "text": "a"}, 3)
    with open(os.path.join(output_dir, "vars3.pkl"), "rb") as file:
        state = pickle.load(file)
    assert state["text"] == "a" and state["arr"].tolist() == [0, 1, 2, 3]


def test_objects_keep_their_identity_across_entries(output_dir: str) -> None:
    shared = np.arange(3)
    EpochLogger(output_dir).save_state({"a": shared, "b": [shared]})
    state = load(output_dir, "vars.pkl")
    assert state["a"] is state["b"][0]


@pytest.mark.parametrize("state", [[1, 2], "text", 5, None])
def test_a_state_need_not_be_a_dict(output_dir: str, state: Any) -> None:
    EpochLogger(output_dir).save_state(state)
    assert load(output_dir, "vars.pkl") == state


def test_a_lambda_is_saved_without_a_warning(output_dir: str) -> None:
    logger = Recorder(output_dir)
    logger.save_state({"f": lambda x: x + 1})
    assert load(output_dir, "vars.pkl")["f"](1) == 2
    assert "messages" not in vars(logger)


def test_a_state_without_cloudpickle_is_a_plain_pickle(output_dir: str, run_python: RunPython) -> None:
    program = """if True:
        import sys
        sys.modules["cloudpickle"] = None
        from spinstat import Logger
        logger = Logger(sys.argv[1])
        logger.save_state({"step": 1})
        logger.save_state({"f": lambda: 0, "step": 2}, 5)
    """
    shown = run_python("-c", program, output_dir).stdout
    assert load(output_dir, "vars.pkl") == {"step": 1}
    assert load(output_dir, "vars5.pkl") == {"step": 2}
    assert shown.count("could not pickle state_dict") == 1 and "'f'" in shown


def test_F6_one_entry_that_cannot_be_pickled_does_not_lose_the_others(output_dir: str) -> None:
    logger = Recorder(output_dir)
    with pytest.warns(UserWarning, match="environment of this run"):
        logger.save_state({"env": Env(), "step": 5})
    assert load(output_dir, "vars.pkl") == {"step": 5}
    message = logger.only_message()
    assert "could not pickle state_dict" in message
    assert "env.inner['screens'][1]" in message and "_thread.lock" in message


def test_F4_a_state_that_cannot_be_pickled_leaves_the_last_good_one(output_dir: str) -> None:
    logger = Recorder(output_dir)
    logger.save_state({"env": [1]})
    with pytest.warns(UserWarning, match="environment of this run"):
        logger.save_state({"env": threading.Lock()})
    assert load(output_dir, "vars.pkl") == {"env": [1]}
    message = logger.only_message()
    assert message.startswith("Warning: could not pickle state_dict.")
    assert "lock" in message and "vars.pkl" in message and "unchanged" in message


class Raises:
    """Raises when it is pickled."""

    def __init__(self, error: type[BaseException]) -> None:
        self.error = error

    def __reduce__(self) -> Any:
        raise self.error("in __reduce__")


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_F5_an_interrupt_while_saving_passes_through(output_dir: str, error: type[BaseException]) -> None:
    logger = Recorder(output_dir)
    logger.save_state({"env": [1]})
    before = sorted(os.listdir(os.path.join(output_dir, ".spinstat")))
    with pytest.raises(error):
        logger.save_state({"big": list(range(10**5)), "env": Raises(error)})
    assert load(output_dir, "vars.pkl") == {"env": [1]}
    assert sorted(os.listdir(os.path.join(output_dir, ".spinstat"))) == before
    assert "messages" not in vars(logger)
    logger.save_state({"env": [2]})
    assert load(output_dir, "vars.pkl") == {"env": [2]}


@pytest.mark.parametrize("error", [ValueError, LookupError, OSError, MemoryError])
def test_F5_any_other_error_of_an_entry_is_told_once_with_its_reason(
    output_dir: str, error: type[Exception]
) -> None:
    logger = Recorder(output_dir)
    logger.save_state({"state": Raises(error), "step": 2})
    assert load(output_dir, "vars.pkl") == {"step": 2}
    assert "in __reduce__" in logger.only_message()


def test_an_interrupt_right_after_the_commit_leaves_a_whole_checkpoint(
    output_dir: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    logger = EpochLogger(output_dir)
    logger.save_state({"step": 1})
    replace = os.replace

    def interrupted(source: str, target: str) -> None:
        replace(source, target)
        if target.endswith(".json"):
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        logger.save_state({"step": 2})
    monkeypatch.undo()
    assert joblib.load(find_checkpoint(output_dir).vars) == {"step": 2}
    assert verify_checkpoints(output_dir) == [
        f"{os.path.join(output_dir, 'vars.pkl')} is not what the last checkpoint has saved"
    ]
    logger.save_state({"step": 3})
    assert load(output_dir, "vars.pkl") == {"step": 3}


def test_a_quiet_logger_warns_of_what_is_missing(output_dir: str) -> None:
    logger = Logger(output_dir, quiet=True)
    with pytest.warns(UserWarning, match="could not pickle state_dict"):
        logger.save_state({"lock": threading.Lock(), "step": 2})


def test_last_checkpoint_tells_the_paths(output_dir: str) -> None:
    logger = EpochLogger(output_dir)
    assert logger.last_checkpoint is None
    logger.save_state({"a": 1})
    assert logger.last_checkpoint.paths == (os.path.join(output_dir, "vars.pkl"),)
    logger.setup_pytorch_saver(torch.ones(1))
    logger.save_state({"a": 1}, 12)
    last = logger.last_checkpoint
    assert last.itr == 12
    assert last.vars == os.path.join(output_dir, "vars12.pkl")
    assert last.pytorch == os.path.join(output_dir, "pyt_save", "model12.pt")
    assert last.tf is None


def test_the_folder_is_the_one_of_the_start_whatever_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    logger = EpochLogger("run")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    logger.save_state({"a": 1})
    assert load(str(tmp_path / "run"), "vars.pkl") == {"a": 1}


def test_no_name_in_the_work_folder_looks_like_a_file_of_a_run(output_dir: str) -> None:
    logger = EpochLogger(output_dir)
    logger.setup_pytorch_saver(torch.ones(1))
    for itr in (None, 3, None):
        logger.save_state({"a": 1}, itr)
    work = os.path.join(output_dir, ".spinstat")
    names = [name for _, dirs, files in os.walk(work) for name in dirs + files]
    assert names
    endings = (".pkl", "progress.txt")
    assert [name for name in names if "model" in name or "tf1_save" in name or name.endswith(endings)] == []


def test_a_vanished_folder_is_told_and_the_run_goes_on(output_dir: str) -> None:
    logger = Recorder(output_dir)
    shutil.rmtree(output_dir)
    logger.save_state({"a": 1})
    assert "could not save the state" in logger.only_message()
    assert not os.path.exists(output_dir)


def test_a_plain_name_that_cannot_be_replaced_is_told_and_the_checkpoint_is_found(output_dir: str) -> None:
    logger = Recorder(output_dir)
    os.mkdir(os.path.join(output_dir, "vars.pkl"))
    logger.save_state({"a": 1})
    assert "could not replace vars.pkl" in logger.only_message()
    assert joblib.load(find_checkpoint(output_dir).vars) == {"a": 1}


def test_the_environment_is_described_when_it_is_saved(output_dir: str) -> None:
    EpochLogger(output_dir).save_state({"env": gymnasium.make("CartPole-v1")})
    with open(os.path.join(output_dir, "env.json")) as file:
        assert "CartPole-v1" in file.read()


def test_F6_an_environment_that_nothing_gives_back_is_told_at_the_first_save(output_dir: str) -> None:
    logger = Recorder(output_dir)
    env = Env()
    with pytest.warns(UserWarning, match="environment of this run back"):
        logger.save_state({"env": env, "step": 1})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        logger.save_state({"env": env, "step": 2})
        logger.save_state({"env": {"a": 1}, "step": 3})
