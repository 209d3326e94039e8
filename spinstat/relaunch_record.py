"""launch.json: how a run was started, so that `python -m spinstat.run relaunch` can start it again.

    program     the command line, its folder, and the script or module that it ran
    call        the function that called save_config(locals()), and its arguments as relaunch_values has them
    versions, git, ranks, started_by                     what it ran on, and which state of the code
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from types import CodeType, FrameType, MethodType
from typing import Any, Final

from ._static import mro
from .files import write_atomic
from .relaunch_objects import NoPath, import_path
from .relaunch_values import record_value
from .terminal import warn

LAUNCH: Final = "launch.json"
FORMAT: Final = 1
_PACKAGE: Final = os.path.dirname(__file__)
_VERSIONED: Final = ("spinstat", "numpy", "torch", "tensorflow", "gymnasium", "gym", "mpi4py")
_GIT_SECONDS: Final = 5
_STAR, _DOUBLE_STAR, _NOT_PLAIN = 0x04, 0x08, 0x20 | 0x80 | 0x200  # bits of co_flags; generators, coroutines


def write_launch(logger: object, folder: str, config: object, ranks: int) -> None:
    """Write launch.json into a run's folder.

    It never fails: what cannot be recorded is recorded as such, with the reason, and a file that cannot be
    written is a warning.

    Args:
        logger: whose save_config was called; its methods are not the function that is looked for.
        folder: an absolute path.
        config: what save_config was given.
        ranks: how many there are.
    """
    try:
        text = json.dumps(launch_record(_caller(logger), folder, config, ranks), indent=1) + "\n"
        write_atomic(os.path.join(folder, LAUNCH), text)
    except Exception as error:  # training must not end because it cannot be repeated
        warn(f"{os.path.join(folder, LAUNCH)} is not written, so relaunch will not know this run: {error}")


def launch_record(caller: FrameType | None, folder: str, config: object, ranks: int) -> dict[str, Any]:
    """What launch.json holds, as JSON; `caller` is the frame that called save_config."""
    return {
        "format": FORMAT,
        "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "folder": folder,
        "program": _or_reason(lambda: _program(caller)),
        "call": _or_reason(lambda: _call(caller, config)),
        "versions": {"python": sys.version.split()[0], **_versions()},
        "git": _or_reason(lambda: git_state(_code_folder(caller))),
        "ranks": ranks,
        "started_by": _started_by(),
    }


def _or_reason(record: Callable[[], Any]) -> Any:
    """What a function gives, or why it could not."""
    try:
        return record()
    except Exception as error:
        return {"$unrecorded": f"{type(error).__name__}: {error}"}


def _caller(logger: object) -> FrameType | None:
    """The frame outside this package and outside the logger's own methods.

    Frames are not asked for their variables: that would write into a dict which the caller had of locals().
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_ours(frame.f_code, logger):
        frame = frame.f_back
    return frame


def _is_ours(code: CodeType, logger: object) -> bool:
    if code.co_filename.startswith(_PACKAGE + os.sep):
        return True
    methods = (vars(cls).get(code.co_name) for cls in mro(type(logger)))
    return any(getattr(method, "__code__", None) is code for method in methods)


def _program(caller: FrameType | None) -> dict[str, Any]:
    main = sys.modules["__main__"]
    spec, script = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    frame, line = caller, None
    while frame is not None:
        if frame.f_globals is vars(main) and frame.f_code.co_name == "<module>":
            line = frame.f_lineno
        frame = frame.f_back
    return {
        "words": [sys.executable, *sys.orig_argv[1:]],
        "cwd": os.getcwd(),
        "path": sys.path[0] if sys.path else "",
        "module": None if spec is None else spec.name,
        "script": None if script is None else os.path.abspath(script),
        "line": line,  # of the program's own code, which led here
    }


