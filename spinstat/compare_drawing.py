"""A comparison as an image: a panel for each statistic, a point with its interval for each group."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .compare import Comparison, Group
from .compare_command import headline
from .drawing import COLORS, import_matplotlib, plain_text
from .intervals import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 3.2  # inches of a panel
ROW = 0.45  # inches of a group
FRAME = 1.5  # inches around the groups


def draw_comparison(found: Comparison) -> Figure:
    """Draw groups from top to bottom, in the colours that the plotter gives them.

    The panels show mean, median and interquartile mean with the values of the seeds as small dots, and,
    where there are two groups or more, the probability of improvement over the first. A group with one seed
    has a point and no interval; what is not finite is not drawn.

    Raises:
        ImportError: matplotlib is not installed.
    """
    matplotlib = import_matplotlib()
    from matplotlib.figure import Figure

    groups = list(found.groups.values())
    names = list(groups[0].estimates)
    panels = len(names) + (len(groups) > 1)
    with matplotlib.rc_context({"font.size": 9.0}):
        figure = Figure(figsize=(WIDTH * panels, FRAME + ROW * len(groups)), layout="constrained")
        all_axes = [figure.add_subplot(1, panels, number + 1) for number in range(panels)]
        for axes, name in zip(all_axes, names, strict=False):
            _draw_estimates(axes, groups, [group.estimates[name] for group in groups])
            axes.set_xlabel(name)
        if len(groups) > 1:
            _draw_improvement(all_axes[-1], groups)
            all_axes[-1].set_xlabel(plain_text(f"P(> {next(iter(found.groups))})"))
        for number, axes in enumerate(all_axes):
            axes.set_yticks(range(len(groups)), [plain_text(name) for name in found.groups])
            axes.set_ylim(len(groups) - 0.5, -0.5)
            axes.tick_params(axis="y", length=0, labelleft=number == 0)
            axes.grid(axis="x", alpha=0.3)
            axes.spines[["top", "right", "left"]].set_visible(False)
        figure.suptitle(plain_text(f"{headline(found)}; 95 % bootstrap intervals"), fontsize="small")
    return figure


def _draw_estimates(axes: Axes, groups: Sequence[Group], estimates: Sequence[Estimate]) -> None:
    for place, (group, one) in enumerate(zip(groups, estimates, strict=True)):
        values = [seed.value for seed in group.seeds if math.isfinite(seed.value)]
        axes.plot(values, [place] * len(values), "o", color=_color(place), alpha=0.35, markersize=3)
        _draw_one(axes, place, one)


def _draw_improvement(axes: Axes, groups: Sequence[Group]) -> None:
    axes.axvline(0.5, color="0.6", linestyle="--", linewidth=1)
    axes.set_xlim(-0.03, 1.03)
    for place, group in enumerate(groups):
        if group.improvement is not None:
            _draw_one(axes, place, group.improvement)


def _draw_one(axes: Axes, place: int, one: Estimate) -> None:
    if math.isfinite(one.low) and math.isfinite(one.high):
        line = axes.hlines(place, one.low, one.high, color=_color(place), linewidth=5, alpha=0.45)
        line.set_capstyle("butt")
    if math.isfinite(one.value):
        axes.plot([one.value], [place], "|", color=_color(place), markersize=14, markeredgewidth=2)


def _color(place: int) -> str:
    return COLORS[place % len(COLORS)]
