"""README's section on speed is what the file of results says, what was not faster included."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import ROOT

from benchmarks import accuracy, common, nist, report
from benchmarks.results import read

README = (ROOT / "README.md").read_text(encoding="utf-8")

TABLE = """# Benchmarks

one full run

Short of their floors:

- store: one float key

## moments: speed

- machine: AMD EPYC, 2 cores, Linux

### float64 by size, warm

| time of a call | 100 | 1,000 | greatest error / std |
| :------------- | --: | ----: | -------------------: |
| spinstat | 170 ns ±1% | 1.2 us ±2% | 1e-16 |
| statistics | 1.5 ms ±3% | - | 0e+00 |

| times spinstat's time | 100 | 1,000 |
| :-------------------- | --: | ----: |
| spinstat | 1.00 | 1.00 |
| statistics | 0.75 | - |
| numpy | 13.50 | 1,204.00 |
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "machine.md"
    path.write_text(TABLE, encoding="utf-8")
    return path


def results_of_readme() -> Path:
    """The file of results that README's section links to."""
    links = re.findall(r"\((benchmarks/results/[^)]*\.md)\)", report.section_of(README))
    assert len(links) == 1
    return ROOT / links[0]


def test_the_section_of_the_readme_is_what_its_results_give() -> None:
    path = results_of_readme()
    assert report.section_of(README) == report.section(read(path)), "run python -m benchmarks.report"


@pytest.mark.parametrize("name", report.PLOTS)
def test_a_plot_shows_the_numbers_of_the_results(name: str) -> None:
    results = read(results_of_readme())
    drawn = report.plot_path(results, name).read_text(encoding="utf-8")
    assert re.findall(r"numbers: (\w+)", drawn) == [report.digest(results, name)]
    assert f"]({report.plot_path(results, name).relative_to(ROOT)})" in report.section_of(README)


def test_drawing_the_plots_again_gives_their_digests(file: Path, tmp_path: Path) -> None:
    """On a copy of the results, with one number changed."""
    copy = tmp_path / "copy.md"
    text = results_of_readme().read_text(encoding="utf-8")
    copy.write_text(text, encoding="utf-8")
    before = report.digest(read(copy), "accuracy")
    changed = re.sub(
        r"(### float64: digits of the std by.*?\| spinstat +\| +)[\d.]+", r"\g<1>1.25", text, flags=re.DOTALL
    )
    copy.write_text(changed, encoding="utf-8")
    report.draw(copy)
    results = read(copy)
    for name in report.PLOTS:
        assert report.digest(results, name) in report.plot_path(results, name).read_text(encoding="utf-8")
    assert report.digest(results, "accuracy") != before


def test_results_are_read_by_section_table_row_and_column(file: Path) -> None:
    results = read(file)
    assert results.kind == "one full run"
    assert results.short == ["store: one float key"]
    assert results.fact("moments", "machine") == "AMD EPYC, 2 cores, Linux"
    times = results.table("moments", "float64 by size, warm", "times spinstat's time")
    assert times.number("numpy", "1,000") == 1204.0
    assert times.series("statistics") == [("100", 0.75)]
    assert times.column("1,000") == [("spinstat", 1.0), ("numpy", 1204.0)]
    of_calls = results.table("moments", "float64 by size, warm", "time of a call")
    assert of_calls.number("spinstat", 1) == 170.0
    with pytest.raises(ValueError, match="no number in '-'"):
        of_calls.number("statistics", "1,000")
    with pytest.raises(KeyError, match="no table 'GB/s'"):
        results.table("moments", "float64 by size, warm", "GB/s")


def test_what_was_faster_than_spinstat_is_told() -> None:
    """In the results that README shows: a row and column with less than spinstat's time are named there."""
    results = read(results_of_readme())
    told = report.not_faster(results)
    slower = [
        case
        for case, gain in results.table("store", "Nanoseconds a call", "ns a call").column("lists/kept")
        if gain < 1
    ]
    for case in slower:
        assert f"a {case}" in told
    for section, tables in results.sections["moments"].items():
        for table in tables:
            if table.title == report.TIMES:
                for row in table.rows.keys() - {"reading"}:
                    for column, times in table.series(row):
                        assert times >= 1 or (row in told and column in told), (section, row, column)
    digits = results.table("accuracy", report.STD, "std")
    for column, ours in digits.series("spinstat"):
        for row in digits.rows:
            theirs = dict(digits.series(row))[column]
            assert theirs < ours + 1 or row in told, (row, column)
    for figure in results.short:
        assert figure in told


def test_only_what_is_between_the_markers_is_replaced() -> None:
    readme = f"# x\n\n{report.BEGIN}\nx\n{report.END}\n\nx\n"
    assert report.with_section(readme, "new") == f"# x\n\n{report.BEGIN}\nnew\n{report.END}\n\nx\n"


def test_a_readme_without_its_markers_is_an_error() -> None:
    with pytest.raises(ValueError, match="one section"):
        report.section_of("# spinstat\n")


@pytest.mark.parametrize("dataset", list(nist.datasets()), ids=lambda dataset: dataset.name)
def test_the_data_of_nist_give_the_certified_values(dataset: nist.Dataset) -> None:
    nist.check(dataset)
    slipped = dataset._replace(values=[*dataset.values[:-1], dataset.values[-1] + "1"])
    with pytest.raises(AssertionError, match=dataset.name):
        nist.check(slipped)


def test_digits_are_counted_from_the_exact_value() -> None:
    mean, std = accuracy.exact(accuracy.np.array([1e15, 1e15 + 1, 1e15 + 2]))
    assert (mean, float(std)) == (10**15 + 1, pytest.approx((2 / 3) ** 0.5, rel=1e-15))
    assert accuracy.digits(float(mean), mean) == 16
    assert accuracy.digits(1.001 * float(mean), mean) == pytest.approx(3, abs=0.01)
    assert accuracy.digits(float("nan"), mean) == 0
    assert accuracy.digits(1e-9, accuracy.Fraction(0)) == 0


def test_what_a_benchmark_prints_is_read_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed = common.Report()
    common.header("store: calls", sources=["lists: dicts"], sizes=["few"])
    printed.section("Figures")
    printed.at_most("one key", common.Spread.of([1.0, 1.25, 1.5]), 1.3, "x")
    printed.at_least("ten keys", common.Spread.of([2.0]), 3.0, "x")
    printed.note("A table of its own follows.")
    printed.table(["ns", "kept", "lists"], [["one", "24.6", "1,200"], ["two", "-", "3"]])
    printed.figure("bytes", "7.93")
    printed.close()
    path = tmp_path / "machine.md"
    path.write_text(capsys.readouterr().out, encoding="utf-8")
    results = read(path)
    assert results.fact("store", "source") == "lists: dicts"
    assert results.fact("store", "kernel").startswith("target ")
    assert results.fact("store", "flags").startswith("-std=c11 -ffp-contract=off")
    figures, table, more = results.sections["store"]["Figures"]
    assert figures.rows["one key"][1:] == ["1.25x (1.12 to 1.38)", "at most 1.3x", "pass"]
    assert figures.rows["ten keys"][1:] == ["2.00x (2.00 to 2.00)", "at least 3x", "short"]
    assert table.column("lists") == [("one", 1200.0), ("two", 3.0)]
    assert more.number("bytes", 1) == 7.93
    assert path.read_text(encoding="utf-8").endswith("\n1 pass, 1 short: ten keys\n")
