"""The text of a progress file as columns: whatever can be read, and notes on what was left out."""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .regular import RegularRows, regular_rows
from .row import unquote_name

Column = npt.NDArray[Any]

LINES_NAMED = 5  # of the lines that a note is about; the others are counted
_NUMBER = re.compile(
    r"\s*[-+]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[-+]?[0-9]+)?|nan|inf|infinity)\s*", re.IGNORECASE
)
_BEGINNINGS = frozenset("0123456789-.")  # of numbers: a line that begins so is no header
_TRUTH = {"True": 1.0, "False": 0.0}


class Table(NamedTuple):
    """The names of all columns, those that were asked for, all of one length, and what was skipped."""

    names: tuple[str, ...]
    rows: int
    columns: dict[str, Column]
    skipped: tuple[str, ...]


class _Notes:
    """Line numbers by what is the matter there."""

    def __init__(self) -> None:
        self._lines: dict[str, list[int]] = {}

    def add(self, line: int, matter: str) -> None:
        self._lines.setdefault(matter, []).append(line)

    def texts(self) -> tuple[str, ...]:
        return tuple(f"{_lines(lines)}: {matter}" for matter, lines in self._lines.items())


def _lines(numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return f"line {numbers[0]}"
    named = ", ".join(map(str, numbers[:LINES_NAMED]))
    more = len(numbers) - LINES_NAMED
    return f"lines {named}" + (f" and {more} more" if more > 0 else "")


def parse(data: bytes, delimiter: str, wanted: Collection[str] | None = None) -> Table:
    """The table in a progress file, which may be growing at this moment.

    The first line names the columns. A later line that does so again (a run that was begun anew, a column
    that came later) holds for the lines below it; a column that a line does not have is blank there.

    Columns of integers are int64, of True and False bool, of other numbers float64 with nan for a blank cell
    and for a text cell; where less than half of the cells are numbers, the column is one of texts (object).

    Args:
        data: the bytes of the file.
        delimiter: a tab, or a comma for CSV with its quotes.
        wanted: names of columns; the others are not made, which takes most of the time. None: make all.
    """
    notes = _Notes()
    text = data.decode("utf-8-sig", "replace")
    whole = text[: text.rfind("\n") + 1]
    if len(whole) < len(text):
        notes.add(whole.count("\n") + 1, "does not end, so it may be half written: skipped")
    blocks: Sequence[_Block | _RegularBlock]
    if delimiter == "," and '"' in whole:
        blocks = _blocks(_quoted(whole, notes), delimiter, notes)
    else:
        if "\r" in whole:
            whole = whole.replace("\r\n", "\n")
        blocks = _regular(whole, delimiter, notes) or _blocks(_split(whole, delimiter), delimiter, notes)
    names = tuple(dict.fromkeys(name for block in blocks for name in block.names))
    numbers: Sequence[int] = [line for block in blocks for line in block.lines]
    strict = "_" in whole[whole.find("\n") + 1 :] or not whole.isascii()
    columns = {
        name: _column(name, blocks, numbers, strict, notes)
        for name in names if wanted is None or name in wanted
    }
    return Table(names, len(numbers), columns, notes.texts())


def _split(text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """The number and the cells of each line."""
    return enumerate((line.split(delimiter) for line in text.split("\n")[:-1]), 1)


def _quoted(text: str, notes: _Notes) -> Iterator[tuple[int, list[str]]]:
    """The rows of CSV with quotes in it; what is not CSV is noted, and reading goes on below it."""
    lines = iter(re.findall(r"[^\n]*\n", text))
    before = 0
    while True:
        reader = csv.reader(lines, strict=True)
        try:
            for cells in reader:
                yield before + reader.line_num, cells or [""]
        except csv.Error as error:
            notes.add(before + reader.line_num, f"not CSV ({error}): skipped")
            before += reader.line_num
            continue
        return


class _Block:
    """Rows under one header."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.lines: list[int] = []
        self.cells: list[str] = []  # of all rows, one after the other

    def column(self, at: int) -> list[str]:
        """The cells of a column."""
        return self.cells[at :: len(self.names)]


class _RegularBlock:
    """The same, of rows that are all alike."""

    def __init__(self, names: list[str], rows: RegularRows) -> None:
        self.names = names
        self.lines = range(2, len(rows) + 2)
        self.column = rows.column
        self.integers = rows.integers


def _regular(text: str, delimiter: str, notes: _Notes) -> list[_RegularBlock]:
    """The only block of a text where each line below the header has as many cells and begins as numbers do.

    Empty where that is not so; `_blocks` then finds the same as here, and whatever else there is, slower.
    """
    header = text[: text.find("\n") + 1]
    cells = header[:-1].split(delimiter)
    rows = regular_rows(text, len(header), delimiter, len(cells), _BEGINNINGS)
    return [] if rows is None else [_RegularBlock(_names(1, cells, delimiter, notes), rows)]


def _blocks(rows: Iterable[tuple[int, list[str]]], delimiter: str, notes: _Notes) -> list[_Block]:
    blocks: list[_Block] = []
    width = 0
    for line, cells in rows:
        if not blocks:
            blocks.append(_Block(_names(line, cells, delimiter, notes)))
            width = len(cells)
            continue
        block = blocks[-1]
        if len(cells) != width or cells[0][:1] not in _BEGINNINGS:
            if _is_header(cells, block.names):
                notes.add(line, "names the columns anew: holds for the lines below it")
                blocks.append(_Block(_names(line, cells, delimiter, notes)))
                width = len(cells)
                continue
            if cells == [""] and width > 1:
                notes.add(line, "empty: skipped")
                continue
            if len(cells) < width:
                notes.add(line, f"has fewer than its {width} cells: the others are blank")
                cells = cells + [""] * (width - len(cells))
            elif len(cells) > width:
                if any(cells[width:]):
                    notes.add(line, f"has more than its {width} cells: the others are skipped")
                cells = cells[:width]
        block.lines.append(line)
        block.cells += cells
    return blocks


def _names(line: int, cells: list[str], delimiter: str, notes: _Notes) -> list[str]:
    names: list[str] = []
    for cell in cells:
        name = unquote_name(cell) if delimiter == "\t" else cell
        if name in names:
            count = 1
            while f"{name}.{count}" in names:
                count += 1
            notes.add(line, f"names the column {name!r} twice: the later one is {name}.{count}")
            name = f"{name}.{count}"
        names.append(name)
    return names


def _is_header(cells: list[str], names: list[str]) -> bool:
    """Whether a line names columns: different words, no number, and a name that is known or another width."""
    if len(set(cells)) < len(cells) or any(_number(cell) is not None or not cell for cell in cells):
        return False
    known = {unquote_name(cell) for cell in cells} & set(names)
    return bool(known) or (len(cells) != len(names) and len(cells) > 1)


def _number(cell: str) -> float | None:
    """The number that a cell holds; None where it holds text or nothing."""
    if _NUMBER.fullmatch(cell):
        return float(cell)
    return _TRUTH.get(cell)


def _column(
    name: str, blocks: Sequence[_Block | _RegularBlock], lines: Sequence[int], strict: bool, notes: _Notes
) -> Column:
    (block, *others) = blocks
    if isinstance(block, _RegularBlock) and not others:
        integers = block.integers(block.names.index(name))
        if integers is not None:
            return integers
    return _values(name, _cells(name, blocks), lines, strict, notes)


def _cells(name: str, blocks: Sequence[_Block | _RegularBlock]) -> list[str]:
    cells: list[str] = []
    for block in blocks:
        if name in block.names:
            cells += block.column(block.names.index(name))
        else:
            cells += [""] * len(block.lines)
    return cells


def _values(name: str, cells: list[str], lines: Sequence[int], strict: bool, notes: _Notes) -> Column:
    """The array of a column's cells.

    strict: the file has what int() and float() take and is no number here: 1_0, digits of other scripts.
    """
    if not strict or not any("_" in cell or not cell.isascii() for cell in cells):
        for convert, dtype in ((int, np.int64), (float, np.float64)):
            try:
                return np.fromiter(map(convert, cells), dtype, len(cells))
            except (ValueError, OverflowError):  # not all of them are: the next one, then cell by cell
                continue
    if cells and all(cell in _TRUTH for cell in cells):
        return np.array([cell == "True" for cell in cells])
    numbers = [_number(cell) for cell in cells]
    texts = [at for at, number in enumerate(numbers) if number is None and cells[at].strip()]
    if len(texts) * 2 > sum(1 for cell in cells if cell.strip()):
        return np.array(cells, dtype=object)
    for at in texts:
        notes.add(lines[at], f"the cell of {name!r} is text, not a number: nan")
    return np.array([np.nan if number is None else number for number in numbers], dtype=np.float64)
