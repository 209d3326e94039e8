"""Ranks that ask for different things: every small program on two of them, beside a model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest
from memory_ranks import MemoryComm, NobodyComes, run_ranks

from spinstat import EpochLogger
from spinstat.exchange import KeyMismatchError

# A row is text. An upper-case letter logs that key, and what stands behind it is how: # with its count, % and
# ~ with two different lists of quantiles, ! with bad ones. What stands in brackets is logged in a batch. Each
# row begins with new values for both keys on each rank, and ends with dump_tabular. After a mismatch a rank
# goes on with its next row.

ROWS = ["", "A", "A#", "A%", "A~", "A!", "B%", "A%B", "A%B%", "AB%"]
ROWS += ["[]", "[A]", "[A%]", "[A~]", "[A%B]", "[AB%]", "[A#B~]", "[A%B%]", "[A~B%]"]
LAST_ROWS = ["A%", "[AB%]"]
PROGRAMS = list(product(ROWS, LAST_ROWS))
ASKED = {"": (), "#": (), "%": (0.0, 0.3, 0.5), "~": (0.9,), "!": (2.0,)}


class Call(NamedTuple):
    """A collective: whether it says that this rank refuses, the keys, and which of them have quantiles."""

    refused: bool
    keys: str
    gathered: tuple[bool, ...]


def calls_of(row: str) -> list[tuple[Call, list[str]]]:
    """The collectives of a row, each with how its keys are logged."""
    calls = []
    for batch, single in re.findall(r"\[([^\]]*)\]|([AB][#%~!]?)", row):
        logged = re.findall(r"([AB])([#%~!]?)", batch or single)
        keys, ways = "".join(key for key, _ in logged), [way for _, way in logged]
        calls.append((Call("!" in ways, keys, tuple(way in ("%", "~") for way in ways)), ways))
    return calls


def stored(place: int, row: int, key: str) -> list[float]:
    """Values that differ for any two ranks, rows and keys; as many as the rank's number and one."""
    return [float(10 * i + place + 100 * row + 1000 * "AB".index(key)) for i in range(place + 1)]


class Simulated:
    """What one rank has before it and in hand, by a model of its own: lists, and no hashes."""

    def __init__(self, program: Sequence[str], place: int) -> None:
        self.place = place
        self.rows = list(program)
        self.row = -1
        self.counted = 0  # rows since the last mismatch in which anything was logged by a collective
        self.logged = False
        self.todo: list[tuple[Call, list[str]]] = []
        self.values: dict[str, list[float]] = {"A": [], "B": []}
        self.seen: list[Any] = []

    def next_call(self) -> tuple[Call, list[str]] | None:
        """The next collective, past the rows that have none left; None at the end."""
        while not self.todo:
            if self.row + 1 == len(self.rows):
                return None
            self.counted += self.logged
            self.logged = False
            self.row += 1
            self.todo = calls_of(self.rows[self.row])
            for key in self.values:
                self.values[key] += stored(self.place, self.row, key)
        return self.todo[0]

    def fail(self) -> None:
        self.seen.append("mismatch")
        self.todo, self.values = [], {"A": [], "B": []}
        self.counted, self.logged = 0, False


def cells(key: str, way: str, values: list[float]) -> dict[str, float]:
    """The columns that a key gives, from the values of all ranks."""
    row = {key: np.mean(values) if values else np.nan}
    if way == "#":
        row["Count" + key] = len(values)
    for quantile in ASKED[way]:
        row[f"Q{100 * quantile:g}{key}"] = np.quantile(values, quantile) if values else np.nan
    return row


def expected(programs: Sequence[Sequence[str]]) -> list[list[Any]]:
    """What each of two ranks sees: rows of cells, "refused", "mismatch", or "wait" at the end."""
    ranks = [Simulated(program, place) for place, program in enumerate(programs)]
    while True:
        nexts = [rank.next_call() for rank in ranks]
        if None in nexts:
            for rank, found in zip(ranks, nexts, strict=True):
                rank.seen += [] if found is None else ["wait"]
            return [rank.seen for rank in ranks]
        (call, _), (other, _) = nexts  # type: ignore[misc]
        if call != other or ranks[0].counted != ranks[1].counted:
            for rank in ranks:
                rank.fail()
            continue
        together = {key: [x for rank in ranks for x in rank.values[key]] for key in call.keys}
        for rank in ranks:
            _, ways = rank.todo.pop(0)
            if call.refused:
                rank.seen.append("refused")
                continue
            row: dict[str, float] = {}
            for key, way in zip(call.keys, ways, strict=True):
                rank.values[key] = []
                row |= cells(key, way, together[key])
            rank.seen.append(row)
            rank.logged = True


def run_call(logger: EpochLogger, call: Call, ways: list[str], in_batch: bool) -> Any:
    before = set(logger._draft.cells)

    def log_all() -> None:
        for key, way in zip(call.keys, ways, strict=True):
            logger.log_tabular(key, average_only=True, with_count=way == "#", quantiles=ASKED[way])

    try:
        if in_batch:
            with logger.batch():
                log_all()
        else:
            log_all()
    except ValueError:
        assert set(logger._draft.cells) == before
        return "refused"
    return {column: value for column, value in logger.log_current_row.items() if column not in before}


def run_program(comm: MemoryComm, program: Sequence[str], place: int) -> list[Any]:
    logger = EpochLogger(comm=comm, quiet=True)
    seen: list[Any] = []
    for number, row in enumerate(program):
        for key in "AB":
            for value in stored(place, number, key):
                logger.store({key: value})
        try:
            for call, ways in calls_of(row):
                seen.append(run_call(logger, call, ways, "[" in row))
        except KeyMismatchError as error:
            seen.append(str(error))
        except NobodyComes:
            return [*seen, "wait"]
        logger.dump_tabular()
    return seen


def shown(seen: list[Any]) -> list[str]:
    """What was seen as text that compares, a NaN as any other."""
    return ["mismatch" if "same call" in str(each) else text_of(each) for each in seen]


def text_of(each: Any) -> str:
    if isinstance(each, str):
        return each
    return repr({column: f"{value:.12g}" for column, value in each.items()})


def run_programs(programs: Sequence[Sequence[str]]) -> list[Any]:
    """What each rank sees. None calls itself 0, which would make a folder for each program."""
    return run_ranks(
        2, lambda comm: run_program(comm, programs[comm.rank - 1], comm.rank - 1), numbers=(1, 2)
    )


@pytest.mark.parametrize("first", PROGRAMS, ids="|".join)
def test_any_two_programs_get_right_numbers_or_one_error_or_a_wait(first: tuple[str, str]) -> None:
    for second in PROGRAMS[: PROGRAMS.index(first) + 1]:
        programs = (first, second)
        outcomes = run_programs(programs)
        for outcome, want in zip(outcomes, expected(programs), strict=True):
            assert isinstance(outcome, list), (programs, outcome)
            assert shown(outcome) == shown(want), programs
        errors = [[each for each in outcome if "same call" in str(each)] for outcome in outcomes]
        assert errors[0] == errors[1], programs
