"""The numbers in what a logger keeps of the values stored under a key."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._arrays import as_real, blocks, has_array, is_tensor
from ._core import Moments, StoredValues

Array = NDArray[Any]

#: A mean is a sum, which is rounded along the way.
_ROUNDING = 1e-9


def elements(values: Iterable[Any]) -> Array:
    """All numbers in stored values, by element whatever their shapes, as a new float64 array; -0.0 as 0.0.

    Args:
        values: the values of a key: scalars, arrays, tensors, lists of them.
    """
    parts: list[Array] = []
    numbers: list[float] = []
    if not (isinstance(values, (StoredValues, list, tuple, np.ndarray)) or is_tensor(values)):
        values = list(values)  # whatever was assigned to the key
    _collect(values, parts, numbers)
    parts.append(np.array(numbers, np.float64))
    with np.errstate(over="ignore"):  # a longdouble beyond float64 counts as an infinity
        joined = np.concatenate(parts, dtype=np.float64, casting="unsafe")
    joined += 0.0  # sorting would leave 0.0 and -0.0 in an order that depends on the processor
    return joined


def _collect(value: Any, parts: list[Array], numbers: list[float]) -> None:
    """Add the numbers in a stored value to the arrays or to the single ones; read as the store reads it."""
    if type(value) is float:
        numbers.append(value)
    elif isinstance(value, StoredValues):
        for part in value._parts():
            _collect(part, parts, numbers)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _collect(item, parts, numbers)
    elif isinstance(value, np.generic):
        numbers.append(float(value))
    elif is_tensor(value) or isinstance(value, memoryview) or has_array(value):
        array, mask = as_real(value)
        if mask is None and array.dtype.kind in "biuf":
            parts.append(array.ravel())
        else:
            parts.extend(block.copy() for block in blocks(array, mask))
    elif hasattr(value, "__float__") or hasattr(value, "__index__"):
        numbers.append(float(value))
    else:  # a range, a deque
        for item in value:
            _collect(item, parts, numbers)


def missing(moments: Moments, values: Array) -> str:
    """What to say where the values are not those that the moments were taken of; "" where they are."""
    found = Moments(values)
    if found.count == moments.count == 0:
        return ""
    if found.count < moments.count:
        return (
            f"{moments.count - found.count} of {moments.count} values are not at hand: those of tensors on a "
            "GPU are not kept (store x.cpu() to have them), and a stored list may have become shorter since"
        )
    extremes = (found.count, found.nan_count, found.min, found.max)
    scale = max(abs(moments.min), abs(moments.max))
    if extremes == (moments.count, moments.nan_count, moments.min, moments.max) and (
        not math.isfinite(scale) or abs(found.mean - moments.mean) <= _ROUNDING * scale + sys.float_info.min
    ):
        return ""
    return "what was stored has been changed since: arrays and lists are kept as they are (store a copy)"
