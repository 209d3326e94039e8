"""EpochLogger beside a model in plain Python: whatever is done to both, their files and rows stay the same.

SPINSTAT_MODEL_EXAMPLES is the number of runs that are made up; 2,000 take some minutes.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from epoch_model import Model, elements, kept, near, numbers
from hypothesis import HealthCheck, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from spinstat import EpochLogger

KEYS = st.sampled_from(["A", "B", "a/b", "MaxA"])  # MaxA is also a column of A's
FLOATS = st.one_of(st.floats(-1e6, 1e6).map(lambda x: round(x, 3)), st.sampled_from([0.1, 1e9, 1e9 + 1]))
ODD = st.sampled_from([float("nan"), float("inf"), -float("inf"), -0.0, 5e-324])
SCALARS = st.one_of(
    FLOATS, st.integers(-(2**70), 2**70), st.booleans(), FLOATS.map(np.float32), FLOATS.map(np.float64),
    st.integers(-100, 100).map(np.int8), st.sampled_from([Decimal("1.5"), Fraction(1, 3)]),
)  # fmt: skip
DTYPES = st.sampled_from(["<f8", ">f8", "<f4", ">i2", "?", "u1"])
ARRAYS = st.builds(np.array, st.lists(st.integers(0, 99), max_size=5), DTYPES)
VALUES = st.one_of(SCALARS, SCALARS, ARRAYS, ODD, st.lists(FLOATS, min_size=1, max_size=3).map(tuple))
LISTS = st.lists(st.one_of(SCALARS, ARRAYS), max_size=5)
DATA = st.dictionaries(KEYS, VALUES, max_size=3)
EDITS = st.sampled_from(["append", "set", "del"])
OPTIONS = st.tuples(st.booleans(), st.booleans())
EXPLICIT = st.sampled_from([
    (1.5, "1.5"), (7, "7"), (True, "True"), ("a\tb", "a\\tb"), (np.float32(0.1), "0.1"), (2**80, str(2**80)),
    (np.array([3]), "3"), ("", ""),
])  # fmt: skip


class Raises:
    """A number that cannot be read."""

    def __float__(self) -> float:
        raise ZeroDivisionError("no number")


BAD = st.sampled_from([
    None, "1.5", b"1", 1j, object(), np.datetime64("2020-01-01"), np.array([1j]), np.array([None]),
    [1.0, "x"], {"a": 1.0}, Raises(),
])  # fmt: skip


def columns_of(key: str, options: tuple[bool, bool]) -> list[str]:
    with_min_and_max, average_only = options
    names = [key] if average_only else ["Average" + key, "Std" + key]
    return names + (["Max" + key, "Min" + key] if with_min_and_max else [])


class EpochLoggerModel(RuleBasedStateMachine):
    """`logger` is the real one, in `folder`; `model` is what it should be."""

    @initialize(keep=st.booleans(), strict=st.booleans(), new_keys=st.sampled_from(["add", "add", "error"]))
    def start(self, keep: bool, strict: bool, new_keys: str) -> None:
        self.base = tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        self.folder = os.path.join(self.base, "run")
        self.model = Model(keep, strict, new_keys)
        self.states = 0
        self.open(resume=False)

    def open(self, resume: bool) -> None:
        model, new_keys = self.model, self.model.new_keys
        self.logger = EpochLogger(
            self.folder, quiet=True, resume=resume, keep_values=model.keep, strict_keys=model.strict,
            new_keys="error" if new_keys == "error" else "add",
        )  # fmt: skip

    def teardown(self) -> None:
        if hasattr(self, "base"):
            self.logger.close()
            shutil.rmtree(self.base)

    def both(self, ours: Callable[[], None], model: Callable[[], None], empty: Sequence[str] = ()) -> bool:
        """Do the same to both, which raise errors of the same kind or tell of these empty keys.

        Returns False where both raised.
        """
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            try:
                model()
            except (AssertionError, KeyError) as error:
                note(f"{type(error).__name__}: {error}")
                with pytest.raises(type(error)):
                    ours()
                return False
            ours()
        assert len(told) == len(empty), [str(each.message) for each in told]
        return True

    # Values

    @rule(data=DATA, by_mapping=st.booleans())
    def stores(self, data: dict[str, Any], by_mapping: bool) -> None:
        if by_mapping:
            self.logger.store(data)
        else:
            self.logger.store(**data)
        self.model.store(data)

    @rule(data=DATA, key=KEYS, bad=BAD)
    def stores_what_is_no_number(self, data: dict[str, Any], key: str, bad: Any) -> None:
        known = list(self.logger.epoch_dict)
        with pytest.raises(ZeroDivisionError if isinstance(bad, Raises) else TypeError) as caught:
            self.logger.store({**data, key: bad})
        assert repr(key) in str(caught.value) + "".join(getattr(caught.value, "__notes__", []))
        assert list(self.logger.epoch_dict) == known

    @rule(key=KEYS, other=KEYS, x=FLOATS)
    def stores_what_stores_when_it_is_read(self, key: str, other: str, x: float) -> None:
        logger = self.logger

        class Stores:
            def __float__(self) -> float:
                logger.store({other: x})
                return 1.0

        logger.store({key: Stores()})
        self.model.store({other: x})
        self.model.store({key: 1.0})

    # Rows

    @rule(key=KEYS, options=OPTIONS)
    def logs(self, key: str, options: tuple[bool, bool]) -> None:
        columns = columns_of(key, options)
        values = elements(self.model.stored.get(key, []))
        if self.both(
            lambda: self.logger.log_tabular(key, None, *options),
            lambda: self.model.log_stored(key, columns),
            [] if values else [key],
        ):
            assert self.logger.last_row_info[key].count == len(values)

    @rule(key=KEYS, value=EXPLICIT)
    def logs_a_value(self, key: str, value: tuple[Any, str]) -> None:
        self.both(lambda: self.logger.log_tabular(key, value[0]), lambda: self.model.log_value(key, value[1]))

    @rule(key=KEYS)
    def logs_a_value_that_is_not_one(self, key: str) -> None:
        with pytest.raises((TypeError, AssertionError)):
            self.logger.log_tabular(key, np.arange(2))

    @rule(closing=st.lists(st.tuples(KEYS, OPTIONS), max_size=3))
    def logs_a_batch(self, closing: list[tuple[str, tuple[bool, bool]]]) -> None:
        def ours() -> None:
            with self.logger.batch():
                for key, options in closing:
                    self.logger.log_tabular(key, None, *options)

        keys = [key for key, _ in closing]
        empty = [
            key
            for at, key in enumerate(keys)
            if key in keys[:at] or not elements(self.model.stored.get(key, []))
        ]
        wanted = [(key, columns_of(key, options)) for key, options in closing]
        self.both(ours, lambda: self.model.log_batch(wanted), empty)

    @rule()
    def dumps(self) -> None:
        self.logger.dump_tabular()
        self.model.dump()

    @rule(key=KEYS, both=st.booleans())
    def asks_for_statistics(self, key: str, both: bool) -> None:
        values = elements(self.model.stored.get(key, []))
        if not values:
            with pytest.raises(KeyError) if self.model.strict else pytest.warns(UserWarning, match=repr(key)):
                self.logger.get_stats(key)
            return
        found = self.logger.get_stats(key, with_min_and_max=both)
        want = numbers(values)[: 4 if both else 2]
        assert len(found) == len(want) and all(map(near, found, want)), (found, want)

    # Lists

    @rule(key=KEYS, values=LISTS)
    def assigns(self, key: str, values: list[Any]) -> None:
        self.logger.epoch_dict[key] = list(values)
        self.model.assign(key, list(values))

    @rule(key=KEYS)
    def deletes(self, key: str) -> None:
        if key in self.model.stored:
            del self.logger.epoch_dict[key]
            self.model.forget(key)

    @rule(data=st.dictionaries(KEYS, LISTS, max_size=2), how=st.sampled_from(["clear", "replace"]))
    def replaces_all(self, data: dict[str, list[Any]], how: str) -> None:
        if how == "clear":
            self.logger.epoch_dict.clear()
            self.model.replace({})
        else:
            self.logger.epoch_dict = {key: list(values) for key, values in data.items()}
            self.model.replace({key: list(values) for key, values in data.items()})

    @precondition(lambda self: self.model.keep and self.model.stored)
    @rule(which=st.integers(0, 3), at=st.slices(4), values=LISTS, how=EDITS)
    def edits(self, which: int, at: slice, values: list[Any], how: str) -> None:
        key = list(self.model.stored)[which % len(self.model.stored)]
        real, model = self.logger.epoch_dict[key], self.model.stored[key]
        if how == "append":
            real.extend(values)
            model.extend(map(kept, values))
        elif how == "set":
            first = slice(at.start, at.start)
            real[first], model[first] = values, list(map(kept, values))
        else:
            del real[at], model[at]

    # The folder

    @rule()
    def saves(self) -> None:
        self.states += 1
        self.logger.save_state({"number": self.states})
        self.model.save({"number": self.states})

    @rule(load=st.booleans())
    def goes_on(self, load: bool) -> None:
        self.logger.close()
        state = self.model.resume()
        self.open(resume=True)
        if load:
            assert self.logger.load_state() == state
            if state is None:
                self.model.note_start()

    @rule()
    def begins_anew(self) -> None:
        self.logger.close()
        self.model.begin_anew()
        self.open(resume=False)

    # What holds after each

    @invariant()
    def they_are_the_same(self) -> None:
        if not hasattr(self, "base"):
            return
        logger, model = self.logger, self.model
        with open(os.path.join(self.folder, "progress.txt"), encoding="utf-8", newline="") as file:
            text = file.read()
        assert model.matches(text), (text, model.file_columns, model.rows)
        assert logger.log_headers == model.columns and list(logger.log_current_row) == list(model.cells)
        stored = logger.epoch_dict
        assert list(stored) == list(model.stored)
        for key, values in model.stored.items():
            if model.keep:
                assert len(stored[key]) == len(values)
                assert np.array_equal(elements(stored[key]), elements(values), equal_nan=True)
            else:
                with pytest.raises(ValueError, match="keep_values=True"):
                    stored[key]


EpochLoggerModel.TestCase.settings = settings(
    max_examples=int(os.environ.get("SPINSTAT_MODEL_EXAMPLES", "60")), stateful_step_count=30, deadline=None,
    derandomize="SPINSTAT_MODEL_EXAMPLES" not in os.environ, suppress_health_check=[HealthCheck.too_slow],
)  # fmt: skip
TestEpochLoggerIsItsModel = EpochLoggerModel.TestCase
