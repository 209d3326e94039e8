"""The sinks "jsonl" and "csv": what the files hold, after crashes, full disks and resumed runs too."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import RunPython
from hypothesis import given, settings
from hypothesis import strategies as st
from killing import in_child, killed_at_call
from rows import content, dump

from spinstat import EpochLogger, Logger
from spinstat.sinks import CsvSink, JsonlSink

BOTH = ("jsonl", "csv")


def no_constant(name: str) -> Any:
    raise AssertionError(f"{name} is not JSON")


def read_jsonl(folder: str | Path, name: str = "rows.jsonl") -> list[dict[str, Any]]:
    """The rows; every line must be whole and strict JSON."""
    lines = content(folder, name).split("\n")
    assert lines.pop() == ""
    return [json.loads(line, parse_constant=no_constant) for line in lines]


def read_csv(folder: str | Path, name: str = "rows.csv") -> list[dict[str, str]]:
    """The rows; every line must be whole and have all columns."""
    with open(Path(folder, name), newline="", encoding="utf-8") as file:
        assert file.read()[-2:] in ("\r\n", "")
        file.seek(0)
        header, *rows = csv.reader(file, strict=True)
    assert {len(row) for row in rows} <= {len(header)}
    return [dict(zip(header, row, strict=True)) for row in rows]


def epochs(folder: str, kind: str) -> list[Any]:
    """The column Epoch of a sink's file, as numbers."""
    read: Any = read_jsonl if kind == "jsonl" else read_csv
    return [int(row["Epoch"]) for row in read(folder)]


class TestValues:
    def test_jsonl_is_strict_json_of_what_was_logged(self, output_dir: str) -> None:
        row = {
            "Float": 0.1, "Tiny": 5e-324, "Int": 2**70, "Flag": True, "Text": 'a "b"\t\n\u2028 é \U0001f600',
            "Blank": None, "Nan": float("nan"), "Inf": float("inf"), "NegInf": float("-inf"),
            "Numpy": np.int64(2**53 + 1), "List": [1, np.float64(2.5)], "Complex": 1 + 2j, "Half": "\ud800",
        }  # fmt: skip
        with Logger(output_dir, sinks=["jsonl"]) as logger:
            dump(logger, **row)
        (found,) = read_jsonl(output_dir)
        assert list(found) == list(row)
        same = ("Float", "Tiny", "Int", "Flag", "Text", "Blank", "Numpy", "Half")
        assert {name: found[name] for name in same} == {name: row[name] for name in same}
        assert found["Flag"] is True
        assert (found["Nan"], found["Inf"], found["NegInf"]) == ("NaN", "Infinity", "-Infinity")
        assert (found["List"], found["Complex"]) == ("[1, 2.5]", "(1+2j)")

    def test_csv_is_that_of_rfc_4180(self, output_dir: str) -> None:
        with Logger(output_dir, sinks=["csv"]) as logger:
            dump(logger, **{"A,B": 0.1, "Text": 'say "hi", please', "N": 2**70, "Blank": None, "Flag": False})
            dump(logger, **{"A,B": float("nan"), "Text": "two\r\nlines", "N": np.float32(0.1), "Blank": " x"})
        assert Path(output_dir, "rows.csv").read_bytes() == (
            b'"A,B",Text,N,Blank,Flag\r\n'
            b'0.1,"say ""hi"", please",1180591620717411303424,,False\r\n'
            b'nan,"two\r\nlines",0.1, x,\r\n'
        )

    @pytest.mark.parametrize("kind", BOTH)
    def test_a_row_is_in_the_file_when_it_has_been_dumped(self, output_dir: str, kind: str) -> None:
        logger = Logger(output_dir, sinks=[kind])
        for epoch in range(3):
            dump(logger, Epoch=epoch)
            assert epochs(output_dir, kind) == list(range(epoch + 1))

    def test_new_columns_are_added(self, output_dir: str) -> None:
        with Logger(output_dir, sinks=BOTH) as logger:
            dump(logger, Epoch=0, Text="a\r\nb")
            dump(logger, New=1, Epoch=1)
            dump(logger, Epoch=2, Text="c", **{"More, too": 2})
        assert read_csv(output_dir) == [
            {"Epoch": "0", "Text": "a\r\nb", "New": "", "More, too": ""},
            {"Epoch": "1", "Text": "", "New": "1", "More, too": ""},
            {"Epoch": "2", "Text": "c", "New": "", "More, too": "2"},
        ]
        assert read_jsonl(output_dir)[1] == {"Epoch": 1, "Text": None, "New": 1}
        assert list(read_jsonl(output_dir)[2]) == ["Epoch", "Text", "New", "More, too"]

    @settings(max_examples=40, deadline=None)
    @given(
        rows=st.lists(
            st.dictionaries(
                st.sampled_from(["a", "b,", 'c"', "d\n"]),
                st.one_of(st.floats(), st.integers(), st.text(st.characters(exclude_categories=["Cs"]))),
                min_size=1,
            ),
            min_size=1,
            max_size=5,
        ),
        at=st.integers(0, 5),
    )
    def test_any_rows_read_back_and_are_cut_where_they_should_be(
        self, tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]], at: int
    ) -> None:
        folder = str(tmp_path_factory.mktemp("run") / "run")
        at = min(at, len(rows))
        logger = Logger(folder, quiet=True, sinks=BOTH)
        for number, row in enumerate(rows):
            if number == at:
                logger.save_state({"at": at})  # belongs to the rows before, none of which is half-logged
            dump(logger, **row)
        if at == len(rows):
            logger.save_state({"at": at})
        as_text = [
            {name: value if isinstance(value, str) else str(value) for name, value in row.items()}
            for row in rows
        ]
        filled = [{name: text for name, text in row.items() if text} for row in read_csv(folder)]
        assert filled == [{name: text for name, text in row.items() if text} for row in as_text]
        before = read_jsonl(folder)
        Logger(folder, quiet=True, resume=True, sinks=BOTH).close()
        assert read_jsonl(folder) == before[:at]
        if at:
            filled = [{name: text for name, text in row.items() if text} for row in read_csv(folder)]
            assert filled == [{name: text for name, text in row.items() if text} for row in as_text[:at]]
            assert set(read_csv(folder)[0]) == {name for row in rows[:at] for name in row}
        else:
            assert content(folder, "rows.csv") == ""


