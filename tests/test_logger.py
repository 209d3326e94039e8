"""Logger: one row at a time, its attributes as scripts use them, and who does what on which rank."""

from __future__ import annotations

import inspect
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rows import content, dump
from thread_ranks import ThreadComm, on_ranks

from spinstat import EpochLogger, Logger
from spinstat.row import make_row


class Mute:
    """An object that has no text."""

    def __str__(self) -> str:
        raise RuntimeError("nothing to say")

    __repr__ = __str__


class TestRow:
    def test_it_is_a_dict_of_plain_numbers_c15(self, output_dir: str) -> None:
        logger = EpochLogger(output_dir)
        logger.store(R=np.float32(0.5))
        logger.log_tabular("R", with_min_and_max=True)
        logger.log_tabular("A", np.float32(0.1))
        logger.log_tabular("B", torch.tensor([2]))
        logger.log_tabular("C", np.array(True))
        assert type(logger.log_current_row) is dict
        assert json.loads(json.dumps(logger.log_current_row)) == {
            "AverageR": 0.5,
            "StdR": 0.0,
            "MaxR": 0.5,
            "MinR": 0.5,
            "A": 0.10000000149011612,
            "B": 2,
            "C": True,
        }
        assert {type(value) for value in logger.log_current_row.values()} == {float, int, bool}

    def test_changes_by_hand_count(self, output_dir: str) -> None:
        logger = Logger(output_dir)
        for key in ("A", "B", "C"):
            logger.log_tabular(key, np.float32(0.1))
        logger.log_current_row["A"] = 7
        del logger.log_current_row["B"]
        logger.log_current_row["D"] = np.float32(0.2)
        logger.dump_tabular()
        assert content(output_dir) == "A\tB\tC\tD\n7\t\t0.1\t0.2\n"

    @pytest.mark.parametrize(
        ("value", "text"),
        [
            pytest.param(np.array([1.0, 2.0]), "[1.0, 2.0]", id="C6-array"),
            pytest.param(torch.tensor([1.0, 2.0]), "[1.0, 2.0]", id="C6-tensor"),
            pytest.param(torch.tensor([0.5]), "0.5", id="C7"),
            pytest.param(Mute(), "<Mute>", id="no text"),
            pytest.param(torch.empty(2, device="meta"), "<Tensor>", id="no data"),
        ],
    )
    def test_whatever_is_put_in_by_hand_is_written(
        self, output_dir: str, capsys: pytest.CaptureFixture[str], value: object, text: str
    ) -> None:
        logger = Logger(output_dir)
        logger.log_current_row["A"] = value
        logger.dump_tabular()
        assert content(output_dir) == f"A\n{text}\n"
        assert f"|               A | {text:>15} |" in capsys.readouterr().out

    def test_texts_of_many_columns_are_found_without_a_search_for_each(self) -> None:
        class Unsearched(list[str]):
            def index(self, *arguments: object) -> int:
                raise AssertionError("one search a column is quadratic")

        cells = {"A": 0.5, "B": 7.0, "C": 1.5}
        texts = {"A": (cells["A"], "0.50"), "B": (8.0, "set anew since"), "D": (1.0, "taken out")}
        row = make_row(0, Unsearched(cells), dict(cells), dict(texts), False)
        assert row.texts == ("0.50", "7.0", "1.5")

    def test_it_can_be_set_as_a_whole(self, output_dir: str) -> None:
        logger = Logger(output_dir)
        logger.log_current_row = {"A": 1.5, "B": "text"}
        logger.dump_tabular()
        assert content(output_dir) == "A\tB\n1.5\ttext\n"
        assert logger.log_current_row == {}

    def test_a_new_column_by_hand_obeys_new_keys_error(self, output_dir: str) -> None:
        logger = Logger(output_dir, new_keys="error")
        dump(logger, A=1)
        logger.log_current_row["B"] = 2
        with pytest.raises(AssertionError, match="'B'"):
            logger.dump_tabular()
        del logger.log_current_row["B"]
        dump(logger, A=3)
        assert content(output_dir) == "A\n1\n3\n"

    def test_a_key_set_twice_is_an_assertion_and_the_first_value_stays(self, output_dir: str) -> None:
        logger = Logger(output_dir)
        for row in range(2):
            logger.log_tabular("A", row)
            with pytest.raises(AssertionError, match=r"'A'.*dump_tabular"):
                logger.log_tabular("A", 5)
            logger.dump_tabular()
        assert content(output_dir) == "A\n0\n1\n"

    def test_the_order_of_columns_is_that_of_the_first_row(self, output_dir: str) -> None:
        logger = Logger(output_dir)
        dump(logger, A=1, B=2, C=3)
        dump(logger, C=4, A=5)
        dump(logger, B=6, C=7, A=8)
        assert content(output_dir) == "A\tB\tC\n1\t2\t3\n5\t\t4\n8\t6\t7\n"

    @pytest.mark.parametrize(
        "value",
        [
            pytest.param(np.array([1.0, 2.0]), id="C6-array"),
            pytest.param(np.array([]), id="C6-empty"),
            pytest.param(torch.tensor([1.0, 2.0]), id="C6-tensor"),
            pytest.param(torch.empty((), device="meta"), id="C6-no-data"),
            pytest.param(np.ma.masked_array([1.0], mask=[True]), id="C6-masked"),
        ],
    )
    def test_what_is_no_single_number_is_refused_at_the_call_c6(self, output_dir: str, value: Any) -> None:
        logger = Logger(output_dir)
        dump(logger, A=1)
        with pytest.raises(TypeError, match="'B'"):
            logger.log_tabular("B", value)
        assert logger.log_headers == ["A"]
        dump(logger, A=2)
        assert content(output_dir) == "A\n1\n2\n"

    def test_a_value_without_text_is_refused_at_the_call(self, output_dir: str) -> None:
        with pytest.raises(TypeError, match=r"'A'.*nothing to say"):
            Logger(output_dir).log_tabular("A", Mute())

    @pytest.mark.parametrize("key", [1, None, b"A", ("A",)])
    def test_a_key_is_a_string(self, output_dir: str, key: Any) -> None:
        logger = Logger(output_dir)
        with pytest.raises(TypeError, match="key"):
            logger.log_tabular(key, 1)
        logger.log_current_row[key] = 1
        with pytest.raises(TypeError, match="key"):
            logger.dump_tabular()

    def test_none_is_a_blank_b7(self, output_dir: str, capsys: pytest.CaptureFixture[str]) -> None:
        logger = Logger(output_dir)
        dump(logger, X=None, Y=1)
        assert content(output_dir) == "X\tY\n\t1\n"
        assert "|               X |                 |" in capsys.readouterr().out


