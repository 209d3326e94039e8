"""The ranks of a torch.distributed group, which is imported where it is first needed."""

from __future__ import annotations

import atexit
import os
import sys
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, ref

from .._core import Message, merge_rows
from ._base import Comm, Shared

if TYPE_CHECKING:
    import torch
    from torch.distributed import ProcessGroup

# What torch.distributed reads to join a group. torchrun sets them all.
RANK_VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")

_shared_of_group: WeakKeyDictionary[ProcessGroup, Shared] = WeakKeyDictionary()


class TorchComm(Comm):
    """The ranks of a torch.distributed group.

    Where none is given and none is initialised yet, rank and size come from the environment that torchrun
    made, and the group, which scripts often make later, is looked up at the first collective. If there is
    still none, one of gloo is made, and ended at exit.

    Args:
        group: a group that this process belongs to; None for the default one.
    """

    def __init__(self, group: ProcessGroup | None = None) -> None:
        # Weak, since a group that outlives the interpreter's end brings the process down. torch keeps it
        # until it is destroyed.
        self._given = None if group is None else ref(group)
        if group is None and not torch_running():
            self.rank: int = int(os.environ["RANK"])
            self.size: int = int(os.environ["WORLD_SIZE"])
            return
        import torch.distributed as dist

        self.rank, self.size = dist.get_rank(group), dist.get_world_size(group)
        if self.rank < 0:
            raise ValueError("this process does not belong to the torch.distributed group given as comm=")

    def _make_shared(self) -> Shared:
        return _shared_of_group.setdefault(self._group(), Shared())

    def _group(self) -> ProcessGroup:
        import torch.distributed as dist

        if self._given is None and not dist.is_initialized():
            dist.init_process_group("gloo")
            atexit.register(_end_default_group)
        group = dist.group.WORLD if self._given is None else self._given()
        if group is None:
            raise RuntimeError("the torch.distributed group of this logger has been destroyed")
        found = dist.get_rank(group), dist.get_world_size(group)
        if found != (self.rank, self.size):
            raise RuntimeError(
                f"the environment said rank {self.rank} of {self.size}, the torch.distributed group made "
                f"since says {found[0]} of {found[1]}: make the logger after the group, or pass comm="
            )
        return group

    def _device(self) -> torch.device:
        """Where the tensors of a collective are: NCCL moves GPU memory only."""
        import torch
        import torch.distributed as dist

        group = self._group()
        if dist.get_backend(group) != "nccl":
            return torch.device("cpu")
        return group.bound_device_id or torch.device("cuda", torch.cuda.current_device())

    def _gather(self, data: torch.Tensor) -> torch.Tensor:
        """The equally long data of all ranks, end to end."""
        import torch
        import torch.distributed as dist

        # all_gather_into_tensor is the older name of all_gather_single.
        gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
        out = torch.empty(self.size * data.numel(), dtype=data.dtype, device=data.device)
        gather(out, data, group=self._group())
        return out

    def reduce(self, rows: Message | bytearray) -> None:
        """One all_gather of the rows, merged by every rank in rank order."""
        import torch

        mine = torch.frombuffer(rows, dtype=torch.uint8)
        gathered = memoryview(self._gather(mine.to(self._device())).cpu().numpy().data)
        parts = [gathered[start : start + mine.numel()] for start in range(0, len(gathered), mine.numel())]
        for lower, higher in pairwise(parts):
            merge_rows(lower, higher)
        memoryview(rows)[:] = parts[-1]

    def allgather(self, data: bytes) -> list[bytes]:
        """The data of every rank, in rank order: one all_gather of the sizes, one of the padded data."""
        import torch

        device = self._device()
        sizes = self._gather(torch.tensor([len(data)], device=device)).tolist()
        padded = torch.frombuffer(bytearray(data.ljust(max(sizes) + 1)), dtype=torch.uint8)
        gathered = self._gather(padded.to(device)).cpu().numpy().reshape(self.size, -1)
        return [gathered[rank, :size].tobytes() for rank, size in enumerate(sizes)]

    def allreduce(self, array: Any, op: object = "sum") -> None:
        """One all_reduce of an array or a tensor. Raises TypeError for an `op` that is no name of one."""
        import torch.distributed as dist

        named = {"sum": dist.ReduceOp.SUM, "max": dist.ReduceOp.MAX, "min": dist.ReduceOp.MIN}
        if not isinstance(op, str) or op not in named:
            raise TypeError(f'under torch.distributed an operation is "sum", "max" or "min", not {op!r}')
        here = _as_tensor(array)
        there = here.to(self._device())
        dist.all_reduce(there, named[op], group=self._group())
        here.copy_(there)

    def broadcast(self, array: Any, root: int = 0) -> None:
        """One broadcast of an array or a tensor."""
        import torch.distributed as dist

        here = _as_tensor(array)
        there, group = here.to(self._device()), self._group()
        dist.broadcast(there, dist.get_global_rank(group, root), group=group)
        here.copy_(there)

    def barrier(self) -> None:
        """Wait until all ranks have come here."""
        import torch.distributed as dist

        dist.barrier(group=self._group())


def _as_tensor(array: Any) -> torch.Tensor:
    """A tensor on the memory of an array, or the tensor given."""
    import torch

    return array.detach() if isinstance(array, torch.Tensor) else torch.from_numpy(array)


def ranks_in_environment() -> bool:
    """Whether the environment tells torch.distributed which rank this is, as that of torchrun does."""
    return all(name in os.environ for name in RANK_VARIABLES)


def torch_running() -> bool:
    """Whether this process has initialised torch.distributed. Does not import it."""
    dist = sys.modules.get("torch.distributed")
    return dist is not None and bool(dist.is_available() and dist.is_initialized())


def _end_default_group() -> None:
    if torch_running():
        import torch.distributed as dist

        dist.destroy_process_group()
