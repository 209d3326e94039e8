"""Reading a run back: its policy, its environment, its value function.

A saved model is a pickle, and so is a saved environment: loading one runs whatever code it holds. Load only
runs that you trust; others with trust=False, which docs/security.md describes.
"""

from __future__ import annotations

import operator
import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from . import _torch_models
from ._safe_models import UntrustedRun, check_allow
from .checkpoint import Checkpoint, find_checkpoint
from .envs import Found, load_env
from .playing import Episode, GetAction, evaluate, run_policy, without_annotations
from .stderr import note
from .terminal import show
from .untrusted_envs import load_env_untrusted

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

    Examples:
        >>> from spinstat.policy import load_policy_and_env
        >>> env, get_action = load_policy_and_env("runs/ppo")
        <BLANKLINE>
        <BLANKLINE>
        Loading from runs/ppo/pyt_save/model.pt.
        <BLANKLINE>
        <BLANKLINE>
        >>> get_action, get_action.env_reasons
        (<policy of runs/ppo/pyt_save/model.pt>, [])
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
    fpath: str | os.PathLike[str],
    itr: Itr = "last",
    deterministic: bool = False,
    *,
    trust: bool = True,
    allow: str | Sequence[str] = (),
) -> tuple[Any, SavedPolicy]:
    """Load the policy and the environment of a run that spinstat or Spinning Up has written.

    Runs the code that the pickles of the run hold: load only what you trust. With trust=False nothing is
    unpickled: the policy comes from the weights that setup_pytorch_saver(..., safe=True) has saved, the
    environment from its id and arguments in env.json.

    Args:
        fpath: the run's folder, with tf1_save/ or pyt_save/.
        itr: number of the checkpoint; "last" or -1 for the greatest, and where none has a number the one
            without; None for the one without.
        deterministic: take the likeliest action instead of a drawn one, where the model can: with PyTorch
            an act(obs, deterministic=True), with TensorFlow a tensor "mu".
        trust: whether to run code that the run's files hold.
        allow: with trust=False, the modules (those within them included) that may be imported and called
            because the run names them: that of the model's class, of what it is made of, of the environment.
            Importing a module runs its code, as installed here. torch.nn's layers, and the environments of
            gymnasium and gym themselves, need not be named.

    Returns:
        The environment, or None where none of the ways to get it works: run_policy then tells the reasons.
        And get_action, a function from an observation to an action.

    Raises:
        FileNotFoundError: no such folder, no such checkpoint, or no model in it.
        ImportError: torch or tensorflow is not installed; as MissingClassError, what the model is made of.
        UntrustedError: with trust=False, something is not allowed, malformed, or a link; tells what.

    Examples:
        >>> from spinstat.policy import load_policy_and_env
        >>> env, get_action = load_policy_and_env("runs/ppo", deterministic=True)
        <BLANKLINE>
        <BLANKLINE>
        Loading from runs/ppo/pyt_save/model.pt.
        <BLANKLINE>
        <BLANKLINE>
        >>> obs, _ = env.reset(seed=0)
        >>> get_action(obs) in (0, 1)
        True
    """
    if not trust:
        run = _open_untrusted(fpath, itr, allow)
        path = run.find(itr)
        _tell_which(path, run.folder, itr)
        actor = _torch_models.find_actor(run.load(path), path)
        return _with_env(
            SavedPolicy(path, _torch_models.make_get_action(actor, deterministic)),
            load_env_untrusted(run.folder, run.importer),
        )
    check_allow(allow)
    root, checkpoint = _find(fpath, itr)
    path = _model_path(root, checkpoint)
    _tell_which(path, root, itr)
    if checkpoint.tf is not None:
        policy = SavedPolicy(path, _load_graph(checkpoint.tf).make_get_action(deterministic))
    else:
        actor = _torch_models.find_actor(_torch_models.load(path), path)
        policy = SavedPolicy(path, _torch_models.make_get_action(actor, deterministic))
    return _with_env(policy, load_env(root, checkpoint.vars))


def _with_env(policy: SavedPolicy, found: Found) -> tuple[Any, SavedPolicy]:
    policy.env_reasons = found.reasons
    if found.env is not None and found.reasons:
        note("\n  - ".join([f"The environment comes from {found.rung}.", *found.reasons]))
    return found.env, policy


