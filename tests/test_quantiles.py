"""Counts and quantiles in the row of one process, beside NumPy's."""

from __future__ import annotations

import math
import warnings
from array import array
from collections import deque
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from quantile_rows import Quiet, row_of

from spinstat import EpochLogger, _arrays
from spinstat.quantiles import between

QUARTILES = (0.0, 0.25, 0.5, 0.75, 1.0)
FINITE = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300)
FRACTION = st.one_of(st.floats(0.0, 1.0), st.sampled_from([0.05, 0.5, 0.95, 0.1, 0.9, 1 / 3]))


def quantiles_of(values: Iterable[Any], quantiles: Sequence[float] = QUARTILES) -> list[float]:
    return list(row_of(*values, quantiles=quantiles).values())[1:]


# -- what they are


@settings(deadline=None)
@given(st.lists(FINITE, min_size=1, max_size=60), st.lists(FRACTION, min_size=1, max_size=5, unique=True))
@example([0.1, 0.2, 0.3], [1 / 3, 0.7])
@example([5e-324, 1e300, -1e300], [0.123])
def test_quantiles_are_those_of_numpy_to_the_bit(values: list[float], quantiles: list[float]) -> None:
    assert quantiles_of(values, quantiles) == np.quantile(values, quantiles).tolist()


@pytest.mark.parametrize("n", [1, 2, 3, 31, 32, 33, 8191, 8192, 8193, 100_000])
def test_quantiles_of_any_number_of_scalars_are_those_of_numpy(n: int) -> None:
    values = np.random.default_rng(n).normal(size=n)
    asked = [0.0, 0.001, 0.05, 1 / 3, 0.5, 0.95, 0.999, 1.0]
    assert quantiles_of(values.tolist(), asked) == np.quantile(values, asked).tolist()


def test_they_come_in_the_order_in_which_they_are_asked_for() -> None:
    row = row_of(*range(101), quantiles=(0.95, 0.05, 0.5))
    assert row == {"X": 50.0, "Q95X": 95.0, "Q5X": 5.0, "Q50X": 50.0}
    assert all(type(value) is float for value in row.values())


@settings(deadline=None)
@given(
    st.lists(st.one_of(FINITE, st.just(math.inf), st.just(-math.inf)), min_size=1, max_size=12),
    st.integers(1, 20),
)
def test_infinities_are_sorted_in(values: list[float], n: int) -> None:
    """Exact fractions as the oracle: NumPy has NaN beside an infinity also where that has no part in it."""
    quantiles = [i / n for i in range(n + 1)]
    for quantile, found in zip(quantiles, quantiles_of(values, quantiles), strict=True):
        position = (len(values) - 1) * quantile
        low, high = sorted(values)[math.floor(position)], sorted(values)[math.ceil(position)]
        if low == high or position == math.floor(position):
            assert found == low
        elif math.isinf(low) and math.isinf(high):
            assert math.isnan(found)
        elif math.isinf(low) or math.isinf(high):
            assert found == low + high
        else:
            part = Fraction(position - math.floor(position))
            exact = Fraction(low) + (Fraction(high) - Fraction(low)) * part
            assert found == pytest.approx(float(exact), rel=1e-12, abs=1e-12 * max(-low, high))


def test_a_distance_beyond_float64_is_no_infinity() -> None:
    assert quantiles_of([-1.7e308, 1.7e308], (0.25, 0.5)) == [pytest.approx(-0.85e308, rel=1e-15), 0.0]
    assert between(-1.0, 1.0, 0.0) == -1.0


@pytest.mark.parametrize("others", [(), (1.0,), (math.inf, -math.inf)])
def test_any_nan_makes_all_of_them_nan(others: tuple[float, ...]) -> None:
    assert np.isnan(quantiles_of([math.nan, *others])).all()


def test_a_key_without_values_has_the_count_0_and_nan_for_quantiles() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # only rank 0 speaks of an empty key
        row = row_of(with_count=True, quantiles=(0.5,))
    assert row["CountX"] == 0 and math.isnan(row["Q50X"])
    row = row_of(np.array([]), with_count=True, quantiles=(0.5,))
    assert row["CountX"] == 0 and math.isnan(row["Q50X"])


