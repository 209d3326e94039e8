"""Sinks: where rows go besides the table and progress.txt. One file for each; docs/sinks.md tells of them."""

from __future__ import annotations

from .base import Run, Sink
from .csv import CsvSink
from .jsonl import JsonlSink
from .mlflow import MlflowSink
from .opening import Named, Sinks, make_sinks
from .tensorboard import TensorBoardSink
from .wandb import WandbSink

__all__ = [
    "CsvSink",
    "JsonlSink",
    "MlflowSink",
    "Named",
    "Run",
    "Sink",
    "Sinks",
    "TensorBoardSink",
    "WandbSink",
    "make_sinks",
]
