"""Scripts as people wrote them for Spinning Up, with their import changed."""

from __future__ import annotations

import importlib
import json
import os
from typing import Any

import numpy as np
import pytest
import torch
from conftest import RunPython
from rows import content

from spinstat.utils import logx
from spinstat.utils.logx import EpochLogger, Logger

NAMES = {
    "logx": "Logger EpochLogger colorize color2num restore_tf_graph"
    " proc_id mpi_statistics_scalar convert_json",
    "mpi_tools": "mpi_fork msg proc_id num_procs allreduce broadcast"
    " mpi_op mpi_sum mpi_avg mpi_statistics_scalar",
    "serialization_utils": "convert_json is_json_serializable",
}


@pytest.mark.parametrize("module", NAMES)
def test_the_originals_modules_have_their_names(module: str) -> None:
    found = importlib.import_module(f"spinstat.utils.{module}")
    assert [name for name in NAMES[module].split() if not hasattr(found, name)] == []


def test_the_colors_have_their_numbers() -> None:
    names = ["gray", "red", "green", "yellow", "blue", "magenta", "cyan", "white", "crimson"]
    assert logx.color2num == dict(zip(names, range(30, 39), strict=True))


def test_the_documents_training_loop(output_dir: str, capsys: pytest.CaptureFixture[str]) -> None:
    def train(steps_per_epoch: int = 10, epochs: int = 2, logger_kwargs: Any = None) -> None:
        logger = EpochLogger(**logger_kwargs)
        logger.save_config(locals())
        for epoch in range(epochs):
            for t in range(steps_per_epoch):
                logger.store(Loss=1.0 / (1 + t + epoch), Acc=t / steps_per_epoch)
            logger.log_tabular("Epoch", epoch)
            logger.log_tabular("Acc", with_min_and_max=True)
            logger.log_tabular("Loss", average_only=True)
            logger.log_tabular("TotalGradientSteps", (epoch + 1) * steps_per_epoch)
            logger.dump_tabular()

    train(logger_kwargs={"output_dir": output_dir, "exp_name": "mnist"})
    printed = capsys.readouterr().out
    assert printed.startswith(f"Logging data to {output_dir}/progress.txt\nSaving config:\n\n{{\n")
    assert printed.endswith(
        "----------------------------------------\n"
        "|              Epoch |               1 |\n"
        "|         AverageAcc |            0.45 |\n"
        "|             StdAcc |           0.287 |\n"
        "|             MaxAcc |             0.9 |\n"
        "|             MinAcc |               0 |\n"
        "|               Loss |           0.202 |\n"
        "| TotalGradientSteps |              20 |\n"
        "----------------------------------------\n"
    )
    header, *rows = [line.split("\t") for line in content(output_dir).splitlines()]
    assert header == ["Epoch", "AverageAcc", "StdAcc", "MaxAcc", "MinAcc", "Loss", "TotalGradientSteps"]
    assert [float(row[5]) for row in rows] == pytest.approx(
        [np.mean(1 / np.arange(1, 11)), np.mean(1 / np.arange(2, 12))], rel=1e-15
    )
    assert [row[0] + row[6] for row in rows] == ["010", "120"]
    config = json.loads(content(output_dir, "config.json"))
    assert (config["exp_name"], config["epochs"], config["steps_per_epoch"]) == ("mnist", 2, 10)


