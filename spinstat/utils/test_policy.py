"""The names of spinup.utils.test_policy; as a program, the command test_policy of spinstat.run."""

from __future__ import annotations

from ..policy import load_policy_and_env, run_policy

__all__ = ["load_policy_and_env", "run_policy"]

if __name__ == "__main__":
    import sys

    from ..run import main

    sys.exit(main(["test_policy", *sys.argv[1:]]))
