"""The sink "wandb", run for real in W&B's offline mode; its files are read back here."""

from __future__ import annotations

import json
import os
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import wandb
from conftest import RunPython
from rows import content, dump
from wandb.proto import wandb_internal_pb2

from spinstat import EpochLogger, Logger
from spinstat.sinks import WandbSink

BLOCK = 32768  # of LevelDB's log format, which W&B keeps its records in
FULL, FIRST, MIDDLE, LAST = range(1, 5)


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    for name in ("WANDB_DIR", "WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "WANDB_DATA_DIR"):
        monkeypatch.setenv(name, str(tmp_path))


def records(path: str) -> Iterator[Any]:
    """The records that a file of W&B has so far."""
    with open(path, "rb") as file:
        data = file.read()
    assert data[:4] in (b":W&B", b"")
    at, parts = 7, b""
    while at + 7 <= len(data):
        if BLOCK - at % BLOCK < 7:  # no room for a header: the rest of the block is empty
            at += BLOCK - at % BLOCK
            continue
        _, length, kind = struct.unpack_from("<IHB", data, at)
        at += 7
        if at + length > len(data):
            return
        parts += data[at : at + length]
        at += length
        if kind in (FULL, LAST):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(parts)
            yield record
            parts = b""
        else:
            assert kind in (FIRST, MIDDLE)


def _nested(items: Any) -> dict[str, Any]:
    """The entries of a record; keys within keys are dicts again."""
    found: dict[str, Any] = {}
    for item in items:
        *outer, name = item.nested_key or [item.key]
        place = found
        for step in outer:
            place = place.setdefault(step, {})
        place[name] = json.loads(item.value_json)
    return found


class Found:
    """What W&B has of one process: its run, rows of history, configuration and metrics."""

    def __init__(self, folder: str) -> None:
        names = os.listdir(folder)
        self.rows: list[dict[str, Any]] = []
        self.config: dict[str, Any] = {}
        self.steps: set[str] = set()
        self.exit_code: int | None = None
        files = [name for name in names if name.endswith(".wandb")]
        assert len(files) <= 1
        for record in (record for name in files for record in records(os.path.join(folder, name))):
            kind = record.WhichOneof("record_type")
            if kind == "history":
                self.rows.append(_nested(record.history.item))
            elif kind == "run":
                self.run = record.run
                self._configure(record.run.config)
            elif kind == "config":
                self._configure(record.config)
            elif kind == "metric":
                self.steps.add(record.metric.step_metric)
            elif kind == "exit":
                self.exit_code = record.exit.exit_code

    def _configure(self, config: Any) -> None:
        for item in config.update:
            self.config[item.key or "/".join(item.nested_key)] = json.loads(item.value_json)

    def columns(self, *names: str) -> list[tuple[Any, ...]]:
        return [tuple(row.get(name) for name in names) for row in self.rows]


def found(output_dir: str) -> list[Found]:
    """Of the processes of a run, in order."""
    folder = os.path.join(output_dir, "wandb")
    names = sorted(name for name in os.listdir(folder) if name.startswith("offline-run-"))
    paths = [os.path.join(folder, name) for name in names]
    return [_finished(path) for path in sorted(paths, key=lambda path: os.stat(path).st_mtime_ns)]


def _finished(folder: str) -> Found:
    """What W&B has when its own process, which run.finish() does not wait for, has written all."""
    deadline = time.monotonic() + 60
    while True:
        found = Found(folder)
        if found.exit_code is not None:
            return found
        assert time.monotonic() < deadline, f"{folder} has no end"
        time.sleep(0.05)


def test_rows_configuration_and_histograms_are_in_the_file_of_an_offline_run(output_dir: str) -> None:
    with EpochLogger(output_dir, exp_name="ppo", sinks=["wandb"]) as logger:
        logger.save_config({"lr": 0.001, "net": {"hidden": [64, 64]}})
        for epoch in range(3):
            logger.store(EpRet=[epoch, epoch + 2.0])
            logger.log_tabular("Epoch", epoch)
            logger.log_tabular("EpRet")
            logger.log_tabular("Note", "text")
            if epoch == 0:
                logger.log_tabular("Once", 2**60)
            logger.dump_tabular()
    (one,) = found(output_dir)
    assert one.columns("Epoch", "AverageEpRet", "Note", "Once", "spinstat/row", "spinstat/resumed") == [
        (0, 1.0, "text", 2**60, 0, None),
        (1, 2.0, "text", None, 1, None),
        (2, 3.0, "text", None, 2, None),
    ]
    histogram = one.rows[0]["values/EpRet"]
    assert sum(histogram["values"]) == 2 and (histogram["bins"][0], histogram["bins"][-1]) == (0.0, 2.0)
    assert one.config["lr"] == 0.001 and one.config["net"] == {"hidden": [64, 64]}
    assert one.config["exp_name"] == "ppo"
    assert one.steps == {"Epoch"}
    assert (one.run.display_name, one.run.run_group) == (os.path.basename(output_dir), "ppo")
    assert one.exit_code == 0


def test_a_script_that_closes_nothing_loses_nothing_and_is_not_warned(
    output_dir: str, run_python: RunPython
) -> None:
    script = """
import sys
from spinstat import EpochLogger
logger = EpochLogger(sys.argv[1], sinks=["wandb"])
for epoch in range(3):
    logger.log_tabular("Epoch", epoch)
    logger.dump_tabular()
"""
    done = run_python("-c", script, output_dir, env={"WANDB_MODE": "offline"})
    assert "Warning" not in done.stderr
    (one,) = found(output_dir)
    assert [row["Epoch"] for row in one.rows] == [0, 1, 2]
    assert one.exit_code == 0


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("1 / 0", 1),
        ("sys.excepthook = lambda *error: None; 1 / 0", 1),
        ("sys.exit(3)", 3),
        ("sys.exit('out of memory')", 1),
        ("sys.exit(0)", 0),
        ("raise KeyboardInterrupt", 255),
    ],
)
def test_a_script_that_fails_is_a_run_that_failed(
    output_dir: str, run_python: RunPython, end: str, code: int
) -> None:
    script = f"""
import sys
from spinstat import EpochLogger
logger = EpochLogger(sys.argv[1], sinks=["wandb"])
logger.log_tabular("Epoch", 0)
logger.dump_tabular()
{end}
"""
    # Without the service of this process, which W&B would use and then not look at how the script ends.
    environment = {"WANDB_MODE": "offline", "WANDB_SERVICE": ""}
    run_python("-c", script, output_dir, check=False, env=environment)
    (one,) = found(output_dir)
    assert (one.columns("Epoch"), one.exit_code) == ([(0,)], code)


