"""The protocol between ranks: every small program on two of them, and what its errors and its notice say."""

from __future__ import annotations

import pickle
import re
import threading
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest
from memory_ranks import MemoryComm, NobodyComes, run_ranks

from spinstat import EpochLogger, Moments, exchange
from spinstat._core import ROW_SIZE, Message, merge_rows
from spinstat.exchange import Channel, KeyMismatchError

# -- every program of two rows over two keys on two ranks
# ----------------------------------------------------------
#
# A row is text: an upper-case letter logs that key, a lower-case one asks for its get_stats, what stands in
# brackets is logged in a batch. Each row begins with a new value for both keys on each rank and ends with
# dump_tabular. After an error a program goes on with its next row.

ROWS = ["", "A", "B", "AB", "BA", "a", "aA", "Ab", "[]", "[A]", "[AB]", "[BA]", "[A]B"]
PROGRAMS = list(product(ROWS, repeat=2))


class Call(NamedTuple):
    """A collective that a program makes: on which keys, and what for."""

    purpose: str
    keys: str


def calls_of(row: str) -> list[Call]:
    steps = re.findall(r"\[([AB]*)\]|([AB])|([ab])", row)
    return [Call("get_stats" if asked else "row", batch + key + asked.upper()) for batch, key, asked in steps]


def stored(place: int, row: int, key: str) -> float:
    """A value that no two ranks, rows and keys share, nor any sums of them."""
    return float(1 << (place + 2 * row + 8 * "AB".index(key)))


class Simulated:
    """What one rank has before it and in hand, by a model of its own: lists, and no hashes."""

    def __init__(self, program: Sequence[str], place: int) -> None:
        self.place = place
        self.rows = list(program)
        self.row = -1
        self.counted = 0  # rows since the last error in which anything was logged by a collective
        self.logged = False
        self.todo: list[Call] = []
        self.values: dict[str, list[float]] = {"A": [], "B": []}
        self.seen: list[Any] = []

    def next_call(self) -> Call | None:
        """The next collective, past the rows that have none left; None at the end."""
        while not self.todo:
            if self.row + 1 == len(self.rows):
                return None
            self.counted += self.logged
            self.begin_row()
        return self.todo[0]

    def begin_row(self) -> None:
        self.logged = False
        self.row += 1
        self.todo = calls_of(self.rows[self.row])
        for key in self.values:
            self.values[key].append(stored(self.place, self.row, key))

    def take(self, call: Call, key: str) -> list[float]:
        values = self.values[key]
        if call.purpose == "row":
            self.values[key] = []
        return values

    def fail(self) -> None:
        self.seen.append(("error", ""))
        self.todo = []
        self.values = {"A": [], "B": []}
        self.counted, self.logged = 0, False


def expected(programs: Sequence[Sequence[str]]) -> list[list[Any]]:
    """What each of two ranks sees: the mean and count of each key at each call, "error", or "wait" at the
    end."""
    ranks = [Simulated(program, place) for place, program in enumerate(programs)]
    while True:
        calls = [rank.next_call() for rank in ranks]
        if None in calls:
            for rank, call in zip(ranks, calls, strict=True):
                rank.seen += [] if call is None else [("wait", "")]
            return [rank.seen for rank in ranks]
        call = calls[0]
        assert call is not None
        if calls[1] != call or ranks[0].counted != ranks[1].counted:
            for rank in ranks:
                rank.fail()
            continue
        for key in call.keys:
            values = [value for rank in ranks for value in rank.take(call, key)]
            for rank in ranks:
                rank.seen.append((key, sum(values) / len(values) if values else None))
        for rank in ranks:
            rank.logged |= call.purpose == "row"
            rank.todo.pop(0)


def run_row(logger: EpochLogger, row: str, seen: list[Any]) -> None:
    """Do one row with a real logger, and note what it shows."""
    for batch, logged, asked in re.findall(r"(\[[AB]*\])|([AB])|([ab])", row):
        means: dict[str, Any] = {}
        if batch:
            with logger.batch():
                for key in batch[1:-1]:
                    logger.log_tabular(key, average_only=True)
            means = {key: logger.log_current_row[key] for key in batch[1:-1]}
        elif logged:
            logger.log_tabular(logged, average_only=True)
            means = {logged: logger.log_current_row[logged]}
        else:
            means = {asked.upper(): logger.get_stats(asked.upper())[0]}
        seen += [(key, None if np.isnan(mean) else mean) for key, mean in means.items()]


def run_program(comm: MemoryComm, program: Sequence[str], place: int) -> list[Any]:
    logger = EpochLogger(comm=comm, quiet=True)
    seen: list[Any] = []
    for number, row in enumerate(program):
        logger.store(A=stored(place, number, "A"), B=stored(place, number, "B"))
        try:
            run_row(logger, row, seen)
        except KeyMismatchError as error:
            seen.append(("error", str(error)))
        except NobodyComes:
            seen.append(("wait", notices[threading.get_ident()]()))
            return seen
        logger.dump_tabular()
    return seen


