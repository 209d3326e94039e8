"""Writing rows and reading them back, for the tests of loggers."""

from __future__ import annotations

import os
from pathlib import Path

from spinstat import Logger


def dump(logger: Logger, **row: object) -> None:
    """One row of explicit values."""
    for key, value in row.items():
        logger.log_tabular(key, value)
    logger.dump_tabular()


def content(output_dir: str | os.PathLike[str], name: str = "progress.txt") -> str:
    """What a file of the run folder holds."""
    return Path(output_dir, name).read_text(encoding="utf-8")
