"""What env.json says of an environment: enough to make it again where its pickle cannot be read."""

from __future__ import annotations

import functools
import inspect
import json
import sys
from collections.abc import Callable
from typing import Any

DESCRIPTION = "env.json"  # its name in a run folder

# What make() of gymnasium and gym itself puts around an environment.
_STANDARD = {
    "AsyncVectorEnv", "AutoResetWrapper", "Autoreset", "EnvCompatibility", "HumanRendering", "OrderEnforcing",
    "PassiveEnvChecker", "RenderCollection", "StepAPICompatibility", "TimeLimit",
}  # fmt: skip


class _NotPossible(Exception):
    """A part of the description cannot be made; the text says why."""


def describe(env: Any, factory: Callable[..., Any] | None = None) -> dict[str, Any]:
    """Describe an environment so that `spinstat.envs.rebuild` can make it again, in any of three ways.

    Args:
        env: the environment.
        factory: what makes one when called without arguments: a function or class of a module, or a
            functools.partial of one.

    Returns:
        What JSON can hold: "class" of the environment within its wrappers; "modules" that may register it;
        "spec", the JSON of gymnasium's EnvSpec, wrappers included; "id" with the arguments of make();
        "factory", an import path with arguments. Each of the last three is None where it cannot be had, and
        "reasons" says why.
    """
    inner = _innermost(env)
    reasons: dict[str, str] = {}
    description: dict[str, Any] = {"class": _path(type(inner)), "modules": _modules(type(inner))}
    parts: dict[str, Callable[[], Any]] = {
        "spec": lambda: _spec(env),
        "id": lambda: _id(env),
        "factory": lambda: _factory(env, inner, factory),
    }
    for key, make in parts.items():
        description[key] = None
        try:
            description[key] = make()
        except _NotPossible as error:
            reasons[key] = str(error)
        except Exception as error:  # an environment's attributes can raise whatever its author thought of
            reasons[key] = f"{type(error).__name__}: {error}"
    return {**description, "reasons": reasons}


def _innermost(env: Any) -> Any:
    seen = {id(env)}
    while (inner := vars(env).get("env") if hasattr(env, "__dict__") else None) is not None:
        if id(inner) in seen:
            break
        seen.add(id(inner))
        env = inner
    return env


def _wrappers(env: Any) -> list[type]:
    """The classes around an environment, outermost first, without those that make() itself adds."""
    inner, found = _innermost(env), []
    while env is not inner:
        own = type(env).__module__.partition(".")[0] in ("gymnasium", "gym")
        if not (own and type(env).__name__ in _STANDARD):
            found.append(type(env))
        env = vars(env)["env"]
    return found


def _path(thing: Any) -> str:
    return f"{thing.__module__}:{thing.__qualname__}"


def _modules(kind: type) -> list[str]:
    """Where an environment may have been registered: the module of its class, and the package of that."""
    module = _real_name(kind.__module__)
    top = module.partition(".")[0]
    if top in ("gymnasium", "gym", "__main__", "builtins"):
        return []
    return [top] if module == top else [top, module]


def _real_name(module: str) -> str:
    """The importable name of a module that was started as python -m module."""
    if module != "__main__":
        return module
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return module if spec is None else str(spec.name)


def _get_spec(env: Any) -> Any:
    spec = getattr(env, "spec", None)
    if spec is None:
        raise _NotPossible("the environment has no spec: it was not made by make()")
    return spec


def _spec(env: Any) -> str:
    spec = _get_spec(env)
    if not hasattr(spec, "to_json"):
        raise _NotPossible(f"{type(spec).__module__.partition('.')[0]} has no JSON of a spec; gymnasium has")
    for wrapper in spec.additional_wrappers:
        if wrapper.kwargs is None:
            raise _NotPossible(
                f"wrapper {wrapper.name} does not record its arguments; one that is a "
                "gymnasium.utils.RecordConstructorArgs does"
            )
        _check_importable(wrapper.entry_point)
    if isinstance(spec.entry_point, str):
        _check_importable(spec.entry_point)
    return str(spec.to_json())


def _check_importable(path: str) -> None:
    if path.partition(":")[0] == "__main__" or "<locals>" in path:
        raise _NotPossible(f"{path} is of the script itself: put it in a module")


def _id(env: Any) -> dict[str, Any]:
    spec = _get_spec(env)
    around = _wrappers(env)
    if around:
        names = ", ".join(kind.__name__ for kind in around)
        raise _NotPossible(f"the id alone would leave out the environment's wrappers: {names}")
    if not isinstance(spec.entry_point, str):
        raise _NotPossible(f"{spec.id} is registered by the script itself: register it in a module")
    _check_importable(spec.entry_point)
    kwargs = {key: value for key, value in spec.kwargs.items() if value is not None}
    return {
        "library": type(spec).__module__.partition(".")[0],
        "id": spec.id,
        "kwargs": _as_json(kwargs, "argument"),
        "max_episode_steps": spec.max_episode_steps,
    }


def _factory(env: Any, inner: Any, factory: Callable[..., Any] | None) -> dict[str, Any]:
    if factory is not None:
        return _call(factory)
    if env is not inner:
        raise _NotPossible(
            "what made the environment is not known: give save_state an 'env_fn' beside 'env', a function of "
            "a module that makes it"
        )
    kind = type(env)
    arguments = getattr(env, "_ezpickle_args", None), getattr(env, "_ezpickle_kwargs", None)
    if arguments[0] is not None:
        return _call(kind, arguments[0], arguments[1] or {})
    if kind.__init__ is not object.__init__ and len(inspect.signature(kind.__init__).parameters) > 1:
        raise _NotPossible(
            f"the arguments that {kind.__name__} was made with are not known: give save_state an 'env_fn' "
            "beside 'env', a function of a module that makes it"
        )
    return _call(kind)


def _call(make: Callable[..., Any], args: Any = (), kwargs: Any = None) -> dict[str, Any]:
    """The import path and the arguments of a call."""
    kwargs = kwargs or {}
    while isinstance(make, functools.partial):
        args, kwargs, make = (*make.args, *args), {**make.keywords, **kwargs}, make.func
    name = getattr(make, "__qualname__", None)
    if name is None or getattr(make, "__module__", None) is None:
        raise _NotPossible(f"a {type(make).__name__} has no import path")
    module = _real_name(make.__module__)
    path = f"{module}:{name}"
    if module == "__main__" or "<" in name:
        raise _NotPossible(f"{path} cannot be imported by another program: put it in a module")
    found: Any = sys.modules.get(make.__module__)
    for step in name.split("."):
        found = getattr(found, step, None)
    if found is not make:
        raise _NotPossible(f"{path} is not what the import gives: use a function or class of a module")
    return {"path": path, "args": _as_json([*args], "argument"), "kwargs": _as_json({**kwargs}, "argument")}


def _as_json(value: Any, what: str) -> Any:
    for key, part in value.items() if isinstance(value, dict) else enumerate(value):
        try:
            json.dumps(part, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise _NotPossible(f"{what} {key!r} cannot be written as JSON: {error}") from error
    return value
