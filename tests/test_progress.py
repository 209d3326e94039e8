"""progress.txt: what a row is as text, how columns are added, and what becomes of an earlier file."""

from __future__ import annotations

import os
import subprocess
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rows import content, dump

from spinstat import EpochLogger, Logger
from spinstat.plot import read_run
from spinstat.row import quote_name, unquote_name


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1, "1"),
        (2**70, str(2**70)),
        (1 / 3, "0.3333333333333333"),
        (1e16, "1e+16"),
        (123456.0, "123456.0"),
        (True, "True"),
        ("hello", "hello"),
        (None, ""),
        (float("nan"), "nan"),
        (Decimal("1.50"), "1.50"),
        pytest.param(np.float32(0.1), "0.1", id="C8-float32"),
        pytest.param(np.float64(0.1), "0.1", id="C8-float64"),
        pytest.param(np.float16(0.1), "0.1", id="C8-float16"),
        pytest.param(np.longdouble("0.1"), "0.1", id="C8-longdouble"),
        pytest.param(np.int64(-5), "-5", id="C8-int64"),
        pytest.param(np.bool_(True), "True", id="C8-bool"),
        pytest.param([np.float64(1.0), (np.int8(2),)], "[1.0, (2,)]", id="C8-list"),
        pytest.param({"a": np.float32(0.5)}, "{'a': 0.5}", id="C8-dict"),
        pytest.param([torch.tensor(0.5)], "[0.5]", id="C8-list-of-tensors"),
        pytest.param(np.array([0.2]), "0.2", id="C6-array"),
        pytest.param(np.array([[0.1]], dtype="f4"), "0.1", id="C6-float32-array"),
        pytest.param(np.ma.masked_array([1.0, 7.0], mask=[True, False]), "7.0", id="C6-masked"),
        pytest.param(torch.tensor([0.2]), "0.20000000298023224", id="C6-tensor"),
        pytest.param(torch.tensor(0.5, requires_grad=True), "0.5", id="C7"),
        pytest.param(torch.tensor(3), "3", id="C7-integer"),
        pytest.param(torch.tensor(0.1, dtype=torch.bfloat16), "0.10009765625", id="C7-bfloat16"),
        pytest.param(np.complex128(1 + 2j), "(1+2j)", id="B10"),
        (np.datetime64("2020-01-01"), "2020-01-01"),
        (np.str_("text"), "text"),
        ("a\tb\nc\rd", "a\\tb\\nc\\rd"),
        ("line\u2028separator\x85", "line\\u2028separator\\x85"),
        ("C:\\new\\table", "C:\\new\\table"),
        ("half of a pair: \ud800", "half of a pair: \\ud800"),
    ],
)
def test_a_field_is_the_text_of_the_value_given(output_dir: str, value: object, text: str) -> None:
    dump(Logger(output_dir), Key=value, Last=1)
    assert content(output_dir) == f"Key\tLast\n{text}\t1\n"


def test_a_statistic_is_the_shortest_text_that_reads_back_c8(output_dir: str) -> None:
    logger = EpochLogger(output_dir)
    logger.store(X=np.float32(0.1), Y=np.float64(0.1))
    logger.log_tabular("X", average_only=True)
    logger.log_tabular("Y", with_min_and_max=True)
    logger.dump_tabular()
    assert content(output_dir).splitlines()[1] == "0.10000000149011612\t0.1\t0.0\t0.1\t0.1"


def test_keys_with_tabs_and_newlines_are_quoted(output_dir: str) -> None:
    dump(Logger(output_dir), **{"a\tb": 1, "c\nd": 2, 'e"\\\r': 3})
    assert content(output_dir) == r'"a\tb" "c\nd" "e\x22\\\r"'.replace(" ", "\t") + "\n1\t2\t3\n"


@pytest.mark.parametrize("key", [r"$\theta$", r"$\nu$", r"\x85", r"C:\new", '"quoted"', 'a "b"', r'"\d"'])
def test_keys_without_breaks_are_written_as_they_are(output_dir: str, key: str) -> None:
    dump(Logger(output_dir), **{key: 1})
    logger = Logger(output_dir, resume=True)
    assert logger.log_headers == [key]
    dump(logger, **{key: 2})
    assert content(output_dir) == f"{key}\n1\n2\n"
    assert read_run(output_dir)[key].tolist() == [1, 2]


