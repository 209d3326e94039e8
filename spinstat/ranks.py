"""What scripts ask about ranks, and the sums, averages and statistics over ranks of numbers in hand."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from ._core import Moments, moments
from .comm import Comm, MpiComm, choose_comm
from .exchange import Channel
from .watchdog import watchdog

# The number of a channel that belongs to no logger.
_NO_LOGGER = -1


def proc_id() -> int:
    """The rank of this process: 0 where it is alone.

    Examples:
        >>> from spinstat import proc_id
        >>> proc_id()
        0
    """
    return choose_comm().rank


def num_procs() -> int:
    """How many ranks there are: 1 where this process is alone.

    Examples:
        >>> from spinstat import num_procs
        >>> num_procs()
        1
    """
    return choose_comm().size


def msg(m: object, string: str = "") -> None:
    """Print a message that names this rank, and a word on what it is about.

    Args:
        m: what to say; str() of it is used.
        string: what it is about.

    Examples:
        >>> from spinstat.utils.mpi_tools import msg
        >>> msg(3.5, "the loss is")  # doctest: +NORMALIZE_WHITESPACE
        Message from 0: the loss is 3.5
    """
    print(f"Message from {proc_id()}: {string} \t {m}")


def allreduce(*args: Any, **kwargs: Any) -> None:
    """The communicator's Allreduce: (sendbuf, recvbuf, op=MPI.SUM) as mpi4py's.

    Without MPI the buffers are arrays, and op is "sum" (the default), "max" or "min".

    Args:
        args, kwargs: sendbuf, an array that is left as it is; recvbuf, an array of its shape for the result;
            op.

    Examples:
        >>> import numpy as np
        >>> from spinstat.utils.mpi_tools import allreduce
        >>> mine, total = np.array([1.0, 2.0]), np.empty(2)
        >>> allreduce(mine, total)
        >>> total
        array([1., 2.])
    """
    comm = choose_comm()
    with _watched(comm, "allreduce()"):
        if isinstance(comm, MpiComm):
            comm.communicator.Allreduce(*args, **kwargs)
        else:
            _allreduce_arrays(comm, *args, **kwargs)


def _allreduce_arrays(comm: Comm, sendbuf: Any, recvbuf: Any, op: object = "sum") -> None:
    np.copyto(recvbuf, sendbuf)
    comm.allreduce(recvbuf, op)


def broadcast(x: Any, root: int = 0) -> None:
    """Replace the values of a contiguous array by those it has on the rank `root`.

    Args:
        x: a contiguous NumPy array, of one shape and dtype on all ranks.
        root: the rank whose values all get.

    Examples:
        >>> import numpy as np
        >>> from spinstat.utils.mpi_tools import broadcast
        >>> weights = np.array([0.5, 0.25])
        >>> broadcast(weights)
        >>> weights
        array([0.5 , 0.25])
    """
    comm = choose_comm()
    with _watched(comm, "broadcast()"):
        comm.broadcast(x, root=root)


def mpi_op(x: Any, op: object) -> Any:
    """Reduce numbers over the ranks, element by element, in float64.

    Args:
        x: a number, or an array or list of numbers, of one shape on all ranks. It is left as it is.
        op: "sum", "max" or "min", or an mpi4py operation.

    Returns:
        A float64 scalar for a number, else an array of the shape of `x`.

    Examples:
        >>> from spinstat.utils.mpi_tools import mpi_op
        >>> float(mpi_op(3, "max"))
        3.0
        >>> mpi_op([[1, 2], [3, 4]], "sum").shape
        (2, 2)
    """
    comm = choose_comm()
    scalar = np.isscalar(x)
    values = np.array([x] if scalar else x, dtype=np.float64, order="C")
    if comm.size > 1:
        with _watched(comm, f"an operation on {values.size} numbers"):
            comm.allreduce(values, op)
    return values[0] if scalar else values


def mpi_sum(x: Any) -> Any:
    """The sum over the ranks, as mpi_op gives it.

    Args:
        x: a number, or an array or list of numbers, of one shape on all ranks.

    Examples:
        >>> from spinstat.utils.mpi_tools import mpi_sum
        >>> mpi_sum([1, 2])
        array([1., 2.])
    """
    return mpi_op(x, "sum")


def mpi_avg(x: Any) -> Any:
    """The mean over the ranks, each with the same weight, as mpi_op gives it.

    Args:
        x: a number, or an array or list of numbers, of one shape on all ranks.

    Examples:
        >>> from spinstat.utils.mpi_tools import mpi_avg
        >>> float(mpi_avg(2))
        2.0
    """
    return mpi_sum(x) / num_procs()


def mpi_statistics_scalar(x: Any, with_min_and_max: bool = False) -> tuple[float, ...]:
    """Mean and standard deviation of all values of all ranks, in one collective.

    Args:
        x: an array, tensor, list or tuple of any shape, which counts by its elements, or a number. Ranks may
            have unequal numbers of values, or none.
        with_min_and_max: also give the least and the greatest value.

    Returns:
        (mean, std) or (mean, std, min, max), Python floats. The divisor of the variance is the number of
        values, so values that are all equal have a std of exactly 0. Without any value: nan, nan, inf, -inf.

    Raises:
        TypeError: `x` holds something that is not a real number, on all ranks.
        KeyMismatchError: other ranks are in another call, or only some of them have numbers.

    Examples:
        >>> from spinstat import mpi_statistics_scalar
        >>> mpi_statistics_scalar([1.0, 2.0, 3.0, 6.0], with_min_and_max=True)
        (3.0, 1.8708286933869707, 1.0, 6.0)
    """
    channel = Channel(choose_comm(), _NO_LOGGER)
    try:
        own = moments(x)
    except Exception:  # the other ranks are in the same call, and wait
        channel.reduce("refused mpi_statistics_scalar", 0, [("", Moments())])
        raise
    merged = channel.reduce("mpi_statistics_scalar", 0, [("", own)])[0].moments
    if not with_min_and_max:
        return merged.mean, merged.std()
    if merged.count == 0:
        return merged.mean, merged.std(), float("inf"), float("-inf")
    return merged.mean, merged.std(), merged.min, merged.max


def _watched(comm: Comm, what: str) -> AbstractContextManager[None]:
    """Tell of long waits in a block, where there is anybody to wait for."""
    if comm.size == 1:
        return nullcontext()
    return watchdog.during(lambda: f"rank {comm.rank} of {comm.size} is in {what}")
