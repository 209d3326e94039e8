"""Which column of a row is the x axis."""

from __future__ import annotations

from ..row import Row
from ..terminal import warn

COLUMNS: tuple[str, ...] = ("TotalEnvInteracts", "Epoch")  # the first of them that the first row has


class Steps:
    """The step of each row, from the column that the first row decides on.

    Args:
        sink: its name, for messages.
        wanted: the column that the user has named. None: the first of COLUMNS that the first row has a number
            in. Where there is no such column, the step is the number of the row.
    """

    def __init__(self, sink: str, wanted: str | None) -> None:
        self._sink = sink
        self._wanted = wanted
        self._began = self._told = False
        self._last = 0
        self.column: str | None = None

    def is_first(self) -> bool:
        """Whether no row has come yet."""
        return not self._began

    def of(self, row: Row) -> int:
        """The step of a row; that of the row before where the column is blank or no number.

        A fraction is cut off."""
        cells = dict(zip(row.columns, row.values, strict=True))
        if not self._began:
            self._began = True
            columns = COLUMNS if self._wanted is None else (self._wanted,)
            self.column = next((name for name in columns if _as_step(cells.get(name)) is not None), None)
            if self._wanted is not None and self.column is None:
                warn(
                    f"the step of the sink {self._sink} is to be {self._wanted!r}, of which the first row "
                    "has no number: it is the number of the row instead"
                )
        step = row.number if self.column is None else _as_step(cells.get(self.column))
        if step is not None:
            self._last = step
        elif cells.get(self.column or "") is not None and not self._told:
            self._told = True
            warn(
                f"the step of the sink {self._sink} is {self.column!r}, which in row {row.number} is no "
                "number of 64 bits: that row, and others like it, have the step of the row before"
            )
        return self._last


def _as_step(value: object) -> int | None:
    """A number as an int of 64 bits; None for what is no step."""
    if isinstance(value, int | float) and abs(value) < 2.0**63:  # False for NaN
        return int(value)
    return None
