"""Actor-critics in a module that another program can import, for the tests of trust."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import nn


def double(values: torch.Tensor) -> torch.Tensor:
    """A function that an actor-critic can be given."""
    return 2 * values


class ActorCritic(nn.Module):
    """Made of spaces, sizes and an activation, as Spinning Up's."""

    def __init__(
        self,
        observation_space: Any,
        action_space: Any,
        hidden_sizes: Sequence[int] = (4,),
        activation: type[nn.Module] = nn.Tanh,
        scale: Callable[[torch.Tensor], torch.Tensor] = double,
    ) -> None:
        super().__init__()
        sizes = [observation_space.shape[0], *hidden_sizes]
        steps = pairwise(sizes)
        self.body = nn.Sequential(*(part for step in steps for part in (nn.Linear(*step), activation())))
        self.pi = nn.Linear(sizes[-1], action_space.n)
        self.v_head = nn.Linear(sizes[-1], 1)
        self.scale = scale

    def act(self, obs: torch.Tensor) -> int:
        return int(self.scale(self.pi(self.body(obs))).argmax())

    def v(self, obs: torch.Tensor) -> torch.Tensor:
        return self.v_head(self.body(obs)).squeeze(-1)


class Tied(nn.Module):
    """Two names for one weight, a buffer of integers, a weight of 16 bits, and dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Parameter(torch.arange(3.0))
        self.b = self.a
        self.short = nn.Parameter(torch.ones(2, dtype=torch.bfloat16))
        self.register_buffer("count", torch.tensor(0))
        self.drop = nn.Dropout(0.5)


class Keeper(nn.Module):
    """Keeps what it is made of."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        self.args, self.kwargs = args, kwargs


class Lazy(nn.Module):
    """Has weights only after its first call."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.LazyLinear(2)


class NoModule:
    """Made without being a module."""
