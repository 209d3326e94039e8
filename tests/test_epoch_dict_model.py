"""epoch_dict beside a dict of lists: whatever is done to both, they stay the same, and so the statistics."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from stores import equal

from spinstat._core import EpochStore, StoredValues

KEYS = st.sampled_from(["A", "B", "a/b"])
SINGLES = st.floats(-100, 100, width=32).map(np.float32)
SCALARS = st.one_of(st.floats(-1e6, 1e6), st.integers(-100, 100), st.booleans(), SINGLES)
ARRAYS = st.lists(st.floats(-100, 100), max_size=4).map(np.array)
VALUES = st.one_of(SCALARS, SCALARS, ARRAYS)
LISTS = st.lists(VALUES, max_size=6)
WAYS = st.sampled_from(["replace", "update", "|=", "clear"])
INDICES = st.integers(-5, 5)
SLICES = st.slices(8)
MANY = st.sampled_from([1, 31, 32, 33, 100, 4096, 8191, 8192, 8193, 20000])


def kept(value: Any) -> Any:
    """What a list of floats holds where this was stored."""
    return value if isinstance(value, np.ndarray) else float(value)


def same(a: Any, b: Any) -> bool:
    """Whether two lists hold equal floats and arrays."""
    return len(a) == len(b) and all(
        np.array_equal(x, y) if isinstance(x, np.ndarray) or isinstance(y, np.ndarray) else x == y
        for x, y in zip(a, b, strict=True)
    )


class EpochDictModel(RuleBasedStateMachine):
    """`real` is a store's epoch_dict, `model` the dict of lists that the original would have."""

    @initialize()
    def start(self) -> None:
        self.store = EpochStore()
        self.real = self.store.epoch_dict
        self.model: dict[str, list[Any]] = {}
        self.held: list[tuple[Any, list[Any]]] = []  # lists that code has kept, of ours and of the model's

    # The logger's own ways

    @rule(data=st.dictionaries(KEYS, VALUES, max_size=3), by_mapping=st.booleans())
    def stores(self, data: dict[str, Any], by_mapping: bool) -> None:
        if by_mapping:
            self.store.store(data)
        else:
            self.store.store(**data)
        for key, value in data.items():
            self.model.setdefault(key, []).append(kept(value))

    @rule(key=KEYS, n=MANY)
    def stores_many(self, key: str, n: int) -> None:
        if len(self.model.get(key, [])) > 30_000:
            return
        values = np.random.default_rng(n).normal(size=n).tolist()
        for x in values:
            self.store.store(**{key: x})
        self.model.setdefault(key, []).extend(values)

    @rule(key=KEYS)
    def logs(self, key: str) -> None:
        assert equal(self.store._take(key), self.model.get(key, []))
        self.model[key] = []

    @rule(key=KEYS)
    def logs_an_explicit_value(self, key: str) -> None:
        self.store._discard(key)
        self.model[key] = []

    # Lists: of a key, or kept from one, whatever has become of the key

    def a_list(self, key: str, which: int) -> tuple[Any, list[Any]]:
        if which < len(self.held):
            return self.held[which]
        if key not in self.model:
            self.store.store(**{key: 0.5})
            self.model[key] = [0.5]
        return self.real[key], self.model[key]

    @rule(key=KEYS)
    def keeps_a_list(self, key: str) -> None:
        self.held = [*self.held[-2:], self.a_list(key, 9)]

    @rule(key=KEYS, which=st.integers(0, 6), value=VALUES, index=INDICES)
    def adds_one(self, key: str, which: int, value: Any, index: int) -> None:
        real, model = self.a_list(key, which)
        if index:
            real.insert(index, value), model.insert(index, kept(value))
        else:
            real.append(value), model.append(kept(value))

    @rule(key=KEYS, which=st.integers(0, 6), values=LISTS, n=MANY)
    def adds_several(self, key: str, which: int, values: list[Any], n: int) -> None:
        real, model = self.a_list(key, which)
        values = values + ([1.5] * n if len(model) < 10_000 else [])
        real.extend(values)
        model.extend(map(kept, values))

    @rule(key=KEYS, values=LISTS)
    def adds_in_place_through_the_dict(self, key: str, values: list[Any]) -> None:
        self.a_list(key, 9)
        self.real[key] += values
        self.model[key] += map(kept, values)

    @rule(key=KEYS, which=st.integers(0, 6), index=st.one_of(INDICES, SLICES), value=VALUES, values=LISTS)
    def replaces(self, key: str, which: int, index: Any, value: Any, values: list[Any]) -> None:
        real, model = self.a_list(key, which)
        new, want = (values, list(map(kept, values))) if isinstance(index, slice) else (value, kept(value))
        try:
            model[index] = want
        except (IndexError, ValueError) as error:
            with pytest.raises(type(error)):
                real[index] = new
        else:
            real[index] = new

    @rule(key=KEYS, which=st.integers(0, 6), index=st.one_of(INDICES, SLICES))
    def deletes(self, key: str, which: int, index: Any) -> None:
        real, model = self.a_list(key, which)
        try:
            del model[index]
        except IndexError:
            with pytest.raises(IndexError):
                del real[index]
        else:
            del real[index]

    @rule(key=KEYS, which=st.integers(0, 6), index=INDICES)
    def pops(self, key: str, which: int, index: int) -> None:
        real, model = self.a_list(key, which)
        try:
            want = model.pop(index)
        except IndexError:
            with pytest.raises(IndexError):
                real.pop(index)
        else:
            assert same([real.pop(index)], [want])

    @rule(key=KEYS, which=st.integers(0, 6), how=st.sampled_from(["clear", "reverse", "sort"]))
    def changes_all(self, key: str, which: int, how: str) -> None:
        real, model = self.a_list(key, which)
        if how != "sort" or not any(isinstance(x, np.ndarray) for x in model):
            getattr(real, how)(), getattr(model, how)()

    # The dict

    @rule(key=KEYS, values=LISTS)
    def assigns_a_list(self, key: str, values: list[Any]) -> None:
        ours, theirs = list(values), list(values)
        self.real[key], self.model[key] = ours, theirs
        assert self.real[key] is ours
        self.held = [*self.held[-2:], (ours, theirs)]

    @rule(key=KEYS, which=st.integers(0, 2))
    def assigns_a_kept_list(self, key: str, which: int) -> None:
        if which < len(self.held):
            self.real[key], self.model[key] = self.held[which]

    @rule(key=KEYS, values=LISTS)
    def assigns_where_there_is_none(self, key: str, values: list[Any]) -> None:
        assert same(self.real.setdefault(key, list(values)), self.model.setdefault(key, list(values)))

    @rule(key=KEYS)
    def deletes_a_key(self, key: str) -> None:
        if key in self.model:
            del self.real[key], self.model[key]
        else:
            with pytest.raises(KeyError):
                del self.real[key]

    @rule(key=KEYS)
    def pops_a_key(self, key: str) -> None:
        assert same(self.real.pop(key, []), self.model.pop(key, []))

    @precondition(lambda self: self.model)
    @rule()
    def pops_the_last_key(self) -> None:
        key, values = self.real.popitem()
        want, wanted = self.model.popitem()
        assert key == want and same(values, wanted)

    @rule(data=st.dictionaries(KEYS, LISTS, max_size=2), how=WAYS)
    def changes_many_keys(self, data: dict[str, list[Any]], how: str) -> None:
        ours = {key: list(values) for key, values in data.items()}
        if how == "replace":
            self.store.epoch_dict = ours
            self.model = data
        elif how == "update":
            self.real.update(ours)
            self.model.update(data)
        elif how == "|=":
            self.real |= ours
            self.model |= data
        else:
            self.real.clear()
            self.model.clear()

    # What holds after each

    @invariant()
    def they_are_the_same(self) -> None:
        if not hasattr(self, "model"):
            return
        assert list(self.real) == list(self.model) and len(self.real) == len(self.model)
        for key, values in self.model.items():
            assert same(self.real[key], values)
            assert equal(self.store._peek(key), values)
        for ours, theirs in self.held:
            assert same(ours, theirs)

    @rule()
    def copies_are_plain_and_apart(self) -> None:
        for copied in (pickle.loads(pickle.dumps(self.real)), copy.deepcopy(self.real), copy.copy(self.real)):
            assert type(copied) is dict and list(copied) == list(self.model)
            assert all(same(copied[key], values) for key, values in self.model.items())
        assert not any(isinstance(values, StoredValues) for values in copy.deepcopy(self.real).values())
        if all(len(values) < 100 for values in self.model.values()):
            # Ints in a list that was assigned stay ints.
            assert repr(self.real) == repr({key: list(values) for key, values in self.real.items()})

    @rule(data=st.dictionaries(KEYS, VALUES, min_size=2), which=st.integers(0, 2))
    def stores_under_keys_that_share_a_list(self, data: dict[str, Any], which: int) -> None:
        if which < len(self.held):
            for key in data:
                self.real[key], self.model[key] = self.held[which]
            self.stores(data, True)

    @rule()
    def arrays_of_them_are_equal(self) -> None:
        for key, values in self.model.items():
            if not any(isinstance(x, np.ndarray) for x in values):
                assert np.array_equal(np.asarray(self.real[key], np.float64), np.array(values, np.float64))


EpochDictModel.TestCase.settings = settings(
    max_examples=50, stateful_step_count=30, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)  # fmt: skip
TestEpochDictIsADictOfLists = EpochDictModel.TestCase
