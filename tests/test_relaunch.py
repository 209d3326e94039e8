"""python -m spinstat.run relaunch: a run once more, from launch.json, with other settings where wanted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import RunPython, clean_environment

TRAIN = """
import argparse, functools, json, sys
import numpy as np
from spinstat import EpochLogger

print("IMPORTED")

class Net:
    pass

def make_env(width):
    return width

def train(net, lr, hidden=(64,), table=None, env_fn=None, seed=0, act="relu", logger_kwargs=None, **more):
    logger = EpochLogger(**logger_kwargs)
    logger.save_config(locals())
    logger.log_tabular("Seed", seed)
    logger.dump_tabular()
    seen = [net, lr, hidden, table, env_fn(), seed, act, more]
    print("SEEN", __name__, *map(repr, seen), sep="|")

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default="runs/first")
    parser.add_argument("--lambda-env", action="store_true")
    args = parser.parse_args()
    env_fn = (lambda: 7) if args.lambda_env else functools.partial(make_env, 5)
    train(Net, np.float32(0.1), (1, (2,)), {1: Net}, env_fn, args.seed,
          logger_kwargs={"output_dir": args.out, "exp_name": "first"}, size=[1])
"""
SEEN = "__main__|<class '__main__.Net'>|np.float32(0.1)|(1, (2,))|{1: <class '__main__.Net'>}"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a training script; whoever is elsewhere must be able to relaunch its runs."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.py").write_text(TRAIN)
    (tmp_path / "elsewhere").mkdir()
    return folder


@pytest.fixture
def relaunch(project: Path, run_python: RunPython) -> RunPython:
    """Run the command from another folder than the run's."""

    def run(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
        return run_python(
            "-m", "spinstat.run", "relaunch", *words, cwd=project.parent / "elsewhere", **options
        )

    return run


def seen(stdout: str) -> str:
    (line,) = [line for line in stdout.splitlines() if line.startswith("SEEN|")]
    return line.removeprefix("SEEN|")


def config(folder: Path) -> dict[str, Any]:
    found = json.loads((folder / "config.json").read_text())
    assert isinstance(found, dict)
    return found


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_call_is_repeated_with_arguments_of_the_same_types_in_a_new_folder(
    project: Path, run_python: RunPython, relaunch: RunPython
) -> None:
    first = run_python("train.py", "--seed", "1", cwd=project)
    before = files(project / "runs/first")
    again = relaunch("../project/runs/first")
    assert seen(first.stdout) == f"{SEEN}|5|1|'relu'|{{'size': [1]}}"
    assert seen(again.stdout) == seen(first.stdout)
    assert again.stdout.count("IMPORTED") == 1
    assert files(project / "runs/first") == before
    assert config(project / "runs/first_2")["logger_kwargs"] == {
        "exp_name": "first", "output_dir": str(project / "runs/first_2")
    }  # fmt: skip


def test_a_relaunched_run_can_be_relaunched(
    project: Path, run_python: RunPython, relaunch: RunPython
) -> None:
    run_python("train.py", cwd=project)
    relaunch("../project/runs/first", "--set", "seed=4", "--output-dir", "second")
    second = project.parent / "elsewhere" / "second"
    again = relaunch("second", "--set", "hidden=(8,)")
    assert seen(again.stdout) == f"{SEEN}|5|4|'relu'|{{'size': [1]}}".replace("(1, (2,))", "(8,)")
    assert config(second.with_name("second_2"))["seed"] == 4
    words = json.loads((second / "launch.json").read_text())["program"]["words"]
    assert words[1:] == ["-m", "spinstat.run", "relaunch", str(project / "runs/first"), "--set", "seed=4",
                         "--output-dir", str(second)]  # fmt: skip


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("act=torch.nn.ReLU", "<class 'torch.nn.modules.activation.ReLU'>"),
        ("act=torch.nn.functional.relu", "<function relu at 0x"),
        ("act=sum", "'sum'"),
        ("act=exit()", "'exit()'"),
        ("act=os.system", "'os.system'"),
        ("act=torch.hub.load", "'torch.hub.load'"),
        ("act=__import__('os').mkdir('evil')", "\"__import__('os').mkdir('evil')\""),
        ("act=007", "'007'"),
        ("act=[32,32]", "[32, 32]"),
        ("act=1e-3", "0.001"),
        ("act=-1", "-1"),
        ("act=None", "None"),
        ("act=", "''"),
        ("act=a=b", "'a=b'"),
        ("act={'a':(1,2)}", "{'a': (1, 2)}"),
        ("size=2", "'relu'|{'size': 2}"),
        ("new=2", "'relu'|{'size': [1], 'new': 2}"),
    ],
    ids=str,
)
def test_H10_words_of_set_are_literals_allowed_names_or_text(
    project: Path, run_python: RunPython, relaunch: RunPython, setting: str, expected: str
) -> None:
    run_python("train.py", cwd=project)
    again = relaunch("../project/runs/first", "--set", setting)
    assert f"|{expected}" in seen(again.stdout)
    assert not list(project.rglob("evil"))


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--set", "nope"], "--set takes NAME=VALUE"),
        (["--set", "a b=1"], "--set takes NAME=VALUE"),
        (["--set", "act=torch.nn.Relu"], "act: torch has no nn.Relu"),
        (["--set", "lr.x=1"], "--set lr.x: entries can only be set of a dict"),
        (["--set", "logger_kwargs.output_dir=x", "--output-dir", "y"], "both --output-dir and --set"),
        (["--output-dir", "../project"], "../project is there already"),
    ],
)
def test_a_request_that_cannot_be_met_is_refused(
    project: Path, run_python: RunPython, relaunch: RunPython, words: list[str], complaint: str
) -> None:
    run_python("train.py", cwd=project)
    done = relaunch("../project/runs/first", *words, check=False)
    assert done.returncode == 1
    assert "Refused. " in done.stderr
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr
    assert "SEEN" not in done.stdout