def test_the_count_is_an_int_and_holds_values_that_are_not_finite() -> None:
    row = row_of(1.0, math.nan, [math.inf, 2.0], with_count=True)
    assert row["CountX"] == 4 and type(row["CountX"]) is int


def test_minus_zero_is_zero() -> None:
    for found in quantiles_of([0.0, -0.0, 0.0, -0.0, -1.0, 1.0], (0.3, 0.5, 0.6)):
        assert math.copysign(1.0, found) == 1.0


# -- of which values

KINDS: dict[str, list[Any]] = {
    "scalars of many types": [1, 2.5, True, np.float32(0.1), np.int8(-3), np.float16(7), np.longdouble(2)],
    "big ints": [2**70, -(2**64), 1],
    "an array of any shape": [np.arange(24.0).reshape(2, 3, 4)],
    "scalars between arrays": [1.0, np.ones(3), 5.0, 6.0, np.zeros((2, 2)), 9.0],
    "dtypes": [np.arange(5).astype(code) for code in "bBhHiIlLqQefdg?"],
    "byte-swapped and strided": [np.arange(9.0)[::-2], np.arange(4, dtype=">f4"), np.ones((3, 4)).T],
    "0-d and empty": [np.array(3.0), np.array([]), 4.0],
    "ragged lists": [[1, [2.5, (3,)]], (4, [])],
    "lists of arrays": [[np.ones(2), [np.zeros(3), 7.0]], deque([1, 2])],
    "tensors": [torch.arange(6.0).reshape(2, 3), torch.tensor(2.5), torch.ones(3, dtype=torch.int32)],
    "tensors with graphs": [torch.ones(3, requires_grad=True) * 2, [torch.ones(2, requires_grad=True)]],
    "buffers and ranges": [array("d", [1.0, 2.0]), memoryview(np.ones((2, 2))), range(4)],
    "numbers of other classes": [Fraction(1, 4), Fraction(3, 2)],
}


def flat(value: Any) -> list[float]:
    """The numbers in a value by plain Python: no code in common with what is tested."""
    if isinstance(value, torch.Tensor):
        return [float(x) for x in value.detach().double().flatten().tolist()]
    if isinstance(value, (memoryview, np.ndarray)):
        return [float(x) for x in np.asarray(value).astype(np.float64).flatten().tolist()]
    if isinstance(value, (list, tuple, deque, range, array)):
        return [x for item in value for x in flat(item)]
    return [float(value)]


@pytest.mark.parametrize("values", KINDS.values(), ids=KINDS)
def test_every_element_counts_whatever_holds_it(values: list[Any]) -> None:
    everything = flat(values)
    row = row_of(*values, with_count=True, quantiles=QUARTILES)
    assert row["CountX"] == len(everything)
    assert list(row.values())[2:] == np.quantile(everything, QUARTILES).tolist()


def test_bfloat16_and_masked_arrays_count_as_in_the_moments() -> None:
    assert quantiles_of([torch.tensor([1.0, 2.5, -3.0], dtype=torch.bfloat16)], (0.0, 0.5)) == [-3.0, 1.0]
    masked = np.ma.masked_array([1.0, 99.0, 3.0], mask=[False, True, False])
    assert quantiles_of([masked, 2.0], (0.5, 1.0)) == [2.0, 3.0]


@pytest.mark.parametrize("assigned", [[1.0, [2, 4]], (1, 2, 4), np.array([[1, 2], [4, 4]]), range(3), {3, 1}])
def test_values_assigned_to_epoch_dict_count(assigned: Any) -> None:
    logger = Quiet()
    logger.epoch_dict["X"] = assigned
    logger.store(X=9.0) if isinstance(assigned, list) else None
    logger.log_tabular("X", quantiles=(0.5,))
    everything = flat(list(assigned) if isinstance(assigned, set) else assigned)
    assert logger.log_current_row["Q50X"] == np.quantile(everything, 0.5)


def test_edits_of_the_list_count_and_each_epoch_begins_empty() -> None:
    logger = Quiet()
    for epoch in range(2):
        for i in range(10):
            logger.store(X=float(i + epoch))
        logger.epoch_dict["X"][0] = 100.0
        logger.epoch_dict["X"].append(np.array([7.0, 7.0]))
        logger.log_tabular("X", quantiles=(0.5, 1.0))
        values = [100.0, *(i + epoch for i in range(1, 10)), 7.0, 7.0]
        want = np.quantile(values, (0.5, 1.0)).tolist()
        assert [logger.log_current_row[c] for c in ("Q50X", "Q100X")] == want
        logger.dump_tabular()


