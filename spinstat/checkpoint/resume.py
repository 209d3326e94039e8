"""Where a run goes on: the newest whole checkpoint whose row is in the file of rows, on every rank."""

from __future__ import annotations

import errno
import itertools
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..files import write_atomic
from ..terminal import warn
from ..unpickling import load_pickle
from ..untrusted import printable
from .drafts import write_record, write_whole
from .generations import Shelf, check_record
from .lookup import Checkpoint, checkpoint_of
from .random_state import restore_random_state
from .record import RANDOM, VARS, Record, Resume, count


@dataclass(frozen=True)
class Start:
    """Where a run begins that has no checkpoint yet.

    Attributes:
        after: the newest generation there was; those up to it are of earlier runs.
        lines, columns: of the file of rows then; headers count as lines.
    """

    after: int
    lines: int
    columns: list[str]


@dataclass(frozen=True)
class Point:
    """A checkpoint to go on from.

    Attributes:
        main: rank 0's generation, which has the models.
        part: this rank's own, which has its state; where not all ranks have theirs, rank 0's.
        complete: whether all ranks have their own.
    """

    main: Record
    part: Record
    complete: bool

    @property
    def resume(self) -> Resume:
        """Where it stands in the run."""
        assert self.main.resume is not None  # what makes a record a point
        return self.main.resume


def shelf_of(root: str, rank: int) -> Shelf:
    """The generations of a rank."""
    return Shelf(root, f"rank{rank}" if rank else "")


def open_run(root: str, rank: int, size: int, file: str, resume: bool) -> tuple[Point | None, Start | None]:
    """Find out where a run goes on, and put its folder into the state that it had there.

    Args:
        root: the run's folder.
        rank, size: this process's.
        file: the file of rows, which rank 0 cuts back.
        resume: False for a run that begins anew.

    Returns:
        The checkpoint to go on from, and where it stands in the file; without a checkpoint None, and where
        the run began, if that is known.

    Raises:
        OSError: the folder cannot be read or written.
    """
    shelf = shelf_of(root, rank)
    if not resume:
        _begin_anew(shelf)
        return None, None
    point = find_point(root, rank, size)
    start = read_start(shelf_of(root, 0))
    if point is None:
        _forget_later(shelf, None, None)
    else:
        where = point.resume
        if rank == 0:
            _tell_left_out(shelf, point)
        _forget_later(shelf, where, point.part.number if point.complete or rank == 0 else None)
        start = None if where.lines is None else Start(0, where.lines, where.columns)
    if rank == 0:
        _restore_names(shelf)
        if start is not None:
            cut_rows(file, start.lines, start.columns, backup=point is None)
    return point, start


def load_point(root: str, rank: int, point: Point) -> Any:
    """The state of a point; the random generators are set to theirs where this rank has saved them.

    Raises:
        Exception: the state cannot be read; names the file, and for a missing class the ways out.
    """
    own = point.complete or rank == 0
    if point.part.missing:
        warn(
            "there is no whole checkpoint; the run goes on from one that is without "
            f"{_names(point.part.missing)}"
        )
    shelf = shelf_of(root, rank if own else 0)
    state: Any = {}
    for file in [*point.part.files.values(), *point.part.private.values()]:
        if file.stored == VARS:
            state = load_pickle(shelf.path(point.part, file))
        elif file.stored == RANDOM and own:
            with open(shelf.path(point.part, file), encoding="ascii") as text:
                restore_random_state(text.read())
    return state


def point_files(root: str, point: Point) -> Checkpoint:
    """The files of a point that readers want: rank 0's."""
    return checkpoint_of(shelf_of(root, 0), point.main)


def find_point(root: str, rank: int, size: int) -> Point | None:
    """The newest checkpoint that `size` ranks can go on from. All find the same: the disk decides.

    One that something is missing of is taken where there is no whole one.
    """
    alone = partial = None
    shelves = [shelf_of(root, other) for other in range(size)]
    for record in _resumable(shelves[0]):
        assert record.resume is not None
        if partial is not None and record.missing:
            break  # those that follow are not better
        if record.resume.size == size:
            parts = [record, *(_part_of(record, shelf) for shelf in shelves[1:])]
            found = [part for part in parts if part is not None]
            if len(found) == size:
                point = Point(record, found[rank], True)
                if not any(part.missing for part in found):
                    return point
                partial = partial or point
        alone = alone or Point(record, record, False)
        if record.resume.size != size:
            break
    return partial or alone


def _resumable(shelf: Shelf) -> Iterator[Record]:
    """This run's checkpoints whose files are as they were saved: whole ones first, and newer ones first."""
    start = read_start(shelf)
    for record in sorted(shelf.records(), key=lambda record: (bool(record.missing), -record.number)):
        if record.resume is None or (start is not None and record.number <= start.after):
            continue
        problems = shelf.problems(record)
        if problems:
            warn(f"a checkpoint is left out: {'; '.join(problems)}")
        else:
            yield record


