"""The sink "tensorboard": real event files, read back with TensorBoard's own reader."""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import RunPython
from rows import dump
from sinks import Told
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import metadata

from spinstat import EpochLogger, Logger
from spinstat.sinks import TensorBoardSink


def read(folder: str, name: str = "tensorboard") -> EventAccumulator:
    """What TensorBoard has of a run; 0 means that nothing is sampled."""
    reader = EventAccumulator(os.path.join(folder, name), {"scalars": 0, "histograms": 0, "tensors": 0})
    reader.Reload()
    return reader


def scalars(folder: str, tag: str) -> list[tuple[int, float]]:
    return [(event.step, event.value) for event in read(folder).Scalars(tag)]


def hyperparameters(folder: str) -> tuple[dict[str, Any], set[str]]:
    """The values on the HPARAMS page, and the names of the metrics there."""
    contents = read(folder).PluginTagToContent("hparams")
    start = metadata.parse_session_start_info_plugin_data(contents[metadata.SESSION_START_INFO_TAG])
    experiment = metadata.parse_experiment_plugin_data(contents[metadata.EXPERIMENT_TAG])
    values = {name: getattr(value, value.WhichOneof("kind")) for name, value in start.hparams.items()}
    return values, {info.name.tag for info in experiment.metric_infos}


class TestScalars:
    def test_numbers_of_every_kind_are_there_and_texts_are_not(self, output_dir: str) -> None:
        with Logger(output_dir, sinks=["tensorboard"]) as logger:
            dump(logger, Epoch=0, A=1.5, B=True, C="text", D=np.float32(0.5), E=None, F=10**30)
            dump(logger, Epoch=1, A=float("nan"), B=False, C="text", D=2, E=3.0, F=1)
        reader = read(output_dir)
        assert set(reader.Tags()["scalars"]) == {"Epoch", "A", "B", "D", "E", "F"}
        assert scalars(output_dir, "B") == [(0, 1.0), (1, 0.0)]
        assert scalars(output_dir, "D") == [(0, 0.5), (1, 2.0)]
        assert scalars(output_dir, "E") == [(1, 3.0)]
        assert scalars(output_dir, "F") == [(0, float(np.float32(1e30))), (1, 1.0)]
        first, second = scalars(output_dir, "A")
        assert first == (0, 1.5) and second[0] == 1 and np.isnan(second[1])

    @pytest.mark.parametrize(
        ("row", "steps"),
        [
            ({"Epoch": [3, 4], "TotalEnvInteracts": [4000, 8000]}, [4000, 8000]),
            ({"Epoch": [3, 4.0], "Other": [1, 2]}, [3, 4]),
            ({"Other": [7, 9]}, [0, 1]),
            ({"Epoch": ["first", "second"]}, [0, 1]),
            ({"Epoch": [5, None]}, [5, 5]),
        ],
    )
    def test_the_step_is_that_of_the_first_known_column(
        self, output_dir: str, row: dict[str, list[Any]], steps: list[int]
    ) -> None:
        with Logger(output_dir, sinks=["tensorboard"]) as logger:
            for at in range(2):
                dump(logger, X=at + 0.5, **{key: values[at] for key, values in row.items()})
        assert scalars(output_dir, "X") == [(steps[0], 0.5), (steps[1], 1.5)]

    def test_a_user_can_name_the_column_of_the_step(self, output_dir: str) -> None:
        with Logger(output_dir, sinks=[TensorBoardSink(step="Updates")]) as logger:
            dump(logger, Epoch=0, Updates=80)
            dump(logger, Epoch=1, Updates=160)
        assert scalars(output_dir, "Epoch") == [(80, 0.0), (160, 1.0)]

    def test_a_column_for_the_step_that_is_not_there_is_a_warning(self, output_dir: str) -> None:
        with Logger(output_dir, sinks=[TensorBoardSink(step="Update")]) as logger:
            with pytest.warns(UserWarning, match="'Update', of which the first row has no number"):
                dump(logger, Updates=80)
            dump(logger, Updates=160)
        assert scalars(output_dir, "Updates") == [(0, 80.0), (1, 160.0)]

    def test_a_row_is_on_the_disk_when_it_has_been_dumped(self, output_dir: str) -> None:
        logger = Logger(output_dir, sinks=["tensorboard"])
        for epoch in range(3):
            dump(logger, Epoch=epoch)
            assert len(scalars(output_dir, "Epoch")) == epoch + 1
        logger.close()


    def test_integers_beyond_the_floats_are_infinite_and_keep_no_row_back(self, output_dir: str) -> None:
        with Logger(output_dir, sinks=["tensorboard"]) as logger:
            for epoch in range(3):
                dump(logger, Epoch=epoch, Huge=-(10**400) if epoch == 1 else epoch, After=epoch)
        assert scalars(output_dir, "Huge") == [(0, 0.0), (1, -math.inf), (2, 2.0)]
        assert scalars(output_dir, "After") == [(0, 0.0), (1, 1.0), (2, 2.0)]

    def test_a_step_that_is_no_number_is_a_warning_once(self, output_dir: str) -> None:
        with Logger(output_dir, sinks=["tensorboard"]) as logger:
            dump(logger, Epoch=0, A=0)
            with pytest.warns(UserWarning, match="'Epoch', which in row 1 is no number of 64 bits") as told:
                for row, epoch in enumerate([10**30, math.nan, 3], 1):
                    dump(logger, Epoch=epoch, A=row)
        assert len(told) == 1
        assert scalars(output_dir, "A") == [(0, 0.0), (0, 1.0), (0, 2.0), (3, 3.0)]


