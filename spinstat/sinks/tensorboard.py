"""The sink "tensorboard": event files for TensorBoard, written by torch or by tensorboardX."""

from __future__ import annotations

import itertools
import json
import os
from typing import Any

from ..files import move_folder_aside
from ..histogram import Histogram
from ..row import Row
from .base import OwnSink, Run, has_package, missing
from .flat import flatten
from .steps import Steps

FOLDER = "tensorboard"
HISTOGRAMS = "values/"  # before the key: a tag may not be that of a scalar too
_numbers = itertools.count()


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
        self.wants_histograms = histograms
        self._steps = Steps(self.name, step)
        self._step = 0  # of the last row
        self._waiting: list[Row] = []
        self._config: object = None  # until it is written
        self._writer = writer
        self._is_own = writer is None

    def check(self) -> None:
        """Raise ImportError where neither torch with tensorboard nor tensorboardX is installed."""
        if self._is_own and _package() is None:
            raise missing(self.name, "torch and tensorboard, or tensorboardX", "tensorboard")

    def open_run(self, run: Run) -> None:
        """Begin a run, or go on with one."""
        super().open_run(run)
        if self._is_own:
            _writer_class()  # which takes seconds to load: better here than with the first row
            folder = os.path.join(run.folder, FOLDER)
            if not run.resumed and os.path.lexists(folder):
                move_folder_aside(folder)

    def save_config(self, config: object) -> None:
        """Keep the configuration, which is written with the next row."""
        self._config = config

    def write(self, row: Row) -> None:
        """Write a row, and those before it that a full disk has kept from being written."""
        self._waiting.append(row)
        try:
            while self._waiting:
                self._write_row(self._waiting[0])
                del self._waiting[0]
        except (TypeError, ValueError):  # what this row holds; it would fail again
            del self._waiting[0]
            raise
        except Exception:
            if self._is_own:
                self._writer = None  # whose thread has ended: the next row gets another file
            raise

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
            writer.add_scalar(column, float(value), step)
        histograms = row.histograms if self.wants_histograms else {}  # another sink may want them
        for key, histogram in histograms.items():
            _add_histogram(writer, HISTOGRAMS + key, histogram, step)
        self._flush()

    def _open_writer(self, step: int) -> Any:
        """The writer, made with the first row: what it purges after a resume depends on that row's step."""
        if self._writer is None:
            assert self.run is not None
            folder = os.path.join(self.run.folder, FOLDER)
            self._writer = _make_writer(folder, step if self.run.resumed else None)
        return self._writer

    def _write_config(self, writer: Any, metrics: list[str], step: int) -> None:
        values = flatten(self._config)
        if hasattr(writer, "add_text"):
            text = json.dumps(self._config, indent=4)
            writer.add_text("config", "".join(f"    {line}\n" for line in text.splitlines()), step)
        function = _hparams_function(writer)
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
        if self._config is not None:
            self._write_config(self._open_writer(self._step), [], self._step)
            self._config = None
        waiting, self._waiting = self._waiting, []
        for row in waiting:
            self._write_row(row)
        if self._writer is not None:
            self._flush()
            if self._is_own:
                self._writer.close()
                self._writer = None


def _package() -> str | None:
    if has_package("torch") and has_package("tensorboard"):
        return "torch"
    return "tensorboardX" if has_package("tensorboardX") else None


def _writer_class() -> Any:
    if _package() == "torch":
        from torch.utils.tensorboard import SummaryWriter

        return SummaryWriter
    import tensorboardX

    return tensorboardX.SummaryWriter


def _make_writer(folder: str, purge_step: int | None) -> Any:
    writer_class = _writer_class()
    if _package() == "torch":
        return writer_class(folder, purge_step=purge_step)
    # Its thread ends in silence when the disk is full, and a bounded queue would then stop the run. Its
    # flush() does not wait for the thread: that writes within a second. And it would write over a file that
    # was begun in the same second.
    suffix = f".{os.getpid()}.{next(_numbers)}"
    return writer_class(
        folder, purge_step=purge_step, max_queue=0, flush_secs=1, filename_suffix=suffix
    )


def _hparams_function(writer: Any) -> Any:
    """What makes the summaries of hyperparameters for a writer of torch or tensorboardX; None for others."""
    if not hasattr(writer, "file_writer"):
        return None
    module = type(writer).__module__.partition(".")[0]
    if module == "torch":
        from torch.utils.tensorboard.summary import hparams

        return hparams
    if module == "tensorboardX":
        import tensorboardX.summary

        return tensorboardX.summary.hparams
    return None


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
