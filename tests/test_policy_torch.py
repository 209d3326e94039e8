"""load_policy_and_env, load_actor_critic and load_value_function on runs with PyTorch models."""

from __future__ import annotations

import io
import os
import pickle
import shutil
import zipfile
from pathlib import Path
from typing import Any

import agents
import joblib
import numpy as np
import pytest
import torch
from policy_runs import save, save_as_the_original

from spinstat import EpochLogger
from spinstat.policy import load_actor_critic, load_policy_and_env, load_value_function

TESTS = str(Path(__file__).parent)
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


def test_F1_a_saved_policy_and_environment_load_and_stdout_is_the_originals(
    output_dir: str, capsys: pytest.CaptureFixture[str]
) -> None:
    save(output_dir, agents.Lean(), agents.Counter(8))
    env, get_action = load_policy_and_env(output_dir)
    assert isinstance(env, agents.Counter) and env.length == 8
    assert get_action(np.array([0.0, 0.0, 0.5, 0.0])) == 1
    assert get_action(np.array([0.0, 0.0, -0.5, 0.0])) == 0
    shown = capsys.readouterr()
    assert shown.out == f"\n\nLoading from {os.path.join(output_dir, 'pyt_save', 'model.pt')}.\n\n\n"
    assert "model.pt, of 20" in shown.err
    assert "model.pt" in repr(get_action)


def test_a_relative_folder_is_shown_as_it_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    save(str(tmp_path / "run"), agents.Lean())
    monkeypatch.chdir(tmp_path)
    load_policy_and_env("run")
    assert capsys.readouterr().out == "\n\nLoading from run/pyt_save/model.pt.\n\n\n"


def test_a_folder_that_the_original_wrote_loads(output_dir: str) -> None:
    env = agents.Counter(6)
    env.table = np.arange(3.0)  # type: ignore[attr-defined]  # arrays are what joblib writes its own way
    save_as_the_original(output_dir, agents.Lean(), {"env": env}, "40")
    found, get_action = load_policy_and_env(output_dir)
    assert found.length == 6 and found.table.tolist() == [0.0, 1.0, 2.0]
    assert get_action(np.ones(4)) == 1


@pytest.mark.parametrize("compress", [0, 3])
def test_vars_that_joblib_compressed_load(output_dir: str, compress: int) -> None:
    save_as_the_original(output_dir, agents.Lean(), {})
    joblib.dump({"env": agents.Counter(4)}, os.path.join(output_dir, "vars.pkl"), compress=compress)
    assert load_policy_and_env(output_dir)[0].length == 4


def test_the_original_loads_what_was_saved_here(output_dir: str) -> None:
    save(output_dir, agents.Lean(), agents.Counter(8))
    model = torch.load(os.path.join(output_dir, "pyt_save", "model.pt"), weights_only=False)
    assert model.act(torch.ones(4)) == 1
    assert joblib.load(os.path.join(output_dir, "vars.pkl"))["env"].length == 8


@pytest.mark.parametrize(
    ("itr", "length"),
    [("last", 20), (-1, 20), (np.int64(5), 5), (np.uint8(20), 20), (5, 5), (None, 1)],
)
def test_F10_itr_chooses_the_checkpoint(output_dir: str, itr: Any, length: int) -> None:
    with EpochLogger(output_dir, quiet=True) as logger:
        for number in (20, 5, None):
            logger.setup_pytorch_saver(agents.Lean(bias=float(number or 1)))
            logger.save_state({"env": agents.Counter(number or 1)}, number)
    env, get_action = load_policy_and_env(output_dir, itr)
    assert env.length == length
    assert load_actor_critic(output_dir, itr).bias == length
    assert [get_action(np.full(4, (length + sign) / 4)) for sign in (-1, 1)] == [0, 1]


def test_F10_a_newer_checkpoint_without_a_number_is_told_on_stderr(
    output_dir: str, capsys: pytest.CaptureFixture[str]
) -> None:
    save(output_dir, agents.Lean(), None, 5, None)
    os.utime(os.path.join(output_dir, "pyt_save", "model5.pt"), (1000, 1000))
    load_policy_and_env(output_dir)
    assert "model.pt, without a number, is newer: itr=None loads it" in capsys.readouterr().err
    for chosen in (5, None):
        load_policy_and_env(output_dir, chosen)
        assert "checkpoint" not in capsys.readouterr().err, "who names one knows it"


@pytest.mark.parametrize("itr", ["x", 1.5, [1]])
def test_an_itr_that_is_no_number_is_a_clear_error(output_dir: str, itr: Any) -> None:
    save(output_dir, agents.Lean())
    with pytest.raises(ValueError, match="number of a checkpoint, 'last' or None"):
        load_policy_and_env(output_dir, itr)


