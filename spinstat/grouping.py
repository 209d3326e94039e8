"""Which runs a command is about, and the group of each: what the plotter and the comparison share."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

import numpy as np

from .parsing import Column
from .reading import (
    PERFORMANCE,
    PERFORMANCE_COLUMNS,
    UNNAMED,
    Read,
    Run,
    match_folders,
    no_runs,
    read_run,
    runs_in,
)
from .stderr import note

ROW = "Row"  # the x of runs that have none of these
X_COLUMNS = ("TotalEnvInteracts", "TotalEnvSteps", "time/total_timesteps", "Epoch", "Train/Epoch",
             "time/iterations")

Names = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
Tell = Callable[[str], object]


class Member(NamedTuple):
    """A run and the name of its group."""

    group: str
    run: Run


def names_of(names: Names | None) -> list[str] | None:
    """Names as a list: a path or a single string stands for itself."""
    if names is None:
        return None
    several = [names] if isinstance(names, (str, os.PathLike)) else names
    return [os.fspath(name) for name in several]


def find_folders(
    paths: Sequence[str], select: Sequence[str] | None, exclude: Sequence[str] | None
) -> list[str]:
    """The folders that the plotter's paths stand for, less those that select and exclude leave out.

    Raises:
        ValueError: no path is given, or all folders are left out.
        FileNotFoundError: nothing has such a name.
    """
    if not paths:
        raise ValueError("no folder is given: name at least one")
    folders = [folder for path in paths for folder in match_folders(path)]
    chosen = [
        folder for folder in folders
        if all(part in folder for part in select or ()) and not any(part in folder for part in exclude or ())
    ]
    if not chosen:
        raise ValueError(f"select and exclude leave no folder of: {', '.join(folders)}")
    return chosen


def check_legend(legend: Sequence[str] | None, folders: Sequence[str]) -> None:
    """Raise ValueError where there is not one name for each folder."""
    if legend and len(legend) != len(folders):
        found = ", ".join(folders) or "none"
        raise ValueError(f"legend: {len(legend)} names for {len(folders)} folders; the folders are: {found}")


def find_members(
    folders: Sequence[str],
    legend: Sequence[str] | None,
    count: bool,
    columns: Collection[str],
    read: Read = read_run,
    tell: Tell = note,
    *,
    keep_empty: bool = False,
) -> list[Member]:
    """The runs in some folders, and their groups.

    Args:
        folders: where to search, as `find_folders` gives them.
        legend: a name for each of them; None: the exp_name of each run.
        count: a group for each run.
        columns: those to read.
        read: reads a run.
        tell: is told what was searched, and what is left out.
        keep_empty: give runs without rows, too, for the caller to tell of them.

    Raises:
        ValueError: there is not one name in `legend` for each folder.
        FileNotFoundError: there is no run, or none has a row.
    """
    check_legend(legend, folders)
    tell("\n".join(["Runs from:", *(f"  {folder}" for folder in folders)]))
    members: list[Member] = []
    unnamed = set()
    seen = set()
    found = 0
    for place, folder in enumerate(folders):
        for run in runs_in(folder, columns, read):
            found += 1
            for line in run.skipped:
                tell(f"{run.file}: {line}")
            if not len(run) and not keep_empty:
                tell(f"{run.file}: no rows: skipped")
                continue
            group = legend[place] if legend else run.exp_name
            if not group:
                unnamed.add(folder)
            group = group or UNNAMED
            if (group, os.path.realpath(run.file)) in seen:
                tell(f"{run.file}: found before: counted once")
                continue
            seen.add((group, os.path.realpath(run.file)))
            members.append(Member(f"{group}-{len(members)}" if count else group, run))
    if not found:
        raise no_runs(folders)
    if not any(len(member.run) for member in members):
        raise FileNotFoundError(f"no run has a row yet; searched: {', '.join(folders)}")
    if len(unnamed) > 1 and not count:
        what = f"Runs without exp_name in {len(unnamed)} folders"
        tell(f"{what} are one group, {UNNAMED!r}; legend tells them apart")
    return members


def common_x(runs: Sequence[Run]) -> str:
    """The first of the columns that count steps which all runs have, else ROW."""
    return next((name for name in X_COLUMNS if all(name in run for run in runs)), ROW)


def x_of(run: Run, name: str) -> Column:
    """The column `name` of a run; of ROW, where it has none of this name, the numbers of its rows."""
    return np.arange(len(run)) if name == ROW and ROW not in run else numbers_of(run, name)


def numbers_of(run: Run, name: str) -> Column:
    """A column of numbers.

    Raises:
        ValueError: it holds text.
        KeyError: there is none.
    """
    column = run[name]
    if column.dtype == object:
        raise ValueError(f"the column {name!r} of {run.file} holds text, not numbers")
    return column


def no_column(name: str, members: Sequence[Member], beside: str | None = None) -> str:
    """What to tell where no run has a column, or none of those that have the column `beside`."""
    runs = "no run" if beside is None else f"no run with {_shown(beside)}"
    return f"{runs} has the column {_shown(name)}; there are: {columns_of(members)}"


def columns_of(members: Sequence[Member]) -> str:
    """The columns of some runs, for each kind of them: those that have the same columns are of one kind."""
    kinds: dict[frozenset[str], list[Run]] = {}
    for _, run in members:
        if run.names:
            kinds.setdefault(frozenset(run.names), []).append(run)
    if len(kinds) < 2:
        return "".join(", ".join(runs[0].names) for runs in kinds.values())
    return "; ".join(f"{', '.join(runs[0].names)} ({_first_of(runs)})" for runs in kinds.values())


def _shown(column: str) -> str:
    return f"{column} ({' or '.join(PERFORMANCE_COLUMNS)})" if column == PERFORMANCE else repr(column)


def _first_of(runs: Sequence[Run]) -> str:
    return runs[0].file if len(runs) == 1 else f"{runs[0].file} and {len(runs) - 1} more"
