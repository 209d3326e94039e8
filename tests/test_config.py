"""config.json: strict JSON of anything, in the shape that Spinning Up's readers know."""

from __future__ import annotations

import argparse
import collections
import functools
import json
import logging
import pathlib
import types
from typing import Any

import numpy as np
import pytest
from configurations import Colour, Inner, Level, Mode, Net, Outer, Sized, function, saved, strict

import spinstat
from spinstat.config import convert_json, dumps_config, is_json_serializable
from spinstat.utils import serialization_utils


def test_the_text_is_sorted_with_four_spaces_and_a_tab_after_the_colon() -> None:
    config = {"seed": 0, "hid": [64, 32], "flag": True, "none": None, "in": {"b": 2, "a": 1.5}, "ü": "é"}
    assert dumps_config(config) == (
        '{\n    "flag":\ttrue,\n    "hid":\t[\n        64,\n        32\n    ],\n'
        '    "in":\t{\n        "a":\t1.5,\n        "b":\t2\n    },\n'
        '    "none":\tnull,\n    "seed":\t0,\n    "\\u00fc":\t"\\u00e9"\n}'
    )
    assert dumps_config({}) == "{}"
    assert dumps_config([1, 2]) == "[\n    1,\n    2\n]"


def test_an_object_within_an_object_shows_its_str_and_settings_their_values() -> None:
    holder = types.SimpleNamespace(sized=Sized(), listed=[Sized()], outer=Outer(Inner()))
    (attributes,) = saved(holder).values()
    assert attributes["sized"] == "Sized!"
    assert attributes["listed"] == ["Sized!"]
    ((name, outer),) = attributes["outer"].items()
    assert name == "Outer(inner=Inner(rate=0.1, names=frozenset({'a', 'b'})), sizes=(64, 64), _private=1)"
    assert set(outer) == {"inner", "sizes"}
    assert outer["sizes"] == [64, 64]
    assert next(iter(outer["inner"].values()))["rate"] == 0.1


def test_E3_cycles_are_told_by_their_class() -> None:
    a, b = Net(), Net()
    a.b, a.me, b.a = b, a, a  # type: ignore[attr-defined]
    name = "<configurations.Net object>"
    assert saved({"a": a}) == {"a": {name: {"b": name, "me": "<cycle Net>"}}}
    around: dict[str, Any] = {}
    around["d"] = around
    assert saved(around) == {"d": "<cycle dict>"}
    rows: list[Any] = [1]
    rows += [(rows,), functools.partial(print, rows)]
    partial = "functools.partial(<built-in function print>, [1, (<cycle list>,), <cycle partial>])"
    assert saved(rows) == [1, ["<cycle list>"], partial]
    held = np.empty((), object)
    held[()] = held
    assert saved([held]) == ["<cycle ndarray>"]
    same = [1]
    assert saved({"a": same, "b": same, "c": [same, same]}) == {"a": [1], "b": [1], "c": [[1], [1]]}


def test_E5_the_callers_dict_is_not_changed_and_nothing_of_it_is_in_the_copy() -> None:
    config = {"x": 1, "rows": [[1]], "in": {"y": 2}}
    text = dumps_config(config, exp_name="e")
    assert config == {"x": 1, "rows": [[1]], "in": {"y": 2}}
    assert strict(text)["exp_name"] == "e"
    copy: Any = convert_json(config)
    copy["rows"][0].append(2)
    copy["in"]["z"] = 3
    assert config == {"x": 1, "rows": [[1]], "in": {"y": 2}}


def test_exp_name_is_added_when_given_and_wins_over_the_configurations_own() -> None:
    assert strict(dumps_config({"a": 1, "exp_name": "mine"}, "ppo")) == {"a": 1, "exp_name": "ppo"}
    assert strict(dumps_config({"z": 1}, "")) == {"exp_name": "", "z": 1}
    assert list(strict(dumps_config({"z": 1, 5: 2}, "e"))) == ["5", "exp_name", "z"]
    assert strict(dumps_config({"a": 1}, None)) == {"a": 1}
    assert strict(dumps_config(argparse.Namespace(a=1), "e")) == {"Namespace(a=1)": {"a": 1}, "exp_name": "e"}
    assert strict(dumps_config({"a": 1}, pathlib.PurePosixPath("x"))) == {"a": 1, "exp_name": "x"}


@pytest.mark.parametrize("config", [[1, 2], "text", 3, None, Net(), np.arange(3)])
def test_exp_name_with_a_configuration_that_is_no_dict_is_a_type_error_that_says_what_to_do(
    config: Any,
) -> None:
    with pytest.raises(TypeError, match=rf"exp_name='ppo' .*{type(config).__name__}.*pass a dict"):
        dumps_config(config, "ppo")
    assert strict(dumps_config(config)) == convert_json(config)


