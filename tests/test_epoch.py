"""EpochLogger: from stored values to the columns of a row, on one rank and on several."""

from __future__ import annotations

import copy
import gc
import math
import pickle
import warnings
import weakref
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from rows import content

from spinstat import EpochLogger


def statistics(output_dir: str, *values: Any) -> tuple[float, ...]:
    """(mean, std, max, min) in the row after these values were stored."""
    logger = EpochLogger(output_dir, quiet=True)
    for value in values:
        logger.store(X=value)
    logger.log_tabular("X", with_min_and_max=True)
    assert list(logger.log_current_row) == ["AverageX", "StdX", "MaxX", "MinX"]
    return tuple(logger.log_current_row.values())  # type: ignore[arg-type]


class TestColumns:
    @pytest.mark.parametrize(
        ("options", "columns"),
        [
            ({}, {"AverageX": 2.0, "StdX": 1.0}),
            ({"average_only": True}, {"X": 2.0}),
            ({"with_min_and_max": True}, {"AverageX": 2.0, "StdX": 1.0, "MaxX": 3.0, "MinX": 1.0}),
            ({"with_min_and_max": True, "average_only": True}, {"X": 2.0, "MaxX": 3.0, "MinX": 1.0}),
        ],
    )
    def test_the_options_choose_them(
        self, output_dir: str, options: dict[str, bool], columns: dict[str, float]
    ) -> None:
        logger = EpochLogger(output_dir)
        logger.store(X=1.0)
        logger.store(X=3.0)
        logger.log_tabular("X", **options)
        assert logger.log_current_row == columns
        assert list(logger.log_current_row) == list(columns) == logger.log_headers

    def test_options_may_be_given_by_position(self, output_dir: str) -> None:
        logger = EpochLogger(output_dir)
        logger.store(X=1.0)
        logger.log_tabular("X", None, True, True)
        assert list(logger.log_current_row) == ["X", "MaxX", "MinX"]

    def test_an_explicit_value_wins_and_discards_what_is_stored(self, output_dir: str) -> None:
        logger = EpochLogger(output_dir)
        logger.store(A=1.0)
        logger.log_tabular("A", 99)
        assert logger.epoch_dict["A"] == []
        logger.dump_tabular()
        logger.store(A=5.0)
        logger.log_tabular("A", average_only=True)
        logger.dump_tabular()
        assert content(output_dir) == "A\n99\n5.0\n"

    def test_nothing_leaks_into_the_next_epoch(self, output_dir: str) -> None:
        logger = EpochLogger(output_dir)
        for epoch in range(3):
            for i in range(10):
                logger.store(X=10 * epoch + i)
            logger.log_tabular("X", with_min_and_max=True)
            logger.dump_tabular()
        rows = [line.split("\t") for line in content(output_dir).splitlines()[1:]]
        means, maxima, minima = ([float(row[column]) for row in rows] for column in (0, 2, 3))
        assert (means, maxima, minima) == ([4.5, 14.5, 24.5], [9, 19, 29], [0, 10, 20])

    def test_a_key_logged_twice_keeps_what_was_stored_in_between(self, output_dir: str) -> None:
        logger = EpochLogger(output_dir)
        logger.store(R=1.0)
        logger.log_tabular("R")
        logger.store(R=7.0)
        with pytest.raises(AssertionError, match="AverageR"):
            logger.log_tabular("R")
        logger.dump_tabular()
        logger.log_tabular("R", average_only=True)
        assert logger.log_current_row == {"R": 7.0}

    def test_a_new_key_with_new_keys_error_leaves_its_values(self, output_dir: str) -> None:
        logger = EpochLogger(output_dir, new_keys="error")
        logger.log_tabular("A", 1)
        logger.dump_tabular()
        logger.store(B=2.0)
        with pytest.raises(AssertionError, match="AverageB"):
            logger.log_tabular("B")
        assert logger.epoch_dict["B"] == [2.0]


