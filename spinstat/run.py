"""The command line: python -m spinstat.run COMMAND ..., where COMMAND --help tells more."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

from .compare_command import add_compare_arguments, compare
from .inspecting import add_folder_argument, show, verify
from .plot_command import add_plot_arguments, plot
from .relaunch import add_relaunch_arguments, relaunch
from .stderr import note


class Command(NamedTuple):
    """A command: what it does in a line, its arguments, and what runs it and returns the exit status."""

    summary: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def _add_test_policy_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("fpath", metavar="DIR", help="the run's folder; trust it, or see --no-trust")
    parser.add_argument("--len", "-l", type=int, default=0, help="end episodes after LEN steps; 0: do not")
    parser.add_argument("--episodes", "-n", type=int, default=100, help="how many to play (100)")
    parser.add_argument("--norender", "-nr", action="store_true", help="do not call env.render()")
    parser.add_argument(
        "--itr", "-i", type=int, default=-1, help="number of the checkpoint; -1: the last (-1)"
    )
    parser.add_argument(
        "--deterministic", "-d", action="store_true", help="likeliest actions, where the model can"
    )
    parser.add_argument("--seed", type=int, help="of the first episode (later ones count up) and actions")
    parser.add_argument(
        "--video", metavar="DIR", help="leave each episode as a file in DIR instead of showing it"
    )
    parser.add_argument(
        "--no-trust", action="store_true", help="unpickle nothing: for runs saved with safe=True"
    )
    parser.add_argument(
        "--allow", metavar="MODULE", action="append", default=[],
        help="a module that may be imported for the run all the same",
    )


def _test_policy(args: argparse.Namespace) -> int:
    from .playing import play_and_print
    from .policy import Itr, load_policy_and_env
    from .video import NoVideo, with_frames

    itr: Itr = args.itr if args.itr >= 0 else "last"
    try:
        env, get_action = load_policy_and_env(
            args.fpath, itr, args.deterministic, trust=not args.no_trust, allow=args.allow
        )
        if args.video is not None and env is not None:
            env = with_frames(env)
    except Exception as error:  # what unpickling raises is up to whoever wrote what is unpickled
        return _fail(error)
    render = not args.norender and args.video is None
    if args.seed is not None:
        _seed_generators(args.seed)
    try:
        play_and_print(
            env, get_action, args.len, args.episodes, render, seed=args.seed, video=args.video
        )
    except NoVideo as error:
        return _fail(error)
    except AssertionError as error:
        if env is not None:  # one of the environment's or the policy's own: its traceback is of use
            raise
        return _fail(error)
    return 0


def _seed_generators(seed: int) -> None:
    """Seed the global generators, which policies draw from; of the frameworks, those that are loaded."""
    import random

    import numpy as np

    random.seed(seed)
    np.random.seed(seed % 2**32)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)


COMMANDS = {
    "test_policy": Command("play a saved policy and show a table", _add_test_policy_arguments, _test_policy),
    "plot": Command("draw learning curves of runs", add_plot_arguments, plot),
    "compare": Command("compare groups of seeds", add_compare_arguments, compare),
    "relaunch": Command("run it once more, with other settings", add_relaunch_arguments, relaunch),
    "show": Command("print what a run folder is", add_folder_argument, show),
    "verify": Command("compare files with the checkpoints' records", add_folder_argument, verify),
}


def main(words: Sequence[str] | None = None) -> int:
    """Run a command and return the exit status: 2 for a command line that is none, 1 for what went wrong.

    Args:
        words: the command line without the program; None: this process's.
    """
    parser = argparse.ArgumentParser(prog="python -m spinstat.run", description="Work with runs.")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, command in COMMANDS.items():
        own = commands.add_parser(name, help=command.summary, description=f"{command.summary.capitalize()}.")
        command.add_arguments(own)
    args = parser.parse_args(words)
    return COMMANDS[args.command].run(args)


def _fail(error: Exception) -> int:
    note("\n".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())]))
    return 1


if __name__ == "__main__":
    sys.exit(main())