def run_programs(programs: Sequence[Sequence[str]]) -> list[Any]:
    """What each rank sees. None calls itself 0, which would make a folder for each program."""
    return run_ranks(
        len(programs),
        lambda comm: run_program(comm, programs[comm.rank - 1], comm.rank - 1),
        range(1, len(programs) + 1),
    )


notices: dict[int, Callable[[], str]] = {}


class RecordingWatchdog:
    """Keeps what the watchdog would say if a wait lasted, where it can be read after the wait."""

    def begin(self, describe: Callable[[], str]) -> None:
        notices[threading.get_ident()] = describe

    def end(self) -> None:
        pass


@pytest.fixture
def recorded_notices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "watchdog", RecordingWatchdog())


@pytest.mark.parametrize("first", PROGRAMS, ids="|".join)
def test_any_two_programs_get_right_numbers_or_one_error_or_an_explained_wait(
    first: tuple[str, str], recorded_notices: None
) -> None:
    for second in PROGRAMS[: PROGRAMS.index(first) + 1]:
        programs = (first, second)
        outcomes = run_programs(programs)
        wanted = expected(programs)
        for outcome, want in zip(outcomes, wanted, strict=True):
            assert isinstance(outcome, list), (programs, outcome)
            assert len(outcome) == len(want), (programs, outcome, want)
            for (what, value), (wanted_what, wanted_value) in zip(outcome, want, strict=True):
                assert what == wanted_what, (programs, outcome, want)
                if what in ("A", "B"):
                    assert value == pytest.approx(wanted_value, rel=1e-14), (programs, outcome, want)
        errors = [[text for what, text in outcome if what == "error"] for outcome in outcomes]
        assert errors[0] == errors[1], programs
        waits = [text for outcome in outcomes for what, text in outcome if what == "wait"]
        notice = re.compile(r"rank \d of 2 is in (log_tabular|get_stats|a batch)\b.* in row \d of ")
        assert all(map(notice.match, waits)), (programs, waits)


def test_ranks_that_are_rows_apart_after_an_error_meet_in_the_next_row(recorded_notices: None) -> None:
    # Rank 0 is in its second row when rank 1 is still in its first.
    programs = (("A", "A", "AB"), ("AB", "AB", "[B]"))
    outcomes = run_programs(programs)
    assert [what for what, _ in outcomes[0]] == ["A", "error", "A", "B"]
    means = [(key, (stored(0, 2, key) + stored(1, 1, key)) / 2) for key in "AB"]
    assert outcomes[0][2:] == outcomes[1][2:4] == means


# -- one call
# ------------------------------------------------------------------------------------------------------


def items(*keys: str, values: Sequence[float] = (1.0,)) -> list[tuple[str, Moments]]:
    return [(key, Moments(list(values))) for key in keys]


def names(n: int) -> list[str]:
    return [f"key{i}" for i in range(n)]


@pytest.mark.parametrize(
    ("keys", "collectives"), [(0, 1), (1, 1), (20, 1), (64, 1), (65, 2), (128, 2), (129, 3), (200, 4)]
)
def test_a_call_makes_one_collective_and_another_for_each_64_keys_after_the_first(
    keys: int, collectives: int
) -> None:
    def program(comm: MemoryComm) -> tuple[int, list[Any]]:
        own = [(key, Moments([comm.rank, i])) for i, key in enumerate(names(keys))]
        results = Channel(comm).reduce("row", 0, own)
        return comm.reductions, [result.moments.to_bytes() for result in results]

    outcomes = run_ranks(3, program)
    want = [Moments([rank for r in range(3) for rank in (r, i)]) for i in range(keys)]
    assert [n for n, _ in outcomes] == [collectives] * 3
    assert outcomes[0] == outcomes[1] == outcomes[2]
    got = [Moments.from_bytes(state) for state in outcomes[0][1]]
    assert [m.count for m in got] == [6] * keys
    assert [m.mean for m in got] == pytest.approx([m.mean for m in want], rel=1e-15)
    assert [m.std() for m in got] == pytest.approx([m.std() for m in want], rel=1e-15)


def test_one_rank_alone_makes_no_collective() -> None:
    def program(comm: MemoryComm) -> list[float]:
        results = Channel(comm).reduce("row", 0, items("A", values=[1.0, 3.0]))
        assert comm.reductions == 0
        return [result.moments.mean for result in results]

    assert run_ranks(1, program) == [[2.0]]


