"""What an epoch's reduction over ranks costs. Run as `python -m benchmarks.ranks [--quick]`.

20 keys with min and max are reduced over all ranks of a job: in the original's way, by spinstat key by key,
and by spinstat in a batch, one after the other in each epoch of one job; on MPICH and, where
SPINSTAT_OPENMPI_PYTHON names an interpreter that has it and spinstat, on Open MPI. A time is that of rank 0
from a barrier to the last number. The original's way begins with arrays that are float32 already, spinstat
with the moments that its store path leaves; the lines on logging begin with what is stored and end with the
row.

Then the parts of which docs/ranks.md makes its model: how many collectives there are, counted by wrapping
the communicator; how deep the tree of a collective is, counted by wrapping the operation; what a message and
a merge cost; and what a collective costs on ranks that share the cores.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from . import common, machine
from .common import Report, Spread
from .machine import ROOT

KEYS = [f"Quantity{i}" for i in range(20)]
VALUES = 100  # of each key on each rank in an epoch
BATCH_FLOOR = 15.0
SINGLE_FLOOR = 1.5
MESSAGE = 7800  # bytes

SOURCES = (
    "clock: of the wall, on rank 0",
    "original: four Allreduce calls of float32 a key, told in our own words (OriginalWay)",
)


# -- in the ranks
# --------------------------------------------------------------------------------------------------


class OriginalWay:
    """Statistics over ranks by sums of float32, with an Allreduce for each.

    The sum and the count of a key go in one, the sum of squared deviations in a second, min and max in two
    more.
    """

    def __init__(self, mpi: Any) -> None:
        self.mpi = mpi
        self.stored: dict[str, list[float]] = {}

    def store(self, **values: float) -> None:
        """Append each value to the list of its key."""
        for key, value in values.items():
            self.stored.setdefault(key, []).append(value)

    def reduce(self, x: Any, operation: Any) -> Any:
        """The sum, least or greatest over the ranks, of a number or a list of numbers."""
        array = np.asarray([x] if np.isscalar(x) else x, dtype=np.float32)
        result = np.zeros_like(array)
        self.mpi.COMM_WORLD.Allreduce(array, result, op=operation)
        return result[0] if np.isscalar(x) else result

    def statistics(self, values: Any) -> list[float]:
        """Mean, standard deviation, greatest and least of the values of all ranks."""
        values = np.array(values, dtype=np.float32)
        total, count = self.reduce([np.sum(values), len(values)], self.mpi.SUM)
        mean = total / count
        squares = self.reduce(np.sum((values - mean) ** 2), self.mpi.SUM)
        least = self.reduce(np.min(values) if len(values) else np.inf, self.mpi.MIN)
        greatest = self.reduce(np.max(values) if len(values) else -np.inf, self.mpi.MAX)
        return [mean, np.sqrt(squares / count), greatest, least]

    def log(self) -> list[float]:
        """The statistics of all that is stored, which is then gone."""
        numbers = [number for key in KEYS for number in self.statistics(self.stored[key])]
        self.stored.clear()
        return numbers


class Way(NamedTuple):
    """One way through an epoch: what comes before its numbers, the part that is timed, and what comes
    after."""

    before: Callable[[], object]
    numbers: Callable[[], list[float]]
    after: Callable[[], object]


def nothing() -> None:
    """For the ways that begin, or end, with their numbers."""


def reductions(mpi: Any, values: np.ndarray[Any, Any], folder: str) -> dict[str, Way]:
    """The ways to reduce what is at hand."""
    from spinstat import Moments
    from spinstat.comm import choose_comm
    from spinstat.exchange import Channel

    original, arrays = OriginalWay(mpi), values.astype(np.float32)
    single, batch = Channel(choose_comm()), Channel(choose_comm())
    items = [(key, Moments(array)) for key, array in zip(KEYS, values, strict=True)]

    def read(results: Any) -> list[float]:
        return [x for r in results for x in (r.moments.mean, r.moments.std(), r.moments.max, r.moments.min)]

    numbers: dict[str, Callable[[], list[float]]] = {
        "original": lambda: [number for array in arrays for number in original.statistics(array)],
        "single": lambda: read([single.reduce("row", 0, [item])[0] for item in items]),
        "batch": lambda: read(batch.reduce("row", 0, items)),
    }
    return {name: Way(nothing, function, nothing) for name, function in numbers.items()}


def logging(mpi: Any, values: np.ndarray[Any, Any], folder: str) -> dict[str, Way]:
    """The ways to log what has been stored value by value."""
    from spinstat import EpochLogger

    epoch = [dict(zip(KEYS, column, strict=True)) for column in values.T.tolist()]

    def store(subject: Any) -> None:
        for row in epoch:
            subject.store(**row)

    def log(logger: EpochLogger, in_batch: bool) -> list[float]:
        with logger.batch() if in_batch else nullcontext():
            for key in KEYS:
                logger.log_tabular(key, with_min_and_max=True)
        return [float(value) for value in logger.log_current_row.values()]

    original = OriginalWay(mpi)
    ways = {"original": Way(partial(store, original), original.log, nothing)}
    for name in ("single", "batch"):
        logger = EpochLogger(os.path.join(folder, name), quiet=True)
        ways[name] = Way(partial(store, logger), partial(log, logger, name == "batch"), logger.dump_tabular)
    return ways


def time_ways(task: str, epochs: int, folder: str) -> dict[str, list[float]]:
    """Microseconds of each epoch, by way; that all give the same numbers is checked in the first."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    values = np.random.default_rng(common.SEED + world.rank).normal(10.0, 3.0, (len(KEYS), VALUES))
    ways = {"reductions": reductions, "logging": logging}[task](MPI, values, folder)
    times: dict[str, list[float]] = {name: [] for name in ways}
    for epoch in range(epochs + 1):
        numbers = {}
        for name, way in ways.items():
            way.before()
            world.Barrier()
            start = perf_counter()
            numbers[name] = way.numbers()
            times[name].append((perf_counter() - start) * 1e6)
            way.after()
        if epoch == 0:
            np.testing.assert_array_equal(numbers["single"], numbers["batch"])
            np.testing.assert_allclose(numbers["original"], numbers["batch"], rtol=1e-4)
    return {name: of_way[1:] for name, of_way in times.items()}


