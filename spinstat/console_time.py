"""How long a run will still take, from its rows and the number of its epochs."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

RECENT_ROWS = 20  # the pace of as many rows counts: a mean over slow and quick ones that follows the run


class TimeLeft:
    """Counts the epochs of a run and the time they take.

    Only rows of this process count for the pace, so time in which a run that is resumed was not running does
    not. The time until the first row includes what came before training, and counts only until there is a
    second one.

    Args:
        clock: gives seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._start: float = clock()
        self._marks: deque[tuple[float, float]] = deque(maxlen=RECENT_ROWS + 1)  # time, and epochs done then
        self._from_start: bool = False  # whether the first mark is the start
        self._epochs: int | None = None

    def expect(self, epochs: object) -> None:
        """Set the number of epochs of the whole run; anything but an integer above 0 leaves it unknown."""
        self._epochs = None
        if isinstance(epochs, int) and not isinstance(epochs, bool) and epochs > 0:
            self._epochs = epochs

    def note(self, number: int, epoch: object) -> None:
        """Take note of a row.

        Args:
            number: rows before it, in the runs that this one goes on from too.
            epoch: its column "Epoch". An integer tells how many epochs are done, counted from 0 or from 1, so
                that rows need not come every epoch. Without one, a row is an epoch.
        """
        done = number + 1
        if isinstance(epoch, int) and not isinstance(epoch, bool):
            done = epoch if epoch > number else epoch + 1
        marks = self._marks
        if self._from_start:
            marks.popleft()
        self._from_start = not marks
        if self._from_start:
            marks.append((self._start, done * number / (number + 1)))
        elif done < marks[-1][1]:  # counted anew, as in a second phase of training
            marks.clear()
        marks.append((self._clock(), done))

    def seconds(self) -> float | None:
        """The time that is left; None where it cannot be known."""
        if self._epochs is None or not self._marks:
            return None
        (before, first), (now, done) = self._marks[0], self._marks[-1]
        return max(self._epochs - done, 0) * (now - before) / (done - first) if done > first else None

    def text(self) -> str:
        """How far the run has come: "3 of 50 epochs, about 2 min 10 s left"; "" where that is unknown."""
        done = self._marks[-1][1] if self._marks else 0
        if self._epochs is None or done > self._epochs:
            return ""
        seconds = self.seconds()
        left = "" if seconds is None or done == self._epochs else f", about {duration(seconds)} left"
        return f"{done:.0f} of {self._epochs} epochs{left}"


def duration(seconds: float) -> str:
    """A time in its two largest units.

    >>> duration(3.4), duration(89.6), duration(7320), duration(180000)
    ('3 s', '1 min 30 s', '2 h 2 min', '2 d 2 h')
    """
    units = (("d", 24 * 60 * 60), ("h", 60 * 60), ("min", 60), ("s", 1))
    left = round(seconds)
    for at, (unit, size) in enumerate(units[:-1]):
        if left >= size:
            below, smaller = units[at + 1]
            return f"{left // size} {unit} {left % size // smaller} {below}"
    return f"{left} s"
