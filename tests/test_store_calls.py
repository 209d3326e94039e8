"""How store() is called: names, mappings, call sites of every kind, subclasses."""

from __future__ import annotations

import array
import enum
import functools
import gc
import inspect
import math
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stores import assert_holds, logged

from spinstat import EpochLogger
from spinstat._core import EpochStore


@pytest.fixture
def logger(output_dir: str) -> EpochLogger:
    return EpochLogger(output_dir, quiet=True)


def call_site(names: list[str]) -> Callable[[EpochStore, float], None]:
    """A function with a call site of its own, whose tuple of names dies with it."""
    arguments = ", ".join(f"{name}=x" for name in names)
    scope: dict[str, Any] = {}
    exec(f"def call(store, x): store.store({arguments})", scope)
    call: Callable[[EpochStore, float], None] = scope["call"]
    return call


# The call ---------------------------------------------------------------------------------------------------


def test_store_says_its_signature() -> None:
    assert str(inspect.signature(EpochStore.store)) == "(self, data=None, /, **values)"
    assert str(inspect.signature(EpochLogger.store)) == "(self, data=None, /, **values)"
    assert EpochLogger.store.__doc__ and "Save values" in EpochLogger.store.__doc__


def test_store_is_a_method_of_the_type_and_is_bound_to_the_logger(logger: EpochLogger) -> None:
    assert logger.store.__self__ is logger
    assert EpochLogger.store(logger, A=1.0) is None
    bound = logger.store
    assert bound(A=3.0) is None
    assert logger.epoch_dict["A"] == [1.0, 3.0]
    with pytest.raises(TypeError, match="EpochStore"):
        EpochLogger.store(object(), A=1.0)
    with pytest.raises(TypeError):
        EpochLogger.store()


def test_store_of_nothing_returns_none_and_stores_nothing(logger: EpochLogger) -> None:
    assert logger.store() is None
    assert logger.store(None) is None
    assert logger.store({}) is None
    assert logger.epoch_dict == {} and not logger.epoch_dict


@pytest.mark.parametrize("positional", [1.0, [1.0], "X", np.ones(2), {"a"}], ids=repr)
def test_what_is_no_mapping_is_refused_as_positional_argument(logger: EpochLogger, positional: Any) -> None:
    with pytest.raises(TypeError, match=f"mapping.*not {type(positional).__qualname__}"):
        logger.store(positional, A=1.0)
    with pytest.raises(TypeError, match=r"at most one positional argument.*2 given"):
        logger.store(positional, positional, A=1.0)
    assert logger.epoch_dict == {}


def test_a_mapping_and_names_are_stored_together(logger: EpochLogger) -> None:
    logger.store({"B": 2.0, "A": 1.0}, C=3.0)
    logger.store(types.MappingProxyType({"A": np.ones(2)}))
    assert list(logger.epoch_dict) == ["B", "A", "C"]
    assert_holds(logger, "A", [1.0, 1.0, 1.0])
    assert logger.epoch_dict["C"] == [3.0]


def test_a_key_given_twice_is_refused(logger: EpochLogger) -> None:
    class Twice(dict[str, float]):
        def keys(self) -> Any:
            return ["A", "B", "A"]

    with pytest.raises(TypeError, match="two values for key 'A'"):
        logger.store({"A": 1.0}, A=2.0)
    with pytest.raises(TypeError, match="two values for key 'A'"):
        logger.store(Twice(A=1.0, B=2.0))
    assert logger.epoch_dict == {}


def test_a_key_that_is_no_string_is_refused(logger: EpochLogger) -> None:
    with pytest.raises(TypeError, match="string, not 1"):
        logger.store({"A": 1.0, 1: 2.0})
    with pytest.raises(TypeError, match="must be strings"):
        logger.store(**{1: 2.0})  # type: ignore[misc]
    assert logger.epoch_dict == {}


def test_what_a_mapping_raises_goes_through_and_nothing_is_stored(logger: EpochLogger) -> None:
    class Broken(dict[str, float]):
        def __getitem__(self, key: str) -> float:
            raise LookupError(f"no {key}")

    with pytest.raises(LookupError, match="no A"):
        logger.store(Broken(A=1.0), B=1.0)
    assert logger.epoch_dict == {}


