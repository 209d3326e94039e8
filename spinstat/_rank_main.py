"""Runs a program as one rank of a job: where it fails, the whole job ends, with its traceback.

    python [options] _rank_main.py script.py | -m module | -c code [arguments]

The ranks that go on would wait for the one that failed until somebody looked. It is run by its path, before
anything of the program, so it imports little, and leaves the program what it would have found without it:
sys.argv, sys.orig_argv, sys.path and the module __main__.
"""

from __future__ import annotations

import io
import os
import pkgutil
import runpy
import sys
from types import ModuleType, TracebackType
from typing import NoReturn

# Exit handlers that have not returned after so long are waiting for other ranks.
SECONDS_TO_EXIT = 5.0


def main() -> None:
    """Run the program that the arguments name; returns, or exits, as it does."""
    program = sys.argv[1:]
    del sys.orig_argv[len(sys.orig_argv) - len(program) - 1]
    if not sys.flags.safe_path:
        del sys.path[0]
    try:
        run(program)
    except SystemExit as error:
        if error.code is None or error.code == 0:
            raise
        if not isinstance(error.code, int):
            print(error.code, file=sys.stderr)
        end_job(error.code if isinstance(error.code, int) else 1)
    except BaseException as error:
        error = error.with_traceback(of_the_program(error.__traceback__))
        sys.excepthook(type(error), error, error.__traceback__)
        end_job(130 if isinstance(error, KeyboardInterrupt) else 1)


def run(program: list[str]) -> None:
    """Run it as the interpreter would."""
    kind = program[0]
    if kind == "-m":
        sys.argv[:] = program[1:]
        put_first_in_path(os.getcwd())
        runpy.run_module(program[1], run_name="__main__", alter_sys=True)
    elif kind == "-c":
        sys.argv[:] = ["-c", *program[2:]]
        put_first_in_path("")
        run_source(program[1], "<string>", {})
    elif kind.endswith(".pyc") or pkgutil.get_importer(kind) is not None:  # or a folder, or an archive
        sys.argv[:] = program
        runpy.run_path(kind, run_name="__main__")
    else:
        sys.argv[:] = program
        put_first_in_path(os.path.dirname(os.path.realpath(kind)))
        path = os.path.abspath(kind)
        with io.open_code(path) as file:
            run_source(file.read(), path, {"__file__": path, "__cached__": None})


def run_source(source: str | bytes, name: str, attributes: dict[str, object]) -> None:
    """Run source as the module __main__, which stays after it, since exit handlers may need it."""
    module = sys.modules["__main__"] = ModuleType("__main__")
    module.__dict__.update(attributes)
    exec(compile(source, name, "exec", dont_inherit=True), module.__dict__)


def put_first_in_path(folder: str) -> None:
    """Import from a folder first, unless the interpreter was told not to (-P, -I)."""
    if not sys.flags.safe_path:
        sys.path.insert(0, folder)


def of_the_program(traceback: TracebackType | None) -> TracebackType | None:
    """A traceback without the frames of this file and of runpy at its beginning."""
    ours = {main.__code__.co_filename, runpy.run_path.__code__.co_filename}
    rest = traceback
    while rest is not None and rest.tb_frame.f_code.co_filename in ours:
        rest = rest.tb_next
    return rest


def end_job(status: int) -> NoReturn:
    """Run the exit handlers, as far as they get, and end all ranks."""
    import atexit
    import signal
    import threading

    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    last_resort = threading.Timer(SECONDS_TO_EXIT, end_ranks, [status])
    last_resort.daemon = True
    last_resort.start()
    atexit._run_exitfuncs()
    end_ranks(status)


def end_ranks(status: int) -> NoReturn:
    """End all ranks: by MPI, or where it does not run yet by a signal to this process.

    Launchers take the signal as a failure of the job. Of a status some take no notice, and leave the other
    ranks in MPI_Init for ever.
    """
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    comm = sys.modules.get("spinstat.comm")
    if comm is not None:
        comm.abort(status)
    import signal

    os.kill(os.getpid(), signal.SIGTERM)
    os._exit(status)


if __name__ == "__main__":
    main()
