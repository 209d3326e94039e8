"""Spinning Up's functions of the plotter: runs as pandas DataFrames with the columns that tell them apart."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .curves import ESTIMATORS, aggregate, check_choice, points
from .drawing import add_legend, draw, import_matplotlib, label_x, plain_text
from .grouping import check_legend, find_folders, names_of
from .reading import PERFORMANCE, UNNAMED, runs_in
from .stderr import note
from .terminal import show

if TYPE_CHECKING:
    import pandas as pd

# How many runs get_datasets has met in this process, and how many of each condition: it numbers on, since
# what it gives is concatenated over calls.
_met = 0
_units: dict[str, int] = {}


def get_datasets(logdir: str, condition: str | None = None) -> list[pd.DataFrame]:
    """The runs in a folder, at any depth, as DataFrames.

    Each has the columns of its file and these: Unit, the number of the run among those of its condition;
    Condition1, the condition; Condition2, the same with the number of the run among all; Performance, which
    is AverageTestEpRet, else AverageEpRet, where there is one of them. Numbers go on over calls. Runs
    without rows are skipped with a note, but counted.

    Args:
        logdir: the folder; one that is not there gives an empty list.
        condition: name for all its runs, instead of the exp_name of each, or "exp".

    Raises:
        ImportError: pandas is not installed.

    Examples:
        >>> from spinstat.utils.plot import get_datasets
        >>> (frame,) = get_datasets("runs/ppo")
        >>> list(frame["Performance"]), frame["Condition1"][0]
        ([10.0, 20.0, 30.0], 'ppo')
    """
    global _met
    datasets = []
    for run in runs_in(logdir):
        if not os.path.isfile(os.path.join(run.folder, "config.json")):
            show("No file named config.json")
        group = condition or run.exp_name or UNNAMED
        number, unit = _met, _units.get(group, 0)
        _met, _units[group] = number + 1, unit + 1
        for line in run.skipped:
            note(f"{run.file}: {line}")
        if not len(run):
            note(f"{run.file}: no rows: skipped")
            continue
        frame = run.to_pandas()
        frame["Unit"] = unit
        frame["Condition1"] = group
        frame["Condition2"] = f"{group}-{number}"
        column = run.column_of(PERFORMANCE)
        if column is not None:
            frame[PERFORMANCE] = run[column]
        datasets.append(frame)
    return datasets


def get_all_datasets(
    all_logdirs: str | Sequence[str],
    legend: str | Sequence[str] | None = None,
    select: str | Sequence[str] | None = None,
    exclude: str | Sequence[str] | None = None,
) -> list[pd.DataFrame]:
    """What get_datasets gives for several folders; the arguments are those of `spinstat.plot.make_plots`.

    Raises:
        FileNotFoundError: nothing has such a name.
        ValueError: there is not one name in `legend` for each folder.
        ImportError: pandas is not installed.

    Args:
        all_logdirs: folders, or the beginnings of their names.
        legend: a name for each folder found, as the condition of its runs.
        select: take only folders with all of these in their paths.
        exclude: take no folder with one of these in its path.

    Examples:
        >>> from spinstat.utils.plot import get_all_datasets
        >>> len(get_all_datasets(["runs/ppo", "runs/sac"], select="sac"))
        1
    """
    folders = find_folders(names_of(all_logdirs) or [], names_of(select), names_of(exclude))
    names = names_of(legend)
    check_legend(names, folders)
    note("\n".join(["Runs from:", *(f"  {folder}" for folder in folders)]))
    conditions: Iterable[str | None] = names or [None] * len(folders)
    return [
        frame
        for folder, condition in zip(folders, conditions, strict=True)
        for frame in get_datasets(folder, condition)
    ]


def plot_data(
    data: pd.DataFrame | Sequence[pd.DataFrame],
    xaxis: str = "Epoch",
    value: str = "AverageEpRet",
    condition: str = "Condition1",
    smooth: int = 1,
    *,
    estimator: str | Callable[..., Any] = "mean",
    band: str = "std",
    ax: Any = None,
    **kwargs: Any,
) -> None:
    """Draw what get_datasets gave, or a concatenation of it, which stays as it is.

    Args:
        data: DataFrames, or one; its index does not matter.
        xaxis, value: columns.
        condition: the column that tells the groups apart; Unit tells the runs of a group apart.
        smooth: rows to take the mean of, at each row of a run.
        estimator: "mean", "median", "max" or "min", or NumPy's function of this name.
        band: "std" or "bootstrap".
        ax: matplotlib's axes to draw in; None: pyplot's current ones.
        kwargs: for the lines, as of Axes.plot.

    Raises:
        KeyError: a column that no frame has; those that there are are listed.
        ValueError: no data, or an argument is none of its choices.
        ImportError: matplotlib is not installed.

    Examples:
        >>> from spinstat.utils.plot import get_all_datasets, plot_data
        >>> plot_data(get_all_datasets("runs/"), xaxis="Epoch", value="Performance")
    """
    name = estimator if isinstance(estimator, str) else getattr(estimator, "__name__", repr(estimator))
    name = {"amax": "max", "amin": "min"}.get(name, name)
    check_choice("estimator", name, ESTIMATORS)
    frames: list[Any] = [data] if hasattr(data, "columns") else list(data)
    groups: dict[str, list[Any]] = {}
    columns: dict[str, None] = {}
    for frame in frames:
        columns.update(dict.fromkeys(map(str, frame.columns)))
        if not {xaxis, value, condition, "Unit"} <= set(frame.columns):
            continue
        for group, unit in dict.fromkeys(zip(frame[condition], frame["Unit"], strict=True)):
            here = ((frame[condition] == group) & (frame["Unit"] == unit)).to_numpy()
            x, y = (np.asarray(frame[column], np.float64)[here] for column in (xaxis, value))
            groups.setdefault(str(group), []).append(points(x, y, smooth))
    if not groups:
        missing = [column for column in (xaxis, value, condition, "Unit") if column not in columns]
        if not columns or not missing:
            raise ValueError("no data to draw: no rows, or no frame with all the columns")
        raise KeyError(f"no column {', '.join(map(repr, missing))}; there are: {', '.join(columns)}")
    import_matplotlib()
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.gca()
    draw(ax, {group: aggregate(runs, name, band) for group, runs in groups.items()}, **kwargs)
    label_x(ax, xaxis)
    ax.set_ylabel(plain_text(value))
    add_legend([ax])
