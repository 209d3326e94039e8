"""Loading with trust=False: the model and the environment come back, and nothing is unpickled."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path
from typing import Any

import agents
import gymnasium
import joblib
import numpy as np
import pytest
import torch
from conftest import RunPython
from untrusted_runs import plant_pickles, same, save, weights_of

from spinstat import EpochLogger
from spinstat.policy import load_actor_critic, load_policy_and_env, load_value_function
from spinstat.run import main

TESTS = str(Path(__file__).parent)
OBS = np.array([0.5, -1.0, 0.25, 2.0], np.float32)


@pytest.fixture
def no_unpickling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever unpickles ends the test."""

    def bomb(*args: object, **options: object) -> None:
        raise BaseException("something was unpickled")

    for module in (pickle, torch, joblib):
        for name in ("load", "loads", "Unpickler", "_Unpickler"):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, bomb)


@pytest.mark.usefixtures("no_unpickling")
def test_a_run_full_of_malicious_pickles_loads_without_one_being_read(
    output_dir: str, tmp_path: Path
) -> None:
    model = save(output_dir, 4, env=gymnasium.make("CartPole-v1", max_episode_steps=9))
    plant_pickles(output_dir, tmp_path / "pwned")
    options: dict[str, Any] = {"trust": False, "allow": ["cores"]}
    env, get_action = load_policy_and_env(output_dir, **options)
    assert env.spec.id == "CartPole-v1" and env.spec.max_episode_steps == 9
    assert get_action(OBS) == model.act(torch.as_tensor(OBS))
    assert get_action.path == str(weights_of(output_dir, "weights4.safetensors"))
    assert same(load_actor_critic(output_dir, 4, **options), model)
    value = load_value_function(output_dir, "last", **options)(OBS)
    assert value == pytest.approx(float(model.v(torch.as_tensor(OBS)).detach()), abs=1e-6)
    assert not (tmp_path / "pwned").exists()


def test_the_pickles_planted_in_that_test_would_have_run(output_dir: str, tmp_path: Path) -> None:
    save(output_dir)
    plant_pickles(output_dir, tmp_path / "pwned")
    with pytest.raises(Exception, match=r".*"):
        load_actor_critic(output_dir, None)
    assert (tmp_path / "pwned").exists()


def test_the_command_line_plays_without_trust(output_dir: str, tmp_path: Path, run_python: RunPython) -> None:
    save(output_dir, env=gymnasium.make("CartPole-v1", max_episode_steps=9))
    plant_pickles(output_dir, tmp_path / "pwned")
    words = ["test_policy", output_dir, "--no-trust", "--allow", "cores", "--norender", "-n", "2"]
    program = (  # the interpreter itself tells of every name that a pickle looks up
        "import os, sys\n"
        "sys.addaudithook(lambda event, _: event == 'pickle.find_class' and os._exit(9))\n"
        f"from spinstat.run import main\nsys.exit(main({words!r}))\n"
    )
    done = run_python("-c", program, env={"PYTHONPATH": TESTS})
    assert "weights.safetensors" in done.stdout and "|           EpLen |" in done.stdout
    assert not (tmp_path / "pwned").exists()


def test_the_command_line_tells_what_to_allow(output_dir: str, capsys: pytest.CaptureFixture[str]) -> None:
    save(output_dir)
    assert main(["test_policy", output_dir, "--no-trust"]) == 1
    assert "--allow cores" in capsys.readouterr().err
    assert main(["test_policy", output_dir, "--allow", "cores"]) == 1
    assert "--no-trust" in capsys.readouterr().err


def test_modules_allowed_with_trust_are_refused(output_dir: str) -> None:
    save(output_dir)
    for load in (load_policy_and_env, load_actor_critic, load_value_function):
        with pytest.raises(ValueError, match="trust=False"):
            load(output_dir, allow=["cores"])


@pytest.mark.parametrize("allow", [[""], ["a-b"], [".cores"], ["cores:ActorCritic"], [3]], ids=str)
def test_what_is_no_name_of_a_module_cannot_be_allowed(output_dir: str, allow: Any) -> None:
    save(output_dir)
    with pytest.raises(ValueError, match="names of modules"):
        load_actor_critic(output_dir, trust=False, allow=allow)


def test_a_run_without_weights_tells_what_would_have_saved_them(output_dir: str) -> None:
    with EpochLogger(output_dir, quiet=True) as logger:
        logger.setup_pytorch_saver(agents.Soft())
        logger.save_state({}, 1)
        logger.setup_pytorch_saver(agents.Soft(), safe=True)
        logger.save_state({}, 2)
    with pytest.raises(FileNotFoundError, match=r"weights1\.safetensors.*safe=True.*itr: 2"):
        load_policy_and_env(output_dir, 1, trust=False)
    assert isinstance(load_actor_critic(output_dir, trust=False, allow="agents"), agents.Soft)


def test_weights_are_found_in_a_copy_without_records_and_after_a_kill_before_the_names(
    output_dir: str, tmp_path: Path
) -> None:
    model = save(output_dir, 2)
    bare = tmp_path / "bare"
    shutil.copytree(output_dir, bare, ignore=shutil.ignore_patterns(".spinstat", "*.pkl", "*.pt"))
    assert same(load_actor_critic(bare, trust=False, allow=["cores"]), model)
    weights_of(output_dir, "weights2.safetensors").unlink()
    assert same(load_actor_critic(output_dir, trust=False, allow=["cores"]), model)


def test_weights_go_to_the_device_asked_for(output_dir: str) -> None:
    save(output_dir)
    loaded = load_actor_critic(output_dir, trust=False, allow=["cores"], map_location="meta")
    assert next(loaded.parameters()).device.type == "meta"
    with pytest.raises(TypeError, match="a device or its name"):
        load_actor_critic(output_dir, trust=False, allow=["cores"], map_location={})


def test_nan_in_the_weights_is_told(output_dir: str) -> None:
    model = agents.Soft()
    with torch.no_grad():
        model.q1.factor.fill_(float("nan"))
    with EpochLogger(output_dir, quiet=True) as logger:
        logger.setup_pytorch_saver(model, safe=True)
        logger.save_state({})
    with pytest.warns(UserWarning, match=r"weights\.safetensors has NaN in q1\.factor"):
        load_actor_critic(output_dir, trust=False, allow=["agents"])
