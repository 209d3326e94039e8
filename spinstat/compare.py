"""Groups of seeds compared: what each reached, how sure that is, and whether it is better than the first.

    from spinstat.compare import compare_runs

    found = compare_runs(["data/ppo", "data/sac"], at=1e6)
    found.groups["sac"].estimates["IQM"], found.groups["sac"].improvement
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from .curves import Array, in_order
from .grouping import (
    ROW,
    X_COLUMNS,
    Member,
    Names,
    columns_of,
    common_x,
    find_folders,
    find_members,
    names_of,
    no_column,
    numbers_of,
    x_of,
)
from .intervals import RESAMPLES, STATISTICS, Estimate, estimate, mean, probability_of_improvement
from .reading import PERFORMANCE, PERFORMANCE_COLUMNS, Run
from .stderr import note

__all__ = ["Comparison", "Group", "Seed", "compare_runs"]

LAST: Final = "last"
COMMON: Final = "common"
NOTHING: Final = Estimate(math.nan, math.nan, math.nan)


@dataclass(frozen=True)
class Seed:
    """What a run has at the place.

    Attributes:
        file: of its rows.
        x: of the last row that counts; nan where there is none.
        rows: how many count.
        value: the mean of these; nan where there is none.
        missing: why there is none; "" where there is.

    Examples:
        >>> from spinstat.compare import compare_runs
        >>> (seed,) = compare_runs(["runs/ppo/"]).groups["ppo"].seeds
        >>> seed.x, seed.rows, seed.value
        (2.0, 1, 30.0)
    """

    file: str
    x: float
    rows: int
    value: float
    missing: str = ""


@dataclass(frozen=True)
class Group:
    """A group of seeds.

    Attributes:
        seeds: those that have a value.
        missing: those that have none, and count for nothing.
        estimates: "mean", "median" and "IQM" (interquartile mean) over the seeds, with their intervals; all
            is nan where no seed has a value.
        improvement: the probability that one of its seeds does better than one of the first group, which has
            None here itself; nan where one of the two has no value.

    Examples:
        >>> from spinstat.compare import compare_runs
        >>> group = compare_runs(["runs/ppo/", "runs/sac/"]).groups["sac"]
        >>> group.estimates["mean"].value, group.improvement.value, group.missing
        (60.0, 1.0, ())
    """

    seeds: tuple[Seed, ...]
    missing: tuple[Seed, ...]
    estimates: dict[str, Estimate]
    improvement: Estimate | None


@dataclass(frozen=True)
class Comparison:
    """Groups of seeds at one place.

    Attributes:
        value: the name that was asked for.
        columns: those that it is in the runs, one or several.
        x: the column that `at` is about.
        at: "last", or a number on x.
        last: how many rows each value is the mean of.
        seed, resamples: of the bootstrap.
        groups: in the order in which they were found; the first is what the others are compared with.

    Examples:
        >>> from spinstat.compare import compare_runs
        >>> found = compare_runs(["runs/ppo/", "runs/sac/"], at=1)
        >>> found.columns, found.x, list(found.groups)
        (('AverageEpRet',), 'Epoch', ['ppo', 'sac'])
    """

    value: str
    columns: tuple[str, ...]
    x: str
    at: float | str
    last: int
    seed: int
    resamples: int
    groups: dict[str, Group]


def compare_runs(
    paths: Names,
    value: str = PERFORMANCE,
    at: float | str = LAST,
    *,
    last: int = 1,
    xaxis: str | None = None,
    legend: Names | None = None,
    select: Names | None = None,
    exclude: Names | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Comparison:
    """Compare groups of runs, found as the plotter finds them, by one value of each run.

    A run's value is that of its last row, or with `at` that of its last row not behind a place on x: always
    a number that is in the file, nothing is interpolated. A run that ended before the place, that begins
    behind it, or whose value there is nan has none. It is named on stderr and in the result, and does not
    count; so is what differs between seeds: rows at other places, fewer rows than `last`. Infinite values
    count.

    Args:
        paths, legend, select, exclude: as of `spinstat.plot.make_plots`.
        value: the column; "Performance" is AverageTestEpRet, else AverageEpRet.
        at: "last": each run's last row; "common": the last x that all runs have reached; or a number on x.
        last: take the mean of so many rows that end there, of those that have the value.
        xaxis: the column of `at`; None: the plotter's choice.
        seed: of the resampling; the same runs have the same intervals each time.
        resamples: how many of them.

    Raises:
        FileNotFoundError: nothing has such a name, there is no run, or none has a row.
        ValueError: no run has the column (those that they have are listed), it holds text, no run has a value
            there, or an argument is none of its choices.

    Examples:
        >>> from spinstat.compare import compare_runs
        >>> found = compare_runs(["runs/ppo/", "runs/sac/"], "Performance", last=2)
        >>> {name: group.estimates["IQM"].value for name, group in found.groups.items()}
        {'ppo': 25.0, 'sac': 50.0}
    """
    if last < 1 or resamples < 1:
        raise ValueError(f"last={last}, resamples={resamples}: both are at least 1")
    if seed < 0:
        raise ValueError(f"seed={seed}: it is at least 0")
    place = at if at in (LAST, COMMON) else _number(at)
    folders = find_folders(names_of(paths) or [], names_of(select), names_of(exclude))
    columns = {value, *PERFORMANCE_COLUMNS, *([xaxis] if xaxis else X_COLUMNS)}
    members = find_members(folders, names_of(legend), False, columns, keep_empty=True)
    x, rows = _rows_of(members, value, xaxis)
    if place == COMMON:
        place = min(float(places[-1]) for places, _ in rows.values())
    seeds: dict[str, list[Seed]] = {}
    for number, (group, run) in enumerate(members):
        if number in rows:
            found = _value_at(run.file, *rows[number], place, last)
        else:
            found = Seed(run.file, math.nan, 0, math.nan, _why_not(run, value, x))
        seeds.setdefault(group, []).append(found)
    for line in _notes([found for group in seeds.values() for found in group], x, place, last):
        note(line)
    if any(len(run) and number not in rows for number, (_, run) in enumerate(members)):
        note(f"Columns of the runs: {columns_of(members)}")
    if not any(found.rows for group in seeds.values() for found in group):
        raise ValueError(f"no run has a value of {value} there")
    names = tuple(dict.fromkeys(str(members[number].run.column_of(value)) for number in rows))
    if len(names) > 1:
        note(f"{value} is {' in some runs and '.join(names)} in others: these may not be alike")
    return Comparison(value, names, x, place, last, seed, resamples, _groups(seeds, seed, resamples))


def _number(at: object) -> float:
    try:
        place = float(at)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        place = math.nan
    if not math.isfinite(place):
        raise ValueError(f"at={at}: give 'last', 'common' or a number on x")
    return place


def _rows_of(
    members: Sequence[Member], value: str, xaxis: str | None
) -> tuple[str, dict[int, tuple[Array, Array]]]:
    """The name of x, and of each member that has any rows with x and the value, by its number, these rows."""
    having = {number: run for number, (_, run) in enumerate(members) if len(run) and run.column_of(value)}
    if not having:
        raise ValueError(no_column(value, members))
    x = xaxis or common_x(list(having.values()))
    with_x = {number: run for number, run in having.items() if x == ROW or x in run}
    if not with_x:
        raise ValueError(no_column(x, members, beside=value))
    rows = {number: in_order(x_of(run, x), numbers_of(run, value)) for number, run in with_x.items()}
    rows = {number: (places, values) for number, (places, values) in rows.items() if len(places)}
    if not rows:
        raise ValueError(f"no run has a number in the column {x!r}")
    return x, rows


def _why_not(run: Run, value: str, x: str) -> str:
    """Why a run has no rows to look at."""
    if not len(run):
        return "no rows"
    if not run.column_of(value):
        return f"no column {value!r}"
    return f"no column {x!r}" if x not in run else f"no number in {x!r}"


def _value_at(file: str, places: Array, values: Array, at: float | str, last: int) -> Seed:
    """The mean of the last rows that are not behind a place."""
    end = len(places)
    if not isinstance(at, str):
        end = int(np.searchsorted(places, at, side="right"))
        if end == 0:
            return Seed(file, math.nan, 0, math.nan, f"begins at {places[0]:.10g}")
        if places[-1] < at:
            return Seed(file, math.nan, 0, math.nan, f"ended at {places[-1]:.10g}")
    window = values[max(end - last, 0) : end]
    there = window[~np.isnan(window)]
    if not len(there):
        return Seed(file, math.nan, 0, math.nan, f"nan at {places[end - 1]:.10g}")
    return Seed(file, float(places[end - 1]), len(there), float(mean(there)))


def _notes(seeds: Sequence[Seed], x: str, at: float | str, last: int) -> Iterator[str]:
    """What is to be known of seeds that differ from others."""
    for found in seeds:
        if found.missing:
            yield f"{found.file}: {found.missing}: not counted"
        elif found.rows < last:
            yield f"{found.file}: the mean of {found.rows} rows, not of {last}"
    counted = sorted((found.x, found.file) for found in seeds if found.rows)
    if not counted:
        return
    (least, first), (most, final) = counted[0], counted[-1]
    if least < most:
        rows = "last rows" if at == LAST else "rows that count"
        yield f"The {rows} are at other {x}: from {least:.10g} ({first}) to {most:.10g} ({final})"


def _groups(seeds: dict[str, list[Seed]], seed: int, resamples: int) -> dict[str, Group]:
    groups: dict[str, Group] = {}
    first: list[float] | None = None
    for name, members in seeds.items():
        values = [found.value for found in members if found.rows]
        improvement = None if first is None else _improvement(values, first, seed, resamples)
        estimates = {
            key: estimate(values, statistic, seed, resamples) if values else NOTHING
            for key, statistic in STATISTICS.items()
        }
        groups[name] = Group(
            tuple(found for found in members if found.rows),
            tuple(found for found in members if not found.rows),
            estimates,
            improvement,
        )
        first = values if first is None else first
    return groups


def _improvement(values: list[float], over: list[float], seed: int, resamples: int) -> Estimate:
    return probability_of_improvement(values, over, seed, resamples) if values and over else NOTHING
