"""What the extension leaves to NumPy: everything array-like that is no plain contiguous buffer.

The extension reads contiguous float64, float32, int64 and int32 itself. All else comes through here:
`as_real` makes an ndarray of it without copying the data where NumPy can, and `blocks` reads that array as
float64, a block at a time, so no dtype and no layout ever costs a full-size copy. Tensors are recognised
through `sys.modules`: a process that holds one has imported its library.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

#: Elements converted at a time: a few kernel blocks, 128 KiB.
BLOCK = 16384

#: kDLCPU, the CPU's number among the devices of DLPack.
_DLPACK_CPU = 1


def of_key(key: str | None) -> str:
    """The words that name a key in an error; none where there is no key."""
    return "" if key is None else f" for key {key!r}"


def reject(x: object, key: str | None, why: str = "") -> NoReturn:
    """Raise the TypeError for a value that is no real number, naming its key, its type and the way out."""
    what = type(x).__module__ + "." + type(x).__qualname__
    if isinstance(x, np.ndarray) and issubclass(type(x), np.ndarray):  # a mock may say that it is one
        what += f" of dtype {x.dtype}"
    why = f": {why}" if why else ""
    raise TypeError(
        f"cannot take statistics of {what.removeprefix('builtins.')}{of_key(key)}{why}. "
        "Give real numbers: a scalar, or an array, tensor, list or tuple of them"
    )


def name_key(error: Exception, x: object, key: str | None) -> None:
    """Have the error of a value's own conversion say under which key it was stored.

    One of the built-in kinds is raised again with the key in its text, any other gets a note.
    """
    if key is None:
        return
    where = f"while converting {type(x).__qualname__} to a number for key {key!r}"
    if type(error) in (TypeError, ValueError, OverflowError, ArithmeticError):
        raise type(error)(f"{error} ({where})") from error
    error.add_note(where)


def is_tensor(x: object) -> bool:
    """Whether `x` is a torch tensor."""
    torch = sys.modules.get("torch")
    tensor = getattr(torch, "Tensor", None)  # absent while torch is being imported
    return isinstance(tensor, type) and isinstance(x, tensor)  # a mock of torch has no type


def is_tensorflow(x: object) -> bool:
    """Whether `x` is a tensor, ragged tensor or variable of TensorFlow or Keras."""
    return type(x).__module__.partition(".")[0] in ("tensorflow", "keras")


def has_array(x: object) -> bool:
    """Whether `x` offers its elements in a way that `as_real` takes, the buffer protocol apart."""
    return (
        hasattr(x, "__array__")
        or hasattr(x, "__dlpack__")
        or hasattr(x, "__array_interface__")
        or (is_tensorflow(x) and hasattr(x, "flat_values"))
    )


def detached(x: Any, key: str | None) -> Any:
    """A torch tensor without its graph, dense and real. Raises TypeError for complex and meta tensors."""
    x = x.detach()
    if x.is_meta:
        reject(x, key, "a tensor on the meta device holds no numbers")
    if x.is_complex():
        reject(x, key, "complex numbers have no order")
    if x.is_quantized:
        x = x.dequantize()
    if x.layout != sys.modules["torch"].strided:
        x = x.to_dense()
    return x


def on_device(x: Any) -> bool:
    """Whether a torch tensor lives where reading it would wait for a device."""
    return not x.is_cpu


def to_host(x: Any, key: str | None) -> Any:
    """A torch tensor as an ndarray that shares its memory; one on a device as a tensor without its graph."""
    x = detached(x, key)
    return x if on_device(x) else _from_torch(x)


def _from_torch(x: Any) -> Array:
    """A dense, real tensor on the CPU, without its graph, as an array."""
    torch = sys.modules["torch"]
    if x.is_neg():
        x = x.resolve_neg()
    if x.dtype == torch.bfloat16:
        # NumPy knows no bfloat16; its bits are the upper half of a float32. `blocks` widens them.
        return np.asarray(x.view(torch.int16).numpy()).view(_BFLOAT16)
    if x.dtype.is_floating_point and x.dtype.itemsize < 2:
        x = x.to(torch.float32)
    return np.asarray(x.numpy())


#: A structured dtype of our own that no caller's array has: raw bfloat16 bits.
_BFLOAT16 = np.dtype([("spinstat_bfloat16_bits", np.uint16)])


# What a foreign object's conversion to an array may raise for what it holds.
_UNREADABLE = (TypeError, ValueError, AttributeError, NotImplementedError, BufferError, RuntimeError)


def as_real(x: Any, key: str | None = None) -> tuple[Array, Array | None]:
    """An ndarray of real dtype that shares memory with `x` where possible, and the mask of a masked one.

    Raises TypeError, naming `key`, for whatever is not an array of real numbers.
    """
    mask = None
    if is_tensor(x):
        return _from_torch(detached(x, key).cpu()), None
    if issubclass(type(x), np.ma.MaskedArray):
        mask = None if x.mask is np.ma.nomask else np.asarray(x.mask)
        array = np.asarray(x.data)
    else:
        try:
            if is_tensorflow(x):
                x = getattr(x, "flat_values", x)  # of a ragged tensor: its elements, whatever the rows
                array = np.asarray(x.numpy())  # not of x: its __array__ fails for a single bfloat16
            elif hasattr(x, "__array__") or not hasattr(x, "__dlpack__"):
                array = np.asarray(x)
            else:
                array = np.from_dlpack(x)
        except _UNREADABLE as error:
            reject(x, key, str(error))
    kind = array.dtype.kind
    extension_float = kind == "V" and array.dtype.names is None and array.dtype.type is not np.void
    if kind not in "biuf" and not extension_float and array.dtype != _BFLOAT16:
        reject(array if type(x) is np.ndarray else x, key, f"its elements have dtype {array.dtype}")
    return array, mask


def kept(x: Any) -> Any:
    """What is kept of stored values other than arrays: tensors without graphs, nothing that is on a device.

    Of a list, tuple or deque a new one, without the tensors that are on a device.
    """
    if is_tensor(x):
        return detached(x, None)
    if isinstance(x, (list, tuple, deque)):
        here = [kept(item) for item in x if not (is_tensor(item) and on_device(item))]
        return tuple(here) if isinstance(x, tuple) else here
    if is_tensorflow(x):
        return as_real(x)[0]
    where = getattr(x, "__dlpack_device__", None)
    return x if where is None or where()[0] == _DLPACK_CPU else as_real(x)[0]


def snapshot(x: Any) -> Any:
    """A copy of an array or tensor, and of those in lists and tuples; anything else as it is."""
    if issubclass(type(x), np.ndarray):
        return x.copy()
    if is_tensor(x):
        return x.detach().clone()
    if type(x) in (list, tuple):
        return type(x)(snapshot(item) for item in x)
    return x


def blocks(array: Array, mask: Array | None = None) -> Iterator[Array]:
    """The elements of `array` where `mask` is false, as contiguous float64 arrays of up to `BLOCK` elements.

    The order is that of memory, so every element is read once, in the order in which it lies. An array may be
    overwritten when the next one is asked for.
    """
    if array.dtype == _BFLOAT16:
        for (bits,) in _converted([array["spinstat_bfloat16_bits"]], [np.dtype(np.uint32)]):
            yield (bits << 16).view(np.float32).astype(np.float64)
    elif mask is None:
        for (values,) in _converted([array], [np.dtype(np.float64)]):
            yield values
    else:
        for values, hidden in _converted([array, mask], [np.dtype(np.float64), np.dtype(np.bool_)]):
            yield values[~hidden]


def _converted(arrays: list[Array], dtypes: list[np.dtype[Any]]) -> Iterator[list[Array]]:
    """Contiguous pieces of arrays of one shape, converted."""
    flags: Any = ["external_loop", "buffered", "zerosize_ok"]
    # "unsafe" lets uint64 and longdouble round to float64, which is what is promised for them; a longdouble
    # beyond float64 becomes an infinity, and is counted as one; one whose bits are no number becomes NaN. The
    # first elements are converted when the iterator is made.
    with np.errstate(over="ignore", invalid="ignore"):
        pieces: Any = np.nditer(
            arrays, flags, [["readonly", "aligned"]] * len(arrays), op_dtypes=dtypes, casting="unsafe",
            buffersize=BLOCK,
        )
        with pieces:
            for piece in pieces:
                found = piece if isinstance(piece, tuple) else (piece,)
                if found[0].size:
                    yield [np.ascontiguousarray(part) for part in found]


def device_moments(x: Any) -> Any:
    """The state of a tensor's elements as a tensor of 9 float64 numbers on its device, without a wait.

    In order: count, mean, what the mean lacks, m2, min and max of the finite values, then how many are NaN,
    +inf and -inf.
    """
    torch = sys.modules["torch"]
    x = x.reshape(-1)
    # MPS has no float64: float32 is then the best the device can do.
    wide = torch.float32 if x.device.type == "mps" else torch.float64
    x = x.to(wide)
    finite = torch.isfinite(x)
    count = finite.sum().to(wide)
    zero = torch.zeros((), dtype=wide, device=x.device)
    inf = float("inf")
    if x.numel():
        low = torch.where(finite, x, torch.full_like(zero, inf)).amin()
        high = torch.where(finite, x, torch.full_like(zero, -inf)).amax()
    else:
        low, high = torch.full_like(zero, inf), torch.full_like(zero, -inf)
    weight = 1.0 / count.clamp(min=1.0)
    mean = _weighted_mean(x, finite, weight, low, high)
    deviations = torch.where(finite, x - mean, zero)
    mean, rest, off = _corrected(mean, (deviations * weight).sum())
    m2 = (deviations - torch.where(finite, off, zero)).square().sum()
    nans = torch.isnan(x).sum().to(wide)
    infinities = [(x == inf).sum().to(wide), (x == -inf).sum().to(wide)]
    return torch.stack([count, mean, rest, m2, low, high, nans, *infinities])


def _corrected(mean: Any, off: Any) -> tuple[Any, Any, Any]:
    """A mean with what values are off from it on average, as rounded and rest, and how much was added.

    Nothing is added where that is not finite, as for means near the largest double. The sum is Knuth's (The
    Art of Computer Programming 2, section 4.2.2), which needs no order of magnitudes.
    """
    torch = sys.modules["torch"]
    rounded = mean + off
    part = rounded - mean
    rest = (mean - (rounded - part)) + (off - part)
    within, zero = torch.isfinite(rest), torch.zeros_like(mean)
    return torch.where(within, rounded, mean), torch.where(within, rest, zero), torch.where(within, off, zero)


def _weighted_mean(x: Any, wanted: Any, weight: Any, low: Any, high: Any) -> Any:
    """The mean of the wanted elements, which lie from low to high; 0 where there are none.

    Summed as distances from the least, so that equal values have their mean exactly; as parts where those
    overflow.
    """
    torch = sys.modules["torch"]
    zero = torch.zeros_like(low)
    distance = (torch.where(wanted, x - low, zero) * weight).sum()
    parts = (torch.where(wanted, x, zero) * weight).sum()
    within = torch.minimum(torch.maximum(parts, low), high)
    mean = torch.where(torch.isfinite(distance), low + distance, within)
    return torch.where(wanted.any(), mean, zero)


def merge_on_device(states: Sequence[Any]) -> Any:
    """One state of many (as `device_moments` gives them), still on the device, without waiting for it."""
    torch = sys.modules["torch"]
    s = torch.stack(list(states))
    count, means, filled = s[:, 0].sum(), s[:, 1], s[:, 0] > 0
    low, high = s[:, 4].amin(), s[:, 5].amax()
    least = torch.where(filled, means, s[:, 4]).amin()
    weights = s[:, 0] / count.clamp(min=1.0)
    mean = _weighted_mean(means, filled, weights, least, high)
    zero = torch.zeros_like(means)
    deviations = torch.where(filled, (means - mean) + s[:, 2], zero)
    mean, rest, off = _corrected(mean, (deviations * weights).sum())
    between = torch.where(filled, s[:, 0] * (deviations - off).square(), zero)
    spread = s[:, 3].sum() + between.sum()
    return torch.stack([count, mean, rest, spread, low, high, s[:, 6].sum(), s[:, 7].sum(), s[:, 8].sum()])


def merge_by_device(states: Sequence[Any]) -> list[Any]:
    """One state for each device that holds some of these."""
    devices = dict.fromkeys(state.device for state in states)
    return [merge_on_device([state for state in states if state.device == device]) for device in devices]


def fetch(states: Sequence[Any]) -> list[list[float]]:
    """The numbers of device states, in one copy for each device that holds some."""
    torch = sys.modules["torch"]
    result: list[list[float]] = [[] for _ in states]
    for device in {state.device for state in states}:
        here = [i for i, state in enumerate(states) if state.device == device]
        rows = torch.stack([states[i] for i in here]).cpu().tolist()
        for i, row in zip(here, rows, strict=True):
            result[i] = row
    return result
