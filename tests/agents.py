"""Small policies and environments in a module of their own, so that their pickles load in another process."""

from __future__ import annotations

import threading
from typing import Any

import gymnasium
import numpy as np
import torch


class Lean(torch.nn.Module):
    """Acts 1 where the weighted observation is above its bias, else 0, as in Spinning Up's cores."""

    def __init__(self, bias: float = 0.0, width: int = 4) -> None:
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(width))
        self.bias = bias

    def act(self, obs: torch.Tensor) -> int:
        assert isinstance(obs, torch.Tensor) and obs.dtype == torch.float32
        return int((obs * self.w).sum().item() > self.bias)


class Soft(torch.nn.Module):
    """An actor-critic as SAC's: noisy actions, or with deterministic=True exact ones; q1 and q2."""

    def __init__(self) -> None:
        super().__init__()
        self.q1 = Critic(1.0)
        self.q2 = Critic(-1.0)

    def act(self, obs: torch.Tensor, deterministic: bool = False) -> torch.Tensor:
        return obs if deterministic else obs + torch.rand_like(obs)


class Critic(torch.nn.Module):
    """The sum of observation and action, times a factor: one value for each observation."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = torch.nn.Parameter(torch.tensor(factor))

    def forward(self, obs: torch.Tensor, act: torch.Tensor) -> torch.Tensor:
        return self.factor * (obs.sum(-1) + act.sum(-1))


class Valued(Lean):
    """An actor-critic as PPO's: v gives a value for each observation."""

    def v(self, obs: torch.Tensor) -> torch.Tensor:
        return (obs * self.w).sum(-1)


class Counter:
    """An environment of gym's old interface: reward k + action at step k, done after `length` steps."""

    def __init__(self, length: int = 5) -> None:
        self.length, self.t, self.rendered = length, 0, 0

    def reset(self) -> np.ndarray:
        self.t = 0
        return np.zeros(4)

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, dict[str, Any]]:
        self.t += 1
        return np.full(4, self.t / 10), float(self.t + action), self.t >= self.length, {}

    def render(self) -> None:
        self.rendered += 1


class Modern(gymnasium.Env[np.ndarray, Any]):
    """The same in gymnasium's interface; an episode ends by truncation where `cut` is set."""

    def __init__(self, length: int = 3, cut: bool = False) -> None:
        self.observation_space = gymnasium.spaces.Box(0.0, 100.0, (4,), np.float64)
        self.action_space = gymnasium.spaces.Discrete(2)
        self.length, self.cut, self.t = length, cut, 0
        self.seeds: list[int | None] = []

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        self.seeds.append(seed)
        self.t = 0
        return np.zeros(4), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.t += 1
        over = self.t >= self.length
        return np.full(4, float(self.t)), float(self.t), over and not self.cut, over and self.cut, {}


class Locked(Modern):
    """An environment that cannot be pickled."""

    def __init__(self, length: int = 3) -> None:
        super().__init__(length)
        self.lock = threading.Lock()


class Argumentless(Locked):
    """One that cannot be pickled, and that is made without arguments."""

    def __init__(self) -> None:
        super().__init__(7)


class Secretive(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A wrapper that does not record its arguments."""

    def __init__(self, env: Any, bonus: float) -> None:
        super().__init__(env)
        self.bonus = bonus


def make_locked(length: int = 3) -> Locked:
    """A factory, importable."""
    return Locked(length)


gymnasium.register("AgentsLocked-v0", entry_point="agents:Locked", max_episode_steps=50)
