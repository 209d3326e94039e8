"""A configuration as one level of names and plain values; the cells of a row as floats."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any, TypeAlias

Plain: TypeAlias = "bool | int | float | str"


def flatten(config: object, separator: str = "/") -> dict[str, Plain]:
    """The entries of a configuration by name, those of a dict in it as "outer/inner".

    Args:
        config: JSON's own types, mostly a dict; anything else is the one entry "config".
        separator: between the names.

    Returns:
        Bools, numbers and texts as they are. Lists and empty dicts are their JSON; None is left out.
    """
    return dict(_entries(config if isinstance(config, dict) else {"config": config}, "", separator))


def as_float(number: float) -> float:
    """A number as the nearest float; an int beyond them all is an infinity."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _entries(config: dict[str, Any], prefix: str, separator: str) -> Iterator[tuple[str, Plain]]:
    for key, value in config.items():
        if isinstance(value, dict) and value:
            yield from _entries(value, f"{prefix}{key}{separator}", separator)
        elif isinstance(value, list | dict):
            yield prefix + key, json.dumps(value)
        elif value is not None:
            yield prefix + key, value
