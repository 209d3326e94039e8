"""Checkpoints by generation in a work folder: written whole, committed by one rename, then given plain names.

    .spinstat/c12/          the files of generation 12, under names that no reader of run folders looks for
    .spinstat/c12.json      its record; a generation without one was never finished: readers do not see it
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from ..files import WORK_FOLDER
from ..terminal import warn
from .drafts import Draft, is_abandoned, record_path, temporary_name
from .record import Record, StoredFile, problem
from .swap import remove_tree, replace_folder

_RECORD = re.compile(r"c(\d+)\.json")
_GENERATION = re.compile(r"c(\d+)(\.json)?")
_TEMPORARY = re.compile(r"tmp-(\d+)-.*")
MAX_RECORD = 2**26  # bytes; one has some hundred for each file of a checkpoint
STALE_AFTER = 3600  # seconds after which a temporary whose process is not here counts as left behind


class Shelf:
    """The generations of one rank.

    Args:
        root: the run's folder, which the plain names are in.
        part: a folder within the work folder, for a rank's own generations; "" for rank 0's.
    """

    def __init__(self, root: str, part: str = "") -> None:
        self.root = root
        self.folder: str = os.path.join(root, WORK_FOLDER, part) if part else os.path.join(root, WORK_FOLDER)

    def records(self) -> list[Record]:
        """All records, oldest first. One that cannot be read is left out, with a warning."""
        found = []
        for number in self._numbers(_RECORD):
            path = record_path(self.folder, number)
            try:
                check_record(os.lstat(path))
                with open(path, encoding="utf-8") as file:
                    found.append(Record.from_json(file.read(), number))
            except FileNotFoundError:  # a run that goes on there has just removed it
                continue
            except (OSError, ValueError) as error:
                warn(f"{path} is left out: {error}")
        return found

    def _numbers(self, pattern: re.Pattern[str]) -> list[int]:
        try:
            names = os.listdir(self.folder)
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted({int(found[1]) for found in map(pattern.fullmatch, names) if found})

    def generation(self, record: Record) -> str:
        """The folder of a generation."""
        return os.path.join(self.folder, f"c{record.number}")

    def path(self, record: Record, file: StoredFile) -> str:
        """Where a file of a generation is stored."""
        return os.path.join(self.generation(record), file.stored)

    def draft(self) -> Draft:
        """Begin a new generation.

        Raises:
            OSError: it cannot be begun.
        """
        if os.path.isdir(self.root):  # one that has vanished is not made anew: who removed it had a reason
            os.makedirs(self.folder, exist_ok=True)
        return Draft(self.folder, self.newest_number() + 1)

    def newest_number(self) -> int:
        """The greatest number of a generation, finished or not; 0 where there is none."""
        return max(self._numbers(_GENERATION), default=0)

    def problems(self, record: Record, files: Iterable[StoredFile] | None = None) -> list[str]:
        """What is wrong with the files of a generation, or some of them; nothing where they are whole."""
        if files is None:
            files = [*record.files.values(), *record.private.values()]
        found = (problem(self.path(record, file), file) for file in files)
        return [text for text in found if text]

    def publish(self, record: Record, name: str) -> None:
        """Make one plain name anew from a generation. At any instant it is a whole file or folder.

        Raises:
            OSError: it cannot be made; what was there before is unchanged.
        """
        members = record.members(name)
        target = os.path.join(self.root, name)
        temporary = temporary_name(os.path.join(self.root, WORK_FOLDER))
        try:
            if name in record.folders:
                self.rebuild(record, name, temporary)
                replace_folder(temporary, target)
                return
            source = self.path(record, members[name])
            if os.path.exists(target) and os.path.samefile(source, target):
                return  # a rename of one link over another of the same file would leave both
            os.makedirs(os.path.dirname(target), exist_ok=True)
            _link(source, temporary)
            os.replace(temporary, target)
        finally:
            remove_tree(temporary)

    def rebuild(self, record: Record, name: str, target: str) -> None:
        """Make a plain folder of a generation at `target`, which is not there yet."""
        os.mkdir(target)
        for inner in record.folders[name]:
            os.makedirs(os.path.join(target, os.path.relpath(inner, name)), exist_ok=True)
        for plain, file in record.members(name).items():
            path = os.path.join(target, os.path.relpath(plain, name))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            _link(self.path(record, file), path)

    def remove(self, record: Record) -> None:
        """Delete a generation, its record first; plain names stay."""
        remove_tree(record_path(self.folder, record.number))
        remove_tree(os.path.join(self.folder, f"c{record.number}"))

    @contextmanager
    def tidy(self) -> Iterator[None]:
        """Let no half of a generation stay where an interrupt ends the block, and the process goes on."""
        try:
            yield
        except BaseException:
            self.clean()
            raise

    def clean(self) -> None:
        """Delete what killed processes have left: unfinished generations and temporaries."""
        finished = set(self._numbers(_RECORD))
        for number in self._numbers(_GENERATION):
            path = os.path.join(self.folder, f"c{number}")
            if number in finished or not is_abandoned(path):
                continue
            if not os.path.exists(record_path(self.folder, number)):  # it may have been finished just now
                remove_tree(path)
        if not os.path.isdir(self.folder):
            return
        for name in os.listdir(self.folder):
            found = _TEMPORARY.fullmatch(name)
            if found and _is_stale(os.path.join(self.folder, name), int(found[1])):
                remove_tree(os.path.join(self.folder, name))


def check_record(status: os.stat_result) -> None:
    """Raise ValueError for what cannot be a record: a folder may come from somebody else."""
    if not stat.S_ISREG(status.st_mode):
        raise ValueError("it is a link, or no file")
    if status.st_size > MAX_RECORD:
        raise ValueError(f"it has {status.st_size} bytes")


def _link(source: str, target: str) -> None:
    """Make target a hard link to source, or a copy where there are none; with the same time either way."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _is_stale(path: str, process: int) -> bool:
    """Whether a temporary is of a process that is gone. Its host may be another one, so it is also old."""
    try:
        if time.time() - os.stat(path).st_mtime < STALE_AFTER:
            return False
        os.kill(process, 0)
    except (FileNotFoundError, PermissionError):
        return False
    except (ProcessLookupError, OverflowError):
        return True
    return False
