"""The weights of a module as safetensors, with what makes the module: no pickle, for who has no trust."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..recipe import Recipe
from ..terminal import warn
from ..untrusted import Importer, UntrustedError, check_inside, printable
from .pickles import Sink
from .random_state import random_state, restore_random_state

RECIPE = "spinstat"  # the key of the recipe in the file's own metadata: one file, so the two belong together
MAX_HEADER = 2**24  # bytes of names, shapes and recipe
MAX_NAMED = 5  # tensors in the text of an error


def make_recipe(module: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Recipe:
    """Describe how a module is made, and try it once: make another one, and give it the module's weights.

    The global random generators are left as they were.

    Args:
        module: a torch.nn.Module.
        args, kwargs: what its class makes it of.

    Raises:
        TypeError: it is no module, its class cannot be imported, or an argument cannot be written down.
        ValueError: what the class makes of the arguments has other weights.
        ImportError: safetensors is not installed.
    """
    import torch

    if not isinstance(module, torch.nn.Module):
        raise TypeError(
            f"safe=True saves one torch.nn.Module, not a {type(module).__name__}: give the module itself; an "
            "optimizer's state_dict() belongs into the dict that save_state is given"
        )
    _import_safetensors()
    recipe = Recipe.of(type(module), args, kwargs)
    before = random_state()
    try:
        made = recipe.build(Importer(), torch.nn.Module)
    except UntrustedError as error:
        raise ValueError(f"safe=True: {error}. Give setup_pytorch_saver its args and kwargs") from error
    finally:
        restore_random_state(before)
    differences = _differences(_shapes(_tensors(made)), _shapes(_tensors(module)))
    if differences:
        raise ValueError(
            f"safe=True: {recipe.path} with the args and kwargs given is not like what is to be saved: "
            f"{differences}"
        )
    return recipe


def dump_weights(module: Any, recipe: Recipe, file: Sink) -> None:
    """Write the weights of a module and what makes it.

    Raises:
        ValueError: the module is another one than the recipe makes.
    """
    kind = f"{type(module).__module__}:{type(module).__qualname__}"
    if kind != recipe.path:
        raise ValueError(f"it is a {kind} now; setup_pytorch_saver was given a {recipe.path}")
    current = Recipe(recipe.path, recipe.args, recipe.kwargs, module.training)
    # cloned, since a file holds no tensors that share memory
    tensors = {name: part.detach().cpu().contiguous().clone() for name, part in _tensors(module).items()}
    file.write(_import_safetensors().torch.save(tensors, {"format": "pt", RECIPE: current.to_json()}))


def load_weights(root: str, path: str, importer: Importer) -> Any:
    """Make the module of a file of weights, which may be hostile. Nothing is unpickled.

    Args:
        root: the folder that the file must be in.
        path: the file.
        importer: imports the module's class.

    Raises:
        UntrustedError: the file, or what it says, is malformed, does not fit the class, or is not allowed.
        ImportError: a package is not installed, or the class is not there.
    """
    import torch

    library = _import_safetensors()
    check_inside(root, path)
    try:
        _check_header(path)
        with library.safe_open(path, framework="pt") as file:
            text = (file.metadata() or {}).get(RECIPE)
            if text is None:
                raise UntrustedError("it does not say what class the weights are of: save with safe=True")
            module = Recipe.from_json(text).build(importer, torch.nn.Module)
            found = {name: file.get_slice(name).get_shape() for name in file.keys()}
            expected = _tensors(module)
            _check({name: tuple(part.shape) for name, part in expected.items()},
                   {name: tuple(shape) for name, shape in found.items()})
            tensors = {name: file.get_tensor(name) for name in found}
        _check(_shapes(expected), _shapes(tensors))
        module.load_state_dict(tensors)
    except UntrustedError as error:
        raise UntrustedError(f"{path}: {error}") from error
    except library.SafetensorError as error:
        raise UntrustedError(f"{path} is no file of safetensors: {error}") from error
    _tell_nan(path, tensors)
    return module


def _import_safetensors() -> Any:
    try:
        import safetensors.torch
    except ImportError as error:
        message = f"weights without a pickle need safetensors: pip install 'spinstat[safe]' ({error})"
        raise ImportError(message) from error
    return safetensors


def _check_header(path: str) -> None:
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
    if size > MAX_HEADER:
        raise UntrustedError(f"its header has {size} bytes; more than {MAX_HEADER} are not read")


def _tensors(module: Any) -> dict[str, Any]:
    """The weights of a module.

    Raises:
        ValueError: its state_dict holds something else, too.
    """
    import torch

    state = module.state_dict()
    for name, part in state.items():
        if not isinstance(part, torch.Tensor) or torch.nn.parameter.is_lazy(part):
            raise ValueError(f"{name} of the state_dict is a {type(part).__name__}, not a tensor with values")
    return dict(state)


def _shapes(tensors: Mapping[str, Any]) -> dict[str, object]:
    return {name: (tuple(part.shape), str(part.dtype)) for name, part in tensors.items()}


def _check(expected: Mapping[str, object], found: Mapping[str, object]) -> None:
    differences = _differences(expected, found)
    if differences:
        raise UntrustedError(f"its weights are not those of the class: {differences}")


def _differences(expected: Mapping[str, object], found: Mapping[str, object]) -> str:
    """What the second has other than the first, in words; nothing where they are alike."""
    missing = [name for name in expected if name not in found]
    unexpected = [name for name in found if name not in expected]
    others = [
        f"{name} has {_text(found[name])} instead of {_text(expected[name])}"
        for name in expected
        if name in found and found[name] != expected[name]
    ]
    parts = [("missing: ", missing), ("unexpected: ", unexpected), ("", others)]
    return "; ".join(title + ", ".join(_few(names)) for title, names in parts if names)


def _text(value: object) -> str:
    """A shape, or a shape and a dtype."""
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], str):
        return f"{value[1].removeprefix('torch.')} and shape {value[0]}"
    return f"shape {value}"


def _few(names: Sequence[str]) -> list[str]:
    rest = len(names) - MAX_NAMED
    shown = [printable(name) for name in names[:MAX_NAMED]]
    return shown if rest <= 0 else [*shown, f"{rest} more"]


def _tell_nan(path: str, tensors: Mapping[str, Any]) -> None:
    floats = {name: part.float() for name, part in tensors.items() if part.is_floating_point()}
    bad = [name for name, part in floats.items() if part.isnan().any()]
    if bad:
        warn(f"{path} has NaN in {', '.join(_few(bad))}: the run had diverged, or the file was changed")
