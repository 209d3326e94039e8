"""Starting a program as several ranks."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from .comm import mpi_installed, under_launcher

# Options of the interpreter that have a value; of these -c and -m name the program.
_WITH_VALUE = "cmWX"
_LONG_WITH_VALUE = "--check-hash-based-pycs"


def mpi_fork(n: int, bind_to_core: bool = False) -> None:
    """Run this program again as n ranks under mpiexec or mpirun, and exit with the status of that job.

    Call it before anything costly: whatever comes before is run n + 1 times. It does nothing for n of 1 or
    less, in the ranks that it started, under any other launcher, and with SPINSTAT_MPI=0.

    The launcher is the one beside the interpreter, where a virtual environment has its own, or the first in
    PATH. The program is started as this one was: script, -m module or -c code, with the interpreter's
    options. The ranks get one thread each for OpenMP and MKL unless OMP_NUM_THREADS and MKL_NUM_THREADS say
    otherwise. An exception that one rank does not catch ends the job with its traceback.

    Args:
        n: how many ranks.
        bind_to_core: keep each rank on a core of its own.

    Environment:
        SPINSTAT_MPIEXEC_FLAGS: more options for the launcher, such as
            "--oversubscribe --allow-run-as-root", which Open MPI wants for more ranks than cores and for
            root.

    Raises:
        TypeError: n is no whole number.
        RuntimeError: there is no launcher, no mpi4py, or no program that could be run again.
        SystemExit: the job has ended.

    Examples:
        >>> from spinstat import mpi_fork
        >>> mpi_fork(1)  # one rank is this process
    """
    if not hasattr(n, "__index__"):
        raise TypeError(f"mpi_fork takes a whole number of ranks, not {type(n).__name__}: {n!r}")
    if n <= 1 or "IN_MPI" in os.environ or under_launcher() or os.environ.get("SPINSTAT_MPI") == "0":
        return
    if not mpi_installed():
        raise RuntimeError(f'mpi_fork({n}) needs mpi4py, which is not there: pip install "spinstat[mpich]"')
    import shlex

    flags = shlex.split(os.environ.get("SPINSTAT_MPIEXEC_FLAGS", ""))
    binding = ["--bind-to", "core"] if bind_to_core else []
    command = [_find_launcher(n), *flags, *binding, "-n", str(n), *_as_one_rank()]
    threads = {"MKL_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    sys.exit(_run(command, {**threads, **os.environ, "IN_MPI": "1"}, _folder_left()))


def _find_launcher(n: int) -> str:
    import shutil

    path = os.environ.get("PATH", os.defpath)
    if path:  # an empty one is to hide every program
        path = os.pathsep.join([os.path.dirname(sys.executable), path])
    found = shutil.which("mpiexec", path=path) or shutil.which("mpirun", path=path)
    if found is None:
        raise RuntimeError(
            f"mpi_fork({n}) found neither mpiexec nor mpirun in PATH ({path or 'which is empty'}). They come "
            'with an MPI library, such as that of pip install "spinstat[mpich]"; or run with one process'
        )
    return found


def _as_one_rank() -> list[str]:
    """The command that runs this program again as a rank."""
    options, program = split_command(sys.orig_argv[1:])
    if not program or program[0] == "-":
        raise RuntimeError(
            "mpi_fork runs the program again, but this one was typed in or read from a pipe: put it in a file"
        )
    runner = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_rank_main.py")
    return [sys.executable, *options, runner, *program]


def _folder_left() -> str | None:
    """The folder that this program was started in, where it has left that and its script is named from there.

    Raises:
        RuntimeError: nothing tells which it was.
    """
    program = split_command(sys.orig_argv[1:])[1]
    script = program[0] if program else "-"
    if script.startswith("-") or os.path.isabs(script):
        return None
    file = os.path.normpath(getattr(sys.modules["__main__"], "__file__", None) or "")
    folder = file.removesuffix(os.sep + os.path.normpath(script))
    known = os.path.isabs(file) and folder != file  # not so where relaunch has put another program there
    if os.path.exists(script) and not (known and not os.path.samefile(script, file)):
        return None
    if not known:
        raise RuntimeError(
            f"mpi_fork runs {script} again, which is not in {os.getcwd()}: call it before os.chdir(), or "
            "start the program by its absolute path"
        )
    return folder or os.sep


def split_command(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words after the name of the interpreter, split into its options and the program with its arguments.

    >>> split_command(["-u", "-Wd", "-X", "dev", "-Bm", "pkg.train", "--lr", "1"])
    (['-u', '-Wd', '-X', 'dev', '-B'], ['-m', 'pkg.train', '--lr', '1'])
    """
    options: list[str] = []
    at = 0
    while at < len(words):
        word = words[at]
        if word == "--":
            return options, list(words[at + 1 :])
        if word == "-" or not word.startswith("-"):
            return options, list(words[at:])
        at += 1
        options.append(word)
        if word.startswith("--"):
            options += words[at : at + 1] if word == _LONG_WITH_VALUE else []
            at += word == _LONG_WITH_VALUE
            continue
        place = next((i for i, letter in enumerate(word) if letter in _WITH_VALUE), None)
        if place is None:
            continue
        value = [word[place + 1 :]] if word[place + 1 :] else list(words[at : at + 1])
        rest = at if word[place + 1 :] else at + 1
        if word[place] in "cm":
            options[-1:] = [word[:place]] if place > 1 else []
            return options, [f"-{word[place]}", *value, *words[rest:]]
        options += words[at:rest]
        at = rest
    return options, []


def _run(command: Sequence[str], env: Mapping[str, str], folder: str | None) -> int:
    """Run a launcher in a folder; its status, or 128 and the number of the signal that ended it."""
    import signal
    import subprocess
    import threading

    sys.stdout.flush()
    sys.stderr.flush()
    with subprocess.Popen(command, env=env, cwd=folder) as job:
        if threading.current_thread() is threading.main_thread():
            # Whoever ends this process means the ranks, to which the launcher passes it on.
            signal.signal(signal.SIGTERM, lambda *_: job.terminate())
        while True:
            try:
                status = job.wait()
                break
            except KeyboardInterrupt:
                # From a terminal the launcher has it, too, and a second one does no harm; from a program that
                # interrupts this process alone it does not.
                job.send_signal(signal.SIGINT)
    return status if status >= 0 else 128 - status
