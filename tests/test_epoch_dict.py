"""logger.epoch_dict, which code in the wild reads, writes and replaces."""

from __future__ import annotations

import collections
import copy
import json
import pickle
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars
import pytest
import torch
from stores import assert_holds, logged

from spinstat import EpochLogger
from spinstat._core import EpochDict, EpochStore, StoredValues


@pytest.fixture
def logger(output_dir: str) -> EpochLogger:
    return EpochLogger(output_dir, quiet=True)


def test_b17_what_programs_do_with_it(logger: EpochLogger) -> None:
    assert repr(logger.epoch_dict) == "{}" and logger.epoch_dict == {}
    logger.store(A=1.0, A2=2.0)
    logger.store(A=3.0)
    assert np.mean(logger.epoch_dict["A"]) == 2.0
    assert logger.epoch_dict["A"][-1] == 3.0 and len(logger.epoch_dict["A"]) == 2
    assert list(logger.epoch_dict) == ["A", "A2"]
    assert "A" in logger.epoch_dict and "X" not in logger.epoch_dict
    assert sum(logger.epoch_dict["A"]) / len(logger.epoch_dict["A"]) == 2.0
    logger.epoch_dict = {"A": [10.0]}
    logger.epoch_dict["B"] = [1, 2]
    logger.log_tabular("A", average_only=True)
    logger.log_tabular("B", with_min_and_max=True)
    assert logger.log_current_row == {"A": 10.0, "AverageB": 1.5, "StdB": 0.5, "MaxB": 2.0, "MinB": 1.0}
    assert copy.deepcopy(logger.epoch_dict) == {"A": [], "B": []}
    assert pickle.loads(pickle.dumps(dict(logger.epoch_dict))) == {"A": [], "B": []}


def test_json_takes_a_dict_of_lists_made_of_it(logger: EpochLogger) -> None:
    logger.store(A=1.5, B=2)
    logger.store(A=3.0)
    with pytest.raises(TypeError, match="Object of type dict is not JSON serializable"):
        json.dumps(logger.epoch_dict)
    as_lists = {key: list(values) for key, values in logger.epoch_dict.items()}
    assert json.loads(json.dumps(as_lists)) == {"A": [1.5, 3.0], "B": [2]}


def test_b17_the_attributes_that_programs_read_over_an_epoch(logger: EpochLogger) -> None:
    logger.store(A=1.0, B=2)
    logger.store(A=3.0)
    logger.epoch_dict["A"].append(5.0)
    assert logged(logger, "A") == (3.0, pytest.approx((8 / 3) ** 0.5), 5.0, 1.0)
    assert list(logger.epoch_dict["A"]) == [] and logger.epoch_dict == {"A": [], "B": [2.0]}
    logger.epoch_dict["C"] = [10.0, 20.0]
    assert logged(logger, "C") == (15.0, 5.0, 20.0, 10.0)
    logger.epoch_dict.clear()
    assert repr(logger.epoch_dict) == "{}"


def test_it_is_a_mapping_and_behaves_as_a_dict() -> None:
    store = EpochStore()
    store.store(A=1, B=2.5)
    shown = store.epoch_dict
    assert isinstance(shown, MutableMapping)
    assert shown == {"A": [1.0], "B": [2.5]} and {"A": [1.0], "B": [2.5]} == shown
    assert shown != {"A": [1.0]} and shown == store.epoch_dict
    assert repr(shown) == str(shown) == f"{shown}" == "{'A': [1.0], 'B': [2.5]}"
    assert list(shown.items()) == [("A", [1.0]), ("B", [2.5])] and list(shown.values()) == [[1.0], [2.5]]
    assert list(reversed(shown)) == ["B", "A"] and len(shown) == 2
    assert shown.get("X") is None and shown.get("X", 3) == 3
    assert shown | {"C": []} == {"A": [1.0], "B": [2.5], "C": []} == {"C": []} | shown
    assert {**shown} == dict(shown) == shown.copy() == copy.copy(shown) and type(shown.copy()) is dict
    with pytest.raises(TypeError):
        shown | 3
    with pytest.raises(TypeError):
        hash(shown)


