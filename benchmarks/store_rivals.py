"""One process's measurement of other libraries' ways to store a number, beside spinstat's.

Run as `python -m benchmarks.store_rivals ROUNDS`, it prints as JSON, by case and subject, the median seconds
of storing once, and how many times spinstat's they are. Each library's mean is checked before it is timed.

Stable-Baselines3's record_mean and RLlib's log_value take one key a call, so ten keys are ten calls; of
torchmetrics' MeanMetric there is one a key. RLlib keeps a window of 100 numbers. None of them gives standard
deviation, least and greatest value from these calls, which spinstat's store does.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import math
import statistics
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from . import calls, common, machine
from .common import clock

WINDOW = 100


class Rival(NamedTuple):
    """A library's logger: made for some keys, with the line that stores a key's value, and what it says."""

    name: str
    module: str
    make: Callable[[Sequence[str]], Any]
    line: str  # with {key} and {value}
    mean: Callable[[Any, str], float]


def _stable_baselines(keys: Sequence[str]) -> Any:
    return importlib.import_module("stable_baselines3.common.logger").Logger(None, [])


def _torchmetrics(keys: Sequence[str]) -> Any:
    metric = importlib.import_module("torchmetrics").MeanMetric
    return {key: metric() for key in keys}


def _rllib(keys: Sequence[str]) -> Any:
    return importlib.import_module("ray.rllib.utils.metrics.metrics_logger").MetricsLogger(root=True)


RIVALS = (
    Rival(
        "Stable-Baselines3 record_mean", "stable_baselines3", _stable_baselines,
        "logger.record_mean('{key}', {value})", lambda logger, key: float(logger.name_to_value[key]),
    ),
    Rival(
        "torchmetrics MeanMetric.update", "torchmetrics", _torchmetrics,
        "logger['{key}'].update({value})", lambda logger, key: float(logger[key].compute()),
    ),
    Rival(
        "RLlib MetricsLogger.log_value", "ray", _rllib,
        f"logger.log_value('{{key}}', {{value}}, reduce='mean', window={WINDOW})",
        lambda logger, key: float(logger.peek(key)),
    ),
)  # fmt: skip


def installed() -> list[Rival]:
    """Those that are here."""
    return [rival for rival in RIVALS if importlib.util.find_spec(rival.module)]


def missing() -> str:
    """Names of the modules that are not here."""
    return ", ".join(rival.module for rival in RIVALS if rival not in installed()) or "none"


def check(rival: Rival, keys: Sequence[str], lines: Sequence[str], values: dict[str, float]) -> None:
    """Raises AssertionError where a new logger's mean of 20 numbers a key is not theirs, to float32."""
    subject = rival.make(keys)
    calls.compile_loop(lines, {"logger": subject, **values})(20)
    for place, key in enumerate(keys):
        wanted = math.fsum(values[f"v{i}"] for i in range(place, len(lines), len(keys)))
        wanted /= len(range(place, len(lines), len(keys)))
        if not math.isclose(rival.mean(subject, key), wanted, rel_tol=1e-5):
            raise AssertionError(f"{rival.name}, {key}: {rival.mean(subject, key)}, not {wanted}")


def measure(keys: Sequence[str], rounds: int) -> dict[str, list[float]]:
    """Seconds of storing one number under each key, by library, round by round."""
    numbers = common.rng().normal(100.0, 15.0, 20).tolist()
    values = {f"v{i}": number for i, number in enumerate(numbers)}
    samples: dict[str, common.Sample] = {}

    def add(name: str, subject: Any, lines: Sequence[str], end: Callable[[], object]) -> None:
        loop = calls.compile_loop(lines, {"logger": subject, **values})
        times = calls.calibrate(loop, 3)

        def sample() -> float:
            start = clock()
            loop(times)
            seconds = clock() - start
            end()
            return seconds / times / (len(numbers) // len(keys))

        samples[name] = sample

    groups = [range(start, start + len(keys)) for start in range(0, len(numbers), len(keys))]
    ours = [
        f"logger.store({', '.join(f'{key}=v{i}' for key, i in zip(keys, group, strict=True))})"
        for group in groups
    ]
    logger = calls.epoch_logger(True, subclass=False)
    case = calls.Case("", ours, dict.fromkeys(keys, numbers))
    add("spinstat", logger, ours, lambda: calls.end_epoch(case, logger))
    for rival in installed():
        lines = [rival.line.format(key=keys[i % len(keys)], value=f"v{i}") for i in range(len(numbers))]
        check(rival, keys, lines, values)
        add(rival.name, rival.make(keys), lines, lambda: None)
    return common.interleave(samples, rounds)


def main() -> None:
    """Prints the medians as JSON."""
    machine.settle()
    rounds = int(sys.argv[1])
    found: dict[str, dict[str, dict[str, float]]] = {}
    for title, keys in (("one key", calls.TEN[:1]), ("ten keys", calls.TEN)):
        times = measure(keys, rounds)
        found[title] = {
            name: {
                "seconds": statistics.median(seconds),
                "over spinstat": common.ratio(seconds, times["spinstat"]).median,
            }
            for name, seconds in times.items()
        }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
