"""What a logger checks before it makes anything: the same on all ranks, so that they fail alike."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .sinks import Named


def check_paths(output_dir: object, output_fname: object) -> None:
    """Raise TypeError or ValueError for what is no path."""
    for name, path in (("output_dir", output_dir), ("output_fname", output_fname)):
        if name == "output_dir" and path is None:
            continue
        as_text = os.fspath(path) if isinstance(path, os.PathLike) else path
        if not isinstance(as_text, str):
            kind = type(path).__name__
            raise TypeError(f"{name} is a path as a string or os.PathLike, not {kind}: {path!r}")
        if "\0" in as_text:
            raise ValueError(f"{name} has a null character, which no path can: {path!r}")


def check_options(output_dir: object, precision: int | None, new_keys: str, resume: bool) -> None:
    """Raise ValueError for an option with a value that it does not take."""
    if precision is not None and not (isinstance(precision, int) and precision > 0):
        raise ValueError(f"precision is a number of digits from 1 up, or None, not {precision!r}")
    if new_keys not in ("add", "error"):
        raise ValueError(f"new_keys is 'add' or 'error', not {new_keys!r}")
    if resume and not output_dir:
        raise ValueError("resume=True needs the output_dir of the run to continue")


def prepare_sinks(sinks: Iterable[object] | None, output_fname: str) -> Sequence[Named]:
    """The sinks that a logger was given, not open yet.

    Raises:
        ValueError, TypeError, ImportError: as `make_sinks`.
    """
    if sinks is None:
        return ()
    from .sinks import make_sinks

    return make_sinks(sinks, output_fname)
