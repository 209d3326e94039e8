"""The ways back to an environment: each works, each tells why it does not, the first that works is taken."""

from __future__ import annotations

import errno
import functools
import json
import os
import pickle
import random
import sys
import types
from pathlib import Path
from typing import Any

import agents
import gymnasium
import numpy as np
import pytest
import torch
from conftest import RunPython
from gymnasium.wrappers import ClipAction, FlattenObservation, TimeLimit, TransformReward

from spinstat import EpochLogger
from spinstat.envs import describe, load_env, rebuild, record
from spinstat.policy import load_policy_and_env, run_policy


def through_json(description: Any) -> Any:
    return json.loads(json.dumps(description))


def only(description: dict[str, Any], *ways: str) -> dict[str, Any]:
    """The description without the other ways."""
    return {key: None if key in ("spec", "id", "factory") and key not in ways else value
            for key, value in description.items()}  # fmt: skip


def save(folder: str, state: Any) -> None:
    with EpochLogger(folder) as logger:
        logger.setup_pytorch_saver(agents.Lean())
        logger.save_state(state)


def wrapped(length: int = 4) -> Any:
    """An environment with the wrappers of make() and one more that records its arguments."""
    return FlattenObservation(TimeLimit(gymnasium.make("AgentsLocked-v0", length=length), 30))


def test_the_specification_brings_arguments_and_wrappers_back() -> None:
    description = through_json(describe(wrapped()))
    found = rebuild(only(description, "spec"))
    assert (found.rung, found.reasons) == ("the spec in env.json", [])
    assert isinstance(found.env, FlattenObservation)
    assert isinstance(found.env.unwrapped, agents.Locked) and found.env.unwrapped.length == 4
    assert found.env.spec.max_episode_steps == 30


def test_the_id_brings_arguments_back_and_refuses_to_leave_out_wrappers() -> None:
    env = gymnasium.make("AgentsLocked-v0", length=4, max_episode_steps=9)
    found = rebuild(only(through_json(describe(env)), "id"))
    assert found.rung == "the id in env.json"
    assert found.env.unwrapped.length == 4 and found.env.spec.max_episode_steps == 9
    assert found.reasons == ["the spec in env.json: not described"]

    description = describe(wrapped())
    assert description["id"] is None
    assert "leave out the environment's wrappers: FlattenObservation" in description["reasons"]["id"]


@pytest.mark.parametrize(
    ("factory", "length"),
    [
        (agents.make_locked, 3),
        (functools.partial(agents.make_locked, 6), 6),
        (functools.partial(functools.partial(agents.make_locked, length=5), length=6), 6),
        (agents.Argumentless, 7),
        (functools.partial(gymnasium.make, "AgentsLocked-v0", length=8), 8),
    ],
)
def test_the_factory_is_called_with_its_arguments(factory: Any, length: int) -> None:
    description = through_json(describe(agents.Locked(), factory))
    found = rebuild(only(description, "factory"))
    assert found.rung == "the factory in env.json"
    assert found.env.unwrapped.length == length


def test_a_class_without_arguments_is_its_own_factory() -> None:
    found = rebuild(through_json(describe(agents.Argumentless())))
    assert (found.rung, found.env.length) == ("the factory in env.json", 7)
    assert len(found.reasons) == 2 and all("no spec" in reason for reason in found.reasons)


def test_F7_ezpickle_arguments_are_a_factory_and_give_a_fresh_environment() -> None:
    env = Pickled(5)
    env.reset()
    env.step(0)
    assert env.t == 1
    found = rebuild(through_json(describe(env)))
    assert (found.rung, found.env.length, found.env.t) == ("the factory in env.json", 5, 0)


class Pickled(agents.Modern, gymnasium.utils.EzPickle):
    """Keeps the arguments that it was made with, and no more."""

    def __init__(self, length: int) -> None:
        gymnasium.utils.EzPickle.__init__(self, length)
        agents.Modern.__init__(self, length)


def test_F7_a_pickle_of_arguments_alone_loads_as_a_fresh_environment(output_dir: str) -> None:
    env = Pickled(5)
    env.reset()
    env.step(0)
    save(output_dir, {"env": env})
    found, _ = load_policy_and_env(output_dir)
    assert (found.length, found.t, env.t) == (5, 0, 1)


