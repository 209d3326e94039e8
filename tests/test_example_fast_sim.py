"""examples/fast_sim.py simulates CartPole as Gymnasium does, and logs every step of it."""

from __future__ import annotations

import csv
import importlib.util
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium
import numpy as np
import pytest
from conftest import ROOT, RunPython

PROGRAM = ROOT / "examples" / "fast_sim.py"


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fast_sim", PROGRAM)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_step_is_that_of_gymnasium_from_the_same_states_with_the_same_actions(example: ModuleType) -> None:
    """From upright to beyond the limits, at all speeds that come up; and the same states end the episode."""
    count = 400
    rng = np.random.default_rng(1)
    poles = example.CartPoles(count, seed=0)
    poles.state[:] = rng.uniform(-1, 1, (4, count)) * [[2.6], [4.0], [0.25], [4.0]]
    before = poles.state.copy()
    right = rng.random(count) < 0.5
    fallen = poles.step(right)

    environment: Any = gymnasium.make("CartPole-v1").unwrapped
    for i in range(count):
        environment.reset()
        environment.state = tuple(before[:, i])
        _, _, terminated, _, _ = environment.step(int(right[i]))
        np.testing.assert_allclose(poles.state[:, i], environment.state, rtol=1e-12, atol=1e-14)
        assert fallen[i] == terminated
    assert 50 < fallen.sum() < count - 50, "both kinds were there"


def test_episodes_are_as_long_as_those_of_gymnasium_under_the_same_actions(example: ModuleType) -> None:
    rng = np.random.default_rng(2)
    actions = rng.random((200, 8)) < 0.5
    poles = example.CartPoles(8, seed=3)
    environments: list[Any] = [gymnasium.make("CartPole-v1") for _ in range(8)]
    for i, environment in enumerate(environments):
        environment.reset()
        environment.unwrapped.state = tuple(poles.state[:, i])
    ended: dict[int, int] = {}
    lengths: dict[int, int] = {}
    for step, of_step in enumerate(actions, 1):
        fallen = poles.step(of_step)
        for i in np.flatnonzero(fallen):
            ended.setdefault(int(i), int(poles.lengths[i]))
        for i, environment in enumerate(environments):
            if i not in lengths and environment.step(int(of_step[i]))[2]:
                lengths[i] = step
    assert lengths and ended == lengths


def test_the_program_logs_every_pole_at_every_step(run_python: RunPython, tmp_path: Path) -> None:
    run_python(str(PROGRAM), "--envs", "64", "--epochs", "3", "--steps", "600", "--output_dir", "run")
    with open(tmp_path / "run" / "progress.txt", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert [int(row["TotalEnvInteracts"]) for row in rows] == [64 * 600 * epoch for epoch in (1, 2, 3)]
    for row in rows:
        assert 0 < float(row["StdAngle"]) < 0.25
        assert -0.25 < float(row["MinAngle"]) < -0.2 < 0.2 < float(row["MaxAngle"]) < 0.25
        assert 1 <= float(row["MinEpRet"]) <= float(row["AverageEpRet"]) <= float(row["MaxEpRet"]) == 500


def test_what_is_stored_is_what_happened(example: ModuleType) -> None:
    """The logger's values beside those of a second simulation of the same seed."""
    stored: dict[str, list[Any]] = {"Angle": [], "EpRet": []}

    class Recorder:
        def store(self, **values: Any) -> None:
            for key, value in values.items():
                stored[key].append(np.array(value))

    example.simulate(example.CartPoles(16, 5), example.Policy(5), 700, Recorder())
    assert [len(angles) for angles in stored["Angle"]] == [16] * 700
    returns = np.concatenate(stored["EpRet"])
    assert 0 < len(returns) and returns.max() == example.LONGEST
    under_way = example.CartPoles(16, 5)
    example.simulate(under_way, example.Policy(5), 700, None)
    assert returns.sum() + under_way.lengths.sum() == 16 * 700, "each step belongs to one episode"
    np.testing.assert_array_equal(stored["Angle"][-1], under_way.state[2])


def test_the_share_of_logging_is_told(run_python: RunPython) -> None:
    printed = run_python(str(PROGRAM), "--envs", "64", "--epochs", "2", "--steps", "50", "--share").stdout
    assert re.fullmatch(
        r"\d+\.\d million steps a second; logging takes -?\d+\.\d% of the time", printed.splitlines()[-1]
    )
