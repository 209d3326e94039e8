"""Writes README's section on speed, and its plots, from a file of results.

Run as `python -m benchmarks.report [FILE]`; FILE is benchmarks/results/<this machine>.md by default. Nothing
in the section is written by hand, what was not faster included, so it cannot differ from what was measured:
a test makes it again and compares.
"""

from __future__ import annotations

import hashlib
import re
import sys
from pathlib import Path

from . import machine
from .results import Results, Table, read

README = machine.ROOT / "README.md"
BEGIN = "<!-- made by python -m benchmarks.report: begin -->"
END = "<!-- made by python -m benchmarks.report: end -->"
NEEDED = {"store", "moments", "epoch", "accuracy", "ranks", "imports"}  # by the section and the plots

RIVALS = "Beside other libraries: nanoseconds to store one number a key"
BY_SIZE, GBS, TIME, TIMES = "float64 by size, warm", "GB/s", "time of a call", "times spinstat's time"
STD = "float64: digits of the std by offset over spread"
PLOTS = {  # and what they show
    "moments": "GB/s of mean, std, min and max by size of the array",
    "accuracy": "Digits of the standard deviation that are right, by offset over spread",
}
# One colour a way in both plots; spinstat's is the strongest.
COLOURS = {
    "spinstat": "#c1121f", "reading": "#000000", "numpy": "#1f77b4", "float32, as the original": "#7f7f7f",
    "torch (fused)": "#e377c2", "polars": "#2ca02c", "PyArrow": "#9467bd", "DuckDB": "#bcbd22",
    "oneDAL (own type)": "#17becf", "numba (one pass)": "#8c564b",
}  # fmt: skip


def plot_path(results: Results, name: str) -> Path:
    """Where a plot lies: beside the results."""
    return results.path.with_name(f"{results.path.stem}-{name}.svg")


def plotted(results: Results, name: str) -> tuple[Table, list[str]]:
    """The table that a plot shows, and its rows in order."""
    if name == "moments":
        table = results.table("moments", BY_SIZE, GBS)
    else:
        table = results.table("accuracy", STD, "std")
    return table, [row for row in COLOURS if row in table.rows]


def digest(results: Results, name: str) -> str:
    """A hash of all numbers that a plot shows; it is written into the plot."""
    table, rows = plotted(results, name)
    shown = repr([(row, table.series(row)) for row in rows])
    return hashlib.sha256(shown.encode()).hexdigest()


def draw(path: Path) -> None:
    """Draws the plots of a file of results, beside it."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    results = read(path)
    for name in PLOTS:
        table, rows = plotted(results, name)
        with rc_context({"svg.hashsalt": name, "svg.fonttype": "none", "font.size": 9}):
            # Without pyplot, whose backend is everybody's.
            figure = Figure(figsize=(7, 4), layout="constrained")
            axes = figure.add_subplot()
            for row in rows:
                series = table.series(row)
                x = [float(column.replace(",", "")) for column, _ in series]
                width = 2.5 if row == "spinstat" else 1.2
                axes.plot(
                    x, [number for _, number in series], label=row, color=COLOURS[row], linewidth=width,
                    linestyle="--" if row == "reading" else "-", marker="o", markersize=3,
                )  # fmt: skip
            axes.set_xscale("log")
            if name == "moments":
                axes.set(xlabel="float64 values", ylabel="GB/s", yscale="log")
                axes.set_title("mean, std, min and max of an array, one thread")
            else:
                axes.set(xlabel="offset / spread of float64 values", ylabel="digits of std", ylim=(0, 17))
                axes.set_title("digits of the standard deviation that are right")
            axes.grid(alpha=0.3)
            axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
            target = plot_path(results, name)
            about = {"Date": None, "Description": f"numbers: {digest(results, name)}"}
            figure.savefig(target, format="svg", metadata=about)
        text = target.read_text(encoding="utf-8")
        target.write_text(re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE), encoding="utf-8")


def short_number(number: float) -> str:
    """Three digits, thousands apart."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def rows_of_store(results: Results) -> list[list[str]]:
    """Storing, beside lists and the other libraries."""
    calls = results.table("store", "Nanoseconds a call", "ns a call")
    rivals = results.table("store", RIVALS, "ns")
    rows = []
    cases = (("one float key", "one key", "one number"), ("ten float keys", "ten keys", "ten numbers"))
    for case, column, words in cases:
        names = [name for name in rivals.rows if name != "spinstat"]
        others = [f"{name.split()[0]} {short_number(rivals.number(name, column))}" for name in names]
        rows.append([
            f"storing {words}, ns",
            short_number(calls.number(case, "kept")),
            short_number(calls.number(case, "lists")),
            ", ".join(others),
        ])  # fmt: skip
    return rows


