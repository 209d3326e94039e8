"""Logger: one row at a time, given to writers; the configuration; the state of a run."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from .comm import choose_comm
from .config import dumps_config
from .console import check_console, make_console
from .files import make_default_folder, make_folder, write_atomic
from .growing import TextFile
from .options import check_options, check_paths, prepare_sinks
from .relaunch_record import write_launch
from .row import PLAIN_TYPES, Draft, Row, check_key, make_row, plain
from .saving import StateSaver
from .terminal import check_color, show, warn
from .writers import ProgressWriter, Writer, close_all, close_in_process, read_columns

if TYPE_CHECKING:
    from .sinks import Named


class Logger(StateSaver):
    """Logs rows of diagnostics to a table on stdout and to progress.txt, configurations and models beside it.

    Only rank 0 prints and writes. Every rank builds its rows alike, and none of the methods of this class
    communicates, so code that runs on rank 0 alone may call them.

    A context manager: leaving the block is `close()`. A logger that is dropped, or still there at exit,
    closes itself.

    Args:
        output_dir: folder of the run, made where needed. None: /tmp/experiments/<number>, a new one, known to
            rank 0 only.
        output_fname: name of the file of rows. One that is there already is renamed to <name>.1, .2, ...
        exp_name: goes into the configuration; the plotter groups runs by it.
        comm: None for what the process was started under, "serial", an mpi4py communicator, or a
            torch.distributed group.
        quiet: print nothing; files are written all the same.
        precision: significant digits of floats in the table, integers in full. None: three digits for all, as
            in Spinning Up.
        console: "plain": Spinning Up's table; "rich": on a terminal, tables with sections, changes and the
            time left (docs/console.md), which need the package rich.
        new_keys: "add": a key that first appears in a later row becomes a column; "error": AssertionError.
        resume: go on with the run in output_dir, from the newest checkpoint of save_state that belongs to a
            row in the file of rows; later rows are cut off. `load_state()` then gives the state. Without any
            checkpoint the file is continued as it stands: same columns, no second header, a torn last line
            dropped. A folder without a run begins as usual.
        sinks: where rows go as well: names of "tensorboard", "jsonl", "csv", "wandb", "mlflow", or objects
            with write(row) and close(), or a SummaryWriter (docs/sinks.md). One that fails is a warning.
        keep_last, keep_every, keep_best: rules for the numbered checkpoints of save_state; one that none of
            them keeps is deleted. Without any rule all are kept. keep_last: how many of the newest;
            keep_every: those whose number is a multiple; keep_best: the one with the greatest value of this
            column (such as "AverageEpRet") in the row that it was saved with: the row being built then, or
            the one dumped just before.

    Attributes:
        output_dir: as given, on every rank; the default one is None off rank 0.
        output_file: the writable text file that rows go to; None off rank 0. May be replaced.
        log_headers: names of the columns, in order of first appearance.
        log_current_row: the row being built, a dict of plain numbers; changes to it count.
        first_row: whether the next row is the first one, which brings the header with it.

    Raises:
        TypeError, ValueError: an option with a value it does not take.
        OSError: the folder or the file cannot be made.
        ImportError: console="rich" without the package rich.

    Examples:
        >>> from spinstat import Logger
        >>> with Logger("run", exp_name="test", quiet=True) as logger:
        ...     logger.save_config({"seed": 0})
        ...     logger.log("begins", color="cyan")  # not while quiet
        ...     for epoch in range(2):
        ...         logger.log_tabular("Epoch", epoch)
        ...         logger.log_tabular("Loss", 1 / (epoch + 1))
        ...         logger.dump_tabular()
        ...     logger.save_state({"epoch": epoch})
        >>> print(open("run/progress.txt").read().replace(chr(9), " "), end="")
        Epoch Loss
        0 1.0
        1 0.5
        >>> logger = Logger("run", resume=True, quiet=True)
        >>> logger.load_state()
        {'epoch': 1}
        >>> logger.close()
    """

    def __init__(
        self,
        output_dir: str | os.PathLike[str] | None = None,
        output_fname: str = "progress.txt",
        exp_name: str | None = None,
        *,
        comm: Any = None,
        quiet: bool = False,
        precision: int | None = None,
        console: Literal["plain", "rich"] = "plain",
        new_keys: Literal["add", "error"] = "add",
        resume: bool = False,
        sinks: Iterable[object] | None = None,
        keep_last: int | None = None,
        keep_every: int | None = None,
        keep_best: str | None = None,
    ) -> None:
        check_paths(output_dir, output_fname)
        check_options(output_dir, precision, new_keys, resume)
        check_console(console)
        made = prepare_sinks(sinks, output_fname)
        self._set_retention(keep_last, keep_every, keep_best)
        self._comm = choose_comm(comm)
        self._is_root = self._comm.rank == 0
        self._quiet = quiet
        self._new_keys = new_keys
        self.exp_name = exp_name
        self.first_row: bool = True
        self.log_headers: list[str] = []
        self._draft = Draft()
        self._closed = False
        self._progress: ProgressWriter | None = None
        self._writers: list[Writer] = []
        self.output_dir: str | os.PathLike[str] | None = self._make_output_dir(output_dir, resume)
        self._folder = None if self.output_dir is None else os.path.abspath(self.output_dir)
        if self.output_dir is not None:
            name = os.path.join(self.output_dir, output_fname)
            columns = self._open_run(os.path.abspath(name), resume)
            self._open_file(name, resume, columns)
        if self._is_root and not quiet:
            self._writers.append(make_console(console, precision))
        if self._is_root and made:
            self._open_sinks(made, resume)
        if self._is_root and (made or console == "rich"):
            self._draft.stored = {}
        self._finalizer = weakref.finalize(self, close_in_process, self._writers, os.getpid())

    def _make_output_dir(
        self, output_dir: str | os.PathLike[str] | None, resume: bool
    ) -> str | os.PathLike[str] | None:
        if not self._is_root:
            return output_dir or None
        if not output_dir:
            return make_default_folder()
        if not make_folder(output_dir) and not resume:
            self._show(f"Warning: Log dir {output_dir} already exists! Storing info there anyway.")
        return output_dir

    def _open_file(self, name: str, resume: bool, columns: Sequence[str] | None) -> None:
        if self._is_root:
            self._progress = ProgressWriter(name, resume)
            self._writers.append(self._progress)
            self._draft.number = self._progress.rows if self._saved.point is None else self._saved.dumped
            columns = self._progress.columns
            if resume:
                self._saved.opening = self._progress.opening()
            self._show(f"Logging data to {name}", "green", bold=True)
        elif resume and columns is None:
            columns = read_columns(name)
        if columns:
            self.log_headers = list(columns)
            self._draft.columns_before = len(columns)
            self.first_row = False

    def _open_sinks(self, made: Sequence[Named], resume: bool) -> None:
        from .sinks import Run, Sinks

        columns = tuple(self.log_headers)
        run = Run(self._folder or "", self.exp_name, resume, self._draft.number, columns)
        sinks = Sinks(made, run)
        self._writers.append(sinks)  # the last, so that a row that waits for a slow one has been printed
        if sinks.wants_histograms:
            self._draft.histograms = {}

    def log(self, msg: object, color: str = "green") -> None:
        """Print a message in bold and in color, on rank 0 and unless the logger is quiet.

        Raises:
            KeyError: an unknown color; `spinstat.utils.logx.color2num` has the names.
        """
        check_color(color)
        self._show(msg, color, bold=True)

    def _alert(self, message: str) -> None:
        """Tell of something that went wrong: as a red message, and where that is not shown as a warning."""
        self.log(message, color="red")
        if not self._is_root:
            warn(f"rank {self._comm.rank}: {message}")
        elif self._quiet:
            warn(message)

    def _show(self, text: object, color: str | None = None, bold: bool = False) -> None:
        if self._is_root and not self._quiet:
            show(text, color, bold)

    def log_tabular(self, key: str, val: object) -> None:
        """Set one column of the row being built.

        Args:
            key: its name.
            val: a number, an array or tensor of one element, text, or whatever str() can write; None: blank.

        Raises:
            AssertionError: the row has the key already; with new_keys="error", it is new after the first row.
            TypeError: val is an array or tensor of another size, or cannot be written; key is no string.
        """
        text = None
        if type(val) not in PLAIN_TYPES:
            val, text = plain(key, val)
        draft, headers = self._draft, self.log_headers
        at = draft.expected
        if at < len(headers) and headers[at] == key and key not in draft.cells:
            draft.expected = at + 1  # rows mostly repeat the order of the first
        else:
            check_key(key)
            self._check_columns((key,))
            if key not in headers:
                headers.append(key)
            draft.expected = headers.index(key) + 1
        draft.cells[key] = val
        if text is not None:
            draft.texts[key] = val, text

    def _check_columns(self, keys: Sequence[str]) -> None:
        """Raise what log_tabular raises for keys that it cannot take."""
        cells = self._draft.cells
        if not cells.keys().isdisjoint(keys):
            key = next(key for key in keys if key in cells)
            raise AssertionError(f"{key!r} is set in this row already: dump_tabular() begins the next one")
        self._check_new(keys)

    def _check_new(self, keys: Sequence[str]) -> None:
        if self._new_keys == "add" or self.first_row:
            return
        for key in keys:
            if key not in self.log_headers:
                raise AssertionError(
                    f"{key!r} was not in the first row, and new_keys='error': log it from the first row on, "
                    "or make the logger with new_keys='add'"
                )

    def dump_tabular(self) -> None:
        """Finish the row: print it, append it to the file, and begin the next one.

        Columns that it does not set are blank. Before anything was logged this does nothing. A
        KeyboardInterrupt is raised when the row has been given to all writers, and counts.

        Raises:
            ValueError: the logger, or its output_file, is closed.
            AssertionError: log_current_row was given a new key by hand, with new_keys="error".
        """
        if self._closed:
            raise ValueError("this logger is closed: rows go to an open one")
        known = set(self.log_headers)
        draft = self._draft
        added = [key for key in draft.cells if key not in known]  # put into log_current_row by hand
        if not known and not added:
            self._row_done()
            return
        if added:
            for key in added:
                check_key(key)
            self._check_new(added)
            self.log_headers.extend(added)
        interrupt = None
        if self._writers:
            row = make_row(
                draft.number, self.log_headers, draft.cells, draft.texts, self.first_row, draft.stored,
                draft.histograms,
            )
            interrupt = self._write(row)
        draft.number += 1
        self._after_row(draft.cells)
        self.first_row = False
        draft.clear(len(self.log_headers))
        self._row_done()
        if interrupt is not None:
            raise interrupt

    def _row_done(self) -> None:
        """The row is over on this rank, whether or not an interrupt is about to be raised."""

    def _write(self, row: Row) -> BaseException | None:
        """Give a row to all writers. An interrupt waits: a row that some have and some have not would be
        written twice by whoever catches it and dumps again."""
        interrupt: BaseException | None = None
        for writer in self._writers:
            try:
                writer.write(row)
            except (KeyboardInterrupt, SystemExit) as error:
                interrupt = error
        return interrupt

    def _take_back(self, columns: Iterable[str]) -> None:
        """Undo log_tabular of these columns."""
        for column in columns:
            del self._draft.cells[column]
            if self._draft.stored is not None:
                self._draft.stored.pop(column, None)
            if column in self.log_headers[self._draft.columns_before :]:
                self.log_headers.remove(column)

    def _drop_row(self) -> None:
        """Forget the row being built and the columns that it brought."""
        del self.log_headers[self._draft.columns_before :]
        self._draft.clear(len(self.log_headers))

    def _is_between_rows(self) -> bool:
        """Whether nothing is stored or logged for the next row yet."""
        return not self._draft.cells

    def _position(self) -> tuple[int | None, Sequence[str]] | None:
        """Lines and columns of the file of rows, as ProgressWriter.position; off rank 0 the columns alone."""
        return (None, self.log_headers) if self._progress is None else self._progress.position()

    def _require_whole_row(self) -> None:
        """Raise where the row may not be read yet; always whole here."""

    @property
    def log_current_row(self) -> dict[str, Any]:
        """The row being built: column names and plain numbers, texts or None; in a batch an error to read."""
        self._require_whole_row()
        return self._draft.cells

    @log_current_row.setter
    def log_current_row(self, row: Mapping[str, object]) -> None:
        self._require_whole_row()
        self._draft.cells = row if isinstance(row, dict) else dict(row)

    @property
    def output_file(self) -> TextFile | None:
        """The writable text file that rows go to; None off rank 0."""
        return None if self._progress is None else self._progress.file

    @output_file.setter
    def output_file(self, file: TextFile | None) -> None:
        if self._progress is not None:
            self._progress.file = file

    def save_config(self, config: object) -> None:
        """Print a configuration as JSON and write it to config.json, atomically; launch.json beside it.

        Called as save_config(locals()) at the top of a function, launch.json holds the function and its
        arguments, and `python -m spinstat.run relaunch` can call it again.

        Args:
            config: mostly a dict, such as locals(), which is not changed. Functions, classes, arrays, objects
                of any kind become something readable. exp_name, where the logger has one, is added.

        Raises:
            TypeError: config is no dict and the logger has an exp_name to add.
            OSError: config.json cannot be written; the previous one is kept.
        """
        text = dumps_config(config, self.exp_name)
        if self._is_root:
            self._show("Saving config:\n", "cyan", bold=True)
            self._show(text)
            folder = self._folder or ""
            write_atomic(os.path.join(folder, "config.json"), text)
            write_launch(self, folder, config, self._comm.size)
            for writer in self._writers:
                if hasattr(writer, "save_config"):
                    writer.save_config(text)

    def close(self) -> None:
        """Write what could not be written before, and close the file. A second call does nothing.

        Raises:
            OSError: rows are left that cannot be written now either; close() may be tried again.
            Exception: what else a writer raises; the others are closed.
        """
        close_all(self._writers)
        self._closed = True
        self._finalizer.detach()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self.close()
        except OSError as failure:
            if error is None:
                raise
            warn(str(failure))  # the error that ended the block is the one to raise
