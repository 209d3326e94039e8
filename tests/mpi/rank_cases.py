"""What must hold on several ranks, as one program that a launcher starts on each of them.

    mpiexec -n 3 python rank_cases.py FOLDER          or          torchrun --nproc-per-node 2 rank_cases.py
    FOLDER

Each function that begins with case_ is one case; all ranks run them in the order of this file. Every rank
notes in FOLDER/rank<n> what it begins and what it has passed. The first failure ends the job.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from spinstat import EpochLogger, Moments
from spinstat.exchange import KeyMismatchError
from spinstat.utils import mpi_tools
from spinstat.utils.mpi_tools import mpi_statistics_scalar

# Cases that need more than what every job has.
NEED_MPI: set[str] = set()
NEED_TORCH: set[str] = set()

Case = Callable[["Job"], None]


def needs_mpi(case: Case) -> Case:
    NEED_MPI.add(case.__name__)
    return case


def needs_torch(case: Case) -> Case:
    NEED_TORCH.add(case.__name__)
    return case


class Job:
    """The ranks, by means other than those under test.

    Attributes:
        rank, size: of this rank, of all.
        mpi: the module mpi4py.MPI, None under torchrun.
        folder: one for the files of loggers.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._loggers = 0
        if "TORCHELASTIC_RUN_ID" in os.environ:
            import torch.distributed

            torch.distributed.init_process_group("gloo")
            self.mpi: Any = None
            self.rank, self.size = torch.distributed.get_rank(), torch.distributed.get_world_size()
        else:
            from mpi4py import MPI

            self.mpi = MPI
            self.rank, self.size = MPI.COMM_WORLD.Get_rank(), MPI.COMM_WORLD.Get_size()

    def gather(self, value: Any) -> list[Any]:
        """The value of every rank, on every rank."""
        if self.mpi is not None:
            return list(self.mpi.COMM_WORLD.allgather(value))
        import torch.distributed

        values = [None] * self.size
        torch.distributed.all_gather_object(values, value)
        return values

    def logger(self, **options: Any) -> EpochLogger:
        """A logger with a folder of its own."""
        self._loggers += 1
        return EpochLogger(str(self.folder / f"run{self._loggers}"), quiet=True, **options)

    def same_everywhere(self, value: Any) -> bool:
        """Whether all ranks hold the same, to the last bit."""
        return len({repr(each) for each in self.gather(value)}) == 1

    def mismatch(self, call: Callable[[], object]) -> None:
        """A call that ranks make differently: the same error on each, soon. One rank alone may do as it
        likes."""
        began = time.monotonic()
        text = None
        try:
            call()
        except KeyMismatchError as error:
            text = str(error)
        assert (text is None) == (self.size == 1)
        assert self.same_everywhere(text)
        assert time.monotonic() - began < 20

    def end(self) -> None:
        if self.mpi is None:
            import torch.distributed

            torch.distributed.destroy_process_group()


def row_of(logger: EpochLogger) -> dict[str, Any]:
    return dict(logger.log_current_row)


def log_all(logger: EpochLogger, keys: list[str], **options: Any) -> None:
    for key in keys:
        logger.log_tabular(key, **options)


def rows_in_file(logger: EpochLogger) -> list[dict[str, str]]:
    """The rows that rank 0 has written."""
    header, *lines = Path(logger.output_dir, "progress.txt").read_text().splitlines()
    return [dict(zip(header.split("\t"), line.split("\t"), strict=True)) for line in lines]


# -- numbers
# -------------------------------------------------------------------------------------------------------


def case_uneven_counts_weigh_by_value(job: Job) -> None:
    logger = job.logger()
    mine = [float(job.rank * 100 + i) for i in range(3 + 4 * job.rank)]
    for value in mine:
        logger.store(Ret=value)
    logger.log_tabular("Ret", with_min_and_max=True)
    everyones = np.concatenate(job.gather(mine))
    row = row_of(logger)
    assert list(row) == ["AverageRet", "StdRet", "MaxRet", "MinRet"]
    want = [everyones.mean(), everyones.std(), everyones.max(), everyones.min()]
    np.testing.assert_allclose(list(row.values()), want, rtol=1e-14)
    assert job.same_everywhere(row)
    assert all(type(value) is float for value in row.values())


