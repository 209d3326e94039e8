"""--set NAME=VALUE: what the words mean, and where they go. No word is ever evaluated as code."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from .relaunch_program import Refused
from .relaunch_values import record_value

# Import paths that may stand for what they name; any other word is text.
_ALLOWED: Final = re.compile(
    r"(?:(torch)\.((?:nn|nn\.functional|optim)\.[A-Za-z_]\w*)"
    r"|(?:tf|(tensorflow))\.((?:nn|keras\.(?:activations|initializers|optimizers))\.[A-Za-z_]\w*))"
)


def parse_setting(word: str) -> tuple[str, str]:
    """NAME and VALUE of a word.

    Raises:
        Refused: it is not of that form.
    """
    name, equals, value = word.partition("=")
    if not equals or not all(step.isidentifier() for step in name.split(".")):
        raise Refused(f"--set takes NAME=VALUE, such as seed=3 or ac_kwargs.hidden=[64,64], not {word!r}")
    return name, value


def recorded_word(text: str) -> Any:
    """The value that a word stands for, as `record_value` has it.

    A Python literal is what it says; torch.nn.ReLU, tf.nn.relu and their like are what is imported under that
    name; everything else, such as `sum` or `exit()`, is text.
    """
    try:
        return record_value(ast.literal_eval(text))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        found = _ALLOWED.fullmatch(text)
    if found is None:
        return text
    return {"$object": f"torch:{found[2]}" if found[1] else f"tensorflow:{found[4]}"}


def with_settings(call: Mapping[str, Any], settings: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """The recorded arguments of a call with some of them set.

    Raises:
        Refused: the function has no such argument, or it has no such entry.
    """
    arguments = dict(call["arguments"])
    for name, text in settings:
        first, *steps = name.split(".")
        if first not in arguments or first in (call["star"], call["double_star"]):
            rest = arguments.get(call["double_star"])
            if not isinstance(rest, dict):
                others = (call["star"], call["double_star"])
                known = ", ".join(key for key in arguments if key not in others)
                raise Refused(f"{call['function']} has no argument {first!r} to set; it has: {known}")
            arguments[call["double_star"]] = _set(rest, [first, *steps], text, name)
        else:
            arguments[first] = _set(arguments[first], steps, text, name)
    return arguments


def _set(value: Any, steps: list[str], text: str, name: str) -> Any:
    if not steps:
        return recorded_word(text)
    if not isinstance(value, dict) or next(iter(value), "").startswith("$"):
        raise Refused(f"--set {name}: entries can only be set of a dict whose keys are text")
    return {**value, steps[0]: _set(value.get(steps[0], {}), steps[1:], text, name)}


def with_options(words: Sequence[str], settings: Sequence[tuple[str, str]], whole: str) -> list[str]:
    """The arguments of a program with the values of some options set.

    Args:
        words: the arguments.
        settings: an option's name without dashes, and its value. `_` and `-` in it are alike.
        whole: the command line, for the message.

    Raises:
        Refused: an option is not among them. Whether the program knows it cannot be told: one that does not
            read its arguments would run unchanged.
    """
    found = list(words)
    for name, text in settings:
        places = [at for at, word in enumerate(found) if _option(word) == name.replace("-", "_")]
        if not places:
            own = f"{whole} --{name} {text}"
            raise Refused(f"it has no option --{name} to set; if the program knows one, run: {own}")
        for at in places:
            option, equals, _ = found[at].partition("=")
            if equals:
                found[at] = f"{option}={text}"
            elif at + 1 < len(found) and _option(found[at + 1]) is None:
                found[at + 1] = text
            else:
                raise Refused(f"its option {option} has no value to set")
    return found


def _option(word: str) -> str | None:
    """The name of an option, as NAME of --set; None for another word."""
    match = re.fullmatch(r"--?([A-Za-z][\w.-]*)(=.*)?", word, re.DOTALL)
    return match[1].replace("-", "_") if match else None
