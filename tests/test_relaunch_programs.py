"""python -m spinstat.run relaunch: command lines run again, scripts that cannot be imported, and ranks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import RunPython, clean_environment
from relaunching import SEEN, TRAIN, config, files, seen


def test_where_an_argument_is_missing_the_command_line_is_run_again(
    project: Path, run_python: RunPython, relaunch: RunPython
) -> None:
    run_python("-B", "train.py", "--lambda-env", "--seed=1", "--out", "runs/first", cwd=project)
    done = relaunch("../project/runs/first", "--set", "seed=2")
    assert seen(done.stdout) == f"{SEEN}|7|2|'relu'|{{'size': [1]}}"
    assert "env_fn: a lambda has no import path" in done.stderr
    assert f"-B train.py --lambda-env --seed=2 --out {project}/runs/first_2" in done.stderr
    assert config(project / "runs/first_2")["seed"] == 2


def test_where_neither_works_it_says_why_not_and_what_to_run(
    project: Path, run_python: RunPython, relaunch: RunPython
) -> None:
    run_python("train.py", "--lambda-env", cwd=project)
    done = relaunch("../project/runs/first", "--set", "seed=2", check=False)
    assert done.returncode == 1
    assert "env_fn: a lambda has no import path" in done.stderr
    assert "it has no option --seed to set" in done.stderr
    assert "train.py --lambda-env --seed 2" in done.stderr
    done = relaunch("../project/runs/first", check=False)
    assert done.returncode == 1
    assert "none of its words is the folder" in done.stderr
    assert sorted(os.listdir(project / "runs")) == ["first"]


def test_a_missing_argument_can_be_set(project: Path, run_python: RunPython, relaunch: RunPython) -> None:
    script = TRAIN.replace("env_fn()", "env_fn")
    (project / "train.py").write_text(script)
    run_python("train.py", "--lambda-env", cwd=project)
    done = relaunch("../project/runs/first", "--set", "env_fn=CartPole-v1")
    assert seen(done.stdout) == f"{SEEN}|'CartPole-v1'|0|'relu'|{{'size': [1]}}"


UNGUARDED = """
import sys
from spinstat import Logger

def train(seed, output_dir):
    Logger(output_dir, quiet=True).save_config(locals())
    print("SEEN", seed, sep="|")

train(1, sys.argv[1])
"""


@pytest.mark.parametrize("end", ["", 'if __name__ == "__main__":\n    print("done")\n'], ids=["bare", "half"])
def test_a_script_that_runs_when_it_is_imported_is_not_imported(
    project: Path, run_python: RunPython, relaunch: RunPython, end: str
) -> None:
    (project / "bare.py").write_text(UNGUARDED + end)
    run_python("bare.py", "runs/a", cwd=project)
    before = files(project / "runs/a")
    done = relaunch("../project/runs/a", "--set", "seed=2", check=False)
    assert done.returncode == 1
    assert 'outside of an `if __name__ == "__main__":` block (line 9)' in done.stderr
    assert "SEEN" not in done.stdout
    assert sorted(os.listdir(project / "runs")) == ["a"]
    done = relaunch("../project/runs/a")
    assert seen(done.stdout) == "1"
    assert files(project / "runs/a") == before
    assert config(project / "runs/a_2") == {"output_dir": str(project / "runs/a_2"), "seed": 1}


def test_a_run_of_two_ranks_has_two_again(project: Path, run_python: RunPython, relaunch: RunPython) -> None:
    script = """
from spinstat import EpochLogger, mpi_fork, proc_id
def train(seed=0, output_dir=""):
    logger = EpochLogger(output_dir, quiet=True)
    logger.save_config({"seed": seed, "output_dir": output_dir})
    logger.store(R=proc_id() + seed)
    logger.log_tabular("R", with_min_and_max=True)
    logger.dump_tabular()
if __name__ == "__main__":
    mpi_fork(2)
    train(output_dir="runs/ranks")
"""
    (project / "ranks.py").write_text(script)
    run_python("ranks.py", cwd=project)
    relaunch("../project/runs/ranks", "--set", "seed=10")
    rows = (project / "runs/ranks_2/progress.txt").read_text().splitlines()
    assert rows[1] == "10.5\t0.5\t11.0\t10.0"
    assert config(project / "runs/ranks_2")["seed"] == 10
    assert sorted(os.listdir(project / "runs")) == [".spinstat", "ranks", "ranks_2"]


LAUNCHED = """
import sys
from spinstat import EpochLogger, num_procs
def train(env_fn, output_dir):
    with EpochLogger(output_dir, quiet=True) as logger:
        logger.save_config({"env_fn": env_fn, "output_dir": output_dir})
        logger.log_tabular("Ranks", num_procs())
        logger.dump_tabular()
if __name__ == "__main__":
    train((lambda: 1) if sys.argv[1] == "lambda" else int, sys.argv[2])
"""


@pytest.mark.parametrize("env", ["lambda", "int"])
def test_ranks_of_a_launcher_are_started_again_for_a_call_and_for_a_command_line(
    project: Path, relaunch: RunPython, env: str
) -> None:
    (project / "launched.py").write_text(LAUNCHED)
    mpiexec = ["mpiexec", "-n", "2", sys.executable]
    words = [[*mpiexec, "launched.py", env, "runs/a"],
             [*mpiexec, "-m", "spinstat.run", "relaunch", "runs/a", "--output-dir", "runs/b"]]  # fmt: skip
    for command in words:
        subprocess.run(command, cwd=project, env=clean_environment(), check=True, timeout=100)
    told = relaunch("../project/runs/a").stderr
    assert ("The command line is run again" in told) == (env == "lambda")
    for name in ("a", "b", "a_2"):
        assert (project / "runs" / name / "progress.txt").read_text() == "Ranks\n2\n"
        assert config(project / "runs" / name)["output_dir"].endswith(f"runs/{name}")
