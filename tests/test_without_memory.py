"""Every allocation of moments, store, epoch_dict and rows fails in turn: nothing is lost, nothing leaks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import RunPython

pytest.importorskip(
    "_testcapi", reason="CPython's own test module makes allocations fail; this Python lacks it"
)

PROGRAM = Path(__file__).parent / "without_memory.py"
# glibc counts what it keeps for later calls as in use, and newer ones keep more of it.
EXACT = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}


def test_whichever_allocation_fails_what_was_stored_stays_and_the_next_try_succeeds(
    run_python: RunPython,
) -> None:
    printed = run_python(str(PROGRAM), env=EXACT, timeout=280).stdout
    counted = re.fullmatch(r"(\d+) failures, (\d+) faults", printed.splitlines()[-1])
    assert counted, printed
    assert int(counted[1]) > 1000 and int(counted[2]) == 0, printed