class TestHistograms:
    def test_the_values_behind_a_key_are_drawn(self, output_dir: str) -> None:
        values = np.random.default_rng(0).normal(3.0, 2.0, 5000)
        with EpochLogger(output_dir, sinks=["tensorboard"]) as logger:
            for part in np.split(values[:4000], 1000):
                logger.store(X=part)
            for value in values[4000:]:
                logger.store(X=value)
            logger.log_tabular("X")
            logger.dump_tabular()
        (event,) = read(output_dir).Histograms("values/X")
        found = event.histogram_value
        counts, edges = np.histogram(values, 64)
        assert (found.num, found.min, found.max) == (5000, values.min(), values.max())
        assert found.sum == pytest.approx(values.sum(), rel=1e-12)
        assert found.sum_squares == pytest.approx((values**2).sum(), rel=1e-12)
        assert list(found.bucket_limit) == pytest.approx(edges, rel=1e-12)
        assert list(found.bucket) == [0, *counts]

    def test_a_batch_and_every_row_have_their_own(self, output_dir: str) -> None:
        with EpochLogger(output_dir, sinks=["tensorboard"], batch=True) as logger:
            for epoch in range(2):
                logger.store(X=epoch, Y=[1.0, 2.0])
                logger.log_tabular("Epoch", epoch)
                logger.log_tabular("X")
                if epoch == 1:
                    logger.log_tabular("Y")
                logger.dump_tabular()
        reader = read(output_dir)
        sums = [(event.step, event.histogram_value.sum) for event in reader.Histograms("values/X")]
        assert sums == [(0, 0.0), (1, 1.0)]
        sizes = [(event.step, event.histogram_value.num) for event in reader.Histograms("values/Y")]
        assert sizes == [(1, 4)]

    def test_what_is_no_number_is_left_out(self, output_dir: str) -> None:
        with EpochLogger(output_dir, sinks=["tensorboard"]) as logger:
            logger.store(X=[1.0, np.nan, np.inf, 3.0], Y=np.nan, Z=[-1.7e308, 1.7e308])
            for key in "XYZ":
                logger.log_tabular(key)
            with pytest.warns(UserWarning, match="No rank has stored"):
                logger.log_tabular("Nothing")
            logger.dump_tabular()
        reader = read(output_dir)
        assert reader.Tags()["histograms"] == ["values/X"]
        found = reader.Histograms("values/X")[0].histogram_value
        assert (found.num, found.min, found.max, found.sum) == (2, 1.0, 3.0, 4.0)

    def test_a_dropped_row_leaves_none_behind(self, output_dir: str) -> None:
        with EpochLogger(output_dir, sinks=["tensorboard"]) as logger:
            logger.store(X=1.0)
            with pytest.raises(RuntimeError, match="stop"), logger.batch():
                logger.log_tabular("X")
                raise RuntimeError("stop")
            dump(logger, Epoch=0)
        assert read(output_dir).Tags()["histograms"] == []

    @pytest.mark.parametrize(
        "options",
        [
            {"keep_values": False, "sinks": ["tensorboard"]},
            {"sinks": [TensorBoardSink(histograms=False), Told()]},
        ],
    )
    def test_there_are_none_without_kept_values_or_where_not_wanted(
        self, output_dir: str, options: dict[str, Any]
    ) -> None:
        with EpochLogger(output_dir, **options) as logger:
            logger.store(X=1.0)
            logger.log_tabular("X")
            logger.dump_tabular()
        tags = read(output_dir).Tags()
        assert tags["histograms"] == [] and tags["scalars"] == ["AverageX", "StdX"]


