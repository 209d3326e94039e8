"""What reading, drawing and comparing many runs costs. Run as `python -m benchmarks.plot [--quick]`.

Runs of ten groups are written as a logger leaves them, twelve columns wide, and drawn into a PNG file as
`python -m spinstat.run plot` does. matplotlib is imported before, and once it has drawn; what is drawn is
compared with the numbers that were written. Processor time of the process.
"""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from . import common, machine
from .common import Report, Spread

ROWS = 10_000
GROUPS = 10
FLOOR = 0.5, 0.025  # seconds for the figure, and for each run: 3 s with 100 of them
COLUMNS = (
    "Epoch", "AverageEpRet", "StdEpRet", "MaxEpRet", "MinEpRet", "EpLen", "AverageVVals", "TotalEnvInteracts",
    "LossPi", "LossV", "KL", "Time",
)  # fmt: skip
DRAWN = "AverageEpRet"
STEPS = 4000  # interactions an epoch

SOURCES = (
    "runs: progress.txt with floats of 17 digits, as spinstat and Spinning Up write them, and config.json;",
    "each seed's numbers are the same in all groups",
)


def texts(seeds: int) -> tuple[list[str], np.ndarray[Any, np.dtype[np.float64]]]:
    """A progress file for each seed, and the returns in it, shape (seeds, ROWS)."""
    rng = common.rng()
    files, returns = [], []
    for _ in range(seeds):
        table = np.cumsum(rng.normal(size=(ROWS, len(COLUMNS))), axis=0)
        returns.append(table[:, COLUMNS.index(DRAWN)].copy())
        lines = ["\t".join(COLUMNS)]
        for epoch, row in enumerate(table.tolist()):
            row[0], row[COLUMNS.index("TotalEnvInteracts")] = epoch, STEPS * (epoch + 1)
            lines.append("\t".join(map(str, row)))
        files.append("\n".join([*lines, ""]))
    return files, np.array(returns)


def write_runs(folder: Path, files: Sequence[str]) -> None:
    """A run for each group and seed."""
    for group in range(GROUPS):
        for seed, text in enumerate(files):
            run = folder / f"group{group}" / f"group{group}_s{seed}"
            run.mkdir(parents=True)
            (run / "progress.txt").write_text(text)
            (run / "config.json").write_text(json.dumps({"exp_name": f"group{group}", "seed": seed}))


def check(figure: Any, returns: np.ndarray[Any, np.dtype[np.float64]]) -> None:
    """Raises AssertionError unless each group's line is the mean of what was written."""
    (axes,) = figure.axes
    lines = axes.get_lines()
    assert len(lines) == GROUPS, f"{len(lines)} lines"
    for line in lines:
        assert np.array_equal(line.get_xdata(), STEPS * np.arange(1, ROWS + 1)), "x is not the interactions"
        assert np.allclose(line.get_ydata(), returns.mean(axis=0), rtol=1e-12, atol=1e-9), "not the mean"


def main() -> None:
    """Prints all figures of `plot`."""
    quick = common.quick_flag(__doc__)
    machine.settle()
    import matplotlib

    matplotlib.use("Agg")
    from spinstat.compare import compare_runs
    from spinstat.plot import make_plots
    from spinstat.reading import read_runs

    seeds, rounds = (2, 3) if quick else (10, 3)
    runs = GROUPS * seeds
    common.header(
        "plot: reading and drawing many runs",
        sources=SOURCES,
        sizes=(f"{runs} runs of {ROWS:,} rows in {GROUPS} groups; {rounds} rounds",),
        packages=("matplotlib",),
    )
    report = Report()
    with tempfile.TemporaryDirectory() as base:
        folder, image = Path(base, "runs"), Path(base, "plot.png")
        files, returns = texts(seeds)
        write_runs(folder, files)

        def plot(**options: Any) -> Any:
            return make_plots(f"{folder}/", out=image, **options)

        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            check(plot(), returns)
            times = common.interleave(
                {
                    "plot": common.timed(plot),
                    "bootstrap": common.timed(lambda: plot(band="bootstrap", smooth=11)),
                    "two columns": common.timed(lambda: read_runs(folder, [DRAWN, "TotalEnvInteracts"])),
                    "all columns": common.timed(lambda: read_runs(folder)),
                    "compare": common.timed(lambda: compare_runs(f"{folder}/")),
                },
                rounds,
            )
    found = {name: Spread.of(values) for name, values in times.items()}
    report.section(f"Seconds of processor time, {runs} runs of {ROWS:,} rows")
    floor = FLOOR[0] + FLOOR[1] * runs
    report.at_most("read and plot: mean and one standard deviation", found["plot"], floor, " s")
    report.figure("read and plot: bootstrap band, smoothed", found["bootstrap"].text(" s"))
    report.figure("read two columns", found["two columns"].text(" s"))
    report.figure("read all twelve columns", found["all columns"].text(" s"))
    report.figure("read and compare the groups", found["compare"].text(" s"))
    report.close()


if __name__ == "__main__":
    main()