def row_of_moments(results: Results) -> list[str]:
    """The time of ten million values, or of the most there are."""
    table = results.table("moments", BY_SIZE, TIME)
    size = "10,000,000" if "10,000,000" in table.columns else "1,000,000"
    place = table.columns.index(size)

    def time(row: str) -> str:
        return table.rows[row][place].partition(" ±")[0]

    ways = ("numpy", "polars", "PyArrow", "torch (fused)")
    others = [f"{row} {time(row)}" for row in ways if row in table.rows]
    return [
        f"mean, std, min, max of {size} float64", time("spinstat"), time("float32, as the original"),
        ", ".join(others),
    ]  # fmt: skip


def row_of_accuracy(results: Results) -> list[str]:
    """Digits at an offset of 1e9."""
    table = results.table("accuracy", STD, "std")
    ways = ("numpy", "polars", "DuckDB")
    others = [f"{row} {table.number(row, '1e9'):.1f}" for row in ways if row in table.rows]
    return [
        "digits of std that are right, offset 1e9", f"{table.number('spinstat', '1e9'):.1f}",
        f"{table.number('float32, as the original', '1e9'):.1f}", ", ".join(others),
    ]  # fmt: skip


def rows(results: Results) -> list[list[str]]:
    """The table of README: what, spinstat, the original's way, others."""
    count = next(iter(results.sections["epoch"])).split()[0]
    epoch = results.table("epoch", f"{count} values, ten keys a call: seconds")
    library = next(name.partition(":")[0] for name in results.sections["ranks"] if "ranks: 2" in name)
    ranks = results.table("ranks", f"{library}: microseconds an epoch, ranks: 2")
    imports = results.table("imports", "Milliseconds to import, NumPy imported before")
    simulator = results.table("epoch", "A fast simulator, every step logged")
    rate, share = (
        simulator.number("million steps a second, logged", 1),
        simulator.number("share of the time that logging takes", 1),
    )
    return [
        *rows_of_store(results),
        [
            f"an epoch of {count} values, stored, logged, written, ms",
            *(short_number(1e3 * epoch.number(name, 1)) for name in ("spinstat", "original")), "",
        ],
        row_of_moments(results),
        row_of_accuracy(results),
        [
            f"20 keys reduced over two ranks ({library}), µs",
            short_number(ranks.number("reduced, in a batch", 1)),
            short_number(ranks.number("reduced, the original's way", 1)), "",
        ],
        [f"logging's share of a simulation of {rate:.1f} million steps a second", f"{share:.1f} %", "", ""],
        [
            "importing `EpochLogger` after NumPy, ms",
            short_number(imports.number("from spinstat import EpochLogger", 1)), "",
            ", ".join(
                f"{statement.split()[1].partition('.')[0]} {short_number(imports.number(statement, 1))}"
                for statement in imports.rows if "spinstat" not in statement and statement.startswith("from")
            ),
        ],
    ]  # fmt: skip


