"""What the rich console says of a value, and of how it differs from the one before."""

from __future__ import annotations

import math
from enum import Enum, auto

LONGEST = 24  # characters; an integer may have hundreds of digits

Cell = tuple[object, str]  # a value of a row, and its text


class Change(Enum):
    """How a value differs from the one before."""

    NONE = auto()  # nothing to compare
    SAME = auto()
    UP = auto()
    DOWN = auto()
    OTHER = auto()  # no difference can be told


def value_text(value: object, text: str, precision: int) -> str:
    """A value as the console shows it: floats with so many significant digits, anything else as its text."""
    return f"{value:.{precision}g}" if isinstance(value, float) else text


def is_odd(value: object) -> bool:
    """Whether a value is NaN or infinite."""
    return isinstance(value, float) and not math.isfinite(value)


def describe_change(before: Cell | None, now: Cell, precision: int) -> tuple[str, Change]:
    """What to say of a value after the one before.

    Integers are subtracted exactly; the difference of floats has three digits. Where there is none, as
    between a number and NaN, the value before is told. What is too long for that, or a text, is "changed".

    Args:
        before: value and text of the column when it was logged last; None for never.
        now: the same in this row, with None as the value where it is blank.
        precision: significant digits of a float that was before.

    >>> describe_change((1000, "1000"), (3000, "3000"), 6)
    ('+2000', <Change.UP: 3>)
    """
    if before is None or now[0] is None:
        return "", Change.NONE
    old, new = before[0], now[0]
    if not (_is_number(old) and _is_number(new)):
        if before[1] == now[1]:
            return "=", Change.SAME
        return (_was(old, before[1], precision) if _is_number(old) else "changed"), Change.OTHER
    assert isinstance(old, int | float) and isinstance(new, int | float)
    if old == new or (old != old and new != new):
        return "=", Change.SAME
    difference = _difference(old, new)
    if difference is None:
        return _was(old, before[1], precision), Change.OTHER
    text = f"{difference:+d}" if isinstance(difference, int) else f"{difference:+.3g}"
    return _if_short(text), Change.UP if difference > 0 else Change.DOWN


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _difference(old: int | float, new: int | float) -> int | float | None:
    """new - old; None where that is no finite number."""
    try:
        difference = new - old
    except OverflowError:  # an integer beyond the floats, and a float
        return None
    return difference if isinstance(difference, int) or math.isfinite(difference) else None


def _was(value: object, text: str, precision: int) -> str:
    return _if_short(f"was {value_text(value, text, precision)}")


def _if_short(text: str) -> str:
    return text if len(text) <= LONGEST else "changed"
