"""Sinks: where rows go besides the table and progress.txt. One file for each; docs/sinks.md tells of them."""

from __future__ import annotations

from .base import Run, Sink
from .opening import Named, Sinks, make_sinks
from .tensorboard import TensorBoardSink

__all__ = ["Named", "Run", "Sink", "Sinks", "TensorBoardSink", "make_sinks"]
