"""The plotter and the comparison read text: nothing else in a run folder is opened, and no pickle is read."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from conftest import RunPython
from plots import seeds

# Runs a command of spinstat.run and prints what it opened in the folder "data", and what it unpickled there.
WATCHED = """
import json, os, sys

base = os.path.realpath("data") + os.sep
opened, events = set(), []


def watch(event, arguments):
    if event == "open" and isinstance(arguments[0], (str, bytes)):
        path = os.path.realpath(os.fsdecode(arguments[0]))
        if path.startswith(base):
            opened.add(path[len(base):])
    elif event in ("pickle.find_class", "exec", "compile", "import") and base in repr(arguments):
        events.append(event)
    elif event == "pickle.find_class":
        events.append(f"{event} {arguments}")


sys.addaudithook(watch)
from spinstat.run import main

status = main(sys.argv[1:])
print(json.dumps({"status": status, "opened": sorted(opened), "events": events}), file=sys.stderr)
"""


class Hostile:
    """Writes a file when it is unpickled."""

    def __reduce__(self) -> Any:
        return exec, ("open('owned', 'w').close()",)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Runs with files in them that run code when they are unpickled or imported."""
    folder = seeds(tmp_path / "data", "ppo", [[0, 1], [2, 3]])
    code = "open('owned', 'w').close()"
    for run in list(folder.iterdir()):
        for name in ("vars.pkl", "model.pt", "pyt_save/model.pt", "progress.pkl", ".spinstat/state.pkl"):
            (run / name).parent.mkdir(exist_ok=True)
            (run / name).write_bytes(pickle.dumps(Hostile()))
        for name in ("matplotlib.py", "config.py", "__init__.py", "conftest.py"):
            (run / name).write_text(code)
        (run / "launch.json").write_text(json.dumps({"command": ["touch", "owned"]}))
        config = {"exp_name": "ppo", "__import__('os')": {"py/object": "os.system"}, "a": "!!python/object"}
        (run / "config.json").write_text(json.dumps(config))
    return folder


def test_the_hostile_files_would_run_code(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pickle.loads((data / "ppo_s0/vars.pkl").read_bytes())
    assert (tmp_path / "owned").exists()


@pytest.mark.parametrize(
    "words",
    [["plot", "data", "--out", "a.png"], ["compare", "data", "--out", "a.svg"]],
    ids=["plot", "compare"],
)
def test_only_the_rows_and_the_configuration_are_opened(
    data: Path, tmp_path: Path, run_python: RunPython, words: list[str]
) -> None:
    done = run_python("-c", WATCHED, *words, cwd=tmp_path)
    told = json.loads(done.stderr.splitlines()[-1])
    expected = [f"ppo_s{seed}/{name}" for seed in (0, 1) for name in ("config.json", "progress.txt")]
    assert told == {"status": 0, "opened": expected, "events": []}
    assert not (tmp_path / "owned").exists()
