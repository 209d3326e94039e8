"""Runs with bare weights, as they are saved and as an attacker would make them, for the tests of trust."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import cores
import gymnasium
import safetensors.torch
import torch

from spinstat import EpochLogger

SPACES = (gymnasium.spaces.Box(-1.0, 1.0, (4,)), gymnasium.spaces.Discrete(2))


def make_model() -> cores.ActorCritic:
    return cores.ActorCritic(*SPACES, hidden_sizes=(5,), activation=torch.nn.ReLU)


def save(folder: str, *itrs: int | None, env: Any = None, **options: Any) -> cores.ActorCritic:
    """A run with a checkpoint for each itr (None alone if none are given)."""
    model = make_model()
    with EpochLogger(folder, quiet=True, **options) as logger:
        kwargs = {"hidden_sizes": (5,), "activation": torch.nn.ReLU}
        logger.setup_pytorch_saver(model, safe=True, args=SPACES, kwargs=kwargs)
        for itr in itrs or (None,):
            logger.save_state({"env": env}, itr)
    return model


def same(first: torch.nn.Module, second: torch.nn.Module) -> bool:
    one, other = first.state_dict(), second.state_dict()
    return list(one) == list(other) and all(
        part.dtype == other[name].dtype and torch.equal(part, other[name]) for name, part in one.items()
    )


def weights_of(folder: str, name: str = "weights.safetensors") -> Path:
    return Path(folder, "pyt_save", name)


def forge(folder: str, tensors: dict[str, torch.Tensor] | None = None, **recipe: Any) -> str:
    """A folder with nothing but weights that name whatever class and arguments; returns it."""
    fields = {"format": 1, "class": "cores:Keeper", "args": [], "kwargs": {}, "training": True, **recipe}
    return forge_text(folder, json.dumps(fields), tensors)


def forge_text(folder: str, text: str, tensors: dict[str, torch.Tensor] | None = None) -> str:
    path = weights_of(folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(safetensors.torch.save(tensors or {}, {"spinstat": text}))
    return folder


def forge_env(folder: str, **description: Any) -> str:
    """A run whose env.json says whatever."""
    save(folder)
    Path(folder, "env.json").write_text(json.dumps(description))
    return folder


class Evil:
    """Unpickled, it leaves a file."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.marker),)


def plant_pickles(folder: str, marker: Path) -> None:
    """Put a pickle that leaves a file in place of every file of a run that could be one."""
    data = pickle.dumps(Evil(marker))
    for path in Path(folder).rglob("*"):
        if path.is_file() and path.suffix not in (".safetensors", ".json", ".txt") and path.name != "weights":
            path.unlink()  # it may be a link to another one
            path.write_bytes(data)
    for name in ("vars.pkl", "pyt_save/model.pt", "tf1_save/model_info.pkl", "pyt_save/weights.pkl"):
        path = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
