"""The environment of a run that is not trusted: by its id, of a library that is installed here."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from .env_description import DESCRIPTION
from .envs import Found, Unavailable
from .recipe import load_json
from .untrusted import Importer, UntrustedError, printable, read_inside

MAX_DESCRIPTION = 2**20  # bytes of env.json
_ID = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")  # without a colon: what is before it would be imported
_PATH = re.compile(r"[/\\:]|^\.\.?$|^~")


def load_env_untrusted(folder: str, importer: Importer) -> Found:
    """Make the environment that env.json names, by its id and arguments. Nothing is unpickled.

    The library is gymnasium or gym, and the id one that it has itself or that a module allowed registers.

    Args:
        folder: the run's.
        importer: says which modules are allowed, and imports them.
    """
    found = Found(reasons=["the pickle, the spec and the factory of the run: not used without trust"])
    found.attempt(f"the id in {DESCRIPTION}", lambda: _make(_read(folder), importer))
    return found


def _read(folder: str) -> Mapping[str, Any]:
    path = os.path.join(folder, DESCRIPTION)
    try:
        data = read_inside(folder, path, MAX_DESCRIPTION)
    except FileNotFoundError:
        raise Unavailable(f"there is no {DESCRIPTION} in {folder}") from None
    description = load_json(data)
    if not isinstance(description, Mapping):
        raise Unavailable(f"{DESCRIPTION} holds a {type(description).__name__}, not an object")
    return description


def _make(description: Mapping[str, Any], importer: Importer) -> Any:
    entry = description.get("id")
    if entry is None:
        reasons = description.get("reasons")
        reason = reasons.get("id", "") if isinstance(reasons, Mapping) else ""
        reason = printable(str(reason)) or "not described"
        raise Unavailable(f"{reason}. Make the environment yourself, for run_policy")
    name, library, kwargs, limit = _fields(entry)
    gym = _import_library(library)
    not_allowed = _register(description.get("modules"), importer)
    try:
        spec = gym.spec(name)
    except gym.error.Error as error:
        way = f" It may be one of {not_allowed}, which allow does not have." if not_allowed else ""
        raise Unavailable(f"{library} has no {name}: {error}.{way}") from error
    point = spec.entry_point
    module = point.partition(":")[0] if isinstance(point, str) else getattr(point, "__module__", "")
    if not (module.startswith(f"{library}.envs.") or importer.allows(module)):
        raise UntrustedError(f"{name} is of module {module}: if you trust that, give allow=[{module!r}]")
    return gym.make(name, **({} if limit is None else {"max_episode_steps": limit}), **kwargs)


def _fields(entry: Any) -> tuple[str, str, dict[str, Any], int | None]:
    """The id, its library, the arguments and the limit of steps, all of them harmless."""
    entry = entry if isinstance(entry, Mapping) else {}
    name, library, kwargs = entry.get("id"), entry.get("library"), entry.get("kwargs")
    limit = entry.get("max_episode_steps")
    if library not in ("gymnasium", "gym"):
        raise UntrustedError(f"'{printable(str(library))}' is neither gymnasium nor gym")
    if not isinstance(name, str) or not _ID.fullmatch(name):
        raise UntrustedError(f"'{printable(str(name))}' is no plain id of an environment")
    if not isinstance(kwargs, dict) or not (limit is None or type(limit) is int):
        raise UntrustedError(f"the arguments of {name} are malformed")
    for text in _texts(kwargs.values()):
        if _PATH.search(text):
            raise UntrustedError(f"an argument of {name} may be a path or name a module: '{printable(text)}'")
    return name, library, kwargs, limit


def _texts(values: Iterable[Any]) -> Iterable[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            yield from _texts([*value.keys(), *value.values()])
        elif isinstance(value, list):
            yield from _texts(value)


def _import_library(name: str) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError as error:
        package = "'spinstat[gym]'" if name == "gymnasium" else name
        raise Unavailable(f"{name} is not installed: pip install {package} ({error})") from error


def _register(modules: Any, importer: Importer) -> str:
    """Import those modules that may register the id and are allowed; returns the names of the others."""
    names = [name for name in modules if isinstance(name, str)] if isinstance(modules, list) else []
    for name in names:
        if importer.allows(name):
            importer.module(name)
    return ", ".join(printable(name) for name in names if not importer.allows(name))