def mismatch(*calls: tuple[str, int, list[str]]) -> str:
    """The text of the error where each rank makes one of these calls; all ranks must have the same."""

    def program(comm: MemoryComm) -> str:
        purpose, row, keys = calls[comm.rank]
        with pytest.raises(KeyMismatchError) as caught:
            Channel(comm).reduce(purpose, row, items(*keys))
        return str(caught.value)

    outcomes = run_ranks(len(calls), program)
    assert len(set(map(str, outcomes))) == 1, outcomes
    return str(outcomes[0])


def test_d2_the_error_names_the_call_of_each_rank_and_the_way_out() -> None:
    text = mismatch(("row", 3, ["EpRet"]), ("row", 3, ["EpLen"]), ("row", 3, ["EpRet"]))
    assert "ranks 0, 2: log_tabular('EpRet') in row 3 of logger 0" in text
    assert "rank 1: log_tabular('EpLen') in row 3 of logger 0" in text
    assert "log_tabular(key, value)" in text


def test_the_same_key_in_different_rows_does_not_match() -> None:
    text = mismatch(("get_stats", 0, ["KL"]), ("row", 0, ["KL"]))
    assert "rank 0: get_stats('KL') in row 0" in text
    assert "rank 1: log_tabular('KL') in row 0" in text

    def program(comm: MemoryComm) -> None:
        channel = Channel(comm)
        channel.reduce("row", 0, items("A"))
        with pytest.raises(KeyMismatchError, match=r"rank 0: log_tabular\('A'\) in row 1 of logger 0"):
            channel.reduce("row", 1 + comm.rank, items("A"))

    assert run_ranks(2, program) == [None, None]


@pytest.mark.parametrize(("few", "many"), [(0, 1), (1, 2), (63, 64), (64, 65), (1, 200), (0, 64)])
def test_unequal_numbers_of_keys_are_an_error_on_all_ranks(few: int, many: int) -> None:
    text = mismatch(("row", 0, names(few)), ("row", 0, names(many)))
    names_of = {0: "a batch without keys", 1: "log_tabular('key0')"}
    assert f"rank 0: {names_of.get(few, f'a batch of {few} keys (')}" in text
    assert f"rank 1: {names_of.get(many, f'a batch of {many} keys (')}" in text


def test_of_many_keys_the_error_shows_those_that_differ() -> None:
    text = mismatch(("row", 0, [*names(100), "extra"]), ("row", 0, names(100)), ("row", 0, names(100)))
    assert "rank 0: a batch of 101 keys ('extra', and the 100 of all ranks)" in text
    assert len(text) < 2000


def test_of_many_keys_in_another_order_the_error_shows_where_it_begins() -> None:
    swapped = [*names(70), "key71", "key70", *names(100)[72:]]
    text = mismatch(("row", 0, names(100)), ("row", 0, swapped))
    assert "a batch of 100 keys ('key70', 'key71', " in text
    assert "a batch of 100 keys ('key71', 'key70', " in text
    assert "after 70 that are alike" in text


def test_the_error_stays_short_where_every_rank_is_somewhere_else() -> None:
    text = mismatch(*[("row", 0, [f"key{rank}"]) for rank in range(12)])
    assert "rank 7: log_tabular('key7')" in text
    assert "and 4 more different calls" in text


def test_a_key_may_hold_any_characters() -> None:
    def program(comm: MemoryComm) -> list[float]:
        return [r.moments.mean for r in Channel(comm).reduce("row", 0, items("", "回报 é", "\udc80", "a\0b"))]

    assert run_ranks(2, program) == [[1.0] * 4] * 2
    assert "rank 1: log_tabular('a\\x00c')" in mismatch(("row", 0, ["a\0b"]), ("row", 0, ["a\0c"]))


# -- numbers of loggers
# --------------------------------------------------------------------------------------------


def test_a_logger_that_one_rank_has_for_itself_takes_no_number() -> None:
    def program(comm: MemoryComm) -> list[float]:
        if comm.rank == 0:
            Channel(comm)
        first, second = Channel(comm), Channel(comm)
        both = [first.reduce("row", 0, items("A"))[0], second.reduce("row", 0, items("A"))[0]]
        with pytest.raises(KeyMismatchError, match=r"rank 0: .* of logger 1"):
            (second if comm.rank == 0 else first).reduce("row", 1, items("A"))
        return [result.moments.count for result in both]

    assert run_ranks(2, program) == [[2, 2], [2, 2]]


def test_loggers_whose_first_calls_cross_find_each_other_again() -> None:
    def program(comm: MemoryComm) -> list[int]:
        train, test = Channel(comm), Channel(comm)
        with pytest.raises(KeyMismatchError):
            (train if comm.rank == 0 else test).reduce("row", 0, items("Train" if comm.rank == 0 else "Test"))
        counts = []
        for row in (1, 2):
            counts.append(train.reduce("row", row, items("Train"))[0].moments.count)
            counts.append(test.reduce("row", row - (comm.rank == 0), items("Test"))[0].moments.count)
        return counts

    assert run_ranks(2, program) == [[2] * 4] * 2