def test_overwrite_lets_it_write_where_it_wrote(
    project: Path, run_python: RunPython, relaunch: RunPython
) -> None:
    run_python("train.py", cwd=project)
    relaunch("../project/runs/first", "--overwrite", "--set", "seed=9")
    assert config(project / "runs/first")["seed"] == 9
    assert (project / "runs/first/progress.txt.1").read_text() == "Seed\n0\n"
    assert sorted(os.listdir(project / "runs")) == ["first"]


def test_a_set_output_dir_is_taken_as_it_is(
    project: Path, run_python: RunPython, relaunch: RunPython
) -> None:
    run_python("train.py", cwd=project)
    relaunch("../project/runs/first", "--set", "logger_kwargs.output_dir=runs/own")
    assert config(project / "runs/own")["logger_kwargs"]["output_dir"] == "runs/own"


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


MODULE = """
from pathlib import Path
from .tools import act
from spinstat import Logger

class Trainer:
    @classmethod
    def run(cls, act, log_dir, *sizes, seed=0):
        logger = Logger(log_dir, quiet=True)
        logger.save_config({k: v for k, v in locals().items() if k != "logger"})
        print("SEEN", cls.__name__, act(2), log_dir.name, sizes, seed, sep="|")

if __name__ == "__main__":
    Trainer.run(act, Path("out") / "a", 1, 2)
"""


def test_a_module_a_class_method_star_arguments_and_paths(
    project: Path, run_python: RunPython, relaunch: RunPython
) -> None:
    (project / "pkg").mkdir()
    (project / "pkg" / "__init__.py").write_text("")
    (project / "pkg" / "tools.py").write_text("def act(x):\n    return 10 * x\n")
    (project / "pkg" / "train.py").write_text(MODULE)
    run_python("-m", "pkg.train", cwd=project)
    done = relaunch("../project/out/a", "--set", "seed=3")
    assert seen(done.stdout) == "Trainer|20|a_2|(1, 2)|3"
    assert (project / "out/a_2/config.json").exists()


def test_a_run_in_a_default_folder_gets_a_new_one(
    project: Path, run_python: RunPython, relaunch: RunPython
) -> None:
    script = """
from spinstat import Logger
def train(seed=0, output_dir=None):
    logger = Logger(output_dir, quiet=True)
    logger.save_config({"seed": seed, "output_dir": output_dir})
    print("SEEN", seed, logger.output_dir, sep="|")
if __name__ == "__main__":
    train()
"""
    (project / "default.py").write_text(script)
    folder = seen(run_python("default.py", cwd=project).stdout).split("|")[1]
    seed, again = seen(relaunch(folder, "--set", "seed=1").stdout).split("|")
    assert (seed, os.path.dirname(again)) == ("1", os.path.dirname(folder))
    assert again != folder
    given = seen(relaunch(folder, "--output-dir", "here").stdout)
    assert given == f"0|{project.parent}/elsewhere/here"


def test_a_moved_folder_is_followed_and_a_gone_script_is_named(
    project: Path, run_python: RunPython, relaunch: RunPython
) -> None:
    run_python("train.py", cwd=project)
    (project / "runs/first").rename(project.parent / "moved")
    relaunch("../moved")
    assert (project.parent / "moved_2" / "config.json").exists()
    (project / "train.py").unlink()
    done = relaunch("../moved", check=False)
    assert done.returncode == 1
    assert f"the run's script, {project}/train.py, is gone" in done.stderr
    assert f"the script train.py is gone from {project}" in done.stderr


def test_a_function_that_has_changed_is_refused(
    project: Path, run_python: RunPython, relaunch: RunPython
) -> None:
    run_python("train.py", cwd=project)
    (project / "train.py").write_text(TRAIN.replace("table=None, ", "").replace("**more", "size=None"))
    done = relaunch("../project/runs/first", check=False)
    assert "__main__:train no longer takes the recorded arguments" in done.stderr
    (project / "train.py").write_text(
        TRAIN.replace("class Net:", "class NetOfToday:").replace("Net,", "None,")
    )
    done = relaunch("../project/runs/first", check=False)
    assert "net: __main__ has no Net" in done.stderr
    assert "table, a key" not in done.stderr


