"""The names of spinup.utils.mpi_pytorch."""

from __future__ import annotations

from ..ranks import broadcast, mpi_avg, num_procs, proc_id
from ..sync import mpi_avg_grads, setup_pytorch_for_mpi, sync_params

__all__ = [
    "broadcast",
    "mpi_avg",
    "mpi_avg_grads",
    "num_procs",
    "proc_id",
    "setup_pytorch_for_mpi",
    "sync_params",
]
