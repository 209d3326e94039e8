"""setup_pytorch_saver(..., safe=True): bare weights beside the model, refused where they would not do."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import agents
import cores
import gymnasium
import numpy as np
import pytest
import torch
from checkpoints import Recorder, tree
from conftest import RunPython
from untrusted_runs import SPACES, make_model, same, save, weights_of

from spinstat import EpochLogger
from spinstat.checkpoint import find_checkpoint, verify_checkpoints
from spinstat.policy import load_actor_critic

TESTS = str(Path(__file__).parent)
OBS = np.array([0.5, -1.0, 0.25, 2.0], np.float32)


def test_safe_weights_are_part_of_the_checkpoint_and_no_model_to_the_originals_reader(
    output_dir: str,
) -> None:
    save(output_dir, 3, None)
    assert [path for path in tree(output_dir) if "weights" in path] == [
        "pyt_save/weights.safetensors", "pyt_save/weights3.safetensors"
    ]  # fmt: skip
    taken = [name for name in os.listdir(os.path.join(output_dir, "pyt_save")) if "model" in name]
    assert sorted(taken) == ["model.pt", "model3.pt"]
    record = json.loads(Path(output_dir, ".spinstat", "c1.json").read_text())
    assert {"vars3.pkl", "pyt_save/model3.pt", "pyt_save/weights3.safetensors"} == set(record["files"])
    assert verify_checkpoints(output_dir) == []
    assert find_checkpoint(output_dir).weights == str(weights_of(output_dir, "weights3.safetensors"))


def test_last_checkpoint_has_the_weights_and_without_safe_there_are_none(output_dir: str) -> None:
    with EpochLogger(output_dir, quiet=True) as logger:
        logger.setup_pytorch_saver(agents.Soft(), safe=True)
        logger.save_state({})
        assert logger.last_checkpoint is not None
        assert logger.last_checkpoint.weights == str(weights_of(output_dir))
        logger.setup_pytorch_saver(agents.Soft())
        logger.save_state({}, 1)
        assert logger.last_checkpoint.weights is None


def test_the_weights_of_pruned_checkpoints_go_with_them(output_dir: str) -> None:
    with EpochLogger(output_dir, quiet=True, keep_last=1) as logger:
        logger.setup_pytorch_saver(agents.Soft(), safe=True)
        for itr in range(4):
            logger.save_state({}, itr)
            logger.log_tabular("Epoch", itr)
            logger.dump_tabular()
    assert "weights0.safetensors" not in os.listdir(os.path.join(output_dir, "pyt_save"))
    assert "weights3.safetensors" in os.listdir(os.path.join(output_dir, "pyt_save"))
    assert verify_checkpoints(output_dir) == []


def test_tied_weights_other_dtypes_and_the_mode_come_back(output_dir: str) -> None:
    model = cores.Tied().eval()
    with torch.no_grad():
        model.a.mul_(3.0)
        model.count += 5
    with EpochLogger(output_dir, quiet=True) as logger:
        logger.setup_pytorch_saver(model, safe=True)
        logger.save_state({})
    loaded = load_actor_critic(output_dir, trust=False, allow=["cores"])
    assert same(loaded, model) and loaded.a is loaded.b
    assert not loaded.training and not loaded.drop.training


def test_setting_up_leaves_the_random_generators_alone(output_dir: str) -> None:
    model = make_model()
    torch.manual_seed(7)
    np.random.seed(7)
    expected = torch.rand(1).item(), np.random.rand()
    torch.manual_seed(7)
    np.random.seed(7)
    with EpochLogger(output_dir, quiet=True) as logger:
        kwargs = {"hidden_sizes": [5], "activation": torch.nn.ReLU}
        logger.setup_pytorch_saver(model, safe=True, args=SPACES, kwargs=kwargs)
    assert (torch.rand(1).item(), np.random.rand()) == expected


def local_class() -> Any:
    class Inside(torch.nn.Module):
        pass

    return Inside()


REFUSED: list[tuple[str, Callable[[], Any], dict[str, Any], type[Exception], str]] = [
    ("a dict", lambda: {"pi": agents.Lean()}, {}, TypeError, r"one torch\.nn\.Module, not a dict"),
    ("a class of a function", local_class, {}, TypeError, "Inside is defined inside a function"),
    ("a lambda", cores.Keeper, {"args": [lambda x: x]}, TypeError, r"args\[0\].*lambda.*top of a module"),
    ("a lock", cores.Keeper, {"kwargs": {"a": [1, threading.Lock()]}}, TypeError, r"'a'\]\[1\].*lock"),
    ("a key", cores.Keeper, {"args": [{1: 2}]}, TypeError, r"args\[0\] has the key 1"),
    ("a builtin", cores.Keeper, {"args": [torch.tanh]}, TypeError, r"args\[0\] is a builtins\."),
    ("arguments missing", make_model, {}, ValueError, "cannot be made with the arguments given.*observation"),
    ("other arguments", lambda: agents.Lean(width=3), {}, ValueError, r"shape \(4,\)|shape \(3,\)"),
    ("another dtype", lambda: agents.Lean().double(), {}, ValueError, "float64"),
    ("lazy weights", cores.Lazy, {}, ValueError, "layer.weight of the state_dict"),
]


@pytest.mark.parametrize(
    ("model", "options", "error", "match"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED]
)
def test_what_could_not_be_made_again_is_refused_at_setup_and_changes_nothing(
    output_dir: str, model: Callable[[], Any], options: dict[str, Any], error: type[Exception], match: str
) -> None:
    before = agents.Soft()
    with EpochLogger(output_dir, quiet=True) as logger:
        logger.setup_pytorch_saver(before, safe=True)
        with pytest.raises(error, match=match):
            logger.setup_pytorch_saver(model(), safe=True, **options)
        assert logger.pytorch_saver_elements is before
        logger.save_state({})
    assert same(load_actor_critic(output_dir, trust=False, allow="agents"), before)


def test_a_class_of_the_script_itself_is_refused_with_the_way_out(run_python: RunPython) -> None:
    script = (
        "import torch, spinstat\n"
        "class Net(torch.nn.Module): pass\n"
        "spinstat.EpochLogger('run', quiet=True).setup_pytorch_saver(Net(), safe=True)\n"
    )
    done = run_python("-c", script, check=False)
    assert done.returncode != 0
    assert "TypeError: Net is defined in the script itself" in done.stderr
    assert "put it into a module of its own" in done.stderr


def test_arguments_without_safe_are_refused(output_dir: str) -> None:
    with EpochLogger(output_dir, quiet=True) as logger:
        with pytest.raises(TypeError, match="with safe=True only"):
            logger.setup_pytorch_saver(agents.Lean(), args=(1.0,))
        assert not hasattr(logger, "pytorch_saver_elements")


def test_another_module_put_in_its_place_is_told_and_the_rest_is_saved(output_dir: str) -> None:
    with Recorder(output_dir) as logger:
        logger.setup_pytorch_saver(agents.Soft(), safe=True)
        logger.pytorch_saver_elements = agents.Lean()
        logger.save_state({})
        assert "weights.safetensors: ValueError: it is a agents:Lean now" in logger.only_message()
    assert tree(output_dir) == ["progress.txt", "pyt_save/model.pt", "vars.pkl"]


def test_without_safetensors_the_error_names_what_to_install(
    output_dir: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(output_dir)
    monkeypatch.setitem(sys.modules, "safetensors", None)
    monkeypatch.setitem(sys.modules, "safetensors.torch", None)
    with EpochLogger(output_dir, quiet=True) as logger:
        with pytest.raises(ImportError, match=r"pip install 'spinstat\[safe\]'"):
            logger.setup_pytorch_saver(agents.Soft(), safe=True)
    with pytest.raises(ImportError, match=r"pip install 'spinstat\[safe\]'"):
        load_actor_critic(output_dir, trust=False, allow="cores")


ARGUMENTS: list[Any] = [
    None, True, 3, "text", -0.5, float("inf"), float("-inf"), [1, [2.0]], (1, ("a",)), {"a": (1,), "b": {}},
    torch.nn.ReLU, cores.double, cores.ActorCritic, (), [], 2**70, "\ud800\x00",
    gymnasium.spaces.Box(-1.0, 1.0, (3,)), gymnasium.spaces.Box(-np.inf, np.inf, (2, 2), np.float64),
    gymnasium.spaces.Box(np.array([-1.0, -np.inf], np.float32), np.array([0.5, 2.0], np.float32)),
    gymnasium.spaces.Box(0, 255, (8, 8, 3), np.uint8), gymnasium.spaces.Discrete(4),
    gymnasium.spaces.Discrete(4, start=-2), gymnasium.spaces.MultiDiscrete([2, 3]),
    gymnasium.spaces.MultiBinary(5), gymnasium.spaces.MultiBinary((2, 3)),
]  # fmt: skip


@pytest.mark.parametrize("argument", ARGUMENTS, ids=lambda argument: ascii(argument)[:40])
def test_an_argument_comes_back_as_it_was(output_dir: str, argument: Any) -> None:
    with EpochLogger(output_dir, quiet=True) as logger:
        logger.setup_pytorch_saver(
            cores.Keeper(argument, other=[argument]), safe=True, args=[argument], kwargs={"other": [argument]}
        )
        logger.save_state({})
    loaded = load_actor_critic(output_dir, trust=False, allow=["cores"])
    assert loaded.args == (argument,) and loaded.kwargs == {"other": [argument]}
    assert type(loaded.args[0]) is type(argument)


def test_a_nan_and_numpys_numbers_come_back_as_pythons(output_dir: str) -> None:
    given = (float("nan"), np.int64(3), np.float32(0.5), np.bool_(True))
    with EpochLogger(output_dir, quiet=True) as logger:
        logger.setup_pytorch_saver(cores.Keeper(*given), safe=True, args=given)
        logger.save_state({})
    nan, *others = load_actor_critic(output_dir, trust=False, allow=["cores"]).args
    assert nan != nan and [(type(each), each) for each in others] == [(int, 3), (float, 0.5), (bool, True)]