# -- what the results say
# ------------------------------------------------------------------------------------------


def results_of(*values: Sequence[float]) -> list[Any]:
    """The Result that each rank gets where the ranks have these values."""
    outcomes = run_ranks(
        len(values), lambda comm: Channel(comm).reduce("row", 0, items("A", values=values[comm.rank]))[0]
    )
    assert all(isinstance(outcome, exchange.Result) for outcome in outcomes), outcomes
    return outcomes


def test_info_tells_which_rank_is_far_off() -> None:
    info = results_of([1.0, 3.0], [], [7.0], [-4.0])[2].info
    assert (info.count, info.nan_count, info.ranks_with_values) == (4, 0, 3)
    assert (info.min_mean, info.min_mean_rank, info.max_mean, info.max_mean_rank) == (-4.0, 3, 7.0, 2)


def test_info_of_equal_ranks_names_the_lowest() -> None:
    info = results_of([], [2.0], [2.0, 2.0])[0].info
    assert (info.min_mean_rank, info.max_mean_rank) == (1, 1)


def test_a11_nan_on_one_rank_makes_all_nan_and_info_finds_the_rank() -> None:
    for result in results_of([1.0, 9.0], [np.nan, 2.0], [0.0]):
        moments, info = result.moments, result.info
        assert np.isnan([moments.mean, moments.std(), moments.min, moments.max]).all()
        assert (info.count, info.nan_count) == (5, 1)
        assert np.isnan([info.min_mean, info.max_mean]).all()
        assert (info.min_mean_rank, info.max_mean_rank) == (1, 1)


def test_info_without_values_on_any_rank_names_none() -> None:
    info = results_of([], [])[1].info
    assert (info.count, info.ranks_with_values, info.min_mean_rank, info.max_mean_rank) == (0, 0, None, None)
    assert np.isnan([info.min_mean, info.max_mean]).all()


def test_info_compares_by_value_reads_well_and_pickles() -> None:
    first, second = (result.info for result in results_of([np.nan], [1.0]))
    assert first == second
    assert pickle.loads(pickle.dumps(first)) == first
    assert first != results_of([1.0], [1.0])[0].info
    assert repr(first).startswith("RowInfo(count=2, nan_count=1, ranks_with_values=2, min_mean=nan, ")


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_data_cut_over_ranks_gives_what_one_process_gives(ranks: int) -> None:
    data = np.random.default_rng(ranks).normal(3.0, size=10_007)
    cuts = np.sort(np.random.default_rng(7).integers(0, len(data), ranks - 1))
    results = results_of(*[part.tolist() for part in np.split(data, cuts)])
    assert len({result.moments.to_bytes() for result in results}) == 1
    moments, whole = results[0].moments, Moments(data)
    assert (moments.count, moments.min, moments.max) == (len(data), data.min(), data.max())
    assert moments.mean == pytest.approx(whole.mean, rel=1e-14)
    assert moments.std() == pytest.approx(whole.std(), rel=1e-14)


# -- rows
# ----------------------------------------------------------------------------------------------------------


def packed(keys: int, rank: int = 0) -> Message:
    message = Message()
    message.pack(items(*names(keys)), 0, 0, 0, "row", rank)
    return message


def test_any_part_of_a_message_can_be_merged_by_itself() -> None:
    whole, parts = bytearray(packed(20, 1)), bytearray(packed(20, 1))
    lower = memoryview(packed(20, 0))
    merge_rows(lower, whole)
    for start in range(0, len(parts), 5 * ROW_SIZE):
        stop = start + 5 * ROW_SIZE
        merge_rows(lower[start:stop], memoryview(parts)[start:stop])
    assert whole == parts


def test_rows_of_different_kinds_never_agree_whatever_is_merged_later() -> None:
    message = packed(3)
    merge_rows(packed(2), message)
    merge_rows(packed(3), message)
    assert not message.agrees(3)
    assert not message.agrees(2)


def test_buffers_that_are_no_equal_numbers_of_rows_are_refused() -> None:
    for lower, higher in [(ROW_SIZE, 2 * ROW_SIZE), (ROW_SIZE - 1, ROW_SIZE - 1)]:
        with pytest.raises(ValueError, match="rows"):
            merge_rows(bytes(lower), bytearray(higher))
    with pytest.raises(BufferError):
        merge_rows(bytes(ROW_SIZE), bytes(ROW_SIZE))


@pytest.mark.parametrize("start", [-3, -1, 3, 70])
def test_a_message_is_not_packed_from_beyond_its_keys(start: int) -> None:
    items = [("A", Moments([1.0])), ("B", Moments([2.0]))]
    with pytest.raises(ValueError, match="no round"):
        Message().pack(items, start, 0, 0, "row", 0)
