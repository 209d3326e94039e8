"""Two ranks, one of them killed in every gap of an epoch: the rows are those of a run that was not killed."""

from __future__ import annotations

from pathlib import Path

import pytest
from jobs import MPICH, launch_command, run_job
from resuming import GAPS

PROGRAM = str(Path(__file__).parent / "resuming.py")


@pytest.mark.parametrize("killed", [0, 1])
@pytest.mark.parametrize("order", ["save first", "log first"])
def test_F18_two_ranks_go_on_to_the_same_rows(tmp_path: Path, order: str, killed: int) -> None:
    def run(folder: str, rank: int, gap: str, epoch: int) -> int | None:
        arguments = (folder, order, str(rank), gap, str(epoch))
        outcome = run_job(launch_command(MPICH, 2, PROGRAM, *arguments), tmp_path)
        assert "Traceback" not in outcome.stderr, outcome
        return outcome.status

    assert run("whole", -1, "", 0) == 0
    for epoch, gap in enumerate(GAPS):
        assert run("killed", killed, gap, epoch) not in (0, None)
    assert run("killed", -1, "", 0) == 0
    want = (tmp_path / "whole" / "progress.txt").read_text()
    assert (tmp_path / "killed" / "progress.txt").read_text() == want
    assert want.count("\n") == 9