@pytest.mark.parametrize("key", ["X", 3, None, ("A",)], ids=repr)
def test_a_key_that_is_not_there_is_a_key_error(key: Any) -> None:
    store = EpochStore()
    store.store(A=1.0)
    with pytest.raises(KeyError):
        store.epoch_dict[key]
    with pytest.raises(KeyError):
        del store.epoch_dict[key]
    with pytest.raises(KeyError):
        store.epoch_dict.pop(key)
    assert key not in store.epoch_dict and store.epoch_dict.pop(key, 7) == 7
    with pytest.raises(TypeError, match="unhashable"):
        store.epoch_dict[[]]
    assert store.epoch_dict == {"A": [1.0]}


def test_the_last_key_is_popped_first_and_from_none_there_is_an_error() -> None:
    store = EpochStore()
    store.store(A=1.0, B=2.0)
    assert store.epoch_dict.popitem() == ("B", [2.0])
    assert store.epoch_dict.popitem() == ("A", [1.0])
    with pytest.raises(KeyError):
        store.epoch_dict.popitem()


def test_it_shows_a_logger_and_nothing_else() -> None:
    shown = EpochStore().epoch_dict
    for wrong in ({}, {"A": [1.0]}, None, shown):
        with pytest.raises(TypeError, match=f"not those of a {type(wrong).__qualname__}"):
            type(shown)(wrong)
    with pytest.raises(TypeError):
        type(shown)()


def test_a_store_is_neither_copied_nor_pickled_without_its_values() -> None:
    store = EpochStore()
    store.store(A=1.0)
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot pickle"):
            copied(store)


def test_a_data_frame_is_made_of_it_as_a_dict() -> None:
    store = EpochStore()
    for i in range(3):
        store.store(A=i, B=0.5)
    assert pd.DataFrame(dict(store.epoch_dict)).to_dict("list") == {"A": [0.0, 1.0, 2.0], "B": [0.5] * 3}


def test_two_views_show_the_same_and_one_kept_shows_what_comes_later(logger: EpochLogger) -> None:
    shown = logger.epoch_dict
    logger.store(A=1.0)
    assert shown == {"A": [1.0]} and shown["A"] is logger.epoch_dict["A"]
    values = shown["A"]
    logger.store(A=2.0)
    assert values == [1.0, 2.0]
    logged(logger, "A")
    assert shown["A"] == [] and values == [1.0, 2.0]
    logger.store(A=3.0)
    values.append(4.0)
    assert shown == {"A": [3.0]} and values == [1.0, 2.0, 4.0]
    assert logged(logger, "A")[0] == 3.0


# Assigned lists ---------------------------------------------------------------------------------------------


def test_an_assigned_list_stays_the_callers_own(logger: EpochLogger) -> None:
    mine = [1, 2.0]
    logger.store(A=50.0)
    logger.epoch_dict["A"] = mine
    assert logger.epoch_dict["A"] is mine
    logger.store(A=3)
    mine.append(4)
    logger.store(A=np.float32(0.5), B=1.0)
    assert mine == [1, 2.0, 3, 4, 0.5] and type(mine[2]) is int
    assert_holds(logger, "A", mine)
    assert logged(logger, "A")[2:] == (4.0, 0.5)
    assert mine == [1, 2.0, 3, 4, 0.5] and logger.epoch_dict["A"] == []
    logger.store(A=7.0)
    assert mine[-1] == 0.5 and logged(logger, "A")[0] == 7.0


def test_b6_what_is_stored_into_an_assigned_list_is_copied(logger: EpochLogger) -> None:
    logger.epoch_dict["A"] = mine = []
    array, tensor, nested = np.array([1.0, 2.0]), torch.ones(2, requires_grad=True), [np.array([4.0]), (5.0,)]
    logger.store(A=array)
    logger.store(A=tensor * 3)
    logger.store(A=nested)
    array[:] = 0
    nested[0][:] = 0
    nested.append(9.0)
    assert not any(getattr(x, "requires_grad", False) for x in mine)
    assert logged(logger, "A") == (3.0, pytest.approx(np.std([1, 2, 3, 3, 4, 5])), 5.0, 1.0)


def test_b6_an_object_that_is_another_number_each_time_is_read_once(logger: EpochLogger) -> None:
    readings = iter([1.0, 2.0, 3.0])

    class Sensor:
        def __float__(self) -> float:
            return next(readings)

    logger.epoch_dict["A"] = mine = []
    logger.store(A=Sensor())
    logger.store(A=Sensor())
    assert mine == [1.0, 2.0] and logger.get_stats("A") == logger.get_stats("A") == (1.5, 0.5)