def count_collectives(folder: str) -> dict[str, int]:
    """Collectives of a row: of single keys with whatever options, and of batches."""
    from spinstat import EpochLogger
    from spinstat.comm import Comm, choose_comm

    inner, calls = choose_comm(), []

    class Counting(Comm):
        """The same ranks, noting each collective."""

        rank, size = inner.rank, inner.size

        def reduce(self, rows: Any) -> None:
            calls.append("reduce")
            inner.reduce(rows)

        def allgather(self, data: bytes) -> list[bytes]:
            calls.append("allgather")
            return inner.allgather(data)

        def allreduce(self, array: Any, op: object = "sum") -> None:
            calls.append("allreduce")
            inner.allreduce(array, op)

        def broadcast(self, array: Any, root: int = 0) -> None:
            calls.append("broadcast")
            inner.broadcast(array, root)

        def barrier(self) -> None:
            calls.append("barrier")
            inner.barrier()

    logger = EpochLogger(os.path.join(folder, "run"), quiet=True, comm=Counting())

    def count(keys: int, in_batch: bool, **options: Any) -> int:
        calls.clear()
        logger.store({f"key{i}": 1.0 for i in range(keys)})
        with logger.batch() if in_batch else nullcontext():
            for i in range(keys):
                logger.log_tabular(f"key{i}", **options)
        logger.dump_tabular()
        return len(calls)

    counts = {
        "a key": count(1, False),
        "a key with min and max": count(1, False, with_min_and_max=True),
        "a key, average only": count(1, False, average_only=True),
    }
    return {**counts, **{f"a batch of {keys} keys": count(keys, True) for keys in (1, 64, 65, 128, 200)}}