def _part_of(main: Record, shelf: Shelf) -> Record | None:
    """What another rank has saved at the same time as rank 0."""
    for record in _resumable(shelf):
        if _place(record) == _place(main):
            return record
    return None


def _tell_left_out(shelf: Shelf, point: Point) -> None:
    """Warn of a later checkpoint that is not gone on from since something is missing of it."""
    for record in reversed(shelf.records()):
        if record.number > point.main.number and record.resume is not None and record.missing:
            warn(
                f"the checkpoint of row {record.resume.rows} is without {_names(record.missing)}; the run "
                f"goes on from the whole one of row {point.resume.rows}"
            )
            return


def _names(missing: Sequence[str]) -> str:
    return ", ".join(printable(name) for name in missing)


def _place(record: Record) -> tuple[str, int, int, int] | None:
    """What is the same on all ranks for the checkpoints that belong together."""
    where = record.resume
    return None if where is None else (record.itr, where.rows, where.turn, where.size)


def _forget_later(shelf: Shelf, where: Resume | None, number: int | None) -> None:
    """Make sure that nobody goes on from what was saved after a point, now that the run goes on from there.

    Args:
        shelf: of the rank that does this.
        where: the point; None for none.
        number: of this rank's generation of it; None where it has none.
    """
    for record in reversed(shelf.records()):
        if record.resume is None:
            continue
        if where is None:
            later = True
        elif number is not None:
            later = record.number > number
        else:
            later = (record.resume.rows, record.resume.turn) > (where.rows, where.turn)
        if later:
            record.resume = None
            write_record(shelf.folder, record)


def _restore_names(shelf: Shelf) -> None:
    """Give the newest generation its plain names, where the run ended before it could."""
    for record in shelf.records()[-1:]:
        if shelf.problems(record):
            continue
        for name in record.plain_names():
            stored = shelf.path(record, next(iter(record.members(name).values())))
            path = os.path.join(shelf.root, name)
            if not os.path.lexists(path) or os.stat(path).st_mtime_ns < os.stat(stored).st_mtime_ns:
                shelf.publish(record, name)


def _start_path(shelf: Shelf) -> str:
    return os.path.join(shelf.folder, "start.json")


def read_start(shelf: Shelf) -> Start | None:
    """Where the run began; None where nothing says so."""
    path = _start_path(shelf)
    try:
        check_record(os.lstat(path))
        with open(path, encoding="utf-8") as file:
            fields = json.load(file)
        columns = [str(column) for column in fields["columns"]]
        return Start(int(fields["after"]), count(fields["lines"]), columns)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        warn(f"{path} is left out: {error!r}")
        return None


def write_start(shelf: Shelf, start: Start) -> None:
    """Say where the run begins.

    Raises:
        OSError: it cannot be written.
    """
    os.makedirs(shelf.folder, exist_ok=True)
    write_whole(_start_path(shelf), json.dumps(asdict(start)) + "\n")


def _begin_anew(shelf: Shelf) -> None:
    """Make sure that nobody goes on from the checkpoints of an earlier run in the folder of a new one."""
    newest = shelf.newest_number()
    if newest or os.path.exists(_start_path(shelf)):
        write_start(shelf, Start(newest, 0, []))


def cut_rows(path: str, lines: int, columns: Sequence[str], backup: bool = False) -> None:
    """Drop the rows after the first `lines` lines, and the columns that only they had.

    Args:
        path: the file of rows.
        lines: how many to keep, headers included.
        columns: the names of the columns then.
        backup: keep a file from which rows are dropped as <path>.1, .2, ...

    Raises:
        OSError: it cannot be read or written.
    """
    data = b""
    if os.path.isfile(path):  # nothing can be cut from a device or a pipe, and reading one may wait for ever
        with open(path, "rb") as file:
            data = file.read()
    elif os.path.exists(path):
        return
    whole = data.split(b"\n")[:-1]
    if len(whole) < lines:
        warn(f"{path} has {len(whole)} lines, with the checkpoint it had {lines}; it is continued as it is")
        return
    kept = whole[:lines]
    if kept and columns and kept[0].count(b"\t") >= len(columns):
        kept = [b"\t".join(line.split(b"\t")[: len(columns)]) for line in kept]
    content = b"".join(line + b"\n" for line in kept)
    if content == data:
        return
    if backup and len(whole) > lines:
        _copy_aside(path)
    write_atomic(path, content)


def _copy_aside(path: str) -> None:
    for number in itertools.count(1):
        target = f"{path}.{number}"
        try:
            os.link(path, target)
            return
        except FileExistsError:
            continue
        except OSError as error:  # no links there
            if error.errno == errno.ENOENT:
                raise
            if not os.path.exists(target):
                shutil.copy2(path, target)
                return