def not_faster(results: Results) -> str:
    """Sentences on what was not faster or less right, and on the floors that were missed."""
    calls = results.table("store", "Nanoseconds a call", "ns a call")
    slower = [case for case, gain in calls.column("lists/kept") if gain < 1]
    said = []
    if slower:
        said.append(
            f"Storing {listed([f'a {case}' for case in slower])} took "
            "longer than appending it to a list, which puts the arithmetic off until the epoch's end."
        )
    beaten: dict[str, list[str]] = {}
    for section, tables in results.sections["moments"].items():
        for table in tables:
            if table.title == TIMES:
                for row in table.rows.keys() - {"spinstat", "reading"}:
                    sizes = [column for column, times in table.series(row) if times < 1]
                    if sizes:
                        kind = section.partition(" by size")[0] + (", cold" if "cold" in section else "")
                        beaten.setdefault(row, []).append(f"{kind} at {listed(sizes)} values")
    if beaten:
        told = [f"{row} ({'; '.join(sorted(cells))})" for row, cells in sorted(beaten.items())]
        said.append(f"`moments` was slower than {listed(told)}.")
    said += more_accurate(results)
    if not said:
        said.append("Nothing that was compared was faster.")
    count = len(results.short)
    if count:
        said.append(f"Short of {count} of the floors that it is held to: {'; '.join(results.short)}.")
    return " ".join(said)


def more_accurate(results: Results) -> list[str]:
    """A sentence on whose standard deviation has at least one more right digit than spinstat's; or none."""
    table = results.table("accuracy", STD, "std")
    ours = dict(table.series("spinstat"))
    better = {
        row: [column for column, digits in table.series(row) if digits >= ours[column] + 1]
        for row in table.rows.keys() - {"spinstat"}
    }
    names = sorted(row for row, columns in better.items() if columns)
    if not names:
        return []
    first = min((column for columns in better.values() for column in columns), key=float)
    return [
        f"From offsets of {first} times the spread of float64 values up, {listed(names)} had more right "
        "digits of the standard deviation."
    ]


def listed(words: list[str]) -> str:
    """Words with commas, and with `and` before the last."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def wrapped(text: str, width: int = 118) -> str:
    """Lines of at most `width` characters, but for words that are longer."""
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return "\n".join(lines)


def section(results: Results) -> str:
    """What stands between the markers."""
    file = results.path.relative_to(machine.ROOT)
    cpu = results.fact("store", "machine").partition(", Linux")[0]
    kernel, commit = results.fact("moments", "kernel"), results.fact("moments", "commit")
    table = [["", "spinstat", "the original's way", "others"], *rows(results)]
    lines = [f"| {' | '.join(row)} |" for row in table]
    lines.insert(1, "| --- | ---: | ---: | --- |")
    images = [f"![{PLOTS[name]}]({plot_path(results, name).relative_to(machine.ROOT)})" for name in PLOTS]
    return "\n".join([
        wrapped(
            f"Measured on {cpu}; {kernel}; commit {commit} ({results.kind}). Medians; [all of it]({file}), "
            "with spreads, versions and flags. `make bench` measures yours."
        ),
        "", *lines, "", wrapped(not_faster(results)), "", *images,
    ])  # fmt: skip


def section_of(readme: str) -> str:
    """What a README has between the markers. Raises ValueError where they are not there once."""
    parts = re.findall(f"{re.escape(BEGIN)}\n(.*?)\n{re.escape(END)}", readme, re.DOTALL)
    if len(parts) != 1:
        raise ValueError(f"README.md needs one section between {BEGIN} and {END}")
    return str(parts[0])


def with_section(readme: str, text: str) -> str:
    """A README with `text` between its markers."""
    old = section_of(readme)
    return readme.replace(f"{BEGIN}\n{old}\n{END}", f"{BEGIN}\n{text}\n{END}")


def main() -> None:
    """The command line."""
    path = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else None
    path = path or machine.ROOT / "benchmarks" / "results" / f"{machine.slug()}.md"
    if not path.exists():
        sys.exit(f"there is no {path}: `make bench` writes it")
    readme = README.read_text(encoding="utf-8")
    draw(path)
    README.write_text(with_section(readme, section(read(path))), encoding="utf-8")


if __name__ == "__main__":
    main()
