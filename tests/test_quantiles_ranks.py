"""Quantiles over several ranks: exact where all values fit, within a bound where not, alike on every rank."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_ranks import Meeting, MemoryComm, run_ranks

from spinstat import EpochLogger, exchange, quantiles
from spinstat.exchange import KeyMismatchError
from spinstat.quantiles import BUDGET, LEAST_SHARE

ASKED = (0.0, 0.05, 1 / 3, 0.5, 0.95, 1.0)


class CountingComm(MemoryComm):
    """Counts the gathers, and the numbers that this rank sends in each."""

    def __init__(self, comm: MemoryComm) -> None:
        super().__init__(comm._meeting, comm._place, comm.rank)
        self.gathers: list[int] = []

    def allgather(self, data: bytes) -> list[bytes]:
        self.gathers.append(len(data) // 8)
        return super().allgather(data)


def on_ranks(size: int, program: Callable[[CountingComm], Any]) -> list[Any]:
    """What a program returns on each rank; fails where one raises. None calls itself 0, which has files."""
    outcomes = run_ranks(size, lambda comm: program(CountingComm(comm)), range(1, size + 1))
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome
    return outcomes


def quantiles_of(*values: Any, asked: Sequence[float] = ASKED) -> list[float]:
    """The quantiles where the ranks have these values, which all ranks must find alike."""

    def program(comm: CountingComm) -> list[float]:
        logger = EpochLogger(comm=comm, quiet=True)
        logger.store(X=values[comm.rank - 1])
        logger.log_tabular("X", average_only=True, quantiles=asked)
        return [logger.log_current_row[column] for column in list(logger.log_current_row)[1:]]

    outcomes = on_ranks(len(values), program)
    assert len(set(map(repr, outcomes))) == 1, outcomes
    found: list[float] = outcomes[0]
    return found


# -- all values


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.floats(-1e300, 1e300), max_size=9), min_size=2, max_size=4).filter(any),
    st.lists(st.floats(0, 1), min_size=1, max_size=4, unique=True),
)
def test_values_cut_over_ranks_give_numpys_quantiles_of_all_to_the_bit(
    values: list[list[float]], asked: list[float]
) -> None:
    assert quantiles_of(*values, asked=asked) == np.quantile(np.concatenate(values), asked).tolist()


@pytest.mark.parametrize("ranks", [2, 3])
def test_as_many_values_as_fit_are_all_used_however_they_lie(ranks: int) -> None:
    data = np.random.default_rng(1).normal(size=BUDGET)
    cuts = np.sort(np.random.default_rng(2).integers(0, BUDGET, ranks - 1))
    assert quantiles_of(*np.split(data, cuts)) == np.quantile(data, ASKED).tolist()
    assert quantiles_of(*[data, *[[]] * (ranks - 1)]) == np.quantile(data, ASKED).tolist()


def test_ranks_without_values_or_without_the_key_join_in() -> None:
    def program(comm: CountingComm) -> list[float]:
        logger = EpochLogger(comm=comm, quiet=True)
        if comm.rank == 2:
            logger.store(X=[1.0, 2.0, 9.0])
        logger.log_tabular("X", average_only=True, with_count=True, quantiles=(0.5,))
        return list(logger.log_current_row.values())

    assert on_ranks(3, program) == [[4.0, 3, 2.0]] * 3


@pytest.mark.parametrize("ranks", [2, 3])
def test_a_nan_on_one_rank_makes_them_nan_on_all_without_a_gather(ranks: int) -> None:
    def program(comm: CountingComm) -> list[int]:
        logger = EpochLogger(comm=comm, quiet=True)
        logger.store(X=math.nan if comm.rank == 1 else 1.0)
        logger.log_tabular("X", with_count=True, quantiles=(0.5,))
        assert math.isnan(logger.log_current_row["Q50X"]) and logger.log_current_row["CountX"] == ranks
        return comm.gathers

    assert on_ranks(ranks, program) == [[]] * ranks


def test_a_key_empty_everywhere_is_nan_with_the_one_warning_of_an_empty_key(output_dir: str) -> None:
    def program(comm: MemoryComm) -> list[float]:
        logger = EpochLogger(output_dir, comm=comm, quiet=True)
        logger.log_tabular("X", with_count=True, quantiles=(0.5,))
        return list(logger.log_current_row.values())

    with pytest.warns(UserWarning, match="No rank has stored a value for 'X'") as caught:
        outcomes = run_ranks(2, program)
    assert len(caught) == 1
    assert repr(outcomes) == repr([[math.nan, math.nan, 0, math.nan]] * 2)


def test_infinities_of_different_ranks_are_sorted_in() -> None:
    assert repr(quantiles_of([-math.inf, 1.0], [2.0, math.inf], asked=(0, 0.25, 0.5, 0.6, 0.75, 1))) == repr(
        [-math.inf, -math.inf, 1.5, 1.7999999999999998, math.inf, math.inf]
    )


# -- a sample of more


def bounds(data: Any, quantile: float, ranks: int, budget: int) -> tuple[float, float]:
    """Between which of the sorted values a quantile must lie, as the documentation says."""
    ordered, n = np.sort(data), len(data)
    off = ranks * (math.ceil(n / budget) // 2)
    assert off < ranks * n / budget
    place = (n - 1) * quantile
    low, high = max(math.floor(place) - off, 0), min(math.floor(place) + 1 + off, n - 1)
    return float(ordered[low]), float(ordered[high])


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.integers(0, 150), min_size=2, max_size=5).filter(any),
    st.sampled_from(["apart", "alike", "ties"]),
    st.integers(0, 10**6),
    st.integers(1, 40),
)
def test_of_more_values_than_fit_each_quantile_is_within_the_bound(
    counts: list[int], how: str, seed: int, budget: int
) -> None:
    rng = np.random.default_rng(seed)
    values = [rng.normal(10.0 * rank if how == "apart" else 0.0, size=n) for rank, n in enumerate(counts)]
    if how == "ties":
        values = [np.round(each) + 0.0 for each in values]
    asked = [0.0, *np.unique(rng.uniform(size=6)), 1.0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quantiles, "BUDGET", budget)
        patch.setattr(quantiles, "LEAST_SHARE", 1)
        found = quantiles_of(*values, asked=asked)
        shuffled = quantiles_of(*values[::-1], asked=asked)
    data = np.concatenate(values)
    for quantile, value in zip(asked, found, strict=True):
        low, high = bounds(data, quantile, len(counts), max(budget, len(counts)))
        assert low <= value <= high, (quantile, low, value, high)
    assert (found[0], found[-1]) == (data.min(), data.max())
    assert found == sorted(found)
    assert found == shuffled, "the order of ranks matters"


def test_the_middle_of_each_block_stands_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantiles, "BUDGET", 12)
    monkeypatch.setattr(quantiles, "LEAST_SHARE", 1)
    # 113 values, so blocks of 10: 0 to 9, ..., and 3 that are left over: 110 to 112.
    places = [1, 9, 10, 57, 109, 110, 111]
    middles = [4.0, 4.0, 14.0, 54.0, 104.0, 111.0, 111.0]
    data = np.random.default_rng(5).permutation(113).astype(float)
    assert quantiles_of(data, [], asked=[place / 112 for place in places]) == pytest.approx(middles)
    assert quantiles_of([], data, asked=[0.0, 1.0]) == [0.0, 112.0]


def test_of_200_000_values_on_two_ranks_quantiles_are_right_to_a_few_places() -> None:
    rng = np.random.default_rng(3)
    values = [rng.exponential(size=150_000), rng.normal(size=50_000)]
    data = np.concatenate(values)
    for quantile, value in zip(ASKED, quantiles_of(*values), strict=True):
        low, high = bounds(data, quantile, 2, BUDGET)
        assert low <= value <= high
        assert np.searchsorted(np.sort(data), value) / len(data) == pytest.approx(quantile, abs=2 / BUDGET)


def test_one_rank_alone_uses_all_its_values_and_gathers_nothing() -> None:
    data = np.random.default_rng(4).normal(size=3 * BUDGET)

    def program(comm: CountingComm) -> list[float]:
        logger = EpochLogger(comm=comm, quiet=True)
        logger.store(X=data)
        logger.log_tabular("X", average_only=True, quantiles=ASKED)
        assert comm.gathers == [] and comm.reductions == 0
        return list(logger.log_current_row.values())[1:]

    assert on_ranks(1, program) == [np.quantile(data, ASKED).tolist()]


# -- what is sent


def sent(counts: Sequence[int], ranks: int, quantiles_too: bool = True) -> list[list[int]]:
    """The numbers that each rank sends in each gather of a batch; values lie on rank 1 and the last one."""

    def program(comm: CountingComm) -> list[int]:
        logger = EpochLogger(comm=comm, quiet=True)
        for i, count in enumerate(counts):
            share = {1: count - count // 3, ranks: count // 3}.get(comm.rank, 0)
            logger.store({f"key{i}": np.arange(share)})
        with logger.batch():
            for i in range(len(counts)):
                logger.log_tabular(f"key{i}", quantiles=(0.5,) if quantiles_too else ())
                logger.store(Other=1.0)
            logger.log_tabular("Other", with_count=True)
        assert comm.reductions == len(counts) // 64 + 1
        return comm.gathers

    return on_ranks(ranks, program)


def test_without_quantiles_nothing_is_gathered() -> None:
    assert sent([10, 100], 2, quantiles_too=False) == [[], []]


def test_a_batch_gathers_the_values_of_all_its_keys_at_once() -> None:
    heads = 2 * 20  # two numbers before those of each key
    assert sent([30] * 20, 3) == [[20 * 20 + heads], [heads], [20 * 10 + heads]]


def test_batches_of_more_than_a_round_of_keys_do_too() -> None:
    assert [len(gathers) for gathers in sent([3] * 130, 2)] == [1, 1]


@pytest.mark.parametrize("ranks", [2, 3])
def test_no_gather_has_more_than_the_budget_and_a_number_for_each_rank(ranks: int) -> None:
    counts = [BUDGET // 2, BUDGET // 2, 10, 300_001, 7, BUDGET, 1, BUDGET - 1, 1]
    of_ranks = sent(counts, ranks)
    assert len({len(gathers) for gathers in of_ranks}) == 1
    everyones = [sum(each) for each in zip(*of_ranks, strict=True)]
    assert len(everyones) == 7  # two halves together, five alone, 1 and BUDGET - 1 together
    heads = 2 * ranks * len(counts)
    assert all(numbers <= BUDGET + ranks + heads for numbers in everyones)


def test_with_very_many_ranks_each_has_a_share_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantiles, "BUDGET", 100)
    data = [np.arange(1000.0) + 1000 * rank for rank in range(4)]

    def program(comm: CountingComm) -> list[int]:
        logger = EpochLogger(comm=comm, quiet=True)
        logger.store(X=data[comm.rank - 1])
        logger.log_tabular("X", quantiles=(0.5,))
        return comm.gathers

    assert LEAST_SHARE == 64  # 4 ranks: 256, and every 16th of 4,000 values
    assert on_ranks(4, program) == [[63 + 2]] * 4


# -- trouble


def test_what_one_rank_lacks_is_nan_on_all_and_told_once_with_its_number(output_dir: str) -> None:
    def program(comm: MemoryComm) -> list[float]:
        logger = EpochLogger(output_dir, comm=comm, quiet=True)
        stored = np.arange(4.0)
        logger.store(X=stored, Y=1.0)
        if comm.rank == 1:
            stored[:] = 7.0
        with logger.batch():
            logger.log_tabular("X", average_only=True, quantiles=(0.5,))
            logger.log_tabular("Y", average_only=True, quantiles=(0.5,))
        return list(logger.log_current_row.values())

    with pytest.warns(UserWarning, match=r"quantiles of 'X' are nan: rank 1: .*changed since") as caught:
        outcomes = run_ranks(3, program)
    assert len(caught) == 1
    assert repr(outcomes) == repr([[1.5, math.nan, 1.0, 1.0]] * 3)


def test_without_kept_values_all_ranks_raise_and_nothing_changes() -> None:
    def program(comm: CountingComm) -> list[float]:
        logger = EpochLogger(comm=comm, quiet=True, keep_values=False)
        logger.store(X=float(comm.rank))
        with pytest.raises(ValueError, match="keep_values=True"):
            logger.log_tabular("X", quantiles=(0.5,))
        logger.log_tabular("X", average_only=True, with_count=True)
        return list(logger.log_current_row.values())

    assert on_ranks(2, program) == [[1.5, 2]] * 2


def test_where_one_rank_alone_keeps_no_values_all_raise_the_same_and_go_on() -> None:
    def program(comm: CountingComm) -> tuple[str, list[float]]:
        logger = EpochLogger(comm=comm, quiet=True, keep_values=comm.rank == 1)
        logger.store(X=float(comm.rank))
        with pytest.raises(KeyMismatchError) as caught:
            logger.log_tabular("X", quantiles=(0.5,))
        assert dict(logger.log_current_row) == {}
        logger.store(X=10.0 * comm.rank)
        logger.log_tabular("X", average_only=True)
        return str(caught.value), list(logger.log_current_row.values())

    first, second = on_ranks(2, program)
    assert first == second and first[1] == [15.0]
    assert "rank 1: refused log_tabular('X')" in first[0]  # of the ranks 0 and 1, here called 1 and 2


def test_quantiles_on_one_rank_alone_are_an_error_that_says_so() -> None:
    def program(comm: CountingComm) -> str:
        logger = EpochLogger(comm=comm, quiet=True)
        logger.store(X=1.0, Y=2.0)
        with pytest.raises(KeyMismatchError) as caught:
            logger.log_tabular("X", quantiles=(0.5,) if comm.rank == 1 else ())
        logger.store(X=1.0, Y=2.0)
        keys = r"3 keys \('Z', 'X'( with quantiles)?, 'Y'\)"
        with pytest.raises(KeyMismatchError, match=keys), logger.batch():
            logger.log_tabular("Z")
            logger.log_tabular("X", quantiles=(0.5,) if comm.rank == 1 else ())
            logger.log_tabular("Y")
        return str(caught.value)

    first, second = on_ranks(2, program)
    assert first == second
    assert "rank 0: log_tabular('X' with quantiles) in row 0" in first
    assert "rank 1: log_tabular('X') in row 0" in first
    assert "on all ranks, or on none" in first


@pytest.mark.parametrize("keys", [63, 64, 65, 130])
def test_of_many_keys_one_that_differs_is_noticed_before_anything_is_gathered(keys: int) -> None:
    def program(comm: CountingComm) -> int:
        logger = EpochLogger(comm=comm, quiet=True)
        for key in range(keys):
            logger.store({f"key{key}": 1.0})
        with pytest.raises(KeyMismatchError, match=f"'key{keys - 1}' with quantiles"), logger.batch():
            for key in range(keys):
                ask = key == 0 or (key == keys - 1 and comm.rank == 2)
                logger.log_tabular(f"key{key}", quantiles=(0.5,) if ask else ())
        return len(comm.gathers)

    assert on_ranks(2, program) == [1, 1]  # that of the error's text


def test_a_key_logged_twice_in_a_batch_with_and_without_quantiles() -> None:
    def program(comm: CountingComm) -> list[float]:
        logger = EpochLogger(comm=comm, quiet=True)
        with logger.batch():
            logger.store(X=float(comm.rank))
            logger.log_tabular("X", average_only=True)
            logger.store(X=10.0 * comm.rank)
            logger.log_tabular("X", quantiles=(0.5,))
        return list(logger.log_current_row.values())

    assert on_ranks(2, program) == [[1.5, 15.0, 5.0, 15.0]] * 2


def test_the_watchdog_watches_the_gather_and_names_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    class Recorder:
        """Which wait is going on, in a job of ranks of which only one is asked for it."""

        current: Callable[[], str] | None = None

        def begin(self, describe: Callable[[], str]) -> None:
            self.current = describe

        def end(self) -> None:
            self.current = None

    class AskingComm(MemoryComm):
        """A second rank that has what the first one has."""

        said = ""

        def __init__(self) -> None:
            super().__init__(Meeting(1), 0)
            self.rank, self.size = 1, 2

        def reduce(self, rows: Any) -> None:
            pass

        def allgather(self, data: bytes) -> list[bytes]:
            assert recorder.current is not None
            self.said = recorder.current()
            return [data, data]

    recorder = Recorder()
    monkeypatch.setattr(exchange, "watchdog", recorder)
    comm = AskingComm()
    logger = EpochLogger(comm=comm, quiet=True)
    logger.store(X=[1.0, 2.0])
    logger.log_tabular("X", quantiles=(0.25,))
    assert comm.said.startswith("rank 1 of 2 is in log_tabular('X' with quantiles) in row 0 of ")
    assert recorder.current is None


def test_rank_0_writes_them_and_warnings_are_few(output_dir: str) -> None:
    def program(comm: MemoryComm) -> Any:
        logger = EpochLogger(output_dir, comm=comm, quiet=True, batch=True)
        for epoch in range(3):
            logger.store(X=[comm.rank, epoch])
            logger.log_tabular("Epoch", epoch)
            logger.log_tabular("X", average_only=True, with_count=True, quantiles=(0.5, 1.0))
            logger.dump_tabular()
        return logger.last_row_info["X"]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        infos = run_ranks(2, program)
    assert infos[0] == infos[1] and infos[0].count == 4
    with open(f"{output_dir}/progress.txt") as file:
        assert file.read() == (
            "Epoch\tX\tCountX\tQ50X\tQ100X\n0\t0.25\t4\t0.0\t1.0\n1\t0.75\t4\t1.0\t1.0\n2\t1.25\t4\t1.5\t2.0\n"
        )
