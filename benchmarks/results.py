"""Reads what the benchmarks have printed: the Markdown of benchmarks/results/<machine>.md."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Table:
    """Cells by row and column, both by name: the first cell of a row is its name."""

    columns: list[str]
    rows: dict[str, list[str]] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """What the first column is headed."""
        return self.columns[0]

    def number(self, row: str, column: str | int) -> float:
        """The number that a cell begins with. ValueError: it has none; KeyError: no such row."""
        place = column if isinstance(column, int) else self.columns.index(column)
        text = self.rows[row][place]
        found = re.match(r"-?[\d,]*\.?\d+(?:e[+-]?\d+)?", text)
        if not found:
            raise ValueError(f"{row}, {self.columns[place]}: no number in {text!r}")
        return float(found.group().replace(",", ""))

    def series(self, row: str) -> list[tuple[str, float]]:
        """Column and number of every cell of a row that has one; the name is none."""
        return [
            (column, self.number(row, place))
            for place, column in enumerate(self.columns)
            if place and re.match(r"-?[\d.]", self.rows[row][place])
        ]

    def column(self, name: str) -> list[tuple[str, float]]:
        """Row and number of every cell of a column that has one."""
        place = self.columns.index(name)
        return [
            (row, self.number(row, place))
            for row, cells in self.rows.items()
            if re.match(r"-?[\d.]", cells[place])
        ]


@dataclass
class Results:
    """The facts in the header of each benchmark, and its tables by section."""

    path: Path
    kind: str = ""  # the line below the title: how they were made
    facts: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    sections: dict[str, dict[str, list[Table]]] = field(default_factory=dict)
    short: list[str] = field(default_factory=list)

    def fact(self, benchmark: str, name: str) -> str:
        """The first fact of that name."""
        return next(text for fact, text in self.facts[benchmark] if fact == name)

    def table(self, benchmark: str, section: str, title: str = "what") -> Table:
        """The one table of a section whose first column is headed so. Raises KeyError where there is none."""
        for table in self.sections[benchmark][section]:
            if table.title == title:
                return table
        raise KeyError(f"{self.path.name}: no table {title!r} in {benchmark}, {section}")


def read(path: Path) -> Results:
    """All that is in a file of results."""
    results = Results(path)
    benchmark = section = ""
    table: Table | None = None
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("|"):
            table = None
        if line and not line.startswith(("#", "|")) and not results.kind:
            results.kind = line
        if line.startswith("## "):
            benchmark, section = line[3:].partition(":")[0], ""
            results.facts[benchmark], results.sections[benchmark] = [], {}
        elif line.startswith("### "):
            section = line[4:]
            results.sections[benchmark][section] = []
        elif line.startswith("- ") and not benchmark:
            results.short.append(line[2:])
        elif line.startswith("- ") and not section:
            name, _, text = line[2:].partition(": ")
            results.facts[benchmark].append((name, text))
        elif line.startswith("|") and section:
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if table is None:
                table = Table(cells)
                results.sections[benchmark][section].append(table)
            elif not set(cells[0]) <= {":", "-"}:
                table.rows[cells[0]] = cells
    return results
