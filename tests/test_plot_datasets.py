"""Spinning Up's functions of the plotter, with pandas."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
import pytest
from plots import bands_of, lines_of, make_run, seeds

import spinstat.datasets
from spinstat.plot import read_runs
from spinstat.utils.plot import get_all_datasets, get_datasets, make_plots, plot_data

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def strict_and_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """In a folder of its own, runs numbered from 0, any warning an error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(spinstat.datasets, "_met", 0)
    monkeypatch.setattr(spinstat.datasets, "_units", {})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def marks(frame: pd.DataFrame) -> list[object]:
    """Unit, Condition1 and Condition2, which are the same in all rows."""
    (row,) = frame[["Unit", "Condition1", "Condition2"]].drop_duplicates().values.tolist()
    return list(row)


def test_frames_have_the_columns_of_the_file_and_those_that_tell_runs_apart(tmp_path: Path) -> None:
    seeds(tmp_path / "a", "a", [[0.0, 3.0], [1.0, 4.0]])
    first, second = get_datasets("a")
    assert list(first.columns) == [
        "Epoch", "AverageEpRet", "TotalEnvInteracts", "Unit", "Condition1", "Condition2", "Performance",
    ]
    assert first.values.tolist() == [[0, 0.0, 100, 0, "a", "a-0", 0.0], [1, 3.0, 200, 0, "a", "a-0", 3.0]]
    assert second.values.tolist() == [[0, 1.0, 100, 1, "a", "a-1", 1.0], [1, 4.0, 200, 1, "a", "a-1", 4.0]]


def test_numbers_go_on_over_calls_and_G10_neither_read_runs_nor_make_plots_count(tmp_path: Path) -> None:
    seeds(tmp_path / "a", "a", [[0, 1], [2, 3]])
    make_run(tmp_path / "b", {"Epoch": [0], "AverageEpRet": [1], "AverageTestEpRet": [100]}, "b")
    assert [marks(frame) for frame in get_datasets("a")] == [[0, "a", "a-0"], [1, "a", "a-1"]]
    make_plots("a")
    read_runs("a")
    (frame,) = get_datasets("b")
    assert (marks(frame), frame["Performance"].tolist()) == ([0, "b", "b-2"], [100])
    mine = [marks(frame) for frame in get_datasets("a", "mine")]
    assert mine == [[0, "mine", "mine-3"], [1, "mine", "mine-4"]]
    assert [marks(frame) for frame in get_datasets("a")] == [[2, "a", "a-5"], [3, "a", "a-6"]]


def test_a_run_without_a_name_is_exp_and_one_without_configuration_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run(tmp_path / "c", {"Epoch": [0]})
    (tmp_path / "c/config.json").write_text("{}")
    make_run(tmp_path / "d", {"Epoch": [0]})
    assert marks(*get_datasets("c")) == [0, "exp", "exp-0"]
    assert capsys.readouterr().out == ""
    assert marks(*get_datasets("d")) == [1, "exp", "exp-1"]
    assert capsys.readouterr().out == "No file named config.json\n"


def test_G5_a_folder_that_is_not_there_gives_no_frames_and_an_empty_run_is_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert get_datasets("zzz") == []
    make_run(tmp_path / "a/0", {"Epoch": []}, "a")
    make_run(tmp_path / "a/1", {"Epoch": [0]}, "a")
    assert marks(*get_datasets("a")) == [1, "a", "a-1"]
    assert capsys.readouterr().err == "a/0/progress.txt: no rows: skipped\n"


def test_G6_there_is_no_performance_where_there_is_no_return(tmp_path: Path) -> None:
    make_run(tmp_path / "a", {"Epoch": [0], "AverageLoss": [1]})
    (frame,) = get_datasets("a")
    assert list(frame.columns) == ["Epoch", "AverageLoss", "Unit", "Condition1", "Condition2"]


def test_several_folders_are_chosen_and_named_as_in_the_plotter(tmp_path: Path) -> None:
    for name in ("ppo_lr1", "ppo_lr2", "sac_lr1"):
        make_run(tmp_path / "data" / name, {"Epoch": [0]}, name)
    frames = get_all_datasets(["data/ppo", "data/sac"], ["x", "y"], select=["lr1"])
    assert [marks(frame) for frame in frames] == [[0, "x", "x-0"], [0, "y", "y-1"]]
    with pytest.raises(ValueError, match=r"1 names for 2 folders; .*: data/ppo_lr1, data/ppo_lr2"):
        get_all_datasets(["data/ppo"], ["x"])


def test_G2_frames_with_repeated_indices_are_drawn_as_they_are(tmp_path: Path) -> None:
    seeds(tmp_path / "a", "a", [[0, 2], [2, 6]])
    frames = get_datasets("a")
    joined = pd.concat(frames)
    assert joined.index.has_duplicates
    before = joined.copy()
    for data in (frames, joined):
        axes = matplotlib.figure.Figure().add_subplot()
        plot_data(data, "Epoch", "AverageEpRet", smooth=2, estimator=np.median, ax=axes, linewidth=3)
        assert lines_of(axes) == {"a": ([0, 1], [1, 2.5])}
        assert bands_of(axes) == [{0: (0, 2), 1: (1, 4)}]
        assert axes.get_lines()[0].get_linewidth() == 3
        assert (axes.get_xlabel(), axes.get_ylabel()) == ("Epoch", "AverageEpRet")
    pd.testing.assert_frame_equal(joined, before)


def test_plot_data_draws_in_the_current_axes_of_pyplot(tmp_path: Path) -> None:
    import matplotlib.pyplot as plt

    seeds(tmp_path / "a", "a", [[0, 2], [2, 6]])
    figure = plt.figure()
    plot_data(get_datasets("a"), condition="Condition2")
    plt.close(figure)
    assert {name: y for name, (_, y) in lines_of(*figure.axes).items()} == {"a-0": [0, 2], "a-1": [2, 6]}


def test_a_column_that_no_frame_has_is_named(tmp_path: Path) -> None:
    make_run(tmp_path / "a", {"Epoch": [0], "Loss": [1]})
    frames = get_datasets("a")
    with pytest.raises(KeyError, match=r"no column 'AverageEpRet'; there are: Epoch, Loss, Unit"):
        plot_data(frames)
    with pytest.raises(ValueError, match="no data to draw"):
        plot_data([])
    with pytest.raises(ValueError, match="choose one of mean, median, max, min"):
        plot_data(frames, value="Loss", estimator="mode")


def test_without_pandas_the_error_tells_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run(tmp_path / "a", {"Epoch": [0]})
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        get_datasets("a")
