"""The C of csrc without Python: tests/c built under a strict compiler and run, plain and with sanitizers."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXPECTED_BITS = ROOT / "tests" / "c" / "bits.txt"  # what every machine and compiler must print
STRICT = ["-std=c11", "-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Werror", "-ffp-contract=off"]
SANITIZED = ["-O1", "-DSTEP=47", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
# a processor that has none of what a target asks for
NO_FEATURES = ["-O1", "-DSTEP=47", "-D__builtin_cpu_supports(feature)=0"]
PROGRAMS = ["test_dispatch", "test_moments", "test_reduce", "test_rows", "threads"]
# a compiler other than gcc and clang, which has no types for vectors
ISO_C = ["-O2", "-DSTEP=47", "-DSPIN_ISO_C"]


def compile_c(arguments: list[str], folder: Path) -> None:
    """Run the compiler in a folder; whatever it warns of is a failure."""
    command = [*shlex.split(os.environ.get("CC", "cc")), *STRICT, f"-I{ROOT / 'csrc'}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr


def build(folder: Path, flags: list[str]) -> None:
    """The library's own sources as objects, and each program of tests/c linked with them."""
    sources = [str(path) for path in sorted((ROOT / "csrc").glob("*.c")) if not path.name.endswith(".inc.c")]
    compile_c([*flags, "-c", *sources], folder)
    objects = sorted(path.name for path in folder.glob("*.o"))
    for program in [*PROGRAMS, "bits"]:
        source = str(ROOT / "tests" / "c" / f"{program}.c")
        compile_c([*flags, source, *objects, "-lm", "-pthread", "-o", program], folder)


def output(program: Path, *arguments: str) -> str:
    """What the program prints. It must succeed."""
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run([str(program), *arguments], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run(program: Path) -> str:
    """What the program prints; it must say that it passed something and failed nothing."""
    printed = output(program)
    last = re.fullmatch(r"(\d+) passed, (\d+) failed", printed.splitlines()[-1])
    assert last, printed
    assert int(last[1]) > 0 and int(last[2]) == 0, printed
    return printed


@pytest.mark.parametrize("flags", [["-O2"], SANITIZED, ISO_C], ids=["optimised", "sanitized", "ISO C"])
def test_the_c_programs_compile_without_a_warning_and_pass(tmp_path: Path, flags: list[str]) -> None:
    build(tmp_path, flags)
    for program in PROGRAMS:
        run(tmp_path / program)
    targets = re.findall(r"^target (\w+): runs", output(tmp_path / "test_reduce"), re.MULTILINE)
    assert targets[-1] == "baseline"
    for target in targets:
        assert output(tmp_path / "bits", target) == EXPECTED_BITS.read_text(), target


def test_a_processor_without_the_features_runs_the_baseline_alone(tmp_path: Path) -> None:
    build(tmp_path, NO_FEATURES)
    lines = run(tmp_path / "test_reduce").splitlines()
    lines = [line for line in lines if line.startswith("target ")]
    assert lines[-1] == "target baseline: runs"
    assert all(line.endswith("not on this processor") for line in lines[:-1])


@pytest.mark.parametrize("flag", ["-ffast-math", "-Ofast", "-ffinite-math-only"])
def test_i5_a_build_with_fast_math_is_refused_with_the_reason(tmp_path: Path, flag: str) -> None:
    source = ROOT / "csrc" / "target_baseline.c"
    done = subprocess.run(
        [
            *shlex.split(os.environ.get("CC", "cc")),
            flag,
            "-c",
            str(source),
            "-o",
            str(tmp_path / "refused.o"),
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0
    assert "without -ffast-math" in done.stderr