NAMES = st.text(st.sampled_from('"\\tnrx2285u0 \t\n\r\x85\u2028') | st.characters(codec="utf-8"))


@given(name=NAMES)
@example(name=r'"\t"')
@example(name='"\t')
def test_a_name_in_a_header_is_read_as_it_was(name: str) -> None:
    text = quote_name(name)
    assert unquote_name(text) == name
    assert "\t" not in text and len(text.splitlines()) <= 1


def test_a_key_that_is_missing_in_a_row_is_an_empty_field_c3(output_dir: str) -> None:
    logger = Logger(output_dir)
    dump(logger, A=1, B=2)
    dump(logger, A=3)
    assert content(output_dir) == "A\tB\n1\t2\n3\t\n"


def test_a_row_is_on_the_disk_when_dump_returns(output_dir: str) -> None:
    logger = Logger(output_dir)
    for i in range(3):
        dump(logger, A=i)
        seen = subprocess.run(["cat", f"{output_dir}/progress.txt"], capture_output=True, text=True).stdout
        assert seen == "A\n" + "".join(f"{j}\n" for j in range(i + 1))


KEYS = st.text(max_size=4).filter(lambda key: "\\" not in key)
VALUES = st.none() | st.integers() | st.floats() | st.booleans() | st.text(max_size=6)
ROWS = st.lists(st.dictionaries(KEYS, VALUES, min_size=1, max_size=5), min_size=1, max_size=6)


@given(rows=ROWS, cut=st.integers(0, 6))
@settings(max_examples=60, deadline=None)
def test_any_rows_read_back_as_a_rectangle_of_the_same_values(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, object]], cut: int
) -> None:
    """With a resumed logger from row `cut` on."""
    output_dir = str(tmp_path_factory.mktemp("rows"))
    logger = Logger(output_dir, quiet=True)
    for i, row in enumerate(rows):
        if i == cut:
            logger = Logger(output_dir, quiet=True, resume=True)
        dump(logger, **row)
    columns = list(dict.fromkeys(key for row in rows for key in row))
    assert logger.log_headers == columns
    with open(f"{output_dir}/progress.txt", encoding="utf-8", newline="") as file:
        text = file.read()
    header, *lines = [line.split("\t") for line in text.removesuffix("\n").split("\n")]
    assert len(text.splitlines()) == len(rows) + 1
    assert len(header) == len(columns)
    assert len(lines) == len(rows)
    for row, line in zip(rows, lines, strict=True):
        assert len(line) == len(columns)
        for field, value in zip(line, (row.get(column) for column in columns), strict=True):
            if isinstance(value, float):
                assert float(field) == value or value != value
            elif not isinstance(value, str):
                assert field == ("" if value is None else str(value))


class TestNewColumns:
    def test_a_key_that_appears_later_is_a_new_column_c2(self, output_dir: str) -> None:
        logger = Logger(output_dir)
        dump(logger, A=1)
        dump(logger, A=2, TestRet=3)
        dump(logger, A=4)
        dump(logger, Other=5, TestRet=6)
        assert content(output_dir) == "A\tTestRet\tOther\n1\t\t\n2\t3\t\n4\t\t\n\t6\t5\n"
        assert logger.log_headers == ["A", "TestRet", "Other"]

    def test_an_empty_row_before_the_new_column_stays_a_row(self, output_dir: str) -> None:
        logger = Logger(output_dir)
        dump(logger, A="")
        dump(logger)
        dump(logger, B=1)
        assert content(output_dir) == "A\tB\n\t\n\t\n\t1\n"

    def test_the_file_keeps_its_permissions(self, output_dir: str) -> None:
        logger = Logger(output_dir)
        dump(logger, A=1)
        os.chmod(f"{output_dir}/progress.txt", 0o640)
        dump(logger, B=1)
        assert os.stat(f"{output_dir}/progress.txt").st_mode & 0o777 == 0o640

    def test_the_rewrite_leaves_no_temporary_behind(self, output_dir: str) -> None:
        logger = Logger(output_dir)
        dump(logger, A=1)
        dump(logger, B=1)
        assert os.listdir(f"{output_dir}/.spinstat") == []

    def test_new_keys_error_is_the_originals_assertion_with_nothing_changed_c2(self, output_dir: str) -> None:
        logger = Logger(output_dir, new_keys="error")
        dump(logger, A=1)
        logger.log_tabular("A", 2)
        with pytest.raises(AssertionError, match=r"'B'.*new_keys='add'"):
            logger.log_tabular("B", 3)
        logger.dump_tabular()
        assert content(output_dir) == "A\n1\n2\n"

    def test_new_keys_takes_two_values_only(self, output_dir: str) -> None:
        with pytest.raises(ValueError, match="'add' or 'error'"):
            Logger(output_dir, new_keys="ignore")  # type: ignore[arg-type]


