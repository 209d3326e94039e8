"""Statistics for training runs: a C-accelerated drop-in for Spinning Up's Logger and EpochLogger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._core import Moments, RowInfo, moments, target

if TYPE_CHECKING:
    from . import checkpoint as checkpoint
    from . import compare as compare
    from . import plot as plot
    from . import policy as policy
    from .epoch import EpochLogger
    from .exchange import KeyMismatchError
    from .launch import mpi_fork
    from .logger import Logger
    from .terminal import colorize
    from .utils.mpi_tools import mpi_statistics_scalar, num_procs, proc_id

__version__ = "0.1.0"

__all__ = [
    "EpochLogger",
    "KeyMismatchError",
    "Logger",
    "Moments",
    "RowInfo",
    "__version__",
    "colorize",
    "moments",
    "mpi_fork",
    "mpi_statistics_scalar",
    "num_procs",
    "proc_id",
    "target",
]

# Loaded when first asked for, so that `import spinstat` costs little more than NumPy.
_LAZY = {
    "EpochLogger": "epoch",
    "KeyMismatchError": "exchange",
    "Logger": "logger",
    "colorize": "terminal",
    "mpi_fork": "launch",
    "mpi_statistics_scalar": "utils.mpi_tools",
    "num_procs": "utils.mpi_tools",
    "proc_id": "utils.mpi_tools",
}
_LAZY_MODULES = frozenset({"checkpoint", "compare", "plot", "policy"})


def __getattr__(name: str) -> Any:
    if name not in _LAZY and name not in _LAZY_MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    if name in _LAZY_MODULES:
        return import_module(f"{__name__}.{name}")
    value = getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_LAZY_MODULES})
