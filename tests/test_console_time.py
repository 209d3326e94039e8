"""The time that is left, with a clock that the tests move."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from spinstat.console_time import RECENT_ROWS, TimeLeft, duration


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def run(epochs: object, rows: Sequence[tuple[float, int, object]]) -> TimeLeft:
    """The state after rows of (seconds since the one before, number, value of the column Epoch)."""
    clock = Clock()
    left = TimeLeft(clock)
    left.expect(epochs)
    for seconds, number, epoch in rows:
        clock.now += seconds
        left.note(number, epoch)
    return left


def test_the_pace_of_the_rows_gives_the_time_left() -> None:
    left = run(50, [(10, number, None) for number in range(20)])
    assert left.seconds() == pytest.approx(300)
    assert left.text() == "20 of 50 epochs, about 5 min 0 s left"


def test_the_first_row_gives_a_first_estimate_with_the_setup_and_the_second_one_without() -> None:
    assert run(11, [(100, 0, None)]).seconds() == pytest.approx(1000)
    assert run(12, [(100, 0, None), (10, 1, None)]).seconds() == pytest.approx(100)


def test_after_a_resume_only_this_process_counts_for_the_pace() -> None:
    assert run(50, [(30, 40, None)]).seconds() == pytest.approx(9 * 30)
    assert run(50, [(30, 40, None), (7, 41, None)]).seconds() == pytest.approx(8 * 7)
    assert run(50, [(30, 40, None)]).text() == "41 of 50 epochs, about 4 min 30 s left"


def test_a_change_of_pace_is_followed() -> None:
    slow = [(100, number, None) for number in range(30)]
    quick = [(1, number, None) for number in range(30, 30 + RECENT_ROWS)]
    assert run(60, slow + quick).seconds() == pytest.approx(10)


@pytest.mark.parametrize("first", [0, 1])
def test_epochs_may_be_counted_from_zero_or_from_one(first: int) -> None:
    left = run(10, [(5, number, number + first) for number in range(4)])
    assert left.text() == "4 of 10 epochs, about 30 s left"


def test_rows_may_come_less_often_than_epochs() -> None:
    left = run(100, [(60, number, 10 * number + 10) for number in range(4)])
    assert left.text() == "40 of 100 epochs, about 6 min 0 s left"
    resumed = run(100, [(60, 3, 40)])
    assert resumed.seconds() == pytest.approx(6 * 60)


def test_several_rows_an_epoch_do_not_count_as_epochs() -> None:
    left = run(10, [(5, number, number // 2) for number in range(8)])
    assert left.seconds() == pytest.approx(6 * 35 / 3)
    assert left.text().startswith("4 of 10 epochs")


def test_the_last_epoch_has_no_time_left_and_more_than_all_are_no_number_of_epochs() -> None:
    assert run(3, [(5, number, None) for number in range(3)]).text() == "3 of 3 epochs"
    assert run(3, [(5, number, None) for number in range(4)]).text() == ""


def test_an_epoch_that_is_counted_anew_begins_a_new_pace() -> None:
    rows = [(50.0, 0, 10), (50.0, 1, 20), (50.0, 2, 3), (2.0, 3, 4)]
    left = run(10, [*rows, (2.0, 4, 5)])
    assert left.text() == "5 of 10 epochs, about 10 s left"


@pytest.mark.parametrize("epochs", [None, 0, -3, 2.5, "50", True, [50], {"a": 1}])
def test_anything_but_a_number_of_epochs_gives_no_estimate(epochs: object) -> None:
    left = run(epochs, [(10, 0, 0), (10, 1, 1)])
    assert left.seconds() is None
    assert left.text() == ""


def test_without_a_row_there_is_no_pace() -> None:
    assert run(10, []).seconds() is None


def test_an_epoch_that_is_no_integer_is_not_counted_by() -> None:
    assert run(10, [(10, 0, 7.5)]).text() == "1 of 10 epochs, about 1 min 30 s left"
    assert run(10, [(10, 0, True)]).text() == "1 of 10 epochs, about 1 min 30 s left"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0 s"),
        (0.4, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min 0 s"),
        (3599, "59 min 59 s"),
        (3599.7, "1 h 0 min"),
        (86400, "1 d 0 h"),
        (10**6, "11 d 13 h"),
    ],
)
def test_a_duration_has_its_two_largest_units(seconds: float, said: str) -> None:
    assert duration(seconds) == said
