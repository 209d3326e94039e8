"""The console that people like: rows as tables in sections, with what has changed and the time left.

`rich` draws them (pip install "spinstat[rich]"). It gets plain text, never markup, and what it draws is
written to stdout in one piece, row after row, so that what is left of a run reads from top to bottom.
"""

from __future__ import annotations

import json
import os
import re
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from .console_cells import Change, describe_change, is_odd, value_text
from .console_time import TimeLeft
from .row import Row
from .terminal import is_terminal, show, wants_color, warn
from .writers import TableWriter, Writer

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

CONSOLES = ("plain", "rich")

DEFAULT_WIDTH = 80  # of a terminal that does not tell
LEAST_WIDTH = 30  # narrower ones get the plain table, whose lines they break
NAME_WIDTH = 20  # before names or texts are folded more than to these, a column of figures is left out
TEXT_WIDTH = 20
FRAME = 3  # bar and blanks that a column costs

# Colours of a change tell its direction; which one is the good one only the user knows.
STYLES = {Change.UP: "cyan", Change.DOWN: "yellow", Change.SAME: "dim", Change.OTHER: "magenta"}
ODD_VALUE = "bold red"  # NaN and the infinities

_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f]")


def check_console(console: object) -> None:
    """Raise for a console that there is not.

    Raises:
        ValueError: an unknown name.
        ImportError: it needs rich, which is not installed.
    """
    if console not in CONSOLES:
        raise ValueError(f"console is {' or '.join(map(repr, CONSOLES))}, not {console!r}")
    if console == "rich":
        try:
            import rich.table  # noqa: F401
        except ImportError as error:
            message = f"console='rich' needs rich: pip install 'spinstat[rich]' ({error})"
            raise ImportError(message) from error


def make_console(console: str, precision: int | None) -> Writer:
    """The writer that prints rows: of Spinning Up's table, or of this module's."""
    return RichConsole(precision) if console == "rich" else TableWriter(precision)


class Line(NamedTuple):
    """A column of the row as it is shown: a line of the table."""

    group: str
    name: str
    value: str
    odd: bool
    change: str
    kind: Change
    n: str


class RichConsole:
    """Prints rows in sections, one a group of columns; the plain table where stdout is no terminal.

    The group of a column is the part before the first "/" of its key: "Loss/Pi" is Pi in the section Loss,
    and the AverageLoss/Pi of stored values is AveragePi there. Columns without a group come first.

    Args:
        precision: significant digits of floats. None: 6. Integers are always in full.
    """

    def __init__(self, precision: int | None = None) -> None:
        self._precision: int = 6 if precision is None else precision
        self._plain = TableWriter(precision)
        self._time_left = TimeLeft()
        self._places: dict[str, tuple[str, str]] = {}  # group and name of each column
        self._last: dict[str, tuple[object, str]] = {}  # newest value and text of each column

    def save_config(self, text: str) -> None:
        """Take the number of epochs from the configuration, which is JSON, if it has one under "epochs"."""
        config = json.loads(text)
        self._time_left.expect(config.get("epochs") if isinstance(config, dict) else None)

    def write(self, row: Row) -> None:
        """Print the row. Never raises for what a cell holds, or for stdout."""
        self._time_left.note(row.number, dict(zip(row.columns, row.values, strict=True)).get("Epoch"))
        stream = sys.stdout
        width = terminal_width(stream)
        drawn = None
        if takes_tables(stream) and width >= LEAST_WIDTH:
            try:
                drawn = self._draw(row, stream, width)
            except Exception as error:  # whatever it is: the row must be seen, and the run go on
                warn(f"rich cannot draw this row ({type(error).__name__}: {error}); it is printed plainly")
        if drawn is None:
            self._plain.write(row)
        else:
            show(drawn)
        for column, value, text in zip(row.columns, row.values, row.texts, strict=True):
            if value is not None:
                self._last[column] = value, text

    def close(self) -> None:
        """Nothing is left to print."""

    def _draw(self, row: Row, stream: Any, width: int) -> str:
        import io

        from rich.console import Console
        from rich.text import Text

        page = io.StringIO()
        encoding = getattr(stream, "encoding", None) or "utf-8"
        console = Console(
            file=page,
            width=width,
            height=1,  # with it, rich asks neither the environment nor the terminal for its size
            force_terminal=True,
            force_jupyter=False,
            legacy_windows=False,
            color_system="standard" if wants_color(stream) else None,
        )
        console.print(Text(self._heading(row), "bold"))
        lines = [self._line(row, at, encoding) for at in range(len(row.columns))]
        console.print(make_table(lines, width, encoding))
        return page.getvalue().removesuffix("\n")

    def _heading(self, row: Row) -> str:
        return self._time_left.text() or f"Row {row.number + 1}"

    def _line(self, row: Row, at: int, encoding: str) -> Line:
        column, value = row.columns[at], row.values[at]
        stored = row.stored.get(column)
        if stored is not None:  # remembered for the rows that do not have it
            self._places[column] = _place(column, stored.key)
        group, name = self._places.get(column) or _place(column, column)
        change, kind = describe_change(self._last.get(column), (value, row.texts[at]), self._precision)
        return Line(
            literal(group, encoding),
            literal(name, encoding),
            literal(value_text(value, row.texts[at], self._precision), encoding),
            is_odd(value),
            change,
            kind,
            "" if stored is None else str(stored.n),
        )


