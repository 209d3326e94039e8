"""What an epoch's rows cost. Run as `python -m benchmarks.logger [--quick]`.

log_tabular of 20 stored keys with min and max, then dump_tabular, in a process whose stdout is a file, beside
the original's way with the same values (benchmarks/lists.py).
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from . import common, machine
from .common import Report, Spread
from .lists import ListLogger
from .machine import ROOT

KEYS = [f"Quantity{i}" for i in range(20)]
VALUES = 100  # of each key in an epoch
ROW_FLOOR = 250.0  # microseconds

SOURCES = (
    "clock: of the wall",
    "original: a dict of lists, float32 statistics, the same table and file (benchmarks/lists.py)",
)


def time_rows(rounds: int) -> dict[str, list[float]]:
    """Microseconds an epoch's rows take, for spinstat and in the original's way. stdout must be a file."""
    from spinstat import EpochLogger

    values = common.rng().normal(10.0, 3.0, (len(KEYS), VALUES))
    epoch = [dict(zip(KEYS, column, strict=True)) for column in values.T.tolist()]
    with tempfile.TemporaryDirectory() as folder, open(Path(folder) / "rows.txt", "w") as file:
        with EpochLogger(output_dir=Path(folder) / "run") as logger:
            subjects: dict[str, Any] = {"spinstat": logger, "original": ListLogger(file)}

            def sample(name: str) -> float:
                subject = subjects[name]
                for values in epoch:
                    subject.store(**values)
                start = perf_counter()
                for key in KEYS:
                    subject.log_tabular(key, with_min_and_max=True)
                subject.dump_tabular()
                return (perf_counter() - start) * 1e6

            times = common.interleave({name: partial(sample, name) for name in subjects}, rounds)
        check_rows(Path(folder) / "run" / "progress.txt", values, rounds + 1)
        check_rows(Path(folder) / "rows.txt", values, rounds + 1)
    return times


def check_rows(path: Path, values: np.ndarray[Any, Any], rows: int) -> None:
    """Raises AssertionError unless a file has that many rows, and they are right to float32."""
    header, *lines = path.read_text().splitlines()
    columns = header.split("\t")
    if len(lines) != rows:
        raise AssertionError(f"{path.name} has {len(lines)} rows, not {rows}")
    row = dict(zip(columns, map(float, lines[-1].split("\t")), strict=True))
    for key, of_key in zip(KEYS, values, strict=True):
        wanted = [of_key.mean(), of_key.std(), of_key.min(), of_key.max()]
        got = [row[name + key] for name in ("Average", "Std", "Min", "Max")]
        if not np.allclose(got, wanted, rtol=1e-5):
            raise AssertionError(f"{path.name}, {key}: {got}, not {wanted}")


def rows_in_process(rounds: int) -> dict[str, list[float]]:
    """`time_rows` in a fresh process whose stdout is a file."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "times.json"
        with open(Path(folder) / "stdout.txt", "w") as stdout:
            subprocess.run(
                [sys.executable, "-m", "benchmarks.logger", str(rounds), str(result)],
                cwd=ROOT, stdout=stdout, check=True,
            )
        found: dict[str, list[float]] = json.loads(result.read_text())
        return found


def main() -> None:
    """Prints all figures of `logger`."""
    quick = common.quick_flag(__doc__)
    machine.settle()
    processes, rounds = (2, 50) if quick else (5, 300)
    common.header(
        "logger: what a row costs",
        sources=SOURCES,
        sizes=(
            f"{len(KEYS)} keys of {VALUES} values with min and max ({4 * len(KEYS)} columns); "
            f"{processes} processes, {rounds} rows each",
        ),
    )
    report = Report()
    report.section("Microseconds a row")
    found = [rows_in_process(rounds) for _ in range(processes)]
    ours, theirs = (
        Spread.of([statistics.median(times[name]) for times in found]) for name in ("spinstat", "original")
    )
    report.at_most("log_tabular of 20 keys and dump_tabular", ours, ROW_FLOOR, " us", 0)
    report.figure("the original's way", theirs.text(" us", 0))
    gain = Spread.of([common.ratio(times["original"], times["spinstat"]).median for times in found])
    report.figure("times as fast", gain.text("x", 1))
    report.close()


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1].isdigit():
        Path(sys.argv[2]).write_text(json.dumps(time_rows(int(sys.argv[1]))))
    else:
        main()
