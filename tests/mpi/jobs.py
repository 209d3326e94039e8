"""Jobs of several ranks as child processes that cannot outlast their time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import clean_environment

# Names of what a job is started with.
MPICH, OPENMPI, TORCHRUN = "mpich", "openmpi", "torchrun"


@dataclass
class Outcome:
    """How a job ended.

    Attributes:
        status: its exit status, None where it ran out of time.
        stdout, stderr: what all ranks wrote.
        seconds: how long it took.
    """

    status: int | None
    stdout: str
    stderr: str
    seconds: float

    def __str__(self) -> str:
        how = "ran out of time" if self.status is None else f"exited {self.status}"
        return f"{how} after {self.seconds:.1f} s\n{self.stdout}\n{self.stderr}"


def run_job(
    command: Sequence[str], folder: Path, limit: float = 60, env: Mapping[str, str] | None = None
) -> Outcome:
    """Run a command in a folder; when its time is up, it is ended with all that it has started."""
    began = time.monotonic()
    with open(folder / "stdout", "w+") as stdout, open(folder / "stderr", "w+") as stderr:
        job = subprocess.Popen(
            command,
            cwd=folder,
            env=clean_environment(env),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )
        try:
            status: int | None = job.wait(limit)
        except subprocess.TimeoutExpired:
            status = None
            os.killpg(job.pid, signal.SIGTERM)  # a launcher ends the ranks, which have their own sessions
            try:
                job.wait(5)
            except subprocess.TimeoutExpired:
                os.killpg(job.pid, signal.SIGKILL)
                job.wait()
        texts = [Path(stream.name).read_text(errors="replace") for stream in (stdout, stderr)]
    return Outcome(status, texts[0], texts[1], time.monotonic() - began)


def python_of(launcher: str) -> str:
    """The interpreter of the environment that has this MPI library."""
    if launcher != OPENMPI:
        return sys.executable
    python = os.environ.get("SPINSTAT_OPENMPI_PYTHON")
    if python:
        return python
    reason = "SPINSTAT_OPENMPI_PYTHON names no interpreter of an environment with spinstat and openmpi"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def launch_command(launcher: str, ranks: int, *program: str) -> list[str]:
    """The command that runs a program (a script and its arguments) on so many ranks."""
    python = python_of(launcher)
    if launcher == TORCHRUN:
        return [python, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}", *program]
    mpiexec = os.path.join(os.path.dirname(python), "mpiexec")
    assert os.path.exists(mpiexec), f"{mpiexec} is missing: the environment has no MPI library of its own"
    return [mpiexec, *launcher_flags(launcher), "-n", str(ranks), python, *program]


def launcher_flags(launcher: str) -> list[str]:
    """What a launcher wants before it starts more ranks than there are cores, as root."""
    if launcher != OPENMPI:
        return []
    return ["--oversubscribe", *(["--allow-run-as-root"] if os.geteuid() == 0 else [])]
