"""The sink "wandb": a run of Weights & Biases."""

from __future__ import annotations

import atexit
import os
import sys
from typing import Any

import numpy as np

from ..row import Row
from .base import OwnSink, Run, has_package, missing
from .steps import Steps

ROW = "spinstat/row"
RESUMED = "spinstat/resumed"


class WandbSink(OwnSink):
    """Logs each row to a run of its own, with the folder's name as its name and exp_name as its group.

    The columns of a row are logged as they are, with its number as "spinstat/row", and histograms of the
    stored values as "values/<key>". The column that is the step becomes the x axis. save_config goes into the
    run's config. W&B keeps its files in output_dir/wandb/, and its own settings hold (WANDB_MODE=offline).

    A script that closes nothing and ends by an uncaught exception, or by sys.exit with a code where W&B has
    its hook there, leaves a failed run.

    A resumed run of training goes on with the same run of W&B. What that holds of rows after the checkpoint
    cannot be taken back: so each row from there on has "spinstat/resumed", 1 after the first resume, 2 after
    the second. Of two rows with the same "spinstat/row", the one with the greater (or any) "spinstat/resumed"
    is that of progress.txt.

    Args:
        step: the column that is the x axis. None: TotalEnvInteracts if the first row has it, else Epoch, else
            the number of the row.
        histograms: of the values stored on rank 0 for the keys that are logged.
        run: a run that you have begun yourself, which is logged to and stays open.
        options: for wandb.init: project, entity, mode, tags, ...

    Examples:
        >>> from spinstat.sinks import WandbSink
        >>> sink = WandbSink(project="robots", mode="offline")  # for EpochLogger(sinks=[sink])
        >>> sink.name
        'wandb'
    """

    name = "wandb"

    def __init__(
        self, *, step: str | None = None, histograms: bool = True, run: Any = None, **options: Any
    ) -> None:
        super().__init__(step=step, histograms=histograms, run=run, **options)
        self.wants_histograms: bool = histograms
        self._steps = Steps(self.name, step)
        self._init = options
        self._own = run is None
        self._wandb: Any = run
        self._resumed = 0
        self._process = 0  # that has opened it
        self._hooks: Any = None  # W&B's, which note how the process ends

    def check(self) -> None:
        """Raise ImportError where wandb is not installed."""
        if not has_package("wandb"):
            raise missing(self.name, "wandb", "wandb")

    def open_run(self, run: Run) -> None:
        """Begin a run of W&B, or go on with the one that was begun here."""
        super().open_run(run)
        note = run.read_note(self.name) if run.resumed else {}
        if note:
            self._resumed = note["resumed"] + 1
        if self._own:
            import wandb

            options: dict[str, Any] = {"dir": run.folder, "name": os.path.basename(run.folder)}
            options |= {"group": run.exp_name, "reinit": "create_new"}  # beside a run of the script's own
            options |= self._init
            if note:
                options |= {"id": note["id"], "resume": "allow"}
            self._wandb = wandb.init(**options)
            self._process = os.getpid()
            self._hooks = getattr(sys.exit, "__self__", None)  # by which it has replaced sys.exit
            # Before W&B's own, which stops what the run is written by: scripts do not close their loggers.
            atexit.register(self._close_at_exit)
        run.write_note(self.name, id=self._wandb.id, resumed=self._resumed)

    def save_config(self, config: object) -> None:
        """Set the run's config."""
        entries = config if isinstance(config, dict) else {"config": config}
        self._wandb.config.update(entries, allow_val_change=True)

    def write(self, row: Row) -> None:
        """Log a row."""
        if self._steps.is_first():
            self._steps.of(row)
            self._wandb.define_metric("*", step_metric=self._steps.column or ROW)
        cells = zip(row.columns, row.values, strict=True)
        data: dict[str, Any] = {column: value for column, value in cells if value is not None}
        data[ROW] = row.number
        if self._resumed:
            data[RESUMED] = self._resumed
        if self.wants_histograms and row.histograms:  # which may be there for another sink
            import wandb

            for key, histogram in row.histograms.items():
                pair = (np.array(histogram.counts), np.array(histogram.edges))
                data[f"values/{key}"] = wandb.Histogram(np_histogram=pair)
        self._wandb.log(data)

    def close(self) -> None:
        """Finish the run that was begun here."""
        self._finish(0)

    def _finish(self, exit_code: int) -> None:
        if self._own and self._wandb is not None:
            atexit.unregister(self._close_at_exit)
            self._wandb.finish(exit_code=exit_code)
            self._wandb = None

    def _close_at_exit(self) -> None:
        if os.getpid() == self._process:  # not in a child that was forked
            crashed = hasattr(sys, "last_value")  # by an exception, whoever replaced sys.excepthook
            self._finish(getattr(self._hooks, "exit_code", 0) or int(crashed))
