"""Calls of log_tabular with counts and quantiles: what is refused, which columns come, when they come."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from quantile_rows import Quiet, row_of

from spinstat import EpochLogger
from spinstat.quantiles import quantile_column

# -- what is refused


@pytest.mark.parametrize(
    "bad",
    [
        (-0.1,), (1.5,), (95,), (math.nan,), (math.inf,), ("0.5",), (None,), (True,), (0.5, 0.5), (0, -0.0),
        0.5, "0.5", (10**400,), (0.5, [0.9]), (0.1, np.float32(0.1)), np.array(0.5), (1j,),
    ],
)  # fmt: skip
@pytest.mark.parametrize("batch", [False, True])
def test_a_bad_quantile_is_a_value_error_at_the_call_and_nothing_changes(bad: Any, batch: bool) -> None:
    logger = Quiet(batch=batch)
    logger.store(X=1.0)
    with pytest.raises(ValueError, match="quantile"):
        logger.log_tabular("X", with_count=True, quantiles=bad)
    with pytest.raises(ValueError, match="quantile"):
        logger.log_tabular("Epoch", 1, quantiles=bad)
    assert logger._draft.cells == {} and logger.log_headers == []
    assert logger.epoch_dict["X"] == [1.0]
    logger.log_tabular("X", average_only=True, quantiles=(0.5,))
    logger.dump_tabular()
    assert logger.log_headers == ["X", "Q50X"]


@pytest.mark.parametrize("stored", [False, True])
def test_without_kept_values_quantiles_are_an_error_that_names_the_way_out(stored: bool) -> None:
    logger = Quiet(keep_values=False)
    if stored:
        logger.store(X=[1.0, 3.0])
    with pytest.raises(ValueError, match=r"'X'.*EpochLogger\(keep_values=True\)"):
        logger.log_tabular("X", quantiles=(0.5,))
    assert logger.log_current_row == {} and len(logger.epoch_dict) == stored
    logger.store(X=5.0)
    logger.log_tabular("X", with_count=True)
    assert logger.log_current_row["AverageX"] == (3.0 if stored else 5.0)
    assert logger.log_current_row["CountX"] == (3 if stored else 1)


def test_a_quantile_whose_column_is_taken_is_refused_and_nothing_changes() -> None:
    logger = Quiet()
    logger.store(X=1.0)
    logger.log_tabular("Q50X", 1)
    with pytest.raises(AssertionError, match="'Q50X' is set in this row already"):
        logger.log_tabular("X", quantiles=(0.5,))
    assert logger.epoch_dict["X"] == [1.0]


# -- columns


@pytest.mark.parametrize(
    ("quantile", "percentage"),
    [
        (0, "0"), (1, "100"), (0.5, "50"), (0.05, "5"), (0.07, "7"), (0.29, "29"), (0.025, "2.5"),
        (0.999, "99.9"), (1e-05, "0.001"), (0.57, "57"), (1 / 3, "33.33333333333333"),
        (0.1 + 0.2, "30.000000000000004"),
    ],
)  # fmt: skip
def test_a_column_has_the_percentage_in_its_shortest_exact_form(quantile: float, percentage: str) -> None:
    assert quantile_column("EpRet", float(quantile)) == f"Q{percentage}EpRet"
    assert list(row_of(1.0, quantiles=[quantile])) == ["X", f"Q{percentage}X"]


def test_every_integer_percentage_has_a_plain_name() -> None:
    row = row_of(1.0, quantiles=[i / 100 for i in range(101)])
    assert list(row)[1:] == [f"Q{i}X" for i in range(101)]


@pytest.mark.parametrize(
    "given",
    [np.array([0.05, 0.5]), np.array([0.05, 0.5], np.float32), [Fraction(1, 20), 0.5], iter((0.05, 0.5))],
)
def test_quantiles_may_come_as_any_real_numbers(given: Any) -> None:
    assert list(row_of(1.0, quantiles=given)) == ["X", "Q5X", "Q50X"]


@pytest.mark.parametrize("none", [None, (), []])
def test_there_may_be_no_quantiles(none: Any) -> None:
    assert list(row_of(1.0, quantiles=none)) == ["X"]


def test_the_columns_stand_in_a_fixed_order_and_in_the_file(output_dir: str) -> None:
    with EpochLogger(output_dir, quiet=True) as logger:
        for epoch in range(2):
            logger.store(X=[1.0, 3.0, 8.0])
            logger.log_tabular("X", with_min_and_max=True, with_count=True, quantiles=(0.5, 0.025))
            logger.log_tabular("Epoch", epoch)
            logger.dump_tabular()
    with open(f"{output_dir}/progress.txt") as file:
        header, *rows = file.read().splitlines()
    assert header == "AverageX\tStdX\tMaxX\tMinX\tCountX\tQ50X\tQ2.5X\tEpoch"
    assert rows[0].split("\t")[2:] == ["8.0", "1.0", "3", "3.0", "1.1", "0"]


@pytest.mark.parametrize("always", [False, True])
def test_in_a_batch_they_come_at_its_end(always: bool) -> None:
    logger = Quiet(batch=always)
    logger.store(X=[1.0, 3.0, 8.0], Y=2.0)
    with logger.batch():
        logger.log_tabular("X", average_only=True, quantiles=(0.5,))
        logger.log_tabular("Y", average_only=True, with_count=True)
        logger.store(X=100.0)  # of the next row
        with pytest.raises(RuntimeError, match="batch"):
            dict(logger.log_current_row)
    assert logger.log_current_row == {"X": 4.0, "Q50X": 3.0, "Y": 2.0, "CountY": 1}
    assert logger.last_row_info["X"].count == 3
    assert logger.epoch_dict["X"] == [100.0]


def test_strict_keys_is_a_key_error_with_quantiles_too() -> None:
    logger = Quiet(strict_keys=True)
    with pytest.raises(KeyError, match="'X'"):
        logger.log_tabular("X", quantiles=(0.5,))
    with pytest.raises(KeyError, match="'X'"), logger.batch():
        logger.log_tabular("X", quantiles=(0.5,))
    assert logger.log_current_row == {}


def test_a_subclass_that_knows_nothing_of_them_works_as_before() -> None:
    class Mine(Quiet):
        def log_tabular(
            self, key: str, val: Any = None, with_min_and_max: bool = False, average_only: bool = False
        ) -> None:
            super().log_tabular("My" + key, val, with_min_and_max, average_only)

    logger = Mine()
    logger.store(MyX=[1.0, 3.0])
    logger.log_tabular("X", None, True)
    logger.log_tabular("Epoch", 3)
    assert logger.log_current_row == {
        "AverageMyX": 2.0, "StdMyX": 1.0, "MaxMyX": 3.0, "MinMyX": 1.0, "MyEpoch": 3
    }  # fmt: skip


def test_get_stats_and_last_row_info_are_what_they_were() -> None:
    logger = Quiet()
    logger.store(X=[1.0, 3.0, math.nan])
    assert len(logger.get_stats("X", with_min_and_max=True)) == 4
    logger.log_tabular("X", quantiles=(0.5,))
    info = logger.last_row_info["X"]
    assert (info.count, info.nan_count, info.ranks_with_values) == (3, 1, 1)
