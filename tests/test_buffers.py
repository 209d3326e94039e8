"""Every dtype, byte order and layout gives what NumPy gives in float64."""

from __future__ import annotations

import array
import ctypes
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from oracle import assert_as_numpy, assert_moments, exact

from spinstat import Moments, moments

REAL = [*"?bBhHiIlLqQpPefdg"]
INTEGERS_AND_FLOATS = [code for code in REAL if np.dtype(code).itemsize > 1]


def sample(dtype: Any, n: int = 60) -> np.ndarray:
    """n values that use the width of the type."""
    rng = np.random.default_rng(n)
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return rng.integers(0, 2, n).astype(kind)
    if kind.kind in "iu":
        info = np.iinfo(kind)
        x = rng.integers(info.min, info.max, n, dtype=kind.newbyteorder("="), endpoint=True)
        x[:2] = info.min, info.max
        return x.astype(kind)
    return (rng.normal(size=n) * 100).astype(kind)


@pytest.mark.parametrize("code", REAL)
def test_b14_every_real_dtype_is_what_numpy_has_in_float64(code: str) -> None:
    x = sample(code)
    assert_as_numpy(moments(x), x)
    for scalar in x[:5]:
        assert_as_numpy(moments(scalar), scalar)
        assert_as_numpy(moments(np.array(scalar)), scalar)
    assert_as_numpy(moments(list(x)), x)
    assert_as_numpy(moments(x[:0]), x[:0])


@pytest.mark.parametrize("order", ["<", ">", "="])
@pytest.mark.parametrize("code", INTEGERS_AND_FLOATS)
def test_b14_every_byte_order_is_read(code: str, order: str) -> None:
    x = sample(np.dtype(code).newbyteorder(order), 5000)
    assert_as_numpy(moments(x), x)
    assert_as_numpy(moments(x[::-2]), x[::-2])