def case_a15_a_mean_of_ranks_is_no_mean_of_means(job: Job) -> None:
    logger = job.logger()
    if job.rank == 0:
        logger.store(X=np.zeros(100))
    else:
        logger.store(X=101.0)
    logger.log_tabular("X", average_only=True)
    others = job.size - 1
    np.testing.assert_allclose(row_of(logger)["X"], 101.0 * others / (100 + others), rtol=1e-14)


def case_d1_ranks_without_values_join_in(job: Job) -> None:
    logger = job.logger()
    if job.rank == 0:
        logger.store(X=[1.0, 3.0])
    logger.log_tabular("X", with_min_and_max=True)
    assert list(row_of(logger).values()) == [2.0, 1.0, 3.0, 1.0]
    assert logger.last_row_info["X"].ranks_with_values == 1
    last = job.size - 1
    assert mpi_statistics_scalar([1.0, 3.0] if job.rank == last else [], True) == (2.0, 1.0, 1.0, 3.0)


def case_first_and_later_epochs_start_empty(job: Job) -> None:
    logger = job.logger()
    for epoch in range(3):
        for i in range(1 + job.rank + epoch):
            logger.store(X=epoch + i)
        logger.log_tabular("Epoch", epoch)
        logger.log_tabular("X", average_only=True)
        want = np.mean([epoch + i for rank in range(job.size) for i in range(1 + rank + epoch)])
        np.testing.assert_allclose(row_of(logger)["X"], want, rtol=1e-14)
        logger.dump_tabular()
        assert row_of(logger) == {}
    if job.rank == 0:
        assert [row["Epoch"] for row in rows_in_file(logger)] == ["0", "1", "2"]


def case_keys_that_only_some_ranks_know(job: Job) -> None:
    logger = job.logger()
    logger.store(**{f"Of{job.rank}": float(job.rank), "Common": 1.0})
    keys = [f"Of{rank}" for rank in range(job.size)] + ["Common"]
    log_all(logger, keys, average_only=True)
    assert row_of(logger) == {**{f"Of{rank}": float(rank) for rank in range(job.size)}, "Common": 1.0}
    logger.dump_tabular()
    assert logger.log_headers == keys


def case_arrays_count_by_their_elements_d10(job: Job) -> None:
    logger = job.logger()
    logger.store(A=np.ones((2, 3)) if job.rank == 0 else 7.0)
    logger.store(A=np.full(job.rank, 7.0, dtype=np.float32))
    logger.log_tabular("A")
    values = np.concatenate([np.ones(6), np.full(sum(1 + rank for rank in range(1, job.size)), 7.0)])
    np.testing.assert_allclose(list(row_of(logger).values()), [values.mean(), values.std()], rtol=1e-14)
    assert logger.last_row_info["A"].count == len(values)


def case_a11_nan_on_one_rank_reaches_all(job: Job) -> None:
    logger = job.logger()
    last = job.size - 1
    logger.store(X=float("nan") if job.rank == last else 1.0)
    logger.store(X=2.0)
    logger.log_tabular("X", with_min_and_max=True)
    assert all(np.isnan(value) for value in row_of(logger).values())
    info = logger.last_row_info["X"]
    assert (info.count, info.nan_count, info.max_mean_rank) == (2 * job.size, 1, last)
    assert np.isnan(mpi_statistics_scalar([np.nan] if job.rank == last else [1.0], True)).all()


def case_info_tells_how_ranks_differ(job: Job) -> None:
    logger = job.logger()
    logger.store(X=[-1.0 * job.rank, 1.0 - job.rank])
    logger.log_tabular("X")
    info = logger.last_row_info["X"]
    assert (info.count, info.nan_count, info.ranks_with_values) == (2 * job.size, 0, job.size)
    assert (info.min_mean, info.min_mean_rank) == (1.5 - job.size, job.size - 1)
    assert (info.max_mean, info.max_mean_rank) == (0.5, 0)
    assert job.same_everywhere(info)


def case_data_cut_over_ranks_gives_what_one_process_gives(job: Job) -> None:
    data = np.random.default_rng(3).normal(2.0, size=30_011)
    mine = np.array_split(data, job.size)[job.rank]
    logger = job.logger()
    logger.store(X=mine)
    logger.log_tabular("X", with_min_and_max=True)
    row, whole = row_of(logger), Moments(data)
    want = [whole.mean, whole.std(), whole.max, whole.min]
    np.testing.assert_allclose(list(row.values()), want, rtol=1e-14)
    assert job.same_everywhere(row)
    np.testing.assert_allclose(mpi_statistics_scalar(mine), want[:2], rtol=1e-14)
    assert job.same_everywhere(mpi_statistics_scalar(mine, True))


