"""Getting the environment of a run back, by the first way that works.

The ways, in this order: the pickle in vars.pkl; and from env.json, which is made when the run is saved, the
specification with its wrappers, the id with its arguments, the import path of what made it. Each of them may
give a fresh environment instead of one in the state that it was saved in: many keep only the arguments that
they were made with.

All of them run code: that of the pickle, and what the description names.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from .env_description import DESCRIPTION, describe
from .files import write_atomic
from .unpickling import load_pickle

__all__ = ["DESCRIPTION", "Found", "describe", "load_env", "rebuild", "record"]


class Unavailable(Exception):
    """A way to get an environment is not there; the text says why."""


@dataclass
class Found:
    """An environment, and how it was found.

    Attributes:
        env: None where no way worked.
        rung: the way that did.
        reasons: why those before it did not, each beginning with the way.
    """

    env: Any = None
    rung: str = ""
    reasons: list[str] = field(default_factory=list)

    def attempt(self, rung: str, build: Callable[[], Any]) -> None:
        """Try one way, unless one has worked already."""
        if self.env is not None:
            return
        try:
            env = build()
        except Unavailable as error:
            self.reasons.append(f"{rung}: {error}")
        except Exception as error:  # a saved environment can raise whatever its author thought of
            self.reasons.append(f"{rung}: {_in_one_line(error)}")
        else:
            self.env, self.rung = env, rung


def load_env(folder: str, vars_path: str | None) -> Found:
    """Get the environment of a run back.

    Args:
        folder: the run's.
        vars_path: the pickle of the checkpoint; None where it has none.
    """
    found = Found()
    name = os.path.basename(vars_path) if vars_path else "vars.pkl"
    found.attempt(f"the pickle in {name}", lambda: _from_pickle(vars_path))
    if found.env is None:
        path = os.path.join(folder, DESCRIPTION)
        try:
            with open(path, encoding="utf-8") as file:
                description = json.load(file)
        except FileNotFoundError:
            found.reasons.append(f"{DESCRIPTION}: there is none in {folder}")
        except (OSError, ValueError) as error:
            found.reasons.append(f"{DESCRIPTION}: {_in_one_line(error)}")
        else:
            rebuild(description, found)
    return found


def rebuild(description: Any, found: Found | None = None) -> Found:
    """Make an environment from what `describe` said of it; `found` is continued."""
    found = Found() if found is None else found
    if not isinstance(description, Mapping):
        found.reasons.append(f"{DESCRIPTION}: it holds a {type(description).__name__}, not an object")
        return found
    for key, build in _WAYS.items():
        found.attempt(f"the {key} in {DESCRIPTION}", lambda: build(_entry(description, key), description))  # noqa: B023
    return found


def record(folder: str, description: Mapping[str, Any], vars_path: str | None) -> list[str]:
    """Write env.json for an environment, and try what was saved, once.

    Args:
        folder: the run's.
        description: of the environment, by describe().
        vars_path: the pickle that it was saved in; None where it was not.

    Returns:
        Where no way leads back to the environment, the reason of each; else nothing.

    Raises:
        OSError: env.json cannot be written.
    """
    write_atomic(os.path.join(folder, DESCRIPTION), json.dumps(description, indent=4) + "\n")
    with _generators_kept():
        found = rebuild(description)
        if found.env is None:
            found.attempt("the pickle", lambda: _from_pickle(vars_path, elsewhere=True))
        if found.env is not None:
            _close(found.env)
            return []
    return found.reasons


def _from_pickle(path: str | None, elsewhere: bool = False) -> Any:
    if path is None:
        raise Unavailable("there is no such file")
    state = load_pickle(path)
    if not isinstance(state, Mapping):
        raise Unavailable(f"it holds a {type(state).__name__}, not a dict with an 'env'")
    env = state.get("env")
    if env is None and callable(state.get("env_fn")):
        env = state["env_fn"]()
    if env is None:
        raise Unavailable("it has no 'env': none was given to save_state, or it could not be pickled")
    if elsewhere and type(env).__module__ == "__main__" and not _by_value():
        raise Unavailable(
            f"{type(env).__qualname__} is a class of the script itself: another program finds it only with "
            "cloudpickle installed, or in a module of its own"
        )
    return env


def _by_value() -> bool:
    """Whether classes of the script are saved with it."""
    from importlib.util import find_spec

    return find_spec("cloudpickle") is not None


def _entry(description: Mapping[str, Any], key: str) -> Any:
    value = description.get(key)
    if value is not None:
        return value
    reasons = description.get("reasons")
    reason = reasons.get(key) if isinstance(reasons, Mapping) else None
    raise Unavailable(reason or "not described")


def _from_spec(text: str, description: Mapping[str, Any]) -> Any:
    gymnasium = _library("gymnasium")
    spec = gymnasium.envs.registration.EnvSpec.from_json(text)
    with _registered(description):
        return gymnasium.make(spec)


def _from_id(entry: Mapping[str, Any], description: Mapping[str, Any]) -> Any:
    library = entry["library"]
    if library not in ("gymnasium", "gym"):
        raise Unavailable(f"{library!r} is neither gymnasium nor gym")
    gym = _library(library)
    options = {} if entry["max_episode_steps"] is None else {"max_episode_steps": entry["max_episode_steps"]}
    with _registered(description):
        return gym.make(entry["id"], **options, **entry["kwargs"])


def _from_factory(entry: Mapping[str, Any], description: Mapping[str, Any]) -> Any:
    module, _, names = entry["path"].partition(":")
    make = _import(module)
    for name in names.split("."):
        make = getattr(make, name)
    env = make(*entry["args"], **entry["kwargs"])
    if not (callable(getattr(env, "reset", None)) and callable(getattr(env, "step", None))):
        raise Unavailable(f"{entry['path']} gave a {type(env).__name__}, which has no reset() and step()")
    return env


_WAYS: dict[str, Callable[[Any, Mapping[str, Any]], Any]] = {
    "spec": _from_spec,
    "id": _from_id,
    "factory": _from_factory,
}


def _library(name: str) -> Any:
    try:
        return _import(name)
    except ImportError as error:
        package = "'spinstat[gym]'" if name == "gymnasium" else name
        raise Unavailable(f"{name} is not installed: pip install {package} ({error})") from error


def _import(module: str) -> Any:
    from importlib import import_module

    return import_module(module)


@contextmanager
def _registered(description: Mapping[str, Any]) -> Iterator[None]:
    """Import the modules that may register the id; one that cannot be is told with what fails without it."""
    failures = []
    for module in description.get("modules", ()):
        try:
            _import(module)
        except Exception as error:  # whatever happens when somebody's module is imported
            failures.append(f"importing {module}: {_in_one_line(error)}")
    try:
        yield
    except Exception as error:
        for failure in failures:
            error.add_note(failure)
        raise


@contextmanager
def _generators_kept() -> Iterator[None]:
    """Leave the global random generators as they were: a trial must not change the run."""
    import random
    import sys

    import numpy as np

    torch = sys.modules.get("torch")
    before = random.getstate(), np.random.get_state()
    torch_before = None if torch is None else torch.get_rng_state()
    try:
        yield
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])
        if torch is not None:
            torch.set_rng_state(torch_before)


def _close(env: Any) -> None:
    try:
        env.close()
    except Exception:  # it was only tried: how it ends is no concern of the run
        return


def _in_one_line(error: BaseException) -> str:
    notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
    text = f"{type(error).__name__}: {error}{notes}" if str(error) else type(error).__name__
    return " ".join(text.split())