def test_keys_become_text_and_are_ordered_as_json_of_them_was() -> None:
    assert list(saved({10: 0, 9: 1, 1.5: 2, True: 3})) == ["true", "1.5", "9", "10"]
    assert list(saved({np.int64(10): 0, np.float32(9): 1})) == ["9.0", "10"]
    assert saved({function: 1, Net: 2, (1, "a"): 3, None: 4, Colour.RED: 5, Level.HIGH: 6}) == {
        "function": 1, "Net": 2, "(1, 'a')": 3, "null": 4, "Colour.RED": 5, "3": 6,
    }  # fmt: skip


def test_keys_that_read_alike_lose_nothing() -> None:
    assert saved({1: "int", "1": "str"}) == {"1": "str", "1 (int)": "int"}
    assert saved({None: 0, "null": 1, True: 2, "true": 3}) == {
        "null": 1, "null (NoneType)": 0, "true": 3, "true (bool)": 2,
    }  # fmt: skip
    name = "<configurations.Net object>"
    both = saved({Net(): "b", Net(): "a", Net(): "c", f"{name} (Net)": "taken"})
    assert both == {name: "a", f"{name} (Net)": "taken", f"{name} (Net 2)": "b", f"{name} (Net 3)": "c"}
    assert saved({"exp_name": 1, Mode.FAST: 2, "x": 3}) == {"exp_name": 1, "fast": 2, "x": 3}


def test_a_logger_shows_what_it_is_and_not_its_insides(output_dir: str) -> None:
    with spinstat.EpochLogger(output_dir, quiet=True) as logger:
        logger.store(Loss=1.0)
        config = saved({"logger": logger, "standard": logging.getLogger("a.b"), "bound": logger.store})
    assert isinstance(config["logger"], str)
    assert "EpochLogger" in config["logger"]
    assert "0x" not in config["logger"]
    assert config["standard"] == "<Logger a.b (WARNING)>"
    assert config["bound"] == "store"


def test_E3_deep_and_branching_nesting_ends() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assert "<list of 1 items>" in dumps_config({"deep": deep, "text": functools.partial(print, deep)})
    branching: Any = (1,)
    for _ in range(60):
        branching = (branching, branching)
    assert len(dumps_config({"b": branching, "text": functools.partial(print, branching)})) < 10_000_000
    assert saved({"z": 1, "big": list(range(10**6)), "more": {i: i for i in range(10**5)}}) == {
        "z": 1, "big": "<list of 1000000 items>", "more": "<dict of 100000 items>",
    }  # fmt: skip


def test_E8_objects_are_capped() -> None:
    holder = types.SimpleNamespace(
        buffer=list(range(5000)), step=3, rows=[[0] * 10] * 3000, set=set(range(5000))
    )
    ((_, shown),) = saved(holder).items()
    assert shown["step"] == 3
    assert shown["buffer"] == "<list of 5000 items>"
    assert shown["rows"] == "<list of 3000 items>"
    assert shown["set"] == "{... 5000 items}"
    long = saved({"text": "x" * 10**6, "object": collections.UserString("y" * 10**6)})
    assert long["text"].endswith("... (1000000 characters)")
    assert len(json.dumps(long)) < 250_000


def test_E8_many_objects_and_branching_texts_are_capped_together() -> None:
    config = saved({"objects": [types.SimpleNamespace(rows=list(range(900))) for _ in range(100)], "lr": 0.1})
    shown = [rows for item in config["objects"] if isinstance(item, dict) for rows in item.values()]
    assert 15 < sum(isinstance(space["rows"], list) for space in shown) < 25
    assert config["lr"] == 0.1
    asked = 0

    class Leaf:
        def __repr__(self) -> str:
            nonlocal asked
            asked += 1
            return "leaf"

    tree: Any = Leaf()
    for _ in range(15):
        tree = (tree, tree)
    assert "... 2 items" in saved(functools.partial(print, tree))
    assert 0 < asked <= 1000


def test_settings_of_other_libraries_keep_their_values_within_an_object() -> None:
    class Attrs:
        __attrs_attrs__ = ()

        def __init__(self) -> None:
            self.rate = 0.1

        def __str__(self) -> str:
            return "Attrs(0.1)"

    (attributes,) = saved(types.SimpleNamespace(a=Attrs())).values()
    assert attributes == {"a": {"Attrs(0.1)": {"rate": 0.1}}}


def test_a_large_configuration_of_plain_values_is_written_whole() -> None:
    config = {f"key{i:05}": [i, {"a": i}] for i in range(5000)}
    assert saved(config) == config


def test_is_json_serializable_asks_json_and_the_old_module_offers_both() -> None:
    assert is_json_serializable({"a": [1, None, "x", (2,)]})
    assert is_json_serializable(float("nan"))
    around: list[Any] = []
    around.append(around)
    for value in (Net(), {1, 2}, np.int64(1), {(1, 2): 3}, {1: 2, "a": object()}, around):
        assert not is_json_serializable(value)
    assert serialization_utils.convert_json is convert_json
    assert serialization_utils.is_json_serializable is is_json_serializable
