"""Where a run that is started again writes: in its recorded arguments, another folder than the old one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from .folders import reserve
from .relaunch_program import Refused

NAMES = ("output_dir", "logger_kwargs")  # of arguments that tell a function where to write


class NewFolder:
    """The folder that a run is to write to.

    Args:
        given: an absolute path; None: that of the old one with the first number that is free.
        old: the run's folder.

    Attributes:
        path: the folder; None until it is used.
    """

    def __init__(self, given: str | None, old: str) -> None:
        self.is_given: bool = given is not None
        self.path: str | None = None
        self._given, self._old = given, old

    def use(self) -> str:
        """The path, which is made up, and reserved, when it is first needed."""
        if self.path is None:
            self.path = reserve(self._old) if self._given is None else self._given
        return self.path


class Redirection:
    """Puts the new folder in place of the old one.

    Args:
        old: the run's folder, an absolute path.
        new: the folder to write to, an absolute path.
        cwd: what relative paths are relative to.

    Attributes:
        count: how often it has done that.
    """

    def __init__(self, old: str, new: str, cwd: str) -> None:
        self._old, self._new, self._cwd = old, new, cwd
        self.count: int = 0

    def word(self, text: str, is_path: bool = False) -> str:
        """A path, which may lie within the old folder. Without a separator it may be a mere name, such as
        exp_name's, unless is_path says that it is none."""
        if not text or not (is_path or os.sep in text):
            return text
        try:
            path = os.path.realpath(os.path.join(self._cwd, text))
            old = os.path.realpath(self._old)
        except ValueError:  # a null character, or half a letter: no path has that
            return text
        if path != old and not path.startswith(old + os.sep):
            return text
        self.count += 1
        return self._new + path[len(old) :]

    def value(self, value: Any, is_path: bool = False) -> Any:
        """A recorded value, with what is in it."""
        if isinstance(value, str):
            return self.word(value, is_path)
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if not isinstance(value, dict):
            return value
        if "$call" in value:
            call = value["$call"]
            path = is_path or str(call["of"]).startswith("pathlib:")
            parts = {"args": [self.value(item, path) for item in call["args"]]}
            if "kwargs" in call:
                parts["kwargs"] = self.value(call["kwargs"])
            return {"$call": {**call, **parts}}
        if next(iter(value), "") in ("$object", "$unrecorded", "$array", "$scalar", "$float"):
            return value
        return {key: self.value(item, key == "output_dir") for key, item in value.items()}


def redirected(
    arguments: Mapping[str, Any], record: Mapping[str, Any], chosen: set[str], new: NewFolder | None
) -> dict[str, Any]:
    """The arguments of a call, for a new folder.

    Args:
        arguments: as recorded, with what was set.
        record: launch.json.
        chosen: the names of those that were set, which stay as they are.
        new: the folder; None: the function has its way.

    Raises:
        Refused: it cannot be told to the function.
    """
    kept = {name: value for name, value in arguments.items() if name in chosen}
    if new is None:
        return dict(arguments)
    own = chosen & {*NAMES, "logger_kwargs.output_dir"}
    if own:
        _refuse_two(new, own)
        return dict(arguments)
    old, cwd = record["folder"], record["program"]["cwd"]
    probe = Redirection(old, "", cwd)
    probe.value({name: value for name, value in arguments.items() if name not in chosen})
    if probe.count:
        redirection = Redirection(old, new.use(), cwd)
        return {**redirection.value(dict(arguments)), **kept}
    if is_default(old) and not new.is_given:
        return dict(arguments)
    if "output_dir" in arguments:
        return {**arguments, "output_dir": new.use()}
    kwargs = arguments.get("logger_kwargs")
    if isinstance(kwargs, dict) and not next(iter(kwargs), "").startswith("$"):
        return {**arguments, "logger_kwargs": {**kwargs, "output_dir": new.use()}}
    raise Refused(
        f"none of its arguments is the folder, {old}, so it cannot be told to write elsewhere: set what the "
        "folder depends on and give --overwrite, which lets it write where it will"
    )


def _refuse_two(new: NewFolder, own: set[str]) -> None:
    if new.is_given:
        raise Refused(f"both --output-dir and --set {', '.join(sorted(own))} say where to write")


def redirected_words(
    before: list[str], words: list[str], record: Mapping[str, Any], new: NewFolder | None
) -> list[str]:
    """The arguments of a command line, for a new folder; as `redirected`.

    Args:
        before: as recorded.
        words: with what was set.
        record, new: as there.
    """
    if new is None:
        return words
    old, cwd = record["folder"], record["program"]["cwd"]

    def redirect(some: list[str], folder: str) -> tuple[int, list[str]]:
        redirection = Redirection(old, folder, cwd)
        found = [_redirect_word(redirection, word) for word in some]
        return redirection.count, found

    if redirect(words, "")[0]:
        return redirect(words, new.use())[1]
    if redirect(before, "")[0]:
        _refuse_two(new, {word for word in words if word not in before})
        return words
    if is_default(old) and not new.is_given:
        return words
    raise Refused(
        f"none of its words is the folder, {old}, so it cannot be told to write elsewhere: --overwrite lets "
        "it write where it will"
    )


def _redirect_word(redirection: Redirection, word: str) -> str:
    option, equals, value = word.partition("=")
    if equals and option.startswith("-"):
        return option + equals + redirection.word(value, is_path=True)
    return redirection.word(word)


def is_default(folder: str) -> bool:
    """Whether a folder is one of those that a logger without output_dir makes: a new one each time."""
    above, name = os.path.split(folder)
    return name.isdecimal() and os.path.basename(above) == "experiments"