def test_many_scalars_between_few_arrays_are_read_in_blocks() -> None:
    logger = Quiet()
    logger.store(X=np.zeros(3))
    for i in range(20_000):
        logger.store(X=i)
    logger.store(X=np.zeros(3))
    parts = logger.epoch_dict["X"]._parts()
    assert [len(part) for part in parts] == [3, 8192, 8192, 3616, 3, 0]
    logger.log_tabular("X", quantiles=(0.5,))
    assert logger.log_current_row["Q50X"] == np.quantile([*range(20_000), *[0] * 6], 0.5)


# -- of which there is nothing


def trouble_of(logger: EpochLogger) -> str:
    """What rank 0 says of the quantiles of X, which are nan; everything else is right."""
    with pytest.warns(UserWarning, match="'X'") as caught:
        logger.log_tabular("X", with_count=True, with_min_and_max=True, quantiles=(0.5,))
    assert len(caught) == 1 and math.isnan(logger.log_current_row["Q50X"])
    logger.dump_tabular()
    return str(caught[0].message)


def test_tensors_on_a_gpu_are_not_kept_and_the_warning_says_so(
    output_dir: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Tensors of float16 count as lying on a device here.
    monkeypatch.setattr(_arrays, "on_device", lambda x: x.dtype == torch.float16)
    logger = EpochLogger(output_dir, quiet=True)
    logger.store(X=torch.tensor([1.0, 2.0], dtype=torch.float16))
    logger.store(X=3.0, Y=torch.tensor([4.0]))
    text = trouble_of(logger)
    assert "2 of 3 values are not at hand" in text and "x.cpu()" in text
    logger.log_tabular("Y", quantiles=(0.5,))
    assert logger.log_current_row["Q50Y"] == 4.0


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU that torch can use")
def test_tensors_on_a_real_gpu_give_moments_and_no_quantiles(output_dir: str) -> None:
    logger = EpochLogger(output_dir, quiet=True)
    logger.store(X=torch.tensor([1.0, 2.0], device="cuda"))
    assert "2 of 2 values are not at hand" in trouble_of(logger)


@pytest.mark.parametrize("change", ["one element", "all", "shrink", "grow"])
def test_what_has_changed_since_it_was_stored_gives_nan_and_not_a_wrong_number(
    change: str, output_dir: str
) -> None:
    logger = EpochLogger(output_dir, quiet=True)
    stored: Any = np.arange(10.0) if change in ("one element", "all") else list(range(10))
    logger.store(X=stored)
    if change == "one element":
        stored[4] = 4.5
    elif change == "all":
        stored[:] = 1.0
    elif change == "shrink":
        stored.clear()
    else:
        stored.append(5)
    text = trouble_of(logger)
    assert "10 of 10 values" in text if change == "shrink" else "changed since" in text


def test_a_value_that_cannot_be_read_again_gives_nan_and_its_error(output_dir: str) -> None:
    class Once:
        def __init__(self) -> None:
            self.left = 1

        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            self.left -= 1
            if self.left < 0:
                raise RuntimeError("gone")
            return np.array([1.0, 2.0])

    logger = EpochLogger(output_dir, quiet=True)
    logger.store(X=Once())
    text = trouble_of(logger)
    assert "cannot be read again" in text and "gone" in text


@settings(deadline=None)
@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=50), st.integers(1, 3))
@example([5e-324] * 3, 2)
@example([1.7e308, 1.7e308, -1.7e308], 1)
def test_values_that_have_not_changed_are_never_taken_for_changed(values: list[float], cut: int) -> None:
    parts = [np.array(part) for part in np.array_split(values, cut)]
    found = quantiles_of([*parts, *values], (0.0, 1.0))
    assert found == [min(values), max(values)]


def test_means_of_the_smallest_numbers_may_be_a_whole_step_apart() -> None:
    parts = [np.array([1.5e-323]), np.array([2.5e-323, 5e-324, 2e-323, 2e-323])]
    assert quantiles_of(parts, (0.0, 0.5, 1.0)) == [5e-324, 2e-323, 2.5e-323]
