"""The whole life of an epoch, and the share of a simulation that logging takes.

Run as `python -m benchmarks.epoch [--quick]`. An epoch: a million values stored under ten keys, all ten
logged with min and max, the row dumped; in the original's way (benchmarks/lists.py) and by spinstat, turn by
turn in one process whose stdout is a file. The simulation: examples/fast_sim.py, epochs with and without
logging in turns.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter
from types import ModuleType
from typing import Any

import numpy as np

from . import calls, common, machine
from .common import Report, Spread
from .lists import ListLogger
from .machine import ROOT

COUNT = 1_000_000  # values in an epoch
SHARE_FLOOR = 3.0  # percent
RATE_FLOOR = 1.0  # million steps a second

SOURCES = (
    "clock: of the wall",
    "original: a dict of lists, float32 statistics, the same table and file (benchmarks/lists.py)",
    "simulation: examples/fast_sim.py, 1,024 CartPoles and a policy of 16 units; rows are part of logging",
)

Subject = Any  # what has store, log_tabular and dump_tabular


def store_ten(subject: Subject, values: list[list[float]]) -> None:
    """A call with ten keys for each row of values."""
    for a, b, c, d, e, f, g, h, i, j in values:
        subject.store(
            EpRet=a, EpLen=b, VVals=c, LossPi=d, LossV=e,
            KL=f, Entropy=g, ClipFrac=h, StopIter=i, DeltaLossPi=j,
        )  # fmt: skip


def store_one(subject: Subject, values: list[list[float]]) -> None:
    """A call for each value: ten calls with a key each, for each row of values."""
    for a, b, c, d, e, f, g, h, i, j in values:
        subject.store(EpRet=a)
        subject.store(EpLen=b)
        subject.store(VVals=c)
        subject.store(LossPi=d)
        subject.store(LossV=e)
        subject.store(KL=f)
        subject.store(Entropy=g)
        subject.store(ClipFrac=h)
        subject.store(StopIter=i)
        subject.store(DeltaLossPi=j)


WAYS = {"ten keys a call": store_ten, "one key a call": store_one}


def time_epochs(count: int, rounds: int) -> dict[str, dict[str, list[float]]]:
    """Seconds of an epoch by way and by subject. stdout must be a file. Every row is checked in the end."""
    values = common.rng().normal(100.0, 15.0, (count // 10, 10)).tolist()
    found: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        file = stack.enter_context(open(Path(folder) / "rows.txt", "w"))
        subjects: dict[str, Subject] = {"original": ListLogger(file)}
        for name, kept in (("spinstat", True), ("spinstat, not kept", False)):
            subjects[name] = printing_logger(folder, name, kept)
        for way, store in WAYS.items():
            samples = {name: partial(one_epoch, subject, store, values) for name, subject in subjects.items()}
            found[way] = common.interleave(samples, rounds)
        check(Path(folder) / "rows.txt", np.array(values))
        for name in subjects.keys() - {"original"}:
            check(Path(folder) / name / "progress.txt", np.array(values))
    return found


def printing_logger(folder: str, name: str, kept: bool) -> Subject:
    """A logger as users make it, table and all."""
    from spinstat import EpochLogger

    return EpochLogger(output_dir=Path(folder) / name, keep_values=kept)


def one_epoch(subject: Subject, store: Callable[[Subject, Any], None], values: list[list[float]]) -> float:
    """Seconds from the first value to the row on the disk."""
    start = perf_counter()
    store(subject, values)
    for key in calls.TEN:
        subject.log_tabular(key, with_min_and_max=True)
    subject.dump_tabular()
    return perf_counter() - start


def check(path: Path, values: np.ndarray[Any, Any]) -> None:
    """Raises AssertionError unless the last row of a file is right to float32."""
    header, *lines = path.read_text().splitlines()
    row = dict(zip(header.split("\t"), map(float, lines[-1].split("\t")), strict=True))
    for key, of_key in zip(calls.TEN, values.T, strict=True):
        wanted = [of_key.mean(), of_key.std(), of_key.min(), of_key.max()]
        got = [row[name + key] for name in ("Average", "Std", "Min", "Max")]
        if not np.allclose(got, wanted, rtol=1e-4):
            raise AssertionError(f"{path.name}, {key}: {got}, not {wanted}")


def fast_sim() -> ModuleType:
    """The example as a module."""
    spec = importlib.util.spec_from_file_location("fast_sim", ROOT / "examples" / "fast_sim.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def time_simulation(epochs: int, steps: int) -> dict[str, Any]:
    """Steps a second with logging, and logging's share of each epoch. stdout must be a file."""
    example = fast_sim()
    poles, policy = example.CartPoles(1024, common.SEED), example.Policy(common.SEED)
    with tempfile.TemporaryDirectory() as folder:
        logger = printing_logger(folder, "simulation", False)
        example.measure_share(poles, policy, logger, 1, steps)  # warms up
        rate, shares = example.measure_share(poles, policy, logger, epochs, steps)
        lines = (Path(folder) / "simulation" / "progress.txt").read_text().splitlines()
    if len(lines) != epochs + 2:
        raise AssertionError(f"{len(lines)} lines in progress.txt after {epochs + 1} epochs")
    return {"rate": rate, "shares": shares}


def in_process(task: str, *arguments: int) -> Any:
    """One of the two measurements in a fresh process whose stdout is a file."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "found.json"
        with open(Path(folder) / "stdout.txt", "w") as stdout:
            subprocess.run(
                [sys.executable, "-m", "benchmarks.epoch", task, str(result), *map(str, arguments)],
                cwd=ROOT, stdout=stdout, check=True,
            )  # fmt: skip
        return json.loads(result.read_text())


def main() -> None:
    """Prints all figures of `epoch`."""
    quick = common.quick_flag(__doc__)
    machine.settle()
    count, rounds, epochs, steps = (COUNT // 5, 3, 6, 300) if quick else (COUNT, 9, 30, 1000)
    common.header(
        "epoch: a million values from the first store to the row, and logging's share of a simulation",
        sources=SOURCES,
        sizes=(
            f"{count:,} values under ten keys, {rounds} rounds",
            f"simulation: {epochs} pairs of epochs, {steps:,} steps of 1,024 environments each",
        ),
    )
    report = Report()
    for way, times in in_process("epochs", count, rounds).items():
        report.section(f"{count:,} values, {way}: seconds")
        for name, seconds in times.items():
            report.figure(name, Spread.of(seconds).text(" s", 4))
        for name in ("spinstat", "spinstat, not kept"):
            gain = common.ratio(times["original"], times[name])
            report.figure(f"{name}: times as fast as the original", gain.text("x", 1))
    report.section("A fast simulator, every step logged")
    found = in_process("simulation", epochs, steps)
    report.at_least("million steps a second, logged", Spread.of([found["rate"] / 1e6]), RATE_FLOOR, "", 1)
    shares = Spread.of([100 * share for share in found["shares"]])
    report.at_most("share of the time that logging takes", shares, SHARE_FLOOR, " %", 1)
    report.close()


if __name__ == "__main__":
    if sys.argv[1:2] == ["epochs"]:
        Path(sys.argv[2]).write_text(json.dumps(time_epochs(int(sys.argv[3]), int(sys.argv[4]))))
    elif sys.argv[1:2] == ["simulation"]:
        Path(sys.argv[2]).write_text(json.dumps(time_simulation(int(sys.argv[3]), int(sys.argv[4]))))
    else:
        main()
