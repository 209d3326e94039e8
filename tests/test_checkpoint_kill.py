"""Runs that are killed again and again: every time the folder is whole, and in the end the rows are the same.

SPINSTAT_KILLS is the number of kills in each test; 200 take some minutes.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator

import pytest
from conftest import ROOT, RunPython

KILLS = int(os.environ.get("SPINSTAT_KILLS", "40"))


@pytest.fixture
def memory_folder() -> Iterator[str]:
    """A folder in memory, where there is one: kills need no disk, and its flushes take their time."""
    folder = tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.timeout(120 + 5 * KILLS)
@pytest.mark.parametrize("order", ["save first", "log first"])
def test_F4_F18_a_run_killed_at_any_moment_leaves_a_whole_folder_and_goes_on_to_the_same_rows(
    memory_folder: str, run_python: RunPython, order: str
) -> None:
    program = str(ROOT / "tests" / "killing.py")
    shown = run_python(program, memory_folder, order, str(KILLS), "20260101", timeout=60 + 5 * KILLS).stdout
    assert shown.startswith(f"{KILLS} kills in ")
