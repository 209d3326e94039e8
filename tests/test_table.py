"""The table on stdout: to the character, and never a reason for a run to end."""

from __future__ import annotations

import io
import sys
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from conftest import RunPython

from spinstat import EpochLogger, Logger, colorize


class Terminal(io.StringIO):
    """A stdout that is a terminal, and counts the calls it gets."""

    def __init__(self) -> None:
        super().__init__()
        self.writes = 0

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.writes += 1
        return super().write(text)


def table(
    output_dir: str, capsys: pytest.CaptureFixture[str], row: dict[str, Any], **options: Any
) -> list[str]:
    """The lines that one row prints."""
    logger = Logger(output_dir, **options)
    for key, value in row.items():
        logger.log_tabular(key, value)
    capsys.readouterr()
    logger.dump_tabular()
    return capsys.readouterr().out.splitlines()


def test_the_documents_first_example_prints_its_table(
    output_dir: str, capsys: pytest.CaptureFixture[str]
) -> None:
    logger = EpochLogger(output_dir)
    for i in range(10):
        logger.store(Test=i)
    logger.log_tabular("Test", with_min_and_max=True)
    logger.dump_tabular()
    assert capsys.readouterr().out == (
        f"Logging data to {output_dir}/progress.txt\n"
        "-------------------------------------\n"
        "|     AverageTest |             4.5 |\n"
        "|         StdTest |            2.87 |\n"
        "|         MaxTest |               9 |\n"
        "|         MinTest |               0 |\n"
        "-------------------------------------\n"
    )


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        (0, "0"),
        (-1.5, "-1.5"),
        (9.995, "9.99"),
        (999.5, "1e+03"),
        pytest.param(123456, "1.23e+05", id="C10-integers-too"),
        (5e-324, "4.94e-324"),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        (True, "1"),
        (False, "0"),
        ("hello", "hello"),
        ("", ""),
        (None, ""),
        (np.float32(0.1), "0.1"),
        (np.int64(-5), "-5"),
        (np.array(2.5), "2.5"),
        pytest.param(np.array([0.2]), "0.2", id="C6"),
        (Decimal("1.5"), "1.5"),
        (Fraction(1, 3), "0.333"),
        ([1, 2], "[1, 2]"),
        pytest.param(np.complex128(1 + 2j), "(1+2j)", id="B10"),
        (10**400, str(10**400)),
        pytest.param("x" * 40, "x" * 40, id="C11"),
        pytest.param("two\nlines\tand a tab", "two\\nlines\\tand a tab", id="breaks"),
    ],
)
def test_a_value_shows_three_digits_or_its_text(
    output_dir: str, capsys: pytest.CaptureFixture[str], value: object, cell: str
) -> None:
    assert table(output_dir, capsys, {"Key": value})[1] == f"|             Key | {cell:>15} |"


@pytest.mark.parametrize(
    ("key", "width"),
    [("k", 15), ("k" * 15, 15), ("k" * 16, 16), ("k" * 60, 60), ("ünïcödé", 15), ("é" * 20, 20), ("%s", 15)],
)
def test_the_longest_key_gives_the_width_c11(
    output_dir: str, capsys: pytest.CaptureFixture[str], key: str, width: int
) -> None:
    lines = table(output_dir, capsys, {"Short": 1, key: 2})
    assert lines == [
        "-" * (22 + width),
        f"| {'Short':>{width}} |               1 |",
        f"| {key:>{width}} |               2 |",
        "-" * (22 + width),
    ]


