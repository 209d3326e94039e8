"""What a PyTorch model may be: a dict, a part of a module, with values of states or of actions."""

from __future__ import annotations

import warnings
from typing import Any

import agents
import numpy as np
import pytest
import torch
from policy_runs import save

from spinstat import _torch_models
from spinstat.policy import load_actor_critic, load_policy_and_env, load_value_function


def test_a_dict_of_modules_and_optimizers_has_the_one_actor_in_it(output_dir: str) -> None:
    model = agents.Valued()
    save(output_dir, {"ac": model, "optimizer": torch.optim.Adam(model.parameters())})
    _, get_action = load_policy_and_env(output_dir)
    assert get_action(np.ones(4)) == 1
    assert sorted(load_actor_critic(output_dir)) == ["ac", "optimizer"]


@pytest.mark.parametrize(
    ("model", "found"),
    [
        (torch.nn.Linear(2, 2), "none"),
        ({"a": agents.Lean(), "b": agents.Lean()}, "more than one: a, b"),
        ({"step": 3}, "none"),
    ],
)
def test_a_model_without_a_policy_says_what_to_do(output_dir: str, model: Any, found: str) -> None:
    save(output_dir, model)
    with pytest.raises(TypeError, match=f"{found}.*load_actor_critic"):
        load_policy_and_env(output_dir)


def test_observations_of_several_parts_become_tensors_part_by_part(output_dir: str) -> None:
    save(output_dir, _Parts())
    _, get_action = load_policy_and_env(output_dir)
    image, vector = np.zeros((2, 2)), np.ones(3)
    assert get_action((image, vector)) == "tuple (2, 2) (3,)"
    assert get_action({"image": image, "vector": vector}) == "dict (2, 2) (3,)"
    assert get_action((1.0, 2.0)) == "Tensor (2,)", "numbers are one vector, as torch.as_tensor has it"
    assert get_action(3) == "Tensor ()"


class _Parts:
    def act(self, obs: Any) -> str:
        several = obs.values() if isinstance(obs, dict) else obs
        parts = list(several) if isinstance(obs, dict | tuple) else [obs]
        assert all(part.dtype == torch.float32 for part in parts)
        return " ".join([type(obs).__name__, *(str(tuple(part.shape)) for part in parts)])


def test_a_state_value_takes_one_observation_or_a_batch(output_dir: str) -> None:
    save(output_dir, agents.Valued())
    value = load_value_function(output_dir)
    assert value(np.array([1.0, 2.0, 3.0, 4.0])) == 10.0
    assert type(value(np.zeros(4))) is float
    assert value(np.array([[1.0] * 4, [2.0] * 4])).tolist() == [4.0, 8.0]


def test_of_two_action_values_the_lesser_one_counts(output_dir: str) -> None:
    save(output_dir, agents.Soft(), None, 1)
    value = load_value_function(output_dir, 1)
    assert value([1.0, 2.0], [4.0]) == -7.0
    assert value([-1.0, -2.0], [-4.0]) == -7.0
    assert value(np.ones((3, 2)), np.ones((3, 1))).tolist() == [-3.0] * 3


class Holder(torch.nn.Module):
    """A module with the actor-critic as a part."""

    def __init__(self) -> None:
        super().__init__()
        self.ac = agents.Valued()


@pytest.mark.parametrize("saved", [{"ac": agents.Valued(), "step": 3}, Holder()], ids=["dict", "module"])
def test_the_actor_critic_can_be_a_part_of_what_was_saved(output_dir: str, saved: Any) -> None:
    save(output_dir, saved)
    assert load_policy_and_env(output_dir)[1](np.ones(4)) == 1
    assert load_value_function(output_dir)(np.ones(4)) == 4.0


def test_a_dict_of_networks_can_have_the_value_function(output_dir: str) -> None:
    save(output_dir, {"pi": torch.nn.Linear(2, 2), "v": torch.nn.Flatten(0)})
    assert load_value_function(output_dir)(5.0) == 5.0


def test_a_model_without_a_value_function_says_so(output_dir: str) -> None:
    save(output_dir, agents.Lean())
    with pytest.raises(TypeError, match="without a value function: none of v, q, q1, q2"):
        load_value_function(output_dir)


@pytest.mark.parametrize("kind", [list, tuple])
def test_an_observation_of_several_arrays_is_one_tensor_without_a_warning(kind: type) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = _torch_models._to_tensor(kind([np.ones(2), np.zeros(2)]), None)
    assert torch.equal(found, torch.tensor([[1.0, 1.0], [0.0, 0.0]]))
    unlike = _torch_models._to_tensor((np.ones(2), np.zeros(3)), None)
    assert [part.shape for part in unlike] == [(2,), (3,)]