def case_200_keys_one_by_one_and_in_a_batch(job: Job) -> None:
    keys = [f"key{i}" for i in range(200)]
    rows = []
    for block in (False, True):
        logger = job.logger()
        for i, key in enumerate(keys):
            logger.store({key: [job.rank + 0.1 * i, i]})
        with logger.batch() if block else nullcontext():
            log_all(logger, keys, with_min_and_max=True)
        rows.append(row_of(logger))
        logger.dump_tabular()
    assert rows[0] == rows[1]
    assert len(rows[0]) == 800
    assert job.same_everywhere(rows[0])
    np.testing.assert_allclose(rows[0]["Averagekey7"], np.mean([[r + 0.7, 7] for r in range(job.size)]))


# -- orders of calls
# -----------------------------------------------------------------------------------------------


def case_d3_options_that_differ_do_not_matter(job: Job) -> None:
    logger = job.logger()
    logger.store(A=float(job.rank), B=1.0)
    logger.log_tabular("A", with_min_and_max=job.rank == 0, average_only=job.rank == 1)
    logger.log_tabular("B")
    mean = (job.size - 1) / 2
    assert row_of(logger)["A" if job.rank == 1 else "AverageA"] == mean
    assert ("MaxA" in row_of(logger)) == (job.rank == 0)


def case_d2_another_order_of_keys_is_an_error_and_the_next_row_is_right(job: Job) -> None:
    logger = job.logger()
    keys = ["A", "B"] if job.rank == 0 else ["B", "A"]
    for row in range(2):
        logger.store(A=float(job.rank), B=10.0)
        job.mismatch(lambda: log_all(logger, keys, average_only=True))
        if job.size > 1:
            assert row_of(logger) == {}
        logger.dump_tabular()
        logger.store(A=float(job.rank + row), B=11.0)
        log_all(logger, ["A", "B"], average_only=True)
        assert row_of(logger) == {"A": row + (job.size - 1) / 2, "B": 11.0}
        logger.dump_tabular()


def case_unequal_numbers_of_keys_are_an_error_on_all(job: Job) -> None:
    logger = job.logger()
    keys = [f"key{i}" for i in range(70)]
    for many in (2, 64, 65, 70):
        logger.store(dict.fromkeys(keys, 1.0))

        def a_batch(many: int = many) -> None:
            with logger.batch():
                log_all(logger, keys[: many - (job.rank == 0)])

        job.mismatch(a_batch)
        logger.dump_tabular()
    logger.store(X=1.0)
    logger.log_tabular("X", average_only=True)
    assert row_of(logger) == {"X": 1.0}


def case_a_batch_and_a_single_key_do_not_match(job: Job) -> None:
    logger = job.logger()
    logger.store(A=1.0, B=2.0)

    def either() -> None:
        with logger.batch() if job.rank == 0 else nullcontext():
            log_all(logger, ["A", "B"])

    job.mismatch(either)


def case_a_statistic_and_a_key_do_not_match(job: Job) -> None:
    logger = job.logger()
    logger.store(A=1.0)
    job.mismatch(lambda: logger.log_tabular("A") if job.rank == 0 else mpi_statistics_scalar([1.0]))
    logger.dump_tabular()
    logger.store(A=1.0)
    job.mismatch(lambda: logger.log_tabular("A") if job.rank == 0 else logger.get_stats("A"))
    assert mpi_statistics_scalar([float(job.rank)])[0] == (job.size - 1) / 2


def case_the_row_can_be_read_on_rank_0_alone(job: Job) -> None:
    logger = job.logger()
    logger.store(Ret=float(job.rank))
    logger.log_tabular("Ret")
    if job.rank == 0:
        assert logger.log_current_row["AverageRet"] == (job.size - 1) / 2
    assert job.gather(job.rank) == list(range(job.size))  # a collective of the script's own
    logger.dump_tabular()
    assert job.gather(job.rank) == list(range(job.size))