def test_what_the_function_raises_ends_it_with_its_traceback(
    project: Path, run_python: RunPython, relaunch: RunPython
) -> None:
    run_python("train.py", cwd=project)
    (project / "train.py").write_text(TRAIN.replace("seen = [", "raise RuntimeError('diverged') ; seen = ["))
    done = relaunch("../project/runs/first", check=False)
    assert done.returncode == 1
    assert "RuntimeError: diverged" in done.stderr
    assert 'train.py", line' in done.stderr


def test_differences_in_version_and_commit_are_told(
    project: Path, run_python: RunPython, relaunch: RunPython
) -> None:
    run_python("train.py", cwd=project)
    path = project / "runs/first/launch.json"
    record = json.loads(path.read_text())
    record["versions"].update(numpy="1.2.3", python="3.9.0", gone="1")
    subprocess.run(["git", "init", "-q", str(project)], check=True, timeout=30)
    record["git"] = {"top": str(project), "commit": "abc", "dirty": True}
    path.write_text(json.dumps(record))
    told = relaunch("../project/runs/first").stderr
    for part in (
        "had numpy 1.2.3; this is ",
        "had python 3.9.0",
        "another commit: abc then",
        "were not committed",
    ):
        assert part in told
    assert "spinstat" not in told


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


PATHS = """
import os
from spinstat import Logger

def train(output_dir, exp_name, videos, data):
    with Logger(output_dir, quiet=True) as logger:
        logger.save_config({"output_dir": output_dir, "exp_name": exp_name, "videos": videos, "data": data})

if __name__ == "__main__":
    train("first", "first", os.path.join("first", "videos"), "./first_data")
"""


def test_paths_in_the_old_folder_follow_and_names_that_read_alike_stay(
    project: Path, run_python: RunPython, relaunch: RunPython
) -> None:
    (project / "paths.py").write_text(PATHS)
    run_python("paths.py", cwd=project)
    relaunch("../project/first")
    new = f"{project}/first_2"
    assert config(project / "first_2") == {
        "output_dir": new, "exp_name": "first", "videos": f"{new}/videos", "data": "./first_data"
    }  # fmt: skip


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


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (None, "has no launch.json"),
        ("{", "launch.json is not JSON"),
        ("[]", "launch.json holds no JSON object"),
        ("{}", "launch.json is of format None"),
        ({"folder": 3}, "launch.json is damaged: folder is 3"),
        ({"program": {}}, "launch.json is damaged: program.words is None"),
        ({"program": {"$unrecorded": "why"}}, "the program was not recorded: why"),
        ({"call": {"function": "os:mkdir"}}, "launch.json is damaged: call.positional is None"),
        ({"call": {"function": "os:mkdir", "positional": ["a"], "star": None, "double_star": None,
                   "arguments": {"b": 1}}}, "launch.json is damaged: these are no arguments of the call"),
        ({"ranks": 2, "started_by": "torchrun"}, "torchrun --nproc-per-node 2 -m spinstat.run relaunch DIR"),
    ],
    ids=lambda value: json.dumps(value)[:30],
)
def test_a_damaged_launch_json_is_refused(
    project: Path, run_python: RunPython, relaunch: RunPython, damage: Any, complaint: str
) -> None:
    run_python("train.py", cwd=project)
    path = project / "runs/first/launch.json"
    if damage is None:
        path.unlink()
    else:
        record = {**json.loads(path.read_text()), **damage} if isinstance(damage, dict) else damage
        path.write_text(record if isinstance(record, str) else json.dumps(record))
    done = relaunch("../project/runs/first", check=False)
    assert done.returncode == 1
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(os.listdir(project / "runs")) in (["first"], [".spinstat", "first"])


def test_a_launch_json_from_outside_of_the_folder_is_refused(
    project: Path, run_python: RunPython, relaunch: RunPython
) -> None:
    run_python("train.py", cwd=project)
    path = project / "runs/first/launch.json"
    path.rename(project / "other.json")
    path.symlink_to(project / "other.json")
    done = relaunch("../project/runs/first", check=False)
    assert done.returncode == 1
    assert "launch.json leads out of the folder" in done.stderr


def test_a_relaunched_run_refers_to_the_first_one_for_what_it_cannot_set(
    project: Path, run_python: RunPython, relaunch: RunPython
) -> None:
    (project / "train.py").write_text(TRAIN.replace("**more", "size=None").replace("act, more", "act, size"))
    run_python("train.py", cwd=project)
    relaunch("../project/runs/first", "--set", "seed=1")
    done = relaunch("../project/runs/first_2", "--set", "epochs=1", check=False)
    assert done.returncode == 1
    assert "__main__:train has no argument 'epochs' to set; it has: net, lr, hidden, table" in done.stderr
    assert f"it is a relaunch of {project}/runs/first" in done.stderr
