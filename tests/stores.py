"""What the tests of the store share: a row of statistics of some values, and their exact counterparts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from oracle import assert_moments, exact

from spinstat import EpochLogger, Moments
from spinstat._core import EpochStore


def row_of(logger: EpochLogger, *values: Any) -> tuple[float, float, float, float]:
    """Store each value under X and log X: mean, std, max and min from the row."""
    for value in values:
        logger.store(X=value)
    return logged(logger, "X")


def logged(logger: EpochLogger, key: str) -> tuple[float, float, float, float]:
    """Log a key: mean, std, max and min from the row, which is dumped."""
    logger.log_tabular(key, with_min_and_max=True)
    row = dict(logger.log_current_row)
    logger.dump_tabular()
    return tuple(row[part + key] for part in ("Average", "Std", "Max", "Min"))  # type: ignore[return-value]


def numbers(values: Iterable[Any]) -> list[float]:
    """All elements of stored values in order, arrays flattened."""
    return [x for value in values for x in np.asarray(value, np.float64).ravel().tolist()]


def assert_holds(store: EpochStore, key: str, values: Iterable[Any]) -> None:
    """Fail unless the statistics of a key are those of the values, which stay stored."""
    assert_moments(store._peek(key), exact(numbers(values)), merges=100)


def equal(moments: Moments, values: Iterable[Any]) -> bool:
    """Whether count, min and max are those of the values, and mean and std to 12 digits."""
    x = np.array(numbers(values))
    if not x.size:
        return moments.count == 0
    scale = np.abs(x).max()
    near = np.isclose([moments.mean, moments.std()], [x.mean(), x.std()], rtol=1e-12, atol=1e-12 * scale)
    return (moments.count, moments.min, moments.max) == (x.size, x.min(), x.max()) and bool(near.all())
