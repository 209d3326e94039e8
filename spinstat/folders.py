"""Names of run folders."""

from __future__ import annotations

import hashlib
import itertools
import os
import time
from typing import TypedDict

from . import user_config
from .comm import Comm, TorchComm, choose_comm
from .comm._torch import torch_running
from .files import CREATE, WORK_FOLDER


class LoggerKwargs(TypedDict):
    """Arguments for a logger."""

    output_dir: str
    exp_name: str


def setup_logger_kwargs(
    exp_name: str, seed: int | None = None, data_dir: str | None = None, datestamp: bool = False
) -> LoggerKwargs:
    """The output_dir and exp_name of a run, to be given to a logger: Logger(**setup_logger_kwargs("ppo", 0)).

    The folder is <data_dir>/<exp_name>, and with a seed <data_dir>/<exp_name>/<exp_name>_s<seed>. With a
    datestamp: <date>_<exp_name>, and with a seed <date>_<exp_name>/<date>_<time>-<exp_name>_s<seed>; such a
    folder is this run's alone: where the name is taken, also by a run that began in the same second, "_2",
    "_3", ... is added.

    Args:
        exp_name: name of the experiment. Runs that differ in their seed alone share it.
        seed: of the run's random generators.
        data_dir: folder of all runs; None: `spinstat.user_config.DEFAULT_DATA_DIR`.
        datestamp: as above; `spinstat.user_config.FORCE_DATESTAMP` sets it for all.

    With a datestamp all ranks of a job call this alike, and agree on rank 0's name. In a job of torchrun they
    can only when its group is initialised; before, the others assume that rank 0 has found no name taken.

    Raises:
        OSError: a name cannot be reserved in data_dir.

    Examples:
        >>> from spinstat.utils.run_utils import setup_logger_kwargs
        >>> setup_logger_kwargs("ppo", seed=3, data_dir="data")
        {'output_dir': 'data/ppo/ppo_s3', 'exp_name': 'ppo'}
    """
    base = data_dir or user_config.DEFAULT_DATA_DIR
    if not (datestamp or user_config.FORCE_DATESTAMP):
        steps = [exp_name] if seed is None else [exp_name, f"{exp_name}_s{seed}"]
        return {"output_dir": os.path.join(base, *steps), "exp_name": exp_name}
    now = time.localtime()
    steps = [time.strftime("%Y-%m-%d_", now) + exp_name]
    if seed is not None:
        steps.append(f"{time.strftime('%Y-%m-%d_%H-%M-%S', now)}-{exp_name}_s{seed}")
    return {"output_dir": _agreed(os.path.join(base, *steps)), "exp_name": exp_name}


def _agreed(path: str) -> str:
    """A folder that nobody else uses: rank 0 finds it and tells the others."""
    comm = choose_comm()
    if comm.size == 1:
        return reserve(path)
    name, failure = path, None
    if comm.rank == 0:
        try:
            name = reserve(path)
        except OSError as error:  # the others must not wait in vain
            failure = error
    if _can_communicate(comm):
        name = os.fsdecode(comm.allgather(b"" if failure else os.fsencode(name))[0])
    if failure is not None:
        raise failure
    if not name:
        raise OSError(f"rank 0 could not reserve a name for {path}")
    return name


def _can_communicate(comm: Comm) -> bool:
    """Whether a collective is possible, without making the group that a script of torchrun's will make."""
    return torch_running() or not isinstance(comm, TorchComm)


def reserve(path: str) -> str:
    """A path, or with a number the first that is neither there nor reserved by another process.

    The reservation is a file in the work folder beside the run folder, which the logger is to make: it warns
    of one that is there already.

    Raises:
        OSError: none can be reserved there.
    """
    parent, name = os.path.split(path)
    work = os.path.join(parent, WORK_FOLDER)
    try:
        os.makedirs(work, exist_ok=True)
        for number in itertools.count(1):
            own = name if number == 1 else f"{name}_{number}"
            # Of any name the same short one: readers of run folders look for words in names.
            token = "r-" + hashlib.sha256(own.encode("utf-8", "surrogateescape")).hexdigest()[:32]
            try:
                os.close(os.open(os.path.join(work, token), CREATE, 0o666))
            except FileExistsError:
                continue
            if not os.path.lexists(os.path.join(parent, own)):
                return os.path.join(parent, own)
    except OSError as error:
        message = (
            f"no folder for this run in {parent}: {error.strerror}; give data_dir=..., or set "
            "SPINSTAT_DATA_DIR"
        )
        raise OSError(error.errno, message) from error
    raise AssertionError("unreachable: the numbers do not end")
