"""The state of the random generators that a process has: Python's, NumPy's, PyTorch's on CPU and CUDA."""

from __future__ import annotations

import base64
import json
import random
import sys
from typing import Any

# As JSON, so that a checkpoint of one NumPy or PyTorch can be read with another.


def random_state() -> str:
    """The state of the global generators of what is loaded; numpy.random.Generators are the caller's."""
    version, numbers, gauss = random.getstate()
    state: dict[str, Any] = {"python": [version, list(numbers), gauss]}
    if "numpy.random" in sys.modules:
        kind, keys, *rest = sys.modules["numpy.random"].get_state()
        state["numpy"] = [kind, keys.tolist(), *rest]
    torch = sys.modules.get("torch")
    if torch is not None:
        state["torch"] = _to_text(torch.get_rng_state())
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            state["cuda"] = [_to_text(device) for device in torch.cuda.get_rng_state_all()]
    return json.dumps(state)


def restore_random_state(text: str) -> None:
    """Give the generators a state back that `random_state` has returned.

    Those of packages that are installed but not loaded yet are loaded. More CUDA devices than there are now
    are left out.

    Raises:
        ValueError: text is no such state.
        ImportError: a package whose generator was saved is not installed any more.
    """
    try:
        state = json.loads(text)
        version, numbers, gauss = state["python"]
        random.setstate((version, tuple(numbers), gauss))
        if "numpy" in state:
            import numpy

            kind, keys, *rest = state["numpy"]
            numpy.random.set_state((kind, numpy.array(keys, "uint32"), *rest))
        if "torch" in state:
            import torch

            torch.set_rng_state(_to_tensor(torch, state["torch"]))
            devices = state.get("cuda", [])[: torch.cuda.device_count()]
            for number, device in enumerate(devices):
                torch.cuda.set_rng_state(_to_tensor(torch, device), number)
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a state of random generators: {error!r}") from error


def _to_text(tensor: Any) -> str:
    return base64.b64encode(tensor.numpy().tobytes()).decode()


def _to_tensor(torch: Any, text: str) -> Any:
    return torch.frombuffer(bytearray(base64.b64decode(text)), dtype=torch.uint8)
