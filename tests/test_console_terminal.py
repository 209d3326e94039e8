"""The rich console on pseudo-terminals, which have a size, and which people resize and leave."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from conftest import clean_environment
from consoles import last_table, without_styles
from rows import content

PATIENCE = 60  # seconds for a program to say its next word

# A row for each line on stdin, so that the test decides what the terminal is when it is printed.
PROGRAM = """
import sys
from spinstat import EpochLogger
logger = EpochLogger(sys.argv[1], console="rich")
logger.save_config({"epochs": 4})
for epoch, line in enumerate(sys.stdin):
    logger.store({"Loss/Pi": [epoch, epoch + 2.0]})
    logger.log_tabular("Epoch", epoch)
    logger.log_tabular("Loss/Pi")
    logger.log_tabular("kéy", "[red]")
    logger.log_tabular("TotalEnvInteracts", 1234567 * (epoch + 1))
    logger.dump_tabular()
    print("next", flush=True)
logger.close()
"""


class Terminal:
    """A program whose stdout is a pseudo-terminal; stderr is a pipe of its own."""

    def __init__(self, output_dir: str, columns: int, environment: Mapping[str, str]) -> None:
        self.master, slave = pty.openpty()
        self.resize(columns)
        self.output_dir = output_dir
        clean = clean_environment(environment)
        for name in {"COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"} - set(environment):
            clean.pop(name, None)
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, output_dir],
            stdin=subprocess.PIPE, stdout=slave, stderr=subprocess.PIPE,
            env={**clean, "TERM": environment.get("TERM", "xterm-256color")},
        )  # fmt: skip
        os.close(slave)
        self.open = True

    def hang_up(self) -> None:
        if self.open:
            os.close(self.master)
        self.open = False

    def resize(self, columns: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def ask(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def row(self) -> str:
        """What the program prints with its next row."""
        self.ask()
        seen = b""
        end = time.monotonic() + PATIENCE
        while not seen.endswith(b"next\r\n"):
            ready, _, _ = select.select([self.master], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"the program says no more after {seen!r}"
            seen += os.read(self.master, 65536)
        return seen.decode("utf-8").replace("\r\n", "\n").removesuffix("next\n")

    def end(self) -> str:
        """Let the program end, which must go well; what it left on stderr."""
        _, errors = self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode == 0, errors.decode()
        return errors.decode()


@pytest.fixture
def started(tmp_path: Path) -> Iterator[list[Terminal]]:
    """The terminals of a test, which end with it."""
    terminals: list[Terminal] = []
    yield terminals
    for terminal in terminals:
        terminal.hang_up()
        terminal.process.kill()
        terminal.process.communicate()


def start(started: list[Terminal], output_dir: str, columns: int, **environment: str) -> Terminal:
    terminal = Terminal(output_dir, columns, environment)
    started.append(terminal)
    return terminal


def test_a_terminal_shows_sections_changes_counts_and_the_time_left(
    started: list[Terminal], output_dir: str
) -> None:
    terminal = start(started, output_dir, 100)
    terminal.row()
    shown = terminal.row()
    assert last_table(shown) == {
        "Epoch": ("1", "+1", ""),
        "kéy": ("[red]", "=", ""),
        "TotalEnvInteracts": ("2469134", "+1234567", ""),
        "Loss: AveragePi": ("2", "+1", "2"),
        "Loss: StdPi": ("1", "=", "2"),
    }
    assert without_styles(shown).startswith("2 of 4 epochs, about ")
    assert "\x1b[36m" in shown
    assert "\x1b" not in without_styles(shown), "nothing but colours: rows scroll by, and stay"
    assert terminal.end() == ""


def test_a_terminal_is_asked_for_its_width_at_each_row(started: list[Terminal], output_dir: str) -> None:
    terminal = start(started, output_dir, 40)
    narrow = terminal.row()
    terminal.resize(100)
    wide = terminal.row()
    terminal.resize(20)
    tiny = terminal.row()
    lines = without_styles(narrow).splitlines()
    assert max(map(len, lines[lines.index("}") + 1 :])) <= 40
    assert last_table(narrow)["TotalEnvInteracts"].value == "1234567"
    assert last_table(wide)["Loss: AveragePi"] == ("2", "+1", "2")
    assert "|    AverageLoss/Pi |               3 |" in tiny, "the plain table"


def test_a_width_of_zero_is_no_width(started: list[Terminal], output_dir: str) -> None:
    """Which terminals tell that do not know it; 80 is taken."""
    terminal = start(started, output_dir, 0)
    assert last_table(terminal.row())["TotalEnvInteracts"] == ("1234567", "", "")


@pytest.mark.parametrize(
    ("environment", "table", "colors"),
    [
        ({"NO_COLOR": "1"}, True, False),
        ({"TERM": "dumb"}, False, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True, True),
    ],
)
def test_the_environment_decides(
    started: list[Terminal], output_dir: str, environment: dict[str, str], table: bool, colors: bool
) -> None:
    shown = start(started, output_dir, 100, **environment).row()
    assert ("\x1b[" in shown) == colors
    if table:
        assert last_table(shown)["Loss: AveragePi"].value == "1"
    else:
        assert "|    AverageLoss/Pi |               1 |" in shown


def test_an_ascii_terminal_gets_ascii(started: list[Terminal], output_dir: str) -> None:
    shown = start(started, output_dir, 100, PYTHONIOENCODING="ascii").row()
    assert shown.isascii()
    assert last_table(shown)["k\\xe9y"].value == "[red]"


def test_a_run_goes_on_when_its_terminal_is_gone(started: list[Terminal], output_dir: str) -> None:
    """As when a window is closed and nohup keeps the program alive."""
    terminal = start(started, output_dir, 100)
    terminal.row()
    terminal.hang_up()
    terminal.ask()
    _, errors = terminal.process.communicate(timeout=PATIENCE)
    assert "stdout cannot be written" in errors.decode()
    assert content(output_dir).count("\n") == 3, "header and both rows"
