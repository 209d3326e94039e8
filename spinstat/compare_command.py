"""The command compare: groups of seeds as a table, as JSON, and as an image."""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
from collections.abc import Sequence
from typing import Any

from .compare import COMMON, LAST, Comparison, Group, compare_runs
from .drawing import check_out
from .intervals import Estimate
from .reading import PERFORMANCE
from .stderr import note
from .terminal import show

NONE = "n/a"
GAP = "   "  # between columns


def add_compare_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument(
        "logdir", nargs="+", metavar="DIR_OR_PREFIX",
        help="a folder of runs, at any depth, or a part of its name; with a / at its end: that very folder",
    )
    parser.add_argument(
        "--value", "-y", default=PERFORMANCE, metavar="COLUMN",
        help="what to compare; Performance: AverageTestEpRet, else AverageEpRet (Performance)",
    )
    parser.add_argument(
        "--at", default=LAST, metavar="X",
        help=f"where: a number on x, {COMMON} (the last x that all runs have reached), or {LAST} ({LAST})",
    )
    parser.add_argument("--last", type=int, default=1, metavar="N", help="mean of N rows that end there (1)")
    parser.add_argument(
        "--xaxis", "-x", metavar="COLUMN", help="TotalEnvInteracts, or what the runs have in its place"
    )
    parser.add_argument("--legend", "-l", nargs="*", metavar="NAME", help="a name for each folder found")
    parser.add_argument("--select", nargs="*", metavar="PART", help="only folders with all of these in them")
    parser.add_argument("--exclude", nargs="*", metavar="PART", help="no folder with one of these in it")
    parser.add_argument("--seed", type=int, default=0, help="of the resampling of the seeds (0)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    parser.add_argument("--out", metavar="FILE", help="write an image, too: .png, .svg or .pdf")


def compare(args: argparse.Namespace) -> int:
    """Compare the runs and return the exit status."""
    try:
        path = None if args.out is None else check_out(args.out)
        found = compare_runs(
            args.logdir, args.value, args.at, last=args.last, xaxis=args.xaxis, legend=args.legend,
            select=args.select, exclude=args.exclude, seed=args.seed,
        )
        show(as_json(found) if args.json else as_text(found))
        if path is not None:
            from .compare_drawing import draw_comparison
            from .drawing import save

            save(draw_comparison(found), path)
            if not args.json:
                show(path)
    except (ValueError, OSError, ImportError) as error:
        note(f"{type(error).__name__}: {error}")
        return 1
    return 0


def headline(found: Comparison) -> str:
    """What is compared, and where."""
    name = found.value if found.columns == (found.value,) else f"{found.value} ({' or '.join(found.columns)})"
    ends = [seed.x for group in found.groups.values() for seed in group.seeds]
    where = f"at {found.x} {_range(ends)}" if found.at == LAST else f"at {found.x} {found.at:.10g}"
    if found.last == 1:
        return f"{name} {where}"
    shorter = any(seed.rows < found.last for group in found.groups.values() for seed in group.seeds)
    return f"{name} {where}, mean of {'up to ' if shorter else ''}{found.last} rows"


def _range(ends: Sequence[float]) -> str:
    least, most = min(ends), max(ends)
    return f"{least:.10g}" if least == most else f"{least:.10g} to {most:.10g} (the last rows)"


def as_text(found: Comparison) -> str:
    """The comparison as a table of aligned columns."""
    first = next(iter(found.groups))
    names = list(found.groups[first].estimates)
    several = len(found.groups) > 1
    title = [["group"], ["seeds"], *([name, "95 %"] for name in names)]
    if several:
        title.append([f"P(> {first})", "95 %"])
    rows = [title, *(_cells(name, group, several) for name, group in found.groups.items())]
    how = f"95 % intervals from {found.resamples} resamplings of the seeds, seed {found.seed}"
    return "\n".join([headline(found), how, "", *_aligned(rows), *_remarks(found)])


def _cells(name: str, group: Group, several: bool) -> list[list[str]]:
    """The cells of a row, each of one part or two, that are aligned by themselves."""
    count, all_ = len(group.seeds), len(group.seeds) + len(group.missing)
    seeds = str(count) if count == all_ else f"{count} of {all_}"
    cells = [[name], [seeds], *(_parts(estimate) for estimate in group.estimates.values())]
    if several:
        cells.append(["", ""] if group.improvement is None else _parts(group.improvement))
    return cells


def _parts(estimate: Estimate) -> list[str]:
    interval = NONE if math.isnan(estimate.low) else f"[{_short(estimate.low)}, {_short(estimate.high)}]"
    return [_short(estimate.value), interval]


def _short(number: float) -> str:
    """Four digits, or all those before the point."""
    if math.isnan(number):
        return NONE
    return f"{number:.0f}" if 1e4 <= abs(number) < 1e9 else f"{number:.4g}"


def _aligned(rows: Sequence[list[list[str]]]) -> list[str]:
    """Lines in which names are flush left and numbers flush right."""
    columns = zip(*rows, strict=True)
    widths = [[max(map(len, parts)) for parts in zip(*cells, strict=True)] for cells in columns]
    lines = []
    for cells in rows:
        name, *others = [
            [f"{part:>{width}}" for part, width in zip(parts, own, strict=True)]
            for parts, own in zip(cells, widths, strict=True)
        ]
        texts = [f"{name[0].strip():<{widths[0][0]}}", *(" ".join(parts) for parts in others)]
        lines.append(GAP.join(texts).rstrip())
    return lines


def _remarks(found: Comparison) -> list[str]:
    """Why there is no interval, and no probability."""
    lines = []
    alone = [name for name, group in found.groups.items() if len(group.seeds) == 1]
    if alone:
        lines.append(f"One seed has no interval: {', '.join(alone)}")
    endless = [
        name for name, group in found.groups.items()
        if len(group.seeds) > 1 and any(math.isnan(one.low) for one in group.estimates.values())
    ]
    if endless:
        lines.append(f"Infinite values of both signs have no mean and no interval: {', '.join(endless)}")
    if len(found.groups) == 1:
        lines.append("One group: there is nothing to compare it with")
    return ["", *lines] if lines else []


def as_json(found: Comparison) -> str:
    """The comparison as one JSON object; what is not finite is null, "Infinity" or "-Infinity"."""
    return json.dumps(_plain(dataclasses.asdict(found)), indent=2, ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Estimate):
        return _plain(value._asdict())
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return value
