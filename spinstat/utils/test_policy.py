"""The names of spinup.utils.test_policy; as a program, the command test_policy of spinstat.run."""

from __future__ import annotations

import os
from typing import Any

from .. import policy
from ..playing import run_policy, without_annotations

__all__ = ["load_policy_and_env", "run_policy"]


@without_annotations
def load_policy_and_env(
    fpath: str | os.PathLike[str], itr: policy.Itr = "last", deterministic: bool = False
) -> tuple[Any, policy.SavedPolicy]:
    """Load the policy and the environment of a run: see `spinstat.policy.load_policy_and_env`.

    Args:
        fpath: the run's folder.
        itr: the number of the checkpoint, or "last".
        deterministic: take the likeliest action, where the model can tell it.

    Examples:
        >>> from spinstat.utils.test_policy import load_policy_and_env
        >>> env, get_action = load_policy_and_env("runs/ppo", "last")
        <BLANKLINE>
        <BLANKLINE>
        Loading from runs/ppo/pyt_save/model.pt.
        <BLANKLINE>
        <BLANKLINE>
    """
    return policy.load_policy_and_env(fpath, itr, deterministic)


if __name__ == "__main__":
    import sys

    from ..run import main

    sys.exit(main(["test_policy", *sys.argv[1:]]))