def load_actor_critic(
    fpath: str | os.PathLike[str],
    itr: Itr = "last",
    *,
    map_location: Any = None,
    trust: bool = True,
    allow: str | Sequence[str] = (),
) -> Any:
    """Load what setup_pytorch_saver was given: mostly an actor-critic module.

    Runs the code that the pickle holds, unless trust=False: load only what you trust.

    Args:
        fpath, itr, trust, allow: as for load_policy_and_env.
        map_location: as torch.load's. None: the devices that it was saved from, or the CPU where one is not
            here. With trust=False a device or its name; None: that of the module when its class makes it.

    Raises:
        FileNotFoundError, ImportError, UntrustedError: as load_policy_and_env.

    Examples:
        >>> from spinstat.policy import load_actor_critic
        >>> type(load_actor_critic("runs/ppo")).__name__
        'Actor'
    """
    if not trust:
        run = _open_untrusted(fpath, itr, allow)
        return run.load(run.find(itr), map_location)
    check_allow(allow)
    root, checkpoint = _find(fpath, itr)
    if checkpoint.pytorch is None:
        raise FileNotFoundError(f"{root} has no PyTorch model for itr={itr!r}: load_value_function and "
                                "load_policy_and_env read TensorFlow graphs, too")
    return _torch_models.load(checkpoint.pytorch, map_location)


def load_value_function(
    fpath: str | os.PathLike[str],
    itr: Itr = "last",
    *,
    trust: bool = True,
    allow: str | Sequence[str] = (),
) -> Callable[..., Any]:
    """Load the trained critic of a run.

    Runs the code that the pickle holds, unless trust=False: load only what you trust.

    Args:
        fpath, itr, trust, allow: as for load_policy_and_env.

    Returns:
        A function: value(obs) where the model has a v, as in VPG, TRPO and PPO; value(obs, act) where it has
        a q, or q1 and q2, whose lesser value it gives, as in DDPG, TD3 and SAC. It takes one observation or a
        batch of them and gives a float for one value, else an array.

    Raises:
        FileNotFoundError, ImportError, UntrustedError: as load_policy_and_env.
        TypeError: the model has no v, q, q1 or q2; tells what it has.

    Examples:
        >>> import numpy as np
        >>> from spinstat.policy import load_value_function
        >>> value = load_value_function("runs/ppo")
        >>> value(np.ones(4)), value(np.ones((2, 4)))
        (4.0, array([4., 4.], dtype=float32))
    """
    if not trust:
        run = _open_untrusted(fpath, itr, allow)
        path = run.find(itr)
        return _torch_models.make_value_function(run.load(path), path)
    check_allow(allow)
    root, checkpoint = _find(fpath, itr)
    path = _model_path(root, checkpoint)
    if checkpoint.tf is not None:
        return _load_graph(checkpoint.tf).make_value_function()
    return _torch_models.make_value_function(_torch_models.load(path), path)


def _load_graph(path: str) -> Graph:
    from ._tf_models import Graph

    return Graph(path)


def _open_untrusted(
    fpath: str | os.PathLike[str], itr: Any, allow: str | Sequence[str]
) -> UntrustedRun:
    root, _ = _check(fpath, itr)
    return UntrustedRun(root, allow)


def _find(fpath: str | os.PathLike[str], itr: Any) -> tuple[str, Checkpoint]:
    root, itr = _check(fpath, itr)
    return root, find_checkpoint(root, itr)


def _check(fpath: str | os.PathLike[str], itr: Any) -> tuple[str, Any]:
    """The folder, and the number as a plain one."""
    root = os.fspath(fpath)
    if not os.path.isdir(root):
        raise FileNotFoundError(f"{root} is no folder: give the output_dir of a run")
    if itr is not None and itr != "last":
        try:
            itr = operator.index(itr)
        except TypeError:
            raise ValueError(f"itr is the number of a checkpoint, 'last' or None, not {itr!r}") from None
    return root, itr


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
    plain = os.path.join(root, _plain_name(path))
    if plain != path and os.path.exists(plain) and _time_of(plain) > _time_of(path):
        text += f" {os.path.basename(plain)}, without a number, is newer: itr=None loads it."
    note(text)


def _plain_name(path: str) -> str:
    """The name in a run folder of the kind of model that is at a path, without a number."""
    if os.path.isdir(path):
        return "tf1_save"
    stem = "weights.safetensors" if path.endswith(".safetensors") else "model.pt"
    return os.path.join("pyt_save", stem)


def _time_of(path: str) -> float:
    inner = os.path.join(path, "saved_model.pb")
    return os.stat(inner if os.path.exists(inner) else path).st_mtime