class TestRunsAfterOthers:
    @pytest.mark.parametrize("kind", BOTH)
    def test_a_new_run_moves_the_file_of_the_one_before_aside(self, output_dir: str, kind: str) -> None:
        for epoch in range(2):
            with Logger(output_dir, sinks=[kind]) as logger:
                dump(logger, Epoch=epoch)
        assert epochs(output_dir, kind) == [1]
        assert "0" in content(output_dir, f"rows.{kind}.1")

    def test_two_loggers_of_a_process_write_their_own(self, tmp_path: Path) -> None:
        loggers = [Logger(str(tmp_path / name), sinks=BOTH) for name in "ab"]
        for number, logger in enumerate(loggers):
            dump(logger, Epoch=number)
        assert [epochs(str(tmp_path / name), "csv") for name in "ab"] == [[0], [1]]

    def test_names_of_the_files_can_be_chosen(self, output_dir: str) -> None:
        sinks = [JsonlSink("a.jsonl"), JsonlSink("more/b.jsonl"), CsvSink("more/c.csv")]
        with Logger(output_dir, sinks=sinks) as logger:
            dump(logger, Epoch=3)
        assert read_jsonl(output_dir, "a.jsonl") == read_jsonl(output_dir, "more/b.jsonl") == [{"Epoch": 3}]
        assert read_csv(output_dir, "more/c.csv") == [{"Epoch": "3"}]

    @pytest.mark.parametrize("kind", BOTH)
    def test_rows_and_columns_after_the_checkpoint_go_on_resume(self, output_dir: str, kind: str) -> None:
        logger = Logger(output_dir, sinks=[kind])
        for epoch in range(3):
            dump(logger, Epoch=epoch, Text="a\nb")
        logger.save_state({"epoch": 2})
        dump(logger, Epoch=3, Late=1)
        with open(Path(output_dir, f"rows.{kind}"), "a") as file:
            file.write('{"Epoch": "torn')
        with Logger(output_dir, resume=True, sinks=[kind]) as again:
            assert epochs(output_dir, kind) == [0, 1, 2]
            dump(again, Epoch=3, Other=5)
        read: Any = read_jsonl if kind == "jsonl" else read_csv
        assert [str(row["Epoch"]) for row in read(output_dir)] == ["0", "1", "2", "3"]
        assert list(read(output_dir)[3]) == ["Epoch", "Text", "Other"]
        assert str(read(output_dir)[3]["Other"]) == "5"

    @pytest.mark.parametrize("kind", BOTH)
    def test_without_a_checkpoint_the_file_is_continued(self, output_dir: str, kind: str) -> None:
        Logger(output_dir, sinks=[kind]).close()
        logger = Logger(output_dir, sinks=[kind])
        dump(logger, Epoch=0)
        dump(logger, Epoch=1)
        with open(Path(output_dir, f"rows.{kind}"), "a") as file:
            file.write("torn")
        with Logger(output_dir, resume=True, sinks=[kind]) as again:
            dump(again, Epoch=2)
        assert epochs(output_dir, kind) == [0, 1, 2]

    @pytest.mark.parametrize("kind", BOTH)
    def test_a_sink_that_comes_with_a_later_process_is_cut_at_the_right_row(
        self, output_dir: str, kind: str
    ) -> None:
        logger = Logger(output_dir)
        for epoch in range(4):
            dump(logger, Epoch=epoch)
        logger.save_state({"epoch": 3})
        second = Logger(output_dir, resume=True, sinks=[kind])
        for epoch in range(4, 8):
            dump(second, Epoch=epoch)
            if epoch == 5:
                second.save_state({"epoch": epoch})
        assert epochs(output_dir, kind) == [4, 5, 6, 7]
        with Logger(output_dir, resume=True, sinks=[kind]) as third:
            assert epochs(output_dir, kind) == [4, 5]
            dump(third, Epoch=6)
        with Logger(output_dir, sinks=[kind]) as anew:
            dump(anew, Epoch=0)
            anew.save_state({})
        Logger(output_dir, resume=True, sinks=[kind]).close()
        assert epochs(output_dir, kind) == [0]

    @pytest.mark.parametrize("kind", BOTH)
    def test_a_file_with_too_few_rows_is_continued_with_a_warning(self, output_dir: str, kind: str) -> None:
        logger = Logger(output_dir, sinks=[kind])
        for epoch in range(4):
            dump(logger, Epoch=epoch)
        logger.save_state({"epoch": 3})
        path = Path(output_dir, f"rows.{kind}")
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-2]))
        with pytest.warns(UserWarning, match=rf"rows\.{kind} has rows 0 to 1, .* there were 4"):
            again = Logger(output_dir, resume=True, sinks=[kind])
        for epoch in range(4, 7):
            dump(again, Epoch=epoch)
            if epoch == 4:
                again.save_state({"epoch": epoch})
        Logger(output_dir, resume=True, sinks=[kind]).close()
        assert epochs(output_dir, kind) == [0, 1, 4]


