"""Taking a logger's checkpoints."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from ..recipe import Recipe
from .drafts import Draft, write_record
from .graphs import GraphSaver, is_session, save_model
from .lookup import Checkpoint, plain_names
from .pickles import describe, digest_of, dump_state, dump_torch
from .random_state import random_state
from .record import RANDOM, VARS, Record, Resume
from .resume import Point, Start, read_start, shelf_of, write_start
from .retention import Retention
from .rows import RowHost, RowLinks, RunState
from .swap import remove_tree
from .weights import dump_weights

UNCHANGED = "what was there before is unchanged"


class SavedState(RunState, Protocol):
    """What a logger notes of its checkpoints."""

    last: Checkpoint | None
    recipe: Recipe | None


class Host(RowHost, Protocol):
    """What a logger has for its savers. The elements are there when they have been set up."""

    pytorch_saver_elements: Any
    tf_saver_elements: dict[str, Any]

    @property
    def _saved(self) -> SavedState: ...

    def _pytorch_simple_save(self, itr: int | None = None) -> None: ...

    def _tf_simple_save(self, itr: int | None = None) -> None: ...

    def _alert(self, message: str) -> None: ...


class _Saving(NamedTuple):
    """A checkpoint being taken, and what went wrong with it so far."""

    draft: Draft
    problems: list[str]

    def add(self, name: str, write: Callable[[], object]) -> None:
        """Run what adds a file to the draft; what it raises is told at the end, and the rest is saved."""
        try:
            write()
            return
        except OSError as error:
            self.problems.append(f"could not write {name}: {error.strerror or error}; {UNCHANGED}")
        except Exception as error:  # objects and frameworks raise what they like when they are pickled
            self.problems.append(f"could not save {name}: {describe(error)}; {UNCHANGED}")
        self.draft.record.missing.append(name)


class Savers:
    """Takes the checkpoints of a logger, its rank's part of them.

    Args:
        logger: whose saver attributes, rows and log method are used.
        folder: of the run.
        rank, size: this process's among those that log together. Rank 0 alone makes plain names and models.
        rules: the arguments of Retention.
        point: the checkpoint that the run has gone on from, if it has.
        opening: lines and columns of the file of rows when the logger was made.
    """

    def __init__(
        self,
        logger: Host,
        folder: str,
        rank: int,
        size: int,
        rules: tuple[int | None, int | None, str | None],
        point: Point | None,
        opening: tuple[int, Sequence[str]],
    ) -> None:
        self._logger = logger
        self._is_root = rank == 0
        self._resumable = 1 if size == 1 else 2  # ranks may be one apart when they are killed
        self._retention = Retention(*rules)
        self._links = RowLinks(logger, size, self._retention.keep_best, None if point is None else point.main)
        self._shelf = shelf_of(folder, rank)
        self._shelf.clean()
        self._records = self._shelf.records()
        self._opening = opening
        self._start_is_known = point is not None or read_start(self._shelf) is not None
        self._since = self._first_of_run(point)
        self._unwritten: list[tuple[Record, Resume | None]] = []  # records that the disk has refused
        self._current: _Saving | None = None
        self._graph: GraphSaver | None = None
        self._lock = threading.RLock()

    def _first_of_run(self, point: Point | None) -> int:
        start = read_start(self._shelf) if point is not None else None
        if start is not None:
            return start.after + 1
        return 0 if point is not None else self._shelf.newest_number() + 1

    def note_start(self) -> None:
        """Write down where the run began, for one that is killed before it can go on from a checkpoint.

        Raises:
            OSError: it cannot be written.
        """
        if not self._start_is_known and os.path.isdir(self._shelf.root):
            lines, columns = self._opening
            write_start(self._shelf, Start(self._shelf.newest_number(), lines, list(columns)))
            self._start_is_known = True

    def save(self, state: object, itr: int | None) -> None:
        """Take a checkpoint of a state and of the models that are set up."""
        suffix = suffix_of(itr)
        logger = self._logger
        turn = self._links.take_turn(suffix)

        def add_parts(saving: _Saving) -> None:
            self._add_vars(saving, state, suffix)
            if self._is_root and hasattr(logger, "tf_saver_elements"):
                logger._tf_simple_save(itr)
            if self._is_root and hasattr(logger, "pytorch_saver_elements"):
                logger._pytorch_simple_save(itr)
            saving.add("the random generators", lambda: saving.draft.add(
                RANDOM, RANDOM, lambda file: file.write(random_state().encode()), private=True
            ))

        self._take(suffix, add_parts, turn)

    def _add_vars(self, saving: _Saving, state: object, suffix: str) -> None:
        name = plain_names(suffix)[0]
        private = not self._is_root
        own_name = VARS if private else name
        lost = saving.draft.record.missing
        try:
            missing = saving.draft.add(own_name, VARS, lambda file: dump_state(state, file), private)
        except OSError as error:
            saving.problems.append(f"could not write {name}: {error.strerror or error}; {UNCHANGED}")
            lost.append(name)
            return
        except Exception as error:
            saving.problems.append(f"could not pickle state_dict. {describe(error)}; {name}: {UNCHANGED}")
            lost.append(name)
            return
        lost += [f"{key!r} of {name}" for key in missing]
        if missing:
            keys = ", ".join(map(repr, missing))
            reasons = "; ".join(missing.values())
            saving.problems.append(f"could not pickle state_dict. {name} is without {keys} ({reasons})")

    def save_pytorch(self, itr: int | None) -> None:
        """Save what setup_pytorch_saver named, on its own or as a part of the checkpoint being taken."""
        suffix = suffix_of(itr)
        _, name, _, bare = plain_names(suffix)
        elements, recipe = self._logger.pytorch_saver_elements, self._logger._saved.recipe

        def add_model(saving: _Saving) -> None:
            add = saving.draft.add
            saving.add(name, lambda: add(name, "torch", lambda file: dump_torch(elements, file)))
            if recipe is not None:
                saving.add(bare, lambda: add(
                    bare, "weights", lambda file: dump_weights(elements, recipe, file)
                ))

        self._take(suffix, add_model)

    def save_tf(self, itr: int | None) -> None:
        """Save what setup_tf_saver named, on its own or as a part of the checkpoint being taken."""
        suffix = suffix_of(itr)
        name = plain_names(suffix)[2]
        make = self._graph_writer(self._logger.tf_saver_elements)
        self._take(suffix, lambda saving: saving.add(name, lambda: saving.draft.add_folder(name, "tf", make)))

    def _graph_writer(self, elements: Mapping[str, Any]) -> Callable[[str], None]:
        if not is_session(elements["session"]):
            return lambda folder: save_model(elements["session"], folder)
        if self._graph is None or self._graph.elements is not elements:
            self._graph = GraphSaver(elements)
        return self._graph.save

    def _take(
        self, suffix: str, add_parts: Callable[[_Saving], None], turn: int | None = None
    ) -> None:
        """Take a checkpoint, or add to the one being taken."""
        with self._lock, self._shelf.tidy():
            if self._current is not None:
                add_parts(self._current)
                return
            problems: list[str] = []
            record = self._write(suffix, add_parts, turn, problems)
            if record is not None:
                if self._is_root:
                    self._logger._saved.last = self._publish(record, problems)
                self._prune(problems)
        self._tell(problems)

    def _write(
        self, suffix: str, add_parts: Callable[[_Saving], None], turn: int | None, problems: list[str]
    ) -> Record | None:
        try:
            self.note_start()
            draft = self._shelf.draft()
        except OSError as error:
            problems.append(f"could not save the state: {error}")
            return None
        with draft:
            self._current = _Saving(draft, problems)
            try:
                add_parts(self._current)
            finally:
                self._current = None
            if not draft.record.files and VARS not in draft.record.private:
                return None  # nothing could be saved
            try:
                self._links.join(draft.record, turn)
                return draft.commit(suffix)
            except OSError as error:
                problems.append(f"could not save the state: {error.strerror or error}; {UNCHANGED}")
                return None
            finally:
                if draft.is_committed():  # also where an interrupt follows at once: it is to be pruned later
                    self._records.append(draft.record)

    def after_row(self) -> None:
        """Complete the records of the checkpoints that belong to the row just dumped."""
        problems: list[str] = []
        with self._lock, self._shelf.tidy():
            again, self._unwritten = self._unwritten, []
            completed = [*again, *((record, record.resume) for record in self._links.after_row())]
            for record, resume in completed:
                if record in self._records:
                    self._complete(record, resume, problems)
            if completed:
                self._prune(problems)
        self._tell(problems)

    def _complete(self, record: Record, resume: Resume | None, problems: list[str]) -> None:
        """Write a record that a run can go on from. Until it is on the disk, the one before is needed."""
        record.resume = resume
        try:
            write_record(self._shelf.folder, record)
        except OSError as error:
            record.resume = None
            self._unwritten.append((record, resume))
            problems.append(f"could not complete the record of a checkpoint: {error}")

    def _tell(self, problems: list[str]) -> None:
        if problems:
            self._logger._alert("\n".join(f"Warning: {text}" for text in problems))

    def _publish(self, record: Record, problems: list[str]) -> Checkpoint:
        found: dict[str, str] = {}
        for name in record.plain_names():
            try:
                self._shelf.publish(record, name)
            except OSError as error:
                problems.append(f"could not replace {name}: {error}")
            found[name] = os.path.join(self._shelf.root, name)
        names = plain_names(record.itr)
        return Checkpoint(int(record.itr) if record.itr else None, *map(found.get, names))

    def _prune(self, problems: list[str]) -> None:
        for record in self._retention.superfluous(self._records, self._since, self._resumable):
            try:
                self._remove(record)
            except OSError as error:
                problems.append(f"could not remove what is left of checkpoint {record.itr}: {error}")
                continue
            self._records.remove(record)

    def _remove(self, record: Record) -> None:
        """Remove a generation, and those plain names that nothing newer has taken over."""
        others = {name for other in self._records if other is not record for name in other.plain_names()}
        for name in record.plain_names():
            path = os.path.join(self._shelf.root, name)
            if name not in others and self._is_from(record, name, path):
                remove_tree(path)
        self._shelf.remove(record)

    def _is_from(self, record: Record, name: str, path: str) -> bool:
        """Whether a plain file or folder still is what this generation has put there."""
        for plain, file in record.members(name).items():
            inner = os.path.join(self._shelf.root, plain)
            if not os.path.isfile(inner) or digest_of(inner) != (file.size, file.sha256):
                return False
        return os.path.lexists(path)


def suffix_of(itr: Any) -> str:
    """What a number adds to the names of the files: nothing for None.

    Raises:
        TypeError: it is no number.
    """
    return "" if itr is None else "%d" % (itr,)  # noqa: UP031  what this takes is what the original takes