class TestConfiguration:
    def test_save_config_gives_the_hyperparameters(self, output_dir: str) -> None:
        with Logger(output_dir, exp_name="ppo", sinks=["tensorboard"]) as logger:
            net = {"hidden": [64, 64], "act": np.tanh}
            logger.save_config({"lr": 3e-4, "steps": 4000, "flag": True, "net": net, "n": None})
            dump(logger, Epoch=0, EpRet=1.0, Note="text")
        values, metrics = hyperparameters(output_dir)
        assert values == {
            "lr": 3e-4, "steps": 4000.0, "flag": True, "net/hidden": "[64, 64]", "net/act": "tanh",
            "exp_name": "ppo",
        }  # fmt: skip
        assert metrics == {"Epoch", "EpRet"}
        text = read(output_dir).Tensors("config/text_summary")[0].tensor_proto.string_val[0].decode()
        assert '"lr": 0.0003' in text and '"n": null' in text

    def test_a_configuration_is_kept_where_no_row_follows(self, output_dir: str) -> None:
        with Logger(output_dir, sinks=["tensorboard"]) as logger:
            logger.save_config({"seed": 3})
        assert hyperparameters(output_dir) == ({"seed": 3.0}, set())

    def test_all_of_it_is_one_event_file(self, output_dir: str) -> None:
        """TensorBoard does not go back to an older file of a run once it has seen a newer one."""
        with Logger(output_dir, sinks=["tensorboard"]) as logger:
            logger.save_config({"seed": 3})
            dump(logger, Epoch=0)
        assert len(os.listdir(f"{output_dir}/tensorboard")) == 1


def train(folder: str, epochs: int, shift: float, resume: bool) -> Logger:
    """A run that is not closed at its end; returns its logger."""
    logger = EpochLogger(folder, resume=resume, sinks=["tensorboard"])
    logger.save_config({"shift": shift})
    state = logger.load_state()
    for epoch in range(0 if state is None else state["epoch"] + 1, epochs):
        logger.store(X=epoch + shift)
        if epoch < 3 or resume:
            logger.save_state({"epoch": epoch})
        logger.log_tabular("TotalEnvInteracts", 10 * epoch)
        logger.log_tabular("X", average_only=True)
        logger.dump_tabular()
    return logger


class TestRunsAfterOthers:
    def test_rows_after_the_checkpoint_are_purged_on_resume(self, output_dir: str) -> None:
        killed = train(output_dir, 6, 0.0, resume=False)
        assert [step for step, _ in scalars(output_dir, "X")] == [0, 10, 20, 30, 40, 50]
        train(output_dir, 5, 0.5, resume=True).close()
        assert scalars(output_dir, "X") == [(0, 0.0), (10, 1.0), (20, 2.0), (30, 3.5), (40, 4.5)]
        drawn = [(event.step, event.histogram_value.sum) for event in read(output_dir).Histograms("values/X")]
        assert drawn == [(0, 0.0), (10, 1.0), (20, 2.0), (30, 3.5), (40, 4.5)]
        assert hyperparameters(output_dir)[0] == {"shift": 0.0}  # TensorBoard keeps to the first
        texts = read(output_dir).Tensors("config/text_summary")
        assert [text.step for text in texts] == [0, 30]
        assert '"shift": 0.5' in texts[1].tensor_proto.string_val[0].decode()
        killed.close()

    def test_files_of_an_earlier_run_move_aside(self, output_dir: str) -> None:
        for value in range(3):
            with Logger(output_dir, sinks=["tensorboard"], quiet=True) as logger:
                dump(logger, A=value)
        assert scalars(output_dir, "A") == [(0, 2.0)]
        assert [event.value for event in read(output_dir, "tensorboard.1").Scalars("A")] == [0.0]
        assert [event.value for event in read(output_dir, "tensorboard.2").Scalars("A")] == [1.0]

    def test_two_loggers_write_side_by_side(self, tmp_path: Path) -> None:
        first, second = (Logger(str(tmp_path / name), sinks=["tensorboard"]) for name in "ab")
        for epoch in range(3):
            dump(first, Epoch=epoch)
            dump(second, Epoch=epoch, B=1)
        first.close()
        second.close()
        assert read(str(tmp_path / "a")).Tags()["scalars"] == ["Epoch"]
        assert scalars(str(tmp_path / "b"), "B") == [(0, 1.0), (1, 1.0), (2, 1.0)]