@pytest.mark.parametrize(
    ("env", "factory", "way", "reason"),
    [
        (agents.Locked(), None, "factory", "give save_state an 'env_fn'"),
        (agents.Locked(), lambda: agents.Locked(), "factory", "put it in a module"),
        (agents.Locked(), agents.Locked().reset, "factory", "is not what the import gives"),
        (agents.Locked(), functools.partial(agents.make_locked, object()), "factory", "as JSON"),
        (agents.Secretive(agents.Locked(), 1.0), None, "factory", "give save_state an 'env_fn'"),
        (agents.Locked(), None, "spec", "no spec"),
        (agents.Locked(), None, "id", "no spec"),
        (agents.Secretive(gymnasium.make("CartPole-v1"), 1.0), None, "spec", "Secretive does not record"),
        (agents.Secretive(gymnasium.make("CartPole-v1"), 1.0), None, "id", "wrappers: Secretive"),
        (TransformReward(gymnasium.make("CartPole-v1"), abs), None, "spec", "not JSON serializable"),
    ],
)
def test_what_cannot_be_described_has_its_reason(env: Any, factory: Any, way: str, reason: str) -> None:
    description = through_json(describe(env, factory))
    assert description[way] is None
    assert reason in description["reasons"][way]
    found = rebuild(only(description))
    assert found.env is None
    assert any(way in each and reason in each for each in found.reasons)


class Recorded(gymnasium.Wrapper[Any, Any, Any, Any], gymnasium.utils.RecordConstructorArgs):
    """A wrapper that records its arguments."""

    def __init__(self, env: Any) -> None:
        gymnasium.utils.RecordConstructorArgs.__init__(self)
        gymnasium.Wrapper.__init__(self, env)


def test_a_wrapper_of_the_script_itself_is_no_use_to_another_program(monkeypatch: pytest.MonkeyPatch) -> None:
    assert describe(Recorded(gymnasium.make("CartPole-v1")))["spec"] is not None
    monkeypatch.setattr(Recorded, "__module__", "__main__")
    description = describe(Recorded(gymnasium.make("CartPole-v1")))
    assert description["spec"] is None
    assert "__main__:Recorded is of the script itself" in description["reasons"]["spec"]


@pytest.mark.parametrize("cloudpickle", [True, False])
def test_F2_an_environment_of_the_script_is_told_at_save_time_if_another_program_cannot_load_it(
    output_dir: str, run_python: RunPython, cloudpickle: bool
) -> None:
    program = """if True:
        import sys
        if sys.argv[2] == "False":
            sys.modules["cloudpickle"] = None
        from spinstat import EpochLogger
        class Env:
            def __init__(self, length): pass
            def reset(self): return 0.0
            def step(self, action): return 0.0, 1.0, True, {}
        EpochLogger(sys.argv[1], quiet=True).save_state({"env": Env(3)})
    """
    told = run_python("-c", program, output_dir, str(cloudpickle)).stderr
    assert ("Env is a class of the script itself" in told) == (not cloudpickle)
    assert ("Give save_state what makes it, as 'env_fn'" in told) == (not cloudpickle)


def test_an_environment_whose_attributes_raise_is_described_all_the_same() -> None:
    class Hostile(agents.Modern):
        @property
        def spec(self) -> Any:  # type: ignore[override]
            raise RuntimeError("no spec for you")

    description = through_json(describe(Hostile()))
    assert description["reasons"]["spec"] == "RuntimeError: no spec for you"
    assert description["class"].endswith("Hostile")


