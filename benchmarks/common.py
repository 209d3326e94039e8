"""What the benchmarks share: the clock, medians of ratios, and the Markdown that they print.

How a ratio is taken: everything compared runs in one process, one after the other, over and over, forwards
in one round and backwards in the next; each round gives one ratio, and their median is reported with its
quartiles. A slow second of the machine then slows both sides of a ratio, or spoils one round of many.
"""

from __future__ import annotations

import argparse
import gc
import math
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from . import machine

SEED = 20240917

clock = time.process_time
"""Seconds that this process had a processor: what else runs here is not counted. One thread does it all."""

Sample = Callable[[], float]
"""Runs once and returns a time: of the whole run or of one call of many, as those compared do."""


def rng() -> np.random.Generator:
    """A new generator of the numbers that benchmarks work on; the same numbers each time."""
    return np.random.default_rng(SEED)


def quick_flag(doc: str | None) -> bool:
    """Reads the command line of a benchmark; True where --quick was given."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, smaller runs")
    return bool(parser.parse_args().quick)


def timed(function: Callable[[], object]) -> Sample:
    """A sample that calls `function` once and returns how long that took."""

    def sample() -> float:
        start = clock()
        function()
        return clock() - start

    return sample


def interleave(
    samples: Mapping[str, Sample], rounds: int, seconds: float = math.inf, warmed: bool = False
) -> dict[str, list[float]]:
    """Takes every sample once a round, in alternating order, without the garbage collector.

    One round before the first is thrown away, which fills caches and lets the interpreter specialise, unless
    the caller has `warmed` up. After `seconds` of the wall no further round begins, but three are taken in
    any case.
    Returns the times of each name, in the order of the rounds.
    """
    times: dict[str, list[float]] = {name: [] for name in samples}
    names = list(samples)
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    end = time.monotonic() + seconds
    try:
        for turn in range(warmed, rounds + 1):
            if turn > 3 and time.monotonic() > end:
                break
            for name in names if turn % 2 else reversed(names):
                seconds = samples[name]()
                if turn:
                    times[name].append(seconds)
    finally:
        if was_enabled:
            gc.enable()
    return times


@dataclass(frozen=True)
class Spread:
    """A median with its quartiles."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Median and quartiles of at least one value."""
        if len(values) == 1:
            return cls(values[0], values[0], values[0])
        low, median, high = statistics.quantiles(values, n=4, method="inclusive")
        return cls(median, low, high)

    def percent(self) -> float:
        """Half the distance of the quartiles, in percent of the median."""
        return 50 * (self.high - self.low) / self.median

    def text(self, unit: str = "", digits: int = 2, scale: float = 1.0) -> str:
        """The three numbers times `scale`, as they are printed."""
        median, low, high = (f"{value * scale:.{digits}f}" for value in (self.median, self.low, self.high))
        return f"{median}{unit} ({low} to {high})"


def ratio(over: Sequence[float], under: Sequence[float]) -> Spread:
    """Quotients of two lists of times taken in the same rounds."""
    return Spread.of([a / b for a, b in zip(over, under, strict=True)])


def difference(of: Sequence[float], less: Sequence[float]) -> Spread:
    """Differences of two lists of times taken in the same rounds."""
    return Spread.of([a - b for a, b in zip(of, less, strict=True)])


class Report:
    """Prints Markdown: tables of figures, each beside its floor where it has one."""

    def __init__(self) -> None:
        self.passed = 0
        self.short: list[str] = []
        self._open = ""  # the kind of table that the last line belongs to

    def section(self, title: str) -> None:
        """Prints a heading. The figures that follow make one table."""
        self._open = ""
        print(f"\n### {title}\n", flush=True)

    def note(self, text: str) -> None:
        """Prints a paragraph, after a table or before one."""
        print(f"\n{text}\n" if self._open else f"{text}\n", flush=True)
        self._open = ""

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Prints a table of cells, the first column left, the others right."""
        widths = [max(len(row[i]) for row in (columns, *rows)) for i in range(len(columns))]

        def line(cells: Sequence[str]) -> str:
            padded = (cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True))
            return f"| {' | '.join([cells[0].ljust(widths[0]), *padded])} |"

        if self._open:
            print()
        rule = [":" + "-" * (widths[0] - 1), *("-" * (width - 1) + ":" for width in widths[1:])]
        print("\n".join([line(columns), line(rule), *map(line, rows)]), flush=True)
        self._open = "cells"

    def figure(self, name: str, text: str, floor: str = "", verdict: str = "") -> None:
        """Prints a figure; one without `floor` is for the reader to judge."""
        if self._open != "figures":
            print("\n" if self._open else "", end="")
            self._line("what", "median (quartiles)", "floor", "")
            self._line(":" + "-" * 51, ":" + "-" * 27, ":" + "-" * 15, ":----")
            self._open = "figures"
        self._line(name, text, floor, verdict)

    @staticmethod
    def _line(name: str, text: str, floor: str, verdict: str) -> None:
        print(f"| {name:<52} | {text:<28} | {floor:<16} | {verdict:<5} |", flush=True)

    def at_most(self, name: str, spread: Spread, floor: float, unit: str, digits: int = 2) -> None:
        """Prints a figure that passes where its median is not above `floor`."""
        self._judge(name, spread.text(unit, digits), f"at most {floor:g}{unit}", spread.median <= floor)

    def at_least(self, name: str, spread: Spread, floor: float, unit: str, digits: int = 2) -> None:
        """Prints a figure that passes where its median is not below `floor`."""
        self._judge(name, spread.text(unit, digits), f"at least {floor:g}{unit}", spread.median >= floor)

    def _judge(self, name: str, text: str, floor: str, good: bool) -> None:
        if good:
            self.passed += 1
        else:
            self.short.append(name)
        self.figure(name, text, floor, "pass" if good else "short")

    def close(self) -> None:
        """Prints how many floors were kept, and names the others."""
        names = f": {'; '.join(self.short)}" if self.short else ""
        print(f"\n{self.passed} pass, {len(self.short)} short{names}", flush=True)


def header(
    title: str,
    *,
    sources: Sequence[str],
    sizes: Sequence[str],
    packages: Sequence[str] = (),
    threads: str = machine.ONE_THREAD,
) -> None:
    """Prints what a reader needs in order to judge or repeat a result.

    sources: what each reference is and where it comes from; sizes: how much is measured, how often.
    packages: distributions whose version is told, besides spinstat and numpy.
    threads: how many threads and cores what is compared may use.
    """
    rows = [
        ("commit", machine.commit()),
        ("machine", machine.description()),
        ("python", machine.python()),
        ("kernel", f"target {machine.kernel_target()}, built by {machine.extension_compiler()}"),
        ("flags", machine.extension_flags()),
        ("packages", ", ".join(map(machine.version, ("spinstat", "numpy", *packages)))),
        ("threads", threads),
        ("seed", str(SEED)),
        *(("source", text) for text in sources),
        *(("size", text) for text in sizes),
    ]
    print(f"## {title}\n")
    for name, text in rows:
        print(f"- {name}: {text}")
    sys.stdout.flush()
