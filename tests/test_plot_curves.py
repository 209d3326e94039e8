"""The arithmetic of curves: smoothing, places on x, and bands over runs."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

import spinstat.curves
from spinstat.curves import aggregate, points, smooth

NAN = float("nan")


def same(left: object, right: object) -> bool:
    return bool(np.allclose(np.asarray(left, float), np.asarray(right, float), 1e-12, 1e-12, equal_nan=True))


@pytest.mark.parametrize("length", [0, 1, 2, 3, 7, 20])
@pytest.mark.parametrize("window", [1, 2, 3, 4, 5, 8, 19, 20, 21, 100])
def test_smoothing_is_the_mean_of_the_neighbours_that_are_there(length: int, window: int) -> None:
    y = np.random.default_rng(length).normal(size=length)
    first = [max(at - window // 2, 0) for at in range(length)]
    expected = [y[low : at - window // 2 + window].mean() for at, low in enumerate(first)]
    assert same(smooth(y, window), expected)


def test_smoothing_leaves_a_constant_as_it_is_to_its_ends() -> None:
    assert smooth(np.full(9, 3.0), 4).tolist() == [3.0] * 9


def test_smoothing_neither_fills_gaps_nor_lets_them_spread() -> None:
    assert same(smooth(np.array([1, NAN, 3, 5, NAN, NAN]), 3), [1, NAN, 4, 4, NAN, NAN])


def test_points_are_in_the_order_of_x_and_the_last_row_counts_where_an_x_comes_again() -> None:
    x, y = points([0, 1, 2, 1, 2, 3, NAN], [0, 1, 2, 10, 20, 30, 99])
    assert (x.tolist(), y.tolist()) == ([0, 1, 2, 3], [0, 10, 20, 30])


def test_infinities_are_gaps() -> None:
    assert same(points([0, 1, 2], [1, np.inf, -np.inf])[1], [1, NAN, NAN])


def test_numbers_near_the_largest_give_a_line_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        curve = aggregate([points([0, 1], [1e200, 1]), points([0, 1], [3e200, 3])])
    assert curve.line.tolist() == [2e200, 2]
    assert (curve.low[1], curve.high[1]) == (1, 3)


def test_a_gap_of_one_run_leaves_the_others() -> None:
    curve = aggregate([points([0, 1, 2], [1, NAN, 3]), points([0, 1, 2], [3, 4, NAN])])
    assert same(curve.line, [2, 4, 3])
    assert same(curve.low, [1, NAN, NAN])
    assert same(curve.high, [3, NAN, NAN])
    assert curve.runs.tolist() == [2, 1, 1]


def test_nothing_is_interpolated_across_a_gap_or_beyond_an_end() -> None:
    runs = [points([0, 2, 4, 6], [0, 2, NAN, 6]), points([-1, 1, 3, 5, 7], [9, 9, 9, 9, 9])]
    curve = aggregate(runs)
    assert curve.x.tolist() == [-1, 0, 1, 2, 3, 4, 5, 6, 7]
    assert curve.runs.tolist() == [1, 2, 2, 2, 1, 1, 1, 2, 1]
    assert same(curve.line, [9, 4.5, 5, 5.5, 9, 9, 9, 7.5, 9])


def test_no_runs_and_runs_without_points_give_an_empty_curve() -> None:
    assert aggregate([]).x.tolist() == []
    assert aggregate([points([], []), points([], [])]).line.tolist() == []
    curve = aggregate([points([], []), points([1], [2])])
    assert (curve.line.tolist(), curve.runs.tolist()) == ([2], [1])


@pytest.mark.parametrize("estimator", ["mean", "median"])
def test_the_bootstrap_band_is_that_of_all_resamplings(estimator: str) -> None:
    values = np.random.default_rng(3).normal(size=(5, 4))
    curve = aggregate([points(range(4), row) for row in values], estimator, "bootstrap")
    function = getattr(np, estimator)
    every = np.array([function(values[list(rows)], axis=0) for rows in itertools.product(range(5), repeat=5)])
    # 1,000 resamplings place a quantile of 2.5 % within 1.5 % of where it is among all of them.
    for ends, level in ((curve.low, 0.025), (curve.high, 0.975)):
        least, most = np.quantile(every, [max(level - 0.015, 0), min(level + 0.015, 1)], axis=0)
        assert (least <= ends).all()
        assert (ends <= most).all()


def test_the_bootstrap_band_does_not_depend_on_how_many_places_are_held_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runs = [points(range(50), row) for row in np.random.default_rng(0).normal(size=(3, 50))]
    whole = aggregate(runs, band="bootstrap")
    monkeypatch.setattr(spinstat.curves, "CHUNK", 3000 * 7)
    parts = aggregate(runs, band="bootstrap")
    assert np.array_equal(whole.low, parts.low)
    assert np.array_equal(whole.high, parts.high)


def test_of_very_many_places_some_are_left_out_and_all_ends_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spinstat.curves, "MAX_PLACES", 1000)
    x = np.arange(5000.0)
    curve = aggregate([points(x + 0.25, x), points(x[:-7] + 0.75, x[:-7])])
    assert len(curve.x) < 1100
    assert {0.25, 0.75, 4999.25, 4992.75} <= set(curve.x.tolist())


def test_G2_ten_runs_of_a_thousand_rows_give_no_warning() -> None:
    runs = [points(range(1000), row) for row in np.random.default_rng(0).normal(size=(10, 1000))]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        curve = aggregate(runs, band="bootstrap")
    assert (curve.low < curve.line).all()
    assert (curve.line < curve.high).all()
