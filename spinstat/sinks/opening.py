"""From what a logger was given to sinks that are open, and kept from ending the run."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Any, NamedTuple

from ..row import Row
from ..terminal import warn
from .base import OwnSink, Run
from .files import FileSink

# By name: the module in this package and the class.
BUILT_IN: dict[str, str] = {
    "tensorboard": "TensorBoardSink",
    "jsonl": "JsonlSink",
    "csv": "CsvSink",
    "wandb": "WandbSink",
    "mlflow": "MlflowSink",
}


FILES = ("jsonl", "csv")  # of which a run may have several
# What a logger writes in its folder: progress.txt.1, vars3.pkl, tf1_save2/saved_model.pb, ...
RUNS_OWN = re.compile(
    r"(config\.json|launch\.json|env\.json|vars\d*\.pkl|progress\.txt[.\d]*)$"
    r"|(\.spinstat|pyt_save|tf1_save\d*|tensorboard)(/|$)"
)


class Named(NamedTuple):
    """A sink, and what messages call it."""

    name: str
    sink: Any


def make_sinks(items: Iterable[object] | None, output_fname: str = "progress.txt") -> list[Named]:
    """The sinks for names and objects. Nothing is opened, so all ranks do this alike.

    Args:
        items: names in `BUILT_IN`, objects with write(row) and close(), and writers such as SummaryWriter.
        output_fname: the name of the logger's file of rows, which no sink can have.

    Raises:
        ValueError: an unknown name, or one that is there twice; a sink that another logger has; a file that
            the run or another sink has.
        TypeError: an object that is no sink, or no list of them.
        ImportError: a package that a sink needs is missing; names the extra.
    """
    if items is None:
        return []
    if isinstance(items, str | bytes) or not isinstance(items, Iterable):
        raise TypeError(f"sinks is a list, such as sinks=['tensorboard'], not {items!r}")
    items = list(items)
    made = [_make_sink(item) for item in items]
    names = [named.name for named in made if isinstance(named.sink, OwnSink)]
    for named in made:
        if isinstance(named.sink, OwnSink):
            if [each.sink is named.sink for each in made].count(True) > 1:
                raise ValueError(f"the same {named.name} sink is given twice")
            named.sink.check()
            named.sink.refuse_second_run()
    for item in items:
        if isinstance(item, str) and names.count(item) > 1 and item not in FILES:
            raise ValueError(f"the sink {item!r} is given twice")
    _check_files([named.sink for named in made if isinstance(named.sink, FileSink)], output_fname)
    return made


def _check_files(sinks: Sequence[FileSink], output_fname: str) -> None:
    """Raise ValueError for a file that the run has itself, or another sink."""
    taken: dict[str, FileSink] = {}
    for sink in sinks:
        name, path = repr(sink.path), os.path.normpath(sink.path)
        if path == os.path.normpath(output_fname) or RUNS_OWN.match(path):
            raise ValueError(f"the sink {sink.name} cannot have {name}: the run has a file of that name")
        if path in taken:
            raise ValueError(f"the sinks {taken[path].name} and {sink.name} have the same file, {name}")
        taken[path] = sink


def _make_sink(item: object) -> Named:
    if isinstance(item, str):
        if item not in BUILT_IN:
            raise ValueError(f"unknown sink {item!r}: the names are {', '.join(map(repr, BUILT_IN))}")
        sink = getattr(import_module(f"{__package__}.{item}"), BUILT_IN[item])()
        return Named(item, sink)
    if isinstance(item, OwnSink):
        return Named(item.name, item)
    name = type(item).__name__
    if isinstance(item, type):
        raise TypeError(f"{item.__name__} in sinks is a class: give an object, {item.__name__}(...)")
    if _has(item, "write", "close"):
        return Named(name, item)
    if _has(item, "add_scalar"):
        from .tensorboard import TensorBoardSink

        return Named(name, TensorBoardSink(writer=item))
    raise TypeError(
        f"a sink is a name ({', '.join(BUILT_IN)}), an object with write(row) and close(), or a "
        f"SummaryWriter, not {item!r}"
    )


def _has(item: object, *methods: str) -> bool:
    return all(callable(getattr(item, method, None)) for method in methods)


class Sinks:
    """The sinks of a logger, as one writer: what one of them raises reaches neither the run nor the others.

    A sink that fails is told of once, and gets the next rows all the same: it may recover. KeyboardInterrupt
    and SystemExit pass when all sinks have had the row. In a process forked off the one that opened them,
    sinks, whose threads and connections are the parent's, get nothing.

    Args:
        made: what `make_sinks` gave.
        run: the run they are opened for.
    """

    def __init__(self, made: Sequence[Named], run: Run) -> None:
        self._process = os.getpid()
        self._told: set[int] = set()  # sinks that have failed
        self._open: list[Named] = []
        for named in made:
            opened = self._call(named, "open", getattr(named.sink, "open_run", None), run)
            if opened:
                self._open.append(named)
        self.wants_histograms: bool = any(
            getattr(named.sink, "wants_histograms", False) for named in self._open
        )

    def write(self, row: Row) -> None:
        """Give the row to all."""
        self._each("take a row", "write", row)

    def save_config(self, text: str) -> None:
        """Give the configuration, the text of config.json, to those that take one."""
        self._each("take the configuration", "save_config", json.loads(text))

    def close(self) -> None:
        """Close all; those with rows that wait for a disk may be closed again."""
        self._each("close", "close")
        self._open = [named for named in self._open if isinstance(named.sink, OwnSink)]

    def _each(self, task: str, method: str, *args: object) -> None:
        if os.getpid() != self._process:
            if method == "write" and -1 not in self._told:
                self._told.add(-1)
                warn("sinks get nothing from a process that was forked after the logger was made")
            return
        interrupt = None
        for named in self._open:
            try:
                self._call(named, task, getattr(named.sink, method, None), *args)
            except BaseException as error:  # it waits for the others
                interrupt = error
        if interrupt is not None:
            raise interrupt

    def _call(self, named: Named, task: str, function: Callable[..., object] | None, *args: object) -> bool:
        """Whether a sink has done something without an error."""
        if function is None:
            return True
        try:
            function(*args)
        except Exception as error:
            key = id(named.sink)
            if key not in self._told:
                self._told.add(key)
                more = " without it" if task == "open" else ""
                warn(f"the sink {named.name} failed to {task} ({_reason(error)}); the run goes on{more}")
            return False
        return True


def _reason(error: Exception) -> str:
    try:
        text = f"{type(error).__name__}: {error}"
    except Exception:  # one whose str() raises
        return type(error).__name__
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