# Names ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "key", ["a b/c", "self", "data", "values", "", "ünï", "1x", "\ud800", "a\tb", "k" * 999]
)
def test_b16_names_that_are_no_identifiers_are_stored_both_ways(logger: EpochLogger, key: str) -> None:
    logger.store(**{key: 1.0})
    logger.store({key: 2.0})
    logger.store({"other": 0.0}, **{key: 6.0})
    assert logger.epoch_dict[key] == [1.0, 2.0, 6.0]
    assert_holds(logger, key, [1.0, 2.0, 6.0])


def test_b16_keys_that_are_no_identifiers_are_logged(logger: EpochLogger) -> None:
    logger.store(**{"a b/c": 1.0})
    logger.store({"self": 4.0, "a b/c": 2.0})
    assert logged(logger, "a b/c") == (1.5, 0.5, 2.0, 1.0)
    assert logged(logger, "self") == (4.0, 0.0, 4.0, 4.0)


class Metric(enum.StrEnum):
    RETURN = "EpRet"


@pytest.mark.parametrize("name", [np.str_("EpRet"), Metric.RETURN], ids=["numpy string", "enum"])
def test_names_of_subclasses_of_str_are_the_strings_they_equal(logger: EpochLogger, name: str) -> None:
    logger.store(**{name: 1.0})
    logger.store(EpRet=2.0)
    logger.store({name: 3.0})
    assert [type(key) for key in logger.epoch_dict] == [str]
    assert logger.epoch_dict[name] == [1.0, 2.0, 3.0] and name in logger.epoch_dict
    assert repr(logger.epoch_dict) == "{'EpRet': [1.0, 2.0, 3.0]}"
    logger.epoch_dict[name] = [5.0]
    assert logger._take(name).mean == 5.0
    del logger.epoch_dict[name]
    assert logger.epoch_dict == {}


# Call sites -------------------------------------------------------------------------------------------------


def test_more_call_sites_than_are_remembered_lose_nothing() -> None:
    store = EpochStore()
    sites = [call_site([f"K{i % 37}", f"L{i % 11}"]) for i in range(200)]
    for round in range(20):
        for i, site in enumerate(sites):
            site(store, float(i + round))
    for i in range(37):
        assert_holds(store, f"K{i}", [j + r for r in range(20) for j in range(200) if j % 37 == i])
    assert sum(store._peek(f"L{i}").count for i in range(11)) == 4000


def test_names_in_another_order_are_another_call_site() -> None:
    store = EpochStore()
    for i in range(100):
        store.store(A=float(i), B=-float(i))
        store.store(B=-float(i), A=float(i))
    assert (store._peek("A").min, store._peek("A").max, store._peek("A").count) == (0.0, 99.0, 200)
    assert (store._peek("B").min, store._peek("B").max, store._peek("B").count) == (-99.0, 0.0, 200)


def test_functions_compiled_and_dropped_in_a_loop_never_store_under_each_others_names() -> None:
    store = EpochStore()
    want: dict[str, float] = {}
    for i in range(3000):
        key = f"K{i % 50}"
        # Its tuple of names dies here, and the next one may lie at its address.
        call_site([key])(store, float(i))
        want[key] = want.get(key, 0.0) + i
    assert {key: store._peek(key).mean * 60 for key in want} == pytest.approx(want, rel=1e-14)
    assert all(store._peek(key).count == 60 for key in want)


def test_names_that_unpacking_brings_anew_at_each_call_are_kept_apart() -> None:
    store = EpochStore()
    for i in range(2000):
        store.store(**{"A": 1.0, f"k{i % 3}": float(i % 3)})
        store.store(**{f"k{i % 3}": float(i % 3)})
        functools.partial(store.store, B=2.0)(**{f"k{i % 3}": float(i % 3)})
    assert store._keys() == ["A", "k0", "B", "k1", "k2"]
    for i in range(3):
        m = store._peek(f"k{i}")
        assert (m.mean, m.std(), m.count) == (i, 0.0, 3 * len(range(i, 2000, 3)))
    assert (store._peek("A").count, store._peek("B").mean) == (2000, 2.0)


def test_names_made_up_as_the_run_goes_are_each_their_own_key() -> None:
    store = EpochStore()
    for i in range(5000):
        store.store(**{f"key/{i}": float(i), "all": 1.0})
    assert len(store._keys()) == 5001
    assert all(store._peek(f"key/{i}").mean == i for i in range(0, 5000, 7))
    assert store._peek("all").count == 5000


