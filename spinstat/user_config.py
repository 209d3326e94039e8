"""Settings that a user may want to change, read when they are needed: assign to them, or set the environment.

DEFAULT_DATA_DIR    folder of the runs of setup_logger_kwargs. Until it is assigned to: what SPINSTAT_DATA_DIR
                    names, else `data` in the current folder.
FORCE_DATESTAMP     have setup_logger_kwargs put date and time into every name.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    DEFAULT_DATA_DIR: str

FORCE_DATESTAMP = False


def __getattr__(name: str) -> str:
    if name == "DEFAULT_DATA_DIR":
        return os.path.abspath(os.environ.get("SPINSTAT_DATA_DIR") or "data")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), "DEFAULT_DATA_DIR"})
