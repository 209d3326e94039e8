"""Where the rich console is used, what it needs, and that it never ends a run."""

from __future__ import annotations

import io
import json
import sys
from typing import Any

import numpy as np
import pytest
from conftest import RunPython
from consoles import Screen, last_table, on_terminal, set_environment
from rows import content, dump

from spinstat import EpochLogger, Logger


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    set_environment(monkeypatch)


def plain_output(output_dir: str, **row: object) -> str:
    """What the default console prints for a row."""
    screen = Screen()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", screen)
        logger = Logger(output_dir + "-plain")
        screen.truncate(0)
        screen.seek(0)
        dump(logger, **row)
    return screen.getvalue()


ROW = {"Epoch": 1, "Loss/Pi": 0.25, "Total": 123456, "Text": "[red]"}


class TestWhereItIsUsed:
    def printed(self, output_dir: str, stdout: Screen, monkeypatch: pytest.MonkeyPatch) -> str:
        logger = Logger(output_dir, console="rich")
        monkeypatch.setattr(sys, "stdout", stdout)  # what counts is the stdout at the time of the row
        dump(logger, **ROW)
        return stdout.getvalue()

    def test_the_default_is_the_plain_table_on_terminals_too(
        self, output_dir: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        terminal = on_terminal(monkeypatch)
        dump(Logger(output_dir), A=1)
        assert terminal.getvalue().endswith(
            "-------------------------------------\n"
            "|               A |               1 |\n"
            "-------------------------------------\n"
        )

    def test_where_stdout_is_no_terminal_it_is_the_plain_table_to_the_character(
        self, output_dir: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        printed = self.printed(output_dir, Screen(terminal=False), monkeypatch)
        assert printed == plain_output(output_dir, **ROW)

    @pytest.mark.parametrize(
        ("terminal", "environment", "table", "colors"),
        [
            (True, {}, True, True),
            (False, {}, False, False),
            (True, {"NO_COLOR": "1"}, True, False),
            (True, {"NO_COLOR": ""}, True, True),
            (True, {"TERM": "dumb"}, False, False),
            (True, {"TERM": "dumb", "FORCE_COLOR": "1"}, True, True),
            (False, {"FORCE_COLOR": "1"}, True, True),
            (False, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False),
        ],
    )
    def test_the_environment_has_its_say(
        self, output_dir: str, monkeypatch: pytest.MonkeyPatch,
        terminal: bool, environment: dict[str, str], table: bool, colors: bool,
    ) -> None:  # fmt: skip
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        printed = self.printed(output_dir, Screen(terminal=terminal), monkeypatch)
        assert ("\x1b[" in printed) == colors
        if table:
            assert last_table(printed)["Loss: Pi"].value == "0.25"
        else:
            assert printed == plain_output(output_dir, **ROW)

    def test_a_row_is_one_write(
        self, output_dir: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        logger = Logger(output_dir, console="rich")
        stdout = on_terminal(monkeypatch)
        dump(logger, **{f"Key{i}": i / 3 for i in range(50)})
        assert stdout.writes == 1
        assert len(last_table(stdout.getvalue())) == 50

    def test_quiet_prints_nothing(self, output_dir: str, monkeypatch: pytest.MonkeyPatch) -> None:
        terminal = on_terminal(monkeypatch)
        dump(Logger(output_dir, console="rich", quiet=True), A=1)
        assert terminal.getvalue() == ""
        assert content(output_dir) == "A\n1\n"

    def test_the_files_are_the_same(self, output_dir: str) -> None:
        for name in ("plain", "rich"):
            logger = EpochLogger(f"{output_dir}-{name}", console=name, exp_name="x")
            logger.save_config({"epochs": 2})
            for _ in range(2):
                logger.store({"a/b": 1.0})
                logger.log_tabular("a/b")
                logger.dump_tabular()
        assert content(output_dir + "-plain") == content(output_dir + "-rich")
        assert json.loads(content(output_dir + "-rich", "config.json")) == {"epochs": 2, "exp_name": "x"}


class TestThatItNeverEndsARun:
    class ClosedByReader(Screen):
        def write(self, text: str) -> int:
            raise BrokenPipeError(32, "Broken pipe")

    class OutOfOrder(Screen):
        def isatty(self) -> bool:
            raise OSError(5, "Input/output error")

        def write(self, text: str) -> int:
            raise RuntimeError("no display")

    class WithoutFlush:
        encoding = None

        def isatty(self) -> bool:
            return True

        def write(self, text: str) -> int:
            return len(text)

    @staticmethod
    def closed() -> io.StringIO:
        stream = Screen()
        stream.close()
        return stream

    @pytest.mark.parametrize("kind", ["ClosedByReader", "OutOfOrder", "WithoutFlush", "closed"])
    def test_a_stdout_that_fails_is_a_warning_and_the_row_is_written(
        self, output_dir: str, monkeypatch: pytest.MonkeyPatch, kind: str
    ) -> None:
        logger = Logger(output_dir, console="rich")
        with monkeypatch.context() as patch, pytest.warns(UserWarning, match=r"stdout.*the run goes on"):
            patch.setattr(sys, "stdout", getattr(self, kind)())
            dump(logger, A=1)
        assert content(output_dir) == "A\n1\n"

    def test_a_process_without_stdout_logs(self, output_dir: str, monkeypatch: pytest.MonkeyPatch) -> None:
        logger = Logger(output_dir, console="rich")
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", None)
            dump(logger, A=1)
        assert content(output_dir) == "A\n1\n"

    def test_an_encoding_that_there_is_not_gives_the_plain_table_and_a_warning(
        self, output_dir: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Odd(Screen):
            encoding = "klingon"

            def write(self, text: str) -> int:
                return io.StringIO.write(self, text)

        logger = Logger(output_dir, console="rich")
        monkeypatch.setattr(sys, "stdout", stdout := Odd())
        with pytest.warns(UserWarning, match="klingon"):
            dump(logger, A=1)
        assert "|               A |               1 |\n" in stdout.getvalue()

    def test_a_failure_of_rich_gives_the_plain_table_and_a_warning(
        self, output_dir: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        terminal = on_terminal(monkeypatch)

        def fail(*args: Any, **kwargs: Any) -> None:
            raise RuntimeError("rich has changed")

        logger = Logger(output_dir, console="rich")
        with monkeypatch.context() as patch, pytest.warns(UserWarning, match="rich has changed"):
            patch.setattr("rich.table.Table.add_row", fail)
            dump(logger, A=1)
        assert "|               A |               1 |\n" in terminal.getvalue()
        dump(logger, A=2)
        assert last_table(terminal.getvalue()) == {"A": ("2", "+1", None)}

    def test_an_interrupt_passes(
        self, output_dir: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        on_terminal(monkeypatch)

        def interrupt(*args: Any, **kwargs: Any) -> None:
            raise KeyboardInterrupt

        logger = Logger(output_dir, console="rich")
        monkeypatch.setattr("rich.table.Table.add_row", interrupt)
        with pytest.raises(KeyboardInterrupt):
            dump(logger, A=1)

    def test_a_value_put_into_the_row_by_hand_is_shown(
        self, output_dir: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        terminal = on_terminal(monkeypatch)

        class Odd:
            def __str__(self) -> str:
                raise RuntimeError("no text")

        logger = Logger(output_dir, console="rich")
        for _ in range(2):
            logger.log_current_row = {"A": np.arange(3), "B": Odd(), "C": {"a": 1}}
            logger.dump_tabular()
        assert last_table(terminal.getvalue()) == {
            "A": ("[0, 1, 2]", "=", None),
            "B": ("<Odd>", "=", None),
            "C": ("{'a': 1}", "=", None),
        }


class TestWhatItNeeds:
    @pytest.mark.parametrize("name", ["ritch", "Rich", "", None, True, ["rich"]])
    def test_a_console_that_there_is_not_is_refused_before_anything_is_made(
        self, output_dir: str, name: Any
    ) -> None:
        with pytest.raises(ValueError, match=r"console is 'plain' or 'rich', not "):
            EpochLogger(output_dir, console=name)
        with pytest.raises(FileNotFoundError):
            content(output_dir, "")

    def test_without_rich_an_error_names_the_extra(
        self, output_dir: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in [*(name for name in sys.modules if name.split(".")[0] == "rich"), "rich"]:
            monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(ImportError, match=r"pip install 'spinstat\[rich\]'"):
            Logger(output_dir, console="rich")
        with pytest.raises(FileNotFoundError):
            content(output_dir, "")
        dump(Logger(output_dir), A=1)  # the plain one does not need it

    def test_rich_is_loaded_only_where_it_is_asked_for(self, run_python: RunPython) -> None:
        program = (
            "import sys, spinstat\n"
            "for console in ('plain', 'rich'):\n"
            "    logger = spinstat.EpochLogger(f'run-{console}', console=console)\n"
            "    logger.log_tabular('A', 1)\n"
            "    logger.dump_tabular()\n"
            "    print('loaded', 'rich' in sys.modules)\n"
        )
        printed = run_python("-c", program).stdout.splitlines()
        assert [line for line in printed if line.startswith("loaded")] == ["loaded False", "loaded True"]
