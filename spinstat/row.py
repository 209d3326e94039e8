"""A row, and how a value of it reads as text."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from .histogram import Histogram

# Values of these very types are numbers and texts already; everything else goes through `plain`.
PLAIN_TYPES = frozenset({float, int, bool, str, type(None)})

# What would end a field or a line in some reader of the file: str.splitlines breaks at all but the tab.
_BREAKS = re.compile("[\t\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029]")
_CODE = re.compile(r"\\(?:[tnr\\]|x0b|x0c|x1c|x1d|x1e|x22|x85|u2028|u2029)")
_QUOTED = re.compile(rf'"(?=.*\\)((?:[^"\\]|{_CODE.pattern})*)"', re.DOTALL)


class Stored(NamedTuple):
    """The stored values that a column is a statistic of: their key, and how many there are on all ranks."""

    key: str
    n: int


class Draft:
    """The row being built.

    Attributes:
        number: rows dumped before this one.
        cells: values by column, in the order in which they were logged.
        texts: by column, a value and its text where that is not str(value): see `plain`.
        stored: by column, what stored values its statistic is of; None where no writer shows it.
        expected: where in the logger's columns the next key stands, if this row repeats their order.
        columns_before: how many columns there were when the row was begun.
        histograms: of the values that were stored on this rank, by key; None where nobody wants them.
    """

    __slots__ = ("cells", "columns_before", "expected", "histograms", "number", "stored", "texts")

    def __init__(self) -> None:
        self.number: int = 0
        self.cells: dict[str, object] = {}
        self.texts: dict[str, tuple[object, str]] = {}
        self.stored: dict[str, Stored] | None = None
        self.expected: int = 0
        self.columns_before: int = 0
        self.histograms: dict[str, Histogram] | None = None

    def clear(self, columns: int) -> None:
        """Begin anew, with so many columns there."""
        self.cells.clear()
        self.texts.clear()
        self.expected = 0
        self.columns_before = columns
        if self.stored:
            self.stored = {}  # a sink may have kept the other
        if self.histograms:
            self.histograms = {}


class Row(NamedTuple):
    """One row as the writers get it: every column in order, blank ones included.

    Attributes:
        number: rows dumped before this one.
        columns: the names of all columns, in order of first appearance.
        values: their values: plain numbers, text, None where blank.
        texts: the same as text that reads back exactly, breaks escaped.
        header: whether the names belong above this row (the first row, mostly).
        stored: by column, the stored values that it is a statistic of; explicit values have none.
        histograms: of the values stored on rank 0, by key; where a sink wants them and values are kept.
    """

    number: int
    columns: Sequence[str]
    values: Sequence[object]
    texts: Sequence[str]
    header: bool
    stored: Mapping[str, Stored] = MappingProxyType({})
    histograms: Mapping[str, Histogram] = MappingProxyType({})


def make_row(
    number: int,
    columns: Sequence[str],
    cells: dict[str, object],
    texts: dict[str, tuple[object, str]],
    header: bool,
    stored: Mapping[str, Stored] | None = None,
    histograms: Mapping[str, Histogram] | None = None,
) -> Row:
    """The row of these cells; never raises for what a cell holds.

    Args:
        cells: values by column, as log_tabular or the user's own hand left them; a missing one is blank.
        texts: by column, a value and its text where that is not str(value), if the cell still holds it.
        stored: by column, the stored values that it is a statistic of.
        histograms: of the stored values, by key.
    """
    values = [cells.get(column) for column in columns]
    written = []
    for at, value in enumerate(values):
        if type(value) is float:
            written.append(repr(value))
        else:
            values[at], text = _cell(columns[at], value)
            written.append(text)
    if texts:
        for at, column in enumerate(columns):
            if column in texts and texts[column][0] is values[at]:
                written[at] = escape(texts[column][1])
    return Row(
        number, tuple(columns), tuple(values), tuple(written), header,
        MappingProxyType(stored or {}), MappingProxyType(histograms or {}),
    )


def _cell(column: str, value: object) -> tuple[object, str]:
    """A value and its text; what the user wrote into the row by hand has not been looked at before."""
    if value is None:
        return None, ""
    text = None
    if type(value) not in PLAIN_TYPES:
        try:
            value, text = plain(column, value)
        except TypeError:  # an array, or an object whose str() raises
            text = _list_text(value)
    return value, escape(str(value) if text is None else text)


def _list_text(value: Any) -> str:
    try:
        return str(value.tolist())
    except Exception:  # it has none, or is a tensor without data
        return f"<{type(value).__name__}>"


def check_key(key: object) -> None:
    """Raise TypeError for a key that is no string."""
    if not isinstance(key, str):
        raise TypeError(f"a key of log_tabular is a string, not {type(key).__name__}: {key!r}")


def plain(key: str, value: object) -> tuple[object, str | None]:
    """What the row holds for an explicit value, and its text where that is not str() of what the row holds.

    NumPy scalars and arrays and tensors of one element become Python numbers. The text is str() of the value
    given: "0.1" for a float32, whose nearest double is 0.10000000149011612; tensors, whose str is a repr,
    give the number.

    Raises:
        TypeError: an array or tensor of another size, or a value that has no text; names the key.
    """
    if type(value) in PLAIN_TYPES:
        return value, None
    if isinstance(value, np.generic):
        return _numpy_scalar(value)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return _tensor(key, value)
    if hasattr(value, "__array__"):
        return _array(key, value)
    try:
        return value, str(_readable(value))
    except Exception as error:
        raise TypeError(f"the value of {key!r} has no text: {_describe(value)}: {error}") from error


def _numpy_scalar(value: np.generic) -> tuple[object, str]:
    text = str(value)
    kind = value.dtype.kind
    if kind in "biuc":
        return value.item(), text  # for a longdouble, kind f, item() is the longdouble again
    if kind in "fV":  # V: a record, or a number of a type that another package adds, such as bfloat16
        try:
            return float(value), text
        except (TypeError, ValueError):
            return text, text
    return text, text  # str, bytes and dates


def _tensor(key: str, value: Any) -> tuple[object, None]:
    if value.numel() != 1:
        raise _not_one_number(key, value, value.numel())
    try:
        return value.item(), None
    except Exception as error:  # one without data: meta, fake or still to be computed
        raise TypeError(f"the value of {key!r} cannot be read: {_describe(value)}: {error}") from error


def _array(key: str, value: Any) -> tuple[object, str | None]:
    try:
        array = np.asanyarray(value)
    except Exception as error:
        raise TypeError(f"the value of {key!r} cannot be read: {_describe(value)}: {error}") from error
    if isinstance(array, np.ma.MaskedArray):
        array = array.compressed()
    if array.size != 1:
        raise _not_one_number(key, value, array.size)
    only = np.asarray(array).reshape(-1)[0]
    number, text = plain(key, only)
    # str() of the value given is that of the element for NumPy's own arrays; others count as tensors.
    return number, text if isinstance(value, np.ndarray) or not isinstance(number, float) else None


def _not_one_number(key: str, value: object, size: int) -> TypeError:
    return TypeError(
        f"the value of {key!r} has {size} elements ({_describe(value)}), a cell of the table one number: "
        f"log a statistic of it, or store() it under this key and call log_tabular({key!r})"
    )


def _describe(value: object) -> str:
    shape = getattr(value, "shape", None)
    name = type(value).__name__
    return name if shape is None else f"{name} of shape {tuple(shape)}"


def _readable(value: Any) -> Any:
    """A container with the NumPy scalars, arrays and tensors in it as Python numbers, whose repr is short."""
    if type(value) is dict:
        return {_readable(key): _readable(item) for key, item in value.items()}
    if type(value) is list or type(value) is tuple:
        return type(value)(_readable(item) for item in value)
    if hasattr(value, "__array__") and hasattr(value, "tolist"):
        return value.tolist()
    return value


def escape(text: str) -> str:
    r"""Text with tabs, newlines and other line breaks written as \t, \n, \x85, ...; other text as it is."""
    return _BREAKS.sub(lambda found: found.group().encode("unicode_escape").decode(), text)


def quote_name(name: str) -> str:
    r"""How a header names a column: as it is, or "a\tb" in quotes where there are breaks in the name.

    Names such as $\theta$ are not to be taken for one with a tab, so those without quotes have no codes. In
    quotes are also the names that look as if they were.
    """
    if _BREAKS.search(name) is None and _QUOTED.fullmatch(name) is None:
        return name
    return '"' + escape(name.replace("\\", r"\\").replace('"', r"\x22")) + '"'


def unquote_name(text: str) -> str:
    """The name that `quote_name` was given."""
    quoted = _QUOTED.fullmatch(text)
    if quoted is None:
        return text
    return _CODE.sub(lambda found: found.group().encode().decode("unicode_escape"), quoted[1])
