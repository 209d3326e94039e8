"""Laws of convert_json and dumps_config over generated configurations."""

from __future__ import annotations

import copy
import functools
import json
import math
import types
from typing import Any

import numpy as np
from configurations import Colour, Inner, Level, Net, Sized, Slotted, function, strict
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from spinstat.config import convert_json, dumps_config

finite = st.floats(allow_nan=False, allow_infinity=False)
plain_leaves = st.none() | st.booleans() | st.integers() | finite | st.text()
plain = st.recursive(
    plain_leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=30
)

dtypes = hnp.scalar_dtypes() | hnp.unicode_string_dtypes() | hnp.byte_string_dtypes()
hashable = (
    plain_leaves
    | st.floats()
    | st.complex_numbers()
    | st.binary()
    | st.text(st.characters())
    | st.datetimes()
    | st.decimals(allow_nan=False)
    | st.fractions()
    | st.uuids()
    | st.sampled_from([Colour.RED, Level.HIGH, function, Net, len, math, Net(), np.float32, ...])
    | hnp.arrays(dtypes, ()).map(lambda array: array[()])
)
arrays = hnp.arrays(dtypes, hnp.array_shapes(min_dims=0, min_side=0))
names = st.from_regex("[a-z_]+", fullmatch=True)
anything = st.recursive(
    hashable | arrays | st.builds(Sized) | st.builds(Slotted),
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(hashable, inner)
        | st.sets(hashable)
        | st.frozensets(hashable)
        | st.builds(Inner, rate=inner)
        | st.dictionaries(names, inner).map(lambda d: types.SimpleNamespace(**d))
        | st.lists(inner).map(lambda args: functools.partial(function, *args))
    ),
    max_leaves=12,
)  # fmt: skip


@given(plain)
def test_plain_data_reads_back_as_it_was_in_the_text_that_json_gives(data: Any) -> None:
    assert convert_json(data) == data
    assert dumps_config(data) == json.dumps(data, indent=4, separators=(",", ":\t"), sort_keys=True)


@given(anything)
@settings(max_examples=150)
def test_anything_becomes_strict_json_once_and_for_all(data: Any) -> None:
    text = dumps_config(data)
    converted = convert_json(data)
    assert strict(text) == converted
    assert convert_json(converted) == converted
    assert dumps_config(data) == text


@given(st.dictionaries(hashable, anything, max_size=8), st.text())
@settings(max_examples=50)
def test_exp_name_is_one_more_entry(config: dict[Any, Any], exp_name: str) -> None:
    converted = strict(dumps_config(config, exp_name))
    assert converted["exp_name"] == convert_json(exp_name)
    others = {key: value for key, value in config.items() if not (isinstance(key, str) and key == "exp_name")}
    assert len(converted) == len(others) + 1


@given(st.dictionaries(hashable, plain))
def test_no_entry_is_lost_and_keys_are_in_order(config: dict[Any, Any]) -> None:
    converted = convert_json(config)
    assert isinstance(converted, dict)
    assert len(converted) == len(config)
    values = sorted(json.dumps(value, sort_keys=True) for value in config.values())
    assert sorted(json.dumps(value, sort_keys=True) for value in converted.values()) == values
    if not all(isinstance(key, (int, float, np.bool_, np.number)) for key in config):
        assert list(converted) == sorted(converted)


@given(st.lists(st.tuples(hashable, plain), unique_by=lambda pair: pair[0]), st.randoms())
@settings(max_examples=50)
def test_the_order_of_insertion_does_not_matter(pairs: list[tuple[Any, Any]], random: Any) -> None:
    shuffled = list(pairs)
    random.shuffle(shuffled)
    assert dumps_config(dict(shuffled)) == dumps_config(dict(pairs))
    keys, mixed = [key for key, _ in pairs], [key for key, _ in shuffled]
    assert dumps_config([set(mixed), frozenset(mixed)]) == dumps_config([set(keys), frozenset(keys)])


@given(plain)
def test_the_callers_data_is_not_touched(data: Any) -> None:
    before = copy.deepcopy(data)
    dumps_config(data if isinstance(data, dict) else {"k": data}, "e")
    assert data == before


@given(hnp.arrays(hnp.floating_dtypes() | hnp.integer_dtypes(), hnp.array_shapes(max_dims=3)))
def test_numbers_of_an_array_read_back_exactly(array: np.ndarray[Any, Any]) -> None:
    converted = strict(dumps_config({"a": array}))["a"]
    special = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
    flat = [special.get(x, x) if isinstance(x, str) else x for x in np.array(converted, object).flat]
    again = np.array(flat, array.dtype).reshape(array.shape)
    np.testing.assert_array_equal(again, array)