class TestStored:
    """What counts as values; the arithmetic itself is tested with the moments."""

    @pytest.mark.parametrize(
        ("values", "mean", "std"),
        [
            pytest.param((np.array([1.0, 2.0]), 3.0), 2.0, math.sqrt(2 / 3), id="B1-array-then-scalar"),
            pytest.param((3.0, np.array([1.0, 2.0])), 2.0, math.sqrt(2 / 3), id="B1-scalar-then-array"),
            pytest.param((np.array(1.0), np.array([3.0])), 2.0, 1.0, id="B1-0d-then-1d"),
            pytest.param(([1, 2], [3]), 2.0, math.sqrt(2 / 3), id="B2-lists"),
            pytest.param((torch.tensor([1, 2]), torch.tensor([3])), 2.0, math.sqrt(2 / 3), id="B2-tensors"),
            pytest.param((Decimal("1.5"), Fraction(1, 2)), 1.0, 0.5, id="B8"),
            pytest.param((np.array([]), np.array([2.0])), 2.0, 0.0, id="B12"),
            pytest.param((np.array([1.0]), np.array([3.0])), 2.0, 1.0, id="B15"),
            pytest.param((np.array([1.0, 2.0]), np.array([3.0])), 2.0, math.sqrt(2 / 3), id="A15"),
            pytest.param(([1, 2], [3, 4]), 2.5, math.sqrt(1.25), id="A16-lists"),
            pytest.param((np.ones((2, 3)),), 1.0, 0.0, id="A16-array"),
            pytest.param((1e9, 1e9 + 1), 1e9 + 0.5, 0.5, id="A1"),
            pytest.param((5.0,), 5.0, 0.0, id="A18"),
        ],
    )
    def test_every_element_counts(
        self, output_dir: str, values: tuple[Any, ...], mean: float, std: float
    ) -> None:
        got = statistics(output_dir, *values)
        assert got[:2] == pytest.approx((mean, std), rel=1e-14, abs=0)

    def test_one_nan_is_nan_in_all_columns_a11(self, output_dir: str) -> None:
        assert all(map(math.isnan, statistics(output_dir, 1.0, float("nan"), 3.0)))

    @pytest.mark.parametrize(
        "value",
        [
            pytest.param(None, id="B7"),
            pytest.param("1.5", id="B8-text"),
            pytest.param(np.datetime64("2020-01-01"), id="B8-date"),
            pytest.param(1 + 2j, id="B10"),
            pytest.param(torch.empty((), device="meta"), id="B4"),
        ],
    )
    def test_what_is_no_number_is_refused_where_it_is_stored(self, output_dir: str, value: Any) -> None:
        logger = EpochLogger(output_dir)
        with pytest.raises(TypeError, match="X"):
            logger.store(Before=1.0, X=value)
        assert dict(logger.epoch_dict) == {}

    def test_statistics_see_the_values_at_the_time_of_the_store_b6(self, output_dir: str) -> None:
        logger = EpochLogger(output_dir)
        for _ in range(2):
            buffer = np.array([5.0, 6.0])
            logger.store(X=buffer)
            buffer[:] = 0
        logger.log_tabular("X")
        assert logger.log_current_row == {"AverageX": 5.5, "StdX": 0.5}

    def test_no_graph_is_kept_alive_b3(self, output_dir: str) -> None:
        logger = EpochLogger(output_dir)

        class Saved:
            """A tensor that the graph keeps for its backward pass."""

            def __init__(self, tensor: torch.Tensor) -> None:
                self.tensor = tensor
                graph.add(self)

        graph: weakref.WeakSet[Saved] = weakref.WeakSet()
        weight = torch.ones(3, requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(Saved, lambda saved: saved.tensor):
            loss = (weight * weight).sum()
        assert len(graph) > 0
        logger.store(Loss=loss)
        del loss
        gc.collect()
        assert len(graph) == 0
        logger.log_tabular("Loss", average_only=True)
        assert logger.log_current_row == {"Loss": 3.0}

    def test_any_text_is_a_key_b16(self, output_dir: str) -> None:
        logger = EpochLogger(output_dir)
        logger.store(**{"a b/c": 1.0, "ünï": 2.0, "": 3.0})
        logger.store({"self": 4.0, "data": 5.0}, more=6.0)
        for key in ("a b/c", "ünï", "", "self", "data", "more"):
            logger.log_tabular(key, average_only=True)
        assert list(logger.log_current_row.values()) == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]

    def test_epoch_dict_is_a_dict_of_lists_b17(self, output_dir: str) -> None:
        logger = EpochLogger(output_dir)
        logger.store(A=1.0, A2=2.0)
        logger.store(A=3.0)
        assert np.mean(logger.epoch_dict["A"]) == 2.0
        assert logger.epoch_dict["A"][-1] == 3.0
        assert list(logger.epoch_dict) == ["A", "A2"]
        assert copy.deepcopy(logger.epoch_dict) == pickle.loads(pickle.dumps(dict(logger.epoch_dict)))
        logger.epoch_dict["A"].append(5.0)
        logger.log_tabular("A", average_only=True)
        logger.epoch_dict = {"B": [10.0]}
        logger.epoch_dict["C"] = [1, 2]
        logger.log_tabular("B", average_only=True)
        logger.log_tabular("C", average_only=True)
        assert logger.log_current_row == {"A": 3.0, "B": 10.0, "C": 1.5}

    def test_without_kept_values_the_statistics_are_the_same(self, output_dir: str) -> None:
        logger = EpochLogger(output_dir, keep_values=False)
        for i in range(5):
            logger.store(X=i)
        with pytest.raises(ValueError, match="keep_values"):
            logger.epoch_dict["X"]
        logger.log_tabular("X", with_min_and_max=True)
        assert list(logger.log_current_row.values()) == pytest.approx([2.0, math.sqrt(2), 4.0, 0.0])


