"""The cases of rank_cases.py: on one to four ranks of both MPI libraries, and on two of torchrun."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import rank_cases
from jobs import MPICH, OPENMPI, TORCHRUN, Outcome, launch_command, run_job

PROGRAM = rank_cases.__file__
JOBS = [*((launcher, ranks) for launcher in (MPICH, OPENMPI) for ranks in (1, 2, 3, 4)), (TORCHRUN, 2)]

# The environment of Open MPI has no torch, whose size would double the time that it takes to make.
LACKING = {MPICH: set(), OPENMPI: rank_cases.NEED_TORCH, TORCHRUN: rank_cases.NEED_MPI}

Notes = list[dict[str, dict[str, str]]]


class Jobs:
    """Each job is run once, for all of its cases."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._done: dict[tuple[str, int], tuple[Outcome, Notes]] = {}

    def result(self, launcher: str, ranks: int) -> tuple[Outcome, Notes]:
        """How the job ended, and for each rank what it noted of each case."""
        if (launcher, ranks) not in self._done:
            folder = self._folder / f"{launcher}-{ranks}"
            command = launch_command(launcher, ranks, PROGRAM, str(folder), *cases_for(launcher))  # or a skip
            (folder / "files").mkdir(parents=True)
            outcome = run_job(command, folder, limit=150)
            notes = [read_notes(folder / f"rank{rank}") for rank in range(ranks)]
            self._done[launcher, ranks] = outcome, notes
        return self._done[launcher, ranks]


def read_notes(file: Path) -> dict[str, dict[str, str]]:
    notes: dict[str, dict[str, str]] = {}
    for line in file.read_text().splitlines() if file.exists() else []:
        what = json.loads(line)
        notes.setdefault(what.get("began") or what.get("passed") or what["failed"], {}).update(what)
    return notes


def cases_for(launcher: str) -> list[str]:
    return [name for name in rank_cases.cases() if name not in LACKING[launcher]]


@pytest.fixture(scope="session")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Jobs:
    return Jobs(tmp_path_factory.mktemp("jobs"))


@pytest.mark.parametrize(
    ("launcher", "ranks", "case"),
    [
        pytest.param(launcher, ranks, case, id=f"{launcher}-{ranks}-{case.removeprefix('case_')}")
        for launcher, ranks in JOBS
        for case in cases_for(launcher)
    ],
)
def test_on_ranks(launcher: str, ranks: int, case: str, jobs: Jobs) -> None:
    outcome, notes = jobs.result(launcher, ranks)
    for rank, of_rank in enumerate(notes):
        note = of_rank.get(case, {})
        if "why" in note:
            pytest.fail(f"rank {rank}: {note['why']}")
        if "passed" not in note:
            where = "was in it when the job ended" if note else "did not come to it"
            pytest.fail(f"rank {rank} {where}; the job {outcome}")


@pytest.mark.parametrize(("launcher", "ranks"), JOBS)
def test_a_job_ends_by_itself_without_error(launcher: str, ranks: int, jobs: Jobs) -> None:
    outcome, _ = jobs.result(launcher, ranks)
    assert outcome.status == 0, outcome


def test_without_open_mpi_each_of_its_cases_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPINSTAT_OPENMPI_PYTHON", raising=False)
    monkeypatch.delenv("CI", raising=False)
    jobs = Jobs(tmp_path)
    for _ in range(2):
        with pytest.raises(pytest.skip.Exception, match="names no interpreter"):
            jobs.result(OPENMPI, 2)