def test_a_module_of_its_own_is_imported_before_its_id_is_made(
    tmp_path: Path, run_python: RunPython
) -> None:
    (tmp_path / "own_envs.py").write_text(
        "import gymnasium\n"
        "from agents import Locked\n"
        "class Own(Locked): pass\n"
        "gymnasium.register('Own-v0', entry_point='own_envs:Own')\n"
    )
    path = {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(Path(__file__).parent)])}
    program = """if True:
        import json, sys, gymnasium
        from spinstat.envs import describe, rebuild
        if sys.argv[1] == "write":
            import own_envs
            json.dump(describe(gymnasium.make("Own-v0", length=4)), open("env.json", "w"))
        else:
            description = json.load(open("env.json"))
            for way in ("id", "spec"):  # the entry point of the spec would import the module for the id
                found = rebuild({**description, "spec": None, "id": None, way: description[way]})
                print(way, found.env.unwrapped.length, found.reasons)
    """
    run_python("-c", program, "write", env=path)
    shown = run_python("-c", program, "read", env=path).stdout
    assert "spec 4 []" in shown and "id 4" in shown

    (tmp_path / "own_envs.py").write_text("raise RuntimeError('broken by an update')\n")
    program = program.replace("found.env.unwrapped.length", "found.env")
    shown = run_python("-c", program, "read", env=path).stdout
    assert "importing own_envs: RuntimeError: broken by an update" in shown


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"factory": {"path": "no_such_module:f", "args": [], "kwargs": {}}}, "No module named"),
        ({"factory": {"path": "agents:gone", "args": [], "kwargs": {}}}, "gone"),
        ({"factory": {"path": "agents:make_locked", "args": [1, 2], "kwargs": {}}}, "positional"),
        ({"factory": {"path": "os:getcwd", "args": [], "kwargs": {}}}, "no reset() and step()"),
        ({"factory": "nonsense"}, "TypeError"),
        ({"spec": "nonsense"}, "JSONDecodeError"),
        ({"spec": "{}"}, "KeyError"),
        ({"id": {"library": "os", "id": "x", "kwargs": {}, "max_episode_steps": None}}, "neither"),
        ({"id": {}}, "KeyError"),
        ({"id": {"library": "gymnasium", "id": "Gone-v3", "kwargs": {}, "max_episode_steps": None}}, "Gone"),
    ],
)
def test_a_description_that_does_not_work_says_why(change: dict[str, Any], reason: str) -> None:
    found = rebuild(change)
    assert found.env is None
    (way,) = change
    assert any(each.startswith(f"the {way} in env.json: ") and reason in each for each in found.reasons)


@pytest.mark.parametrize("description", [None, [], "text", 5])
def test_a_description_that_is_none_is_a_reason(description: Any) -> None:
    (reason,) = rebuild(description).reasons
    assert "not an object" in reason


def test_the_pickle_comes_first(output_dir: str) -> None:
    save(output_dir, {"env": agents.Modern(9)})
    record(output_dir, describe(agents.Modern(), agents.make_locked), None)
    found = load_env(output_dir, os.path.join(output_dir, "vars.pkl"))
    assert (found.rung, found.env.length, found.reasons) == ("the pickle in vars.pkl", 9, [])


def test_a_factory_in_the_state_makes_the_environment(output_dir: str) -> None:
    save(output_dir, {"env": agents.Locked(), "env_fn": lambda: agents.Modern(6)})
    assert load_policy_and_env(output_dir)[0].length == 6


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "vars.pkl is empty (0 bytes)"),
        (b"garbage", "while loading"),
        (pickle.dumps([1, 2]), "it holds a list, not a dict with an 'env'"),
        (pickle.dumps({"step": 3}), "it has no 'env'"),
        (pickle.dumps({"env": None}), "it has no 'env'"),
        (b"\x80\x04\x8c\x0cno_such_envs\x94\x8c\x03Env\x94\x93.", "needs module no_such_envs"),
        (b"\x80\x04\x8c\x0bnumpy._core\x94\x8c\x06no_one\x94\x93.", "install numpy>=2"),
        (None, "there is no such file"),
    ],
    ids=["empty", "garbage", "a list", "without env", "env None", "F5 missing module", "F8 numpy 2",
         "no file"],
)  # fmt: skip
def test_F5_no_environment_keeps_the_reason_and_run_policy_tells_it(
    output_dir: str, content: bytes | None, reason: str
) -> None:
    save(output_dir, {})
    path = Path(output_dir, "vars.pkl")
    path.unlink()
    for stored in Path(output_dir, ".spinstat").glob("c*/vars"):
        stored.unlink()
    if content is not None:
        path.write_bytes(content)
    env, get_action = load_policy_and_env(output_dir)
    assert env is None
    assert get_action(np.ones(4)) == 1, "the policy is there all the same"
    with pytest.raises(AssertionError, match=r"^Environment not found!") as raised:
        run_policy(env, get_action)
    message = str(raised.value)
    assert "What was tried:" in message
    assert "the pickle in vars.pkl: " in message and reason in message
    assert "env.json: there is none" in message


def test_F5_an_interrupt_while_loading_passes_through(output_dir: str) -> None:
    save(output_dir, {})
    Path(output_dir, "vars.pkl").write_bytes(pickle.dumps({"env": Interrupting()}))
    with pytest.raises(KeyboardInterrupt):
        load_policy_and_env(output_dir)


class Interrupting:
    def __reduce__(self) -> Any:
        return _interrupt, ()


def _interrupt() -> None:
    raise KeyboardInterrupt