class TestEmpty:
    def test_a_key_never_stored_is_nan_with_a_warning_that_helps_c1(self, output_dir: str) -> None:
        logger = EpochLogger(output_dir)
        logger.store(EpRet=1.0, EpLen=2.0)
        with pytest.warns(UserWarning, match=r"'EpRett'.*EpRet, EpLen.*Did you mean 'EpRet'\?") as caught:
            logger.log_tabular("EpRett", with_min_and_max=True)
        assert len(caught) == 1
        assert list(logger.log_current_row) == ["AverageEpRett", "StdEpRett", "MaxEpRett", "MinEpRett"]
        assert all(math.isnan(value) for value in logger.log_current_row.values())  # type: ignore[arg-type]

    def test_a_key_logged_before_in_the_row_counts_as_having_values(self, output_dir: str) -> None:
        logger = EpochLogger(output_dir)
        logger.store(EpRet=1.0)
        logger.log_tabular("EpRet")
        with pytest.warns(UserWarning, match=r"Keys with values: EpRet\..*Did you mean 'EpRet'"):
            logger.log_tabular("epret")

    def test_an_epoch_without_values_keeps_the_columns_c1(self, output_dir: str) -> None:
        logger = EpochLogger(output_dir)
        logger.store(EpRet=1.0)
        logger.log_tabular("EpRet")
        logger.dump_tabular()
        with pytest.warns(UserWarning, match="'EpRet'"):
            logger.log_tabular("EpRet")
        logger.dump_tabular()
        logger.store(EpRet=2.0)
        logger.log_tabular("EpRet")
        logger.dump_tabular()
        assert content(output_dir) == "AverageEpRet\tStdEpRet\n1.0\t0.0\nnan\tnan\n2.0\t0.0\n"

    def test_empty_arrays_alone_are_no_values_b12(self, output_dir: str) -> None:
        with pytest.warns(UserWarning, match="'X'"):
            assert all(map(math.isnan, statistics(output_dir, np.array([]), torch.empty(0))))

    def test_numpy_does_not_warn_of_it(self, output_dir: str) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            with pytest.warns(UserWarning, match="'X'"):
                statistics(output_dir)

    def test_strict_keys_is_a_key_error_and_the_row_goes_on_c1(self, output_dir: str) -> None:
        logger = EpochLogger(output_dir, strict_keys=True)
        logger.store(EpRet=1.0)
        for call in (logger.log_tabular, logger.get_stats):
            with pytest.raises(KeyError, match=r"EpRett.*Did you mean 'EpRet'"):
                call("EpRett")
        logger.log_tabular("EpRet")
        logger.dump_tabular()
        assert content(output_dir) == "AverageEpRet\tStdEpRet\n1.0\t0.0\n"


class TestGetStats:
    def test_it_gives_mean_and_std_and_keeps_the_values(self, output_dir: str) -> None:
        logger = EpochLogger(output_dir)
        for value in (1.0, 2.0, 4.0):
            logger.store(KL=value)
        mean, std = logger.get_stats("KL")
        assert (mean, std) == pytest.approx((7 / 3, math.sqrt(14) / 3))
        logger.store(KL=9.0)
        assert logger.get_stats("KL")[0] == 4.0
        assert logger.get_stats("KL", with_min_and_max=True)[2:] == (1.0, 9.0)
        logger.log_tabular("KL", average_only=True)
        assert logger.log_current_row == {"KL": 4.0}

    def test_without_values_it_is_nan_with_a_warning_and_changes_nothing_c1(self, output_dir: str) -> None:
        logger = EpochLogger(output_dir)
        with pytest.warns(UserWarning, match="'nope'"):
            stats = logger.get_stats("nope", with_min_and_max=True)
        assert len(stats) == 4
        assert all(map(math.isnan, stats))
        assert dict(logger.epoch_dict) == {}
        assert logger.log_headers == []


class TestInfo:
    def test_it_tells_of_the_row_being_built_and_then_of_the_last_one(self, output_dir: str) -> None:
        logger = EpochLogger(output_dir)
        assert logger.last_row_info == {}
        logger.store(A=[1.0, float("nan")], B=2.0)
        logger.log_tabular("A")
        assert (logger.last_row_info["A"].count, logger.last_row_info["A"].nan_count) == (2, 1)
        logger.log_tabular("B")
        logger.dump_tabular()
        assert list(logger.last_row_info) == ["A", "B"]
        logger.store(B=3.0)
        logger.log_tabular("B")
        assert list(logger.last_row_info) == ["B"]


def test_a_logger_has_few_enough_attributes_for_store_to_be_found_quickly(output_dir: str) -> None:
    """CPython's quick method lookup ends at 30 instance attributes; users add some of their own."""
    logger = EpochLogger(output_dir, exp_name="x", keep_last=2)
    logger.save_config({"a": 1})
    for epoch in range(2):
        logger.store(X=1.0)
        logger.save_state({"epoch": epoch}, epoch)
        with logger.batch():
            logger.log_tabular("X")
        logger.dump_tabular()
    assert logger.last_checkpoint is not None
    logger.close()
    assert len(vars(logger)) <= 20


def test_assigned_values_that_are_never_logged_do_not_disturb_the_rows(output_dir: str) -> None:
    logger = EpochLogger(output_dir)
    logger.epoch_dict["notes"] = ["no number"]
    logger.store(X=1.0)
    logger.save_state({"a": 1})
    logger.log_tabular("X", average_only=True)
    logger.dump_tabular()
    assert content(output_dir) == "X\n1.0\n"
    with pytest.raises(TypeError, match="notes"):
        logger.log_tabular("notes")
