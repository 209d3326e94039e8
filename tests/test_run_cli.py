"""python -m spinstat.run: the original's flags, its output, and errors that are told and counted."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import agents
import numpy as np
import pytest
from conftest import RunPython

from spinstat import EpochLogger
from spinstat.run import main

IMPORTABLE = {"PYTHONPATH": str(Path(__file__).parent)}


@pytest.fixture
def run_dir(output_dir: str) -> str:
    """A run with checkpoints 3 and 7 and one without a number, whose environments differ in their length."""
    with EpochLogger(output_dir, quiet=True) as logger:
        logger.setup_pytorch_saver(agents.Lean())
        for itr in (3, 7, None):
            logger.save_state({"env": agents.Counter(itr or 5)}, itr)
    return output_dir


def lengths(stdout: str) -> list[int]:
    return [int(found) for found in re.findall(r"EpLen (\d+)$", stdout, re.MULTILINE)]


@pytest.mark.parametrize("module", ["spinstat.run", "spinstat.utils.test_policy"])
def test_a_policy_plays_in_a_process_of_its_own_and_stdout_is_the_originals(
    run_dir: str, run_python: RunPython, module: str
) -> None:
    words = ["test_policy"] if module == "spinstat.run" else []
    done = run_python("-m", module, *words, run_dir, "--norender", "-n", "2", env=IMPORTABLE)
    shown = re.sub(r"(Logging data to ).*", r"\1FOLDER", done.stdout)
    assert shown.splitlines() == [
        "", "", f"Loading from {run_dir}/pyt_save/model7.pt.", "", "",
        "Logging data to FOLDER",
        "Episode 0 \t EpRet 34.000 \t EpLen 7",
        "Episode 1 \t EpRet 34.000 \t EpLen 7",
        "-------------------------------------",
        "|    AverageEpRet |              34 |",
        "|        StdEpRet |               0 |",
        "|        MaxEpRet |              34 |",
        "|        MinEpRet |              34 |",
        "|           EpLen |               7 |",
        "-------------------------------------",
    ]  # fmt: skip
    assert "The last checkpoint of" in done.stderr and "model7.pt" in done.stderr


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--episodes", "2"], [7, 7]),
        (["-n", "1", "--itr", "3"], [3]),
        (["-n", "1", "-i", "3", "-l", "2"], [2]),
        (["-n", "1", "--len", "4"], [4]),
        (["-n", "1", "--len", "0", "--itr", "-1"], [7]),
        (["-n", "1", "-i=-5"], [7]),
        (["-nr", "-n", "3"], [7, 7, 7]),
    ],
)
def test_the_flags_are_the_originals(
    run_dir: str, capsys: pytest.CaptureFixture[str], flags: list[str], expected: list[int]
) -> None:
    assert main(["test_policy", run_dir, *flags]) == 0
    assert lengths(capsys.readouterr().out) == expected


def test_a_hundred_episodes_are_the_default(run_dir: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["test_policy", run_dir, "-nr"]) == 0
    assert len(lengths(capsys.readouterr().out)) == 100


class Watched(agents.Counter):
    """Tells of rendering and of actions."""

    rendered_at: list[int] = []  # noqa: RUF012
    actions: list[Any] = []  # noqa: RUF012

    def render(self) -> None:
        self.rendered_at.append(self.t)

    def step(self, action: Any) -> Any:
        self.actions.append(np.asarray(action).tolist())
        return super().step(0)


@pytest.mark.parametrize("flag", ["--norender", "-nr", None])
def test_norender_does_not_render(output_dir: str, flag: str | None) -> None:
    with EpochLogger(output_dir, quiet=True) as logger:
        logger.setup_pytorch_saver(agents.Lean())
        logger.save_state({"env": Watched(2)})
    Watched.rendered_at.clear()
    assert main(["test_policy", output_dir, "-n", "1", *([flag] if flag else [])]) == 0
    assert Watched.rendered_at == ([] if flag else [0, 1])


@pytest.mark.parametrize("flag", ["--deterministic", "-d", None])
def test_F15_deterministic_reaches_the_model(output_dir: str, flag: str | None) -> None:
    with EpochLogger(output_dir, quiet=True) as logger:
        logger.setup_pytorch_saver(agents.Soft())
        logger.save_state({"env": Watched(1)})
    Watched.actions.clear()
    assert main(["test_policy", output_dir, "-nr", "-n", "1", *([flag] if flag else [])]) == 0
    assert (Watched.actions == [[0.0] * 4]) == (flag is not None)


def test_no_environment_ends_with_1_and_its_reasons(
    output_dir: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with EpochLogger(output_dir, quiet=True) as logger:
        logger.setup_pytorch_saver(agents.Lean())
        logger.save_state({})
    assert main(["test_policy", output_dir]) == 1
    told = capsys.readouterr().err
    assert "AssertionError: Environment not found!" in told and "it has no 'env'" in told


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["test_policy", "no/such/folder"], "FileNotFoundError: no/such/folder is no folder"),
        (["test_policy", "DIR", "--itr", "4"], "has no checkpoint 4; there are: 3, 7"),
    ],
)
def test_what_cannot_be_loaded_ends_with_1_and_says_why(
    run_dir: str, capsys: pytest.CaptureFixture[str], words: list[str], complaint: str
) -> None:
    assert main([run_dir if word == "DIR" else word for word in words]) == 1
    assert complaint in capsys.readouterr().err


def test_a_broken_model_ends_with_1_and_names_the_file(
    run_dir: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(run_dir, "pyt_save", "model7.pt").write_bytes(b"")
    for stored in Path(run_dir, ".spinstat").glob("c*/torch"):
        stored.write_bytes(b"")
    assert main(["test_policy", run_dir]) == 1
    assert "model7.pt is empty" in capsys.readouterr().err


class Asserting(agents.Counter):
    def step(self, action: Any) -> Any:
        raise AssertionError("of the environment")


@pytest.mark.parametrize(
    ("width", "env", "error", "text"),
    [
        (4, Asserting(), AssertionError, "of the environment"),
        (3, agents.Counter(), RuntimeError, "size of tensor"),
    ],
    ids=["environment", "policy"],
)
def test_an_error_of_what_is_played_keeps_its_traceback(
    output_dir: str, width: int, env: Any, error: type[Exception], text: str
) -> None:
    with EpochLogger(output_dir, quiet=True) as logger:
        logger.setup_pytorch_saver(agents.Lean(width=width))
        logger.save_state({"env": env})
    with pytest.raises(error, match=text):
        main(["test_policy", output_dir, "-nr"])


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["no_such_command"], "invalid choice: 'no_such_command' (choose from"),
        ([], "required: COMMAND"),
        (["test_policy"], "required: DIR"),
        (["test_policy", "x", "--nonsense"], "unrecognized arguments: --nonsense"),
        (["test_policy", "x", "-n", "many"], "invalid int value: 'many'"),
    ],
)
def test_a_command_line_that_is_none_ends_with_2(
    words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert complaint in capsys.readouterr().err


def test_the_exit_status_reaches_the_shell(run_python: RunPython, tmp_path: Path) -> None:
    assert run_python("-m", "spinstat.run", "nonsense", check=False).returncode == 2
    missing = os.path.join(tmp_path, "none")
    assert run_python("-m", "spinstat.run", "test_policy", missing, check=False).returncode == 1


def test_help_lists_the_commands_and_their_flags(capsys: pytest.CaptureFixture[str]) -> None:
    for words, expected in ((["--help"], ["test_policy"]), (["test_policy", "-h"], ["--norender", "-nr"])):
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 0
        shown = capsys.readouterr().out
        assert all(word in shown for word in expected)
