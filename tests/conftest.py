"""What the tests share: fresh folders for runs; other processes, with time limits and a clean environment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from relaunching import TRAIN

# No test fails for being slow: other work may share the machine.
settings.register_profile("spinstat", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("spinstat")

# Shells start what runs in the background with interrupts ignored, and so would all programs of the tests be.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parent.parent

# Set by MPI launchers and torchrun: a child with them takes itself for a rank of somebody's job.
LAUNCHER_PREFIXES = (
    "PMI_", "PMIX_", "OMPI_COMM_", "MPI_", "HYDI_", "HYDRA_", "MPIEXEC_", "TORCHELASTIC_", "IN_MPI"
)  # fmt: skip
LAUNCHER_NAMES = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}

RunPython = Callable[..., "subprocess.CompletedProcess[str]"]


def clean_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment without launchers' variables and spinstat's own settings, plus `extra`.

    The folder of the running interpreter comes first in PATH, where a virtual environment keeps its mpiexec.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(LAUNCHER_PREFIXES) and name not in LAUNCHER_NAMES
        and (not name.startswith("SPINSTAT_") or name == "SPINSTAT_OPENMPI_PYTHON")
    }
    kept["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), kept.get("PATH", os.defpath)])
    return {**kept, **(extra or {})}


@pytest.fixture
def output_dir(tmp_path: Path) -> str:
    """A folder for one run that does not exist yet."""
    return str(tmp_path / "run")


@pytest.fixture
def run_python(tmp_path: Path) -> RunPython:
    """Run this interpreter on arguments in a fresh folder; a failure shows both streams."""

    def run(
        *args: str,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        timeout: float = 120,
        check: bool = True,
    ) -> subprocess.CompletedProcess[str]:
        command: Sequence[str] = [sys.executable, *args]
        done = subprocess.run(
            command,
            check=False,
            cwd=cwd or tmp_path,
            env=clean_environment(env),
            timeout=timeout,
            text=True,
            capture_output=True,
        )
        if check and done.returncode != 0:
            pytest.fail(f"{command} exited {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done

    return run


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a training script; whoever is elsewhere must be able to relaunch its runs."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.py").write_text(TRAIN)
    (tmp_path / "elsewhere").mkdir()
    return folder


@pytest.fixture
def relaunch(project: Path, run_python: RunPython) -> RunPython:
    """Run the command from another folder than the run's."""

    def run(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
        return run_python(
            "-m", "spinstat.run", "relaunch", *words, cwd=project.parent / "elsewhere", **options
        )

    return run
