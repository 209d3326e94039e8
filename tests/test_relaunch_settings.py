"""--set NAME=VALUE: what a word stands for, and where it goes in a call or a command line."""

from __future__ import annotations

from typing import Any

import pytest

from spinstat.relaunch_program import Refused
from spinstat.relaunch_settings import parse_setting, recorded_word, with_options, with_settings

CALL: dict[str, Any] = {
    "function": "m:train",
    "positional": ["args"],
    "star": "rest",
    "double_star": "more",
    "arguments": {
        "seed": 0,
        "kwargs": {"a": {"b": 1}, "t": {"$tuple": [1]}},
        "rest": {"$tuple": []},
        "more": {"x": 1},
    },
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tf.nn.relu", {"$object": "tensorflow:nn.relu"}),
        ("tensorflow.nn.relu", {"$object": "tensorflow:nn.relu"}),
        ("tf.keras.activations.relu", {"$object": "tensorflow:keras.activations.relu"}),
        ("torch.nn.ReLU", {"$object": "torch:nn.ReLU"}),
        ("torch.optim.SGD", {"$object": "torch:optim.SGD"}),
        ("torch.nn.functional.relu", {"$object": "torch:nn.functional.relu"}),
        ("torch.nn._x", {"$object": "torch:nn._x"}),
        ("(1, 2.5)", {"$tuple": [1, 2.5]}),
        ("{1: 2}", {"$dict": [[1, 2]]}),
        ("1e999", {"$float": "inf"}),
    ],
)
def test_a_literal_and_an_allowed_name_stand_for_what_they_say(text: str, expected: object) -> None:
    assert recorded_word(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "print",
        "sum",
        "exit()",
        "007",
        "os.system",
        "torch.load",
        "torch.hub.load",
        "torch.nn.x.y",
        "torch.nn.ReLU()",
        "torch.nn.",
        "torch.nn.__class__.__base__",
        "tf.io.write_file",
        "tf.py_function",
        "numpy.load",
        "1 if 1 else 2",
        "lambda: 0",
        "$object",
        "[" * 3000,
        "-" * 100_000 + "1",
        "a\0b",
        "1;2",
        "ü",
    ],
    ids=lambda text: text[:20],
)
def test_H10_every_other_word_is_text(text: str) -> None:
    assert recorded_word(text) == text


def test_a_setting_goes_to_an_argument_an_entry_or_the_rest() -> None:
    settings = [parse_setting(word) for word in ("seed=3", "kwargs.a.b=x=y", "kwargs.c.d=1", "new=[1]")]
    found = with_settings(CALL, settings)
    assert found["seed"] == 3
    assert found["kwargs"] == {"a": {"b": "x=y"}, "t": {"$tuple": [1]}, "c": {"d": 1}}
    assert found["more"] == {"x": 1, "new": [1]}
    assert CALL["arguments"]["kwargs"]["a"] == {"b": 1}


@pytest.mark.parametrize("word", ["seed.x=1", "kwargs.t.x=1"])
def test_a_setting_of_an_entry_of_something_else_is_refused(word: str) -> None:
    with pytest.raises(Refused, match=r"entries can only be set of a dict whose keys are text"):
        with_settings(CALL, [parse_setting(word)])


def test_an_unknown_argument_is_refused_with_the_known_ones() -> None:
    call = {**CALL, "double_star": None, "star": None, "arguments": {"seed": 0, "lr": 1}}
    with pytest.raises(Refused, match="m:train has no argument 'sed' to set; it has: seed, lr"):
        with_settings(call, [("sed", "1")])


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--seed", "1", "--x"], ["--seed", "9", "--x"]),
        (["a", "--seed=1"], ["a", "--seed=9"]),
        (["-seed", "-1"], ["-seed", "9"]),
        (["--seed", "1", "--seed", "2"], ["--seed", "9", "--seed", "9"]),
        (["--seed="], ["--seed=9"]),
    ],
)
def test_an_option_of_a_command_line_gets_another_value(words: list[str], expected: list[str]) -> None:
    assert with_options(words, [("seed", "9")], "python train.py") == expected


def test_dashes_and_underscores_in_an_option_are_alike() -> None:
    assert with_options(["--max-len", "1"], [("max_len", "2")], "") == ["--max-len", "2"]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (
            ["--lr", "1", "seed"],
            "it has no option --seed to set; if the program knows one, run: TRAIN --seed 9",
        ),
        (["--seed", "--lr", "1"], "its option --seed has no value"),
        (["--seed"], "its option --seed has no value"),
    ],
)
def test_an_option_that_has_no_value_to_replace_is_refused(words: list[str], complaint: str) -> None:
    with pytest.raises(Refused) as refusal:
        with_options(words, [("seed", "9")], "TRAIN")
    assert complaint in str(refusal.value)
