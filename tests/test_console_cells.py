"""What the rich console says of values and changes."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from spinstat.console_cells import Change, describe_change, is_odd, value_text

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("value", "precision", "shown"),
    [
        (1 / 3, 6, "0.333333"),
        (1 / 3, 3, "0.333"),
        (1234567.0, 6, "1.23457e+06"),
        (2000.0, 6, "2000"),
        (-0.0, 6, "-0"),
        (NAN, 6, "nan"),
        (-INF, 6, "-inf"),
        (5e-324, 6, "4.94066e-324"),
        pytest.param(1234567, 6, "1234567", id="C10-integers-in-full"),
        (10**30, 6, str(10**30)),
        (True, 6, "True"),
        ("text", 6, "text"),
        (Fraction(1, 3), 6, "1/3"),
    ],
)
def test_a_float_has_so_many_digits_and_anything_else_its_text(
    value: object, precision: int, shown: str
) -> None:
    assert value_text(value, str(value), precision) == shown


@pytest.mark.parametrize(
    ("before", "now", "said", "kind"),
    [
        (1, 3, "+2", Change.UP),
        (3, 1, "-2", Change.DOWN),
        (10**30, 10**30 + 1, "+1", Change.UP),
        (2**53, 2**53 + 1, "+1", Change.UP),
        (1.0, 1.5, "+0.5", Change.UP),
        (1000.0, 1.0, "-999", Change.DOWN),
        (1.0, 4 / 3, "+0.333", Change.UP),
        (1, 1.5, "+0.5", Change.UP),
        (1, 1.0, "=", Change.SAME),
        (0.0, -0.0, "=", Change.SAME),
        (1e300, 1e300, "=", Change.SAME),
        (1.0, NAN, "was 1", Change.OTHER),
        (123456, NAN, "was 123456", Change.OTHER),
        (NAN, 1.0, "was nan", Change.OTHER),
        (NAN, NAN, "=", Change.SAME),
        (INF, INF, "=", Change.SAME),
        (INF, -INF, "was inf", Change.OTHER),
        (2.5, INF, "was 2.5", Change.OTHER),
        (1.7e308, -1.7e308, "was 1.7e+308", Change.OTHER),
        (10**400, 1.5, "changed", Change.OTHER),
        (0, 10**400, "changed", Change.UP),
        (0, -(10**22), f"-{10**22}", Change.DOWN),
        ("a", "b", "changed", Change.OTHER),
        ("a", "a", "=", Change.SAME),
        ("nan", NAN, "=", Change.SAME),
        (1.5, "a", "was 1.5", Change.OTHER),
        (True, False, "changed", Change.OTHER),
        (True, True, "=", Change.SAME),
        (1, True, "was 1", Change.OTHER),
        (Fraction(1, 3), Fraction(1, 3), "=", Change.SAME),
        ("", "a", "changed", Change.OTHER),
    ],
)
def test_a_change_is_told_as_a_person_would(before: object, now: object, said: str, kind: Change) -> None:
    assert describe_change((before, str(before)), (now, str(now)), 6) == (said, kind)


def test_the_first_value_and_a_blank_one_have_no_change() -> None:
    assert describe_change(None, (1.0, "1.0"), 6) == ("", Change.NONE)
    assert describe_change((1.0, "1.0"), (None, ""), 6) == ("", Change.NONE)


@pytest.mark.parametrize("value", [0, 1.5, True, "nan", None, 10**400, Fraction(1, 3)])
def test_only_floats_that_are_not_finite_stand_out(value: object) -> None:
    assert not is_odd(value)
    assert is_odd(NAN) and is_odd(INF) and is_odd(-INF)