def test_F6_an_environment_that_cannot_be_pickled_comes_back_from_its_description(
    output_dir: str, capsys: pytest.CaptureFixture[str]
) -> None:
    env = wrapped()
    save(output_dir, {"step": 5})
    assert record(output_dir, describe(env), None) == []
    found, _ = load_policy_and_env(output_dir)
    assert found.unwrapped.length == 4 and found is not env
    told = capsys.readouterr().err
    assert "The environment comes from the spec in env.json." in told
    assert "the pickle in vars.pkl: it has no 'env'" in told


def test_recording_tells_when_no_way_leads_back(output_dir: str) -> None:
    save(output_dir, {"env": agents.Modern()})
    vars_path = os.path.join(output_dir, "vars.pkl")
    assert record(output_dir, describe(agents.Secretive(agents.Locked(), 1.0)), vars_path) == [], (
        "the pickle will do"
    )
    reasons = record(output_dir, describe(agents.Secretive(agents.Locked(), 1.0)), None)
    assert [reason.partition(":")[0] for reason in reasons] == [
        "the spec in env.json", "the id in env.json", "the factory in env.json", "the pickle",
    ]  # fmt: skip


def test_env_json_is_written_by_a_later_save_where_the_first_could_not(
    output_dir: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    logger, env = EpochLogger(output_dir, quiet=True), agents.Modern()

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "cannot write env.json: No space left on device")

    with monkeypatch.context() as full, pytest.warns(UserWarning, match="env.json"):
        full.setattr("spinstat.envs.write_atomic", refuse)
        logger.save_state({"env": env})
    path = os.path.join(output_dir, "env.json")
    assert not os.path.exists(path)
    logger.save_state({"env": env})
    with open(path) as file:
        assert "Modern" in file.read()


def test_an_environment_made_anew_for_each_save_is_tried_once(
    output_dir: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[object] = []

    def count(description: Any) -> Any:
        tried.append(description)
        return rebuild(description)

    monkeypatch.setattr("spinstat.envs.rebuild", count)
    logger = EpochLogger(output_dir, quiet=True)
    for _ in range(3):
        logger.save_state({"env": agents.Modern()})
    assert len(tried) == 1
    with pytest.warns(UserWarning, match="without 'env'"):
        logger.save_state({"env": agents.Locked(), "env_fn": agents.make_locked})
    assert len(tried) == 2, "another environment is described anew"


def test_recording_leaves_random_generators_alone_and_closes_what_it_tried(output_dir: str) -> None:
    os.makedirs(output_dir)
    tried.clear()

    def draws() -> list[float]:
        return [random.random(), np.random.rand(), torch.rand(()).item()]

    def seed() -> None:
        random.seed(3), np.random.seed(3), torch.manual_seed(3)

    seed()
    expected = draws()
    seed()
    assert record(output_dir, describe(agents.Locked(), make_drawing), None) == []
    assert draws() == expected
    assert [env.closed for env in tried] == [True]


tried: list[Any] = []


class Drawing(agents.Modern):
    closed = False

    def close(self) -> None:
        self.closed = True
        raise RuntimeError("closing fails, too")


def make_drawing() -> Drawing:
    random.random(), np.random.rand(), torch.rand(())
    tried.append(Drawing())
    return tried[-1]


def test_old_gym_environments_are_made_by_gym(monkeypatch: pytest.MonkeyPatch) -> None:
    gym = types.ModuleType("gym")

    class EnvSpec:
        id, entry_point, max_episode_steps = "Old-v0", "agents:Counter", None

        def __init__(self) -> None:
            self.kwargs = {"length": 8, "render_mode": None}

    EnvSpec.__module__ = "gym.envs.registration"
    made: list[tuple[str, dict[str, Any]]] = []

    def make(name: str, **kwargs: Any) -> agents.Counter:
        made.append((name, kwargs))
        return agents.Counter(**kwargs)

    gym.make = make  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "gym", gym)
    env = agents.Counter(8)
    env.spec = EnvSpec()  # type: ignore[attr-defined]
    description = through_json(describe(env))
    assert "gym has no JSON of a spec" in description["reasons"]["spec"]
    found = rebuild(description)
    assert (found.rung, found.env.length, made) == ("the id in env.json", 8, [("Old-v0", {"length": 8})])
    monkeypatch.setitem(sys.modules, "gym", None)
    assert any("gym is not installed: pip install gym" in reason for reason in rebuild(description).reasons)


def test_wrappers_that_make_adds_are_no_reason_against_the_id() -> None:
    assert describe(gymnasium.make("CartPole-v1"))["id"]["id"] == "CartPole-v1"
    assert describe(ClipAction(gymnasium.make("Pendulum-v1")))["id"] is None