def test_one_call_site_serves_many_stores() -> None:
    site = call_site(["A", "B"])
    stores = [EpochStore() for _ in range(30)]
    for _ in range(10):
        for i, store in enumerate(stores):
            site(store, float(i))
    assert [store._take("A").mean for store in stores] == list(range(30))
    assert [store._take("B").count for store in stores] == [10] * 30


@pytest.mark.parametrize("n", [1, 2, 31, 32, 33, 100, 300])
def test_calls_with_any_number_of_names_store_all_of_them(n: int) -> None:
    store = EpochStore()
    names = [f"K{i}" for i in range(n)]
    site = call_site(names)
    for x in (1.0, 2, np.float32(3), np.ones(2)):
        site(store, x)  # type: ignore[arg-type]
    assert store._keys() == names
    assert all(store._peek(name).count == 5 and store._peek(name).mean == 1.6 for name in names)


def test_b17_a_key_deleted_while_a_call_site_knows_it_is_made_anew() -> None:
    store = EpochStore()
    site, other = call_site(["A", "B"]), call_site(["B"])
    for _ in range(3):
        site(store, 1.0)
        other(store, 1.0)
    old = store.epoch_dict["A"]
    del store.epoch_dict["A"]
    assert "A" not in store.epoch_dict and old == [1.0] * 3
    site(store, 5.0)
    assert store.epoch_dict["A"] == [5.0] and old == [1.0] * 3
    assert store._keys() == ["B", "A"]
    assert store.epoch_dict["B"] == [1.0] * 6 + [5.0]
    store.epoch_dict.clear()
    site(store, 7.0)
    assert store.epoch_dict == {"A": [7.0], "B": [7.0]}
    store.epoch_dict = {"C": [1.0]}
    site(store, 8.0)
    assert store.epoch_dict == {"C": [1.0], "A": [8.0], "B": [8.0]}


def test_a_store_outlives_its_call_sites_and_they_it() -> None:
    for _ in range(200):
        store = EpochStore()
        site = call_site(["A"])
        site(store, 1.0)
        del site
        gc.collect(0)
        store.store(A=3.0)
        assert store._take("A").mean == 2.0


# Subclasses -------------------------------------------------------------------------------------------------


def test_subclasses_that_override_store_and_log_tabular_and_call_super_work(tmp_path: Path) -> None:
    class Doubled(EpochLogger):
        def store(self, data: Any = None, /, **values: Any) -> None:
            super().store(data, **{key: 2 * value for key, value in values.items()}, Calls=1)

        def log_tabular(self, key: str, *args: Any, **options: Any) -> None:
            super().log_tabular(key, *args, **options)
            self.seen = [*getattr(self, "seen", []), key]

    logger = Doubled(str(tmp_path / "run"), quiet=True)
    for i in range(5):
        logger.store(A=float(i))
    logger.store({"A": 100.0})
    assert logger.epoch_dict["A"] == [0.0, 2.0, 4.0, 6.0, 8.0, 100.0]
    assert logged(logger, "A") == (20.0, pytest.approx(np.std([0, 2, 4, 6, 8, 100])), 100.0, 0.0)
    assert logged(logger, "Calls") == (1.0, 0.0, 1.0, 1.0)
    assert logger.seen == ["A", "Calls"]


def test_a_subclass_that_never_calls_init_can_store() -> None:
    class Bare(EpochStore):
        def __init__(self, name: str) -> None:
            self.name = name

    store = Bare("x")
    store.store(A=1.0)
    assert store.epoch_dict == {"A": [1.0]} and store.keep_values


def test_a_list_of_the_callers_that_refuses_leaves_the_others_as_they_were(logger: EpochLogger) -> None:
    first: list[float] = [1.0]
    whole = array.array("i", [1])
    logger.epoch_dict["First"], logger.epoch_dict["Whole"] = first, whole
    with pytest.raises(TypeError, match="Whole"):
        logger.store(First=2.0, Whole=1.5)
    assert first == [1.0] and whole.tolist() == [1]
    logger.store(First=2.0, Whole=3)
    assert first == [1.0, 2.0] and whole.tolist() == [1, 3]


@pytest.mark.parametrize("x", [np.array(-0.0), np.float32(-0.0), -0.0])
def test_the_sign_of_a_zero_is_kept(x: object, logger: EpochLogger) -> None:
    logger.store(X=x)
    assert math.copysign(1.0, logger.epoch_dict["X"][0]) == -1.0
