"""The elements of arrays and tensors as lists, or their class, shape and dtype where they are large.

NumPy, torch and TensorFlow are told apart by the classes that their modules hold; neither of the last two is
imported for it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any, Final

import numpy as np

from ._describe import clip, describe
from ._static import class_name, mro

MAX_ELEMENTS: Final = 1_000  # of an array that is written as a list
NO_ARRAY: Final = object()
# Not vars(), which makes a module load that importlib.util.LazyLoader has put off.
_module_dict: Callable[[Any], dict[str, Any]] = vars(ModuleType)["__dict__"].__get__


def elements(obj: Any) -> object:
    """Give the elements of an array or tensor as nested lists, its one value, or its summary.

    NO_ARRAY for everything else.
    """
    bases = mro(type(obj))
    if issubclass(type(obj), np.ndarray):
        array = np.ndarray.view(obj, np.ndarray)  # so that no method of a subclass is called
        masked = _is_any(bases, "numpy.ma", "MaskedArray")
        return _values_or_summary(obj, array.shape, array.dtype, lambda: _listed(obj if masked else array))
    try:
        if _is_any(bases, "torch", "Tensor"):
            return _values_or_summary(obj, obj.shape, obj.dtype, lambda: obj.detach().cpu().tolist())
        if _is_any(bases, "tensorflow", "Tensor", "Variable"):
            return _values_or_summary(
                obj, obj.shape, obj.dtype.name, lambda: _listed(np.asarray(obj.numpy()))
            )
    except Exception:  # a tensor of unknown shape, or of a class that redefines what was asked
        return describe(obj)
    return NO_ARRAY


def _is_any(bases: tuple[type, ...], module: str, *names: str) -> bool:
    """Whether a class of a module is among the bases. The module is not imported for this: then it is not."""
    found = sys.modules.get(module)
    if not issubclass(type(found), ModuleType):
        return False
    held = _module_dict(found)
    return any(held.get(name) is base for name in names for base in bases)


def _values_or_summary(
    array: object, lengths: Iterable[Any], dtype: object, values: Callable[[], object]
) -> object:
    """values(), or the class, shape and dtype of an array that is large or has no values to give."""
    shape = tuple(lengths)
    # Empty dimensions do not count: an array of shape (10**6, 0) would be a million lists.
    if None not in shape and math.prod(length for length in shape if length > 0) <= MAX_ELEMENTS:
        try:
            return values()
        except (
            Exception
        ) as error:  # a meta device, a graph: there are no values, and each library says so its way
            return f"{_summary(array, shape, dtype)}, values not available ({class_name(type(error))})"
    return _summary(array, shape, dtype)


def _summary(array: object, shape: tuple[Any, ...], dtype: object) -> str:
    return f"{class_name(type(array))} of shape {shape}, dtype {clip(str(dtype), 200)}"


def _listed(array: Any) -> object:
    """Nested lists of a NumPy array; dates and durations as text, since some their units give bare ints."""
    if array.dtype.kind not in "mM":
        return array.tolist()
    return np.reshape(np.array([str(value) for value in array.flat], dtype=object), array.shape).tolist()
