"""The sink "mlflow", run for real with MLflow's store in a local folder and with one in SQLite."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import pytest
from mlflow.entities import RunStatus
from mlflow.tracking import MlflowClient
from rows import content, dump

from spinstat import EpochLogger, Logger
from spinstat.sinks import MlflowSink


@pytest.fixture
def uri(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Of a folder for MLflow's files, which is what MLflow is set to."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # newer versions ask for it
    uri = (tmp_path / "mlruns").as_uri()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    return uri


def runs(uri: str, experiment: str = "Default") -> list[Any]:
    """The runs of an experiment, oldest first."""
    client = MlflowClient(tracking_uri=uri)
    found = client.get_experiment_by_name(experiment)
    assert found is not None
    return list(client.search_runs([found.experiment_id], order_by=["attributes.start_time ASC"]))


def history(uri: str, run: Any, metric: str) -> list[tuple[int, float]]:
    metrics = MlflowClient(tracking_uri=uri).get_metric_history(run.info.run_id, metric)
    return [(metric.step, metric.value) for metric in metrics]


def test_rows_are_metrics_and_the_configuration_parameters(output_dir: str, uri: str) -> None:
    with EpochLogger(output_dir, exp_name="ppo", sinks=["mlflow"]) as logger:
        logger.save_config({"lr": 0.001, "net": {"hidden": [64, 64]}, "n": None, "long": "x" * 1000})
        for epoch in range(3):
            logger.store(EpRet=[epoch, epoch + 2.0])
            logger.log_tabular("TotalEnvInteracts", 4000 * epoch)
            logger.log_tabular("EpRet")
            logger.log_tabular("Note", "text")
            logger.log_tabular("loss (%) [π]/a", math.nan if epoch else 0.5)
            logger.dump_tabular()
    (run,) = runs(uri, "ppo")
    assert history(uri, run, "AverageEpRet") == [(0, 1.0), (4000, 2.0), (8000, 3.0)]
    odd = history(uri, run, "loss ___ ___/a")
    assert odd[0] == (0, 0.5) and [math.isnan(value) for _, value in odd] == [False, True, True]
    assert set(run.data.metrics) == {"TotalEnvInteracts", "AverageEpRet", "StdEpRet", "loss ___ ___/a"}
    assert run.data.params == {
        "lr": "0.001", "net/hidden": "[64, 64]", "long": "x" * 500, "exp_name": "ppo"
    }  # fmt: skip
    assert run.info.run_name == os.path.basename(output_dir)
    assert run.data.tags["spinstat.folder"] == output_dir
    assert run.info.status == RunStatus.to_string(RunStatus.FINISHED)


def test_names_that_mlflow_cannot_tell_apart_get_numbers(output_dir: str, uri: str) -> None:
    with Logger(output_dir, sinks=["mlflow"]) as logger:
        with pytest.warns(UserWarning, match="parameters 'p<' and 'p>': the second is 'p__2'"):
            logger.save_config({"p<": 1, "p>": 2})
        with pytest.warns(UserWarning, match=r"columns 'Loss\(pi\)' and 'Loss\[pi\]'"):
            dump(logger, **{"Loss(pi)": 1, "Loss[pi]": 2})
        dump(logger, **{"Loss(pi)": 3, "Loss[pi]": 10**400})
    (run,) = runs(uri)
    assert history(uri, run, "Loss_pi_") == [(0, 1.0), (1, 3.0)]
    assert [step for step, _ in history(uri, run, "Loss_pi__2")] == [0, 1]
    assert (run.data.params["p_"], run.data.params["p__2"]) == ("1", "2")


def test_a_resumed_run_goes_on_with_the_same_run_and_marks_its_rows(output_dir: str, uri: str) -> None:
    first = EpochLogger(output_dir, sinks=["mlflow"])
    first.save_config({"lr": 1, "seed": 0})
    for epoch in range(5):
        dump(first, Epoch=epoch, X=epoch)
        if epoch < 3:
            first.save_state({"epoch": epoch})
    assert runs(uri)[0].info.status == RunStatus.to_string(RunStatus.RUNNING)
    with EpochLogger(output_dir, resume=True, sinks=["mlflow"]) as logger:
        logger.save_config({"lr": 2, "seed": 0, "new": 3})
        assert runs(uri)[0].info.status == RunStatus.to_string(RunStatus.RUNNING)
        for epoch in range(3, 5):
            dump(logger, Epoch=epoch, X=epoch + 0.5)
    (run,) = runs(uri)
    values = history(uri, run, "X")
    assert values[:5] == [(0, 0.0), (1, 1.0), (2, 2.0), (3, 3.0), (4, 4.0)]
    assert values[5:] == [(3, 3.5), (4, 4.5)]
    assert history(uri, run, "spinstat/resumed") == [(3, 1.0), (4, 1.0)]
    assert run.data.tags["spinstat.resumed_at_row"] == "3"
    assert run.data.params == {"lr": "1", "seed": "0", "new": "3"}
    assert run.data.tags["config.lr"] == "2" and "config.seed" not in run.data.tags
    assert run.info.status == RunStatus.to_string(RunStatus.FINISHED)
    first.close()


def test_new_runs_and_other_loggers_have_runs_of_their_own(tmp_path: Path, uri: str) -> None:
    for value in range(2):
        with Logger(str(tmp_path / "a"), sinks=["mlflow"]) as logger:
            dump(logger, A=value)
    first, second = (Logger(str(tmp_path / name), sinks=["mlflow"]) for name in "bc")
    dump(first, A=2)
    dump(second, A=3)
    first.close()
    second.close()
    found = runs(uri)
    assert [history(uri, run, "A") for run in found] == [[(0, 0.0)], [(0, 1.0)], [(0, 2.0)], [(0, 3.0)]]
    assert [run.info.run_name for run in found] == ["a", "a", "b", "c"]


def test_more_columns_and_settings_than_one_request_takes_are_all_logged(output_dir: str, uri: str) -> None:
    with Logger(output_dir, sinks=["mlflow"]) as logger:
        logger.save_config({f"setting{i}": i for i in range(250)})
        dump(logger, **{f"Column{i}": i for i in range(1200)})
    (run,) = runs(uri)
    assert len(run.data.params) == 250 and len(run.data.metrics) == 1200
    assert run.data.metrics["Column1199"] == 1199.0


def test_a_database_in_a_local_folder_and_an_experiment_can_be_named(output_dir: str, tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/mlflow.db"
    sink = MlflowSink(tracking_uri=database, experiment="mine", step="Updates")
    with Logger(output_dir, sinks=[sink]) as logger:
        logger.save_config({"lr": 1})
        dump(logger, Updates=80, X=math.inf)
        dump(logger, Updates=160, X=2)
    (run,) = runs(database, "mine")
    values = history(database, run, "X")
    assert [step for step, _ in values] == [80, 160] and values[1][1] == 2.0
    assert run.data.params == {"lr": "1"}


def test_one_that_cannot_begin_leaves_the_run_alone(output_dir: str) -> None:
    sink = MlflowSink(tracking_uri="nothing://anywhere")
    with pytest.warns(UserWarning, match=r"the sink mlflow failed to open .* without it"):
        logger = Logger(output_dir, sinks=[sink, "csv"])
    dump(logger, A=1)
    logger.close()
    assert content(output_dir, "rows.csv") == "A\n1\n"
