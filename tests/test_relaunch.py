"""python -m spinstat.run relaunch: a run once more, from launch.json, with other settings where wanted."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from conftest import RunPython
from relaunching import SEEN, config, files, seen


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