class Recorder:
    """An object with some of the methods of a SummaryWriter."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def add_scalar(self, tag: str, value: float, step: int) -> None:
        self.calls.append((tag, value, step))


class TestWritersOfTheUser:
    def test_a_summary_writer_of_torch_is_written_to_and_stays_open(
        self, tmp_path: Path, output_dir: str
    ) -> None:
        from torch.utils.tensorboard import SummaryWriter

        writer = SummaryWriter(str(tmp_path / "mine"))
        with EpochLogger(output_dir, sinks=[writer]) as logger:
            logger.save_config({"seed": 1})
            logger.store(X=2.0)
            logger.log_tabular("X", average_only=True)
            logger.dump_tabular()
        writer.add_scalar("mine", 5.0, 1)
        writer.close()
        reader = read(str(tmp_path), "mine")
        assert reader.Tags()["scalars"] == ["X", "mine"] and reader.Tags()["histograms"] == ["values/X"]
        assert metadata.SESSION_START_INFO_TAG in reader.PluginTagToContent("hparams")
        assert not os.path.exists(f"{output_dir}/tensorboard")

    def test_an_object_with_add_scalar_alone_will_do(self, output_dir: str) -> None:
        recorder = Recorder()
        with EpochLogger(output_dir, sinks=[recorder]) as logger:
            logger.save_config({"seed": 1})
            logger.store(X=2.0)
            logger.log_tabular("Epoch", 4)
            logger.log_tabular("X", average_only=True)
            logger.dump_tabular()
        assert recorder.calls == [("Epoch", 4.0, 4), ("X", 2.0, 4)]


class Failing(Recorder):
    """A writer that cannot write; its close() fails as well."""

    def __init__(self, error: type[Exception]) -> None:
        super().__init__()
        self.closed = False
        self._error = error

    def flush(self) -> None:
        raise self._error("cannot be written")

    def close(self) -> None:
        self.closed = True
        raise self._error("cannot be closed")


FULL_DISK = """
import os, resource, signal, sys, threading, warnings
sys.modules["tensorflow"] = None  # which torch's writer would load, and which takes long
from spinstat import Logger
from spinstat.sinks import event_writers
folder, package = sys.argv[1:]
event_writers.has_package = lambda name: (package == "torch") == (name != "tensorboardX")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
logger = Logger(folder, quiet=True, sinks=["tensorboard"])
def dump(epoch):
    logger.log_tabular("Epoch", epoch); logger.dump_tabular()
dump(0)
def held():
    files = os.listdir("/proc/self/fd"), os.listdir(folder + "/tensorboard")
    return threading.active_count(), *map(len, files)
limits = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for epoch in range(1, 30):
        dump(epoch)
        if epoch == 2: before = held()
print(before == held() or (before, held()))
print(sum("the sink tensorboard failed" in str(warning.message) for warning in caught))
resource.setrlimit(resource.RLIMIT_FSIZE, limits)
dump(30)
dump(31)
"""


class TestPackages:
    @pytest.mark.parametrize("package", ["torch", "tensorboardX"])
    def test_a_full_disk_keeps_the_rows_and_stops_nothing(
        self, output_dir: str, run_python: RunPython, package: str
    ) -> None:
        """The limit on the size of files stands for the disk."""
        assert run_python("-c", FULL_DISK, output_dir, package).stdout == "True\n1\n"
        found = scalars(output_dir, "Epoch")
        assert sorted(set(found)) == [(epoch, float(epoch)) for epoch in range(32)]

    @pytest.mark.parametrize("last", [OSError, ValueError])
    def test_a_writer_that_fails_is_closed(
        self, output_dir: str, monkeypatch: pytest.MonkeyPatch, last: type[Exception]
    ) -> None:
        made: list[Failing] = []

        def make(folder: str, purge_step: int | None) -> Failing:
            made.append(Failing(OSError if len(made) < 2 else last))
            return made[-1]

        monkeypatch.setattr("spinstat.sinks.tensorboard.make_writer", make)
        logger = Logger(output_dir, quiet=True, sinks=["tensorboard"])
        with pytest.warns(UserWarning, match="the sink tensorboard"):
            dump(logger, A=1)
            dump(logger, A=2)
            assert [writer.closed for writer in made] == [True, True]
            logger.close()
        assert [writer.closed for writer in made] == [True, True, True]

    def test_tensorboardx_writes_where_torch_is_not(
        self, output_dir: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("spinstat.sinks.event_writers.has_package", lambda name: name == "tensorboardX")
        killed = train(output_dir, 6, 0.0, resume=False)
        train(output_dir, 5, 0.5, resume=True).close()
        assert scalars(output_dir, "X") == [(0, 0.0), (10, 1.0), (20, 2.0), (30, 3.5), (40, 4.5)]
        drawn = [(event.step, event.histogram_value.num) for event in read(output_dir).Histograms("values/X")]
        assert drawn == [(step, 1) for step in (0, 10, 20, 30, 40)]
        assert hyperparameters(output_dir)[0] == {"shift": 0.0}
        killed.close()

    def test_without_any_package_the_error_names_the_extra(
        self, output_dir: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "torch", None)
        monkeypatch.setitem(sys.modules, "tensorboardX", None)
        with pytest.raises(ImportError, match=r'pip install "spinstat\[tensorboard\]"'):
            Logger(output_dir, sinks=["tensorboard"])
        assert not os.path.exists(output_dir)
        Logger(output_dir, sinks=[Recorder()]).close()
