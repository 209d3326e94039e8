"""The commands show and verify: what a run folder is, and whether it is as it was saved.

They open a stranger's folder without harm: nothing in it is unpickled or run, no link that leads out of it is
followed, and what is printed holds no control characters.
"""

from __future__ import annotations

import argparse
import json
import os
import stat
import sys
import time
import warnings
from collections.abc import Iterable
from typing import Any, Final

from .checkpoint import list_checkpoints, verify_checkpoints
from .files import WORK_FOLDER
from .relaunch_record import LAUNCH
from .untrusted import escaped

MAX_BYTES: Final = 64 * 2**20  # of a file that is read whole


class Unreadable(Exception):
    """A folder, or a file in it, that is not read; the text says why."""


def add_folder_argument(parser: argparse.ArgumentParser) -> None:
    """The argument of both commands."""
    parser.add_argument("folder", metavar="DIR", help="the run's folder; none of its code is run")


def check_folder(folder: str) -> None:
    """Raise Unreadable where a path is no folder."""
    if not os.path.isdir(folder):
        raise Unreadable(f"{for_stdout(folder)} is no folder")


def links_out(folder: str) -> list[str]:
    """The links in a folder, at any depth, that lead out of it."""
    root = os.path.realpath(folder)
    found = []
    for base, folders, files in os.walk(folder):
        for name in sorted([*folders, *files]):
            path = os.path.join(base, name)
            if os.path.islink(path) and not _is_inside(os.path.realpath(path), root):
                found.append(path)
    return found


def _is_inside(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)


def read_text(folder: str, name: str) -> str | None:
    """The text of a file of a run; None where it is not there.

    Raises:
        Unreadable: it lies outside of the folder, is no ordinary file, is too large, or cannot be read.
    """
    path = os.path.join(folder, name)
    shown = for_stdout(path)
    if not os.path.lexists(path):
        return None
    if not _is_inside(os.path.realpath(path), os.path.realpath(folder)):
        raise Unreadable(f"{shown} leads out of the folder: it is not read")
    try:
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode):
            raise Unreadable(f"{shown} is no ordinary file")
        if found.st_size > MAX_BYTES:
            raise Unreadable(f"{shown} has {found.st_size} bytes, too many to be read")
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError as error:
        raise Unreadable(f"{shown}: {error.strerror}") from error


def read_json(folder: str, name: str) -> dict[str, Any] | None:
    """The JSON object in a file of a run; None where the file is not there.

    Raises:
        Unreadable: as read_text; or it holds something else.
    """
    text = read_text(folder, name)
    if text is None:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"{for_stdout(os.path.join(folder, name))} is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise Unreadable(f"{for_stdout(os.path.join(folder, name))} holds no JSON object")
    return found


def for_stdout(text: object) -> str:
    """All of a text for stdout: escapes for control characters, and for what its encoding has not."""
    encoding = sys.stdout.encoding if sys.stdout is not None else "ascii"
    return escaped(str(text)).encode(encoding or "ascii", "backslashreplace").decode(encoding or "ascii")


def verify(args: argparse.Namespace) -> int:
    """Compare the files of a run with the records of its checkpoints; 1 where one differs."""
    problems = folder_problems(args.folder)
    for problem in problems:
        print(for_stdout(problem))
    if problems:
        return 1
    listed = list_checkpoints(args.folder)
    shown = for_stdout(args.folder)
    if not listed:
        print(f"{shown} has no checkpoint on record: there is nothing to compare its files with")
    else:
        size = sum(each.size for each in listed)
        print(f"{shown} is as it was saved: {len(listed)} checkpoint(s) of {size} bytes")
    return 0


def folder_problems(folder: str) -> list[str]:
    """What is wrong with the files of a run, a sentence each."""
    if not os.path.isdir(folder):
        return [f"{folder} is no folder"]
    out = links_out(folder)
    if out:  # reading on would follow them
        return [f"{path} leads out of the folder: nothing is read" for path in out]
    with warnings.catch_warnings(record=True) as told:  # of records that cannot be read
        warnings.simplefilter("always")
        problems = verify_checkpoints(folder)
    problems += dict.fromkeys(str(warning.message) for warning in told)
    for name in ("config.json", LAUNCH, "env.json"):
        try:
            read_json(folder, name)
        except Unreadable as error:
            problems.append(str(error))
    return problems


