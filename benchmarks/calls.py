"""One process's measurement of `store`: every case of benchmarks.store, beside its references.

Run as `python -m benchmarks.calls ROUNDS`, it prints as JSON the median seconds a call by case and by what
was called, and the medians of the quotients and differences that floors are set on, taken round by round.

A case is some lines of Python that call `logger.store`; they are compiled into a function that runs them over
and over with `logger` and the values as locals, so every call is a call site of its own with arguments that
cost a load. What an empty round of that function takes is subtracted from all alike.
"""

from __future__ import annotations

import contextlib
import functools
import io
import itertools
import json
import math
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

import numpy as np

from . import common, machine, native
from .common import clock
from .lists import ListLogger

LINES = 20  # calls in a compiled loop, one after the other
SECONDS = 1e-3  # about how long one sample takes
TEN = ("EpRet", "EpLen", "VVals", "LossPi", "LossV", "KL", "Entropy", "ClipFrac", "StopIter", "DeltaLossPi")

Loop = Callable[[int], None]


@dataclass(frozen=True)
class Case:
    """Lines that call `logger.store`, the locals they use, and what one pass through them stores."""

    name: str
    lines: Sequence[str]
    stored: Mapping[str, Sequence[Any]]
    values: Mapping[str, Any] = field(default_factory=dict)
    wrap: Callable[[Any], Mapping[str, Any]] = lambda logger: {"logger": logger}
    subclass: bool = False


def compile_loop(lines: Sequence[str], names: Mapping[str, Any]) -> Loop:
    """A function of n that runs `lines` n times, with `names` as its local variables.

    A keyword written as `key__2` is called as `key`, through a tuple of names of its own: so the call sites
    of functions that were compiled apart look to the method, and here no call of those functions is timed
    with them.
    """
    arguments = ", ".join(["times", *names])
    body = "\n        ".join(lines) if lines else "pass"
    text = f"def loop({arguments}):\n    for _ in repeat(None, times):\n        {body}\n"
    scope: dict[str, Any] = {"repeat": itertools.repeat}
    exec(compile(text, "<calls>", "exec"), scope)
    loop = scope["loop"]
    code: CodeType = loop.__code__
    plain = [
        tuple(str(name).partition("__")[0] for name in constant) if isinstance(constant, tuple) else constant
        for constant in code.co_consts
    ]
    loop.__code__ = code.replace(co_consts=tuple(plain))
    loop.__defaults__ = tuple(names.values())
    made: Loop = loop
    return made


def cases() -> list[Case]:
    """All cases; their numbers come from the seed."""
    floats = common.rng().normal(100.0, 15.0, LINES).tolist()
    ints = common.rng().integers(300, 1000, LINES).tolist()
    places = range(LINES)

    def one_key(name: str, values: Sequence[Any]) -> Case:
        return Case(
            name,
            [f"logger.store(EpRet=v{i})" for i in places],
            {"EpRet": values},
            {f"v{i}": value for i, value in enumerate(values)},
        )

    def sites(name: str, keywords: Sequence[str]) -> Case:
        """Calls with one float that cycle through `keywords`."""
        used = [keywords[i % len(keywords)] for i in places]
        stored: dict[str, list[float]] = {}
        for keyword, value in zip(used, floats, strict=True):
            stored.setdefault(keyword.partition("__")[0], []).append(value)
        lines = [f"logger.store({keyword}=v{i})" for i, keyword in enumerate(used)]
        return Case(name, lines, stored, {f"v{i}": value for i, value in enumerate(floats)})

    def repeated(name: str, line: str, stored: Mapping[str, Any], **values: Any) -> Case:
        return Case(name, [line] * LINES, {key: [value] * LINES for key, value in stored.items()}, values)

    one = {"EpRet": floats[0]}
    ten = dict(zip(TEN, floats, strict=False))
    ten_line = "logger.store(" + ", ".join(f"{key}={key}" for key in TEN) + ")"
    three = {key: ten[key] for key in TEN[:3]}
    three_line = "logger.store(" + ", ".join(f"{key}={key}" for key in TEN[:3]) + ")"
    partial = repeated("functools.partial", "call()", one)
    subclass = repeated("subclass calling super", "logger.store(EpRet=v)", one, v=floats[0])
    found = [
        one_key("one float key", floats),
        repeated("three float keys", three_line, three, **three),
        repeated("ten float keys", ten_line, ten, **ten),
        one_key("int", ints),
        one_key("numpy float32", [np.float32(value) for value in floats]),
        one_key("numpy float64", [np.float64(value) for value in floats]),
        one_key("0-d array", [np.array(value) for value in floats]),
        one_key("1-d array of 8", [common.rng().normal(size=8) for _ in places]),
        one_key("1-d array of 1,000", [common.rng().normal(size=1000) for _ in places]),
        sites("two call sites, same name", ["EpRet__1", "EpRet__2"]),
        sites("two call sites, other names", ["EpRet", "EpLen"]),
        sites("20 call sites, same name", [f"EpRet__{i}" for i in places]),
        sites("20 call sites, other names", [f"Key{i}" for i in places]),
        repeated("store(**d)", "logger.store(**d)", one, d=dict(one)),
        repeated("store(**d), ten keys", "logger.store(**d)", ten, d=dict(ten)),
        repeated("store({...}), a mapping", "logger.store(d)", one, d=dict(one)),
        Case(
            partial.name,
            partial.lines,
            partial.stored,
            wrap=lambda logger: {"call": functools.partial(logger.store, EpRet=floats[0])},
        ),
        Case(subclass.name, subclass.lines, subclass.stored, subclass.values, subclass=True),
    ]
    with contextlib.suppress(ImportError):
        import torch

        found.append(one_key("torch CPU scalar", [torch.tensor(value) for value in floats]))
    return found


