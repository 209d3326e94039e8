"""Run folders as all their readers see them: what comes out is what the readers' documentation says."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable
from typing import Any
from unittest import mock

from spinstat import EpochLogger, plot, relaunch
from spinstat.checkpoint import find_checkpoint
from spinstat.inspecting import show, verify
from spinstat.policy import load_policy_and_env
from spinstat.reading import read_run, read_runs
from spinstat.relaunch_objects import NotFound
from spinstat.untrusted import UntrustedError

from .draw import Draw
from .run_folder import Files, change, template

BASE = tempfile.mkdtemp(prefix="spinstat-fuzz-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
FOLDER = os.path.join(BASE, "run")


def one(data: bytes) -> None:
    """Read a folder in which something is changed, in every way."""
    draw = Draw(data)
    readers = draw.integer(0, 255)
    files = change(template(os.path.join(BASE, "template")), draw)
    words = [list(sys.argv), list(sys.orig_argv), list(sys.path), os.getcwd()]
    told = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        try:
            _write(files)
            for number, read in enumerate(READERS):
                if readers & 1 << number or not readers:
                    read()
        finally:
            sys.argv[:], sys.orig_argv[:], sys.path[:] = words[:3]
            os.chdir(words[3])


def _write(files: Files) -> None:
    shutil.rmtree(BASE, ignore_errors=True)
    os.makedirs(FOLDER)
    for name, content in files.items():
        path = os.path.join(FOLDER, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        content(path)


def expect(errors: tuple[type[BaseException], ...], call: Callable[[], Any]) -> Any:
    """What the call gives; None where it raises one of these."""
    try:
        return call()
    except errors as error:
        assert str(error), f"{type(error).__name__} says nothing"
        return None


def _read_rows() -> None:
    run = expect((OSError,), lambda: read_run(FOLDER))
    if run is not None:
        assert all(len(column) == run.rows for column in run.columns.values())
        assert list(run.columns) == list(run.names)
    for run in expect((FileNotFoundError,), lambda: read_runs(BASE)) or []:
        repr(run), run.exp_name, run.column_of("Performance")


def _plot() -> None:
    for values, count in ((["Loss"], False), (["Performance", "AverageX"], True)):
        wanted = plot.request([FOLDER], values=values, count=count, smooth=2)
        members = expect((FileNotFoundError,), lambda wanted=wanted: plot.members_of(wanted))
        if members:
            expect((ValueError,), lambda wanted=wanted, members=members: plot.panels_of(wanted, members))


def _show() -> None:
    assert show(argparse.Namespace(folder=FOLDER)) in (0, 1)


def _verify() -> None:
    assert verify(argparse.Namespace(folder=FOLDER)) in (0, 1)


def _find() -> None:
    for itr in ("last", None, 3):
        expect((FileNotFoundError,), lambda itr=itr: find_checkpoint(FOLDER, itr))


def _relaunch() -> None:
    """All up to where code of the run would be imported, called or started."""
    settings = ["lr=0.25", "sizes=[3]"]
    new = os.path.join(BASE, "new")
    args = argparse.Namespace(folder=FOLDER, settings=settings, output_dir=new, overwrite=False)

    def find(path: str) -> Any:
        if path == "fuzz.run_folder:train":
            return lambda lr, sizes, output_dir, act: None
        if path == "torch.nn:ReLU":
            return float
        raise NotFound(f"{path} is not imported here")

    with contextlib.ExitStack() as stack:
        for name in ("enter", "load_main", "_run_command", "mpi_fork", "git_state"):
            stack.enter_context(mock.patch.object(relaunch, name, lambda *_: None))
        stack.enter_context(mock.patch.object(relaunch, "find", find))
        stack.enter_context(mock.patch("spinstat.relaunch_values.find", find))
        assert relaunch.relaunch(args) in (0, 1, None)


def _resume() -> None:
    path = os.path.join(FOLDER, "progress.txt")
    if os.path.exists(path) and not os.path.isfile(path):
        return  # who writes into a pipe waits for who reads it
    with contextlib.suppress(OSError):
        logger = EpochLogger(FOLDER, quiet=True, resume=True)
        logger.store(Loss=1.0)
        logger.save_state({"epoch": 9})
        logger.log_tabular("Loss")
        logger.dump_tabular()
        logger.close()
        assert read_run(FOLDER).rows >= 1


def _policy() -> None:
    for itr in ("last", 3):
        expect(
            (FileNotFoundError, UntrustedError, ImportError, PermissionError, NotADirectoryError),
            lambda itr=itr: load_policy_and_env(FOLDER, itr, trust=False, allow="cores"),
        )


# Those that write into the folder come last.
READERS = (_read_rows, _show, _verify, _find, _policy, _plot, _relaunch, _resume)
