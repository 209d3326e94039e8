"""Histograms of stored values: the same as NumPy's, in bounded memory."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
import torch
from sinks import Told

from spinstat import EpochLogger, histogram
from spinstat.histogram import Histogram, histogram_of

NEXT = float(np.nextafter(1.0, 2.0))


def check(found: Histogram | None, values: Any) -> None:
    counts, edges = np.histogram(values, histogram.BINS)
    assert found is not None
    assert (found.size, found.min, found.max) == (values.size, values.min(), values.max())
    assert found.sum == pytest.approx(values.sum(), rel=1e-12)
    assert found.sum_squares == pytest.approx((values**2).sum(), rel=1e-12)
    assert list(found.edges) == edges.tolist() and list(found.counts) == counts.tolist()


@pytest.mark.parametrize("shape", ["scalars", "arrays", "mixed", "one array", "list"])
def test_pieces_give_what_the_whole_gives(
    output_dir: str, monkeypatch: pytest.MonkeyPatch, shape: str
) -> None:
    monkeypatch.setattr(histogram, "PIECE", 7)
    monkeypatch.setattr(histogram, "WHOLE", 20)
    values = np.random.default_rng(3).normal(5.0, 2.0, 60)
    logger = EpochLogger(output_dir, quiet=True)
    parts: dict[str, list[Any]] = {
        "scalars": values.tolist(),
        "arrays": list(values.reshape(20, 3)),
        "mixed": [*values[:11].tolist(), values[11:].reshape(7, 7)],
        "one array": [values.reshape(3, 4, 5)],
        "list": [values.tolist()],
    }
    for part in parts[shape]:
        logger.store(X=part)
    check(histogram_of(logger.epoch_dict["X"], 60), values)
    logger.close()


def test_an_assigned_list_will_do() -> None:
    values = [1, 2.5, np.float32(3.0), [4.0, 5.0]]
    check(histogram_of(values, 5), np.array([1, 2.5, 3.0, 4.0, 5.0]))


def test_arrays_that_happen_to_be_as_many_as_their_elements_are_flattened() -> None:
    check(histogram_of([1.0, [], [2.0, 5.0]], 3), np.array([1.0, 2.0, 5.0]))
    check(histogram_of([[], [2.0, 5.0]], 2), np.array([2.0, 5.0]))


def test_masked_elements_do_not_count() -> None:
    masked = np.ma.masked_array([1.0, 9.0, 3.0], [False, True, False])
    check(histogram_of([2.0, masked], 3), np.array([2.0, 1.0, 3.0]))
    pair = np.ma.masked_array([1.0, 9.0], [False, True])
    check(histogram_of([pair, pair + 1], 2), np.array([1.0, 2.0]))


def test_values_that_cannot_be_drawn_are_a_warning_and_the_row_goes_on(output_dir: str) -> None:
    sink = Told()
    with EpochLogger(output_dir, quiet=True, sinks=[sink]) as logger:
        logger.epoch_dict["X"] = [torch.ones((), requires_grad=True), torch.ones((), requires_grad=True)]
        logger.store(Y=1.0)
        with pytest.warns(UserWarning, match="no histogram of 'X'"):
            logger.log_tabular("X", average_only=True)
        logger.log_tabular("Y", average_only=True)
        logger.dump_tabular()
    assert sink.rows[0].values == (1.0, 1.0) and list(sink.rows[0].histograms) == ["Y"]


@pytest.mark.parametrize("values", [[], [np.nan, np.inf], [-1.7e308, 1.7e308]])
def test_there_is_none_where_no_bins_can_be(values: list[float]) -> None:
    assert histogram_of(values, len(values)) is None


@pytest.mark.parametrize(
    ("values", "edges", "counts"),
    [([2.0, 2.0, np.nan], [2.0, 2.0], [2]), ([1.0, NEXT], [1.0, NEXT], [2])],
)
def test_values_too_close_for_bins_are_one_bin(
    values: list[float], edges: list[float], counts: list[int]
) -> None:
    found = histogram_of(values, len(values))
    assert found is not None and found.size == 2
    assert (found.edges, found.counts) == (edges, counts)


def test_twenty_million_values_need_little_memory(output_dir: str) -> None:
    logger = EpochLogger(output_dir, quiet=True)
    array = np.arange(1000, dtype=np.float32)
    for _ in range(20_000):
        logger.store(X=array)
    values = logger.epoch_dict["X"]
    tracemalloc.start()
    try:
        found = histogram_of(values, 20_000_000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found is not None and found.size == sum(found.counts) == 20_000_000
    assert peak < 32 << 20, f"{peak} bytes"
    logger.close()
