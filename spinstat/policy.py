"""Reading a run back: its policy, its environment, its value function.

A saved model is a pickle, and so is a saved environment: loading one runs whatever code it holds. Load only
runs that you trust.
"""

from __future__ import annotations

import operator
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from . import _torch_models
from .checkpoint import Checkpoint, find_checkpoint
from .envs import load_env
from .playing import Episode, GetAction, evaluate, run_policy, without_annotations
from .stderr import note
from .terminal import show

if TYPE_CHECKING:
    from ._tf_models import Graph

__all__ = [
    "Episode", "SavedPolicy", "evaluate", "load_actor_critic", "load_policy_and_env", "load_value_function",
    "run_policy",
]  # fmt: skip

Itr = int | Literal["last"] | None


class SavedPolicy:
    """The get_action of a saved run: called with an observation, it gives an action.

    Attributes:
        path: the file or folder that it came from.
        env_reasons: why the run's environment could not be had; empty where it could.
    """

    def __init__(self, path: str, get_action: GetAction) -> None:
        self.path = path
        self.env_reasons: list[str] = []
        self._get_action = get_action

    def __call__(self, obs: Any) -> Any:
        return self._get_action(obs)

    def __repr__(self) -> str:
        return f"<policy of {self.path}>"


@without_annotations
def load_policy_and_env(
    fpath: str | os.PathLike[str], itr: Itr = "last", deterministic: bool = False
) -> tuple[Any, SavedPolicy]:
    """Load the policy and the environment of a run that spinstat or Spinning Up has written.

    Runs the code that the pickles of the run hold: load only what you trust.

    Args:
        fpath: the run's folder, with tf1_save/ or pyt_save/.
        itr: number of the checkpoint; "last" or -1 for the greatest, and where none has a number the one
            without; None for the one without.
        deterministic: take the likeliest action instead of a drawn one, where the model can: with PyTorch
            an act(obs, deterministic=True), with TensorFlow a tensor "mu".

    Returns:
        The environment, or None where none of the ways to get it works: run_policy then tells the reasons.
        And get_action, a function from an observation to an action.

    Raises:
        FileNotFoundError: no such folder, no such checkpoint, or no model in it.
        ImportError: torch or tensorflow is not installed; as MissingClassError, what the model is made of.
    """
    root, checkpoint = _find(fpath, itr)
    path = _model_path(root, checkpoint)
    _tell_which(path, root, itr)
    if checkpoint.tf is not None:
        policy = SavedPolicy(path, _load_graph(checkpoint.tf).make_get_action(deterministic))
    else:
        actor = _torch_models.find_actor(_torch_models.load(path), path)
        policy = SavedPolicy(path, _torch_models.make_get_action(actor, deterministic))
    found = load_env(root, checkpoint.vars)
    policy.env_reasons = found.reasons
    if found.env is not None and found.reasons:
        note("\n  - ".join([f"The environment comes from {found.rung}.", *found.reasons]))
    return found.env, policy


def load_actor_critic(fpath: str | os.PathLike[str], itr: Itr = "last", *, map_location: Any = None) -> Any:
    """Load what setup_pytorch_saver was given: mostly an actor-critic module.

    Runs the code that the pickle holds: load only what you trust.

    Args:
        fpath, itr: as for load_policy_and_env.
        map_location: as torch.load's. None: the devices that it was saved from, or the CPU where one is not
            here.

    Raises:
        FileNotFoundError, ImportError: as load_policy_and_env.
    """
    root, checkpoint = _find(fpath, itr)
    if checkpoint.pytorch is None:
        raise FileNotFoundError(f"{root} has no PyTorch model for itr={itr!r}: load_value_function and "
                                "load_policy_and_env read TensorFlow graphs, too")
    return _torch_models.load(checkpoint.pytorch, map_location)


def load_value_function(fpath: str | os.PathLike[str], itr: Itr = "last") -> Callable[..., Any]:
    """Load the trained critic of a run.

    Runs the code that the pickle holds: load only what you trust.

    Args:
        fpath, itr: as for load_policy_and_env.

    Returns:
        A function: value(obs) where the model has a v, as in VPG, TRPO and PPO; value(obs, act) where it has
        a q, or q1 and q2, whose lesser value it gives, as in DDPG, TD3 and SAC. It takes one observation or a
        batch of them and gives a float for one value, else an array.

    Raises:
        FileNotFoundError, ImportError: as load_policy_and_env.
        TypeError: the model has no v, q, q1 or q2; tells what it has.
    """
    root, checkpoint = _find(fpath, itr)
    path = _model_path(root, checkpoint)
    if checkpoint.tf is not None:
        return _load_graph(checkpoint.tf).make_value_function()
    return _torch_models.make_value_function(_torch_models.load(path), path)


def _load_graph(path: str) -> Graph:
    from ._tf_models import Graph

    return Graph(path)


def _find(fpath: str | os.PathLike[str], itr: Any) -> tuple[str, Checkpoint]:
    root = os.fspath(fpath)
    if not os.path.isdir(root):
        raise FileNotFoundError(f"{root} is no folder: give the output_dir of a run")
    if itr is not None and itr != "last":
        try:
            itr = operator.index(itr)
        except TypeError:
            raise ValueError(f"itr is the number of a checkpoint, 'last' or None, not {itr!r}") from None
    return root, find_checkpoint(root, itr)


def _model_path(root: str, checkpoint: Checkpoint) -> str:
    """Where the model is read from; under the name that the caller gave the folder, where it is in there."""
    path = checkpoint.tf or checkpoint.pytorch
    if path is None:
        raise FileNotFoundError(
            f"{checkpoint.vars} has no model beside it: a run saves one after setup_pytorch_saver or "
            "setup_tf_saver"
        )
    inside = os.path.relpath(path, os.path.abspath(root))
    return path if inside.startswith(os.pardir) else os.path.join(root, inside)


def _tell_which(path: str, root: str, itr: Itr) -> None:
    show(f"\n\nLoading from {path}.\n\n")
    if itr not in ("last", -1):
        return
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(_time_of(path)))
    text = f"The last checkpoint of {root} is {os.path.basename(path)}, of {when}."
    plain = os.path.join(root, "tf1_save" if os.path.isdir(path) else os.path.join("pyt_save", "model.pt"))
    if plain != path and os.path.exists(plain) and _time_of(plain) > _time_of(path):
        text += f" {os.path.basename(plain)}, without a number, is newer: itr=None loads it."
    note(text)


def _time_of(path: str) -> float:
    inner = os.path.join(path, "saved_model.pb")
    return os.stat(inner if os.path.exists(inner) else path).st_mtime
