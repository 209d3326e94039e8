"""load_policy_and_env and load_value_function on runs with TensorFlow graphs."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import agents
import joblib
import numpy as np
import pytest
import tensorflow as tf
from conftest import RunPython

from spinstat import EpochLogger
from spinstat.policy import load_actor_critic, load_policy_and_env, load_value_function

v1 = tf.compat.v1


class Graph:
    """A graph as Spinning Up's algorithms have: pi = factor x, mu = 3x, v = sum x, q1 = v + a, q2 = -q1."""

    def __init__(self, factor: float = 2.0) -> None:
        self.graph = tf.Graph()
        with self.graph.as_default():
            self.x = v1.placeholder(tf.float32, (None, 3), name="x")
            self.a = v1.placeholder(tf.float32, (None, 1), name="a")
            with v1.variable_scope("pi"):
                self.factor = v1.get_variable("factor", initializer=np.float32(factor), use_resource=True)
            self.pi = self.x * self.factor
            self.mu = self.x * 3.0
            self.v = tf.reduce_sum(self.x, axis=1)
            self.q1 = self.v + tf.squeeze(self.a, 1)
            self.q2 = -self.q1
            self.session = v1.Session(graph=self.graph)
            self.session.run(v1.global_variables_initializer())

    def outputs(self, *names: str) -> dict[str, Any]:
        return {name: getattr(self, name) for name in names}

    def inputs(self, *names: str) -> dict[str, Any]:
        return self.outputs("x", *names)


def save(folder: str, graph: Graph, *names: str, env: Any = None, itr: int | None = None) -> None:
    with EpochLogger(folder, quiet=True) as logger:
        given = graph.inputs("a") if "q1" in names else graph.inputs()
        logger.setup_tf_saver(graph.session, given, graph.outputs(*names))
        logger.save_state({"env": env}, itr)


def save_as_the_original(folder: str, graph: Graph, suffix: str = "") -> None:
    """What Spinning Up does: simple_save, and joblib for the names of the tensors."""
    path = os.path.join(folder, f"tf1_save{suffix}")
    inputs, outputs = graph.inputs(), graph.outputs("pi", "v")
    with graph.graph.as_default():
        v1.saved_model.simple_save(graph.session, path, inputs, outputs)
    names = {
        "inputs": {key: tensor.name for key, tensor in inputs.items()},
        "outputs": {key: tensor.name for key, tensor in outputs.items()},
    }
    joblib.dump(names, os.path.join(path, "model_info.pkl"))
    joblib.dump({"env": agents.Counter(6)}, os.path.join(folder, f"vars{suffix}.pkl"))


def test_F17_a_saved_graph_acts_and_stdout_is_the_originals(
    output_dir: str, capsys: pytest.CaptureFixture[str]
) -> None:
    save(output_dir, Graph(), "pi", "mu", env=agents.Counter(8))
    env, get_action = load_policy_and_env(output_dir)
    assert env.length == 8
    assert get_action(np.array([1.0, 2.0, 3.0])).tolist() == [2.0, 4.0, 6.0]
    path = os.path.join(output_dir, "tf1_save")
    shown = capsys.readouterr()
    assert shown.out == f"\n\nLoading from {path}.\n\n\nUsing default action op.\n"
    assert "tf1_save, of 20" in shown.err


@pytest.mark.parametrize(
    ("names", "action", "told"),
    [(("pi", "mu"), [3.0] * 3, "deterministic"), (("pi",), [2.0] * 3, "default")],
)
def test_deterministic_takes_mu_where_there_is_one(
    output_dir: str, capsys: pytest.CaptureFixture[str], names: Any, action: list[float], told: str
) -> None:
    save(output_dir, Graph(), *names)
    _, get_action = load_policy_and_env(output_dir, deterministic=True)
    assert get_action(np.ones(3)).tolist() == action
    assert f"Using {told} action op." in capsys.readouterr().out


def test_a_folder_that_the_original_wrote_loads(output_dir: str) -> None:
    save_as_the_original(output_dir, Graph(5.0))
    save_as_the_original(output_dir, Graph(7.0), "10")
    env, get_action = load_policy_and_env(output_dir)
    assert env.length == 6
    assert get_action(np.ones(3)).tolist() == [7.0] * 3
    assert load_policy_and_env(output_dir, None)[1](np.ones(3)).tolist() == [5.0] * 3
    assert load_value_function(output_dir)(np.ones(3)) == 3.0


