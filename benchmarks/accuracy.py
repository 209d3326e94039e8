"""How many digits of mean and standard deviation are right. Run as `python -m benchmarks.accuracy [--quick]`.

Numbers with an offset from 1 to 10^15 times their spread, in float64 and in float32, and the univariate sets
of NIST (benchmarks/nist.py), given to spinstat and to every other way of benchmarks/competitors.py. What is
right is computed in integers from the very numbers that they get: so rounding to float32, which is the
caller's, is not held against anybody.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from . import common, competitors, machine, nist
from .common import Report

Array = np.ndarray[Any, Any]

# Digits that are right whatever the offset.
MEAN, STD = 15.0, 14.0

SOURCES = (
    "digits: minus the decimal logarithm of the relative error, at most 16; 0 where no digit is right",
    "exact: integer arithmetic over the very numbers, benchmarks/accuracy.py",
    "where the exact deviation is 0, an answer of 0 has 16 digits and any other none",
)


def exact(x: Array, ddof: int = 0) -> tuple[Fraction, Fraction]:
    """Mean and standard deviation of floats; the deviation to some 40 digits."""
    ratios = [value.as_integer_ratio() for value in x.tolist()]
    unit = max(denominator for _, denominator in ratios)  # all are powers of two
    scaled = [numerator * (unit // denominator) for numerator, denominator in ratios]
    total, n = sum(scaled), len(scaled)
    squares = n * sum(value * value for value in scaled) - total * total
    variance = Fraction(squares, n * (n - ddof) * unit * unit)
    scale = 10**40 * unit
    std = Fraction(math.isqrt(variance.numerator * scale * scale // variance.denominator), scale)
    return Fraction(total, n * unit), std


def digits(got: float, wanted: Fraction) -> float:
    """How many decimal digits of an answer are right, from 0 to 16."""
    if not math.isfinite(got):
        return 0.0
    error = abs(Fraction(got) - wanted)
    if error == 0:
        return 16.0
    if wanted == 0:
        return 0.0
    return min(16.0, max(0.0, -math.log10(error / abs(wanted))))


def conditioned(power: int, dtype: str, count: int) -> Array:
    """Normal numbers of deviation 1 around 10^power, rounded to a type. The same deviates each time."""
    return (common.rng().standard_normal(count) + 10.0**power).astype(dtype)


def answers(x: Array) -> dict[str, competitors.Four]:
    """What spinstat and every other way say about an array."""
    found = {"spinstat": competitors.spinstat_four(x)}
    for rival in competitors.installed():
        if str(x.dtype) in rival.kinds and (len(x) <= rival.most or rival.name == "statistics"):
            with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):  # the answer is judged
                found[rival.name] = rival.make(x)()
    return found


def by_condition(dtype: str, powers: Sequence[int], count: int) -> dict[str, dict[str, list[float]]]:
    """Digits of mean and std by way and condition number."""
    found: dict[str, dict[str, list[float]]] = {"mean": {}, "std": {}}
    for power in powers:
        x = conditioned(power, dtype, count)
        mean, std = exact(x)
        for name, (got_mean, got_std, *_) in answers(x).items():
            found["mean"].setdefault(name, []).append(digits(got_mean, mean))
            found["std"].setdefault(name, []).append(digits(got_std, std))
    return found


def show(report: Report, title: str, columns: Sequence[str], rows: Mapping[str, Sequence[float]]) -> None:
    """A table of digits."""
    cells = [[name, *(f"{number:.1f}" for number in numbers)] for name, numbers in rows.items()]
    report.table([title, *columns], cells)


def nist_sets() -> dict[str, dict[str, list[float]]]:
    """Digits of mean and std (n - 1) by way, set by set, beside the doubles nearest to NIST's decimals."""
    found: dict[str, dict[str, list[float]]] = {"mean": {}, "std": {}}
    for dataset in nist.datasets():
        nist.check(dataset)
        x = np.array([float(text) for text in dataset.values])
        mean, std = exact(x, ddof=1)
        for name, (got_mean, got_std, *_) in answers(x).items():
            of_sample = got_std * math.sqrt(len(x) / (len(x) - 1))
            found["mean"].setdefault(name, []).append(digits(got_mean, mean))
            found["std"].setdefault(name, []).append(digits(of_sample, std))
    return found


def main() -> None:
    """Prints all tables of `accuracy`."""
    quick = common.quick_flag(__doc__)
    machine.settle()
    count, powers = (2_000, range(0, 16, 3)) if quick else (20_000, range(16))
    common.header(
        "accuracy: digits of mean and standard deviation that are right",
        sources=SOURCES,
        sizes=(f"{count:,} numbers of spread 1 around 10^0 to 10^15", "NIST: 9 sets of 3 to 5,000 numbers"),
        packages=competitors.distributions(),
    )
    report = Report()
    for dtype in ("float64", "float32"):
        found = by_condition(dtype, powers, count)
        for what in ("mean", "std"):
            report.section(f"{dtype}: digits of the {what} by offset over spread")
            show(report, what, [f"1e{power}" for power in powers], found[what])
        for what, floor in {"mean": MEAN, "std": STD}.items():
            least = min(found[what]["spinstat"])
            name = f"{dtype}: spinstat's {what}, fewest digits"
            report.at_least(name, common.Spread.of([least]), floor, "", 1)
    names = [dataset.name for dataset in nist.datasets()]
    for what, rows in nist_sets().items():
        report.section(f"NIST's univariate sets: digits of the {what}")
        show(report, what, names, rows)
    report.close()


if __name__ == "__main__":
    main()
