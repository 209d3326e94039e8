"""Runs with PyTorch models whose classes, modules or files are not there, or broken."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import agents
import pytest
import torch
from conftest import RunPython
from policy_runs import save_as_the_original

from spinstat.policy import load_policy_and_env
from spinstat.unpickling import MissingClassError

IN_MAIN = """if True:
    import sys
    {without}
    import torch
    from spinstat import EpochLogger
    class OnlyHere(torch.nn.Module):
        def act(self, obs):
            return 7
    class Env:
        def reset(self): return 0.0
        def step(self, a): return 0.0, 1.0, True, {{}}
    logger = EpochLogger(sys.argv[1], quiet=True)
    logger.setup_pytorch_saver(OnlyHere())
    logger.save_state({{"env": Env()}})
"""


def test_F2_a_class_of_the_script_is_saved_by_value_with_cloudpickle(
    output_dir: str, run_python: RunPython
) -> None:
    run_python("-c", IN_MAIN.format(without=""), output_dir)
    env, get_action = load_policy_and_env(output_dir)
    assert get_action(0.0) == 7
    assert env.step(0)[1] == 1.0


def test_F2_a_class_of_the_script_that_is_missing_is_named_with_the_ways_out(
    output_dir: str, run_python: RunPython
) -> None:
    run_python("-c", IN_MAIN.format(without="sys.modules['cloudpickle'] = None"), output_dir)
    with pytest.raises(MissingClassError) as raised:
        load_policy_and_env(output_dir)
    assert (raised.value.module, raised.value.name) == ("__main__", "OnlyHere")
    for part in ("model.pt", "OnlyHere", "from your_training_script import OnlyHere", "cloudpickle"):
        assert part in str(raised.value)


def test_F2_the_script_that_has_the_class_loads_it(output_dir: str, run_python: RunPython) -> None:
    program = IN_MAIN.format(without="sys.modules['cloudpickle'] = None") + """
    from spinstat.policy import load_policy_and_env
    print("acts", load_policy_and_env(sys.argv[1])[1](0.0))
"""
    assert "acts 7" in run_python("-c", program, output_dir).stdout


class _Elsewhere:
    """Pickles as an instance of a class of a module that is not installed."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __reduce__(self) -> Any:
        module = types.ModuleType(self._module)
        kind = type("MLPActorCritic", (), {"__module__": self._module})
        module.MLPActorCritic = kind  # type: ignore[attr-defined]
        sys.modules[self._module] = module
        return kind, ()


@pytest.mark.parametrize(
    ("module", "missing", "way_out"),
    [
        ("spinup.algos.pytorch.ppo.core", "spinup", "install Spinning Up"),
        ("gone_with_the_move", "gone_with_the_move", "PYTHONPATH"),
    ],
)
def test_F2_a_module_that_is_missing_is_named(
    output_dir: str, monkeypatch: pytest.MonkeyPatch, module: str, missing: str, way_out: str
) -> None:
    names = [".".join(module.split(".")[: end + 1]) for end in range(module.count(".") + 1)]
    for name in names:
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    save_as_the_original(output_dir, _Elsewhere(module), {"env": agents.Counter()})
    for name in names:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(MissingClassError, match=f"needs module {missing}.*{way_out}") as raised:
        load_policy_and_env(output_dir)
    assert raised.value.name is None and raised.value.module == missing


def test_F2_a_class_that_its_module_no_longer_has_is_named(
    output_dir: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agents, "Renamed", type("Renamed", (), {"__module__": "agents"}), raising=False)
    save_as_the_original(output_dir, agents.Renamed(), {})  # type: ignore[attr-defined]
    monkeypatch.delattr(agents, "Renamed")
    with pytest.raises(MissingClassError, match="Renamed of module agents"):
        load_policy_and_env(output_dir)


@pytest.mark.parametrize("content", [b"", b"\x80\x04", b"PK\x03\x04 not a zip", b"no pickle at all"])
def test_a_model_file_that_is_broken_is_named(output_dir: str, content: bytes) -> None:
    save_as_the_original(output_dir, agents.Lean(), {})
    Path(output_dir, "pyt_save", "model.pt").write_bytes(content)
    with pytest.raises(Exception) as raised:
        load_policy_and_env(output_dir)
    assert "model.pt" in "".join([str(raised.value), *getattr(raised.value, "__notes__", ())])


def test_torch_that_is_not_installed_is_named_with_its_extra(output_dir: str, run_python: RunPython) -> None:
    save_as_the_original(output_dir, torch.nn.Linear(1, 1), {})
    program = """if True:
        import sys
        sys.modules["torch"] = None
        from spinstat.policy import load_policy_and_env
        try:
            load_policy_and_env(sys.argv[1])
        except ImportError as error:
            print(error)
    """
    assert "pip install 'spinstat[torch]'" in run_python("-c", program, output_dir).stdout