def calling_super(kind: type[Any]) -> type[Any]:
    """A subclass of `kind` as users write them: it overrides store and hands on what it gets."""

    class Overriding(kind):  # type: ignore[misc]
        def store(self, **kw: Any) -> None:
            super().store(**kw)

    return Overriding


def epoch_logger(keep_values: bool, subclass: bool) -> Any:
    """A logger that writes into a new folder and prints nothing."""
    from spinstat import EpochLogger

    kind = calling_super(EpochLogger) if subclass else EpochLogger
    with contextlib.redirect_stdout(io.StringIO()):
        return kind(output_dir=tempfile.mkdtemp(), quiet=True, keep_values=keep_values)


def subjects(case: Case) -> dict[str, Any]:
    """What is called in a case, by name. Lists are left out where there is no original to speak of."""
    empty = native.empty_type()
    found = {
        "empty": (calling_super(empty) if case.subclass else empty)(),
        "inherited": type("Inheriting", (calling_super(empty) if case.subclass else empty,), {})(),
        "kept": epoch_logger(True, case.subclass),
        "not kept": epoch_logger(False, case.subclass),
    }
    if not case.name.startswith(("store({", "subclass", "functools")):
        found["lists"] = ListLogger(open(os.devnull, "w"))
    return found


def check(case: Case, subject: Any) -> None:
    """Raises AssertionError where the subject's statistics are not those of some passes through the case."""
    for key, stored in case.stored.items():
        flat = np.concatenate([np.ravel(np.asarray(value, dtype=np.float64)) for value in stored]).tolist()
        mean = math.fsum(flat) / len(flat)
        std = math.sqrt(math.fsum((value - mean) ** 2 for value in flat) / len(flat))
        wanted = (mean, std, min(flat), max(flat))
        got = subject.get_stats(key, with_min_and_max=True)
        if not np.allclose(got, wanted, rtol=1e-5, atol=1e-4):
            raise AssertionError(f"{case.name}, {key}, {type(subject).__name__}: {got}, not {wanted}")


def end_epoch(case: Case, subject: Any) -> None:
    """Logs what is stored, as a user would: every sample begins with nothing stored."""
    if not hasattr(subject, "log_tabular"):
        return  # the empty method has nothing to forget
    with contextlib.redirect_stdout(io.StringIO()):
        for key in case.stored:
            subject.log_tabular(key, with_min_and_max=True)
        subject.dump_tabular()


def measure(case: Case, rounds: int, loop_cost: float) -> dict[str, list[float]]:
    """Seconds a call of each subject, round by round."""
    samples: dict[str, common.Sample] = {}
    for name, subject in subjects(case).items():
        loop = compile_loop(case.lines, {**case.wrap(subject), **case.values})
        if name not in ("empty", "inherited"):
            loop(2)
            check(case, subject)
        times = calibrate(loop)
        end_epoch(case, subject)

        def sample(loop: Loop = loop, subject: Any = subject, times: int = times) -> float:
            start = clock()
            loop(times)
            seconds = clock() - start
            end_epoch(case, subject)
            return (seconds / times - loop_cost) / len(case.lines)

        samples[name] = sample
    return common.interleave(samples, rounds)


def calibrate(loop: Loop, passes: int = 100) -> int:
    """How many passes of a loop take about SECONDS, judged by some passes."""
    loop(passes)
    start = clock()
    loop(passes)
    return max(1, round(SECONDS / ((clock() - start) / passes)))


def empty_loop_cost() -> float:
    """Seconds that one round of a compiled loop takes without any line in it."""
    loop = compile_loop((), {})
    found = []
    for _ in range(50):
        start = clock()
        loop(100_000)
        found.append((clock() - start) / 100_000)
    return statistics.median(found)


def main() -> None:
    """Measures all cases in this process, `sys.argv[1]` rounds each, and prints the medians as JSON."""
    machine.settle()
    rounds = int(sys.argv[1])
    loop_cost = empty_loop_cost()
    found: dict[str, Any] = {}
    for case in cases():
        times = measure(case, rounds, loop_cost)
        empty = times["empty"]
        found[case.name] = {
            name: {
                "seconds": statistics.median(values),
                "over empty": common.ratio(values, empty).median,
                "more than empty": common.difference(values, empty).median,
                "lists over this": common.ratio(times["lists"], values).median if "lists" in times else None,
            }
            for name, values in times.items()
        }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