class TestNothingIsLost:
    @pytest.mark.parametrize("kind", BOTH)
    def test_a_vanished_folder_keeps_the_rows_until_it_is_back(self, output_dir: str, kind: str) -> None:
        logger = Logger(output_dir, sinks=[kind])
        dump(logger, Epoch=0)
        os.rename(output_dir, f"{output_dir}.away")
        with pytest.warns(UserWarning) as caught:
            dump(logger, Epoch=1)
            dump(logger, Epoch=2, New=1)
        assert sum("the sink" in str(warning.message) for warning in caught) == 1
        os.rename(f"{output_dir}.away", output_dir)
        logger.close()
        assert epochs(output_dir, kind) == [0, 1, 2]

    @pytest.mark.parametrize("kind", BOTH)
    def test_what_is_left_at_the_end_is_told_and_can_be_written_later(
        self, output_dir: str, kind: str
    ) -> None:
        logger = Logger(output_dir, quiet=True, sinks=[kind])
        os.rename(output_dir, f"{output_dir}.away")
        with pytest.warns(UserWarning):
            dump(logger, Epoch=0)
        with pytest.warns(UserWarning, match=rf"rows\.{kind}: .*1 of its rows"), pytest.raises(OSError):
            logger.close()
        os.rename(f"{output_dir}.away", output_dir)
        logger.close()
        assert epochs(output_dir, kind) == [0]

    @pytest.mark.parametrize("kind", BOTH)
    def test_a_removed_file_begins_again(self, output_dir: str, kind: str) -> None:
        logger = Logger(output_dir, sinks=[kind])
        dump(logger, Epoch=0)
        os.unlink(Path(output_dir, f"rows.{kind}"))
        with pytest.warns(UserWarning, match="a new one begins"):
            dump(logger, Epoch=1)
        dump(logger, Epoch=2)
        logger.save_state({})
        dump(logger, Epoch=3)
        assert epochs(output_dir, kind) == [1, 2, 3]
        Logger(output_dir, resume=True, sinks=[kind]).close()
        assert epochs(output_dir, kind) == [1, 2]

    @pytest.mark.parametrize("kind", BOTH)
    def test_a_file_of_somebody_else_in_its_place_is_not_touched(self, output_dir: str, kind: str) -> None:
        logger = Logger(output_dir, sinks=[kind])
        dump(logger, Epoch=0)
        path = Path(output_dir, f"rows.{kind}")
        os.rename(path, path.with_name("mine"))
        path.write_text("theirs")
        with pytest.warns(UserWarning, match="another file has taken the place"):
            dump(logger, Epoch=1)
        assert path.read_text() == "theirs"
        os.replace(path.with_name("mine"), path)
        logger.close()
        assert epochs(output_dir, kind) == [0, 1]

    @pytest.mark.parametrize("kind", BOTH)
    def test_a_full_disk_keeps_the_rows_and_leaves_no_torn_line(
        self, output_dir: str, run_python: RunPython, kind: str
    ) -> None:
        """The limit on the size of files stands for the disk."""
        script = """
import resource, signal, sys, warnings
from spinstat import Logger
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
folder, kind = sys.argv[1:]
logger = Logger(folder, quiet=True, sinks=[kind])
def dump(**row):
    for key, value in row.items(): logger.log_tabular(key, value)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        logger.dump_tabular()
    return [str(warning.message) for warning in caught]
dump(Epoch=0, A="x" * 100)
before = open(f"{folder}/rows.{kind}").read()
limits = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (150, limits[1]))
told = dump(Epoch=1, A="y" * 100) + dump(Epoch=2, A="z" * 100, New=1)
assert len([message for message in told if f"the sink {kind} failed" in message]) == 1, told
assert open(f"{folder}/rows.{kind}").read() == before
resource.setrlimit(resource.RLIMIT_FSIZE, limits)
dump(Epoch=3)
"""
        run_python("-c", script, output_dir, kind)
        assert epochs(output_dir, kind) == [0, 1, 2, 3]


