"""The command plot, with the flags of Spinning Up's."""

from __future__ import annotations

import argparse

from .curves import BANDS, ESTIMATORS
from .plot import draw_once, request
from .stderr import note
from .watching import SECONDS, watch


def add_plot_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument(
        "logdir", nargs="+", metavar="LOGDIR",
        help="a folder of runs, at any depth, or a part of its name; with a / at its end: that very folder",
    )
    parser.add_argument("--legend", "-l", nargs="*", metavar="NAME", help="a name for each folder found")
    parser.add_argument(
        "--xaxis", "-x", metavar="COLUMN", help="TotalEnvInteracts, or what the runs have in its place"
    )
    parser.add_argument(
        "--value", "-y", nargs="*", metavar="COLUMN",
        help="a panel each; Performance: AverageTestEpRet, else AverageEpRet (Performance)",
    )
    parser.add_argument("--count", action="store_true", help="a line for each run, no groups")
    parser.add_argument("--smooth", "-s", type=int, default=1, metavar="ROWS", help="mean of ROWS rows (1)")
    parser.add_argument("--select", nargs="*", metavar="PART", help="only folders with all of these in them")
    parser.add_argument("--exclude", nargs="*", metavar="PART", help="no folder with one of these in it")
    parser.add_argument("--est", default="mean", choices=ESTIMATORS, help="of a group's runs (mean)")
    parser.add_argument("--band", default="std", choices=BANDS, help="around mean and median (std)")
    parser.add_argument(
        "--out", metavar="FILE", help="write this image (.png, .svg or .pdf) and open no window"
    )
    parser.add_argument(
        "--watch", nargs="?", type=float, const=SECONDS, metavar="SECONDS",
        help=f"draw again whenever a run has written, looking every SECONDS ({SECONDS:g}), until Ctrl-C",
    )


def plot(args: argparse.Namespace) -> int:
    """Draw the runs and return the exit status."""
    try:
        wanted = request(
            args.logdir, args.legend, args.xaxis, args.value, args.count, smooth=args.smooth,
            select=args.select, exclude=args.exclude, estimator=args.est, band=args.band, out=args.out,
        )
        if args.watch is None:
            draw_once(wanted)
        else:
            watch(wanted, args.watch)
    except (ValueError, OSError, ImportError) as error:
        note(f"{type(error).__name__}: {error}")
        return 1
    return 0
