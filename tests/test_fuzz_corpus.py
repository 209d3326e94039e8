"""The fuzzers' targets on what the fuzzers have found: inputs that reach something new, former failures."""

from __future__ import annotations

import os
import random
from pathlib import Path
from types import ModuleType

import pytest
from conftest import ROOT
from fuzz import target_buffers, target_files, target_store

TARGETS = {"buffers": target_buffers, "store": target_store, "files": target_files}
CORPUS = ROOT / "tests" / "data" / "fuzz"
RUNS = {"buffers": 1500, "store": 1500, "files": 60}


@pytest.mark.parametrize("name", TARGETS)
def test_what_was_found_is_read_or_refused(name: str) -> None:
    paths = sorted((CORPUS / name).iterdir())
    assert len(paths) >= 10
    for path in paths:
        run(TARGETS[name], path.read_bytes(), path.name)


@pytest.mark.parametrize("name", TARGETS)
def test_any_bytes_are_read_or_refused(name: str) -> None:
    chance = random.Random(20260101)
    for number in range(RUNS[name]):
        run(TARGETS[name], chance.randbytes(chance.randrange(400)), f"number {number}")


def run(target: ModuleType, data: bytes, what: str) -> None:
    before = os.getcwd()
    try:
        target.one(data)
    except Exception as error:
        error.add_note(f"{what}: {data.hex()}")
        raise
    finally:
        assert os.getcwd() == before


def test_the_corpora_are_small() -> None:
    sizes = [path.stat().st_size for path in Path(CORPUS).rglob("*") if path.is_file()]
    assert sum(sizes) < 300_000 and max(sizes) <= 4096