def test_a_resumed_run_goes_on_with_the_same_run_and_marks_its_rows(
    output_dir: str, run_python: RunPython
) -> None:
    script = """
import os, sys
from spinstat import EpochLogger
logger = EpochLogger(sys.argv[1], sinks=["wandb"])
for epoch in range(5):
    logger.log_tabular("Epoch", epoch)
    logger.dump_tabular()
    if epoch < 3:
        logger.save_state({"epoch": epoch})
raise SystemExit("out of memory")
"""
    run_python("-c", script, output_dir, check=False, env={"WANDB_MODE": "offline"})
    for attempt in (1, 2):
        with EpochLogger(output_dir, resume=True, sinks=["wandb"]) as logger:
            for epoch in range(3, 5):
                dump(logger, Epoch=epoch, Again=attempt)
    runs = {one.rows[-1].get("spinstat/resumed"): one for one in found(output_dir)}
    assert len({one.run.run_id for one in runs.values()}) == 1
    assert [row for row, _ in runs[None].columns("spinstat/row", "Epoch")] == [0, 1, 2, 3, 4]
    for attempt in (1, 2):
        names = ("spinstat/row", "Epoch", "Again", "spinstat/resumed")
        assert runs[attempt].columns(*names) == [(3, 3, attempt, attempt), (4, 4, attempt, attempt)]


def test_a_new_run_in_the_folder_is_a_new_run_of_wandb(output_dir: str) -> None:
    for value in range(2):
        with Logger(output_dir, sinks=["wandb"]) as logger:
            dump(logger, A=value)
    first, second = found(output_dir)
    assert first.run.run_id != second.run.run_id
    assert first.columns("A") == [(0,)] and second.columns("A") == [(1,)]


def test_two_loggers_have_a_run_each_beside_that_of_the_script(tmp_path: Path) -> None:
    own = wandb.init(dir=str(tmp_path), project="mine")
    loggers = [Logger(str(tmp_path / name), sinks=["wandb"]) for name in "ab"]
    for number, logger in enumerate(loggers):
        dump(logger, A=number)
        logger.close()
    assert wandb.run is own
    own.log({"mine": 1})
    own.finish()
    for number, name in enumerate("ab"):
        assert found(str(tmp_path / name))[0].columns("A", "mine") == [(number, None)]


def test_options_go_to_wandb_and_its_run_of_the_user_stays_open(tmp_path: Path) -> None:
    run = wandb.init(dir=str(tmp_path), project="mine")
    sinks = [
        WandbSink(run=run, step="Updates", histograms=False),
        WandbSink(project="theirs", name="chosen", tags=["a"]),
    ]
    with EpochLogger(str(tmp_path / "run"), sinks=sinks) as logger:
        logger.store(X=1.0)
        logger.log_tabular("Updates", 80)
        logger.log_tabular("X")
        logger.dump_tabular()
    run.log({"after": 1})
    run.finish()
    (mine,) = found(str(tmp_path))
    assert mine.columns("Updates", "after", "values/X") == [(80, None, None), (80, 1, None)]
    assert mine.steps == {"Updates"} and mine.run.project == "mine"
    (theirs,) = found(str(tmp_path / "run"))
    assert (theirs.run.project, theirs.run.display_name, list(theirs.run.tags)) == ("theirs", "chosen", ["a"])


def test_one_that_cannot_begin_leaves_the_run_alone(output_dir: str) -> None:
    with pytest.warns(UserWarning, match=r"(?s)the sink wandb failed to open .* without it"):
        logger = Logger(output_dir, sinks=[WandbSink(mode="no such mode"), "jsonl"])
    dump(logger, A=1)
    logger.close()
    assert content(output_dir, "rows.jsonl") == '{"A": 1}\n'
