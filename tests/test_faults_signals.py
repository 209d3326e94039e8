"""Runs that are interrupted again and again by signals that Python handles go on to the same rows.

Runs that are killed outright are in test_checkpoint_kill.py. SPINSTAT_KILLS is the number of interruptions.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from conftest import ROOT, RunPython

TIMES = int(os.environ.get("SPINSTAT_KILLS", "16"))


@pytest.mark.timeout(120 + 5 * TIMES)
@pytest.mark.parametrize("when", ["random", "call"])
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_F5_a_run_interrupted_at_any_moment_goes_on_to_the_same_rows(
    tmp_path: Path, run_python: RunPython, name: str, when: str
) -> None:
    program = str(ROOT / "tests" / "interrupting.py")
    args = (str(tmp_path), name, when, str(TIMES), "20260101")
    shown = run_python(program, *args, timeout=60 + 5 * TIMES).stdout
    assert shown.startswith(f"{TIMES} interruptions in ")