def test_two_policies_loaded_at_once_do_not_mix(output_dir: str) -> None:
    save(output_dir, Graph(2.0), "pi", itr=1)
    save(output_dir, Graph(4.0), "pi", itr=2)
    policies = [load_policy_and_env(output_dir, itr)[1] for itr in (1, 2)]
    assert [policy(np.ones(3)).tolist() for policy in policies] == [[2.0] * 3, [4.0] * 3]


def test_with_both_kinds_of_model_the_graph_is_the_policy_as_in_the_original(output_dir: str) -> None:
    graph = Graph()
    with EpochLogger(output_dir, quiet=True) as logger:
        logger.setup_tf_saver(graph.session, graph.inputs(), graph.outputs("pi"))
        logger.setup_pytorch_saver(agents.Lean())
        logger.save_state({"env": None})
    assert load_policy_and_env(output_dir)[1](np.ones(3)).tolist() == [2.0] * 3
    assert type(load_actor_critic(output_dir)).__name__ == "Lean"


def test_the_state_value_takes_one_observation_or_a_batch(output_dir: str) -> None:
    save(output_dir, Graph(), "pi", "v")
    value = load_value_function(output_dir)
    assert value([1.0, 2.0, 3.0]) == 6.0 and type(value(np.zeros(3))) is float
    assert value(np.ones((2, 3))).tolist() == [3.0, 3.0]


def test_of_two_action_values_the_lesser_one_counts(output_dir: str) -> None:
    save(output_dir, Graph(), "mu", "pi", "q1", "q2")
    value = load_value_function(output_dir)
    assert value([1.0, 2.0, 3.0], [4.0]) == -10.0
    assert value(np.ones((2, 3)), np.ones((2, 1))).tolist() == [-4.0, -4.0]
    with pytest.raises(TypeError, match="takes 2 arguments, not 1"):
        value([1.0, 2.0, 3.0])


def test_a_graph_without_what_is_asked_for_says_what_it_has(output_dir: str) -> None:
    save(output_dir, Graph(), "mu")
    with pytest.raises(TypeError, match=r"no tensor 'pi'.*it has mu, x"):
        load_policy_and_env(output_dir)
    with pytest.raises(TypeError, match=r"no value function.*it has mu, x"):
        load_value_function(output_dir)
    with pytest.raises(FileNotFoundError, match="no PyTorch model"):
        load_actor_critic(output_dir)


def test_a_graph_that_never_got_its_plain_name_loads(output_dir: str) -> None:
    save(output_dir, Graph(), "pi")
    shutil.rmtree(os.path.join(output_dir, "tf1_save"))
    assert load_policy_and_env(output_dir)[1](np.ones(3)).tolist() == [2.0] * 3


def test_a_graph_plays_through_the_command_line_in_a_fresh_process(
    output_dir: str, run_python: RunPython
) -> None:
    save(output_dir, Graph(), "pi", env=Odd(), itr=4)
    env = {"PYTHONPATH": str(Path(__file__).parent)}
    done = run_python("-m", "spinstat.run", "test_policy", output_dir, "-nr", "-n", "1", env=env)
    assert "Using default action op.\n" in done.stdout
    assert "Episode 0 \t EpRet 12.000 \t EpLen 3\n" in done.stdout


class Odd:
    """Observes ones for three steps, and pays twice the first number of an action."""

    def reset(self) -> Any:
        self.t = 0
        return np.ones(3)

    def step(self, action: Any) -> Any:
        self.t += 1
        assert action.tolist() == [2.0] * 3
        return np.ones(3), 2.0 * float(action[0]), self.t >= 3, {}


def test_tensorflow_that_is_not_installed_is_named_with_its_extra(
    output_dir: str, run_python: RunPython
) -> None:
    Path(output_dir, "tf1_save").mkdir(parents=True)
    Path(output_dir, "tf1_save", "model_info.pkl").write_bytes(b"")
    program = """if True:
        import sys
        sys.modules["tensorflow"] = None
        from spinstat.policy import load_policy_and_env
        try:
            load_policy_and_env(sys.argv[1])
        except ImportError as error:
            print(error)
    """
    assert "pip install 'spinstat[tensorflow]'" in run_python("-c", program, output_dir).stdout
