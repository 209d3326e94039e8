"""The record of a checkpoint: which files belong to it, and what they were when it was taken."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from .pickles import Digest, digest_of

# What a checkpoint may hold, by the names that Spinning Up's readers know, and a name in pyt_save/ that they
# do not take for a model. A record comes with its folder,
# maybe from a stranger: no other name in it is ever opened or written.
_FILE = re.compile(
    r"vars(-?\d{1,200})?\.pkl|pyt_save/model(-?\d{1,200})?\.pt|tf1_save(-?\d{1,200})?/.+"
    r"|pyt_save/weights(-?\d{1,200})?\.safetensors"
)
_FOLDER = re.compile(r"tf1_save(-?\d{1,200})?")
VARS, RANDOM = "vars", "random"  # names of stored files: the state, and that of the random generators
_STORED = re.compile(r"[a-z]+(-\d+)?")
_ITR = re.compile(r"(-?\d{1,200})?")
END_OF_TIME = 2.0**37  # seconds since 1970: some thousand years, which every C library can name


@dataclass(frozen=True)
class StoredFile:
    """A file of a checkpoint: its name in the generation's folder, and its digest."""

    stored: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Resume:
    """What a run needs to know to go on from a checkpoint.

    Attributes:
        rows: how many were dumped when it counts as taken.
        lines: of the file of rows then, headers included; None where there is no such file to cut.
        columns: their names then.
        turn: how many checkpoints of the same number in the names had been begun before for the same row. It
            is the same on all ranks for what belongs together, also where rank 0 has saved more than that.
        size: the number of ranks.
    """

    rows: int
    lines: int | None
    columns: list[str]
    turn: int
    size: int

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> Resume:
        """Read it back from a record."""
        lines = fields["lines"]
        return cls(
            rows=count(fields["rows"]),
            lines=None if lines is None else count(lines),
            columns=[str(column) for column in fields["columns"]],
            turn=int(fields.get("turn", 0)),
            size=int(fields["size"]),
        )


@dataclass
class Record:
    """A checkpoint: what was saved of it is whole; what could not be is missing.

    Attributes:
        number: of the generation; later ones are greater.
        itr: the number in the plain names as text, "" for none.
        time: when it was committed, in seconds since 1970.
        files: by plain name, relative to the run's folder.
        folders: plain folders that are replaced as a whole, with the folders in them.
        private: files that have no plain name.
        missing: what could not be saved, in words; nothing for a whole checkpoint.
        values: of the row that belongs to the checkpoint, those that it may be kept for.
        resume: what a run needs to go on from here; None where it cannot.
    """

    number: int
    itr: str
    time: float
    files: dict[str, StoredFile] = field(default_factory=dict)
    folders: dict[str, list[str]] = field(default_factory=dict)
    private: dict[str, StoredFile] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    values: dict[str, float] = field(default_factory=dict)
    resume: Resume | None = None

    def to_json(self) -> str:
        """The text of the record's file."""
        return json.dumps(asdict(self), indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str, number: int) -> Record:
        """Read a record's file back.

        Raises:
            ValueError: it is not one, or names what no checkpoint may hold.
        """
        try:
            fields = json.loads(text)
            record = cls(
                number=number,
                itr=str(fields["itr"]),
                time=float(fields["time"]),
                files=_files(fields["files"]),
                folders={str(name): [*map(str, inner)] for name, inner in fields["folders"].items()},
                private=_files(fields["private"]),
                missing=[str(name) for name in fields.get("missing", ())],
                values={str(name): float(value) for name, value in fields["values"].items()},
                resume=None if fields["resume"] is None else Resume.from_fields(fields["resume"]),
            )
        except (AttributeError, KeyError, OverflowError, RecursionError, TypeError) as error:
            raise ValueError(f"not a record of a checkpoint: {error!r}") from error
        record._check()
        return record

    def _check(self) -> None:
        if not _ITR.fullmatch(self.itr):
            raise ValueError(f"{self.itr!r} is no number of a checkpoint")
        if not abs(self.time) < END_OF_TIME:
            raise ValueError(f"{self.time} is no time of a checkpoint")
        for name in self.files:
            if not _is_known(name):
                raise ValueError(f"{name!r} is no file of a checkpoint")
        for name, inner in self.folders.items():
            if not _FOLDER.fullmatch(name) or not all(map(_is_known, inner)):
                raise ValueError(f"{name!r} is no folder of a checkpoint")
        for file in [*self.files.values(), *self.private.values()]:
            if not _STORED.fullmatch(file.stored):
                raise ValueError(f"{file.stored!r} is no name of a stored file")

    def rate(self, column: str, value: object) -> None:
        """Note the value of a column of its row, where that is a number."""
        if isinstance(value, int | float):
            self.values[column] = float(value)

    def plain_names(self) -> list[str]:
        """What stands in the run's folder for this checkpoint: files, and folders that go as a whole."""
        single = [name for name in self.files if folder_of(name) is None]
        return [*single, *self.folders]

    def members(self, name: str) -> dict[str, StoredFile]:
        """The files of one plain name: itself, or all in the folder."""
        if name in self.folders:
            return {plain: file for plain, file in self.files.items() if folder_of(plain) == name}
        return {name: self.files[name]}


def _is_known(name: str) -> bool:
    steps = name.split("/")
    inside = all(step not in ("", ".", "..") and not set(step) & set("\\\0") for step in steps)
    return inside and _FILE.fullmatch(name) is not None


def folder_of(name: str) -> str | None:
    """The folder that a plain file is replaced with; None for a file on its own."""
    top = name.partition("/")[0]
    return top if _FOLDER.fullmatch(top) else None


def count(number: Any) -> int:
    """A number of rows or bytes from a record. Raises ValueError where it is none."""
    found = int(number)
    if not 0 <= found < 2**63:
        raise ValueError(f"{number!r} is no number of rows or bytes")
    return found


def _files(fields: Mapping[str, Any]) -> dict[str, StoredFile]:
    return {
        str(name): StoredFile(str(file["stored"]), count(file["size"]), str(file["sha256"]))
        for name, file in fields.items()
    }


def problem(path: str, file: StoredFile) -> str | None:
    """What is wrong with a stored file: None for one that is as it was written."""
    if os.path.islink(path):
        return f"{path} is a link"
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return f"{path} is no file"
        if os.stat(path).st_size != file.size:
            return f"{path} has {os.stat(path).st_size} bytes, not {file.size}"
        if digest_of(path) != Digest(file.size, file.sha256):
            return f"{path} has another content than when it was saved"
    except OSError as error:
        return f"{path}: {error.strerror}"
    return None