class TestDump:
    def test_with_nothing_logged_it_does_nothing_before_the_first_row_c12(
        self, output_dir: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        logger = EpochLogger(output_dir)
        capsys.readouterr()
        logger.dump_tabular()
        assert capsys.readouterr().out == ""
        assert logger.first_row is True
        dump(logger, A=1)
        assert content(output_dir) == "A\n1\n"

    def test_with_nothing_logged_it_is_a_blank_row_later_c12(self, output_dir: str) -> None:
        logger = EpochLogger(output_dir)
        dump(logger, A=1, B=2)
        logger.dump_tabular()
        assert content(output_dir) == "A\tB\n1\t2\n\t\n"

    def test_first_row_false_writes_no_header_c14(self, output_dir: str) -> None:
        logger = Logger(output_dir)
        logger.first_row = False
        logger.log_headers = ["A", "B"]
        dump(logger, B=1)
        dump(logger, A=2)
        dump(logger, C=3)
        assert content(output_dir) == "\t1\t\n2\t\t\n\t\t3\n"

    def test_first_row_true_again_begins_a_new_header_c14(self, output_dir: str) -> None:
        logger = Logger(output_dir)
        dump(logger, A=1)
        logger.first_row, logger.log_headers = True, []
        dump(logger, B=2, C=3)
        dump(logger, D=4)
        assert logger.first_row is False
        assert content(output_dir) == "A\n1\nB\tC\tD\n2\t3\t\n\t\t4\n"

    def test_headers_in_another_order_go_to_their_columns(
        self, output_dir: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        logger = Logger(output_dir)
        dump(logger, A=1, B=2)
        logger.log_headers.reverse()
        capsys.readouterr()
        dump(logger, A=3, B=4)
        assert [line.split()[1] for line in capsys.readouterr().out.splitlines()[1:3]] == ["B", "A"]
        assert content(output_dir) == "A\tB\n1\t2\n3\t4\n"


class TestConfig:
    def test_it_is_printed_and_written(self, output_dir: str, capsys: pytest.CaptureFixture[str]) -> None:
        logger = Logger(output_dir, exp_name="ppo")
        capsys.readouterr()
        logger.save_config(config := {"b": 1, "a": (1, np.float32(0.5))})
        text = '{\n    "a":\t[\n        1,\n        0.5\n    ],\n    "b":\t1,\n    "exp_name":\t"ppo"\n}'
        assert capsys.readouterr().out == f"Saving config:\n\n{text}\n"
        assert content(output_dir, "config.json") == text
        assert set(config) == {"a", "b"}

    def test_locals_with_the_logger_itself_are_fine(self, output_dir: str) -> None:
        logger = EpochLogger(output_dir)
        logger.save_config(locals())
        assert json.loads(content(output_dir, "config.json"))["output_dir"] == output_dir

    def test_a_configuration_that_cannot_take_the_name_is_refused(self, output_dir: str) -> None:
        logger = Logger(output_dir, exp_name="ppo")
        with pytest.raises(TypeError, match="ppo"):
            logger.save_config([1, 2])
        assert not os.path.exists(f"{output_dir}/config.json")


class TestRanks:
    def test_only_rank_0_prints_and_writes_d13(
        self, output_dir: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def program(comm: ThreadComm) -> tuple[Any, ...]:
            logger = Logger(output_dir, comm=comm, exp_name="e")
            logger.log("hello")
            logger.save_config({})
            dump(logger, A=comm.rank)
            return logger.output_dir, logger.output_file is None, logger.log_headers, logger.first_row

        ranks = on_ranks(3, program)
        assert ranks[0] == (output_dir, False, ["A"], False)
        assert ranks[1] == ranks[2] == (output_dir, True, ["A"], False)
        assert capsys.readouterr().out.count("hello") == 1
        assert content(output_dir) == "A\n0\n"
        assert sorted(os.listdir(output_dir)) == [".spinstat", "config.json", "launch.json", "progress.txt"]

    def test_the_default_folder_is_known_to_rank_0_only_d13(self) -> None:
        assert Logger(comm=ThreadComm(1, [b"", b""], None)).output_dir is None  # type: ignore[arg-type]

    def test_rank_0_alone_may_log_explicit_values_d4(self, output_dir: str) -> None:
        def program(comm: ThreadComm) -> int:
            logger = EpochLogger(output_dir, comm=comm, quiet=True)
            if comm.rank == 0:
                dump(logger, Epoch=1)
            return comm.collectives

        assert on_ranks(2, program) == [0, 0]
        assert content(output_dir) == "Epoch\n1\n"

    def test_every_rank_resumes_with_the_columns_of_the_file(self, output_dir: str) -> None:
        dump(Logger(output_dir), A=1, B=2)

        def program(comm: ThreadComm) -> tuple[list[str], bool]:
            logger = Logger(output_dir, comm=comm, resume=True)
            return logger.log_headers, logger.first_row

        assert on_ranks(2, program) == [(["A", "B"], False)] * 2

    def test_a_bad_color_is_an_error_on_every_rank(self, output_dir: str) -> None:
        def program(comm: ThreadComm) -> None:
            with pytest.raises(KeyError):
                Logger(output_dir, comm=comm, quiet=True).log("hello", "pink")

        on_ranks(2, program)


ORIGINAL_SIGNATURES = {
    Logger.__init__: [("output_dir", None), ("output_fname", "progress.txt"), ("exp_name", None)],
    Logger.log: [("msg", inspect.Parameter.empty), ("color", "green")],
    Logger.log_tabular: [("key", inspect.Parameter.empty), ("val", inspect.Parameter.empty)],
    Logger.save_config: [("config", inspect.Parameter.empty)],
    Logger.save_state: [("state_dict", inspect.Parameter.empty), ("itr", None)],
    Logger.setup_tf_saver: [(name, inspect.Parameter.empty) for name in ("sess", "inputs", "outputs")],
    Logger.setup_pytorch_saver: [("what_to_save", inspect.Parameter.empty)],
    Logger.dump_tabular: [],
    EpochLogger.__init__: [("output_dir", None), ("output_fname", "progress.txt"), ("exp_name", None)],
    EpochLogger.log_tabular: [
        ("key", inspect.Parameter.empty),
        ("val", None),
        ("with_min_and_max", False),
        ("average_only", False),
    ],
    EpochLogger.get_stats: [("key", inspect.Parameter.empty)],
}


@pytest.mark.parametrize("function", ORIGINAL_SIGNATURES, ids=lambda function: function.__qualname__)
def test_the_originals_arguments_come_first_and_ours_are_keyword_only(function: Any) -> None:
    parameters = list(inspect.signature(function).parameters.values())[1:]
    positional = [each for each in parameters if each.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    assert [(each.name, each.default) for each in positional] == ORIGINAL_SIGNATURES[function]
    assert all(each.kind is inspect.Parameter.KEYWORD_ONLY for each in parameters[len(positional) :])


def test_a_warning_points_at_the_scripts_line(tmp_path: Path) -> None:
    logger = EpochLogger(tmp_path / "run")
    with pytest.warns(UserWarning) as caught:
        logger.log_tabular("Nothing")
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"output_dir": 5}, TypeError),
        ({"output_dir": b"run"}, TypeError),
        ({"output_dir": "a\0b"}, ValueError),
        ({"output_fname": None}, TypeError),
        ({"output_fname": 1}, TypeError),
    ],
)
def test_a_path_of_another_kind_is_an_error_that_names_the_option(
    options: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error, match=next(iter(options))):
        Logger(**options)
