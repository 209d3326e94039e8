"""The command compare: its table, its JSON, its image, and its errors."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import matplotlib
import pytest
from conftest import RunPython
from plots import make_run, seeds

from spinstat.compare import Comparison, compare_runs
from spinstat.compare_drawing import draw_comparison
from spinstat.drawing import COLORS
from spinstat.run import main

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder of its own."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def data() -> Path:
    """Two groups, of five seeds and of four and one without a value."""
    seeds(Path("data/a"), "ppo", [[0, 1], [0, 2], [0, 3], [0, 8], [0, 4]])
    seeds(Path("data/b"), "a longer name", [[0, 5], [0, 6], [0, 3], [9, 7], [1, math.nan]])
    return Path("data")


def table_of(text: str) -> tuple[str, list[list[str]], list[str]]:
    """The headline, the cells of the table and the lines below it."""
    head, _, rest = text.partition("\n\n")
    table, _, remarks = rest.partition("\n\n")
    cells = [
        [cell.strip() for cell in line.replace("95 %", "95%").replace(", ", ",").split("  ") if cell.strip()]
        for line in table.splitlines()
    ]
    return head, cells, remarks.splitlines()


def test_the_table_has_a_row_a_group_and_says_how_it_was_made(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", "data"]) == 0
    out, err = capsys.readouterr()
    found = compare_runs("data")
    one = found.groups["a longer name"]
    mean, improvement = one.estimates["mean"], one.improvement
    assert improvement is not None
    lines = out.splitlines()
    assert lines[0] == "Performance (AverageEpRet) at TotalEnvInteracts 200"
    assert lines[1] == "95 % intervals from 10000 resamplings of the seeds, seed 0"
    assert lines[3].split() == "group seeds mean 95 % median 95 % IQM 95 % P(> ppo) 95 %".split()
    assert lines[4].split()[:3] == ["ppo", "5", "3.6"]
    assert lines[5].startswith(f"a longer name   4 of 5   5.25 [{mean.low:.4g}, {mean.high:.4g}]   ")
    assert lines[5].endswith(f"{improvement.value:.4g} [{improvement.low:.4g}, {improvement.high:.4g}]")
    assert len(lines) == 6
    assert {len(line) for line in lines[3:]} == {len(lines[4]), len(lines[5])}
    assert "data/b/a longer name_s4/progress.txt: nan at 200: not counted\n" in err
    assert main(["compare", "data"]) == 0
    assert capsys.readouterr().out == out


def test_columns_are_aligned(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["compare", "data"])
    _, _, _, title, first, second = capsys.readouterr().out.splitlines()
    assert title.index("seeds") + len("seeds") == first.index(" 5 ") + 2 == second.index("4 of 5") + 6
    places = [[at for at, letter in enumerate(line) if letter == "]"] for line in (first, second)]
    assert places[0] == places[1][:3]


def test_options_go_where_they_belong(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--value", "AverageEpRet", "--at", "1", "--last", "2", "--xaxis", "Epoch", "--seed", "7"]
    assert main(["compare", "data/a", "data/b", "-l", "x", "y", *words, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert {name: shown[name] for name in ("value", "columns", "x", "at", "last", "seed", "resamples")} == {
        "value": "AverageEpRet", "columns": ["AverageEpRet"], "x": "Epoch", "at": 1, "last": 2, "seed": 7,
        "resamples": 10_000,
    }
    assert [seed["value"] for seed in shown["groups"]["x"]["seeds"]] == [0.5, 1, 1.5, 4, 2]
    found = compare_runs("data/a", "AverageEpRet", 1, last=2, xaxis="Epoch", seed=7)
    assert shown["groups"]["x"]["estimates"]["mean"]["low"] == found.groups["ppo"].estimates["mean"].low
    capsys.readouterr()
    assert main(["compare", "data/", "--json", "--select", "zzz"]) == 1
    assert main(["compare", "data/a", "data/b", "--json", "--select", "data", "--exclude", "/b"]) == 0
    assert list(json.loads(capsys.readouterr().out)["groups"]) == ["ppo"]


def test_json_holds_what_is_not_finite_as_json_can(capsys: pytest.CaptureFixture[str]) -> None:
    make_run(Path("data/a"), {"Epoch": [0], "Loss": ["inf"]}, "a")  # type: ignore[list-item]
    assert main(["compare", "data", "-y", "Loss", "--json"]) == 0
    group = json.loads(capsys.readouterr().out)["groups"]["a"]
    assert group["estimates"]["mean"] == {"value": "Infinity", "low": None, "high": None}
    assert group["improvement"] is None


def test_one_group_and_one_seed_are_said_to_be_that(capsys: pytest.CaptureFixture[str]) -> None:
    make_run(Path("data/a"), {"Epoch": [0], "Loss": [123456.75]}, "a")
    assert main(["compare", "data", "--value", "Loss"]) == 0
    head, cells, remarks = table_of(capsys.readouterr().out)
    assert head.startswith("Loss at Epoch 0\n95 % intervals")
    assert cells[0][:2] == ["group", "seeds"]
    assert [word for cell in cells[1] for word in cell.split()] == ["a", "1", *["123457", "n/a"] * 3]
    assert remarks == [
        "One seed has no interval: a", "One group: there is nothing to compare it with"
    ]


def test_infinite_values_of_both_signs_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    for seed, value in enumerate((math.inf, -math.inf, 1)):
        make_run(Path(f"data/a{seed}"), {"Epoch": [0], "Loss": [value]}, "a")
    assert main(["compare", "data", "-y", "Loss"]) == 0
    _, cells, remarks = table_of(capsys.readouterr().out)
    assert [word for cell in cells[1] for word in cell.split()][:4] == ["a", "3", "n/a", "n/a"]
    assert remarks[0] == "Infinite values of both signs have no mean and no interval: a"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["zzz"], "FileNotFoundError: zzz matches nothing: no folder in . is named so, or in part\n"),
        (["data", "-y", "KL"], "ValueError: no run has the column 'KL'; there are: Epoch, AverageEpRet,"),
        (["data", "--at", "soon"], "ValueError: at=soon: give 'last', 'common' or a number on x\n"),
        (["data", "--out", "a.jpg"], "ValueError: a.jpg: the name of an image ends in .png, .svg, .pdf\n"),
        (["data", "--at", "1000"], "ValueError: no run has a value of Performance there\n"),
    ],
    ids=str,
)
def test_errors_are_told_without_a_traceback(
    data: Path, capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    assert main(["compare", *words]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert told in err


def test_it_runs_as_a_command_and_loads_matplotlib_only_for_an_image(
    data: Path, tmp_path: Path, run_python: RunPython
) -> None:
    done = run_python("-m", "spinstat.run", "compare", "data", "--out", "a.svg", cwd=tmp_path)
    assert done.stdout.endswith("\na.svg\n")
    assert (tmp_path / "a.svg").read_text().startswith("<?xml")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.svg", "data"]
    program = (
        "import sys; from spinstat.run import main; assert main(['compare', 'data']) == 0;"
        "print(*sys.modules)"
    )
    loaded = set(run_python("-c", program, cwd=tmp_path).stdout.split())
    assert not {"matplotlib", "pandas", "scipy"} & loaded
    assert "spinstat.compare" in loaded


def intervals_of(axes: Any) -> list[tuple[float, float, float, Any]]:
    """Low, high, y and colour of each interval that is drawn."""
    found = []
    for lines, color in ((one.get_segments(), one.get_color()) for one in axes.collections):
        ((low, y), (high, _)) = lines[0].tolist()
        found.append((low, high, y, matplotlib.colors.to_hex(color[0])))
    return found


def marks_of(axes: Any) -> list[tuple[float, float, str]]:
    """x, y and colour of each mark of an estimate."""
    return [
        (float(line.get_xdata()[0]), float(line.get_ydata()[0]), line.get_color())
        for line in axes.get_lines() if line.get_marker() == "|"
    ]


def drawn(found: Comparison) -> list[Any]:
    return list(draw_comparison(found).axes)


def test_the_image_holds_the_numbers_of_the_table_in_the_plotters_colours(data: Path) -> None:
    found = compare_runs("data")
    panels = drawn(found)
    assert [axes.get_xlabel() for axes in panels] == ["mean", "median", "IQM", "P(> ppo)"]
    groups = list(found.groups.values())
    for axes, name in zip(panels[:3], ("mean", "median", "IQM"), strict=True):
        estimates = [group.estimates[name] for group in groups]
        expected = [
            (one.low, one.high, place, COLORS[place].lower()) for place, one in enumerate(estimates)
        ]
        assert intervals_of(axes) == expected
        assert marks_of(axes) == [
            (one.value, place, COLORS[place]) for place, one in enumerate(estimates)
        ]
        dots = [line for line in axes.get_lines() if line.get_marker() == "o"]
        assert [list(line.get_xdata()) for line in dots] == [[1, 2, 3, 8, 4], [5, 6, 3, 7]]
    improvement = groups[1].improvement
    assert improvement is not None
    assert intervals_of(panels[3]) == [(improvement.low, improvement.high, 1, COLORS[1].lower())]
    assert marks_of(panels[3]) == [(improvement.value, 1, COLORS[1])]
    assert panels[3].get_xlim() == (-0.03, 1.03)
    assert [text.get_text() for text in panels[0].get_yticklabels()] == ["ppo", "a longer name"]
    assert panels[0].get_ylim()[0] > panels[0].get_ylim()[1]  # the first group is the upper one
    title = panels[0].figure.get_suptitle()
    assert title == "Performance (AverageEpRet) at TotalEnvInteracts 200; 95 % bootstrap intervals"


def test_the_image_of_one_seed_has_a_point_and_no_interval() -> None:
    make_run(Path("data/a"), {"Epoch": [0], "Loss": [5]}, "$x$")
    panels = drawn(compare_runs("data", "Loss"))
    assert [axes.get_xlabel() for axes in panels] == ["mean", "median", "IQM"]
    assert [intervals_of(axes) for axes in panels] == [[], [], []]
    assert marks_of(panels[0]) == [(5, 0, COLORS[0])]
    assert panels[0].get_yticklabels()[0].get_text() == r"\$x\$"


def test_names_in_the_image_do_not_overlap_the_panels(data: Path) -> None:
    figure = draw_comparison(compare_runs("data"))
    figure.draw_without_rendering()
    labels = [text.get_window_extent() for text in figure.axes[0].get_yticklabels()]
    assert min(label.x0 for label in labels) >= 0
    assert max(label.x1 for label in labels) <= figure.axes[0].get_window_extent().x0
    inner = [tick for axes in figure.axes[1:] for tick in axes.yaxis.get_major_ticks()]
    assert not any(tick.label1.get_visible() for tick in inner)
