"""Run folders to be drawn, and what a figure's panels hold, for the tests of the plotter."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

Rows = dict[str, Sequence[float]]


def make_run(folder: Path, rows: Rows, exp_name: str | None = None) -> Path:
    """A run folder with these columns."""
    folder.mkdir(parents=True)
    lines = ["\t".join(rows), *("\t".join(map(str, row)) for row in zip(*rows.values(), strict=True))]
    (folder / "progress.txt").write_text("".join(f"{line}\n" for line in lines))
    if exp_name is not None:
        (folder / "config.json").write_text(json.dumps({"exp_name": exp_name}))
    return folder


def lines_of(axes: Any) -> dict[str, tuple[list[float], list[float]]]:
    """x and y of each line, by its name."""
    return {
        str(line.get_label()): (list(map(float, line.get_xdata())), list(map(float, line.get_ydata())))
        for line in axes.get_lines()
    }


def bands_of(axes: Any) -> list[dict[float, tuple[float, float]]]:
    """The least and greatest y at each x of a corner, for each band."""
    bands = []
    for collection in axes.collections:
        corners: dict[float, list[float]] = {}
        for path in collection.get_paths():
            for x, y in path.vertices:
                corners.setdefault(float(x), []).append(float(y))
        bands.append({x: (min(ys), max(ys)) for x, ys in sorted(corners.items())})
    return bands


def seeds(folder: Path, exp_name: str, curves: Sequence[Sequence[float]]) -> Path:
    """A run for each curve of AverageEpRet, 100 interactions an epoch."""
    for seed, curve in enumerate(curves):
        epochs = np.arange(len(curve))
        rows = {"Epoch": epochs.tolist(), "AverageEpRet": list(curve),
                "TotalEnvInteracts": (100 * (epochs + 1)).tolist()}
        make_run(folder / f"{exp_name}_s{seed}", rows, exp_name)
    return folder