def test_what_is_not_there_is_named(output_dir: str) -> None:
    with pytest.raises(FileNotFoundError, match="is no folder"):
        load_policy_and_env(output_dir)
    with EpochLogger(output_dir, quiet=True) as logger:
        with pytest.raises(FileNotFoundError, match="no checkpoint"):
            load_policy_and_env(output_dir)
        logger.save_state({"env": None})
    with pytest.raises(FileNotFoundError, match="setup_pytorch_saver"):
        load_policy_and_env(output_dir)
    save(output_dir, agents.Lean(), None, 3)
    with pytest.raises(FileNotFoundError, match=r"no checkpoint 4.*there are: 3"):
        load_policy_and_env(output_dir, 4)


def test_F15_deterministic_is_passed_to_an_act_that_takes_it(output_dir: str) -> None:
    save(output_dir, agents.Soft())
    obs = np.array([1.0, 2.0])
    _, noisy = load_policy_and_env(output_dir)
    _, exact = load_policy_and_env(output_dir, deterministic=True)
    assert exact(obs).tolist() == exact(obs).tolist() == [1.0, 2.0]
    assert noisy(obs).tolist() != noisy(obs).tolist()
    assert type(exact(obs)) is np.ndarray and exact(obs).dtype == np.float32


def test_F15_deterministic_warns_where_act_does_not_take_it(output_dir: str) -> None:
    save(output_dir, agents.Lean())
    with pytest.warns(UserWarning, match=r"Lean\.act has no argument 'deterministic'"):
        _, get_action = load_policy_and_env(output_dir, "last", True)
    assert get_action(np.ones(4)) == 1


def claim_cuda(source: str, target: str) -> None:
    """Rewrite a torch file so that its tensors say they were on a GPU, as a run on one would have saved it.

    "cpu" is the only short text of that length in the pickle, so the bytes can be replaced.
    """
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as new:
        for name in old.namelist():
            data = old.read(name)
            if name.endswith("data.pkl"):
                for long_op, length_bytes in ((b"X", 4), (b"\x8c", 1)):
                    before = long_op + (3).to_bytes(length_bytes, "little") + b"cpu"
                    after = long_op + (6).to_bytes(length_bytes, "little") + b"cuda:7"
                    data = data.replace(before, after)
            new.writestr(name, data)


def test_F3_a_checkpoint_of_a_device_that_is_not_here_loads_on_the_cpu(output_dir: str) -> None:
    save(output_dir, agents.Valued())
    path = os.path.join(output_dir, "pyt_save", "model.pt")
    foreign = path + ".foreign"
    claim_cuda(path, foreign)
    with pytest.raises(RuntimeError, match="CUDA device"):
        torch.load(foreign, weights_only=False)
    shutil.rmtree(os.path.join(output_dir, ".spinstat"))
    os.replace(foreign, path)

    _, get_action = load_policy_and_env(output_dir)
    assert get_action(np.ones(4)) == 1
    assert load_actor_critic(output_dir).w.device.type == "cpu"
    assert load_value_function(output_dir)(np.ones(4)) == 4.0


@pytest.mark.parametrize("device", DEVICES)
def test_F3_observations_go_to_the_device_of_the_model(output_dir: str, device: str) -> None:
    save(output_dir, Fixed().to(device))
    _, exact = load_policy_and_env(output_dir, deterministic=True)
    assert exact(np.array([1.0, 2.0])).tolist() == [1.0, 2.0]
    assert load_actor_critic(output_dir).w.device.type == device
    assert load_actor_critic(output_dir, map_location="cpu").w.device.type == "cpu"


class Fixed(torch.nn.Module):
    """Acts as it observes, on the device that it is on and on no other."""

    def __init__(self) -> None:
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(2))

    def act(self, obs: torch.Tensor, deterministic: bool = False) -> torch.Tensor:
        assert obs.device.type == self.w.device.type
        return obs * self.w


def test_the_places_of_tensors_can_be_chosen(output_dir: str) -> None:
    save(output_dir, agents.Lean())
    assert load_actor_critic(output_dir, map_location="meta").w.device.type == "meta"


def test_F1_torch_before_weights_only_is_not_given_it(
    output_dir: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(output_dir, agents.Lean())
    modern = torch.load

    def old_load(f: str, map_location: Any = None, pickle_module: Any = pickle) -> Any:
        with open(f, "rb") as file:
            return modern(io.BytesIO(file.read()), map_location, weights_only=False)

    monkeypatch.setattr(torch, "load", old_load)
    assert load_policy_and_env(output_dir)[1](np.ones(4)) == 1


def test_the_model_of_a_checkpoint_that_never_got_its_plain_names_loads(
    output_dir: str, capsys: pytest.CaptureFixture[str]
) -> None:
    save(output_dir, agents.Lean(), agents.Counter(8))
    os.unlink(os.path.join(output_dir, "pyt_save", "model.pt"))
    os.unlink(os.path.join(output_dir, "vars.pkl"))
    env, get_action = load_policy_and_env(output_dir)
    assert env.length == 8 and get_action(np.ones(4)) == 1
    assert ".spinstat" in capsys.readouterr().out
