"""Sinks in general: what a logger takes for one, what becomes of one that fails, and who gets rows."""

from __future__ import annotations

import copy
import os
import pickle
import tomllib
import warnings
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, RunPython
from rows import content, dump
from sinks import Listing, Told

from spinstat import EpochLogger, Logger
from spinstat.comm import Comm
from spinstat.row import Row
from spinstat.sinks import CsvSink, JsonlSink, MlflowSink, Run, TensorBoardSink, WandbSink


class Failing(Listing):
    """One that raises in the methods it is given."""

    def __init__(self, *methods: str, error: BaseException | None = None) -> None:
        super().__init__()
        self.calls: list[str] = []
        self._methods = methods
        self._error = error or RuntimeError("out of order")

    def _do(self, method: str) -> None:
        self.calls.append(method)
        if method in self._methods:
            raise self._error

    def open_run(self, run: Run) -> None:
        self._do("open_run")

    def save_config(self, config: object) -> None:
        self._do("save_config")

    def write(self, row: Row) -> None:
        self._do("write")
        self.rows.append(row)

    def close(self) -> None:
        self._do("close")


class Unprintable(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


class Elsewhere(Comm):
    """A rank other than 0, alone."""

    rank, size = 1, 2

    def _communicate(self, *args: Any, **kwargs: Any) -> Any:
        raise AssertionError("a collective")

    reduce = allgather = allreduce = broadcast = barrier = _communicate


class TestWhatIsASink:
    def test_an_object_with_write_and_close_gets_the_rows(self, output_dir: str) -> None:
        sink = Listing()
        with Logger(output_dir, sinks=[sink]) as logger:
            logger.save_config({"seed": 1})
            dump(logger, Epoch=0, Text="a\tb", X=1.5)
            dump(logger, Epoch=1, New=2)
        first, second = sink.rows
        assert (first.number, first.columns, first.values) == (0, ("Epoch", "Text", "X"), (0, "a\tb", 1.5))
        assert first.texts == ("0", "a\\tb", "1.5") and first.header
        assert (second.number, second.values) == (1, (1, None, None, 2))
        assert second.columns == ("Epoch", "Text", "X", "New") and not second.header
        assert dict(first.histograms) == {}
        assert sink.told == ["closed"]

    def test_it_is_told_of_the_run_and_the_configuration_where_it_can_be(self, output_dir: str) -> None:
        sink = Told()
        with EpochLogger(output_dir, exp_name="ppo", sinks=[sink]) as logger:
            logger.save_config({"seed": 1, "act": max})
            logger.store(X=[1.0, 2.0, 2.0])
            logger.log_tabular("X")
            logger.dump_tabular()
        run, config, closed = sink.told
        assert run == Run(os.path.abspath(output_dir), "ppo", False, 0, ())
        assert config == {"seed": 1, "act": "max", "exp_name": "ppo"}
        assert closed == "closed"
        histogram = sink.rows[0].histograms["X"]
        assert (histogram.size, histogram.min, histogram.max, histogram.sum) == (3, 1.0, 2.0, 5.0)
        assert (histogram.counts[0], histogram.counts[-1], len(histogram.edges)) == (1, 2, 65)

    def test_values_that_are_all_equal_are_one_bin(self, output_dir: str) -> None:
        sink = Told()
        with EpochLogger(output_dir, sinks=[sink]) as logger:
            logger.store(X=[3.0, 3.0])
            logger.log_tabular("X")
            logger.dump_tabular()
        histogram = sink.rows[0].histograms["X"]
        assert (histogram.counts, histogram.edges) == ([2], [3.0, 3.0])

    def test_an_unknown_name_is_an_error_that_lists_the_names(self, output_dir: str) -> None:
        names = "'tensorboard', 'jsonl', 'csv', 'wandb', 'mlflow'"
        with pytest.raises(ValueError, match=f"unknown sink 'tensorbord': the names are {names}"):
            Logger(output_dir, sinks=["jsonl", "tensorbord"])
        assert not os.path.exists(output_dir)

    @pytest.mark.parametrize(
        ("sinks", "error", "message"),
        [
            ("jsonl", TypeError, "is a list"),
            (3, TypeError, "is a list"),
            ([3], TypeError, "an object with write"),
            ([JsonlSink], TypeError, "JsonlSink in sinks is a class"),
            ([object()], TypeError, "an object with write"),
            (["csv", "csv"], ValueError, "the sinks csv and csv have the same file, 'rows.csv'"),
            (["csv", JsonlSink("./rows.csv")], ValueError, "the sinks csv and jsonl have the same file"),
            ([JsonlSink("progress.txt")], ValueError, "'progress.txt': the run has a file of that name"),
            ([CsvSink("vars12.pkl")], ValueError, "'vars12.pkl': the run has a file of that name"),
            ([CsvSink("x/../pyt_save/rows.csv")], ValueError, "the run has a file of that name"),
            (["wandb", "wandb"], ValueError, "'wandb' is given twice"),
            ([*[JsonlSink()] * 2], ValueError, "the same jsonl sink"),
        ],
    )
    def test_what_is_no_list_of_sinks_is_an_error_before_anything_is_made(
        self, output_dir: str, sinks: Any, error: type[Exception], message: str
    ) -> None:
        with pytest.raises(error, match=message):
            Logger(output_dir, sinks=sinks)
        assert not os.path.exists(output_dir)

    def test_the_file_of_rows_is_refused_by_whatever_name_it_has(self, output_dir: str) -> None:
        with pytest.raises(ValueError, match="the run has a file of that name"):
            Logger(output_dir, "rows.txt", sinks=[JsonlSink("./rows.txt")])
        with pytest.raises(ValueError, match="names a file in output_dir"):
            JsonlSink("")

    def test_two_files_of_one_kind_are_two_sinks(self, output_dir: str) -> None:
        with Logger(output_dir, sinks=["jsonl", JsonlSink("more/rows.jsonl")]) as logger:
            dump(logger, Epoch=0)
        for name in ("rows.jsonl", "more/rows.jsonl"):
            assert content(output_dir, name) == '{"Epoch": 0}\n'

    def test_a_sink_cannot_change_what_others_get(self, output_dir: str) -> None:
        class Scale(Listing):
            def write(self, row: Row) -> None:
                row.values[0] *= 100  # type: ignore[index]

        with Logger(output_dir, sinks=[Scale(), "jsonl"]) as logger, pytest.warns(UserWarning, match="Scale"):
            dump(logger, Epoch=1)
        assert content(output_dir, "rows.jsonl") == '{"Epoch": 1}\n'

    def test_a_warning_is_one_line_without_codes_of_the_terminal(self, output_dir: str) -> None:
        failing = Failing("write", error=RuntimeError("boom\n\x1b[31m"))
        with Logger(output_dir, sinks=[failing]) as logger, pytest.warns(UserWarning) as told:
            dump(logger, Epoch=0)
        assert r"boom\n\x1b[31m" in str(told[0].message)

    def test_a_sink_of_another_logger_is_refused(self, tmp_path: Path) -> None:
        sink = JsonlSink()
        with Logger(str(tmp_path / "a"), sinks=[sink]), pytest.raises(ValueError, match="of another logger"):
            Logger(str(tmp_path / "b"), sinks=[sink])

    @pytest.mark.parametrize(
        ("name", "package", "extra"), [("wandb", "wandb", "wandb"), ("mlflow", "mlflow", "mlflow")]
    )
    def test_a_missing_package_is_an_error_that_names_the_extra(
        self, output_dir: str, monkeypatch: pytest.MonkeyPatch, name: str, package: str, extra: str
    ) -> None:
        monkeypatch.setattr(f"spinstat.sinks.{name}.has_package", lambda other: other != package)
        message = rf'the sink "{name}" needs {package}: pip install "spinstat\[{extra}\]"'
        with pytest.raises(ImportError, match=message):
            Logger(output_dir, sinks=[name])
        assert not os.path.exists(output_dir)

    def test_the_extras_that_errors_name_are_those_of_the_package(self) -> None:
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        assert {"tensorboard", "wandb", "mlflow"} <= set(extras)

    def test_importing_the_sinks_loads_none_of_their_packages(self, run_python: RunPython) -> None:
        code = (
            "import sys, spinstat.sinks\n"
            "print(sorted({'torch', 'tensorboard', 'tensorboardX', 'wandb', 'mlflow', 'tensorflow'} "
            "& set(sys.modules)))\n"
        )
        assert run_python("-c", code).stdout == "[]\n"

    def test_without_sinks_nothing_of_them_is_loaded(self, run_python: RunPython, output_dir: str) -> None:
        code = (
            "import sys, spinstat\n"
            "spinstat.EpochLogger(sys.argv[1], quiet=True).close()\n"
            "print([name for name in sys.modules if name.startswith('spinstat.sinks')])\n"
        )
        assert run_python("-c", code, output_dir).stdout == "[]\n"


class TestFailures:
    def test_one_that_fails_warns_once_and_the_others_lose_nothing(self, output_dir: str) -> None:
        before, failing, after = Listing(), Failing("write", "close", "save_config"), Listing()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with Logger(output_dir, sinks=[before, failing, after]) as logger:
                for epoch in range(3):
                    dump(logger, Epoch=epoch)
                logger.save_config({"seed": 0})
        assert [str(warning.message) for warning in caught] == [
            "the sink Failing failed to take a row (RuntimeError: out of order); the run goes on"
        ]
        assert caught[0].filename == dump.__code__.co_filename
        assert [row.values for row in before.rows] == [row.values for row in after.rows] == [(0,), (1,), (2,)]
        assert content(output_dir) == "Epoch\n0\n1\n2\n"
        assert failing.calls == ["open_run", "write", "write", "write", "save_config", "close"]

    def test_each_that_fails_is_named(self, output_dir: str) -> None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            sinks = [Failing("close"), Failing("save_config", error=Unprintable())]
            with Logger(output_dir, sinks=sinks) as logger:
                logger.save_config({})
                dump(logger, Epoch=0)
        assert [str(warning.message) for warning in caught] == [
            "the sink Failing failed to take the configuration (Unprintable); the run goes on",
            "the sink Failing failed to close (RuntimeError: out of order); the run goes on",
        ]

    def test_one_that_cannot_be_opened_is_left_out(self, output_dir: str) -> None:
        failing, other = Failing("open_run"), Listing()
        with pytest.warns(UserWarning, match=r"failed to open .*the run goes on without it"):
            logger = Logger(output_dir, sinks=[failing, other])
        dump(logger, Epoch=0)
        logger.close()
        assert failing.calls == ["open_run"] and len(other.rows) == 1

    def test_one_that_recovers_goes_on(self, output_dir: str) -> None:
        failing = Failing("write")
        logger = Logger(output_dir, sinks=[failing])
        with pytest.warns(UserWarning, match="out of order"):
            dump(logger, Epoch=0)
        failing._methods = ()
        dump(logger, Epoch=1)
        assert [row.number for row in failing.rows] == [1]

    @pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3)])
    def test_an_interrupt_passes_when_all_have_had_the_row(
        self, output_dir: str, error: BaseException
    ) -> None:
        interrupted, other = Failing("write", error=error), Listing()
        logger = Logger(output_dir, sinks=[interrupted, other])
        with pytest.raises(type(error)):
            dump(logger, Epoch=0)
        assert len(other.rows) == 1 and content(output_dir) == "Epoch\n0\n"
        interrupted._methods = ()
        logger.dump_tabular()  # the row is over: this one is blank, not the same again
        dump(logger, Epoch=1)
        assert [row.values[0] for row in other.rows] == [0, None, 1]
        logger.close()

    def test_rows_that_wait_for_progress_txt_do_not_keep_sinks_open(self, output_dir: str) -> None:
        sink = Listing()
        logger = Logger(output_dir, sinks=[sink])
        os.rename(output_dir, f"{output_dir}.away")
        with pytest.warns(UserWarning, match="kept in memory"):
            dump(logger, Epoch=0)
        with pytest.raises(OSError, match="1 row is lost"):
            logger.close()
        assert sink.told == ["closed"]
        os.rename(f"{output_dir}.away", output_dir)
        logger.close()
        assert sink.told == ["closed"] and content(output_dir) == "Epoch\n0\n"


