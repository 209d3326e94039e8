"""Runs read back from their folders: rows as NumPy columns, the configuration, and what could not be read."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from .files import WORK_FOLDER
from .parsing import Column, parse

FILES = ("progress.txt", "progress.csv")  # the first that a folder has is read
PERFORMANCE = "Performance"
PERFORMANCE_COLUMNS = ("AverageTestEpRet", "AverageEpRet")
UNNAMED = "exp"  # what a run without an exp_name is called, as by Spinning Up's plotter


@dataclass(frozen=True, eq=False)
class Run:
    """The rows of a run, as they were when it was read.

    Attributes:
        folder: the run's folder.
        file: the path of the file with the rows.
        names: of all columns in the file.
        rows: how many there are.
        columns: arrays by name, all of one length: int64, float64 (blank and text cells are nan), bool, or
            object for a column of texts. All columns, or those that were asked for.
        config: what config.json holds; {} where there is none.
        skipped: a line for each thing that was not read, or not as it stands there; empty if all was.

    Examples:
        >>> from spinstat.plot import read_run
        >>> run = read_run("runs/ppo")
        >>> run.names, len(run), run.exp_name
        (('Epoch', 'AverageEpRet'), 3, 'ppo')
        >>> run["Performance"]
        array([10., 20., 30.])
        >>> list(run.to_pandas()["Epoch"]), run.column_of("Performance")
        ([0, 1, 2], 'AverageEpRet')
    """

    folder: str
    file: str
    names: tuple[str, ...]
    rows: int
    columns: dict[str, Column] = field(repr=False)
    config: dict[str, Any] = field(repr=False)
    skipped: tuple[str, ...] = ()

    def __len__(self) -> int:
        """The number of rows."""
        return self.rows

    def __contains__(self, name: object) -> bool:
        return name in self.columns

    def __getitem__(self, name: str) -> Column:
        """A column; "Performance" is AverageTestEpRet, else AverageEpRet, unless there is one of that name.

        Raises:
            KeyError: there is none; the columns that there are are listed.
        """
        column = self.column_of(name)
        if column is None:
            raise KeyError(f"{self.file} has no column {name!r}; it has: {', '.join(self.names) or 'none'}")
        return self.columns[column]

    def column_of(self, name: str) -> str | None:
        """The name of the column that `run[name]` is; None where there is none."""
        if name in self.columns:
            return name
        if name == PERFORMANCE:
            return next((column for column in PERFORMANCE_COLUMNS if column in self.columns), None)
        return None

    @property
    def exp_name(self) -> str | None:
        """The name of the experiment in the configuration, if it has one."""
        name = self.config.get("exp_name")
        return None if name is None else str(name)

    def to_pandas(self) -> Any:
        """The columns as a pandas DataFrame.

        Raises:
            ImportError: pandas is not installed.
        """
        return _import("pandas").DataFrame(self.columns)

    def to_polars(self) -> Any:
        """The columns as a polars DataFrame.

        Raises:
            ImportError: polars is not installed.
        """
        polars = _import("polars")
        texts = {name: polars.String for name, column in self.columns.items() if column.dtype == object}
        return polars.DataFrame(self.columns, schema_overrides=texts)


def _import(name: str) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError as error:
        message = f"a DataFrame of {name} needs it: pip install {name} ({error})"
        raise ImportError(message, name=name) from error


def read_run(path: str | os.PathLike[str], columns: Collection[str] | None = None) -> Run:
    """Read the rows and the configuration of one run, also while it is written.

    Args:
        path: the run's folder with progress.txt (tab-separated: this package's, Spinning Up's) or else
            progress.csv (Stable-Baselines3's, OmniSafe's); or a file of another name, .csv or tab-separated.
        columns: names of those to read, where they are there; None: all, which takes longer.

    Raises:
        FileNotFoundError: there is no such folder, or no such file in it.
        OSError: it cannot be read.

    Examples:
        >>> from spinstat.plot import read_run
        >>> run = read_run("runs/ppo", columns=["AverageEpRet"])
        >>> run["AverageEpRet"], run.config["seed"], run.skipped
        (array([10., 20., 30.]), 0, ())
    """
    path = os.fspath(path)
    if os.path.isdir(path):
        file = progress_file(path)
        if file is None:
            raise FileNotFoundError(f"{path} holds neither {' nor '.join(FILES)}")
    else:
        file = path
    if not stat.S_ISREG(os.stat(file).st_mode):
        raise OSError(f"{file} is no ordinary file")
    with open(file, "rb") as stream:
        data = stream.read()
    folder = os.path.dirname(file) or "."
    config, skipped = _read_config(folder)
    table = parse(data, "," if file.endswith(".csv") else "\t", columns)
    return Run(folder, file, table.names, table.rows, table.columns, config, (*table.skipped, *skipped))


Read = Callable[[str, Collection[str] | None], Run]


def progress_file(folder: str) -> str | None:
    """The file with the rows of the run in a folder; None where it holds no run."""
    paths = (os.path.join(folder, name) for name in FILES)
    return next((path for path in paths if os.path.isfile(path)), None)


def _read_config(folder: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    path = os.path.join(folder, "config.json")
    if not os.path.isfile(path):
        return {}, ()
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            config = json.load(file)
    except (OSError, ValueError, RecursionError) as error:
        return {}, (_without_config(str(error)),)
    if not isinstance(config, dict):
        return {}, (_without_config("holds no names and values"),)
    return config, ()


def _without_config(reason: str) -> str:
    return f"config.json: {reason}: skipped; the run is called {UNNAMED!r} where it is given no other name"


def read_runs(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], columns: Collection[str] | None = None
) -> list[Run]:
    """Read all runs in folders, at any depth, each folder's in the order of their names.

    A run whose file cannot be read has no rows, and `skipped` says why. Nothing is kept between calls.

    Args:
        paths: one or several. A folder that is there stands for itself; another path for all folders beside
            it whose names have its last part in them.
        columns: names of those to read, where they are there; None: all, which takes longer.

    Raises:
        FileNotFoundError: nothing has such a name, or there is no run in all that was searched.

    Examples:
        >>> from spinstat.plot import read_runs
        >>> [(run.exp_name, run["AverageEpRet"][-1].item()) for run in read_runs("runs")]
        [('ppo', 30.0), ('sac', 60.0)]
    """
    folders = []
    for path in [paths] if isinstance(paths, (str, os.PathLike)) else list(paths):
        path = os.fspath(path)
        folders += [path] if os.path.exists(path) else match_folders(path)
    runs = [run for folder in dict.fromkeys(folders) for run in runs_in(folder, columns)]
    if not runs:
        raise no_runs(folders)
    return runs


def no_runs(folders: Sequence[str]) -> FileNotFoundError:
    """The error for folders without a run."""
    where = ", ".join(folders) or "no folder"
    return FileNotFoundError(f"no run ({' or '.join(FILES)}) was found; searched: {where}")


def match_folders(path: str) -> list[str]:
    """The folders that a path of Spinning Up's plotter stands for, sorted.

    A path that ends in a separator is that folder; another one stands for all folders beside it whose names
    have its last part in them, itself included. A file stands for itself.

    Raises:
        FileNotFoundError: there is none.
    """
    if os.path.isfile(path) or (os.path.isdir(path) and path.endswith(os.sep)):
        return [path]
    base, part = os.path.split(path)
    try:
        names = sorted(os.listdir(base or "."))
    except OSError as error:
        raise FileNotFoundError(f"{path} matches nothing: {base or '.'}: {error.strerror}") from error
    found = [os.path.join(base, name) for name in names if part in name and name != WORK_FOLDER]
    found = [folder for folder in found if os.path.isdir(folder)]
    if not found:
        raise FileNotFoundError(f"{path} matches nothing: no folder in {base or '.'} is named so, or in part")
    return found


def runs_in(path: str, columns: Collection[str] | None = None, read: Read = read_run) -> Iterator[Run]:
    """The runs in a folder, at any depth; of a file, its own. `read` may be one that remembers."""
    files = [path] if os.path.isfile(path) else list(_files_in(path))
    for file in files:
        try:
            yield read(file, columns)
        except OSError as error:
            config, skipped = _read_config(os.path.dirname(file) or ".")
            reason = f"cannot be read ({error.strerror or error}): skipped"
            yield Run(os.path.dirname(file) or ".", file, (), 0, {}, config, (reason, *skipped))


def _files_in(folder: str) -> Iterator[str]:
    for base, folders, _ in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != WORK_FOLDER)
        file = progress_file(base)
        if file is not None:
            yield file