class TestMovedAside:
    def test_an_existing_file_becomes_1_then_2_h3_c14(
        self, output_dir: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        for i in range(3):
            with Logger(output_dir) as logger:
                dump(logger, **{f"Run{i}": i})
        assert content(output_dir, "progress.txt.1") == "Run0\n0\n"
        assert content(output_dir, "progress.txt.2") == "Run1\n1\n"
        assert content(output_dir) == "Run2\n2\n"
        warning = f"Warning: Log dir {output_dir} already exists! Storing info there anyway.\n"
        assert capsys.readouterr().out.count(warning) == 2

    def test_two_loggers_in_one_folder_do_not_mix_h3(self, output_dir: str) -> None:
        first, second = Logger(output_dir), Logger(output_dir)
        dump(second, B=1)
        dump(first, A=1)
        dump(second, B=2)
        dump(first, A=2, New=3)
        assert content(output_dir) == "B\n1\n2\n"
        assert content(output_dir, "progress.txt.1") == "A\tNew\n1\t\n2\t3\n"

    def test_another_name_for_the_file_is_honoured(self, output_dir: str) -> None:
        dump(Logger(output_dir, "log.tsv"), A=1)
        dump(Logger(output_dir, "log.tsv"), A=2)
        assert sorted(os.listdir(output_dir)) == ["log.tsv", "log.tsv.1"]

    def test_a_device_is_left_where_it_is(self, output_dir: str) -> None:
        device = os.stat(os.devnull).st_rdev
        logger = Logger(output_dir, os.devnull)
        dump(logger, A=1)
        dump(logger, B=2)
        assert os.stat(os.devnull).st_rdev == device


class TestResume:
    @pytest.mark.parametrize(
        ("before", "after"),
        [
            pytest.param(None, "E\n1\n", id="no file"),
            pytest.param("", "E\n1\n", id="empty"),
            pytest.param("E\n0\n", "E\n0\n1\n", id="whole"),
            pytest.param("E\n0\n1", "E\n0\n1\n", id="torn row"),
            pytest.param("E", "E\n1\n", id="torn header"),
            pytest.param("E\tF\n", "E\tF\n1\t\n", id="header only"),
            pytest.param("E\tF\n0\t5\n", "E\tF\n0\t5\n1\t\n", id="more columns"),
            pytest.param("F\n5\n", "F\tE\n5\t\n\t1\n", id="another column"),
            pytest.param("E\r\n0\r\n", "E\r\n0\r\n1\n", id="carriage returns"),
        ],
    )
    def test_the_file_goes_on_c14(self, output_dir: str, before: str | None, after: str) -> None:
        os.makedirs(output_dir)
        path = Path(output_dir, "progress.txt")
        if before is not None:
            path.write_bytes(before.encode())
        dump(Logger(output_dir, resume=True), E=1)
        assert path.read_bytes() == after.encode()
        assert "progress.txt.1" not in os.listdir(output_dir)

    def test_two_processes_give_the_file_of_one_c14(self, output_dir: str) -> None:
        first = Logger(output_dir)
        dump(first, E=0, **{"key\twith tab": "a"})
        second = Logger(output_dir, resume=True)
        assert second.log_headers == ["E", "key\twith tab"]
        assert second.first_row is False
        dump(second, E=1, **{"key\twith tab": "b"})
        assert content(output_dir) == "E\t\"key\\twith tab\"\n0\ta\n1\tb\n"

    def test_new_keys_error_holds_for_the_resumed_columns(self, output_dir: str) -> None:
        dump(Logger(output_dir), E=0)
        logger = Logger(output_dir, resume=True, new_keys="error")
        logger.log_tabular("E", 1)
        with pytest.raises(AssertionError, match="'F'"):
            logger.log_tabular("F", 1)

    def test_without_a_folder_there_is_nothing_to_resume(self) -> None:
        with pytest.raises(ValueError, match="output_dir"):
            Logger(resume=True)