def _call(caller: FrameType | None, config: object) -> dict[str, Any]:
    if caller is None:
        return {"$unrecorded": "nothing is known of who called save_config"}
    code = caller.f_code
    try:
        path, given = _function(code, caller.f_globals)
    except NoPath as error:
        return {"$unrecorded": str(error)}
    counts = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
    plain, rest = code.co_varnames[: counts[1]], iter(code.co_varnames[counts[1] :])
    star = next(rest) if code.co_flags & _STAR else None
    double_star = next(rest) if code.co_flags & _DOUBLE_STAR else None
    names = [*plain[given:], *(name for name in (star, double_star) if name is not None)]
    return {
        "function": path,
        "positional": list(plain[given : counts[0] if star else code.co_posonlyargcount]),
        "star": star,
        "double_star": double_star,
        "arguments": {name: _argument(config, name) for name in names},
    }


def _function(code: CodeType, variables: Mapping[str, Any]) -> tuple[str, int]:
    """The import path of the function with this code, and how many arguments are part of it: a class's 1.

    Raises:
        NoPath: it has none, or is no plain function.
    """
    name = code.co_qualname
    if name == "<module>":
        raise NoPath("save_config was called outside of any function")
    if "<" in name:
        raise NoPath(f"{name} has no import path: save_config was called in a function within a function")
    if code.co_flags & _NOT_PLAIN:
        raise NoPath(f"{name} is a coroutine or a generator")
    first, *steps = name.split(".")
    found: Any = variables.get(first)
    for step in steps:
        found = getattr(found, step, None)
    inner: Any = found
    while getattr(inner, "__code__", None) is not code and hasattr(inner, "__wrapped__"):  # decorated
        inner = inner.__wrapped__
    inner = getattr(inner, "__func__", inner)
    if found is None or getattr(inner, "__code__", None) is not code:
        raise NoPath(f"{name} is not what {variables.get('__name__')} has under that name")
    path = import_path(found)
    if path.partition(":")[2] != name:
        raise NoPath(f"{name} goes by the path {path}")
    return path, int(type(found) is MethodType)


def _argument(config: object, name: str) -> Any:
    if not isinstance(config, dict) or name not in config:
        return {"$unrecorded": f"save_config was not given {name!r}; give it locals()"}
    return record_value(config[name])


def _versions() -> dict[str, str]:
    """Those of packages that are loaded."""
    loaded = {name: getattr(sys.modules.get(name), "__version__", None) for name in _VERSIONED}
    return {name: str(version) for name, version in loaded.items() if version is not None}


def _code_folder(caller: FrameType | None) -> str:
    file = "" if caller is None else caller.f_code.co_filename
    return os.path.dirname(os.path.abspath(file)) if os.path.isfile(file) else os.getcwd()


def git_state(folder: str) -> dict[str, Any] | None:
    """Commit of the repository that a folder lies in, and whether a file that it tracks differs from it.

    Returns:
        None outside of any repository; {"$unrecorded": reason} where git cannot tell.
    """
    top = folder
    while not os.path.exists(os.path.join(top, ".git")):
        top, below = os.path.dirname(top), top
        if top == below:
            return None
    import subprocess

    command = ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-C", top,
               "status", "--porcelain=v2", "--branch", "--untracked-files=no"]  # fmt: skip
    others = {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"}  # set in hooks, for another repository maybe
    try:
        done = subprocess.run(
            command,
            env={name: value for name, value in os.environ.items() if name not in others},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_GIT_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"$unrecorded": f"git: {error}"}
    if done.returncode != 0:
        return {"$unrecorded": f"git: {done.stderr.strip()}"}
    lines = done.stdout.splitlines()
    commit = next((line.split()[2] for line in lines if line.startswith("# branch.oid ")), "(initial)")
    dirty = any(not line.startswith("#") for line in lines)
    return {"top": top, "commit": None if commit == "(initial)" else commit, "dirty": dirty}


def _started_by() -> str | None:
    """What made the ranks: "mpi_fork", "torchrun" or an MPI launcher, "mpi"; None for one process."""
    from .comm import under_launcher

    if "TORCHELASTIC_RUN_ID" in os.environ:
        return "torchrun"
    if not under_launcher():
        return None
    return "mpi_fork" if "IN_MPI" in os.environ else "mpi"
