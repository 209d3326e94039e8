"""The names of spinup.utils.mpi_tools."""

from __future__ import annotations

from ..launch import mpi_fork
from ..ranks import (
    allreduce,
    broadcast,
    mpi_avg,
    mpi_op,
    mpi_statistics_scalar,
    mpi_sum,
    msg,
    num_procs,
    proc_id,
)

__all__ = [
    "allreduce",
    "broadcast",
    "mpi_avg",
    "mpi_fork",
    "mpi_op",
    "mpi_statistics_scalar",
    "mpi_sum",
    "msg",
    "num_procs",
    "proc_id",
]
