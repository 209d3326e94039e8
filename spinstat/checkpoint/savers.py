"""Taking a logger's checkpoints."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from .drafts import Draft, write_record
from .generations import Shelf
from .graphs import GraphSaver, is_session, save_model
from .lookup import Checkpoint, plain_names
from .pickles import describe, digest_of, dump_state, dump_torch
from .record import Record
from .retention import Retention
from .swap import remove_tree

UNCHANGED = "what was there before is unchanged"


class Host(Protocol):
    """What a logger has for its savers. The elements are there when they have been set up."""

    pytorch_saver_elements: Any
    tf_saver_elements: dict[str, Any]
    _rating: object

    def _pytorch_simple_save(self, itr: int | None = None) -> None: ...

    def _tf_simple_save(self, itr: int | None = None) -> None: ...

    def _alert(self, message: str) -> None: ...

    def _is_between_rows(self) -> bool: ...


class _Saving(NamedTuple):
    """A checkpoint being taken, and what went wrong with it so far."""

    draft: Draft
    problems: list[str]

    def add(self, name: str, write: Callable[[], None]) -> None:
        """Run what adds a file to the draft; what it raises is told at the end, and the rest is saved."""
        try:
            write()
        except OSError as error:
            self.problems.append(f"could not write {name}: {error.strerror or error}; {UNCHANGED}")
        except Exception as error:  # objects and frameworks raise what they like when they are pickled
            self.problems.append(f"could not save {name}: {describe(error)}; {UNCHANGED}")


class Savers:
    """Takes the checkpoints of a logger.

    Args:
        logger: whose folder, log method and saver attributes are used.
        folder: of the run.
        rules: the arguments of Retention.
    """

    def __init__(
        self, logger: Host, folder: str, rules: tuple[int | None, int | None, str | None]
    ) -> None:
        self.last: Checkpoint | None = None
        self._logger = logger
        self._retention = Retention(*rules)
        self._shelf = Shelf(folder)
        self._shelf.clean()
        self._records = self._shelf.records()
        self._since = self._records[-1].number + 1 if self._records else 0
        self._waiting: list[Record] = []
        self._current: _Saving | None = None
        self._graph: GraphSaver | None = None
        self._lock = threading.RLock()

    def save(self, state: object, itr: int | None) -> None:
        """Take a checkpoint of a state and of the models that are set up."""
        suffix = suffix_of(itr)
        logger = self._logger

        def add_parts(saving: _Saving) -> None:
            self._add_vars(saving, state, suffix)
            if hasattr(logger, "tf_saver_elements"):
                logger._tf_simple_save(itr)
            if hasattr(logger, "pytorch_saver_elements"):
                logger._pytorch_simple_save(itr)

        self._take(suffix, add_parts)

    def _add_vars(self, saving: _Saving, state: object, suffix: str) -> None:
        name = plain_names(suffix)[0]
        try:
            missing = saving.draft.add(name, "vars", lambda file: dump_state(state, file))
        except OSError as error:
            saving.problems.append(f"could not write {name}: {error.strerror or error}; {UNCHANGED}")
            return
        except Exception as error:
            saving.problems.append(f"could not pickle state_dict. {describe(error)}; {name}: {UNCHANGED}")
            return
        if missing:
            keys = ", ".join(map(repr, missing))
            reasons = "; ".join(missing.values())
            saving.problems.append(f"could not pickle state_dict. {name} is without {keys} ({reasons})")

    def save_pytorch(self, itr: int | None) -> None:
        """Save what setup_pytorch_saver named, on its own or as a part of the checkpoint being taken."""
        suffix = suffix_of(itr)
        name = plain_names(suffix)[1]
        elements = self._logger.pytorch_saver_elements

        def add_model(saving: _Saving) -> None:
            saving.add(name, lambda: saving.draft.add(name, "torch", lambda file: dump_torch(elements, file)))

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

    def _take(self, suffix: str, add_parts: Callable[[_Saving], None]) -> None:
        """Take a checkpoint, or add to the one being taken."""
        with self._lock:
            if self._current is not None:
                add_parts(self._current)
                return
            problems: list[str] = []
            record = self._write(suffix, add_parts, problems)
            if record is not None:
                self._records.append(record)
                self.last = self._publish(record, problems)
                self._prune(problems)
        self._tell(problems)

    def _write(
        self, suffix: str, add_parts: Callable[[_Saving], None], problems: list[str]
    ) -> Record | None:
        try:
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
            if not draft.record.files:
                return None
            try:
                self._rate(draft.record, self._logger._is_between_rows())
                return draft.commit(suffix)
            except OSError as error:
                problems.append(f"could not save the state: {error.strerror or error}; {UNCHANGED}")
                return None

    def _rate(self, record: Record, from_last_row: bool) -> None:
        """Note what keep_best compares, now or when the row being built is dumped."""
        if not from_last_row:
            self._waiting.append(record)
        elif self._retention.keep_best is not None:
            record.rate(self._retention.keep_best, self._logger._rating)

    def after_row(self) -> None:
        """Complete the records of the checkpoints that belong to the row just dumped."""
        waiting, self._waiting = self._waiting, []
        problems: list[str] = []
        if self._retention.keep_best is None:
            return
        for record in waiting:
            record.rate(self._retention.keep_best, self._logger._rating)
            try:
                write_record(self._shelf.folder, record)
            except OSError as error:
                problems.append(f"could not complete the record of checkpoint {record.itr}: {error}")
        if waiting:
            self._prune(problems)
        self._tell(problems)

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
        for record in self._retention.superfluous(self._records, self._since):
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