def take_apart(epochs: int) -> dict[str, Any]:
    """What a collective is made of: merges on its longest path, rows in each, and the times of its parts."""
    from mpi4py import MPI

    from spinstat._core import ROW_SIZE, Message, merge_rows

    world = MPI.COMM_WORLD
    sizes: list[int] = []

    def counted(lower: Any, higher: Any, datatype: Any) -> None:
        sizes.append(len(higher) // ROW_SIZE)
        merge_rows(lower, higher)

    row = MPI.BYTE.Create_contiguous(ROW_SIZE).Commit()
    plain, counting = MPI.Op.Create(merge_rows), MPI.Op.Create(counted)
    message = Message()
    message.pack([(key, common_moments()) for key in KEYS], 0, 0, 0, "row", world.rank)
    assert memoryview(message).nbytes == MESSAGE
    world.Allreduce(MPI.IN_PLACE, [message, row], counting)
    found = {"merges": world.allreduce(len(sizes), MPI.MAX)}
    found["rows"] = world.allreduce(max(sizes, default=0), MPI.MAX)
    other, buffer = Message(), bytearray(MESSAGE)
    parts: dict[str, Callable[[], object]] = {
        "merge": lambda: plain.Reduce_local([message, row], [other, row]),
        "collective": lambda: world.Allreduce(MPI.IN_PLACE, [other, row], plain),
    }
    if world.size == 2:

        def there_and_back() -> None:
            if world.rank == 0:
                world.Send(buffer, 1)
                world.Recv(buffer, 1)
            else:
                world.Recv(buffer, 0)
                world.Send(buffer, 0)

        parts["two messages"] = there_and_back
    times: dict[str, list[float]] = {name: [] for name in parts}
    for _ in range(epochs):
        for name, part in parts.items():
            other.pack([(key, common_moments()) for key in KEYS], 0, 0, 0, "row", world.rank)
            world.Barrier()
            start = perf_counter()
            part()
            times[name].append((perf_counter() - start) * 1e6)
    return {**found, **{name: median(of_part) for name, of_part in times.items()}}


def common_moments() -> Any:
    """Moments of a few values."""
    from spinstat import Moments

    return Moments([1.0, 2.0, 4.0])


def work(task: str, epochs: int, file: str) -> None:
    """What each rank of a job does; rank 0 writes what was found."""
    from mpi4py import MPI

    with tempfile.TemporaryDirectory() as folder:
        found: Mapping[str, Any]
        if task == "counts":
            found = count_collectives(folder)
        elif task == "parts":
            found = take_apart(epochs)
        else:
            found = time_ways(task, epochs, folder)
    if MPI.COMM_WORLD.rank == 0:
        library = " ".join(MPI.Get_library_version().splitlines()[0].split(",")[0].split())
        Path(file).write_text(json.dumps({"library": library, "found": found}))


# -- around them
# ---------------------------------------------------------------------------------------------------


def interpreters() -> dict[str, str]:
    """The interpreter for each MPI library that is here."""
    open_mpi = os.environ.get("SPINSTAT_OPENMPI_PYTHON")
    return {"MPICH": sys.executable, **({"Open MPI": open_mpi} if open_mpi else {})}


def run(library: str, ranks: int, task: str, epochs: int) -> Any:
    """Run a job and return what its rank 0 has found."""
    python = interpreters()[library]
    flags = ["--oversubscribe", *(["--allow-run-as-root"] if os.geteuid() == 0 else [])]
    mpiexec = [os.path.join(os.path.dirname(python), "mpiexec"), *(flags if library == "Open MPI" else [])]
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "found.json")
        worker = [python, "-m", "benchmarks.ranks", "--work", task, str(epochs), file]
        done = subprocess.run(
            [*mpiexec, "-n", str(ranks), *worker],
            cwd=ROOT, capture_output=True, text=True, timeout=300, check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{task} on {ranks} ranks of {library}: {done.stdout}\n{done.stderr}")
        return json.loads(Path(file).read_text())["found"]


def show_ways(report: Report, library: str, ranks: int, task: str, epochs: int) -> None:
    """Print what one epoch costs in each way; the floors are for reductions on two ranks."""
    times = run(library, ranks, task, epochs)
    verb = {"reductions": "reduced", "logging": "logged"}[task]
    for name, how in (("original", "the original's way"), ("single", "key by key"), ("batch", "in a batch")):
        report.figure(f"{verb}, {how}", Spread.of(times[name]).text(" us", 1))
    for name, how, floor in (("single", "key by key", SINGLE_FLOOR), ("batch", "in a batch", BATCH_FLOOR)):
        gain = median(times["original"]) / median(times[name])
        if ranks == 2 and task == "reductions":
            report.at_least(f"{verb} {how}, times as fast", Spread.of([gain]), floor, "x", 1)
        else:
            report.figure(f"{verb} {how}, times as fast", f"{gain:.1f}x")


def main() -> None:
    """Print all figures of `ranks`."""
    quick = common.quick_flag(__doc__)
    machine.settle(pin=False)
    epochs, crowds = (50, (2, 3, 4)) if quick else (200, (2, 3, 4, 8, 16))
    common.header(
        "ranks: what the reduction of an epoch costs",
        sources=SOURCES,
        sizes=[f"{len(KEYS)} keys with min and max, {VALUES} values a key and rank; {epochs} epochs a job"],
        packages=("mpi4py", "mpich"),
        threads=f"1 a rank, ranks on any of {os.cpu_count()} cores",
    )
    report = Report()
    for library in interpreters():
        report.section(f"{library}: collectives of a row")
        for what, count in run(library, 2, "counts", 1).items():
            keys = int(what.split()[-2]) if "batch" in what else 1
            report.at_most(what, Spread.of([count]), -(-keys // 64), "", 0)
        for ranks in (1, 2, 4):
            report.section(f"{library}: microseconds an epoch, ranks: {ranks}")
            for task in ("reductions", "logging"):
                show_ways(report, library, ranks, task, epochs)
        report.section(f"{library}: one collective taken apart, on {os.cpu_count()} cores")
        for ranks in crowds:
            parts = run(library, ranks, "parts", epochs)
            path = f"{parts.pop('merges')} merges of {parts.pop('rows')} rows"
            times = ", ".join(f"{name} {microseconds:.1f} us" for name, microseconds in parts.items())
            report.figure(f"{ranks} ranks", f"{path}; {times}")
    report.close()


if __name__ == "__main__":
    if "--work" in sys.argv:
        work(sys.argv[2], int(sys.argv[3]), sys.argv[4])
    else:
        main()
