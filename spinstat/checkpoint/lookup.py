"""Finding what a run has saved: the newest whole files, whatever moment the run ended at."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..terminal import warn
from ..untrusted import check_inside, check_no_link
from .generations import Shelf
from .pickles import digest_of
from .record import Record

_VARS = re.compile(r"vars(-?\d+)\.pkl")
_TORCH = re.compile(r"model(-?\d+)\.pt")
_GRAPH = re.compile(r"tf1_save(-?\d+)")
_WEIGHTS = re.compile(r"weights(-?\d+)?\.safetensors")
_RECORDED = re.compile(r"(vars|pyt_save/model|tf1_save)(-?\d+)(?:\.\w+)?")
PATIENCE = 20  # times that a checkpoint is looked at again when it is replaced meanwhile


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """The files of a checkpoint.

    Attributes:
        itr: its number; None for the one without.
        vars: the pickle of the state, vars.pkl; None where it was not saved. So also the others.
        pytorch: what torch.save wrote, pyt_save/model.pt.
        tf: the folder of a TensorFlow graph, tf1_save.
        weights: those of the PyTorch model without a pickle, pyt_save/weights.safetensors.

    Examples:
        >>> from spinstat.checkpoint import find_checkpoint
        >>> checkpoint = find_checkpoint("runs/ppo")
        >>> checkpoint.itr, checkpoint.tf, len(checkpoint.paths)
        (None, None, 2)
    """

    itr: int | None
    vars: str | None
    pytorch: str | None
    tf: str | None
    weights: str | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        """All that there is."""
        return tuple(path for path in (self.vars, self.pytorch, self.tf, self.weights) if path is not None)


def plain_names(suffix: str) -> tuple[str, str, str, str]:
    """The names in a run folder of vars, the PyTorch model, the TensorFlow graph and the bare weights."""
    models = f"pyt_save/model{suffix}.pt", f"tf1_save{suffix}", f"pyt_save/weights{suffix}.safetensors"
    return f"vars{suffix}.pkl", *models


def find_checkpoint(folder: str | os.PathLike[str], itr: int | str | None = "last") -> Checkpoint:
    """Find the files of a checkpoint, whole ones, whatever moment the run was killed at.

    Each is the one with its plain name, such as vars.pkl, or, where a run ended between finishing a
    checkpoint and giving it its names, the one in .spinstat/. A plain file that did not come from a logger
    and is newer than the logger's wins, with a warning.

    Args:
        folder: the run's.
        itr: its number; None for the one without a number; "last" or -1 for the greatest number, and where
            there is none the one without.

    Raises:
        FileNotFoundError: there is no such checkpoint; tells which there are.
        ValueError: itr is something else.

    Examples:
        >>> import os
        >>> from spinstat.checkpoint import find_checkpoint
        >>> os.path.relpath(find_checkpoint("runs/ppo").pytorch)
        'runs/ppo/pyt_save/model.pt'
    """
    root = os.path.abspath(folder)
    shelf = Shelf(root)
    records = shelf.records()
    numbers = _numbers(root, records)
    suffix = _suffix(itr, numbers)
    for _ in range(PATIENCE):
        try:
            files = [_find(shelf, records, name) for name in plain_names(suffix)]
            break
        except FileNotFoundError:  # a run that goes on there has just replaced it
            records = shelf.records()
    else:
        raise FileNotFoundError(f"checkpoints in {os.fspath(folder)} are replaced faster than they are read")
    if not any(files):
        known = ", ".join(map(str, numbers)) or "none with a number"
        raise FileNotFoundError(
            f"{os.fspath(folder)} has no checkpoint {suffix or 'without a number'}; there are: {known}"
        )
    return Checkpoint(int(suffix) if suffix else None, *files)


def find_weights(folder: str | os.PathLike[str], itr: int | str | None = "last") -> str:
    """Find the weights of a checkpoint in a folder that nobody vouches for: no other file is looked at.

    Args:
        folder, itr: as for find_checkpoint; "last" is the last checkpoint that has such weights.

    Raises:
        FileNotFoundError: there are none; tells of which checkpoints there are.
        UntrustedError: they are behind a link, or no file.
        ValueError: itr is something else.
    """
    root = os.path.abspath(folder)
    shelf = Shelf(root)
    for folder_in in (shelf.folder, os.path.join(root, "pyt_save")):
        check_no_link(root, folder_in)
    records = [record for record in shelf.records() if not os.path.islink(shelf.generation(record))]
    names = {name for record in records for name in record.plain_names()}
    found = {path[len("pyt_save/") :] for path in names} | set(_names(os.path.join(root, "pyt_save")))
    numbers = sorted(int(match[1]) for match in map(_WEIGHTS.fullmatch, found) if match and match[1])
    suffix = _suffix(itr, numbers)
    name = plain_names(suffix)[3]
    if os.path.lexists(os.path.join(root, name)):
        check_inside(root, os.path.join(root, name))
    path = _find(shelf, records, name)
    if path is None:
        known = [*map(str, numbers), *(["None"] if "weights.safetensors" in found else [])]
        raise FileNotFoundError(
            f"{os.fspath(folder)} has no {name}, which can be read without trusting the run: it is saved "
            f"after setup_pytorch_saver(..., safe=True). There is one for itr: {', '.join(known) or 'none'}"
        )
    return path


def _suffix(itr: Any, numbers: Sequence[int]) -> str:
    if itr is None:
        return ""
    if itr == "last" or (itr == -1 and -1 not in numbers):
        return str(max(numbers)) if numbers else ""
    try:
        return "%d" % (itr,)  # noqa: UP031  takes any type of number, as in save_state
    except TypeError:
        raise ValueError(f"itr is a number, None or 'last', not {itr!r}") from None


def _numbers(root: str, records: Sequence[Record]) -> list[int]:
    """The numbers of checkpoints with a model, and where no model has one, of those with vars only."""
    recorded = {name for record in records for name in record.plain_names()}
    models = _matches(_TORCH, os.path.join(root, "pyt_save")) | _matches(_GRAPH, root)
    models |= {int(found[2]) for found in map(_RECORDED.fullmatch, recorded) if found and found[1] != "vars"}
    if models:
        return sorted(models)
    states = {int(found[2]) for found in map(_RECORDED.fullmatch, recorded) if found}
    return sorted(_matches(_VARS, root) | states)


def _matches(pattern: re.Pattern[str], folder: str) -> set[int]:
    return {int(found[1]) for found in map(pattern.fullmatch, _names(folder)) if found}


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []


Contents = dict[str, str]  # the files of a plain name, relative to it, and their SHA-256


def _find(shelf: Shelf, records: Sequence[Record], name: str) -> str | None:
    """The path to read for a plain name; None where there is nothing."""
    path = os.path.join(shelf.root, name)
    plain = contents(path)
    holders = [record for record in records if name in record.plain_names()]
    whole = next((record for record in reversed(holders) if _is_whole(shelf, record, name)), None)
    if whole is None:
        return path if plain else None
    if plain:
        if plain == recorded(whole, name):
            return path
        known = any(plain == recorded(record, name) for record in holders)
        if not known and _age(path) >= _age(_stored(shelf, whole, name)):
            if [record.number for record in shelf.records()] != [record.number for record in records]:
                raise FileNotFoundError("a newer checkpoint has been taken meanwhile")
            warn(f"{path} is newer than the last checkpoint and did not come with one; it is the one used")
            return path
    return _rebuilt(shelf, whole, name)


def checkpoint_of(shelf: Shelf, record: Record) -> Checkpoint:
    """The files of one generation: by their plain names where those are still its own."""
    files: list[str | None] = []
    for name in plain_names(record.itr):
        path = os.path.join(shelf.root, name)
        if name not in record.plain_names():
            files.append(None)
        elif contents(path) == recorded(record, name):
            files.append(path)
        else:
            files.append(_rebuilt(shelf, record, name))
    return Checkpoint(int(record.itr) if record.itr else None, *files)


def _rebuilt(shelf: Shelf, record: Record, name: str) -> str:
    """The path of a stored file, or of a temporary folder with the stored files."""
    if name not in record.folders:
        return _stored(shelf, record, name)
    made = tempfile.mkdtemp(prefix="spinstat-")
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    target = os.path.join(made, name)
    shelf.rebuild(record, name, target)
    return target


def contents(path: str) -> Contents | None:
    """What is there under a plain name; None where nothing is."""
    if os.path.isfile(path):
        return {".": digest_of(path).sha256}
    found = {}
    for base, _, names in os.walk(path):
        for file in names:
            inner = os.path.join(base, file)
            digest = digest_of(inner).sha256 if os.path.isfile(inner) else "no file"  # a pipe has no end
            found[os.path.relpath(inner, path).replace(os.sep, "/")] = digest
    return found or None


def recorded(record: Record, name: str) -> Contents:
    """What a checkpoint has saved under a plain name."""
    members = record.members(name)
    if name not in record.folders:
        return {".": members[name].sha256}
    return {plain.removeprefix(name + "/"): file.sha256 for plain, file in members.items()}


def _is_whole(shelf: Shelf, record: Record, name: str) -> bool:
    return not shelf.problems(record, record.members(name).values())


def _stored(shelf: Shelf, record: Record, name: str) -> str:
    return shelf.path(record, next(iter(record.members(name).values())))


def _age(path: str) -> int:
    """The time of a file, or of the newest one in a folder."""
    inside = [os.path.join(base, file) for base, _, names in os.walk(path) for file in names]
    return max(os.stat(file).st_mtime_ns for file in inside or [path])
