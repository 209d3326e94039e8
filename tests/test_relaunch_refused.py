"""python -m spinstat.run relaunch: what is refused, and what is told of a run that is no longer the same."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import RunPython
from relaunching import TRAIN


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
