"""Models that torch.save wrote: loading them, acting with them, their value functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .terminal import warn
from .unpickling import explained

CRITICS = ("v", "q", "q1", "q2")  # names of the value functions in Spinning Up's actor-critics


def load(path: str, map_location: Any = None) -> Any:
    """Load a file of pyt_save/, whole objects included, which runs what code they hold.

    Args:
        path: the file.
        map_location: as torch.load's. None: where it was, and on the CPU what was on a device that is not
            here.

    Raises:
        ImportError: torch is not installed, or (MissingClassError) a class of the model is missing.
    """
    torch = import_torch()
    place = _keep_where_possible if map_location is None else map_location
    options: dict[str, Any] = {"map_location": place}
    if "weights_only" in inspect.signature(torch.load).parameters:  # from torch 1.13 on
        options["weights_only"] = False
    return explained(lambda name: torch.load(name, **options), path)


def import_torch() -> Any:
    """The torch module, or an error that says how to get it."""
    try:
        import torch
    except ImportError as error:
        message = f"a model in pyt_save/ needs torch: pip install 'spinstat[torch]' ({error})"
        raise ImportError(message) from error
    return torch


def _keep_where_possible(storage: Any, location: str) -> Any:
    """torch.load's map_location: the storage, as it is on the CPU, or None for the device that it names."""
    import torch

    kind, _, number = location.partition(":")
    if kind == "cuda":
        return None if int(number or 0) < torch.cuda.device_count() else storage
    if kind == "mps":
        return None if torch.backends.mps.is_available() else storage
    return None


def find_actor(saved: Any, path: str) -> Any:
    """The object that acts: what was saved, or the one thing in it that can.

    Raises:
        TypeError: there is none, or more than one.
    """
    if callable(getattr(saved, "act", None)):
        return saved
    parts = _parts(saved)
    actors = [name for name, part in parts.items() if callable(getattr(part, "act", None))]
    if len(actors) == 1:
        return parts[actors[0]]
    found = f"more than one: {', '.join(map(str, actors))}" if actors else "none"
    raise TypeError(
        f"{path} is a {type(saved).__name__}; a policy needs an object with an act(obs) method, and it holds "
        f"{found}. Load it with spinstat.policy.load_actor_critic, and write a get_action(obs) for it"
    )


def make_get_action(actor: Any, deterministic: bool) -> Callable[[Any], Any]:
    """A function that gives the action of an actor for one observation."""
    torch = import_torch()
    act, device = actor.act, _device_of(actor)
    options: dict[str, Any] = {}
    if deterministic:
        if _takes_deterministic(act):
            options["deterministic"] = True
        else:
            warn(
                f"{type(actor).__name__}.act has no argument 'deterministic': the actions are those of "
                "training, drawn at random if they were"
            )

    def get_action(obs: Any) -> Any:
        with torch.no_grad():
            action = act(_to_tensor(obs, device), **options)
        return action.detach().cpu().numpy() if isinstance(action, torch.Tensor) else action

    return get_action


def make_value_function(model: Any, path: str) -> Callable[..., Any]:
    """The critic of a model, as load_value_function describes it.

    Raises:
        TypeError: the model has no v, q, q1 or q2 that can be called.
    """
    torch = import_torch()
    critics = next((found for holder in (model, *_parts(model).values()) if (found := _critics(holder))), {})
    if not critics:
        raise TypeError(
            f"{path} is a {type(model).__name__} without a value function: none of {', '.join(CRITICS)} in "
            "it. Load it with spinstat.policy.load_actor_critic and look which modules it has"
        )
    chosen = [critics["v"]] if "v" in critics else list(critics.values())
    devices = [_device_of(critic, model) for critic in chosen]

    def value(*inputs: Any) -> Any:
        with torch.no_grad():
            values = [
                torch.as_tensor(critic(*(_to_tensor(each, device) for each in inputs))).cpu()
                for critic, device in zip(chosen, devices, strict=True)
            ]
            least = torch.stack(values).amin(0).numpy()
        return float(least.item()) if least.size == 1 else least

    return value


def _parts(saved: Any) -> Mapping[Any, Any]:
    """What an object holds, by name: the entries of a dict, or its attributes, with a module's submodules."""
    if isinstance(saved, Mapping):
        return saved
    attributes = getattr(saved, "__dict__", {})
    return {**attributes, **attributes.get("_modules", {})}


def _critics(holder: Any) -> dict[str, Any]:
    is_dict = isinstance(holder, Mapping)
    found = {name: holder.get(name) if is_dict else getattr(holder, name, None) for name in CRITICS}
    return {name: part for name, part in found.items() if callable(part)}


def _takes_deterministic(act: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(act).parameters
    except (TypeError, ValueError):  # a compiled function that does not tell
        return False
    return "deterministic" in parameters or any(
        each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values()
    )


def _device_of(*holders: Any) -> Any:
    """The device of the first parameter of some modules; None where there is none: then the CPU."""
    for holder in holders:
        if callable(getattr(holder, "parameters", None)):
            for parameter in holder.parameters():
                return parameter.device
    return None


def _to_tensor(value: Any, device: Any) -> Any:
    """float32 tensors of an observation; of a tuple or dict of unlike parts, a tuple or dict of tensors."""
    import torch

    if isinstance(value, Mapping):
        return {key: _to_tensor(part, device) for key, part in value.items()}
    try:
        if isinstance(value, list | tuple) and any(isinstance(part, np.ndarray) for part in value):
            value = np.array(value, np.float32)  # torch would go through the arrays number by number
        return torch.as_tensor(value, dtype=torch.float32, device=device)
    except (TypeError, ValueError):
        if not isinstance(value, tuple):
            raise
    return tuple(_to_tensor(part, device) for part in value)
