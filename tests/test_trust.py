"""Saving with safe=True and loading with trust=False: nothing unpickled, nothing imported unless allowed."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import agents
import cores
import gymnasium
import joblib
import numpy as np
import pytest
import torch
from checkpoints import Recorder, tree
from conftest import RunPython
from untrusted_runs import SPACES, forge, forge_text, make_model, plant_pickles, save, weights_of

from spinstat import EpochLogger
from spinstat.checkpoint import find_checkpoint, verify_checkpoints
from spinstat.policy import load_actor_critic, load_policy_and_env, load_value_function
from spinstat.run import main
from spinstat.untrusted import UntrustedError

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


def same(first: torch.nn.Module, second: torch.nn.Module) -> bool:
    one, other = first.state_dict(), second.state_dict()
    return list(one) == list(other) and all(
        part.dtype == other[name].dtype and torch.equal(part, other[name]) for name, part in one.items()
    )


# Saving


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


# Loading


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


# Imports


@pytest.fixture
def marking_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module on sys.path that leaves a file when it is imported; the path of that file."""
    (tmp_path / "elsewhere").mkdir()
    marker = tmp_path / "imported"
    source = f"import os, torch\nos.mkdir({str(marker)!r})\nclass Net(torch.nn.Module): pass\n"
    (tmp_path / "elsewhere" / "marking.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path / "elsewhere")
    monkeypatch.delitem(sys.modules, "marking", raising=False)
    return marker


def test_a_module_is_imported_only_if_it_is_allowed(output_dir: str, marking_module: Path) -> None:
    forge(output_dir, **{"class": "marking:Net"})
    for allow in ([], ["cores"], ["mark"], ["marking.inner"]):
        with pytest.raises(UntrustedError, match=r"module marking is not allowed.*allow=\['marking'\]"):
            load_actor_critic(output_dir, trust=False, allow=allow)
    assert not marking_module.exists()
    assert type(load_actor_critic(output_dir, trust=False, allow=["marking"])).__name__ == "Net"
    assert marking_module.exists()
    sys.modules.pop("marking")


def test_a_class_among_the_arguments_needs_permission_too(output_dir: str, marking_module: Path) -> None:
    forge(output_dir, args=[{"$import": "marking:Net"}])
    with pytest.raises(UntrustedError, match="module marking is not allowed"):
        load_actor_critic(output_dir, trust=False, allow=["cores"])
    assert not marking_module.exists()


@pytest.mark.parametrize("inside", ["evil.py", "evil/__init__.py"])
def test_a_module_in_the_folder_of_the_run_is_not_imported_even_if_allowed(
    output_dir: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inside: str
) -> None:
    forge(output_dir, **{"class": "run.evil:Net"})
    path = Path(output_dir, inside)
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"import os\nos.mkdir({str(tmp_path / 'imported')!r})\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UntrustedError, match="in the folder of the run"):
        load_actor_critic(output_dir, trust=False, allow=["run"])
    assert not (tmp_path / "imported").exists()


def test_nothing_is_loaded_while_the_folder_of_the_run_is_on_the_path(
    output_dir: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(output_dir)
    monkeypatch.chdir(output_dir)
    monkeypatch.syspath_prepend("")
    with pytest.raises(UntrustedError, match="Run this from another folder"):
        load_actor_critic(".", trust=False, allow=["cores"])


CALLS = {
    "a program": ("subprocess:Popen", ["subprocess"], r"no class of torch\.nn\.modules\.module\.Module's"),
    "a class": ("cores:NoModule", ["cores"], "no class of torch"),
    "a function": ("cores:double", ["cores"], "no class of torch"),
    "another module's": ("agents:torch.nn.Linear", ["agents"], "defined in agents"),
    "another module's function": ("conftest:os.system", ["conftest"], "defined in conftest"),
    "nothing": ("cores:Missing", ["cores"], "defined in cores"),
    "dunder": ("cores:__builtins__", ["cores"], "no import path"),
    "a path": ("../cores:ActorCritic", ["cores"], "no import path"),
    "an absolute path": ("/tmp/cores:ActorCritic", ["cores"], "no import path"),
    "no class": ("cores", ["cores"], "no import path"),
    "relative": (".cores:ActorCritic", ["cores"], "no import path"),
    "spaces": ("cores:ActorCritic ", ["cores"], "no import path"),
}


@pytest.mark.parametrize(("path", "allow", "match"), CALLS.values(), ids=CALLS)
def test_nothing_is_called_but_a_class_of_modules(
    output_dir: str, tmp_path: Path, path: str, allow: list[str], match: str
) -> None:
    forge(output_dir, **{"class": path, "args": [["touch", str(tmp_path / "called")]]})
    with pytest.raises(UntrustedError, match=match) as caught:
        load_actor_critic(output_dir, trust=False, allow=allow)
    assert str(weights_of(output_dir)) in str(caught.value)
    assert not (tmp_path / "called").exists()


def test_a_class_whose_module_is_not_here_is_named(output_dir: str) -> None:
    forge(output_dir, **{"class": "not_here.cores:Net"})
    with pytest.raises(ModuleNotFoundError, match=r"not_here\.cores is not there: install.*PYTHONPATH"):
        load_actor_critic(output_dir, trust=False, allow=["not_here"])


RECIPES = {
    "empty": ("", "not JSON"),
    "a list": ("[]", "no format 1"),
    "a later format": ('{"format": 2}', "no format 1"),
    "deep": ("[" * 100_000, "not JSON"),
    "NaN": ('{"format": 1, "args": [NaN]}', "NaN is no JSON"),
    "a class that is a number": ('{"format": 1, "class": 3}', "'class' is int, not str"),
    "args that are an object": ('{"format": 1, "class": "cores:Keeper", "args": {}}', "'args' is dict"),
}


@pytest.mark.parametrize(("text", "match"), RECIPES.values(), ids=RECIPES)
def test_a_malformed_recipe_is_an_error_that_names_the_file(output_dir: str, text: str, match: str) -> None:
    forge_text(output_dir, text)
    with pytest.raises(UntrustedError, match=match) as caught:
        load_actor_critic(output_dir, trust=False, allow=["cores"])
    assert str(weights_of(output_dir)) in str(caught.value)


BAD_ARGUMENTS: dict[str, Any] = {
    "an unknown tag": {"$pickle": "gASV"},
    "two tags": {"$float": "inf", "$tuple": []},
    "a float that is code": {"$float": "1e5"},
    "an import of a number": {"$import": 3},
    "a tuple of nothing": {"$tuple": None},
    "a space of another library": {"$space": {"library": "os", "kind": "Box"}},
    "another attribute of the library": {"$space": {"library": "gymnasium", "kind": "np"}},
    "a space that is incomplete": {"$space": {"library": "gymnasium", "kind": "Discrete"}},
    "a space of objects": {"$space": {
        "library": "gymnasium", "kind": "Box", "low": 0, "high": 1, "shape": [2], "dtype": "O"}},
    "a space without end": {"$space": {
        "library": "gymnasium", "kind": "Box", "low": 0, "high": 1, "shape": [10**12], "dtype": "int8"}},
    "a space of text": {"$space": {
        "library": "gymnasium", "kind": "Box", "low": "a", "high": 1, "shape": [1], "dtype": "int8"}},
}  # fmt: skip


@pytest.mark.parametrize("argument", BAD_ARGUMENTS.values(), ids=BAD_ARGUMENTS)
def test_a_malformed_argument_is_an_error_that_names_the_file(output_dir: str, argument: Any) -> None:
    forge(output_dir, args=[[argument]])
    with pytest.raises(UntrustedError) as caught:
        load_actor_critic(output_dir, trust=False, allow=["cores"])
    assert str(weights_of(output_dir)) in str(caught.value)


def test_arguments_that_the_class_does_not_take_are_an_error(output_dir: str) -> None:
    forge(output_dir, **{"class": "cores:Tied", "args": [1]})
    with pytest.raises(UntrustedError, match=r"cores:Tied cannot be made.*TypeError"):
        load_actor_critic(output_dir, trust=False, allow=["cores"])