@pytest.mark.parametrize(
    "values",
    [
        (1.0, 2.0),
        np.array([1.0, 2.0]),
        collections.deque([1.0, 2.0]),
        {1.0, 2.0},
        pd.Series([1.0, 2.0]),
        torch.tensor([1.0, 2.0]),
        range(1, 3),
        iter([1.0, 2.0]),
        (float(x) for x in (1, 2)),
        {1.0: 0, 2.0: 0}.keys(),
    ],
    ids=lambda values: type(values).__name__,
)
def test_any_collection_may_be_assigned_and_stored_into(values: Any) -> None:
    store = EpochStore()
    store.epoch_dict["A"] = values
    assert_holds(store, "A", [1.0, 2.0])
    store.store(A=6.0, B=1.0)
    assert_holds(store, "A", [1.0, 2.0, 6.0])
    assert sorted(store.epoch_dict["A"]) == [1.0, 2.0, 6.0]
    assert store._take("A").mean == 3.0 and store.epoch_dict["A"] == []


@pytest.mark.parametrize("values", [None, 3.0, "abc", b"abc", {"a": 1.0}, np.array(3.0)], ids=repr)
def test_what_is_no_collection_of_numbers_cannot_be_assigned(values: Any) -> None:
    store = EpochStore()
    store.store(A=1.0)
    with pytest.raises(TypeError, match=f"'A'.*{type(values).__name__}"):
        store.epoch_dict["A"] = values
    with pytest.raises(TypeError, match="'A'"):
        store.epoch_dict = {"B": [2.0], "A": values}
    with pytest.raises(TypeError, match="string, not 1"):
        store.epoch_dict[1] = [1.0]
    with pytest.raises(TypeError, match="string, not 1"):
        store.epoch_dict = {"A": [3.0], 1: [1.0]}
    assert store.epoch_dict == {"A": [1.0]}


def test_a_list_with_what_is_no_number_is_an_error_when_it_is_logged(logger: EpochLogger) -> None:
    logger.epoch_dict["A"] = mine = [1.0, "x"]
    with pytest.raises(TypeError, match="str for key 'A'"):
        logger.log_tabular("A")
    assert logger.log_current_row == {} and logger.epoch_dict["A"] is mine
    mine[1] = 3
    assert logged(logger, "A") == (2.0, 1.0, 3.0, 1.0)


def test_two_keys_may_share_a_list() -> None:
    store = EpochStore()
    store.store(A=1.0)
    store.epoch_dict["B"] = store.epoch_dict["A"]
    store.store(A=2.0)
    store.store(B=3.0)
    assert store.epoch_dict["A"] is store.epoch_dict["B"] and store.epoch_dict["A"] == [1.0, 2.0, 3.0]
    assert_holds(store, "A", [1.0, 2.0, 3.0])
    assert_holds(store, "B", [1.0, 2.0, 3.0])
    assert store._take("A").count == 3 and store._take("B").count == 3
    assert store.epoch_dict == {"A": [], "B": []}


def test_a_list_of_another_logger_may_be_assigned() -> None:
    one, other = EpochStore(), EpochStore()
    one.store(A=1.0)
    other.epoch_dict = one.epoch_dict
    one.store(A=2.0)
    other.store(A=np.array([3.0]))
    assert one._take("A").count == other._peek("A").count == 3
    one.store(A=9.0)
    assert other._take("A").max == 3.0


def test_assigning_it_to_itself_changes_nothing() -> None:
    store = EpochStore()
    store.store(A=1.0, B=[2.0])
    store.epoch_dict = store.epoch_dict
    store.epoch_dict["A"] = store.epoch_dict["A"]
    store.epoch_dict = dict(store.epoch_dict)
    store.store(A=3.0)
    assert store.epoch_dict["A"] == [1.0, 3.0] and store._peek("B").mean == 2.0
    store.epoch_dict["A"] += [5.0]
    store.epoch_dict["A"] *= 2
    assert_holds(store, "A", [1.0, 3.0, 5.0] * 2)


# Values that are not kept -----------------------------------------------------------------------------------


@pytest.fixture
def lean(tmp_path: Path) -> EpochLogger:
    return EpochLogger(str(tmp_path / "lean"), quiet=True, keep_values=False)


