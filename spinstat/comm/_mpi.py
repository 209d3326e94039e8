"""The ranks of an MPI communicator, by mpi4py, which is imported where it is first needed: that starts
MPI."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from .._core import ROW_SIZE, Message, merge_rows
from ._base import Comm, SerialComm, Shared

if TYPE_CHECKING:
    from mpi4py import MPI

# Set by the launchers of MPI libraries in the processes that they start. SLURM's own variables are no proof:
# a shell of srun has them where no MPI can start.
LAUNCHER_VARIABLES = (
    "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE", "PMIX_RANK", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_SIZE"
)
SIZE_VARIABLES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE")


class _MpiShared(Shared):
    """As Shared, with a duplicate of the communicator, where no collective of the script's own is met."""

    __slots__ = ("private",)

    def __init__(self, private: MPI.Intracomm) -> None:
        super().__init__()
        self.private = private


class _Handles:
    """The one operation, datatype and attribute key of the process: MPI libraries run out of them."""

    def __init__(self) -> None:
        from mpi4py import MPI

        self.in_place = MPI.IN_PLACE
        # One element a row, so that an implementation can split a message between rows only.
        self.row = MPI.BYTE.Create_contiguous(ROW_SIZE).Commit()
        self.merge = MPI.Op.Create(merge_rows, commute=False)
        self.key = MPI.Comm.Create_keyval(delete_fn=_free_with_parent)
        self.named = {"sum": MPI.SUM, "max": MPI.MAX, "min": MPI.MIN}


def _free_with_parent(parent: MPI.Comm, key: int, shared: _MpiShared) -> None:
    """Called by MPI when a communicator is freed; those that cannot be are left to the end of MPI."""
    from mpi4py import MPI

    if parent not in (MPI.COMM_WORLD, MPI.COMM_SELF):
        shared.private.Free()


_handles_of_process: _Handles | None = None


def _handles() -> _Handles:
    global _handles_of_process
    if _handles_of_process is None:
        _handles_of_process = _Handles()
    return _handles_of_process


class MpiComm(Comm):
    """The ranks of an mpi4py communicator.

    Rows travel on a private duplicate, made once for each communicator at its first collective and freed with
    it.
    """

    def __init__(self, comm: MPI.Intracomm) -> None:
        self.communicator = comm
        self.rank: int = comm.Get_rank()
        self.size: int = comm.Get_size()

    def _make_shared(self) -> Shared:
        key = _handles().key
        shared = self.communicator.Get_attr(key)
        if not isinstance(shared, _MpiShared):
            shared = _MpiShared(self.communicator.Dup())
            self.communicator.Set_attr(key, shared)
        return shared

    def _private(self) -> MPI.Intracomm:
        shared = self.shared()
        assert isinstance(shared, _MpiShared)
        return shared.private

    def reduce(self, rows: Message | bytearray) -> None:
        """One Allreduce of rows, merged in C."""
        handles = _handles()
        self._private().Allreduce(handles.in_place, [rows, handles.row], handles.merge)

    def allgather(self, data: bytes) -> list[bytes]:
        """The data of every rank, in rank order."""
        return self._private().allgather(data)

    def allreduce(self, array: Any, op: object = "sum") -> None:
        """One Allreduce on the script's communicator; `op` is a name or an mpi4py operation."""
        handles = _handles()
        operation: Any = handles.named[op] if isinstance(op, str) else op
        self.communicator.Allreduce(handles.in_place, array, operation)

    def broadcast(self, array: Any, root: int = 0) -> None:
        """One Bcast on the script's communicator."""
        self.communicator.Bcast(array, root=root)

    def barrier(self) -> None:
        """One Barrier on the script's communicator."""
        self.communicator.Barrier()


def under_mpi_launcher() -> bool:
    """Whether an MPI launcher started this process, by its environment variables."""
    return any(name in os.environ for name in LAUNCHER_VARIABLES)


def mpi_running() -> bool:
    """Whether this process has started MPI, and not ended it. Does not start it."""
    mpi = sys.modules.get("mpi4py.MPI")
    return mpi is not None and bool(mpi.Is_initialized() and not mpi.Is_finalized())


def mpi_installed() -> bool:
    """Whether there is an mpi4py to import. Does not import it."""
    from importlib.util import find_spec

    return find_spec("mpi4py") is not None


def abort(status: int) -> None:
    """End the processes of all ranks where MPI runs, else return."""
    if mpi_running():
        sys.modules["mpi4py.MPI"].COMM_WORLD.Abort(status)


_world: MpiComm | None = None


def mpi_world() -> Comm:
    """All ranks of the job. Starts MPI where it does not run.

    Raises:
        RuntimeError: this may be one of several processes, but cannot join the others.
    """
    global _world
    if _world is None:
        size = next((int(os.environ[name]) for name in SIZE_VARIABLES if os.environ.get(name)), None)
        if under_mpi_launcher():
            reason = f"an MPI launcher started {'several' if size is None else size} processes"
        else:
            reason = "SPINSTAT_MPI=1 asks for MPI"
        try:
            _world = _join(reason, size)
        except (ImportError, OSError, RuntimeError) as error:
            if size == 1 and os.environ.get("SPINSTAT_MPI") != "1":
                return SerialComm()
            raise RuntimeError(
                f"{reason}, but {error}. Without MPI each process would believe to be rank 0, and all would "
                'write the same files. pip install "spinstat[mpi]" has mpi4py; SPINSTAT_MPI=0 leaves MPI out'
            ) from error
    return _world


def _join(reason: str, size: int | None) -> MpiComm:
    try:
        from mpi4py import MPI
    except (ImportError, OSError, RuntimeError) as error:
        raise ImportError(f"mpi4py cannot be imported ({error})") from error
    if MPI.Is_finalized():
        raise RuntimeError("MPI has been ended already")
    if not MPI.Is_initialized():
        raise RuntimeError("MPI was not started: mpi4py.rc.initialize is off, and nobody called MPI.Init()")
    world = MpiComm(MPI.COMM_WORLD)
    if size is not None and size > 1 and world.size == 1:
        library = MPI.Get_library_version().splitlines()[0].strip()
        raise RuntimeError(f"mpi4py uses another MPI library ({library}) and sees one process only")
    return world
