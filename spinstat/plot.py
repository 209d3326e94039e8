"""The plotter: learning curves of runs, grouped by experiment, with a band over seeds.

    from spinstat.plot import make_plots, read_run, read_runs

    run = read_run("runs/ppo")
    run["AverageEpRet"], run.config["seed"], run.skipped
    make_plots(["data/ppo", "data/sac"], values=["Performance", "LossV"], out="curves.svg")
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .curves import BANDS, ESTIMATORS, Curve, aggregate, check_choice, points
from .drawing import (
    add_legend,
    check_out,
    default_name,
    draw,
    has_window,
    import_matplotlib,
    label_x,
    new_figure,
    plain_text,
)
from .reading import (
    PERFORMANCE,
    PERFORMANCE_COLUMNS,
    Run,
    match_folders,
    no_runs,
    read_run,
    read_runs,
    runs_in,
)
from .stderr import note
from .terminal import show

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Run", "make_plots", "read_run", "read_runs"]

ROW = "Row"  # the x of runs that have none of these
X_COLUMNS = ("TotalEnvInteracts", "TotalEnvSteps", "time/total_timesteps", "Epoch", "Train/Epoch",
             "time/iterations")
BAND_TEXTS = {"std": "one standard deviation", "bootstrap": "95 % bootstrap interval"}
FONT_SIZE = 7.0  # points, times font_scale

Names = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


class _Member(NamedTuple):
    """A run and the name of its group."""

    group: str
    run: Run


def make_plots(
    all_logdirs: Names,
    legend: Names | None = None,
    xaxis: str | None = None,
    values: Names | None = None,
    count: bool = False,
    font_scale: float = 1.5,
    smooth: int = 1,
    select: Names | None = None,
    exclude: Names | None = None,
    estimator: str = "mean",
    *,
    band: str = "std",
    out: str | os.PathLike[str] | None = None,
) -> Figure:
    """Draw a panel for each value: the estimate over the runs of each experiment, and a band.

    The figure is shown where there is a display. Where there is none, it becomes the file plot_<values>.png,
    whose name is printed. Nothing is kept between calls. What is skipped is told on stderr.

    Args:
        all_logdirs: folders, searched at any depth, or parts of their names: "data/ppo" stands for all
            folders in data with ppo in their names, "data/ppo/" for that one.
        legend: a name for each folder found, instead of the runs' exp_name.
        xaxis: a column; None: the first of TotalEnvInteracts, TotalEnvSteps, time/total_timesteps, Epoch,
            Train/Epoch, time/iterations that all runs have, else the number of the row.
        values: one column or several; None: Performance, which is AverageTestEpRet, else AverageEpRet.
        count: a line for each run, no groups.
        font_scale: size of letters; 1.5 is usual.
        smooth: rows to take the mean of, at each row: see `spinstat.curves.smooth`.
        select: take only folders with all of these in their paths.
        exclude: take no folder with one of these in its path.
        estimator: "mean", "median", "max" or "min" over the runs of a group; the last two without a band.
        band: "std", or "bootstrap" for a 95 % interval; only where two runs or more are drawn.
        out: the image to write instead of showing the figure: .png, .svg or .pdf.

    Returns:
        The figure.

    Raises:
        FileNotFoundError: nothing has such a name, there is no run or no row, or no folder for `out`.
        ValueError: no run has the column (those that they have are listed), it holds text, or an argument is
            none of its choices.
        ImportError: matplotlib is not installed.
    """
    wanted = names_of(values) or [PERFORMANCE]
    check_choice("estimator", estimator, ESTIMATORS)
    check_choice("band", band, BANDS)
    if smooth < 1:
        raise ValueError(f"smooth={smooth}: a window has at least 1 row")
    path = None if out is None else check_out(out)
    columns = {*wanted, *PERFORMANCE_COLUMNS, *([xaxis] if xaxis else X_COLUMNS)}
    folders = find_folders(names_of(all_logdirs) or [], names_of(select), names_of(exclude))
    members = _members(folders, names_of(legend), count, columns)
    panels = {
        value: _curves(members, xaxis, value, smooth, estimator, band) for value in dict.fromkeys(wanted)
    }
    groups = list(dict.fromkeys(member.group for member in members))

    matplotlib = import_matplotlib()
    window = path is None and has_window()
    with matplotlib.rc_context({"font.size": FONT_SIZE * font_scale}):
        figure, all_axes = new_figure(len(panels), window)
        for axes, (value, (x, curves)) in zip(all_axes, panels.items(), strict=True):
            draw(axes, curves, groups)
            label_x(axes, x)
            axes.set_ylabel(plain_text(_y_label(value, members)))
        add_legend(all_axes)
        title = _title(panels.values(), estimator, band, smooth)
        if title:
            figure.suptitle(title, fontsize="small")
        if window:
            import matplotlib.pyplot as plt

            plt.show()
        else:
            path = path or default_name(list(panels))
            figure.savefig(path, dpi=150)
            show(path)
    return figure


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


def _members(
    folders: Sequence[str], legend: Sequence[str] | None, count: bool, columns: set[str]
) -> list[_Member]:
    """The runs with rows in some folders, with notes on those that have none."""
    check_legend(legend, folders)
    note("\n".join(["Plotting from:", *(f"  {folder}" for folder in folders)]))
    members: list[_Member] = []
    unnamed = set()
    seen = set()
    found = 0
    for place, folder in enumerate(folders):
        for run in runs_in(folder, columns):
            found += 1
            for line in run.skipped:
                note(f"{run.file}: {line}")
            if not len(run):
                note(f"{run.file}: no rows: skipped")
                continue
            group = legend[place] if legend else run.exp_name
            if not group:
                unnamed.add(folder)
            group = group or "exp"
            if (group, os.path.realpath(run.file)) in seen:
                note(f"{run.file}: found before: counted once")
                continue
            seen.add((group, os.path.realpath(run.file)))
            members.append(_Member(f"{group}-{len(members)}" if count else group, run))
    if not found:
        raise no_runs(folders)
    if not members:
        raise FileNotFoundError(f"no run has a row yet; searched: {', '.join(folders)}")
    if len(unnamed) > 1 and not count:
        note(f"Runs without exp_name in {len(unnamed)} folders are one group, 'exp'; legend tells them apart")
    return members


def _curves(
    members: Sequence[_Member], xaxis: str | None, value: str, smooth: int, estimator: str, band: str
) -> tuple[str, dict[str, Curve]]:
    """The name of x, and the curve of each group."""
    having = [member for member in members if member.run.column_of(value)]
    if not having:
        raise ValueError(_no_column(value, members))
    x = xaxis or next((name for name in X_COLUMNS if all(name in run for _, run in having)), ROW)
    if xaxis:
        with_x = [member for member in having if xaxis in member.run]
        if not with_x:
            raise ValueError(_no_column(xaxis, having))
        having = with_x
    for _, run in members:
        if not any(run is other for _, other in having):
            missing = value if not run.column_of(value) else x
            note(f"{run.file}: no column {missing!r}: not drawn")
    groups: dict[str, list[tuple[Any, Any]]] = {}
    for group, run in having:
        xs = range(len(run)) if x == ROW and ROW not in run else _numbers(run, x)
        groups.setdefault(group, []).append(points(xs, _numbers(run, value), smooth))
    return x, {group: aggregate(runs, estimator, band) for group, runs in groups.items()}


def _numbers(run: Run, name: str) -> Any:
    column = run[name]
    if column.dtype == object:
        raise ValueError(f"the column {name!r} of {run.file} holds text, which cannot be drawn")
    return column


def _no_column(name: str, members: Sequence[_Member]) -> str:
    names = ", ".join(dict.fromkeys(column for _, run in members for column in run.names))
    what = f"{name} ({' or '.join(PERFORMANCE_COLUMNS)})" if name == PERFORMANCE else repr(name)
    return f"no run has the column {what}; there are: {names}"


def _y_label(value: str, members: Sequence[_Member]) -> str:
    columns = {run.column_of(value) for _, run in members} - {None, value}
    return f"{value} ({' or '.join(sorted(map(str, columns)))})" if columns else value


def _title(panels: Any, estimator: str, band: str, smooth: int) -> str:
    """What line and band are."""
    counts = [curve.runs.max(initial=0) for _, curves in panels for curve in curves.values()]
    least, most = min(counts), max(counts)
    parts = []
    if most > 1:
        runs = f"{most} runs" if least == most else f"{least} to {most} runs"
        parts.append(f"{estimator} of {runs}")
        if estimator in ("mean", "median"):
            parts.append(f"band: {BAND_TEXTS[band]}")
    if smooth > 1:
        parts.append(f"smoothed over {smooth} rows")
    return ", ".join(parts)
