"""What a run folder has in checkpoints, and whether it is as it was saved. Runs none of the folder's code."""

from __future__ import annotations

import os
from dataclasses import dataclass

from .generations import Shelf
from .lookup import contents, recorded
from .record import Record
from .resume import shelf_of


@dataclass(frozen=True)
class Listed:
    """A checkpoint of a run.

    Attributes:
        rank: whose it is: rank 0's has the files that readers know, those of others their states.
        number: of its generation; later ones are greater.
        itr: the number in the names of its files; None for none.
        time: when it was taken, in seconds since 1970.
        size: of all its files, in bytes.
        names: of the files and folders that it has in the run's folder.
        rows: dumped when the run would go on from it; None where it cannot.

    Examples:
        >>> from spinstat.checkpoint import list_checkpoints
        >>> (listed,) = list_checkpoints("runs/ppo")
        >>> listed.rank, listed.itr, listed.rows, "vars.pkl" in listed.names
        (0, None, 3, True)
    """

    rank: int
    number: int
    itr: int | None
    time: float
    size: int
    names: tuple[str, ...]
    rows: int | None


def list_checkpoints(folder: str | os.PathLike[str]) -> list[Listed]:
    """The checkpoints of a run that were taken whole, rank by rank, oldest first.

    Args:
        folder: the run's.

    Examples:
        >>> from spinstat.checkpoint import list_checkpoints
        >>> [listed.rows for listed in list_checkpoints("runs/ppo")]
        [3]
    """
    return [_listed(rank, record) for rank, shelf in _shelves(folder) for record in shelf.records()]


def verify_checkpoints(folder: str | os.PathLike[str]) -> list[str]:
    """Compare every file of every checkpoint with its record.

    Returns:
        What is wrong, a sentence each; nothing where all is as it was saved. A plain file, such as vars.pkl,
        that is not the newest checkpoint's is one of them.

    Args:
        folder: the run's.

    Examples:
        >>> from spinstat.checkpoint import verify_checkpoints
        >>> verify_checkpoints("runs/ppo")
        []
    """
    problems = []
    for _, shelf in _shelves(folder):
        records = shelf.records()
        newest = {name: record for record in records for name in record.plain_names()}
        for record in records:
            problems += shelf.problems(record)
        for name, record in newest.items():
            path = os.path.join(shelf.root, name)
            found = contents(path)
            if found is None:
                problems.append(f"{path} is missing; the checkpoint has it in {shelf.folder}")
            elif found != recorded(record, name):
                problems.append(f"{path} is not what the last checkpoint has saved")
    return problems


def _shelves(folder: str | os.PathLike[str]) -> list[tuple[int, Shelf]]:
    root = os.path.abspath(folder)
    main = shelf_of(root, 0)
    if not os.path.isdir(main.folder):
        return []
    names = os.listdir(main.folder)
    ranks = sorted(int(name[4:]) for name in names if name.startswith("rank") and name[4:].isdecimal())
    return [(0, main), *((rank, shelf_of(root, rank)) for rank in ranks)]


def _listed(rank: int, record: Record) -> Listed:
    files = [*record.files.values(), *record.private.values()]
    return Listed(
        rank=rank,
        number=record.number,
        itr=int(record.itr) if record.itr else None,
        time=record.time,
        size=sum(file.size for file in files),
        names=tuple(record.plain_names()),
        rows=None if record.resume is None else record.resume.rows,
    )
