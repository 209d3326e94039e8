"""Curves as matplotlib shows them: one panel a value, a line with its band for each group of runs."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from .curves import Curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito 2008, told apart with every kind of colour blindness; without their yellow, pale on white.
COLORS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES: Final = ("-", "--", ":", "-.")  # the next one for each round of the colours
FORMATS: Final = (".png", ".svg", ".pdf")
X_LABELS: Final = {
    "TotalEnvInteracts": "Environment interactions",
    "TotalEnvSteps": "Environment steps",
    "time/total_timesteps": "Environment steps",
    "Time": "Time (seconds)",
    "Time/Total": "Time (seconds)",
    "time/time_elapsed": "Time (seconds)",
}
SHORT_LEGEND: Final = 6  # entries, that is; and
SHORT_NAME: Final = 24  # characters: what is longer goes beside the panels
LARGE: Final = 5000  # numbers on x from here on are written as 10k, 2M
WITHOUT_WINDOW: Final = {"agg", "cairo", "pdf", "pgf", "ps", "svg", "template"}
COLUMNS: Final = 3  # panels beside each other
PANEL: Final = (5.6, 4.0)  # inches


def import_matplotlib() -> Any:
    """The package.

    Raises:
        ImportError: it is not installed; the message says how to.
    """
    try:
        import matplotlib
    except ImportError as error:
        message = f"plots need matplotlib: pip install 'spinstat[plot]' ({error})"
        raise ImportError(message, name="matplotlib") from error
    return matplotlib


def has_window() -> bool:
    """Whether matplotlib can show figures here: in a window, or in a notebook."""
    return str(import_matplotlib().get_backend()).lower() not in WITHOUT_WINDOW


def check_out(out: str | os.PathLike[str]) -> str:
    """The path of an image to write.

    Raises:
        ValueError: the ending is none of an image's.
        FileNotFoundError: its folder is not there.
    """
    path = os.fspath(out)
    if not path.lower().endswith(FORMATS):
        raise ValueError(f"{path}: the name of an image ends in {', '.join(FORMATS)}")
    folder = os.path.dirname(path)
    if folder and not os.path.isdir(folder):
        raise FileNotFoundError(f"{path}: the folder {folder} is not there")
    return path


def new_figure(panels: int, window: bool) -> Figure:
    """A figure with room for so many panels; pyplot's where it has a window."""
    columns = min(panels, COLUMNS)
    rows = -(-panels // columns)
    size = (PANEL[0] * columns, PANEL[1] * rows)
    if window:
        import matplotlib.pyplot as plt

        return plt.figure(figsize=size, layout="constrained")
    from matplotlib.figure import Figure

    return Figure(figsize=size, layout="constrained")


def add_panels(figure: Figure, panels: int) -> list[Axes]:
    """So many empty panels in a figure, in rows of COLUMNS; what it had is gone."""
    figure.clear()
    columns = min(panels, COLUMNS)
    return [figure.add_subplot(-(-panels // columns), columns, number + 1) for number in range(panels)]


def save(figure: Figure, path: str) -> None:
    """Write a figure to an image: wholly, or not at all.

    Whoever looks at the file while it is written sees the one that was there before.

    Raises:
        OSError: it cannot be written; nothing is left of it.
    """
    ending = os.path.splitext(path)[1]
    temporary = f"{path}.{os.getpid()}.part"
    try:
        figure.savefig(temporary, format=ending[1:].lower(), dpi=150)
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise


def draw(axes: Axes, curves: Mapping[str, Curve], names: Sequence[str] | None = None, **kwargs: Any) -> None:
    """Draw a line for each group, and its band where there is one.

    Args:
        axes: where to.
        curves: by the name of the group.
        names: of all groups that a figure has, so that each has its colour in all panels; None: these.
        kwargs: for the lines, as of matplotlib's Axes.plot.
    """
    places = {name: place for place, name in enumerate(curves if names is None else names)}
    for name, curve in curves.items():
        number = places[name]
        color = COLORS[number % len(COLORS)]
        dashes = DASHES[number // len(COLORS) % len(DASHES)]
        style: dict[str, Any] = {"color": color, "linestyle": dashes}
        alone = _alone(curve.line)
        if alone:
            style.update(marker="o", markersize=4, markevery=alone)
        (line,) = axes.plot(curve.x, curve.line, label=name, **{**style, **kwargs})
        band = np.isfinite(curve.low) & np.isfinite(curve.high)
        if band.any():
            axes.fill_between(
                curve.x, curve.low, curve.high, where=band.tolist(),
                color=line.get_color(), alpha=0.2, linewidth=0,
            )
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def _alone(line: Any) -> list[int]:
    """Where a value has none beside it, so that no line leads there and only a mark can show it."""
    there = np.isfinite(line)
    beside = np.zeros(len(there), bool)
    beside[1:] |= there[:-1]
    beside[:-1] |= there[1:]
    return [int(at) for at in np.flatnonzero(there & ~beside)]


def label_x(axes: Axes, xaxis: str) -> None:
    """Name the x axis, and write large numbers short."""
    from matplotlib.ticker import EngFormatter

    axes.set_xlabel(plain_text(X_LABELS.get(xaxis, xaxis)))
    ends = [abs(end) for line in axes.get_lines() for end in _ends(line.get_xdata())]
    if max(ends, default=0.0) > LARGE:
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))


def _ends(x: Any) -> list[float]:
    return [float(np.min(x)), float(np.max(x))] if len(x) else []


def add_legend(panels: Sequence[Axes]) -> None:
    """Add the names of all panels' lines to the last of the first row, beside it if many or long."""
    axes = panels[min(len(panels), COLUMNS) - 1]
    lines = {str(line.get_label()): line for panel in panels for line in panel.get_lines()}
    names = list(lines)
    # Given one by one, since matplotlib by itself leaves out names that begin with "_".
    handles: dict[str, Any] = {
        "handles": list(lines.values()), "labels": [plain_text(name) for name in names]
    }
    if is_long(names):
        beside = {"bbox_to_anchor": (1.02, 1.0), "borderaxespad": 0.0, "fontsize": "small"}
        axes.legend(loc="upper left", **beside, **handles)
    else:
        axes.legend(loc="best", **handles)


def is_long(names: Sequence[str]) -> bool:
    """Whether a legend would cover the curves."""
    return len(names) > SHORT_LEGEND or any(len(name) > SHORT_NAME for name in names)


def plain_text(text: str) -> str:
    """Text that matplotlib shows as it is: a pair of dollars would make it a formula."""
    return text.replace("$", r"\$")


def default_name(values: Sequence[str]) -> str:
    """The name of an image of some columns, where none was given."""
    words = "_".join(re.sub(r"[^\w.-]+", "-", value) for value in values)
    return f"plot_{words[:80]}.png"
