"""README.md says what is so: its programs run and print what it shows, its commands and links exist."""

from __future__ import annotations

import importlib.metadata
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT, RunPython

README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = [(match[1], match[2]) for match in BLOCK.finditer(README)]
PROGRAMS = [index for index, (language, _) in enumerate(BLOCKS) if language == "python"]
COMMANDS = [
    line.partition("  #")[0].strip()
    for language, text in BLOCKS
    if language == "bash"
    for line in text.splitlines()
    if line
]


def test_the_readme_has_blocks_of_known_kinds_only() -> None:
    assert {language for language, _ in BLOCKS} == {"bash", "python", "text"}
    assert 2 * len(BLOCKS) == len(re.findall("^```", README, re.MULTILINE)), "a block that is not seen here"


@pytest.mark.parametrize("index", PROGRAMS)
def test_a_python_block_runs_and_prints_the_text_block_after_it(index: int, run_python: RunPython) -> None:
    printed = run_python("-W", "error", "-c", BLOCKS[index][1]).stdout
    language, shown = BLOCKS[index + 1] if index + 1 < len(BLOCKS) else ("", "")
    assert printed == (shown if language == "text" else "")


def test_the_two_commands_come_first() -> None:
    assert COMMANDS[:2] == ["make demo", "make test"]
    assert README.index("make test") < 1800, "not on the first screen"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_one_that_works(command: str) -> None:
    words = shlex.split(command)
    if words[0] == "make":
        plan = subprocess.run([*words, "-n"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        assert {"demo": "examples/ppo.py", "test": "pytest"}[words[1]] in plan
    elif words[0] == "pip":  # `make wheel` installs for real, into empty environments
        assert words[1] == "install"
        (target,) = words[2:]
        wanted = re.fullmatch(r"\.(?:\[([\w,]+)\])?", target)
        assert wanted is not None
        extras = set(importlib.metadata.metadata("spinstat").get_all("Provides-Extra") or [])
        assert set((wanted[1] or "").split(",")) - {""} <= extras
    else:
        assert words[0] == "python", "a command that this file does not know"


def test_the_commands_of_the_example_work_one_after_the_other(run_python: RunPython, tmp_path: Path) -> None:
    """As they stand but shorter: one epoch of training, two episodes of the policy."""
    train, *reload = [shlex.split(command)[1:] for command in COMMANDS if command.startswith("python ")]
    run_python(str(ROOT / train[0]), *train[1:], "--epochs", "1", "--steps", "200")
    assert (tmp_path / "runs" / "ppo" / "learning_curve.png").exists()
    assert len(reload) == 2
    for words in reload:
        program = [str(ROOT / words[0]), *words[1:]] if words[0].endswith(".py") else words
        printed = run_python(*program, "--episodes", "2").stdout
        assert "AverageEpRet" in printed


@pytest.mark.parametrize("link", re.findall(r"\]\((?!https?:)([^)#]+)\)", README))
def test_a_link_leads_to_a_file(link: str) -> None:
    assert (ROOT / link).exists()