def case_get_stats_in_between_keeps_the_values(job: Job) -> None:
    logger = job.logger()
    for i in range(4):
        logger.store(KL=0.5 * i + job.rank, Len=1.0)
    mean = 0.75 + (job.size - 1) / 2
    np.testing.assert_allclose(logger.get_stats("KL")[0], mean, rtol=1e-14)
    logger.log_tabular("Len", average_only=True)
    np.testing.assert_allclose(logger.get_stats("KL")[0], mean, rtol=1e-14)
    logger.log_tabular("KL", average_only=True)
    np.testing.assert_allclose(row_of(logger)["KL"], mean, rtol=1e-14)


def case_batches_and_single_keys_in_one_script(job: Job) -> None:
    logger = job.logger()
    for epoch in range(3):
        logger.store(A=float(job.rank), B=float(epoch), C=2.0, D=3.0)
        logger.log_tabular("Epoch", epoch)
        logger.log_tabular("A", average_only=True)
        with logger.batch():
            log_all(logger, ["B", "C"], average_only=True)
        logger.log_tabular("D", average_only=True)
        want = {"Epoch": epoch, "A": (job.size - 1) / 2, "B": float(epoch), "C": 2.0, "D": 3.0}
        assert row_of(logger) == want
        logger.dump_tabular()


def case_a_logger_that_always_batches(job: Job) -> None:
    logger = job.logger(batch=True)
    for epoch in range(2):
        logger.store(A=float(job.rank), B=[epoch, epoch + 2])
        log_all(logger, ["A", "B"], average_only=True)
        refused = False
        try:
            row_of(logger)
        except RuntimeError as error:
            refused = "batch" in str(error)
        assert refused
        logger.dump_tabular()
    if job.rank == 0:
        mean = str((job.size - 1) / 2)
        assert rows_in_file(logger) == [{"A": mean, "B": "1.0"}, {"A": mean, "B": "2.0"}]


def case_d4_a_logger_of_one_rank_alone_waits_for_nobody(job: Job) -> None:
    if job.rank == 0:
        alone = job.logger()
        for epoch in range(3):
            alone.store(Hidden=1.0)
            alone.log_tabular("Epoch", epoch)
            alone.dump_tabular()
        assert len(rows_in_file(alone)) == 3
        serial = job.logger(comm="serial")
        serial.store(X=5.0)
        serial.log_tabular("X", average_only=True)
        assert row_of(serial) == {"X": 5.0}
    everyones = job.logger()
    if job.rank == 0:
        everyones.log_tabular("Only0", 1.0)
        everyones.dump_tabular()
    everyones.store(X=float(job.rank))
    everyones.log_tabular("X", average_only=True)
    assert row_of(everyones) == {"X": (job.size - 1) / 2}


