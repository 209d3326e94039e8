"""The fast way through a progress file, which must find what the slow one does."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spinstat import parsing
from spinstat.parsing import parse
from spinstat.regular import regular_rows

CELLS = st.sampled_from([
    *("0", "1", "123456789012345678", "1234567890123456789", "+4", "-3", "-2.5", ".5", "1e3", "nan", "-inf"),
    *("", "text", "Epoch", "1_0", " 7 ", "True", "0x1", "1;", "٣"),
])  # fmt: skip


def shown(data: bytes, delimiter: str, wanted: Any = None) -> Any:
    """All that parse gives, with nan as text."""
    table = parse(data, delimiter, wanted)
    columns = {
        name: (str(column.dtype), [str(cell) for cell in column.tolist()])
        for name, column in table.columns.items()
    }
    return table.names, table.rows, columns, table.skipped


def slowly(data: bytes, delimiter: str, wanted: Any = None) -> Any:
    with mock.patch.object(parsing, "_regular", return_value=[]) as regular:
        found = shown(data, delimiter, wanted)
    assert regular.called or delimiter == ","
    return found


@given(
    st.lists(st.lists(CELLS, min_size=1, max_size=4), max_size=6), st.sampled_from(["\t", ","]),
    st.sampled_from(["\n", "\r\n"]), st.booleans(), st.sampled_from([None, {"Epoch"}, {"A", "B"}]),
)
@example([["1", "2"], ["1", ""]], "\t", "\n", True, None)
@example([["٣"]], "\t", "\n", True, None)
@example([["0", "0", "1_0"]], "\t", "\n", True, None)
def test_both_ways_give_the_same(
    rows: list[list[str]], delimiter: str, end: str, whole: bool, wanted: set[str] | None
) -> None:
    lines = [delimiter.join(cells) for cells in [["Epoch", "A", "B"], *rows]]
    data = (end.join(lines) + (end if whole else "")).encode()
    assert shown(data, delimiter, wanted) == slowly(data, delimiter, wanted)


@given(st.binary(max_size=60).map(lambda tail: b"A\tB\n1\t2\n" + tail), st.sampled_from(["\t", ","]))
def test_both_ways_give_the_same_of_any_bytes(data: bytes, delimiter: str) -> None:
    assert shown(data, delimiter) == slowly(data, delimiter)


@pytest.mark.parametrize("width", [1, 2, 7])
def test_cells_are_cut_where_they_end(width: int) -> None:
    rows = [[str(10 ** (row * width + at) % 9973) for at in range(width)] for row in range(5)]
    text = "header\n" + "".join("\t".join(row) + "\n" for row in rows)
    found = regular_rows(text, 7, "\t", width, frozenset("0123456789"))
    assert found is not None and len(found) == 5
    assert [found.column(at) for at in range(width)] == [list(column) for column in zip(*rows, strict=True)]


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["0", "7", "4000", "120000"], [0, 7, 4000, 120_000]),
        (["007", "1"], [7, 1]),
        (["9" * 18, "1"], [10**18 - 1, 1]),
        (["9" * 19, "1"], None),
        (["1", "-1"], None),
        (["1", "1.0"], None),
        (["1", "1:"], None),
        (["1", "1/"], None),
        (["12", "1\0"], None),
    ],
)
def test_columns_of_digits_alone_are_read_at_once(cells: list[str], numbers: list[int] | None) -> None:
    for at, line in enumerate(("{}\t5\n", "5\t{}\n")):
        text = "".join(map(line.format, cells))
        rows = regular_rows(text, 0, "\t", 2, frozenset("0123456789-"))
        assert rows is not None
        found = rows.integers(at)
        assert (None if found is None else found.tolist()) == numbers
        assert rows.column(at) == cells
        other = rows.integers(1 - at)
        assert other is not None and other.tolist() == [5] * len(cells)


def test_a_blank_cell_is_no_integer() -> None:
    rows = regular_rows("1\t2\n3\t\n", 0, "\t", 2, frozenset("0123456789"))
    assert rows is not None
    assert rows.integers(1) is None and rows.column(1) == ["2", ""]


@pytest.mark.parametrize(
    "text",
    ["", "1\t2\n3\n4\t5\n6\n", "1\t2\n\n", "1\t2\t3\n4\n", "1\t2\nx\t3\n", "1\t2\n\t3\n", "1\t٣\n"],
)
def test_lines_that_are_not_alike_are_left_to_the_slow_way(text: str) -> None:
    assert regular_rows(text, 0, "\t", 2, frozenset("0123456789")) is None


def test_a_file_of_a_logger_goes_the_fast_way() -> None:
    with mock.patch.object(parsing, "_blocks") as blocks:
        table = parse(b"Epoch\tLoss\n0\t1.5\n1\t\n", "\t")
    assert not blocks.called
    assert table.rows == 2 and table.columns["Epoch"].tolist() == [0, 1]
