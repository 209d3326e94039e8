"""EpochLogger: values stored over an epoch become statistics over all ranks in the row."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from ._core import EpochStore, Moments
from .exchange import Channel, KeyMismatchError, Result, RowInfo
from .histogram import histogram_of
from .logger import Logger
from .quantiles import Wanted, check_quantiles
from .row import Stored, check_key
from .terminal import warn
from .waiting import Agreement, Batch, Closed, statistics_columns, take_wanted

NO_QUANTILES: tuple[float, ...] = ()


# On attributes: CPython shares the layout of instance dicts up to 30 of them. A logger with more, the user's
# own included, would have `store` found by a full lookup each time, which costs as much as storing: so the
# private state is in a few objects.
class EpochLogger(EpochStore, Logger):
    """A Logger that keeps what is stored in an epoch and logs mean, std, max and min of it over all ranks.

        logger.store(EpRet=ep_ret, EpLen=ep_len)               # often
        logger.log_tabular("EpRet", with_min_and_max=True)     # once an epoch: AverageEpRet, StdEpRet, ...
        logger.dump_tabular()

    `log_tabular` of a stored key and `get_stats` communicate: all ranks must call them, in the same order.
    With explicit values `log_tabular` does not, and outside a batch neither does `dump_tabular`.

    Statistics are float64; the standard deviation divides by the number of values (ddof 0) and is exactly 0
    for values that are all equal, so whoever divides by it must guard. Arrays count by their elements,
    whatever their shape.

    Args:
        output_dir, output_fname, exp_name, comm, quiet, precision, console, new_keys: as Logger's.
        resume, sinks, keep_last, keep_every, keep_best: as Logger's.
        keep_values: keep what is stored for `epoch_dict` until its key is logged, 8 bytes a value. False:
            keep only the moments; memory stays the same however many values come.
        strict_keys: a key without values on any rank is a KeyError on all, instead of nan and a warning.
        batch: reduce all keys of a row in one collective in dump_tabular, which all ranks must then call.

    Examples:
        >>> from spinstat import EpochLogger
        >>> logger = EpochLogger("run", quiet=True)
        >>> logger.store(EpRet=3.0, EpLen=30)
        >>> logger.store(EpRet=5.0, EpLen=[40, 50])
        >>> logger.get_stats("EpRet")
        (4.0, 1.0)
        >>> with logger.batch():
        ...     logger.log_tabular("Epoch", 0)
        ...     logger.log_tabular("EpRet", with_min_and_max=True)
        ...     logger.log_tabular("EpLen", average_only=True)
        >>> logger.log_current_row
        {'Epoch': 0, 'AverageEpRet': 4.0, 'StdEpRet': 1.0, 'MaxEpRet': 5.0, 'MinEpRet': 3.0, 'EpLen': 40.0}
        >>> logger.last_row_info["EpLen"].count
        3
        >>> logger.dump_tabular()
        >>> logger.close()
    """

    def __init__(
        self,
        output_dir: str | os.PathLike[str] | None = None,
        output_fname: str = "progress.txt",
        exp_name: str | None = None,
        *,
        keep_values: bool = True,
        strict_keys: bool = False,
        batch: bool = False,
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
        super().__init__(
            output_dir,
            output_fname,
            exp_name,
            comm=comm,
            quiet=quiet,
            precision=precision,
            console=console,
            new_keys=new_keys,
            resume=resume,
            sinks=sinks,
            keep_last=keep_last,
            keep_every=keep_every,
            keep_best=keep_best,
        )
        self.keep_values = keep_values
        self.last_row_info: dict[str, RowInfo] = {}
        self._strict_keys = strict_keys
        self._agreement = Agreement(Channel(self._comm))
        self._batch = Batch(batch)

    def log_tabular(
        self,
        key: str,
        val: object = None,
        with_min_and_max: bool = False,
        average_only: bool = False,
        *,
        with_count: bool = False,
        quantiles: Iterable[float] | None = NO_QUANTILES,
    ) -> None:
        """Set the columns of a key: an explicit value, or statistics of what was stored under it.

        Stored values give Average<key> and Std<key>, over all ranks. They are gone then; with val, too.
        Ranks may differ in all options, but for whether they ask for quantiles of a key.

        Args:
            key: the name they were stored under.
            val: an explicit value, for the one column <key>. None: the stored values.
            with_min_and_max: also Max<key> and Min<key>.
            average_only: no Std<key>, and the mean is in the column <key>.
            with_count: also Count<key>: how many values, those that are not finite included.
            quantiles: numbers from 0 to 1, such as (0.05, 0.5): also Q5<key> and Q50<key>, from the kept
                values. Exact on one rank, and for up to 65,536 values on several; of more, ranks send a
                sample (see `spinstat.quantiles` for the bound). Without the values (tensors on a GPU are not
                kept) nan, and a warning.

        Raises:
            AssertionError, TypeError: as Logger.log_tabular, with nothing changed.
            ValueError: quantiles are not as described, or the logger keeps no values; nothing has changed.
            KeyError: no rank has values and strict_keys is on.
            KeyMismatchError: the ranks are not in the same call, or only some of them can log the key. All
                drop the row and all values stored.
        """
        if val is not None:
            if quantiles is not NO_QUANTILES:
                check_quantiles(quantiles)
            super().log_tabular(key, val)
            self._discard(key)
            return
        batch = self._batch
        if batch.in_block and batch.waiting is None:  # after a dump_tabular in the block
            batch.waiting = []
        try:
            several = NO_QUANTILES if quantiles is NO_QUANTILES else check_quantiles(quantiles)
            columns, readers = statistics_columns(key, with_min_and_max, average_only, with_count, several)
            self._check_columns(columns)
            values = None if self._draft.histograms is None else self._drawn_values(key)
            taken, wanted = take_wanted(self, key, several) if several else (self._take(key), None)
        except Exception:
            if batch.waiting is None:
                self._refuse(key)
            raise
        if values is not None:
            self._draw(key, values, taken.count)
        log = super().log_tabular
        if batch.waiting is not None:
            for column in columns:
                log(column, None)
            batch.waiting.append(Closed(key, columns, readers, taken, wanted))
            return
        result = self._reduce("row", [(key, taken)], () if wanted is None else (wanted,))[0]
        if result.info.count == 0:
            self._report_empty([key])
        self._note(key, columns, result.info, wanted)
        for column, read in zip(columns, readers, strict=False):  # those of quantiles have none
            log(column, read(result.moments))
        if wanted is not None:
            for column, quantile in zip(columns[len(readers) :], wanted.found, strict=True):
                log(column, quantile)

    def _drawn_values(self, key: str) -> Any:
        """The values stored under a key, where a sink wants their histogram; None otherwise."""
        return self._values(key) if self.keep_values and self._knows(key) else None

    def _draw(self, key: str, values: Any, count: int) -> None:
        try:
            histogram = histogram_of(values, count)
        except Exception as error:  # what the statistics take and NumPy does not must not end the run
            warn(f"there is no histogram of {key!r} ({type(error).__name__}: {error})")
            return
        if histogram is not None and self._draft.histograms is not None:
            self._draft.histograms[key] = histogram

    def get_stats(self, key: str, *, with_min_and_max: bool = False) -> tuple[float, ...]:
        """Mean and standard deviation over all ranks of what is stored under a key, which stays stored.

        All ranks must call it.

        Args:
            key: the name it was stored under.
            with_min_and_max: also the least and the greatest value: (mean, std, min, max).

        Raises:
            KeyError, KeyMismatchError: as log_tabular.
        """
        check_key(key)
        result = self._reduce("get_stats", [(key, self._peek(key))])[0]
        if result.info.count == 0:
            self._report_empty([key])
        moments = result.moments
        both = (moments.mean, moments.std())
        return (*both, moments.min, moments.max) if with_min_and_max else both

    def dump_tabular(self) -> None:
        """Logger.dump_tabular; in a batch, after reducing its keys over all ranks."""
        if self._batch.waiting is not None:
            self._reduce_batch()
            self._batch.end()
        super().dump_tabular()

    def _row_done(self) -> None:
        super()._row_done()
        self._agreement.left_over = self._counts()
        self._agreement.next_row()

    def _is_between_rows(self) -> bool:
        return super()._is_between_rows() and self._counts() == self._agreement.left_over

    def _note(self, key: str, columns: Sequence[str], info: RowInfo, wanted: Wanted | None) -> None:
        """Keep how the ranks contributed; say on rank 0 why quantiles are missing."""
        if self._agreement.info_is_old:
            self.last_row_info = {}
            self._agreement.info_is_old = False
        self.last_row_info[key] = info
        if self._draft.stored is not None:
            self._draft.stored.update(dict.fromkeys(columns, Stored(key, info.count)))
        if wanted is not None and wanted.trouble and self._is_root:
            warn(f"The quantiles of {key!r} are nan: {wanted.trouble}")

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Reduce the keys logged in the block in one collective at its end, or in dump_tabular within it.

            with logger.batch():
                logger.log_tabular("EpRet", with_min_and_max=True)
                logger.log_tabular("EpLen", average_only=True)
            logger.dump_tabular()

        All ranks must run the block. Until its end log_current_row is not complete, and reading it is an
        error. A block that raises drops the row, with what was logged before the block; where it raises on
        some ranks only, the others get a KeyMismatchError at its end.

        Raises:
            RuntimeError: a block within a block.
            KeyError: at the end, as log_tabular; the other keys stay in the row.
            KeyMismatchError: at the end, as log_tabular.
        """
        batch = self._batch
        if batch.in_block:
            raise RuntimeError("this logger is in a batch already: one block for all keys of a row is enough")
        batch.in_block = True
        if batch.waiting is None:
            batch.waiting = []
        at_end = False
        try:
            yield
            at_end = True
            if batch.waiting is not None:
                self._reduce_batch()
        except BaseException as error:
            if not at_end:
                if batch.waiting is not None:
                    self._refuse_batch(error)
                self._drop_row()
            # What this rank reduces next is not of the row that other ranks have come to the end of.
            self._agreement.communicated = True
            self._agreement.next_row()
            raise
        finally:
            batch.in_block = False
            batch.end()

    def _refuse_batch(self, error: BaseException) -> None:
        """Meet the ranks that wait at the end of a block that this one leaves by an error.

        Not where the process is about to end, and not after an error that all of them have.
        """
        if not isinstance(error, Exception) or isinstance(error, KeyMismatchError):
            return
        try:
            self._reduce("refused batch", [])
        except KeyMismatchError:
            error.add_note("Other ranks came to the end of the batch, so all of them drop its row.")

    def _reduce_batch(self) -> None:
        """Reduce the keys that wait, and fill in their columns; drop the row where that does not end well."""
        waiting, self._batch.waiting = self._batch.waiting or [], []
        try:
            empty = self._fill_in(waiting)
        except BaseException:  # Ctrl-C, mostly: the columns would stay blank
            self._drop_row()
            raise
        if empty and self._strict_keys:
            for closed in empty:
                self._take_back(closed.columns)
        if empty:
            self._report_empty([closed.key for closed in empty])

    def _fill_in(self, waiting: Sequence[Closed]) -> list[Closed]:
        """Reduce these keys, set their columns, and return those that no rank has a value for."""
        items = [(closed.key, closed.moments) for closed in waiting]
        results = self._reduce("row", items, [closed.wanted for closed in waiting])
        empty = []
        for closed, result in zip(waiting, results, strict=True):
            if result.info.count == 0:
                empty.append(closed)
            self._note(closed.key, closed.columns, result.info, closed.wanted)
            for column, cell in zip(closed.columns, closed.cells(result.moments), strict=True):
                self._draft.cells[column] = cell
        return empty

    def _require_whole_row(self) -> None:
        if self._batch.waiting:
            keys = ", ".join(closed.key for closed in self._batch.waiting)
            raise RuntimeError(
                f"log_current_row does not have the statistics of {keys} yet, which come at the end of the "
                "batch: read it after the block, or log these keys outside a batch"
            )

    def _reduce(
        self, purpose: str, items: list[tuple[str, Moments]], wanted: Sequence[Wanted | None] = ()
    ) -> list[Result]:
        agreement = self._agreement
        if purpose == "row":
            agreement.communicated = True
        try:
            return agreement.channel.reduce(purpose, agreement.row, items, wanted)
        except KeyMismatchError:
            # Ranks that disagree about a key may also hold values of different epochs for the others.
            for key in self._keys():
                self._discard(key)
            self._batch.end()
            self._drop_row()
            agreement.communicated = True  # on all ranks, whatever call each of them was in
            agreement.next_row()
            raise

    def _refuse(self, key: object) -> None:
        """Meet the other ranks where this one cannot log a key: they are in the same call, and wait.

        Where none of them can, each raises its own error, and nothing has changed.

        Raises:
            KeyMismatchError: other ranks can.
        """
        self._reduce("refused log_tabular", [(str(key), Moments())])

    def _report_empty(self, keys: Sequence[str]) -> None:
        """Say that no rank has a value for these keys: an error with strict_keys, else rank 0's warning."""
        if not (self._strict_keys or self._is_root):
            return
        logged = {} if self._agreement.info_is_old else self.last_row_info
        known = [key for key in self._keys() if key not in keys]
        filled = [key for key in known if (key in logged and logged[key].count) or self._peek(key).count]
        messages = [_about_empty(key, known, filled) for key in keys]
        if self._strict_keys:
            raise KeyError(" ".join(messages))
        for message in messages:
            warn(f"{message} Its statistics are nan.")


def _about_empty(key: str, known: Sequence[str], filled: Sequence[str]) -> str:
    """What to say of a key without values: which keys have some, and which it may be a slip of."""
    import difflib

    text = f"No rank has stored a value for {key!r} since it was last logged."
    text += f" Keys with values: {', '.join(filled)}." if filled else " No other key has any either."
    by_lower = {name.lower(): name for name in known}
    close = [by_lower[name] for name in difflib.get_close_matches(key.lower(), by_lower)]
    return f"{text} Did you mean {' or '.join(map(repr, close))}?" if close else text
