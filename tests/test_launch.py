"""mpi_fork where it does not get as far as a job, and how it reads a command. Jobs are in tests/mpi."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import RunPython

from spinstat.launch import mpi_fork, split_command

FORK = "from spinstat.utils.mpi_tools import mpi_fork; mpi_fork(2); print('went on')"


@pytest.mark.parametrize(
    ("words", "options", "program"),
    [
        (["train.py", "-m", "x"], [], ["train.py", "-m", "x"]),
        (["-u", "-O", "train.py"], ["-u", "-O"], ["train.py"]),
        (["-m", "pkg.train", "--lr", "1"], [], ["-m", "pkg.train", "--lr", "1"]),
        (["-um", "pkg.train", "x"], ["-u"], ["-m", "pkg.train", "x"]),
        (["-mpkg.train", "x"], [], ["-m", "pkg.train", "x"]),
        (["-Bcprint(1)"], ["-B"], ["-c", "print(1)"]),
        (["-W", "error", "-X", "dev", "t.py"], ["-W", "error", "-X", "dev"], ["t.py"]),
        (["-Werror", "-Xdev", "-bb", "t.py"], ["-Werror", "-Xdev", "-bb"], ["t.py"]),
        (["-BW", "error", "t.py"], ["-BW", "error"], ["t.py"]),
        (["-X", "-c", "t.py"], ["-X", "-c"], ["t.py"]),
        (["--check-hash-based-pycs", "always", "t.py"], ["--check-hash-based-pycs", "always"], ["t.py"]),
        (["-I", "--", "-odd.py", "-c"], ["-I"], ["-odd.py", "-c"]),
        (["-u", "-", "x"], ["-u"], ["-", "x"]),
        (["-i"], ["-i"], []),
        ([], [], []),
    ],
)
def test_a_command_is_split_where_the_interpreter_splits_it(
    words: list[str], options: list[str], program: list[str]
) -> None:
    assert split_command(words) == (options, program)


def test_d15_without_a_launcher_the_error_says_what_is_missing(run_python: RunPython) -> None:
    done = run_python("-c", FORK, env={"PATH": ""}, check=False)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("RuntimeError: mpi_fork(2) found neither mpiexec nor mpirun")
    assert 'pip install "spinstat[mpich]"' in last


def test_without_mpi4py_the_error_says_so_before_a_job_is_started(run_python: RunPython) -> None:
    done = run_python("-c", "import sys; sys.modules['mpi4py'] = None; " + FORK, check=False)
    assert "RuntimeError: mpi_fork(2) needs mpi4py" in done.stderr


@pytest.mark.parametrize(
    "env", [{"OMPI_COMM_WORLD_SIZE": "2"}, {"PMI_RANK": "0"}, {"IN_MPI": "1"}, {"SPINSTAT_MPI": "0"}]
)
def test_d15_inside_a_launcher_it_returns(env: dict[str, str], run_python: RunPython) -> None:
    assert run_python("-c", FORK, env={"PATH": "", **env}).stdout == "went on\n"


def test_a_program_that_was_typed_in_cannot_be_run_again(run_python: RunPython, tmp_path: Path) -> None:
    done = run_python("-c", f"import sys; sys.orig_argv = [sys.executable, '-q']; {FORK}", check=False)
    assert "RuntimeError: mpi_fork runs the program again, but this one was typed in" in done.stderr


def test_the_launcher_beside_the_interpreter_is_taken_before_that_in_path(
    run_python: RunPython, tmp_path: Path
) -> None:
    for name in ("elsewhere", "beside"):
        (tmp_path / name).mkdir()
        script = tmp_path / name / "mpiexec"
        script.write_text(f"#!/bin/sh\necho {name} \"$@\"\nexit 7\n")
        script.chmod(0o755)
    (tmp_path / "beside" / "python").symlink_to(sys.executable)
    code = f"import sys; sys.executable = {str(tmp_path / 'beside' / 'python')!r}; {FORK}"
    path = f"{tmp_path / 'elsewhere'}:/usr/bin:/bin"
    env = {"PATH": path, "SPINSTAT_MPIEXEC_FLAGS": "--oversubscribe -x 'A B'"}
    done = run_python("-c", code, "arg", env=env, check=False)
    assert done.returncode == 7
    words = done.stdout.split(str(tmp_path / "beside" / "python"))[0]
    assert words == "beside --oversubscribe -x A B -n 2 "


@pytest.mark.parametrize("n", ["2", None, 1.5])
def test_a_number_of_ranks_of_another_kind_is_an_error(n: Any) -> None:
    with pytest.raises(TypeError, match="mpi_fork takes a whole number"):
        mpi_fork(n)


def test_a_script_that_cannot_be_found_again_is_an_error_that_says_why(
    run_python: RunPython, tmp_path: Path
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "sub" / "train.py").write_text(f"import os\nos.chdir({str(tmp_path)!r})\n{FORK}\n")
    done = run_python("../sub/train.py", cwd=tmp_path / "other", check=False)
    assert done.returncode == 1
    assert f"RuntimeError: mpi_fork runs ../sub/train.py again, which is not in {tmp_path}" in done.stderr