def test_a_subclass_that_overrides_all_three_and_calls_super(output_dir: str) -> None:
    class Tagged(EpochLogger):
        def __init__(self, *args: Any, tag: str = "tb", **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.tag, self.step = tag, 0
            self.seen: list[str] = []
            self.scalars: list[tuple[str, int, float]] = []

        def log_tabular(
            self, key: str, val: Any = None, with_min_and_max: bool = False, average_only: bool = False
        ) -> None:
            self.seen.append(key)
            super().log_tabular(key, val, with_min_and_max, average_only)

        def dump_tabular(self) -> None:
            for key, value in self.log_current_row.items():
                if hasattr(value, "__float__"):
                    self.scalars.append((f"{self.tag}/{key}", self.step, float(value)))
            self.step += 1
            super().dump_tabular()

        def store(self, add_value: bool = False, **kwargs: Any) -> None:
            for key, value in kwargs.items():
                super().store(**{f"New{key}" if add_value else key: value})

    logger = Tagged(output_dir=output_dir, exp_name="sub", tag="t")
    for epoch in range(2):
        for i in range(4):
            logger.store(Ret=i * (epoch + 1.5))
            logger.store(add_value=True, Ret=i)
        logger.log_tabular("Epoch", epoch)
        logger.log_tabular("Ret", with_min_and_max=True)
        logger.log_tabular("NewRet", average_only=True)
        logger.dump_tabular()
    assert logger.seen == ["Epoch", "Ret", "NewRet"] * 2
    assert logger.scalars[:6] == [
        ("t/Epoch", 0, 0.0),
        ("t/AverageRet", 0, 2.25),
        ("t/StdRet", 0, pytest.approx(1.6770509831248424)),
        ("t/MaxRet", 0, 4.5),
        ("t/MinRet", 0, 0.0),
        ("t/NewRet", 0, 1.5),
    ]
    column = [line.split("\t")[1] for line in content(output_dir).splitlines()]
    assert column == ["AverageRet", "2.25", "3.75"]


def test_a_subclass_that_speaks_in_its_own_way(output_dir: str, capsys: pytest.CaptureFixture[str]) -> None:
    class Spoken(Logger):
        def log(self, msg: object, color: str = "green") -> None:
            print(f"LOG<{msg}>")

    logger = Spoken(output_dir=output_dir)
    logger.log("hello")
    logger.extra = 1  # type: ignore[attr-defined]
    assert capsys.readouterr().out == f"Logging data to {output_dir}/progress.txt\nLOG<hello>\n"


def test_arguments_by_position_and_loggers_side_by_side(output_dir: str) -> None:
    first = Logger(output_dir, "log.tsv", "A")
    second = EpochLogger(output_dir + "2", "other.txt", "B")
    for row in range(2):
        first.log_tabular("A", row)
        second.log_tabular("B", row)
        first.dump_tabular()
        second.dump_tabular()
    assert content(output_dir, "log.tsv") == "A\n0\n1\n"
    assert content(output_dir + "2", "other.txt") == "B\n0\n1\n"
    assert (first.exp_name, second.exp_name) == ("A", "B")


def test_attributes_that_scripts_read(output_dir: str) -> None:
    logger = EpochLogger(output_dir, exp_name="exp")
    assert (logger.first_row, logger.log_headers, logger.log_current_row) == (True, [], {})
    assert str(logger.epoch_dict) == "{}"
    logger.store(A=1.0, B=2)
    logger.store(A=3.0)
    assert sorted(logger.epoch_dict) == ["A", "B"]
    logger.epoch_dict["A"].append(5.0)
    logger.log_tabular("A", with_min_and_max=True)
    assert list(logger.epoch_dict["A"]) == []
    assert logger.log_headers == ["AverageA", "StdA", "MaxA", "MinA"]
    row = logger.log_current_row
    logger.dump_tabular()
    assert row is logger.log_current_row
    assert row == {}
    assert (logger.first_row, logger.output_dir, logger.exp_name) == (False, output_dir, "exp")
    assert logger.output_file is not None
    assert logger.output_file.name == os.path.join(output_dir, "progress.txt")


def test_tensors_of_a_training_step_are_stored_and_logged(output_dir: str) -> None:
    logger = EpochLogger(output_dir)
    for value in (1.0, 2.0, 4.5):
        logger.store(T0=torch.tensor(value), T1=torch.tensor([value]))
        logger.store(G=torch.tensor(value, requires_grad=True))
    for key in ("T0", "T1", "G"):
        logger.log_tabular(key, average_only=True)
    logger.log_tabular("LossPi", torch.tensor(0.5, requires_grad=True))
    logger.dump_tabular()
    assert content(output_dir) == "T0\tT1\tG\tLossPi\n2.5\t2.5\t2.5\t0.5\n"


def test_importing_the_logger_loads_no_framework_and_no_slow_module_i2_d6(run_python: RunPython) -> None:
    script = """
import sys
import numpy
before = set(sys.modules)
import spinstat.utils.logx
new = {name.partition(".")[0] for name in set(sys.modules) - before}
slow = {"argparse", "difflib", "gym", "gymnasium", "inspect", "matplotlib", "mpi4py", "pandas", "shutil",
        "subprocess", "tempfile", "tensorflow", "torch"}
assert not new & slow, new & slow
"""
    run_python("-c", script)
