"""The plotter: figures by what they hold, and the errors that name what is missing."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
from plots import bands_of, lines_of, make_run, seeds

from spinstat.drawing import COLORS
from spinstat.plot import make_plots

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def strict_and_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """In a folder of its own, any warning an error."""
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def plot_of(*args: Any, **kwargs: Any) -> Any:
    """The only panel of a figure."""
    (axes,) = make_plots(*args, **kwargs).axes
    return axes


def test_G1_two_seeds_are_a_line_and_a_band_of_one_standard_deviation(tmp_path: Path) -> None:
    seeds(tmp_path / "ppo", "ppo", [[0, 1, 2, 3, 4], [2, 5, 2, 1, 8]])
    axes = plot_of("ppo")
    assert lines_of(axes) == {"ppo": ([100, 200, 300, 400, 500], [1, 3, 2, 2, 6])}
    (band,) = bands_of(axes)
    assert band == {100: (0, 2), 200: (1, 5), 300: (2, 2), 400: (1, 3), 500: (4, 8)}
    assert axes.get_xlabel() == "Environment interactions"
    assert axes.get_ylabel() == "Performance (AverageEpRet)"
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["ppo"]
    assert axes.figure.get_suptitle() == "mean of 2 runs, band: one standard deviation"
    assert "seaborn" not in sys.modules


def test_G2_ten_seeds_of_a_thousand_epochs_are_drawn_without_a_warning(tmp_path: Path) -> None:
    curves = np.random.default_rng(0).normal(size=(10, 1000))
    seeds(tmp_path / "ppo", "ppo", curves.tolist())
    axes = plot_of("ppo")
    assert lines_of(axes)["ppo"][1] == pytest.approx(curves.mean(axis=0).tolist())
    (band,) = bands_of(axes)
    assert len(band) == 1000
    deviation = curves.std(axis=0)
    assert [high - low for low, high in band.values()] == pytest.approx((2 * deviation).tolist())


def test_G12_a_run_that_ends_early_has_no_part_in_what_comes_later(tmp_path: Path) -> None:
    seeds(tmp_path / "ppo", "ppo", [[0, 2, 4, 6, 8], [2, 4]])
    axes = plot_of("ppo", xaxis="Epoch")
    assert lines_of(axes) == {"ppo": ([0, 1, 2, 3, 4], [1, 3, 4, 6, 8])}
    (band,) = bands_of(axes)
    assert band == {0: (0, 2), 1: (2, 4)}


def test_G12_runs_with_other_places_on_x_are_interpolated_between_their_own(tmp_path: Path) -> None:
    make_run(tmp_path / "a/0", {"Epoch": [0, 10, 20], "Loss": [0, 10, 20]}, "a")
    make_run(tmp_path / "a/1", {"Epoch": [5, 15], "Loss": [15, 25]}, "a")
    axes = plot_of("a", values="Loss")
    assert lines_of(axes) == {"a": ([0, 5, 10, 15, 20], [0, 10, 15, 20, 20])}
    (band,) = bands_of(axes)
    assert band == {5: (5, 15), 10: (10, 20), 15: (15, 25)}


def test_a_single_run_has_no_band(tmp_path: Path) -> None:
    seeds(tmp_path / "ppo", "ppo", [[0, 1, 2]])
    axes = plot_of("ppo")
    assert bands_of(axes) == []
    assert axes.figure.get_suptitle() == ""


def test_groups_are_those_of_exp_name_and_each_has_a_colour_of_its_own(tmp_path: Path) -> None:
    seeds(tmp_path / "data/x", "ppo", [[0, 1], [2, 3]])
    seeds(tmp_path / "data/y", "sac", [[5, 6]])
    seeds(tmp_path / "data/z", "ppo", [[4, 5]])
    axes = plot_of("data")
    assert {name: y for name, (_, y) in lines_of(axes).items()} == {"ppo": [2, 3], "sac": [5, 6]}
    assert [line.get_color() for line in axes.get_lines()] == list(COLORS[:2])


def test_with_count_each_run_is_a_line_and_G10_a_second_call_has_the_same_names(tmp_path: Path) -> None:
    seeds(tmp_path / "ppo", "ppo", [[0, 1], [2, 3]])
    for _ in range(2):
        axes = plot_of("ppo", count=True)
        assert {name: y for name, (_, y) in lines_of(axes).items()} == {"ppo-0": [0, 1], "ppo-1": [2, 3]}
        assert bands_of(axes) == []


def test_the_estimate_may_be_another_and_the_extremes_have_no_band(tmp_path: Path) -> None:
    seeds(tmp_path / "ppo", "ppo", [[0, 1], [1, 9], [8, 2]])
    lines = {
        name: lines_of(plot_of("ppo", estimator=name))["ppo"][1]
        for name in ("mean", "median", "max", "min")
    }
    assert lines == {"mean": [3, 4], "median": [1, 2], "max": [8, 9], "min": [0, 1]}
    assert bands_of(plot_of("ppo", estimator="max")) == []
    (band,) = bands_of(plot_of("ppo", estimator="median"))
    deviation = np.std([0, 1, 8])
    assert band[100] == pytest.approx((1 - deviation, 1 + deviation))


def test_a_bootstrap_band_is_the_same_each_time(tmp_path: Path) -> None:
    seeds(tmp_path / "ppo", "ppo", [[0, 1], [1, 9], [8, 2], [4, 4]])
    first, second = (bands_of(plot_of("ppo", band="bootstrap")) for _ in range(2))
    assert first == second
    low, high = first[0][100]
    assert 0 < low < 3.25 < high < 8


def test_smoothing_is_within_a_run_and_keeps_all_places(tmp_path: Path) -> None:
    seeds(tmp_path / "ppo", "ppo", [[0, 3, 6, 3], [6, 9, 0, 3]])
    smoothed = lines_of(plot_of("ppo", smooth=3))["ppo"]
    assert smoothed == ([100, 200, 300, 400], [(1.5 + 7.5) / 2, 4, 4, (4.5 + 1.5) / 2])


def test_values_are_panels_in_which_a_group_keeps_its_colour(tmp_path: Path) -> None:
    make_run(tmp_path / "a", {"Epoch": [0, 1], "Loss": [1, 2]}, "a")
    make_run(tmp_path / "b", {"Epoch": [0, 1], "Loss": [1, 2], "KL": [3, 4]}, "b")
    left, right = make_plots(["a", "b"], values=["Loss", "KL"]).axes
    assert (left.get_ylabel(), right.get_ylabel()) == ("Loss", "KL")
    assert (list(lines_of(left)), list(lines_of(right))) == (["a", "b"], ["b"])
    assert left.get_lines()[1].get_color() == right.get_lines()[0].get_color()
    assert [text.get_text() for text in right.get_legend().get_texts()] == ["a", "b"]


def test_large_numbers_of_interactions_are_written_short(tmp_path: Path) -> None:
    make_run(tmp_path / "a", {"TotalEnvInteracts": [0, 2_000_000], "Loss": [1, 2]})
    axis = plot_of("a", values="Loss").xaxis
    assert axis.get_major_formatter()(2_000_000) == "2M"


@pytest.mark.parametrize("names", [["n" * 30, "m"], [f"run {n}" for n in range(8)]], ids=["long", "many"])
def test_a_legend_that_would_cover_the_curves_is_beside_them(tmp_path: Path, names: list[str]) -> None:
    for number, _ in enumerate(names):
        make_run(tmp_path / f"data/{number}", {"Epoch": [0, 1], "Loss": [1, 2]})
    axes = plot_of([f"data/{number}" for number, _ in enumerate(names)], legend=names, values="Loss")
    axes.figure.draw_without_rendering()
    assert axes.get_legend().get_window_extent().x0 >= axes.get_window_extent().x1
    assert axes.get_legend().get_window_extent().x1 <= axes.figure.bbox.x1
    styles = {(line.get_color(), line.get_linestyle()) for line in axes.get_lines()}
    assert len(styles) == len(names)


def test_a_long_legend_takes_no_room_between_panels(tmp_path: Path) -> None:
    rows = {"Epoch": [0, 1], **{f"V{n}": [1, 2] for n in range(5)}}
    make_run(tmp_path / "a", rows, "n" * 30)
    figure = make_plots("a", values=[f"V{n}" for n in range(5)])
    figure.draw_without_rendering()
    panels = [axes.get_window_extent() for axes in figure.axes]
    assert [axes.get_legend() is not None for axes in figure.axes] == [False, False, True, False, False]
    gap = panels[1].x0 - panels[0].x1
    assert panels[2].x0 - panels[1].x1 == pytest.approx(gap, abs=2)
    assert figure.axes[2].get_legend().get_window_extent().x0 >= panels[2].x1


def test_a_name_is_shown_as_it_is(tmp_path: Path) -> None:
    make_run(tmp_path / "a", {"Epoch": [0, 1], "_a$x$_{": [1, 2]}, "_$\\frac$")
    axes = plot_of("a", values="_a$x$_{", out="a.svg")
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [r"_\$\frac\$"]


def test_gaps_stay_gaps_and_a_lone_value_is_marked(tmp_path: Path) -> None:
    nan = float("nan")
    make_run(tmp_path / "a", {"Epoch": [0, 1, 2, 3, 4], "Loss": [1, 2, nan, 4, nan]})
    (line,) = plot_of("a", values="Loss").get_lines()
    assert np.isnan(line.get_ydata()).tolist() == [False, False, True, False, True]
    assert (line.get_marker(), line.get_markevery()) == ("o", [3])


def test_G5_what_was_searched_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_run(tmp_path / "data/full", {"Epoch": [0, 1], "Loss": [1, 2]}, "full")
    for name, text in (("empty", ""), ("header", "Epoch\tLoss\n")):
        (tmp_path / "data" / name).mkdir()
        (tmp_path / "data" / name / "progress.txt").write_text(text)
    assert list(lines_of(plot_of("data", values="Loss"))) == ["full"]
    told = capsys.readouterr().err
    assert "data/empty/progress.txt: no rows: skipped" in told
    assert "data/header/progress.txt: no rows: skipped" in told
    with pytest.raises(FileNotFoundError, match="no run has a row yet; searched: data/empty, data/header"):
        make_plots(["data/empty", "data/header"], values="Loss")
    with pytest.raises(FileNotFoundError, match="data/zzz matches nothing: no folder in data"):
        make_plots("data/zzz")
    (tmp_path / "nothing").mkdir()
    with pytest.raises(FileNotFoundError, match=r"no run .* searched: nothing"):
        make_plots("nothing")


def test_G6_runs_with_metrics_of_their_own_are_drawn(tmp_path: Path) -> None:
    make_run(tmp_path / "a", {"Epoch": [0], "AverageLoss": [1]})
    assert lines_of(plot_of("a", values="AverageLoss")) == {"exp": ([0], [1])}
    with pytest.raises(ValueError, match=r"Performance \(AverageTestEpRet or .*are: Epoch, AverageLoss"):
        make_plots("a")
    with pytest.raises(ValueError, match="no run with 'AverageLoss' has the column 'Time'; there are: Epoch"):
        make_plots("a", xaxis="Time", values="AverageLoss")


def test_performance_is_that_of_test_episodes_where_there_are_any(tmp_path: Path) -> None:
    make_run(tmp_path / "a", {"Epoch": [0], "AverageEpRet": [1], "AverageTestEpRet": [2]})
    axes = plot_of("a")
    assert lines_of(axes) == {"exp": ([0], [2])}
    assert axes.get_ylabel() == "Performance (AverageTestEpRet)"


def test_a_run_without_the_column_is_left_out_with_a_note(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run(tmp_path / "data/a", {"Epoch": [0, 1], "Loss": [1, 2]}, "a")
    make_run(tmp_path / "data/b", {"Epoch": [0, 1], "KL": [1, 2]}, "b")
    assert list(lines_of(plot_of("data", values="Loss"))) == ["a"]
    assert "data/b/progress.txt: no column 'Loss': not drawn" in capsys.readouterr().err


def test_what_was_skipped_in_a_file_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (make_run(tmp_path / "a", {"Epoch": [0, 1], "Loss": [1, 2]}) / "progress.txt").open("a") as file:
        file.write("2\t")
    assert lines_of(plot_of("a", values="Loss")) == {"exp": ([0, 1], [1, 2])}
    assert "a/progress.txt: line 4: does not end" in capsys.readouterr().err


def test_runs_without_x_columns_in_common_are_drawn_over_their_rows(tmp_path: Path) -> None:
    make_run(tmp_path / "a", {"Loss": [3, 4, 5]})
    axes = plot_of("a", values="Loss")
    assert (lines_of(axes), axes.get_xlabel()) == ({"exp": ([0, 1, 2], [3, 4, 5])}, "Row")


def test_select_and_exclude_choose_among_the_folders(tmp_path: Path) -> None:
    for name in ("lr1_big", "lr1_small", "lr2_big"):
        make_run(tmp_path / "data" / name, {"Epoch": [0], "Loss": [1]}, name)
    chosen = plot_of("data/lr", values="Loss", select=["lr1"], exclude=["small"])
    assert list(lines_of(chosen)) == ["lr1_big"]
    with pytest.raises(ValueError, match="leave no folder of: data/lr1_big, data/lr1_small, data/lr2_big"):
        make_plots("data/lr", values="Loss", select=["lr3"])


def test_a_slash_at_the_end_means_that_folder_alone(tmp_path: Path) -> None:
    for name in ("ppo", "ppo2"):
        make_run(tmp_path / name, {"Epoch": [0], "Loss": [1]}, name)
    assert list(lines_of(plot_of("ppo", values="Loss"))) == ["ppo", "ppo2"]
    assert list(lines_of(plot_of("ppo/", values="Loss"))) == ["ppo"]


def test_a_run_that_is_found_twice_counts_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seeds(tmp_path / "data/ppo", "ppo", [[0, 1]])
    axes = plot_of(["data", "data/ppo", "data/"])
    assert (lines_of(axes), bands_of(axes)) == ({"ppo": ([100, 200], [0, 1])}, [])
    assert capsys.readouterr().err.count("found before: counted once") == 2
    assert list(lines_of(plot_of(["data", "data/ppo"], legend=["x", "y"]))) == ["x", "y"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"legend": ["x", "y"]}, "2 names for 1 folders; the folders are: a"),
        ({"smooth": 0}, "smooth=0"),
        ({"estimator": "mode"}, "choose one of mean, median, max, min"),
        ({"band": "wide"}, "choose one of std, bootstrap"),
        ({"out": "a.jpg"}, r"a\.jpg: the name of an image ends in \.png, \.svg, \.pdf"),
        ({"values": "Note"}, "the column 'Note' of a/progress.txt holds text"),
    ],
)
def test_a_wrong_argument_is_named(tmp_path: Path, wrong: dict[str, Any], message: str) -> None:
    folder = make_run(tmp_path / "a", {"Epoch": [0], "Loss": [1]})
    (folder / "progress.txt").write_text("Epoch\tLoss\tNote\n0\t1\tgood\n")
    with pytest.raises(ValueError, match=message):
        make_plots("a", **{"values": "Loss", **wrong})


def test_an_image_in_a_folder_that_is_not_there_is_an_error_before_anything_is_drawn() -> None:
    with pytest.raises(FileNotFoundError, match="the folder nowhere is not there"):
        make_plots("a", out="nowhere/a.png")