def _place(column: str, key: str) -> tuple[str, str]:
    """The group of a column, "" for none, and its name there; key is what it was logged as."""
    group, _, rest = key.partition("/")
    return (group, column.replace(key, rest, 1)) if group and rest else ("", column)


def literal(text: str, encoding: str) -> str:
    r"""Text that takes its place and changes no colour: control characters as \x1b, as what has no letter."""
    text = _CONTROLS.sub(lambda found: found.group().encode("unicode_escape").decode(), text)
    return text.encode(encoding, "backslashreplace").decode(encoding)


def takes_tables(stream: Any) -> bool:
    """Whether people see this stream: a terminal that is not dumb, or where FORCE_COLOR says so."""
    return wants_color(stream) or is_terminal(stream)


def terminal_width(stream: Any) -> int:
    """Characters in a line of the terminal: COLUMNS, or what it tells, or 80."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isascii() and columns.isdigit() and int(columns) > 0:
        return int(columns)
    try:
        return os.get_terminal_size(stream.fileno()).columns or DEFAULT_WIDTH
    except (AttributeError, ValueError, OSError):  # not a terminal of the system
        return DEFAULT_WIDTH


def make_table(lines: list[Line], width: int, encoding: str) -> Table:
    """The table of these lines, those of a group together; what there is no room for is left out."""
    from rich import box
    from rich.table import Table

    figures = _figures_shown(lines, width)
    table = Table(box=box.ROUNDED if literal("╭", encoding) == "╭" else box.ASCII2, header_style="dim")
    table.add_column("", overflow="fold")
    for name in ("value", *figures):
        table.add_column(name, justify="right", overflow="fold")
    groups: dict[str, list[Line]] = {"": []}
    for line in lines:
        groups.setdefault(line.group, []).append(line)
    for group, members in groups.items():
        if group:
            table.add_section()
            table.add_row(_text(group, "bold"))
        for line in members:
            cells = {
                "change": _text(line.change, STYLES.get(line.kind, "")),
                "count": _text(line.n, "dim"),
            }
            table.add_row(
                _text(f"  {line.name}" if group else line.name),
                _text(line.value, ODD_VALUE if line.odd else ""),
                *(cells[name] for name in figures),
            )
    return table


def _figures_shown(lines: list[Line], width: int) -> list[str]:
    from rich.cells import cell_len

    def widest(texts: list[str]) -> int:
        return max(map(cell_len, texts), default=0)

    needed = 1 + 2 * FRAME + min(widest([f"  {line.name}" for line in lines]), NAME_WIDTH)
    needed += min(widest([line.value for line in lines]), TEXT_WIDTH)
    widths = {"change": widest(["change", *(line.change for line in lines)])}
    if any(line.n for line in lines):
        widths["count"] = widest(["count", *(line.n for line in lines)])
    while widths and needed + sum(figure + FRAME for figure in widths.values()) > width:
        widths.popitem()
    return list(widths)


def _text(text: str, style: str = "") -> Text:
    from rich.text import Text

    return Text(text, style)
