"""The sink "tensorboard": event files for TensorBoard, written by torch or by tensorboardX."""

from __future__ import annotations

import json
import os
from typing import Any

from ..files import move_folder_aside
from ..histogram import Histogram
from ..row import Row
from ..terminal import warn
from .base import OwnSink, Run, missing
from .event_writers import (
    abandon_writer,
    check_disk,
    hparams_function,
    make_writer,
    writer_class,
    writer_package,
)
from .flat import as_float, flatten
from .steps import Steps

FOLDER = "tensorboard"
HISTOGRAMS = "values/"  # before the key: a tag may not be that of a scalar too


class TensorBoardSink(OwnSink):
    """Numbers of a row as scalars, the values behind them as histograms, the configuration as HPARAMS.

    Files are written to output_dir/tensorboard/; those of an earlier run in the folder move to tensorboard.1.
    Rows are on the disk when dump_tabular returns. After a resume, TensorBoard drops what it has of later
    rows than the checkpoint's (purge_step).

    Scalars are float32, as everywhere in TensorBoard; columns that hold text are left out, and so are values
    of hyperparameters that are None. The hyperparameters are written with the first row, whose columns
    become the metrics of the HPARAMS page. TensorBoard goes on to show those that a run began with: where a
    resumed run has others, the TEXT page has both.

    Args:
        step: the column that is the x axis. None: TotalEnvInteracts if the first row has it, else Epoch, else
            the number of the row. A later row where it is blank or no number has the step of the row before.
        histograms: of the values stored on rank 0 for the keys that are logged, as "values/<key>"; there are
            none with keep_values=False.
        writer: a SummaryWriter of your own, or an object with its methods, instead of one made here.
            It is flushed after each row and left open, and a resume does not touch it.

    Examples:
        >>> from spinstat import EpochLogger
        >>> from spinstat.sinks import TensorBoardSink
        >>> with EpochLogger("run", quiet=True, sinks=[TensorBoardSink(step="Epoch")]) as logger:
        ...     logger.store(Loss=[1.0, 2.0])
        ...     logger.log_tabular("Epoch", 0)
        ...     logger.log_tabular("Loss", average_only=True)
        ...     logger.dump_tabular()
        >>> import os
        >>> len(os.listdir("run/tensorboard"))
        1
    """

    name = "tensorboard"

    def __init__(self, *, step: str | None = None, histograms: bool = True, writer: Any = None) -> None:
        super().__init__(step=step, histograms=histograms, writer=writer)
        self.wants_histograms: bool = histograms
        self._steps = Steps(self.name, step)
        self._step = 0  # of the last row
        self._waiting: list[Row] = []
        self._config: object = None  # until it is written
        self._writer: Any = writer
        self._is_own = writer is None
        self._has_failed = False  # since it last wrote a row

    def check(self) -> None:
        """Raise ImportError where neither torch with tensorboard nor tensorboardX is installed."""
        if self._is_own and writer_package() is None:
            raise missing(self.name, "torch and tensorboard, or tensorboardX", "tensorboard")

    def open_run(self, run: Run) -> None:
        """Begin a run, or go on with one."""
        super().open_run(run)
        if self._is_own:
            writer_class()  # which takes seconds to load: better here than with the first row
            folder = os.path.join(run.folder, FOLDER)
            if not run.resumed and os.path.lexists(folder):
                move_folder_aside(folder)

    def save_config(self, config: object) -> None:
        """Keep the configuration, which is written with the next row."""
        self._config = config

    def write(self, row: Row) -> None:
        """Write a row, and those before it that a full disk has kept from being written."""
        self._waiting.append(row)
        self._catch_up()

    def _catch_up(self) -> None:
        try:
            while self._waiting:
                self._write_row(self._waiting[0])
                self._has_failed = False
                del self._waiting[0]
        except (TypeError, ValueError, ArithmeticError):  # what this row holds; it would fail again
            del self._waiting[0]
            raise
        except Exception:
            self._give_up_writer()
            raise

    def _give_up_writer(self) -> None:
        """Close the writer after an error: the next row gets another file, once the disk takes one."""
        self._has_failed = True
        if self._is_own and self._writer is not None:
            writer, self._writer = self._writer, None
            abandon_writer(writer)

    def _write_row(self, row: Row) -> None:
        step = self._step = self._steps.of(row)
        numbers = {
            column: value
            for column, value in zip(row.columns, row.values, strict=True)
            if isinstance(value, int | float)
        }
        writer = self._open_writer(step)
        if self._config is not None:
            self._write_config(writer, list(numbers), step)
            self._config = None
        for column, value in numbers.items():
            writer.add_scalar(column, as_float(value), step)
        histograms = row.histograms if self.wants_histograms else {}  # another sink may want them
        for key, histogram in histograms.items():
            _add_histogram(writer, HISTOGRAMS + key, histogram, step)
        self._flush()

    def _open_writer(self, step: int) -> Any:
        """The writer, made with the first row: what it purges after a resume depends on that row's step."""
        if self._writer is None:
            assert self.run is not None
            folder = os.path.join(self.run.folder, FOLDER)
            if self._has_failed:
                check_disk(folder)
            self._writer = make_writer(folder, step if self.run.resumed else None)
        return self._writer

    def _write_config(self, writer: Any, metrics: list[str], step: int) -> None:
        values = flatten(self._config)
        if hasattr(writer, "add_text"):
            text = json.dumps(self._config, indent=4)
            writer.add_text("config", "".join(f"    {line}\n" for line in text.splitlines()), step)
        function = hparams_function(writer)
        if function is not None:  # SummaryWriter.add_hparams would write them to a run of their own
            for summary in function(values, dict.fromkeys(metrics, 0.0)):
                writer.file_writer.add_summary(summary)
        elif hasattr(writer, "add_hparams"):
            writer.add_hparams(values, {})

    def _flush(self) -> None:
        if hasattr(self._writer, "flush"):
            self._writer.flush()

    def close(self) -> None:
        """Write what waits, and close the files; a writer of the user's stays open."""
        try:
            self._catch_up()
        except Exception as error:
            warn(f"the sink {self.name}: {error}; {len(self._waiting)} of its rows are lost")
            self._give_up_writer()
            return
        try:
            self._finish()
        except Exception:
            self._give_up_writer()
            raise

    def _finish(self) -> None:
        if self._config is not None:
            self._write_config(self._open_writer(self._step), [], self._step)
            self._config = None
        if self._writer is not None:
            self._flush()
            if self._is_own:
                self._writer.close()
                self._writer = None


def _add_histogram(writer: Any, key: str, histogram: Histogram, step: int) -> None:
    if not hasattr(writer, "add_histogram_raw"):
        return
    # A bucket is known by its upper limit: an empty one at the lower edge says where the first begins.
    writer.add_histogram_raw(
        key,
        min=histogram.min,
        max=histogram.max,
        num=histogram.size,
        sum=histogram.sum,
        sum_squares=histogram.sum_squares,
        bucket_limits=list(histogram.edges),
        bucket_counts=[0, *histogram.counts],
        global_step=step,
    )
