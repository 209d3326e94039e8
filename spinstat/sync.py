"""Keeping copies of a torch module alike on all ranks: parameters from one rank, gradients averaged over
all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .comm import choose_comm
from .watchdog import watchdog

if TYPE_CHECKING:
    import torch

# Every parameter starts at a multiple of so many bytes in the message, where any dtype may lie.
_ALIGNMENT = 16


def setup_pytorch_for_mpi() -> None:
    """Give each rank its share of torch's threads, so that the ranks of a machine do not crowd one another
    out.

    Examples:
        >>> from spinstat.utils.mpi_pytorch import setup_pytorch_for_mpi
        >>> setup_pytorch_for_mpi()
    """
    import torch

    threads = torch.get_num_threads()
    if threads > 1:
        torch.set_num_threads(max(threads // choose_comm().size, 1))


def mpi_avg_grads(module: torch.nn.Module) -> None:
    """Replace the gradients of a module by their means over all ranks, in one Allreduce for all of them.

    A parameter without a gradient on some ranks counts as one of zeros there; without one on any rank it
    stays without.

    Args:
        module: a module with the same parameters on every rank. The mean is taken in float64 where any of
            them is, else in float32.

    Examples:
        >>> import torch
        >>> from spinstat.utils.mpi_pytorch import mpi_avg_grads
        >>> layer = torch.nn.Linear(2, 1)
        >>> layer(torch.ones(2)).backward()
        >>> mpi_avg_grads(layer)  # and then optimizer.step()
        >>> layer.weight.grad
        tensor([[1., 1.]])
    """
    import torch

    comm = choose_comm()
    if comm.size == 1:
        return
    parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
    wide = any(parameter.dtype == torch.float64 for parameter in parameters)
    sizes = [parameter.numel() for parameter in parameters]
    flat = torch.zeros(sum(sizes) + len(sizes), dtype=torch.float64 if wide else torch.float32)
    *means, ranks_with_gradient = torch.split(flat, [*sizes, len(sizes)])
    for i, (parameter, mean) in enumerate(zip(parameters, means, strict=True)):
        if parameter.grad is not None:
            mean.copy_(parameter.grad.detach().reshape(-1))
            ranks_with_gradient[i] = 1
    with watchdog.during(lambda: f"rank {comm.rank} of {comm.size} is in mpi_avg_grads()"):
        comm.allreduce(flat.numpy())
    for parameter, mean, ranks in zip(parameters, means, ranks_with_gradient.tolist(), strict=True):
        if ranks:
            if parameter.grad is None:
                parameter.grad = torch.empty_like(parameter)
            parameter.grad.copy_(mean.div_(comm.size).reshape(parameter.shape))


def sync_params(module: torch.nn.Module) -> None:
    """Replace the parameters of a module by those of rank 0, to the bit, in one broadcast for all of them.

    Args:
        module: a module with parameters of the same shapes and dtypes on every rank.

    Examples:
        >>> import torch
        >>> from spinstat.utils.mpi_pytorch import sync_params
        >>> sync_params(torch.nn.Linear(2, 1))
    """
    import torch

    comm = choose_comm()
    if comm.size == 1:
        return
    parameters = [parameter.detach() for parameter in module.parameters()]
    sizes = [parameter.numel() * parameter.element_size() for parameter in parameters]
    room = [size + -size % _ALIGNMENT for size in sizes]
    flat = torch.zeros(sum(room), dtype=torch.uint8)
    here = [
        place[:size].view(parameter.dtype).view(parameter.shape)
        for place, size, parameter in zip(torch.split(flat, room), sizes, parameters, strict=True)
    ]
    if comm.rank == 0:
        for place, parameter in zip(here, parameters, strict=True):
            place.copy_(parameter)
    with watchdog.during(lambda: f"rank {comm.rank} of {comm.size} is in sync_params()"):
        comm.broadcast(flat.numpy())
    for place, parameter in zip(here, parameters, strict=True):
        parameter.copy_(place)
