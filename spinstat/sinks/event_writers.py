"""Writers of TensorBoard's event files: those of torch, and of tensorboardX where torch is not."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib import import_module
from typing import Any

from .base import has_package

PROBE_SIZE = 65536  # bytes: more than a writer's buffers keep back

_numbers = itertools.count()


def writer_package() -> str | None:
    """Which package would write; None where none is installed."""
    if has_package("torch") and has_package("tensorboard"):
        return "torch"
    return "tensorboardX" if has_package("tensorboardX") else None


def writer_class() -> Any:
    """Its class SummaryWriter; to load it takes seconds."""
    if writer_package() == "torch":
        from torch.utils.tensorboard import SummaryWriter

        return SummaryWriter
    import tensorboardX

    return tensorboardX.SummaryWriter


def make_writer(folder: str, purge_step: int | None) -> Any:
    """A SummaryWriter for the folder.

    Args:
        purge_step: TensorBoard is to forget what earlier files in the folder have of this and later steps.

    Raises:
        Exception: the file cannot be made.
    """
    if writer_package() == "torch":
        return writer_class()(folder, purge_step=purge_step)
    # A file that was begun in the same second would have the same name, and be overwritten.
    writer = writer_class()(folder, filename_suffix=f".{os.getpid()}.{next(_numbers)}")
    _write_at_once(writer)
    if purge_step is not None:
        from tensorboardX.proto.event_pb2 import Event, SessionLog

        start = SessionLog(status=SessionLog.START)
        writer.file_writer.add_event(Event(step=purge_step, session_log=start))
    return writer


def _write_at_once(writer: Any) -> None:
    """Have a writer of tensorboardX write events in this thread.

    Its own thread ends without a word when the disk is full, after which the queue to it fills and stops the
    run; and its flush() does not wait for that thread.
    """
    events = writer.file_writer.event_writer
    events.add_event = events._ev_writer.write_event


def abandon_writer(writer: Any) -> None:
    """End the thread of a writer that has failed, and close its file, where its own close() may stop halfway.

    What it raises is not told: the error that it failed with is.
    """
    events = getattr(getattr(writer, "file_writer", None), "event_writer", None)
    parts = (writer, "close"), (events, "close")
    # tensorboardX flushes before it ends its thread.
    inner = (getattr(events, "_worker", None), "stop"), (getattr(events, "_ev_writer", None), "close")
    for part, method in (*parts, *inner):
        if hasattr(part, method):
            with suppress(Exception):
                getattr(part, method)()


def check_disk(folder: str) -> None:
    """Raise OSError where the folder takes no file: a writer that cannot begin leaves its thread behind."""
    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(bytes(PROBE_SIZE))
        file.flush()
        os.fsync(file.fileno())


def hparams_function(writer: Any) -> Callable[[dict[str, Any], dict[str, Any]], Iterable[Any]] | None:
    """What makes the summaries of hyperparameters for a SummaryWriter; None for other objects."""
    if not hasattr(writer, "file_writer"):
        return None
    modules = {"torch": "torch.utils.tensorboard.summary", "tensorboardX": "tensorboardX.summary"}
    module = modules.get(type(writer).__module__.partition(".")[0])
    return None if module is None else getattr(import_module(module), "hparams", None)
