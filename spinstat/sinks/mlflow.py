"""The sink "mlflow": a run of MLflow."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable
from typing import Any

from ..row import Row
from ..terminal import warn
from .base import OwnSink, Run, has_package, missing
from .flat import as_float, flatten
from .steps import Steps

RESUMED = "spinstat/resumed"
BATCH = 100  # parameters or tags that MLflow takes at once
MAX_VALUE = 500  # characters of a parameter, in every version and backend


class MlflowSink(OwnSink):
    """Logs the numbers of each row as metrics of a run of its own, save_config as its parameters.

    The run has the folder's name, in the experiment exp_name. Metrics have the step of the row. Columns that
    hold text are left out, and characters that MLflow takes in no name are "_"; where that makes two names
    one, the second gets a number. Nothing global of MLflow is touched: an active run of the script is not
    this one.

    A resumed run of training goes on with the same run of MLflow, which keeps every value that it was ever
    given. So from there on, rows have the metric "spinstat/resumed": 1 after the first resume, 2 after the
    second; and the tag "spinstat.resumed_at_row" tells the row. Of two values with the same step, the later
    is that of progress.txt. A parameter cannot change: where the configuration has another value now, it is
    the tag "config.<name>".

    Args:
        tracking_uri: of the server or database. None: what MLflow is set to (MLFLOW_TRACKING_URI).
        experiment: its name. None: exp_name, or "Default" where the logger has none.
        step: the column that is the step of the metrics. None: TotalEnvInteracts if the first row has it,
            else Epoch, else the number of the row.

    Examples:
        >>> from spinstat.sinks import MlflowSink
        >>> sink = MlflowSink(tracking_uri="sqlite:///runs.db")  # for EpochLogger(sinks=[sink])
        >>> sink.name
        'mlflow'
    """

    name = "mlflow"

    def __init__(
        self, *, tracking_uri: str | None = None, experiment: str | None = None, step: str | None = None
    ) -> None:
        super().__init__(tracking_uri=tracking_uri, experiment=experiment, step=step)
        self._uri = tracking_uri
        self._experiment = experiment
        self._steps = Steps(self.name, step)
        self._metrics, self._parameters = Names("column"), Names("parameter")
        self._client: Any = None
        self._id = ""
        self._resumed = 0

    def check(self) -> None:
        """Raise ImportError where MLflow is not installed."""
        if not has_package("mlflow"):
            raise missing(self.name, "mlflow", "mlflow")

    def open_run(self, run: Run) -> None:
        """Begin a run of MLflow, or go on with the one that was begun here."""
        super().open_run(run)
        from mlflow.tracking import MlflowClient

        self._client = MlflowClient(tracking_uri=self._uri)
        note = run.read_note(self.name) if run.resumed else {}
        if note:
            self._id, self._resumed = note["id"], note["resumed"] + 1
            self._client.update_run(self._id, status="RUNNING")
            self._client.set_tag(self._id, "spinstat.resumed_at_row", str(run.rows))
        else:
            name = os.path.basename(run.folder)
            tags = {"spinstat.folder": run.folder}
            experiment = self._experiment_id(self._experiment or run.exp_name or "Default")
            self._id = self._client.create_run(experiment, run_name=name, tags=tags).info.run_id
        run.write_note(self.name, id=self._id, resumed=self._resumed)

    def _experiment_id(self, name: str) -> str:
        from mlflow.exceptions import MlflowException

        for _ in range(2):
            found = self._client.get_experiment_by_name(name)
            if found is not None:
                return str(found.experiment_id)
            try:
                return str(self._client.create_experiment(name))
            except MlflowException:  # another run may have just made it
                continue
        raise RuntimeError(f"the experiment {name!r} can be neither found nor made")

    def save_config(self, config: object) -> None:
        """Log the configuration as parameters."""
        from mlflow.entities import Param, RunTag

        known = self._client.get_run(self._id).data.params
        entries = flatten(config)
        names = self._parameters.names(entries)
        values = {name: str(value)[:MAX_VALUE] for name, value in zip(names, entries.values(), strict=True)}
        params = [Param(name, value) for name, value in values.items() if name not in known]
        tags = [
            RunTag(f"config.{name}", value)
            for name, value in values.items()
            if name in known and known[name] != value
        ]
        for start in range(0, len(params), BATCH):
            self._client.log_batch(self._id, params=params[start : start + BATCH])
        for start in range(0, len(tags), BATCH):
            self._client.log_batch(self._id, tags=tags[start : start + BATCH])

    def write(self, row: Row) -> None:
        """Log a row."""
        from mlflow.entities import Metric

        step, now = self._steps.of(row), int(time.time() * 1000)
        names = self._metrics.names(row.columns)
        cells = dict(zip(names, row.values, strict=True))
        if self._resumed:
            cells[RESUMED] = self._resumed
        numbers = [
            Metric(column, as_float(value), now, step)
            for column, value in cells.items()
            if isinstance(value, int | float)
        ]
        for start in range(0, len(numbers), BATCH):
            self._client.log_batch(self._id, metrics=numbers[start : start + BATCH])

    def close(self) -> None:
        """Mark the run as finished."""
        if self._client is not None:
            self._client.set_terminated(self._id)
            self._client = None


class Names:
    """Names that MLflow takes, another one for each that it is given.

    Args:
        kind: what is named, for messages.
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._clean: dict[str, str] = {}
        self._taken: dict[str, str] = {}

    def names(self, given: Iterable[str]) -> list[str]:
        """The clean names, in order. Where two would be one, the second gets a number, and a warning."""
        return [self._clean[name] if name in self._clean else self._add(name) for name in given]

    def _add(self, name: str) -> str:
        clean = first = _key(name)
        number = 2
        while clean in self._taken:
            clean, number = f"{first[:240]}_{number}", number + 1
        if clean != first:
            warn(
                f"MLflow has one name for the {self._kind}s {self._taken[first]!r} and {name!r}: "
                f"the second is {clean!r}"
            )
        self._taken[clean] = name
        self._clean[name] = clean
        return clean


def _key(name: str) -> str:
    """A name that MLflow takes."""
    return re.sub(r"[^\w./ -]", "_", name, flags=re.ASCII)[:250].strip("/. ") or "_"
