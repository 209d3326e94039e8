"""What a sink is, and what it is told of the run."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, ClassVar, Protocol

from ..files import WORK_FOLDER
from ..row import Row
from ..terminal import warn


@dataclass(frozen=True)
class Run:
    """The run that a sink is opened for.

    Attributes:
        folder: absolute path of its output_dir.
        exp_name: as the logger was given it.
        resumed: whether the logger goes on with a run that was in the folder.
        rows: how many rows were dumped before the first that the sink will get: 0 for a new run. What a sink
            holds of later rows was written after the checkpoint, and will come again.
        columns: the names of the columns then; empty for a new run.
    """

    folder: str
    exp_name: str | None
    resumed: bool
    rows: int
    columns: tuple[str, ...] = ()

    def read_note(self, name: str) -> dict[str, Any]:
        """What `write_note` has kept under that name in an earlier process; empty for nothing."""
        path = self._note_path(name)
        try:
            with open(path, encoding="utf-8") as file:
                fields = json.load(file)
            return dict(fields)
        except FileNotFoundError:
            return {}
        except (ValueError, TypeError) as error:
            warn(f"{path} is left out: {error!r}")
            return {}

    def write_note(self, name: str, **fields: object) -> None:
        """Keep what the sink will need to go on with the run in another process, in .spinstat/.

        Raises:
            OSError: it cannot be written; the one before is kept.
        """
        path = self._note_path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        temporary = f"{path}-{os.getpid()}"
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump(fields, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)

    def _note_path(self, name: str) -> str:
        return os.path.join(self.folder, WORK_FOLDER, f"sink-{name}")


class Sink(Protocol):
    """Takes rows. Any object with these two methods is one; they are called on rank 0 alone.

    It may also have, and is then told of them:

    - `open_run(run: Run)`: called once, before anything else.
    - `save_config(config: dict)`: what the logger's save_config got, as JSON's own types.
    - `wants_histograms = True`: rows come with the histograms of the values stored on rank 0.

    What it raises is told once as a warning, and the run goes on; KeyboardInterrupt passes.

    Examples:
        >>> from spinstat import EpochLogger
        >>> class Printer:
        ...     def write(self, row):
        ...         print(dict(zip(row.columns, row.values)))
        ...     def close(self):
        ...         print("closed")
        >>> with EpochLogger("run", quiet=True, sinks=[Printer()]) as logger:
        ...     logger.log_tabular("Epoch", 0)
        ...     logger.dump_tabular()
        {'Epoch': 0}
        closed
    """

    def write(self, row: Row) -> None:
        """Take one row."""

    def close(self) -> None:
        """Finish; no rows come after this."""


class OwnSink:
    """What the sinks of this package have in common.

    Two loggers cannot share one. A pickle or a copy of it has its options, and is not open.
    """

    name: ClassVar[str]

    def __init__(self, **options: Any) -> None:
        self._options = options
        self.run: Run | None = None

    def check(self) -> None:
        """Raise ImportError, naming the extra, where a package is missing; called on all ranks."""

    def open_run(self, run: Run) -> None:
        """Begin, or go on with, a run."""
        self.run = run

    def refuse_second_run(self) -> None:
        """Raise ValueError where the sink is open for another logger."""
        if self.run is not None:
            raise ValueError(
                f"this {type(self).__name__} is that of another logger, with the run in {self.run.folder}: "
                "make one for each"
            )

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _make, (type(self), self._options)


def _make(cls: type[OwnSink], options: Mapping[str, Any]) -> OwnSink:
    return cls(**options)


def has_package(name: str) -> bool:
    """Whether a package can be imported; it is not."""
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):  # a parent package is missing; sys.modules holds None or no spec
        return False


def missing(sink: str, package: str, extra: str) -> ImportError:
    """The error for a sink whose package is not there."""
    return ImportError(f'the sink "{sink}" needs {package}: pip install "spinstat[{extra}]"')
