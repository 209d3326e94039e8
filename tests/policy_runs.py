"""Runs with PyTorch models, as this package and as Spinning Up write them."""

from __future__ import annotations

import os
from typing import Any

import joblib
import torch

from spinstat import EpochLogger


def save(folder: str, model: Any, env: Any = None, *itrs: int | None) -> None:
    """A run of spinstat with one checkpoint for each itr."""
    with EpochLogger(folder, quiet=True) as logger:
        logger.setup_pytorch_saver(model)
        for itr in itrs or (None,):
            logger.save_state({"env": env}, itr)


def save_as_the_original(folder: str, model: Any, state: dict[str, Any], suffix: str = "") -> None:
    """The layout of Spinning Up itself: joblib's pickle, the whole module, no work folder."""
    os.makedirs(os.path.join(folder, "pyt_save"), exist_ok=True)
    torch.save(model, os.path.join(folder, "pyt_save", f"model{suffix}.pt"))
    joblib.dump(state, os.path.join(folder, f"vars{suffix}.pkl"))