class TestWhoGetsRows:
    def test_rank_0_alone_opens_them(self, output_dir: str) -> None:
        sink = Told()
        logger = Logger(output_dir, comm=Elsewhere(), sinks=[sink, "jsonl", "csv"])
        logger.save_config({"seed": 0})
        dump(logger, Epoch=0)
        logger.close()
        assert sink.told == [] and sink.rows == [] and not os.path.exists(output_dir)

    def test_other_ranks_raise_the_same_errors(self, output_dir: str) -> None:
        with pytest.raises(ValueError, match="unknown sink"):
            Logger(output_dir, comm=Elsewhere(), sinks=["nothing"])

    def test_a_forked_process_gives_sinks_nothing(self, output_dir: str, run_python: RunPython) -> None:
        script = """
import os, sys, warnings
from spinstat import Logger
from spinstat.sinks import JsonlSink
class Mine:
    def write(self, row): print("row", row.values, flush=True)
    def close(self): print("close", flush=True)
logger = Logger(sys.argv[1], quiet=True, sinks=[Mine(), "jsonl", "tensorboard"])
logger.log_tabular("A", 0); logger.dump_tabular()
child = os.fork()
if child == 0:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for i in range(2):
            logger.log_tabular("A", "child"); logger.dump_tabular()
    print(len(caught), str(caught[0].message)[:17], flush=True)
    sys.exit()
os.waitpid(child, 0)
logger.log_tabular("A", 1); logger.dump_tabular()
"""
        printed = run_python("-c", script, output_dir).stdout
        assert printed == "row (0,)\n1 sinks get nothing\nrow (1,)\nclose\n"
        assert content(output_dir, "rows.jsonl") == '{"A": 0}\n{"A": 1}\n'

    def test_a_logger_that_nobody_closes_closes_them(self, output_dir: str, run_python: RunPython) -> None:
        script = """
import sys
from spinstat import Logger
class Mine:
    def write(self, row): print("row")
    def close(self): print("close")
logger = Logger(sys.argv[1], quiet=True, sinks=[Mine()])
logger.log_tabular("A", 0); logger.dump_tabular()
"""
        assert run_python("-c", script, output_dir).stdout == "row\nclose\n"

    @pytest.mark.parametrize(
        "sink",
        [
            JsonlSink("mine.jsonl"),
            CsvSink("mine.csv"),
            TensorBoardSink(step="Updates", histograms=False),
            WandbSink(project="p", mode="offline"),
            MlflowSink(experiment="e"),
        ],
        ids=lambda sink: sink.name,
    )
    def test_a_pickle_or_copy_of_one_has_its_options_and_is_not_open(
        self, sink: Any, output_dir: str
    ) -> None:
        options = dict(sink._options)
        if isinstance(sink, JsonlSink | CsvSink):
            with Logger(output_dir, sinks=[sink]) as logger:
                dump(logger, A=1)
                others = [pickle.loads(pickle.dumps(sink)), copy.deepcopy(sink)]
            assert sink.run is not None
        else:
            others = [pickle.loads(pickle.dumps(sink)), copy.deepcopy(sink)]
        for other in others:
            assert type(other) is type(sink) and other._options == options and other.run is None

    def test_a_logger_with_sinks_has_few_enough_attributes(self, output_dir: str) -> None:
        with EpochLogger(output_dir, exp_name="x", sinks=["jsonl", Told()]) as logger:
            assert len(vars(logger)) <= 20

    def test_readers_of_the_folder_take_no_file_of_theirs_for_a_model_or_a_run(self, output_dir: str) -> None:
        with EpochLogger(output_dir, sinks=["tensorboard", "jsonl", "csv"]) as logger:
            logger.save_config({"seed": 0})
            dump(logger, A=1)
        names = [
            os.path.relpath(os.path.join(base, name), output_dir)
            for base, folders, files in os.walk(output_dir)
            for name in folders + files
        ]
        assert {"tensorboard", "rows.jsonl", "rows.csv"} <= set(names)
        for name in set(names) - {"progress.txt", "config.json", "launch.json"}:
            assert "model" not in name and "tf1_save" not in name
            assert not name.endswith(("progress.txt", "progress.csv", ".pkl", "config.json"))