def test_keys_that_begin_alike_stay_apart_c11(output_dir: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = table(output_dir, capsys, {"k" * 60: 1, "k" * 60 + "2": 2})
    assert [line.split()[1] for line in lines[1:-1]] == ["k" * 60, "k" * 60 + "2"]


def test_a_column_that_a_row_does_not_set_is_blank(
    output_dir: str, capsys: pytest.CaptureFixture[str]
) -> None:
    logger = Logger(output_dir)
    logger.log_tabular("A", 1)
    logger.log_tabular("B", 2)
    logger.dump_tabular()
    logger.log_tabular("B", 3)
    capsys.readouterr()
    logger.dump_tabular()
    assert capsys.readouterr().out.splitlines()[1:3] == [
        "|               A |                 |",
        "|               B |               3 |",
    ]


@pytest.mark.parametrize(
    ("value", "cell"),
    [(123456, "123456"), (10**20, str(10**20)), (123456.789, "123457"), (1 / 3, "0.333333"), (True, "1")],
)
def test_precision_gives_more_digits_and_whole_integers_c10(
    output_dir: str, capsys: pytest.CaptureFixture[str], value: object, cell: str
) -> None:
    assert table(output_dir, capsys, {"Key": value}, precision=6)[1] == f"|             Key | {cell:>15} |"


@pytest.mark.parametrize("precision", [0, -1, 2.5, "3"])
def test_a_precision_that_is_no_number_of_digits_is_refused(output_dir: str, precision: Any) -> None:
    with pytest.raises(ValueError, match="precision"):
        Logger(output_dir, precision=precision)


def test_quiet_prints_nothing_and_writes_the_file_c15(
    output_dir: str, capsys: pytest.CaptureFixture[str]
) -> None:
    logger = EpochLogger(output_dir, quiet=True)
    logger.save_config({"a": 1})
    logger.log("hello")
    logger.store(A=1.0)
    logger.log_tabular("A", average_only=True)
    logger.dump_tabular()
    assert capsys.readouterr() == ("", "")
    with open(f"{output_dir}/progress.txt") as file:
        assert file.read() == "A\n1.0\n"


def test_the_table_is_one_write(output_dir: str, monkeypatch: pytest.MonkeyPatch) -> None:
    logger = Logger(output_dir)
    for i in range(50):
        logger.log_tabular(f"Key{i}", i / 3)
    monkeypatch.setattr(sys, "stdout", stdout := Terminal())
    logger.dump_tabular()
    assert stdout.writes == 1
    assert len(stdout.getvalue().splitlines()) == 52


def test_a_value_whose_conversion_raises_shows_its_text(
    output_dir: str, capsys: pytest.CaptureFixture[str]
) -> None:
    class Odd:
        def __float__(self) -> float:
            raise RuntimeError("no number today")

        def __str__(self) -> str:
            return "odd"

    assert table(output_dir, capsys, {"Key": Odd()})[1] == "|             Key |             odd |"


class ClosedByReader(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError(32, "Broken pipe")


class OutOfOrder(io.StringIO):
    def write(self, text: str) -> int:
        raise RuntimeError("no display")


class WithoutFlush:
    def write(self, text: str) -> int:
        return len(text)


def closed_stream() -> io.StringIO:
    stream = io.StringIO()
    stream.close()
    return stream


@pytest.mark.parametrize("stdout", [ClosedByReader(), OutOfOrder(), WithoutFlush(), closed_stream()])
def test_a_stdout_that_fails_is_a_warning_and_the_row_is_written(
    output_dir: str, monkeypatch: pytest.MonkeyPatch, stdout: Any
) -> None:
    logger = Logger(output_dir)
    logger.log_tabular("A", 1)
    with monkeypatch.context() as patch, pytest.warns(UserWarning, match=r"stdout.*the run goes on"):
        patch.setattr(sys, "stdout", stdout)
        logger.dump_tabular()
    with open(f"{output_dir}/progress.txt") as file:
        assert file.read() == "A\n1\n"


def test_a_process_without_stdout_logs(output_dir: str, monkeypatch: pytest.MonkeyPatch) -> None:
    logger = Logger(output_dir)
    logger.log_tabular("A", 1)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", None)
        logger.dump_tabular()
        logger.log("hello")
    with open(f"{output_dir}/progress.txt") as file:
        assert file.read() == "A\n1\n"


RUN_OF_TWO_ROWS = """
import sys
from spinstat import Logger
logger = Logger(sys.argv[1])
for i in range(2):
    logger.log_tabular("kéy", i)
    logger.dump_tabular()
"""


def test_a_stdout_without_the_keys_letters_prints_their_codes(output_dir: str, run_python: RunPython) -> None:
    done = run_python("-c", RUN_OF_TWO_ROWS, output_dir, env={"PYTHONIOENCODING": "ascii:strict"})
    assert "k\\xe9y" in done.stdout
    with open(f"{output_dir}/progress.txt", encoding="utf-8") as file:
        assert file.read() == "kéy\n0\n1\n"


def test_a_run_whose_reader_goes_away_ends_well(output_dir: str, run_python: RunPython) -> None:
    """As `python train.py | head`: without care the interpreter would exit with 120."""
    script = f"""
import os, sys
read, write = os.pipe()
os.dup2(write, 1)
os.close(write)
os.close(read)
{RUN_OF_TWO_ROWS}
"""
    done = run_python("-c", script, output_dir, env={"PYTHONUNBUFFERED": ""})
    assert "Broken pipe" in done.stderr
    assert "Exception ignored" not in done.stderr
    with open(f"{output_dir}/progress.txt", encoding="utf-8") as file:
        assert file.read() == "kéy\n0\n1\n"


def test_a_run_with_stdout_and_stderr_closed_logs(output_dir: str, run_python: RunPython) -> None:
    run_python("-c", f"import sys\nsys.stdout.close()\nsys.stderr.close()\n{RUN_OF_TWO_ROWS}", output_dir)
    with open(f"{output_dir}/progress.txt", encoding="utf-8") as file:
        assert file.read() == "kéy\n0\n1\n"


@pytest.mark.parametrize(
    ("terminal", "environment", "colored"),
    [
        (True, {}, True),
        (False, {}, False),
        (True, {"NO_COLOR": "1"}, False),
        (True, {"NO_COLOR": ""}, True),
        (False, {"FORCE_COLOR": "1"}, True),
        (True, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (True, {"TERM": "dumb"}, False),
    ],
)
def test_colors_are_for_terminals_or_as_the_environment_says(
    output_dir: str,
    monkeypatch: pytest.MonkeyPatch,
    terminal: bool,
    environment: dict[str, str],
    colored: bool,
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    logger = Logger(output_dir)
    monkeypatch.setattr(sys, "stdout", stdout := Terminal() if terminal else io.StringIO())
    logger.log("hello", color="red")
    assert stdout.getvalue() == ("\x1b[31;1mhello\x1b[0m\n" if colored else "hello\n")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("x", "gray"), "\x1b[30mx\x1b[0m"),
        (("x", "green", True), "\x1b[32;1mx\x1b[0m"),
        (("x", "crimson", True, True), "\x1b[48;1mx\x1b[0m"),
        ((3, "blue", False, True), "\x1b[44m3\x1b[0m"),
    ],
)
def test_colorize_gives_the_terminals_codes(arguments: tuple[Any, ...], expected: str) -> None:
    assert colorize(*arguments) == expected


def test_an_unknown_color_is_refused_with_the_known_ones(output_dir: str) -> None:
    with pytest.raises(KeyError, match=r"pink.*gray, red, green"):
        Logger(output_dir).log("hello", color="pink")
