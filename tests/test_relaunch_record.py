"""launch.json, which save_config writes beside config.json: how the run was started, and on what."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import RunPython
from thread_ranks import ThreadComm, on_ranks

import spinstat
from spinstat import EpochLogger, Logger


def launch(folder: str | Path) -> dict[str, Any]:
    found = json.loads(Path(folder, "launch.json").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def save(output_dir: str, config: object) -> None:
    with Logger(output_dir, quiet=True) as logger:
        logger.save_config(config)


def train(first: int, /, lr: float, *rest: int, seed: int = 0, output_dir: str = "", **more: Any) -> None:
    save(output_dir, locals())


class Quiet(EpochLogger):
    def save_config(self, config: object) -> None:
        super().save_config(config)


def with_subclass(output_dir: str) -> None:
    with Quiet(output_dir, quiet=True) as logger:
        logger.save_config(locals())


def inline(output_dir: str, seed: int = 0) -> None:
    logger = Logger(output_dir, quiet=True)
    logger.save_config(locals())


def test_the_function_is_recorded_with_every_kind_of_argument(output_dir: str) -> None:
    def call(first: int, /, lr: float, *rest: int, seed: int = 0, output_dir: str = "", **more: Any) -> None:
        logger = Logger(output_dir, quiet=True)
        logger.save_config(locals())

    module = sys.modules[__name__]
    call.__qualname__ = "call"
    call.__code__ = call.__code__.replace(co_qualname="call")
    module.call = call  # type: ignore[attr-defined]
    call(1, 2.5, 3, 4, output_dir=output_dir, act=(1,))
    assert launch(output_dir)["call"] == {
        "function": f"{__name__}:call",
        "positional": ["first", "lr"],
        "star": "rest",
        "double_star": "more",
        "arguments": {
            "first": 1, "lr": 2.5, "seed": 0, "output_dir": output_dir, "rest": {"$tuple": [3, 4]},
            "more": {"act": {"$tuple": [1]}},
        },
    }  # fmt: skip


def test_the_dict_that_save_config_gets_is_left_as_it_is(output_dir: str) -> None:
    """locals() of a frame is one dict: looking at the frame would write into it."""

    def run(seed: int) -> None:
        config = locals()
        config["seed"] = 7  # not a local variable any more
        logger = Logger(output_dir, quiet=True)
        logger.save_config(config)
        assert config == {"seed": 7, "output_dir": output_dir}

    run(3)
    assert json.loads(Path(output_dir, "config.json").read_text())["seed"] == 7


@pytest.mark.parametrize(
    ("function", "name"),
    [(inline, "inline"), (with_subclass, "with_subclass")],
    ids=["function", "subclass"],
)
def test_the_caller_is_found_past_the_loggers_own_methods(
    output_dir: str, function: Callable[[str], None], name: str
) -> None:
    function(output_dir)
    assert launch(output_dir)["call"]["function"] == f"{__name__}:{name}"
    assert launch(output_dir)["call"]["arguments"]["output_dir"] == output_dir


def test_a_helper_that_is_not_given_all_arguments_tells_which(output_dir: str) -> None:
    train(1, 2.0, output_dir=output_dir)
    call = launch(output_dir)["call"]
    assert call["function"] == f"{__name__}:save"
    assert call["arguments"]["output_dir"] == output_dir
    assert call["arguments"]["config"] == {
        "$unrecorded": "save_config was not given 'config'; give it locals()"
    }


def test_a_function_that_cannot_be_imported_is_recorded_as_such(output_dir: str) -> None:
    def here() -> None:
        Logger(output_dir, quiet=True).save_config(locals())

    here()
    assert "a function within a function" in launch(output_dir)["call"]["$unrecorded"]


SCRIPT = """
import asyncio, functools
from spinstat import Logger

def note(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)
    return wrapper

@note
def decorated(output_dir):
    Logger(output_dir, quiet=True).save_config(locals())

async def slow(output_dir):
    Logger(output_dir, quiet=True).save_config(locals())

class Trainer:
    @staticmethod
    def static(output_dir):
        Logger(output_dir, quiet=True).save_config(locals())

    @classmethod
    def of_class(cls, output_dir):
        Logger(output_dir, quiet=True).save_config(locals())

def shadowed(output_dir):
    Logger(output_dir, quiet=True).save_config(locals())

before, shadowed = shadowed, None

if __name__ == "__main__":
    decorated("decorated")
    asyncio.run(slow("slow"))
    Trainer.static("static")
    Trainer.of_class("of_class")
    before("shadowed")
    Logger("top", quiet=True).save_config({"seed": 1})