def train(folder: str) -> None:
    """Ten epochs that go on where the last process ended."""
    logger = EpochLogger(folder, quiet=True, resume=True, sinks=BOTH)
    state = logger.load_state()
    for epoch in range(0 if state is None else state["epoch"] + 1, 10):
        logger.store(X=float(epoch))
        logger.save_state({"epoch": epoch})
        logger.log_tabular("Epoch", epoch)
        logger.log_tabular("X", average_only=True)
        if epoch >= 4:
            logger.log_tabular("Text", f"line {epoch},\nnext")
        logger.dump_tabular()
    logger.close()


def train_until_call(number: int, folder: str) -> None:
    killed_at_call(number)
    train(folder)


@pytest.mark.slow
def test_runs_killed_at_any_call_give_the_files_of_one_that_was_not(tmp_path: Path) -> None:
    reference, folder = str(tmp_path / "reference"), str(tmp_path / "run")
    assert in_child(partial(train, reference)) == 0
    want = read_jsonl(reference), read_csv(reference)
    assert len(want[0]) == len(want[1]) == 10
    for stride in (17, 23, 31, 41):
        code = -signal.SIGKILL
        while code != 0:
            code = in_child(partial(train_until_call, stride + 30, folder))
            assert code in (0, -signal.SIGKILL)
            stride += 13  # a run that needs more calls than that for an epoch would never end
        assert (read_jsonl(folder), read_csv(folder)) == want
        shutil.rmtree(folder)
