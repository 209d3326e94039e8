"""The names of spinup.utils.logx."""

from __future__ import annotations

from typing import Any

from ..epoch import EpochLogger
from ..logger import Logger
from ..terminal import color2num, colorize
from .mpi_tools import mpi_statistics_scalar, proc_id
from .serialization_utils import convert_json

__all__ = [
    "EpochLogger",
    "Logger",
    "color2num",
    "colorize",
    "convert_json",
    "mpi_statistics_scalar",
    "proc_id",
    "restore_tf_graph",
]


def restore_tf_graph(sess: Any, fpath: str) -> dict[str, Any]:
    """Load a graph that a logger saved: see `spinstat.checkpoint.restore_tf_graph`."""
    from .. import checkpoint

    return checkpoint.restore_tf_graph(sess, fpath)
