"""The rich console: what its tables say of rows, changes, counts, the time left, and of odd texts."""

from __future__ import annotations

import math
import sys
import warnings

import numpy as np
import pytest
from consoles import Screen, last_table, on_terminal, set_environment, without_styles
from hypothesis import given, settings
from hypothesis import strategies as st
from rows import dump
from thread_ranks import ThreadComm, on_ranks

from spinstat import EpochLogger, Logger
from spinstat.console import RichConsole
from spinstat.row import make_row


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    set_environment(monkeypatch)


class TestWhatItSays:
    def test_values_changes_and_counts_stand_side_by_side(
        self, output_dir: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        terminal = on_terminal(monkeypatch)
        logger = EpochLogger(output_dir, console="rich")
        for epoch in range(2):
            for step in range(1000 * (epoch + 1)):
                logger.store(VVals=step % 2)
            logger.store(EpRet=[2.5 + epoch, 4.5 + epoch])
            logger.log_tabular("Epoch", epoch)
            logger.log_tabular("EpRet", with_min_and_max=True)
            logger.log_tabular("VVals", average_only=True)
            logger.log_tabular("TotalEnvInteracts", 123456789 * (epoch + 1))
            logger.dump_tabular()
        assert last_table(terminal.getvalue()) == {
            "Epoch": ("1", "+1", ""),
            "AverageEpRet": ("4.5", "+1", "2"),
            "StdEpRet": ("1", "=", "2"),
            "MaxEpRet": ("5.5", "+1", "2"),
            "MinEpRet": ("3.5", "+1", "2"),
            "VVals": ("0.5", "=", "2000"),
            "TotalEnvInteracts": ("246913578", "+123456789", ""),
        }

    def test_columns_stand_in_sections_by_what_comes_before_the_slash(
        self, output_dir: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        terminal = on_terminal(monkeypatch)
        logger = EpochLogger(output_dir, console="rich")
        logger.store({"loss/pi": 1.0, "eval/ret": 2.0})
        logger.log_tabular("loss/pi")
        logger.log_tabular("Epoch", 0)
        logger.log_tabular("time/fps", 60)
        logger.log_tabular("eval/ret", average_only=True)
        logger.log_tabular("loss/v/clipped", 3)
        logger.log_tabular("/odd", 4)
        logger.log_tabular("odd/", 5)
        logger.dump_tabular()
        assert list(last_table(terminal.getvalue())) == [
            "Epoch", "/odd", "odd/",
            "loss: Averagepi", "loss: Stdpi", "loss: v/clipped", "time: fps", "eval: ret",
        ]  # fmt: skip

    def test_a_column_keeps_its_section_in_rows_without_it(
        self, output_dir: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        terminal = on_terminal(monkeypatch)
        logger = EpochLogger(output_dir, console="rich")
        logger.store({"loss/pi": 1.0})
        logger.log_tabular("loss/pi")
        logger.dump_tabular()
        dump(logger, Epoch=1)
        table = last_table(terminal.getvalue())
        assert table["loss: Averagepi"] == ("", "", None)
        assert table["Epoch"] == ("1", "", None)

    def test_a_change_is_that_since_the_column_was_logged_last(
        self, output_dir: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        terminal = on_terminal(monkeypatch)
        logger = Logger(output_dir, console="rich")
        dump(logger, A=1, B=10.0)
        dump(logger, A=2)
        dump(logger, A=3, B=10.5)
        assert last_table(terminal.getvalue()) == {"A": ("3", "+1", None), "B": ("10.5", "+0.5", None)}

    @pytest.mark.parametrize(
        ("values", "shown"),
        [
            ([1.0, math.nan], ("nan", "was 1", None)),
            ([math.nan, math.nan], ("nan", "=", None)),
            ([math.nan, -2], ("-2", "was nan", None)),
            (["warm-up", "training"], ("training", "changed", None)),
            ([np.float32(0.1), np.float32(0.2)], ("0.2", "+0.1", None)),
            ([True, False], ("False", "changed", None)),
            ([10**20, 10**20 + 1], (str(10**20 + 1), "+1", None)),
            ([None, 1.0], ("1", "", None)),
        ],
    )
    def test_nan_text_and_other_values_have_sensible_changes(
        self, output_dir: str, monkeypatch: pytest.MonkeyPatch, values: list[object], shown: tuple[str, ...]
    ) -> None:
        terminal = on_terminal(monkeypatch)
        logger = Logger(output_dir, console="rich")
        for value in values:
            dump(logger, Key=value)
        assert last_table(terminal.getvalue()) == {"Key": shown}

    def test_precision_holds_for_floats_alone_c10(
        self, output_dir: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        terminal = on_terminal(monkeypatch)
        dump(Logger(output_dir, console="rich", precision=3), A=1234567, B=1234567.0, C=1 / 3)
        table = last_table(terminal.getvalue())
        assert [shown.value for shown in table.values()] == ["1234567", "1.23e+06", "0.333"]

    def test_up_down_and_nan_have_colors_of_their_own(
        self, output_dir: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        terminal = on_terminal(monkeypatch)
        logger = Logger(output_dir, console="rich")
        dump(logger, A=1, B=1, C=1.0)
        terminal.truncate(0)
        dump(logger, A=2, B=0, C=math.nan)
        for style, text in (("36", "+1"), ("33", "-1"), ("1;31", "nan"), ("35", "was 1")):
            assert any(
                part.split("\x1b")[0].strip() == text
                for part in terminal.getvalue().split(f"\x1b[{style}m")[1:]
            ), f"{text} is not in {style}"

    def test_the_count_is_of_all_ranks(self, output_dir: str, monkeypatch: pytest.MonkeyPatch) -> None:
        terminal = on_terminal(monkeypatch)

        def program(comm: ThreadComm) -> None:
            logger = EpochLogger(output_dir, comm=comm, console="rich")
            for _ in range(3 + comm.rank):
                logger.store(A=1.0, B=[1.0, 2.0])
            with logger.batch():
                logger.log_tabular("A")
                logger.log_tabular("B", average_only=True)
            logger.dump_tabular()

        on_ranks(3, program)
        assert {name: shown.n for name, shown in last_table(terminal.getvalue()).items()} == {
            "AverageA": "12", "StdA": "12", "B": "24",
        }  # fmt: skip
        assert terminal.getvalue().count("AverageA") == 1

    def test_an_epoch_without_values_counts_none(
        self, output_dir: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        terminal = on_terminal(monkeypatch)
        logger = EpochLogger(output_dir, console="rich")
        with pytest.warns(UserWarning, match="EpRet"):
            logger.log_tabular("EpRet", average_only=True)
        logger.dump_tabular()
        assert last_table(terminal.getvalue()) == {"EpRet": ("nan", "", "0")}

    def test_a_key_taken_back_leaves_no_count(self, output_dir: str, monkeypatch: pytest.MonkeyPatch) -> None:
        terminal = on_terminal(monkeypatch)
        logger = EpochLogger(output_dir, console="rich", strict_keys=True)
        logger.store(B=1.0)
        with pytest.raises(KeyError, match="A"), logger.batch():
            logger.log_tabular("A", average_only=True)
            logger.log_tabular("B", average_only=True)
        dump(logger, A=1.0)
        assert last_table(terminal.getvalue())["A"] == ("1", "", "")


class TestTheTimeLeft:
    def test_the_configuration_tells_the_number_of_epochs(
        self, output_dir: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        terminal = on_terminal(monkeypatch)

        def train(epochs: int = 3) -> None:
            logger = EpochLogger(output_dir, console="rich")
            logger.save_config(locals())
            for epoch in range(epochs):
                dump(logger, Epoch=epoch)

        train()
        lines = without_styles(terminal.getvalue()).splitlines()
        told = [line for line in lines if " of 3 epochs" in line]
        assert [line.split(", about ")[0] for line in told] == [f"{done} of 3 epochs" for done in (1, 2, 3)]
        assert [line.endswith(" left") for line in told] == [True, True, False]

    def test_without_it_the_rows_are_counted(self, output_dir: str, monkeypatch: pytest.MonkeyPatch) -> None:
        terminal = on_terminal(monkeypatch)
        logger = Logger(output_dir, console="rich")
        logger.save_config(["epochs", 3])
        dump(logger, A=1)
        dump(logger, A=2)
        lines = without_styles(terminal.getvalue()).splitlines()
        assert [line for line in lines if line.startswith("Row")] == ["Row 1", "Row 2"]
        assert "left" not in terminal.getvalue()

    def test_a_resumed_run_goes_on_counting(self, output_dir: str, monkeypatch: pytest.MonkeyPatch) -> None:
        terminal = on_terminal(monkeypatch)
        for first, last in ((0, 2), (2, 4)):
            with Logger(output_dir, console="rich", resume=True) as logger:
                logger.save_config({"epochs": np.int64(5)})
                for epoch in range(first, last):
                    dump(logger, Loss=1 / (epoch + 1))
                    logger.save_state({})
        lines = without_styles(terminal.getvalue()).splitlines()
        told = [line for line in lines if " of 5 epochs, about" in line]
        assert [line[0] for line in told] == ["1", "2", "3", "4"]


HOSTILE = [
    "[red]", "[/red]", "[bold]x[/bold]", "[link=http://x]y[/link]", ":smile:",
    "%s", "{}", "\\[red]", "[[", " a  b ",
]  # fmt: skip


class TestWhatKeysAndTextsHold:
    @pytest.mark.parametrize("text", HOSTILE)
    def test_markup_is_shown_as_it_is(
        self, output_dir: str, monkeypatch: pytest.MonkeyPatch, text: str
    ) -> None:
        terminal = on_terminal(monkeypatch)
        row = {text: 1, f"Group/{text}": 2, "Text": text, f"{text}/In": 3}
        dump(Logger(output_dir, console="rich"), **row)
        table = last_table(terminal.getvalue())
        assert table["Text"].value == text.strip()
        assert table[f"Group: {text.strip()}"].value == "2"
        section, _, name = text.strip().partition("/")
        assert table[f"{section}: {name}" if name else section].value == "1"
        assert table[f"{section}: {name}/In" if name else f"{section}: In"].value == "3"

    def test_control_characters_neither_move_nor_color(
        self, output_dir: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        terminal = on_terminal(monkeypatch)
        logger = Logger(output_dir, console="rich")
        terminal.truncate(0)
        dump(logger, **{"k\x1b[31m": "a\x1b[2Jb\x07\x9b1m", "two\nlines": "x\ty"})
        table = last_table(terminal.getvalue())
        assert table["k\\x1b[31m"].value == "a\\x1b[2Jb\\x07\\x9b1m"
        assert table["two\\nlines"].value == "x\\ty"
        assert not set("\x1b\x07\x9b") & set(without_styles(terminal.getvalue()))

    @pytest.mark.parametrize(
        ("encoding", "shown"), [("ascii", "k\\xe9y"), ("latin-1", "kéy"), ("cp437", "kéy"), ("utf-8", "kéy")]
    )
    def test_any_encoding_gets_a_whole_table(
        self, output_dir: str, monkeypatch: pytest.MonkeyPatch, encoding: str, shown: str
    ) -> None:
        monkeypatch.setattr(sys, "stdout", screen := Screen(encoding))
        dump(Logger(output_dir, console="rich"), **{"kéy": 1, "jp": "学習", "lone": "\ud800"})
        lines = without_styles(screen.getvalue()).splitlines()
        frame = lines[lines.index("Row 1") + 1 :]
        assert frame[0][:2] == ("╭─" if encoding == "utf-8" else "+-")
        table = last_table(screen.getvalue())
        assert table[shown].value == "1"
        assert table["jp"].value == ("学習" if encoding == "utf-8" else "\\u5b66\\u7fd2")
        assert table["lone"].value == "\\ud800"

    def test_a_forty_column_terminal_has_every_name_and_digit(
        self, output_dir: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        terminal = on_terminal(monkeypatch)
        from rich.cells import cell_len

        monkeypatch.setenv("COLUMNS", "40")
        logger = EpochLogger(output_dir, console="rich")
        logger.store(VeryLongNameOfAValueThatIsStored=1.5)
        logger.log_tabular("VeryLongNameOfAValueThatIsStored", with_min_and_max=True)
        terminal.truncate(0)
        dump(logger, **{"Total": 10**30, "k" * 60: -1.25e-300, "学" * 30: "習" * 40, "a": "word " * 20})
        assert max(cell_len(line) for line in without_styles(terminal.getvalue()).splitlines()) <= 40
        joined = without_styles(terminal.getvalue())
        for bar in "│ \n":
            joined = joined.replace(bar, "")
        assert str(10**30)[:12] in joined and joined.count("0") >= 30
        assert joined.count("k") == 60 and joined.count("学") == 30 and joined.count("習") == 40
        assert joined.count("word") == 20 and "-1.25e-300" in joined

    def test_figures_are_left_out_before_names_are_folded_to_nothing(
        self, output_dir: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        terminal = on_terminal(monkeypatch)
        logger = EpochLogger(output_dir, console="rich")
        shown = {}
        for width in (100, 57, 56, 49, 48):
            monkeypatch.setenv("COLUMNS", str(width))
            logger.store(ALongNameOfTwenty123=1.0)
            logger.log_tabular("ALongNameOfTwenty123", average_only=True)
            logger.log_tabular("N", 10**12)
            logger.dump_tabular()
            shown[width] = last_table(terminal.getvalue())["N"]
        assert [shown.change is not None for shown in shown.values()] == [True, True, True, True, False]
        assert [shown.n is not None for shown in shown.values()] == [True, True, False, False, False]

    @pytest.mark.parametrize("columns", ["29", "1"])
    def test_a_terminal_too_narrow_for_tables_gets_the_plain_one(
        self, output_dir: str, monkeypatch: pytest.MonkeyPatch, columns: str
    ) -> None:
        terminal = on_terminal(monkeypatch)
        monkeypatch.setenv("COLUMNS", columns)
        dump(Logger(output_dir, console="rich"), A=1)
        assert "|               A |               1 |\n" in terminal.getvalue()

    @pytest.mark.parametrize("columns", ["", "wide", "-5", "0", "²"])
    def test_a_width_that_is_none_is_eighty(
        self, output_dir: str, monkeypatch: pytest.MonkeyPatch, columns: str
    ) -> None:
        terminal = on_terminal(monkeypatch)
        monkeypatch.setenv("COLUMNS", columns)
        dump(Logger(output_dir, console="rich"), A="x" * 200)
        widths = {len(line) for line in without_styles(terminal.getvalue()).splitlines() if line[:1] == "│"}
        assert widths == {80}


TEXTS = st.text(max_size=60) | st.text(st.sampled_from("[]/\\ab \x1b\t\n学é\u0301\u200b\ud800"), max_size=60)
VALUES = TEXTS | st.floats() | st.integers() | st.booleans() | st.none()


@settings(max_examples=200, deadline=None)
@given(
    rows=st.lists(st.dictionaries(TEXTS, VALUES, max_size=6), min_size=1, max_size=3),
    width=st.integers(30, 120),
    encoding=st.sampled_from(["utf-8", "ascii", "cp437"]),
)
def test_whatever_rows_hold_no_line_is_too_long_and_nothing_fails(
    rows: list[dict[str, object]], width: int, encoding: str
) -> None:
    from rich.cells import cell_len

    writer = RichConsole()
    columns = tuple(dict.fromkeys(key for row in rows for key in row))
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("error")  # where rich fails, a warning says so
        set_environment(patch)
        patch.setenv("COLUMNS", str(width))
        patch.setattr(sys, "stdout", screen := Screen(encoding))
        for number, cells in enumerate(rows):
            writer.write(make_row(number, columns, dict(cells), {}, number == 0))
    lines = without_styles(screen.getvalue()).split("\n")
    assert max(map(cell_len, lines)) <= width
    assert "\x1b" not in "".join(lines)