def test_without_kept_values_reading_them_says_how_to_get_them(lean: EpochLogger) -> None:
    lean.store(A=1.0, B=np.ones(3))
    shown = lean.epoch_dict
    for read in (lambda: shown["A"], lambda: dict(shown), lambda: shown.get("B"), lambda: shown.pop("A")):
        with pytest.raises(ValueError, match=r"not kept.*keep_values=True"):
            read()
    with pytest.raises(KeyError):
        lean.epoch_dict["X"]
    assert list(lean.epoch_dict) == ["A", "B"] and "A" in lean.epoch_dict and len(lean.epoch_dict) == 2
    assert repr(lean.epoch_dict) == "{'A': <1 numbers, not kept>, 'B': <3 numbers, not kept>}"
    assert logged(lean, "B") == (1.0, 0.0, 1.0, 1.0)
    del lean.epoch_dict["A"]
    assert list(lean.epoch_dict) == ["B"]


def test_without_kept_values_an_assigned_list_counts_as_it_is_then(lean: EpochLogger) -> None:
    mine = [1.0, 2]
    lean.store(A=100.0)
    lean.epoch_dict["A"] = mine
    mine.append(1000.0)
    lean.store(A=3.0)
    assert mine == [1.0, 2, 1000.0]
    assert logged(lean, "A") == (2.0, pytest.approx(np.std([1, 2, 3])), 3.0, 1.0)
    lean.epoch_dict = {"A": [5.0], "B": []}
    assert logged(lean, "A") == (5.0, 0.0, 5.0, 5.0) and lean._peek("B").count == 0
    with pytest.raises(TypeError, match="'A'"):
        lean.epoch_dict["A"] = ["x"]


def test_the_statistics_are_the_same_bits_whether_values_are_kept_or_not() -> None:
    kept, lean = EpochStore(), EpochStore()
    lean.keep_values = False
    x = np.random.default_rng(0).normal(1e8, 1, 50_000)
    for store in (kept, lean):
        for value in x.tolist():
            store.store(A=value)
    assert kept._peek("A").to_bytes() == lean._peek("A").to_bytes()
    assert_holds(lean, "A", x)


def test_whether_values_are_kept_is_settled_by_the_first_one() -> None:
    store = EpochStore()
    assert store.keep_values is True
    store.keep_values = False
    store.store(A=1.0)
    store.keep_values = False
    with pytest.raises(ValueError, match="when the logger is made"):
        store.keep_values = True
    assert store.keep_values is False
    store.epoch_dict.clear()
    store.keep_values = True
    store.store(A=1.0)
    assert type(store.epoch_dict["A"]) is StoredValues


def test_b17_pandas_and_polars_make_a_column_of_each_key() -> None:
    store = EpochStore()
    for value in (1.0, 2.0, 3.0):
        store.store(A=value, B=-value)
    expected = {"A": [1.0, 2.0, 3.0], "B": [-1.0, -2.0, -3.0]}
    for given in (store.epoch_dict, dict(store.epoch_dict)):
        for frame in (pd.DataFrame(given), pd.DataFrame.from_dict(given)):
            assert frame.to_dict("list") == expected
            assert frame.dtypes.tolist() == [np.float64, np.float64]
    assert polars.DataFrame(store.epoch_dict).to_dict(as_series=False) == expected
    assert pd.DataFrame({"C": store.epoch_dict["A"]})["C"].tolist() == [1.0, 2.0, 3.0]


def test_keys_that_share_a_list_store_into_it_in_the_order_of_the_call() -> None:
    store = EpochStore()
    store.store(A=0.5)
    store.epoch_dict["B"] = store.epoch_dict["C"] = store.epoch_dict["A"]
    store.store(A=1.0, B=np.array([2.0, 3.0]), C=4.0)
    store.store(A=np.array([5.0]), B=6.0, C=np.array([7.0]))
    assert repr(store.epoch_dict["A"]) == "[0.5, 1.0, array([2., 3.]), 4.0, array([5.]), 6.0, array([7.])]"
    for key in "ABC":
        assert_holds(store, key, store.epoch_dict["A"])


def test_b17_isinstance_takes_it_for_a_dict_as_programs_do() -> None:
    shown = EpochStore().epoch_dict
    assert isinstance(shown, dict) and isinstance(shown, EpochDict) and type(shown) is EpochDict
    assert not isinstance(shown, list)
