"""The plotter: learning curves of runs, grouped by experiment, with a band over seeds.

    from spinstat.plot import make_plots, read_run, read_runs

    run = read_run("runs/ppo")
    run["AverageEpRet"], run.config["seed"], run.skipped
    make_plots(["data/ppo", "data/sac"], values=["Performance", "LossV"], out="curves.svg")
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .curves import BANDS, ESTIMATORS, Curve, aggregate, check_choice, points
from .drawing import (
    add_legend,
    add_panels,
    check_out,
    default_name,
    draw,
    has_window,
    import_matplotlib,
    label_x,
    new_figure,
    plain_text,
    save,
)
from .grouping import (
    X_COLUMNS,
    Member,
    Names,
    Tell,
    common_x,
    find_folders,
    find_members,
    names_of,
    no_column,
    numbers_of,
    x_of,
)
from .reading import PERFORMANCE, PERFORMANCE_COLUMNS, Read, Run, read_run, read_runs
from .stderr import note
from .terminal import show

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Run", "make_plots", "read_run", "read_runs"]

BAND_TEXTS = {"std": "one standard deviation", "bootstrap": "95 % bootstrap interval"}
FONT_SIZE = 7.0  # points, times font_scale

Panels = Mapping[str, tuple[str, dict[str, Curve]]]  # of each value the name of x, and a curve of each group


@dataclass(frozen=True)
class Request:
    """What is to be drawn: the arguments of make_plots, checked."""

    logdirs: list[str]
    legend: list[str] | None
    xaxis: str | None
    values: list[str]
    count: bool
    font_scale: float
    smooth: int
    select: list[str] | None
    exclude: list[str] | None
    estimator: str
    band: str
    out: str | None


def request(
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
) -> Request:
    """The arguments of make_plots as a Request.

    Raises:
        ValueError: one is none of its choices.
        FileNotFoundError: no folder for `out`.
    """
    check_choice("estimator", estimator, ESTIMATORS)
    check_choice("band", band, BANDS)
    if smooth < 1:
        raise ValueError(f"smooth={smooth}: a window has at least 1 row")
    wanted = list(dict.fromkeys(names_of(values) or [PERFORMANCE]))
    return Request(
        names_of(all_logdirs) or [], names_of(legend), xaxis, wanted, count, font_scale, smooth,
        names_of(select), names_of(exclude), estimator, band, None if out is None else check_out(out),
    )


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

    Examples:
        >>> from spinstat.plot import make_plots
        >>> figure = make_plots(["runs/ppo", "runs/sac"], values=["Performance"], out="curves.svg")
        curves.svg
        >>> len(figure.axes[0].lines)
        2
    """
    return draw_once(request(
        all_logdirs, legend, xaxis, values, count, font_scale, smooth, select, exclude, estimator,
        band=band, out=out,
    ))  # fmt: skip


def draw_once(wanted: Request) -> Figure:
    """What make_plots does with its arguments."""
    members = members_of(wanted)
    panels = panels_of(wanted, members)
    import_matplotlib()
    window = wanted.out is None and has_window()
    figure = new_figure(len(panels), window)
    fill(figure, wanted, members, panels)
    if window:
        import matplotlib.pyplot as plt

        plt.show()
    else:
        path = wanted.out or default_name(wanted.values)
        save(figure, path)
        show(path)
    return figure


def members_of(wanted: Request, read: Read = read_run, tell: Tell = note) -> list[Member]:
    """The runs that a request is about. Raises what find_folders and find_members do."""
    x = [wanted.xaxis] if wanted.xaxis else X_COLUMNS
    columns = {*wanted.values, *PERFORMANCE_COLUMNS, *x}
    folders = find_folders(wanted.logdirs, wanted.select, wanted.exclude)
    return find_members(folders, wanted.legend, wanted.count, columns, read, tell)


def panels_of(wanted: Request, members: Sequence[Member], tell: Tell = note) -> Panels:
    """The curves of each value. Raises ValueError where no run has a column, or it holds text."""
    return {value: _curves(wanted, members, value, tell) for value in wanted.values}


def fill(figure: Figure, wanted: Request, members: Sequence[Member], panels: Panels) -> None:
    """Draw all panels into a figure, instead of what it had."""
    groups = list(dict.fromkeys(member.group for member in members))
    with import_matplotlib().rc_context({"font.size": FONT_SIZE * wanted.font_scale}):
        all_axes = add_panels(figure, len(panels))
        for axes, (value, (x, curves)) in zip(all_axes, panels.items(), strict=True):
            draw(axes, curves, groups)
            label_x(axes, x)
            axes.set_ylabel(plain_text(_y_label(value, members)))
        add_legend(all_axes)
        title = _title(wanted, panels)
        if title:
            figure.suptitle(title, fontsize="small")


def _curves(
    wanted: Request, members: Sequence[Member], value: str, tell: Tell
) -> tuple[str, dict[str, Curve]]:
    """The name of x, and the curve of each group."""
    having = [member for member in members if member.run.column_of(value)]
    if not having:
        raise ValueError(no_column(value, members))
    x = wanted.xaxis or common_x([run for _, run in having])
    if wanted.xaxis:
        with_x = [member for member in having if x in member.run]
        if not with_x:
            raise ValueError(no_column(x, members, beside=value))
        having = with_x
    for _, run in members:
        if not any(run is other for _, other in having):
            missing = value if not run.column_of(value) else x
            tell(f"{run.file}: no column {missing!r}: not drawn")
    groups: dict[str, list[tuple[Any, Any]]] = {}
    for group, run in having:
        curve = points(x_of(run, x), numbers_of(run, value), wanted.smooth)
        groups.setdefault(group, []).append(curve)
    return x, {group: aggregate(runs, wanted.estimator, wanted.band) for group, runs in groups.items()}


def _y_label(value: str, members: Sequence[Member]) -> str:
    columns = {run.column_of(value) for _, run in members} - {None, value}
    return f"{value} ({' or '.join(sorted(map(str, columns)))})" if columns else value


def _title(wanted: Request, panels: Panels) -> str:
    """What line and band are."""
    counts = [curve.runs.max(initial=0) for _, curves in panels.values() for curve in curves.values()]
    least, most = min(counts), max(counts)
    parts = []
    if most > 1:
        runs = f"{most} runs" if least == most else f"{least} to {most} runs"
        parts.append(f"{wanted.estimator} of {runs}")
        if wanted.estimator in ("mean", "median"):
            parts.append(f"band: {BAND_TEXTS[wanted.band]}")
    if wanted.smooth > 1:
        parts.append(f"smoothed over {wanted.smooth} rows")
    return ", ".join(parts)
