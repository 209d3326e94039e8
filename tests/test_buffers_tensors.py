"""Tensors of torch and TensorFlow, objects of DLPack alone, and the small floats of ml_dtypes."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from oracle import assert_moments, exact

from spinstat import Moments, moments

TORCH_DTYPES = [
    "float64",
    "float32",
    "float16",
    "bfloat16",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint8",
    "bool",
    "uint16",
    "uint32",
    "uint64",
    "float8_e4m3fn",
    "float8_e5m2",
]
TF_DTYPES = [
    "float64",
    "float32",
    "float16",
    "bfloat16",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bool",
]
VALUES = [0.0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 3, 1]  # doubles, halves and bytes alike; as bool 0 and 1


def as_values(m: Moments, values: Any) -> None:
    """Fail unless m is of these values, within the exact oracle's bounds."""
    assert_moments(m, exact(np.asarray(values, np.float64).ravel().tolist()), merges=20)


@pytest.fixture(scope="module")
def tf() -> ModuleType:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow

    return tensorflow


@pytest.mark.parametrize("dtype", TORCH_DTYPES)
def test_a9_torch_tensors_of_every_real_dtype_are_read(dtype: str) -> None:
    t = torch.tensor(VALUES).to(getattr(torch, dtype))
    values = t.to(torch.float64).tolist()
    as_values(moments(t), values)
    as_values(moments(t.reshape(3, 4)), values)
    as_values(moments(t.reshape(3, 4).t()), values)
    as_values(moments(t.reshape(3, 2, 2)[:, 1]), t.to(torch.float64).reshape(3, 2, 2)[:, 1].numpy())
    as_values(moments(t[::3]), values[::3])
    as_values(moments(t[4]), values[4])
    as_values(moments(t[4].expand(5, 2)), [values[4]] * 10)
    as_values(moments(t[:0]), [])
    as_values(moments([t, t[0], [t[:2]]]), values + values[:1] + values[:2])
    as_values(moments(torch.nn.Parameter(t, requires_grad=False)), values)


def test_a9_bfloat16_keeps_its_range_and_the_non_finite() -> None:
    values = [3e38, -3e38, 1e-38, float("inf"), float("-inf"), float("nan"), 9.2e-41]
    t = torch.tensor(values).to(torch.bfloat16)
    for x in (t, t.view(torch.int16).numpy().view(ml_dtypes.bfloat16), t.repeat(9000)[::9000]):
        m = moments(x)
        assert (m.count, m.nan_count, m.posinf_count, m.neginf_count) == (7, 1, 1, 1)
    finite = t[[0, 1, 2, 6]]
    as_values(moments(finite), finite.double().tolist())
    large = torch.full((70_000,), 1.0).to(torch.bfloat16)
    assert (moments(large).count, moments(large).mean, moments(large).std()) == (70_000, 1.0, 0.0)
    noise = torch.randn(100_003, generator=torch.Generator().manual_seed(0)).to(torch.bfloat16)
    for x in (noise, noise.flip(0), noise[3::7], noise[:100_000].reshape(50, 2000).t()):
        want = x.double()
        m = moments(x)
        assert m.count == want.numel() and (m.min, m.max) == (want.min().item(), want.max().item())
        assert m.mean == pytest.approx(want.mean().item(), rel=1e-12, abs=1e-15)
        assert m.std() == pytest.approx(want.std(correction=0).item(), rel=1e-12)


@pytest.mark.parametrize(
    "name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz", "int4", "uint4"]
)
def test_a9_the_small_types_of_ml_dtypes_are_read(name: str) -> None:
    x = np.array([0, 1, 2, 3, 5, 7, 4, 1]).astype(getattr(ml_dtypes, name))
    values = x.astype(np.float64)
    as_values(moments(x), values)
    as_values(moments(x[::-2]), values[::-2])
    as_values(moments(x[3]), values[3])
    as_values(moments(list(x)), values)


class Owned:
    """Lives as long as the node of a graph that holds it."""


def test_b3_tensors_that_require_grad_are_read_and_their_graph_is_let_go() -> None:
    w = torch.tensor([1.0, 2.0, 4.0], requires_grad=True)
    as_values(moments(w), [1, 2, 4])
    loss = (w * w).sum()
    assert loss.grad_fn is not None
    owned = Owned()
    loss.grad_fn.metadata["owned"] = owned
    graph = weakref.ref(owned)
    m = Moments(loss)
    m.update([loss, w * 2])
    as_values(m, [21, 21, 2, 4, 8])
    del loss, owned
    gc.collect()
    assert graph() is None
    with torch.inference_mode():
        as_values(moments(torch.ones(3) * 2), [2, 2, 2])


