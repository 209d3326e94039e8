"""Whole jobs: what they print and write, what they say when ranks wait, and how they end."""

from __future__ import annotations

from pathlib import Path

import pytest
from jobs import MPICH, OPENMPI, TORCHRUN, launch_command, python_of, run_job

EACH = pytest.mark.parametrize("launcher", [MPICH, OPENMPI, TORCHRUN])
MPI = pytest.mark.parametrize("launcher", [MPICH, OPENMPI])

# As a script of Spinning Up, which knows nothing of MPI or torch.distributed.
UNCHANGED = """
from spinstat.utils.logx import EpochLogger
from spinstat.utils.mpi_tools import mpi_avg, proc_id
logger = EpochLogger(output_dir="run", exp_name="test")
logger.save_config(dict(lr=0.5))
for epoch in range(2):
    for i in range(3 if proc_id() == 0 else 7):
        logger.store(Ret=100 * proc_id() + i + epoch, Len=i)
    logger.log_tabular("Epoch", epoch)
    logger.log_tabular("Ret", with_min_and_max=True)
    logger.log_tabular("Len", average_only=True)
    logger.log_tabular("Seed", mpi_avg(proc_id()))
    logger.dump_tabular()
"""
FILE = (
    "Epoch\tAverageRet\tStdRet\tMaxRet\tMinRet\tLen\tSeed\n"
    "0\t72.4\t46.77435194633914\t106.0\t0.0\t2.4\t0.5\n"
    "1\t73.4\t46.77435194633914\t107.0\t1.0\t2.4\t0.5\n"
)


@EACH
def test_an_unchanged_script_logs_the_values_of_all_ranks_once(launcher: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(UNCHANGED)
    outcome = run_job(launch_command(launcher, 2, "train.py"), tmp_path)
    assert outcome.status == 0, outcome
    assert (tmp_path / "run" / "progress.txt").read_text() == FILE
    assert outcome.stdout.count("AverageRet") == 2, outcome
    assert outcome.stdout.count("Logging data to") == 1


SINKS = """
from spinstat import EpochLogger, proc_id
class Counting:
    wants_histograms = True
    def write(self, row): print(proc_id(), row.stored["AverageX"].n, row.histograms["X"].size, flush=True)
    def close(self): print(proc_id(), "closed", flush=True)
logger = EpochLogger("run", quiet=True, sinks=[Counting(), "jsonl", "csv"])
for epoch in range(2):
    logger.store(X=[1.0 + proc_id()] * 10)
    logger.log_tabular("X", with_min_and_max=True)
    logger.dump_tabular()
logger.close()
"""


@EACH
def test_sinks_of_rank_0_get_the_rows_of_all_and_the_histograms_of_its_own(
    launcher: str, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(SINKS)
    outcome = run_job(launch_command(launcher, 2, "train.py"), tmp_path)
    assert outcome.status == 0, outcome
    assert outcome.stdout == "0 20 10\n0 20 10\n0 closed\n", outcome
    line = '{"AverageX": 1.5, "StdX": 0.5, "MaxX": 2.0, "MinX": 1.0}\n'
    assert (tmp_path / "run" / "rows.jsonl").read_text() == 2 * line
    assert (tmp_path / "run" / "rows.csv").read_bytes().count(b"1.5,0.5,2.0,1.0\r\n") == 2


@MPI
def test_the_plain_name_of_a_process_in_a_job_of_one_needs_no_peer(launcher: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(UNCHANGED)
    outcome = run_job(launch_command(launcher, 1, "train.py"), tmp_path)
    assert outcome.status == 0, outcome
    assert outcome.stdout.count("AverageRet") == 2


@EACH
def test_a_rank_that_waits_long_says_what_for(launcher: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import time\n"
        "from spinstat import EpochLogger, proc_id\n"
        "logger = EpochLogger('run', quiet=True)\n"
        "for row in range(2):\n"
        "    logger.store(EpRet=1.0)\n"
        "    time.sleep(3.0 * proc_id() * row)\n"
        "    logger.log_tabular('EpRet')\n"
        "    logger.dump_tabular()\n"
    )
    command = launch_command(launcher, 2, "train.py")
    outcome = run_job(command, tmp_path, env={"SPINSTAT_NOTICE_SECONDS": "1.5"})
    assert outcome.status == 0, outcome
    lines = outcome.stderr.splitlines()
    notices = [line for line in lines if line.startswith("spinstat: ") and "row 1" in line]
    assert len(notices) == 1, outcome
    assert "rank 0 of 2 is in log_tabular('EpRet') in row 1 of logger 0" in notices[0]
    assert "log_tabular(key, value)" in notices[0]


@MPI
def test_a_rank_that_waits_for_the_first_collective_says_so_too(launcher: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import time\n"
        "from spinstat import EpochLogger, proc_id\n"
        "logger = EpochLogger('run', quiet=True)\n"
        "logger.store(EpRet=1.0)\n"
        "time.sleep(3.0 * proc_id())\n"
        "logger.log_tabular('EpRet')\n"
    )
    command = launch_command(launcher, 2, "train.py")
    outcome = run_job(command, tmp_path, env={"SPINSTAT_NOTICE_SECONDS": "1.5"})
    assert outcome.status == 0, outcome
    assert "rank 0 of 2 is in log_tabular('EpRet') in row 0 of a new logger" in outcome.stderr


@MPI
@pytest.mark.parametrize("last", ["", "MPI.Finalize()", "del logger", "import sys; sys.exit(0)"])
def test_a_job_ends_with_loggers_open_and_mpi_ended_in_any_way(
    launcher: str, last: str, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(
        "from mpi4py import MPI\n"
        "from spinstat import EpochLogger\n"
        "half = MPI.COMM_WORLD.Split(MPI.COMM_WORLD.rank % 2)\n"
        "for comm in (None, half, MPI.COMM_WORLD.Dup()):\n"
        "    logger = EpochLogger('run', quiet=True, comm=comm)\n"
        "    logger.store(X=1.0)\n"
        "    logger.log_tabular('X')\n"
        "    logger.dump_tabular()\n"
        f"{last}\n"
    )
    outcome = run_job(launch_command(launcher, 2, "train.py"), tmp_path, limit=30)
    assert outcome.status == 0, outcome
    assert "Traceback" not in outcome.stderr


def test_the_launcher_of_another_mpi_library_is_an_error(tmp_path: Path) -> None:
    command = launch_command(MPICH, 2, "-c", "import spinstat; print('rank', spinstat.proc_id())")
    command[command.index("-c") - 1] = python_of(OPENMPI)
    outcome = run_job(command, tmp_path, limit=30)
    assert outcome.status not in (0, None), outcome
    assert "rank" not in outcome.stdout
    assert "an MPI launcher started 2 processes, but mpi4py uses another MPI library" in outcome.stderr
