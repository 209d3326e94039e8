"""Ranks: how many there are, which one this is, and the few collectives that the rest is built on.

The only part that names mpi4py and torch.distributed. An import of mpi4py.MPI starts MPI, which can end the
process or wait for ever where no launcher has prepared it; so nothing here imports it unless one has, or the
script did.
"""

from __future__ import annotations

import os
import sys

from ._base import Comm, SerialComm, Shared
from ._mpi import MpiComm, abort, mpi_installed, mpi_running, mpi_world, under_mpi_launcher
from ._torch import TorchComm, ranks_in_environment, torch_running

__all__ = [
    "Comm", "MpiComm", "SerialComm", "Shared", "TorchComm", "abort", "choose_comm", "mpi_installed",
    "under_launcher",
]


def under_launcher() -> bool:
    """Whether this process is one that mpiexec, torchrun or their like started."""
    return under_mpi_launcher() or ranks_in_environment()


def choose_comm(comm: object = None) -> Comm:
    """The ranks to work with. Makes no collective.

    Args:
        comm: None to find out; "serial" for this process alone; an mpi4py communicator; a
            torch.distributed group; a `Comm`.

    None gives, in this order: MPI where SPINSTAT_MPI=1; torch.distributed in a worker of torchrun; MPI under
    an MPI launcher; torch.distributed where RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are set; MPI where
    the script runs it already; torch.distributed where the script runs it already; else this process alone.
    SPINSTAT_MPI=0 leaves MPI out.

    Raises:
        TypeError: `comm` is none of these.
        ValueError: this process does not belong to `comm`; SPINSTAT_MPI is neither 0 nor 1.
        RuntimeError: under an MPI launcher, where MPI cannot be used.
    """
    if comm is None:
        return _find_comm()
    if isinstance(comm, Comm):
        return comm
    if isinstance(comm, str) and comm == "serial":
        return SerialComm()
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is not None and isinstance(comm, mpi.Intracomm):
        if comm == mpi.COMM_NULL:
            raise ValueError("comm= is MPI.COMM_NULL: this process does not belong to the communicator")
        return mpi_world() if comm == mpi.COMM_WORLD else MpiComm(comm)
    dist = sys.modules.get("torch.distributed")
    if dist is not None and isinstance(comm, dist.ProcessGroup):
        return TorchComm(comm)
    raise TypeError(
        f'comm= takes "serial", an mpi4py intracommunicator or a torch.distributed group, not {comm!r}'
    )


def _find_comm() -> Comm:
    setting = os.environ.get("SPINSTAT_MPI") or None
    if setting not in (None, "0", "1"):
        raise ValueError(f"SPINSTAT_MPI={setting}: 1 uses MPI, 0 leaves it out, unset asks the launcher")
    if setting == "1":
        return mpi_world()
    # torchrun's workers inherit the variables of an mpiexec that started torchrun on each machine.
    if ranks_in_environment() and "TORCHELASTIC_RUN_ID" in os.environ:
        return TorchComm()
    if setting is None and under_mpi_launcher():
        return mpi_world()
    if ranks_in_environment():
        return TorchComm()
    if setting is None and mpi_running():
        return mpi_world()
    return TorchComm() if torch_running() else SerialComm()
