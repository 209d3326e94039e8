"""Targets: which one runs, how one is forced, what is refused, and that all give the same bits."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest
from oracle import BLOCK, LANES

import spinstat

ROOT = Path(__file__).parents[1]
TARGETS = ["x86_v4", "x86_v3", "baseline"] if platform.machine() in ("x86_64", "AMD64") else ["baseline"]
UNKNOWN = ["sse9", "BASELINE", "baseline ", "x86_v3,baseline", "-"]


def python(arguments: list[str], target: str | None) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter with SPINSTAT_TARGET set, or without it."""
    environment = {name: value for name, value in os.environ.items() if name != "SPINSTAT_TARGET"}
    if target is not None:
        environment["SPINSTAT_TARGET"] = target
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environment)


def load(target: str | None) -> subprocess.CompletedProcess[str]:
    return python(["-c", "import spinstat; print(spinstat.target())"], target)


def valid(message: str) -> list[str]:
    """The names that an error offers."""
    return re.sub(r".*Valid here: ", "", message).partition(";")[0].split(", ")


@pytest.fixture(scope="module")
def loaded() -> dict[str, subprocess.CompletedProcess[str]]:
    return {target: load(target) for target in TARGETS}


@pytest.mark.parametrize("target", TARGETS)
def test_a_target_can_be_forced_or_is_refused_with_what_there_is(
    loaded: dict[str, subprocess.CompletedProcess[str]], target: str
) -> None:
    done = loaded[target]
    if done.returncode == 0:
        assert done.stdout == f"{target}\n"
        return
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"ImportError: SPINSTAT_TARGET={target}: ") and "processor" in last
    assert valid(last) == [name for name in TARGETS if loaded[name].returncode == 0]


def test_the_baseline_runs_everywhere(loaded: dict[str, subprocess.CompletedProcess[str]]) -> None:
    assert loaded["baseline"].returncode == 0


def test_the_best_supported_target_is_the_default(
    loaded: dict[str, subprocess.CompletedProcess[str]],
) -> None:
    best = next(target for target in TARGETS if loaded[target].returncode == 0)
    assert load(None).stdout == f"{best}\n"
    assert spinstat.target() == os.environ.get("SPINSTAT_TARGET", best)


@pytest.mark.parametrize("name", UNKNOWN)
def test_an_unknown_target_is_an_import_error_that_lists_the_valid_ones(
    loaded: dict[str, subprocess.CompletedProcess[str]], name: str
) -> None:
    done = load(name)
    assert done.returncode != 0
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"ImportError: SPINSTAT_TARGET={name}: ")
    assert valid(last) == [target for target in TARGETS if loaded[target].returncode == 0]


def test_equal_bits_on_every_target(loaded: dict[str, subprocess.CompletedProcess[str]]) -> None:
    script = str(Path(__file__).with_name("kernel_states.py"))
    printed: dict[str, list[str]] = {}
    for target in TARGETS:
        if loaded[target].returncode == 0:
            done = python([script], target)
            assert done.returncode == 0, done.stderr
            name, *printed[target] = done.stdout.splitlines()
            assert name == target
    baseline = printed["baseline"]
    assert len(baseline) > 8000
    for target, lines in printed.items():
        different = [(a, b) for a, b in zip(lines, baseline, strict=True) if a != b]
        assert not different, f"{target} and baseline: {len(different)} of {len(lines)}, first {different[0]}"


def test_the_oracle_s_bounds_are_made_for_this_kernel() -> None:
    header = (ROOT / "csrc" / "kernels.h").read_text()
    assert re.findall(r"#define SPIN_(LANES|BLOCK) (\d+)", header) == [
        ("LANES", str(LANES)),
        ("BLOCK", str(BLOCK)),
    ]


def test_i5_subnormals_stay_on_after_the_import() -> None:
    code = "import sys, spinstat; print(sys.float_info.min / 2, spinstat.moments([5e-324, 5e-324]).mean)"
    assert python(["-c", code], None).stdout.split() == ["1.1125369292536007e-308", "5e-324"]


def test_i5_the_build_has_no_fast_math_in_its_flags() -> None:
    text = (ROOT / "setup.py").read_text() + (ROOT / "pyproject.toml").read_text()
    assert "-ffp-contract=off" in text
    assert not re.search(r"""["']-(ffast-math|Ofast|funsafe|ffinite)""", text)