"""


def test_every_kind_of_caller_is_named_or_told_why_not(run_python: RunPython, tmp_path: Path) -> None:
    (tmp_path / "kinds.py").write_text(SCRIPT)
    run_python("kinds.py", "--lr", "1")
    found = {name: launch(tmp_path / name)["call"] for name in
             ("decorated", "slow", "static", "of_class", "shadowed", "top")}  # fmt: skip
    named = {name: call.get("function", call.get("$unrecorded")) for name, call in found.items()}
    assert named == {
        "decorated": "__main__:decorated",
        "slow": "slow is a coroutine or a generator",
        "static": "__main__:Trainer.static",
        "of_class": "__main__:Trainer.of_class",
        "shadowed": "shadowed is not what __main__ has under that name",
        "top": "save_config was called outside of any function",
    }
    assert found["of_class"]["arguments"] == {"output_dir": "of_class"}
    program = launch(tmp_path / "top")["program"]
    script = str(tmp_path / "kinds.py")
    assert program["words"][1:] == ["kinds.py", "--lr", "1"]
    assert (program["cwd"], program["script"], program["module"]) == (str(tmp_path), script, None)
    assert SCRIPT.splitlines()[program["line"] - 1].strip().startswith('Logger("top"')


def test_versions_are_those_of_what_is_loaded(run_python: RunPython, tmp_path: Path) -> None:
    run_python("-c", "import spinstat; spinstat.Logger('run', quiet=True).save_config({})")
    versions = launch(tmp_path / "run")["versions"]
    assert set(versions) == {"python", "spinstat", "numpy"}
    assert versions["spinstat"] == spinstat.__version__
    assert versions["python"] == ".".join(map(str, sys.version_info[:3]))


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "init.defaultBranch=main"]
    command = ["git", *identity, "-C", str(folder), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=30).stdout.strip()


def test_the_commit_and_whether_the_tree_was_dirty(run_python: RunPython, tmp_path: Path) -> None:
    source = tmp_path / "project" / "src"
    source.mkdir(parents=True)
    script = source / "train.py"
    script.write_text(
        "import sys\nfrom spinstat import Logger\ndef train(output_dir):\n"
        "    Logger(output_dir, quiet=True).save_config(locals())\n"
        "if __name__ == '__main__':\n    train(sys.argv[1])\n"
    )
    run_python(str(script), "none")
    assert launch(tmp_path / "none")["git"] is None
    git(tmp_path / "project", "init")
    run_python(str(script), "empty")
    assert launch(tmp_path / "empty")["git"]["commit"] is None
    git(source, "add", "train.py")
    git(source, "commit", "-m", "one")
    commit = git(source, "rev-parse", "HEAD")
    run_python(str(script), "clean", env={"GIT_DIR": str(tmp_path / "elsewhere")})
    clean = {"top": str(tmp_path / "project"), "commit": commit, "dirty": False}
    assert launch(tmp_path / "clean")["git"] == clean
    script.write_text(script.read_text() + "# more\n")
    run_python(str(script), "dirty")
    assert launch(tmp_path / "dirty")["git"]["dirty"] is True
    run_python(str(script), "without", env={"PATH": ""})
    assert "git" in launch(tmp_path / "without")["git"]["$unrecorded"]
    (tmp_path / "project" / ".git" / "HEAD").write_text("nonsense")
    run_python(str(script), "broken")
    assert "git: fatal" in launch(tmp_path / "broken")["git"]["$unrecorded"]


def test_rank_0_writes_it_with_the_number_of_ranks(output_dir: str) -> None:
    def program(comm: ThreadComm) -> None:
        Logger(output_dir, comm=comm, quiet=True).save_config({"rank": comm.rank})

    on_ranks(3, program)
    assert launch(output_dir)["ranks"] == 3
    assert launch(output_dir)["started_by"] is None


def test_a_file_that_cannot_be_written_is_a_warning(output_dir: str, monkeypatch: pytest.MonkeyPatch) -> None:
    replace = os.replace

    def full(source: Any, target: Any) -> None:
        if str(target).endswith("launch.json"):
            raise OSError(errno.ENOSPC, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(os, "replace", full)
    with pytest.warns(UserWarning, match=r"launch\.json is not written.*No space left"):
        inline(output_dir)
    assert sorted(os.listdir(output_dir)) == [".spinstat", "config.json", "progress.txt"]
    assert os.listdir(Path(output_dir, ".spinstat")) == []


def test_a_failure_of_the_record_is_in_the_record(output_dir: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone() -> str:
        raise FileNotFoundError("the working directory is gone")

    logger = Logger(output_dir, quiet=True)
    monkeypatch.setattr(os, "getcwd", gone)
    logger.save_config({})
    assert "the working directory is gone" in launch(output_dir)["program"]["$unrecorded"]