def test_tensors_with_lazy_bits_are_read_as_what_they_stand_for() -> None:
    z = torch.tensor([1 + 2j, 3 - 5j])
    negated = z.conj().imag
    assert negated.is_neg()
    as_values(moments(negated), [-2, 5])
    as_values(moments(negated[1]), [5])
    as_values(moments(z.real), [1, 3])
    as_values(moments(negated.double()), [-2, 5])


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
def test_sparse_tensors_count_their_zeros_too() -> None:
    dense = torch.tensor([[0.0, 0, 3], [4, 0, 0]])
    for sparse in (dense.to_sparse(), dense.to_sparse_csr(), torch.stack([dense, dense]).to_sparse()):
        as_values(moments(sparse), sparse.to_dense().numpy())


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_quantized_tensors_are_read_as_the_numbers_they_stand_for() -> None:
    q = torch.quantize_per_tensor(torch.tensor([0.5, 1.0, 2.5]), 0.5, 10, torch.quint8)
    as_values(moments(q), [0.5, 1.0, 2.5])


class Tensor(torch.Tensor):
    """A subclass that adds nothing."""


def test_subclasses_of_tensors_are_tensors() -> None:
    as_values(moments(torch.tensor([1.0, 2.5]).as_subclass(Tensor)), [1, 2.5])
    as_values(moments(torch.nn.Linear(2, 1, bias=False).requires_grad_().weight * 0), [0, 0])


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: torch.empty((), device="meta"), "meta"),
        (lambda: torch.empty((3, 2), device="meta"), "meta"),
        (lambda: torch.ones(2, dtype=torch.complex64), "complex"),
        (lambda: torch.tensor(1 + 2j), "complex"),
        (lambda: torch.tensor([1 + 2j]).conj(), "complex"),
    ],
    ids=["meta scalar", "meta", "complex", "complex scalar", "conj"],
)
def test_b4_b10_tensors_without_real_numbers_are_a_type_error(
    make: Callable[[], torch.Tensor], why: str
) -> None:
    m = Moments([1.0])
    for value in (make(), [1.0, make()]):
        with pytest.raises(TypeError, match=why):
            m.update(value)
    assert m == Moments([1.0])


@pytest.mark.parametrize("dtype", TF_DTYPES)
def test_a9_tensorflow_tensors_and_variables_are_read(tf: ModuleType, dtype: str) -> None:
    t = tf.cast(tf.constant(VALUES), dtype)
    values = tf.cast(t, tf.float64).numpy()
    as_values(moments(t), values)
    as_values(moments(tf.reshape(t, (3, 4))[:, 1]), values.reshape(3, 4)[:, 1])
    as_values(moments(t[4]), values[4])
    as_values(moments(t[:0]), [])
    as_values(moments([t, t[0]]), [*values, values[0]])
    as_values(moments(tf.Variable(t)), values)
    as_values(moments(tf.Variable(t[4])), values[4])


def test_tensorflow_bfloat16_of_many_elements_is_read(tf: ModuleType) -> None:
    x = np.random.default_rng(0).normal(size=50_001)
    t = tf.cast(tf.constant(x), tf.bfloat16)
    want = tf.cast(t, tf.float64).numpy()
    m = moments(t)
    assert (m.count, m.min, m.max) == (50_001, want.min(), want.max())
    assert m.mean == pytest.approx(want.mean(), rel=1e-12) and m.std() == pytest.approx(want.std(), rel=1e-12)


def test_b2_ragged_tensors_give_their_elements(tf: ModuleType) -> None:
    as_values(moments(tf.ragged.constant([[1.0, 2.0], [], [3.5]])), [1, 2, 3.5])


def test_b8_b10_tensorflow_tensors_without_real_numbers_are_a_type_error(tf: ModuleType) -> None:
    m = Moments([1.0])
    symbolic = []
    tf.function(lambda x: symbolic.append(x))(tf.constant(1.0))
    for value in (
        tf.constant("a"),
        tf.constant(["1.5", "2"]),
        tf.constant(1 + 2j),
        tf.constant([1j]),
        *symbolic,
    ):
        for x in (value, [1.0, value]):
            with pytest.raises(TypeError):
                m.update(x)
    assert m == Moments([1.0])


class Capsule:
    """An object with DLPack and nothing else."""

    def __init__(self, x: Any) -> None:
        self.x = x

    def __dlpack__(self, **arguments: Any) -> Any:
        return self.x.__dlpack__(**arguments)

    def __dlpack_device__(self) -> Any:
        return self.x.__dlpack_device__()


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u1", "?"])
def test_objects_of_dlpack_alone_are_read(dtype: str) -> None:
    x = np.array(VALUES).astype(dtype)
    as_values(moments(Capsule(x)), x)
    as_values(moments(Capsule(x.reshape(3, 4).T)), x)
    as_values(moments(Capsule(x[::-3])), x[::-3])
    as_values(moments(Capsule(x[5:6].reshape(()))), x[5])
    as_values(moments([Capsule(x), 1.0]), [*x, 1.0])
    as_values(moments(Capsule(torch.from_numpy(x))), x)


def test_objects_of_dlpack_without_real_numbers_are_a_type_error() -> None:
    for x in (np.array([1j]), np.array([1 + 2j], "c8")):
        with pytest.raises(TypeError, match="Capsule"):
            moments(Capsule(x))


def test_i2_reading_arrays_imports_no_tensor_library() -> None:
    code = (
        "import sys, numpy as np, spinstat; spinstat.moments([np.ones(3), 1.0, (2,), np.ones((2, 2)).T]); "
        "print(sorted({'torch', 'tensorflow', 'pandas', 'ml_dtypes'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
