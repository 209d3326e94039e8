"""Buffers of any format, shape, strides and byte order, and arrays of any dtype: as NumPy has them."""

from __future__ import annotations

import struct
import warnings
from typing import Any

import numpy as np

from spinstat import Moments, moments
from spinstat._core import EpochStore

from .draw import Draw
from .exporter import Exporter

CODES = "bBhHiIlLqQnNefd?cgFDOPswxZuU"
DTYPES = (
    "f8", "f4", "f2", "g", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?", "c8", "c16", "S3", "U2", "V5",
    "M8[s]", "m8[ms]", "(2,)f8", "(2,3)i2", "f8,i4", "f4,(2,)u1", "O",
)  # fmt: skip


class Refusal(Exception):
    """What an exporter may raise, as anything else."""


REFUSALS = (TypeError, ValueError, BufferError, Refusal)
MEMORY = 512


def one(data: bytes) -> None:
    """Read one buffer, and compare it with NumPy's reading."""
    draw = Draw(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        if draw.flag():
            _array(draw)
        else:
            _exporter(draw)


def _shape_and_strides(draw: Draw, itemsize: int) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Of items that all lie in MEMORY bytes, with the offset of the first."""
    ndim = draw.choice([1, 1, 0, 2, 3, 5, 8, 40, 64])
    shape: list[int] = []
    for _ in range(ndim):
        items = int(np.prod(shape, dtype=object)) if shape else 1
        shape.append(draw.integer(0, max(1, min(20, 64 // max(items, 1)))))
    strides = []
    if draw.flag():
        step = itemsize
        for length in reversed(shape):
            strides.insert(0, step)
            step *= max(length, 1)
        if draw.flag():
            strides.reverse()
    else:
        strides = [draw.integer(-24, 24) for _ in shape]
    low = sum(min(0, stride * (length - 1)) for length, stride in zip(shape, strides, strict=True) if length)
    high = sum(max(0, stride * (length - 1)) for length, stride in zip(shape, strides, strict=True) if length)
    offset = draw.integer(0, 9) - low
    if offset + high + itemsize > MEMORY:
        return (), (), 0
    return tuple(shape), tuple(strides), offset


def _exporter(draw: Draw) -> None:
    code = draw.choice(CODES)
    mark = draw.choice(["", "", "@", "=", "<", ">", "!", "^", "2", "T{", "(2,2)", " "])
    text = f"T{{{code}:x:d:y:}}" if mark == "T{" else mark + code
    if draw.integer(0, 15) == 0:
        text = draw.bytes(8).decode("latin-1").replace("\0", "")
    try:
        itemsize = struct.calcsize(text)
    except (struct.error, UnicodeEncodeError):
        itemsize = draw.choice([8, 1, 2, 4, 16, 12])
    if draw.integer(0, 7) == 0:
        itemsize = draw.integer(0, 16)  # not that of the format
    shape, strides, offset = _shape_and_strides(draw, itemsize)
    items = int(np.prod(shape, dtype=object)) if shape else 1
    memory = draw.bytes(MEMORY).ljust(MEMORY, b"\x3f")
    format = draw.choice([text.encode("latin-1")] * 7 + [None])
    error = draw.choice([None] * 15 + [BufferError, TypeError, ValueError, Refusal])
    exporter = Exporter(
        memory, offset, format, itemsize, shape, strides, items * itemsize, not draw.flag(), error
    )
    try:
        array: Any = np.asarray(exporter)
    except Exception:  # NumPy cannot say what it is: spinstat must refuse it, or read what it says it is
        array = None
    before = exporter.given
    _check(exporter, array if array is not None and array.dtype.kind in "biuf" else None)
    assert exporter.given == before, "a buffer is not released"


def _array(draw: Draw) -> None:
    dtype = np.dtype(draw.choice(DTYPES)).newbyteorder(draw.choice("=<>"))
    if draw.integer(0, 3) == 0:
        inner = [(f"f{i}", draw.choice(DTYPES[:-1])) for i in range(draw.integer(1, 3))]
        dtype = np.dtype(inner, align=draw.flag())
    if dtype.hasobject:
        items = [draw.choice([None, 1.0, "x", 2]) for _ in range(draw.integer(0, 4))]
        _check(np.array(items, dtype), None)
        return
    shape, strides, offset = _shape_and_strides(draw, dtype.itemsize)
    memory = draw.bytes(MEMORY).ljust(MEMORY, b"\x3f")
    base = dtype.base
    if base is not dtype:  # a dtype of arrays becomes dimensions of the array
        dtype = base
    try:
        array: Any = np.ndarray(shape, dtype, memory, offset, strides)
    except ValueError:  # NumPy counts an empty array's other dimensions too, and finds it too large
        return
    if dtype.names and draw.flag():
        array = array[draw.choice(dtype.names)]
    if array.dtype.kind in "biuf" and draw.integer(0, 7) == 0:
        with np.errstate(all="ignore"):  # of the fill value, which some dtypes cannot hold
            array = np.ma.MaskedArray(array, mask=draw.flag())
    _check(array, array if array.dtype.kind in "biuf" else None)


def _check(x: Any, array: Any) -> None:
    """Take x in every way; the result must be that of the array, or a refusal where there is none."""
    store = EpochStore()
    store.store(X=1.0)
    found: list[Moments] = []
    for read in (lambda: found.append(moments(x)), lambda: store.store(X=x, Y=x), lambda: moments([2.0, x])):
        try:
            read()
        except REFUSALS:
            if array is not None:
                raise
    if not found:
        assert array is None and store._peek("X").count == 1 and list(store.epoch_dict) == ["X"]
        return
    assert store._peek("Y") == found[0]
    if array is None:
        return
    values = array.compressed() if isinstance(array, np.ma.MaskedArray) else array
    with np.errstate(all="ignore"):
        want = np.asarray(values if values.size else [], np.float64).ravel()
    same = moments(want.copy())
    assert found[0].count == want.size
    for name in ("nan_count", "posinf_count", "neginf_count", "min", "max"):
        ours, theirs = getattr(found[0], name), getattr(same, name)
        assert ours == theirs or (ours != ours and theirs != theirs), (name, ours, theirs)
    # The order of strided elements may be another one, so the last digits may be too.
    if np.isfinite(want).all() and want.size and np.abs(want).max() < 1e150:
        scale = np.abs(want).max()
        assert abs(found[0].mean - same.mean) <= 1e-13 * scale
        assert abs(found[0].std() - same.std()) <= 1e-7 * scale