def layouts(x: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Views and copies of 24 * 5 values in every layout that NumPy makes."""
    cube = x.reshape(2, 3, 4, 5)
    yield "contiguous", x
    yield "four dimensions", cube
    yield "Fortran order", np.asfortranarray(cube)
    yield "transposed", cube.transpose(2, 0, 3, 1)
    yield "every third", x[::3]
    yield "backwards", x[::-1]
    yield "backwards, every second", x[::-2]
    yield "one column", x.reshape(-1, 4)[:, 2]
    yield "column slice", x.reshape(-1, 8)[1:, 2:5]
    yield "negative strides in two dimensions", x.reshape(10, 12)[::-1, ::-3]
    yield "diagonal", np.lib.stride_tricks.as_strided(x, (5,), (25 * x.itemsize,), writeable=False)
    yield "windows that overlap", np.lib.stride_tricks.sliding_window_view(x, 7)
    yield "broadcast scalar", np.broadcast_to(x[3], (4, 6))
    yield "broadcast rows", np.broadcast_to(x[:5], (7, 5))
    yield "broadcast columns", np.broadcast_to(x[:5, None], (5, 7))
    yield "no dimensions", x[:1].reshape(())
    yield "dimensions of one", x[:3].reshape(1, 3, 1)
    yield "empty", x[:0]
    yield "empty in one dimension", cube[:, :0]
    frozen = x.copy()
    frozen.flags.writeable = False
    yield "read-only", frozen
    packed = np.zeros(x.size, [("pad", "i1"), ("x", x.dtype)])
    packed["x"] = x
    yield "unaligned packed field", packed["x"]
    raw = np.zeros(x.nbytes + 1, "u1")
    unaligned = raw[1:].view(x.dtype)
    unaligned[:] = x
    yield "unaligned and contiguous", unaligned


LAYOUTS = [name for name, _ in layouts(np.arange(120.0))]


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4", ">f8", "<f2", "u8", "i1", "g", "?", ">i4"])
def test_b14_every_layout_is_what_numpy_has_in_float64(name: str, dtype: str) -> None:
    view = dict(layouts(sample(dtype, 120)))[name]
    assert_as_numpy(moments(view), view)
    assert_as_numpy(moments([view, view]), np.stack([view, view]))


@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "f2", ">f8"])
def test_b14_large_strided_views_are_read_to_the_last_element(dtype: str) -> None:
    x = sample(dtype, 200_001)
    for view in (
        x[::2],
        x[::-3],
        x[1:].reshape(500, 400).T,
        x[1:].reshape(500, 400)[::-3, 1::2],
        x[5:70_000:7],
    ):
        want = np.ascontiguousarray(view, dtype=np.float64)
        m = moments(view)
        assert (m.count, m.min, m.max) == (view.size, want.min(), want.max())
        assert m.mean == pytest.approx(want.mean(), rel=1e-12) and m.std() == pytest.approx(
            want.std(), rel=1e-12
        )


def test_b14_the_inputs_of_the_regret() -> None:
    for x in (
        np.arange(6, dtype=">f8"),
        np.broadcast_to(3.0, (4,)),
        np.arange(6.0)[::-2],
        np.zeros(3, dtype=[("p", "i1"), ("x", "f8")])["x"],
        np.array([2**63 + 2**12], np.uint64),
        np.array([1], np.longdouble),
    ):
        assert_as_numpy(moments(x), x)


def test_integers_beyond_2_to_the_53_are_rounded_each_to_float64() -> None:
    for dtype in ("i8", "u8"):
        x = np.array([2**53 + 1, 2**53 + 3, 2**62 + 5], dtype)
        assert_moments(moments(x), exact([float(v) for v in x.tolist()]))
    assert moments([2**64, 2**80]).max == 2.0**80
    with pytest.raises(OverflowError):
        moments(10**400)


def test_longdouble_beyond_float64_counts_as_infinite() -> None:
    m = moments(np.ldexp(np.array([1.0, -1.0, 3.0], np.longdouble), [1100, 1100, 0]))
    assert (m.count, m.posinf_count, m.neginf_count, m.m2) == (3, 1, 1, 0.0)


def test_b12_empty_arrays_add_nothing_and_warn_of_nothing() -> None:
    m = Moments([2.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x in (
            np.array([]),
            np.empty((0, 5), "f4"),
            np.empty((3, 0), ">i2"),
            [],
            (),
            [[], ()],
            array.array("d"),
        ):
            m.update(x)
    assert m.to_bytes() == Moments([2.0]).to_bytes()


def test_buffers_of_the_standard_library_are_read() -> None:
    for code in "bBhHiIlLqQfd":
        x = array.array(code, [1, 2, 3, 100])
        assert_as_numpy(moments(x), list(x))
        assert_as_numpy(moments(memoryview(x)[::2]), list(x)[::2])
    numbers = (ctypes.c_float * 3 * 2)((1, 2, 3), (4, 5, 6.5))
    assert_as_numpy(moments(numbers), [[1, 2, 3], [4, 5, 6.5]])
    assert_as_numpy(moments((ctypes.c_double * 4)(1, 2, 3, 5)), [1, 2, 3, 5])
    assert_as_numpy(moments((ctypes.c_int16 * 4)(1, -2, 3, 5)), [1, -2, 3, 5])
    assert_as_numpy(moments((ctypes.c_int64.__ctype_be__ * 3)(1, -2, 2**40)), [1, -2, 2**40])
    assert_as_numpy(moments(memoryview(bytes(range(10)))), range(10))
    assert_as_numpy(moments(memoryview(np.arange(12.0)).cast("B").cast("d", (3, 4))), np.arange(12.0))


@pytest.mark.parametrize("fill", [None, np.nan, 1e300])
def test_masked_arrays_give_their_unmasked_elements(fill: float | None) -> None:
    x = np.ma.masked_array(np.arange(10.0), mask=[i % 3 == 0 for i in range(10)])
    if fill is not None:
        x.data[x.mask] = fill
    assert_as_numpy(moments(x), [1.0, 2, 4, 5, 7, 8])
    assert_as_numpy(moments(x[::-2]), x[::-2].compressed())
    assert_as_numpy(moments(x.reshape(2, 5).T), x.compressed())
    assert_as_numpy(moments([x, 3.0]), [1.0, 2, 4, 5, 7, 8, 3])
    assert_as_numpy(moments(np.ma.masked_array([1, 2, 3], dtype="i4")), [1, 2, 3])
    assert_as_numpy(moments(np.ma.masked_array([1.5, 2, 3], mask=True)), [])
    assert_as_numpy(moments(np.ma.masked_array(np.float32(2.5), mask=False)), [2.5])
    big = np.ma.masked_greater(sample("f4", 100_000), 50)
    m = moments(big)
    assert (m.count, m.max) == (big.count(), big.max())
    assert m.mean == pytest.approx(big.compressed().mean(dtype="f8"), rel=1e-12)


def test_the_masked_constant_is_no_value() -> None:
    assert moments(np.ma.masked).count == 0
    assert moments([1.0, np.ma.masked, 3.0]).count == 2


class Subclass(np.ndarray):
    """A subclass that adds nothing."""


def test_subclasses_of_arrays_are_arrays() -> None:
    for x in (
        np.arange(6.0).view(Subclass),
        np.rec.array([(1.0,), (2.5,)])["f0"],
        np.arange(9.0)[::4].view(Subclass),
    ):
        assert_as_numpy(moments(x), np.asarray(x))
