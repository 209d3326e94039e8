"""Tensors on a device: reduced there into a few numbers, merged there, fetched in one copy.

The arithmetic is torch's and alike on every device, so it is tested on the CPU, and on a GPU if there is one.
"""

from __future__ import annotations

import struct

import numpy as np
import pytest
import torch
from oracle import assert_moments, exact

from spinstat import Moments, moments
from spinstat._arrays import device_moments, fetch, merge_on_device

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


def state(numbers: list[float]) -> Moments:
    """The Moments that fetched numbers stand for."""
    count, mean, rest, m2, low, high, nans, ups, downs = numbers
    counts = int(nans), int(ups), int(downs)
    return Moments.from_bytes(struct.pack("=q5d3q", int(count), mean, rest, m2, low, high, *counts))


def series() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(4)
    normal = rng.normal(size=1000)
    return {
        "normal": normal,
        "offset 1e9": 1e9 + normal,
        "offset 1e15": 1e15 + normal,
        "largest": np.resize([1.797e308, -1.797e308, 1.5e308], 1000),
        "small": normal * 1e-140,
        "step": np.where(np.arange(1000) < 300, normal, 1e12 + normal),
        "outlier": np.concatenate([[1e15], normal]),
        "integers": np.arange(-500.0, 500.0),
        "one": np.array([2.5]),
        "one beside others": np.array([1.0, 2.0]),
    }


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", series())
def test_b4_a_tensor_is_reduced_where_it_lives(name: str, device: str) -> None:
    x = series()[name]
    t = torch.tensor(x, device=device)
    whole = device_moments(t)
    assert whole.device == t.device and whole.shape == (9,)
    assert_moments(state(fetch([whole])[0]), exact(x.tolist()), merges=10)
    parts = [device_moments(part) for part in torch.tensor_split(t, 7)]
    assert_moments(state(fetch([merge_on_device(parts)])[0]), exact(x.tolist()), merges=20)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "dtype", ["float64", "float32", "float16", "bfloat16", "int64", "int32", "uint8", "bool"]
)
def test_b4_every_dtype_and_layout_is_read_on_a_device(dtype: str, device: str) -> None:
    t = torch.arange(24, device=device).reshape(2, 3, 4).to(getattr(torch, dtype))
    for x in (t, t.permute(2, 0, 1), t[:, 1], t[0, 0, 1], t[:, :0]):
        values = x.to(torch.float64).cpu().flatten().tolist()
        assert_moments(state(fetch([device_moments(x)])[0]), exact(values), merges=10)
        assert_moments(moments(x), exact(values), merges=10)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("value", [0.1, -1 / 3, 1e9 + 0.1, 5e-324, 1.7e308, -1.7976931348623157e308, 0.0])
def test_a19_constant_tensors_have_std_exactly_zero_on_a_device_too(value: float, device: str) -> None:
    states = []
    for n in (1, 2, 3, 7, 49, 1000, 4097):
        t = torch.full((n,), value, dtype=torch.float64, device=device)
        states.append(device_moments(t))
        m = state(fetch(states[-1:])[0])
        assert (m.count, m.mean, m.std(), m.min, m.max) == (n, value, 0.0, value, value)
    m = state(fetch([merge_on_device(states)])[0])
    assert (m.count, m.mean, m.std()) == (5159, value, 0.0)


@pytest.mark.parametrize("device", DEVICES)
def test_a11_a12_non_finite_elements_are_counted_on_a_device(device: str) -> None:
    inf, nan = float("inf"), float("nan")
    values = [nan, 1.0, inf, 3.0, -inf, nan, inf]
    m = state(fetch([device_moments(torch.tensor(values, device=device, dtype=torch.float64))])[0])
    assert m.to_bytes() == Moments(values).to_bytes()
    alone = state(fetch([device_moments(torch.tensor([inf, nan], device=device))])[0])
    assert alone.to_bytes() == Moments([inf, nan]).to_bytes()


@pytest.mark.parametrize("device", DEVICES)
def test_a13_empty_tensors_are_the_identity_on_a_device(device: str) -> None:
    empty = device_moments(torch.empty((0, 3), device=device))
    some = device_moments(torch.tensor([1.0, 2.0], device=device, dtype=torch.float64))
    assert state(fetch([empty])[0]).to_bytes() == Moments().to_bytes()
    for parts in ([empty, some], [some, empty], [empty, some, empty]):
        assert state(fetch([merge_on_device(parts)])[0]).to_bytes() == Moments([1.0, 2.0]).to_bytes()
    huge = device_moments(torch.tensor([1e300, 1e300], device=device, dtype=torch.float64))
    assert state(fetch([merge_on_device([empty, huge])])[0]).to_bytes() == Moments([1e300] * 2).to_bytes()
    assert state(fetch([merge_on_device([empty, empty])])[0]).to_bytes() == Moments().to_bytes()


def test_states_are_fetched_in_their_order() -> None:
    numbers = fetch([device_moments(torch.tensor([float(i)])) for i in range(5)])
    assert [row[1] for row in numbers] == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert fetch([]) == []