def show(args: argparse.Namespace) -> int:
    """Print what a run folder is; 1 where a part of it cannot be shown."""
    folder = args.folder
    failures = []
    try:
        check_folder(folder)
        print(f"Run folder {for_stdout(folder)}")
        sections = (_launch, _configuration, _rows)
        for section in sections:
            try:
                _print(section(folder))
            except Unreadable as error:
                failures.append(str(error))
        out = links_out(folder)
        if out:
            reason = "leads out of the folder: checkpoints are not read"
            failures += [f"{for_stdout(path)} {reason}" for path in out]
        else:
            _print(_checkpoints(folder))
            _print(_files(folder))
    except Unreadable as error:
        failures.append(str(error))
    for failure in failures:
        print(f"Not shown: {failure}")
    return 1 if failures else 0


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        print(for_stdout(line))


def _launch(folder: str) -> list[str]:
    record = read_json(folder, LAUNCH)
    if record is None:
        return ["", f"Started: not known, there is no {LAUNCH}"]
    lines = ["", f"Started {record.get('time')} as {record.get('ranks')} rank(s)"]
    program = _part(record, "program")
    words = program.get("words", [])
    if isinstance(words, list):
        import shlex

        lines.append(f"  command   {shlex.join(map(str, words))}")
    lines.append(f"  in        {program.get('cwd')}")
    call = _part(record, "call")
    if "function" in call:
        lines.append(f"  function  {call['function']}({', '.join(map(str, _part(call, 'arguments')))})")
    else:
        lines.append(f"  function  not known: {call.get('$unrecorded')}")
    versions = _part(record, "versions")
    lines.append(f"  versions  {', '.join(f'{name} {version}' for name, version in versions.items())}")
    git = _part(record, "git")
    if "commit" in git:
        dirty = ", with changes that are not committed" if git.get("dirty") else ""
        lines.append(f"  git       {git['commit']}{dirty}")
    elif git:
        lines.append(f"  git       not known: {git.get('$unrecorded')}")
    return lines


def _part(record: dict[str, Any], name: str) -> dict[str, Any]:
    found = record.get(name)
    return found if isinstance(found, dict) else {}


def _configuration(folder: str) -> list[str]:
    config = read_json(folder, "config.json")
    if config is None:
        return ["", "Configuration: none, there is no config.json"]
    return ["", "Configuration", *(f"  {line}" for line in json.dumps(config, indent=2).splitlines()[1:-1])]


def _rows(folder: str) -> list[str]:
    """The file of rows: how many, and the last one. A torn last line does not count."""
    text = read_text(folder, "progress.txt")
    if text is None:
        return ["", "Rows: none, there is no progress.txt"]
    lines = text.split("\n")[:-1]
    if not lines:
        return ["", "Rows: none yet"]
    columns = lines[0].split("\t")
    found = ["", f"Rows: {len(lines) - 1} of {len(columns)} columns"]
    if len(lines) == 1:
        return [*found, *(f"  {column}" for column in columns)]
    width = max(map(len, columns))
    cells = lines[-1].split("\t")
    last = (f"    {key:{width}}  {cell}" for key, cell in zip(columns, cells, strict=False))
    return [*found, "  the last one", *last]


def _files(folder: str) -> list[str]:
    """The files for readers: those of .spinstat/ are the checkpoints'."""
    lines = ["", "Files"]
    for base, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != WORK_FOLDER)
        for name in sorted(names):
            path = os.path.join(base, name)
            lines.append(f"  {os.path.relpath(path, folder)}, {os.lstat(path).st_size} bytes")
    return lines


def _checkpoints(folder: str) -> list[str]:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        listed = list_checkpoints(folder)
    lines = ["", "Checkpoints" if listed else "Checkpoints: none on record"]
    for each in listed:
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(each.time))
        name = "without a number" if each.itr is None else f"number {each.itr}"
        rows = "" if each.rows is None else f", goes on after {each.rows} rows"
        lines.append(f"  rank {each.rank}, {name}, {when}, {each.size} bytes{rows}")
        lines += [f"    {plain}" for plain in each.names]
    return [*lines, *(f"  {warning.message}" for warning in told)]
