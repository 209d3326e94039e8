"""The command relaunch: a run of a folder once more, as launch.json has it, with other settings where wanted.

The function that called save_config(locals()) is called with its recorded arguments. Where that cannot be
done, the command line is run again. Both run code: of the program, and what launch.json names.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn

from .comm import under_launcher
from .inspecting import Unreadable, check_folder, read_json
from .launch import mpi_fork, split_command
from .relaunch_objects import NotFound, find
from .relaunch_output import NewFolder, redirected, redirected_words
from .relaunch_program import Refused, check_script, enter, load_main
from .relaunch_record import FORMAT, LAUNCH, git_state
from .relaunch_settings import parse_setting, with_options, with_settings
from .relaunch_values import Rebuilder
from .stderr import note

_NEEDED: dict[str, Any] = {"folder": str, "program": dict, "call": dict, "ranks": int}
_OF_PROGRAM: dict[str, Any] = {
    "words": list, "cwd": str, "path": str, "module": str | None, "script": str | None, "line": int | None,
}  # fmt: skip
_OF_CALL: dict[str, Any] = {
    "function": str, "positional": list, "star": str | None, "double_star": str | None, "arguments": dict,
}  # fmt: skip


def add_relaunch_arguments(parser: argparse.ArgumentParser) -> None:
    """Its arguments."""
    parser.add_argument("folder", metavar="DIR", help="the run's folder; its code is run: trust it")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", dest="settings",
        help="another value of an argument, or of an option of the command line: seed=3, act=torch.nn.ReLU, "
        "ac_kwargs.hidden_sizes=[64,64]",
    )  # fmt: skip
    parser.add_argument("--output-dir", metavar="NEW", help="where to write (DIR with a number added)")
    parser.add_argument(
        "--overwrite", action="store_true", help="write where the run wrote, or into a NEW that is there"
    )


class _Request(NamedTuple):
    """What was asked for, by absolute paths."""

    record: Mapping[str, Any]
    settings: list[tuple[str, str]]
    new: NewFolder | None  # None: wherever the program will
    words: list[str]  # that ask for the same from any working directory


def relaunch(args: argparse.Namespace) -> int:
    """Run it; 1 where it is refused, with the reasons on stderr."""
    try:
        request = _request(args)
        _tell_differences(request.record)
        try:
            call = _prepare_call(request)
        except Refused as refusal:
            reason = f"The call cannot be repeated: {refusal}"
        else:
            call()
            return 0
        try:
            words = _prepare_command(request)
        except Refused as refusal:
            raise Refused(f"{reason}\nThe command line cannot be repeated: {refusal}") from None
        note(f"{reason}\nThe command line is run again: {shlex.join(words)}")
        _run_command(words, request.record)
    except (Refused, Unreadable) as refusal:
        note(f"Refused. {refusal}")
        return 1


def _request(args: argparse.Namespace) -> _Request:
    check_folder(args.folder)
    folder = os.path.abspath(args.folder)
    record = read_json(folder, LAUNCH)
    if record is None:
        raise Refused(f"{args.folder} has no {LAUNCH}: save_config of spinstat's loggers writes it")
    _check(record)
    settings = [parse_setting(word) for word in args.settings]
    new = None if args.output_dir is None else os.path.abspath(args.output_dir)
    # Ranks do not look: another one may have begun already. Whoever has started them has looked.
    if new is not None and not args.overwrite and not under_launcher() and _has_something(new):
        raise Refused(f"{args.output_dir} is there already: give another --output-dir, or --overwrite")
    options = split_command(sys.orig_argv[1:])[0]
    words = [sys.executable, *options, "-m", "spinstat.run", "relaunch", folder]
    words += [word for setting in args.settings for word in ("--set", setting)]
    words += ["--overwrite"] if args.overwrite else []
    if new is None and args.overwrite:
        return _Request(record, settings, None, words)
    if new is None and under_launcher():
        raise Refused("several ranks need to know where to write: give --output-dir")
    return _Request(record, settings, NewFolder(new, folder), words)


def _has_something(path: str) -> bool:
    return os.path.lexists(path) and not (os.path.isdir(path) and not os.listdir(path))


def _check(record: Mapping[str, Any]) -> None:
    """Raise Refused where launch.json is not what write_launch writes."""
    if record.get("format") != FORMAT:
        raise Refused(f"{LAUNCH} is of format {record.get('format')!r}; this spinstat knows {FORMAT}")
    parts: list[tuple[str, Mapping[str, Any], Mapping[str, Any]]] = [("", record, _NEEDED)]
    if isinstance(record.get("program"), dict) and "$unrecorded" not in record["program"]:
        parts.append(("program.", record["program"], _OF_PROGRAM))
    if isinstance(record.get("call"), dict) and "$unrecorded" not in record["call"]:
        parts.append(("call.", record["call"], _OF_CALL))
    for prefix, part, needed in parts:
        for name, kind in needed.items():
            if name not in part or not isinstance(part[name], kind):
                raise Refused(f"{LAUNCH} is damaged: {prefix}{name} is {part.get(name)!r}")
    texts = [*record["program"].get("words", []), *record["call"].get("positional", [])]
    if not all(isinstance(text, str) for text in texts):
        raise Refused(f"{LAUNCH} is damaged: words and names of arguments are texts: {texts!r}")
    call = record["call"]
    names = [*call.get("positional", []), *filter(None, (call.get("star"), call.get("double_star")))]
    if "$unrecorded" not in call and (len(set(names)) < len(names) or not {*names} <= {*call["arguments"]}):
        raise Refused(f"{LAUNCH} is damaged: these are no arguments of the call, or twice: {names!r}")
    if "$unrecorded" in record["program"]:
        raise Refused(f"the program was not recorded: {record['program']['$unrecorded']}")
    for value in record["call"].get("arguments", {}).values():
        _check_value(value)


def _check_value(value: Any) -> None:
    """Raise Refused where a recorded value holds a call that is none."""
    if isinstance(value, dict):
        call = value.get("$call")
        call_of = call if isinstance(call, dict) else {}
        kinds = (("of", str), ("args", list), ("kwargs", dict))
        if call is not None and not all(isinstance(call_of.get(name, {}), kind) for name, kind in kinds):
            raise Refused(f"{LAUNCH} is damaged: $call is {call!r}")
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            _check_value(item)


def _tell_differences(record: Mapping[str, Any]) -> None:
    """Tell in which versions, and which state of the code, this differs from the run of the folder."""
    from importlib import metadata

    versions = record.get("versions")
    for name, then in versions.items() if isinstance(versions, dict) else ():
        if name == "python":
            now = sys.version.split()[0]
        else:
            try:
                now = metadata.version(name)
            except metadata.PackageNotFoundError:  # installed under another name, or not at all
                continue
        if str(then).partition("+")[0] != now.partition("+")[0]:
            note(f"The run had {name} {then}; this is {now}")
    git = record.get("git")
    if not isinstance(git, dict) or "commit" not in git:
        return
    state = git_state(str(git.get("top"))) if os.path.isdir(str(git.get("top"))) else None
    if state is not None and state.get("commit") != git["commit"]:
        note(f"The code is at another commit: {git['commit']} then, {state.get('commit')} now")
    if git.get("dirty"):
        note("The code had changes then that were not committed")


def _prepare_call(request: _Request) -> Callable[[], object]:
    """What calls the function; everything is rebuilt and checked.

    Where the run had several ranks and this is one process, it is started again as so many, and this does not
    return.
    """
    record, call = request.record, request.record["call"]
    if "$unrecorded" in call:
        raise Refused(call["$unrecorded"])
    names = {name for name, _ in request.settings}
    if not call["arguments"] and names:
        raise Refused(f"{call['function']} has no arguments to set")
    arguments = with_settings(call, request.settings)
    unrecorded = [text for name, value in arguments.items() for text in _unrecorded(value, name)]
    if unrecorded:
        raise Refused("\n  ".join([f"arguments of {call['function']} were not recorded:", *unrecorded]))
    in_main = '"__main__:' in json.dumps(call)
    if in_main:
        check_script(record["program"])
    arguments = redirected(arguments, record, names, request.new)
    if request.new is not None and request.new.path is not None:
        request.words.extend(["--output-dir", request.new.path])
    sys.orig_argv[:] = request.words  # what the new launch.json has, and what mpi_fork starts
    _start_ranks(record)
    enter(record["program"])
    program = record["program"]
    if in_main:
        load_main(program)
    sys.argv[:] = [program.get("script") or program.get("module") or "", *_arguments(program["words"])]
    try:
        function = find(call["function"])
    except NotFound as error:
        raise Refused(str(error)) from error
    rebuilder = Rebuilder()
    values = {name: rebuilder.rebuild(value, name) for name, value in arguments.items()}
    if rebuilder.problems:
        raise Refused("\n  ".join([f"arguments of {call['function']} cannot be had:", *rebuilder.problems]))
    return _bound(function, call, values)


def _unrecorded(value: Any, where: str) -> list[str]:
    """Where in a recorded value something is missing, and why."""
    if isinstance(value, list):
        return [text for at, item in enumerate(value) for text in _unrecorded(item, f"{where}[{at}]")]
    if not isinstance(value, dict):
        return []
    if "$unrecorded" in value:
        return [f"{where}: {value['$unrecorded']}"]
    return [
        text
        for key, item in value.items()
        for text in _unrecorded(item, where if key.startswith("$") else f"{where}[{key!r}]")
    ]


def _arguments(words: list[str]) -> list[str]:
    """The arguments of a program, without the interpreter, its options and what names the program."""
    program = split_command(words[1:])[1]
    return program[2:] if program[:1] in (["-m"], ["-c"]) else program[1:]


def _bound(function: Any, call: Mapping[str, Any], values: dict[str, Any]) -> Callable[[], object]:
    import inspect

    positional = [values.pop(name) for name in call["positional"]]
    positional += values.pop(call["star"]) if call["star"] else ()
    keywords = values.pop(call["double_star"]) if call["double_star"] else {}
    try:
        inspect.signature(function).bind(*positional, **values, **keywords)
    except TypeError as error:
        raise Refused(f"{call['function']} no longer takes the recorded arguments: {error}") from error
    return functools.partial(function, *positional, **values, **keywords)


def _start_ranks(record: Mapping[str, Any]) -> None:
    """Start this program again as the run's number of ranks, unless it is one of several, or needs not be."""
    ranks = record["ranks"]
    if ranks <= 1 or under_launcher():
        return
    if record.get("started_by") == "torchrun":
        raise Refused(
            f"the run had {ranks} ranks of torchrun: start them with torchrun --nproc-per-node {ranks} -m "
            "spinstat.run relaunch DIR --output-dir NEW"
        )
    _fork(ranks)