def case_c1_a_key_without_values_anywhere_is_nan_and_one_warning(job: Job) -> None:
    logger = job.logger()
    logger.store(EpRet=1.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        logger.log_tabular("EpLen", with_min_and_max=True)
    assert all(np.isnan(value) for value in row_of(logger).values())
    assert len(caught) == (job.rank == 0)
    strict = job.logger(strict_keys=True)
    try:
        strict.log_tabular("EpLen")
    except KeyError as error:
        text = str(error)
    assert "EpLen" in text


def case_d13_a_given_folder_is_known_on_every_rank(job: Job) -> None:
    logger = job.logger()
    assert os.path.join(logger.output_dir or "", "x") == str(job.folder / f"run{job._loggers}" / "x")
    assert (logger.output_file is None) == (job.rank > 0)
    default = EpochLogger(quiet=True)
    assert (default.output_dir is None) == (job.rank > 0)


def case_1000_loggers_share_what_mpi_has_few_of(job: Job) -> None:
    loggers = [job.logger() for _ in range(1000 if job.size == 2 else 50)]
    for i, logger in enumerate(loggers):
        logger.store(X=float(i + job.rank))
        logger.log_tabular("X", average_only=True)
        assert row_of(logger) == {"X": i + (job.size - 1) / 2}
        logger.dump_tabular()
    job.mismatch(lambda: [loggers[job.rank].store(X=1.0), loggers[job.rank].log_tabular("X")])


# -- quantiles
# ------------------------------------------------------------------------------------------------------


def log_quantiles(logger: EpochLogger, key: str, quantiles: tuple[float, ...]) -> list[float]:
    """Log the mean, the count and quantiles of a key: the last two."""
    logger.log_tabular(key, average_only=True, with_count=True, quantiles=quantiles)
    return list(row_of(logger).values())[-1 - len(quantiles) :]


def case_quantiles_are_numpys_of_the_values_of_all_ranks(job: Job) -> None:
    logger = job.logger()
    for epoch in range(2):
        mine = np.random.default_rng([job.rank, epoch]).normal(size=1000 * job.rank + 7)
        for value in mine[:5]:
            logger.store(X=value)
        logger.store(X=mine[5:])
        found = log_quantiles(logger, "X", (0.0, 0.05, 1 / 3, 0.95, 1.0))
        everyones = np.concatenate(job.gather(mine))
        assert found == [len(everyones), *np.quantile(everyones, (0.0, 0.05, 1 / 3, 0.95, 1.0)).tolist()]
        assert logger.last_row_info["X"].count == len(everyones)
        logger.dump_tabular()
    last = job.size - 1
    if job.rank == last:
        logger.store(Y=[5.0, float("inf"), 3.0])
    assert log_quantiles(logger, "Y", (0.0, 0.5, 1.0)) == [3, 3.0, 5.0, float("inf")]


def case_quantiles_of_more_values_than_travel_are_alike_and_within_the_bound(job: Job) -> None:
    logger = job.logger()
    mine = np.random.default_rng(job.rank).exponential(size=100_000 + job.rank) + job.rank
    logger.store(X=mine)
    quantiles = (0.0, 0.01, 0.5, 0.99, 1.0)
    count, *found = log_quantiles(logger, "X", quantiles)
    assert job.same_everywhere(found)
    everyones = np.sort(np.concatenate(job.gather(mine)))
    assert count == len(everyones)
    # On one rank exactly, on more by a place or two for each rank and 65,536 values.
    off = job.size * (-(-len(everyones) // 65_536) // 2) if job.size > 1 else 0
    for quantile, value in zip(quantiles, found, strict=True):
        place = quantile * (len(everyones) - 1)
        low, high = max(int(place) - off, 0), min(int(place) + 1 + off, len(everyones) - 1)
        assert everyones[low] <= value <= everyones[high]
    assert (found[0], found[-1]) == (everyones[0], everyones[-1])


def case_quantiles_of_70_keys_in_a_batch(job: Job) -> None:
    logger = job.logger(batch=True)
    for i in range(70):
        logger.store({f"key{i}": np.arange(30_000.0 if i == 3 else 5.0) + i + job.rank})
        if i % 2:
            logger.log_tabular(f"key{i}", average_only=True, quantiles=(0.5,))
        else:
            logger.log_tabular(f"key{i}", average_only=True)
    logger.dump_tabular()
    if job.rank == 0:
        row = rows_in_file(logger)[0]
        assert sum(column.startswith("Q50") for column in row) == 35
        assert float(row["Q50key7"]) == 7 + 2 + (job.size - 1) / 2
        assert abs(float(row["Q50key3"]) - (3 + 14999.5 + (job.size - 1) / 2)) <= 2 * job.size


def case_each_rank_may_ask_for_other_quantiles_but_not_one_alone(job: Job) -> None:
    logger = job.logger()
    logger.store(X=[job.rank, 10.0])
    everyones = [value for rank in range(job.size) for value in (rank, 10.0)]
    quantile = 0.25 if job.rank == 0 else 0.75
    assert log_quantiles(logger, "X", (quantile,)) == [len(everyones), np.quantile(everyones, quantile)]
    logger.dump_tabular()
    logger.store(X=1.0)
    job.mismatch(lambda: log_quantiles(logger, "X", (0.5,) if job.rank == 0 else ()))
    logger.dump_tabular()
    logger.store(X=float(job.rank))
    assert log_quantiles(logger, "X", (1.0,)) == [job.size, job.size - 1.0]


def case_what_one_rank_has_no_more_makes_quantiles_nan_on_all(job: Job) -> None:
    logger = job.logger()
    mine = np.arange(5.0)
    logger.store(X=mine)
    if job.rank == job.size - 1:
        mine[2] = 9.0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        count, median = log_quantiles(logger, "X", (0.5,))
    assert (count, row_of(logger)["X"]) == (5 * job.size, 2.0)
    assert np.isnan(median)
    assert len(caught) == (job.rank == 0)
    unkept = job.logger(keep_values=False)
    unkept.store(X=1.0)
    try:
        log_quantiles(unkept, "X", (0.5,))
    except ValueError as error:
        refused = str(error)
    assert "keep_values=True" in refused
    unkept.log_tabular("X", average_only=True)
    assert row_of(unkept) == {"X": 1.0}


# -- communicators
# -------------------------------------------------------------------------------------------------


@needs_mpi
def case_a_logger_of_some_ranks_only(job: Job) -> None:
    world = job.mpi.COMM_WORLD
    half = world.Split(job.rank % 2, key=-job.rank)
    logger = job.logger(comm=half)
    logger.store(X=float(job.rank))
    logger.log_tabular("X", average_only=True)
    same = [rank for rank in range(job.size) if rank % 2 == job.rank % 2]
    assert row_of(logger) == {"X": sum(same) / len(same)}
    assert logger.last_row_info["X"].min_mean_rank == len(same) - 1  # numbers are those of the communicator
    world_logger = job.logger(comm=world)
    world_logger.store(X=float(job.rank))
    world_logger.log_tabular("X", average_only=True)
    assert row_of(world_logger) == {"X": (job.size - 1) / 2}
    half.Free()


@needs_mpi
def case_communicators_come_and_go(job: Job) -> None:
    many = "MPICH" in job.mpi.Get_library_version() and job.size == 2
    for i in range(2500 if many else 50):  # mpich has some 2,000 at a time; Open MPI takes long over each
        comm = job.mpi.COMM_WORLD.Dup()
        logger = EpochLogger(comm=comm, quiet=True) if job.rank else job.logger(comm=comm)
        logger.store(X=float(i))
        logger.log_tabular("X", average_only=True)
        logger.close()
        comm.Free()


@needs_mpi
def case_the_rows_keep_to_themselves(job: Job) -> None:
    """A message of the script's own that is still under way when the loggers talk is not met by theirs."""
    world, peer = job.mpi.COMM_WORLD, (job.rank + 1) % job.size
    received = np.zeros(4)
    receive = world.Irecv(received, source=job.mpi.ANY_SOURCE, tag=job.mpi.ANY_TAG)
    logger = job.logger()
    logger.store(X=1.0)
    logger.log_tabular("X")
    world.Send(np.full(4, float(job.rank)), dest=peer)
    receive.Wait()
    assert received.tolist() == [float((job.rank - 1) % job.size)] * 4


# -- mpi_tools and mpi_pytorch
# -------------------------------------------------------------------------------------


def case_mpi_tools_give_float64_in_the_kinds_of_the_original(job: Job) -> None:
    ranks = np.arange(job.size)
    assert (mpi_tools.proc_id(), mpi_tools.num_procs()) == (job.rank, job.size)
    total = mpi_tools.mpi_sum(job.rank + 1.5)
    assert type(total) is np.float64
    assert total == (ranks + 1.5).sum()
    assert mpi_tools.mpi_sum([0.0, 2**24 + 1])[1] == job.size * (2**24 + 1)  # A5
    assert mpi_tools.mpi_avg(np.float32(0.1) * 0 + job.rank) == ranks.mean()
    average = mpi_tools.mpi_avg(np.arange(4.0).reshape(2, 2) + job.rank)
    assert average.dtype == np.float64
    np.testing.assert_allclose(average, np.arange(4.0).reshape(2, 2) + ranks.mean(), rtol=1e-15)
    zero_d = mpi_tools.mpi_sum(np.array(2.0))
    assert isinstance(zero_d, np.ndarray)
    assert zero_d.shape == ()
    assert zero_d == 2.0 * job.size
    assert mpi_tools.mpi_op(job.rank * 5.0, "max") == 5.0 * (job.size - 1)
    assert mpi_tools.mpi_op([job.rank, -job.rank], "min").tolist() == [0.0, 1.0 - job.size]
    mine = np.full(3, job.rank, dtype=np.float32)
    mpi_tools.mpi_sum(mine)
    assert mine.tolist() == [job.rank] * 3
    assert mpi_tools.broadcast(mine, root=job.size - 1) is None
    assert mine.tolist() == [job.size - 1.0] * 3
    send, received = np.full(2, job.rank + 1.0), np.zeros(2)
    mpi_tools.allreduce(send, received)
    assert received.tolist() == [ranks.sum() + job.size] * 2
    assert send.tolist() == [job.rank + 1.0] * 2


@needs_mpi
def case_mpi_tools_take_the_operations_of_mpi4py(job: Job) -> None:
    assert mpi_tools.mpi_op(float(job.rank), job.mpi.MAX) == job.size - 1.0
    assert mpi_tools.mpi_op([2.0, 3.0], job.mpi.PROD).tolist() == [2.0**job.size, 3.0**job.size]
    send, received = np.full(2, float(job.rank)), np.zeros(2)
    mpi_tools.allreduce(send, received, op=job.mpi.MIN)
    assert received.tolist() == [0.0, 0.0]
    mpi_tools.allreduce(job.mpi.IN_PLACE, received, op=job.mpi.SUM)
    assert received.tolist() == [0.0, 0.0]


def case_a1_statistics_of_offset_values(job: Job) -> None:
    x = 1e9 + np.random.default_rng(1).normal(size=1000)
    mean, std = mpi_statistics_scalar(np.array_split(x, job.size)[job.rank])
    # Means of ranks are rounded to 1e-7 here, which shows in the eighth digit of what lies between them.
    np.testing.assert_allclose([mean, std], [x.mean(), x.std()], rtol=1e-8)
    np.testing.assert_allclose(mean, x.mean(), rtol=1e-15)
    assert (type(mean), type(std)) == (float, float)
    empty = mpi_statistics_scalar([], True)
    assert np.isnan(empty[:2]).all()
    assert empty[2:] == (float("inf"), float("-inf"))


def case_statistics_of_what_is_no_number_are_an_error_on_all(job: Job) -> None:
    job.mismatch(lambda: mpi_statistics_scalar("text" if job.rank == 1 else [1.0, 2.0]))
    assert mpi_statistics_scalar([1.0, 3.0]) == (2.0, 1.0)
    try:
        mpi_statistics_scalar("text")
    except TypeError as error:
        assert job.same_everywhere(str(error))
    else:
        raise AssertionError("text has no statistics")
    assert mpi_statistics_scalar([1.0, 3.0]) == (2.0, 1.0)


@needs_torch
def case_gradients_are_averaged_in_one_call(job: Job) -> None:
    import torch

    from spinstat.utils.mpi_pytorch import mpi_avg_grads

    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2).double(), torch.nn.Linear(2, 1))
    unused = net[2].bias
    for i, parameter in enumerate(net.parameters()):
        if parameter is not unused and (i != 2 or job.rank == 0):
            parameter.grad = torch.full_like(parameter, i + job.rank)
    mpi_avg_grads(net)
    for i, parameter in enumerate(net.parameters()):
        if parameter is unused:
            assert parameter.grad is None
            continue
        want = 2.0 / job.size if i == 2 else i + (job.size - 1) / 2
        if i == 2 and job.size == 1:
            want = 2.0
        assert parameter.grad is not None
        assert parameter.grad.dtype == parameter.dtype
        np.testing.assert_allclose(parameter.grad.numpy(), want, rtol=1e-6)


@needs_torch
def case_parameters_are_those_of_rank_0_to_the_bit(job: Job) -> None:
    import torch

    from spinstat.utils.mpi_pytorch import num_procs, setup_pytorch_for_mpi, sync_params

    torch.manual_seed(job.rank)
    half = torch.nn.Linear(2, 1).bfloat16()
    net = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Linear(5, 2).double(), half)
    net.register_parameter("scalar", torch.nn.Parameter(torch.tensor(float(job.rank))))
    before = [parameter.detach().double().numpy().tolist() for parameter in net.parameters()]
    sync_params(net)
    after = [parameter.detach().double().numpy().tolist() for parameter in net.parameters()]
    assert after == job.gather(before)[0]
    threads = torch.get_num_threads()
    setup_pytorch_for_mpi()
    assert torch.get_num_threads() == max(threads // num_procs(), 1)


def cases() -> dict[str, Case]:
    """All cases by name, in the order of this file."""
    return {name: value for name, value in globals().items() if name.startswith("case_")}


def main() -> None:
    folder = Path(sys.argv[1])
    job = Job(folder / "files")
    with open(folder / f"rank{job.rank}", "w") as notes:

        def note(**what: str) -> None:
            print(json.dumps(what), file=notes, flush=True)

        for name in sys.argv[2:] or cases():
            note(began=name)
            began = time.monotonic()
            try:
                cases()[name](job)
            except BaseException:
                note(failed=name, why=traceback.format_exc())
                traceback.print_exc()
                if job.mpi is not None:
                    job.mpi.COMM_WORLD.Abort(1)
                os._exit(1)
            note(passed=name, seconds=f"{time.monotonic() - began:.2f}")
    job.end()


if __name__ == "__main__":
    main()
