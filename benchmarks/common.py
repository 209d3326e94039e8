"""What the benchmarks share: the header, the clock, medians of ratios, and the lines that are printed.

How a ratio is taken: everything compared runs in one process, one after the other, over and over, forwards
in one round and backwards in the next; each round gives one ratio, and their median is reported with its
quartiles. A slow second of the machine then slows both sides of a ratio, or spoils one round of many.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib.metadata
import os
import platform
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

SEED = 20240917
ROOT = Path(__file__).resolve().parent.parent

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


def interleave(samples: Mapping[str, Sample], rounds: int) -> dict[str, list[float]]:
    """Takes every sample once a round, in alternating order, without the garbage collector.

    One round before the first is thrown away: it fills caches and lets the interpreter specialise.
    Returns the times of each name, in the order of the rounds.
    """
    times: dict[str, list[float]] = {name: [] for name in samples}
    names = list(samples)
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        for turn in range(rounds + 1):
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


@dataclass
class Report:
    """Prints one line a figure and remembers which were short."""

    passed: int = 0
    short: list[str] = field(default_factory=list)

    def section(self, title: str) -> None:
        """Prints a heading."""
        print(f"\n{title}", flush=True)

    def figure(self, name: str, text: str) -> None:
        """Prints a figure that has no floor."""
        print(f"  {name:<50} {text}", flush=True)

    def at_most(self, name: str, spread: Spread, floor: float, unit: str, digits: int = 2) -> None:
        """Prints a figure that passes where its median is not above `floor`."""
        self._line(name, spread, f"at most {floor:g}{unit}", spread.median <= floor, unit, digits)

    def at_least(self, name: str, spread: Spread, floor: float, unit: str, digits: int = 2) -> None:
        """Prints a figure that passes where its median is not below `floor`."""
        self._line(name, spread, f"at least {floor:g}{unit}", spread.median >= floor, unit, digits)

    def _line(self, name: str, spread: Spread, floor: str, good: bool, unit: str, digits: int) -> None:
        if good:
            self.passed += 1
        else:
            self.short.append(name)
        self.figure(name, f"{spread.text(unit, digits):<32} floor: {floor:<20} {'pass' if good else 'short'}")

    def close(self) -> None:
        """Prints how many floors were kept, and names the others."""
        names = f": {'; '.join(self.short)}" if self.short else ""
        print(f"\n{self.passed} pass, {len(self.short)} short{names}")


def header(title: str, *, sources: Sequence[str], sizes: Sequence[str], packages: Sequence[str] = ()) -> None:
    """Prints what a reader needs in order to judge or repeat a result.

    sources: what each reference is and where it comes from; sizes: how much is measured, how often.
    packages: distributions whose version is told, besides spinstat and numpy.
    """
    import spinstat

    print(title)
    rows = [
        ("commit", commit()),
        ("machine", f"{cpu_name()}, {os.cpu_count()} CPUs, {platform.platform()}"),
        ("python", f"{platform.python_version()}, {platform.python_compiler()}"),
        ("kernel", f"target {spinstat.target()}, built by {extension_compiler()}"),
        ("packages", ", ".join(version(name) for name in ("spinstat", "numpy", *packages))),
        ("threads", "1"),
        ("seed", str(SEED)),
        *(("source", text) for text in sources),
        *(("size", text) for text in sizes),
    ]
    for name, text in rows:
        print(f"  {name:<9} {text}")
    sys.stdout.flush()


def commit() -> str:
    """The commit of the working tree, marked where files differ from it."""
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=12"], cwd=ROOT, capture_output=True, text=True
    )
    return done.stdout.strip() if done.returncode == 0 else "unknown (no git here)"


def version(distribution: str) -> str:
    """Name and version of an installed distribution."""
    try:
        return f"{distribution} {importlib.metadata.version(distribution)}"
    except importlib.metadata.PackageNotFoundError:
        return f"{distribution} not installed"


def cpu_name() -> str:
    """The processor as the system names it."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        found = re.search(r"^(?:model name|Model|cpu model)\s*:\s*(.+)$", info.read_text(), re.MULTILINE)
        if found:
            return found.group(1)
    return platform.processor() or platform.machine()


def extension_compiler() -> str:
    """The compiler that left its name in spinstat's extension module."""
    import spinstat._core

    module = Path(spinstat._core.__file__).read_bytes()
    found = re.search(rb"GCC: \([^)\0]*\) [\d.]+|clang version [\d.]+", module)
    return found.group().decode() if found else "an unnamed compiler"


def last_level_cache() -> int:
    """Bytes of the largest cache that the system reports by any of its ways, 32 MiB where it reports none."""
    found = [32 << 20]
    for index in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        size = re.fullmatch(r"(\d+)([KMG]?)", index.read_text().strip())
        if size:
            found.append(int(size[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[size[2]])
    for level in ("LEVEL3_CACHE_SIZE", "LEVEL4_CACHE_SIZE"):
        with contextlib.suppress(FileNotFoundError):  # a system without getconf
            done = subprocess.run(["getconf", level], capture_output=True, text=True)
            found.append(int(done.stdout) if done.stdout.strip().isdigit() else 0)
    return max(found)