def _fork(ranks: int) -> None:
    sys.stdout.flush()
    try:
        mpi_fork(ranks)
    except RuntimeError as error:
        raise Refused(f"the run had {ranks} ranks: {error}") from error
    raise Refused(f"the run had {ranks} ranks, and IN_MPI or SPINSTAT_MPI=0 in the environment forbids them")


def _prepare_command(request: _Request) -> list[str]:
    """The words of the command line, checked, with what was set."""
    program = request.record["program"]
    words = [str(word) for word in program["words"]]
    options, rest = split_command(words[1:])
    if not rest or rest[0] == "-":
        raise Refused("the program was typed in, or read from a pipe")
    if not os.path.isdir(program["cwd"]):
        raise Refused(f"its working directory, {program['cwd']}, is gone")
    size = 2 if rest[0] in ("-m", "-c") else 1
    if size == 1 and not os.path.exists(os.path.join(program["cwd"], rest[0])):
        raise Refused(f"the script {rest[0]} is gone from {program['cwd']}")
    if rest[:3] == ["-m", "spinstat.run", "relaunch"] and request.settings:
        raise Refused(f"it is a relaunch of {rest[3]}: give that folder what is to be set")
    if request.record.get("started_by") == "torchrun" and not under_launcher():
        raise Refused("it was started by torchrun, which has to be run again with it")
    arguments = with_options(rest[size:], request.settings, shlex.join(words))
    arguments = redirected_words(rest[size:], arguments, request.record, request.new)
    return [sys.executable, *options, *rest[:size], *arguments]


def _run_command(words: list[str], record: Mapping[str, Any]) -> NoReturn:
    """Become the program, as one rank or started as several."""
    os.chdir(record["program"]["cwd"])
    sys.stdout.flush()
    if record["ranks"] > 1 and record.get("started_by") == "mpi" and not under_launcher():
        sys.orig_argv[:] = words
        _fork(record["ranks"])
    os.execv(words[0], words)
