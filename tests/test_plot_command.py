"""The plotter's command, and where its figure goes: an image, a file without a display, a window."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib
import pytest
from conftest import RunPython
from plots import seeds

from spinstat.plot import make_plots
from spinstat.run import main

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder of its own."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("name", "begin"), [("a.png", b"\x89PNG"), ("a.svg", b"<?xml"), ("a.PDF", b"%PDF")])
def test_the_command_writes_an_image_and_prints_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, begin: bytes
) -> None:
    seeds(tmp_path / "ppo", "ppo", [[0, 1], [2, 3]])
    words = ["plot", "ppo", "-l", "mine", "-x", "Epoch", "-y", "Performance", "AverageEpRet", "-s", "2"]
    assert main([*words, "--est", "median", "--band", "bootstrap", "--out", name]) == 0
    assert (tmp_path / name).read_bytes().startswith(begin)
    assert capsys.readouterr().out == f"{name}\n"


def test_without_a_display_a_file_is_written_and_its_name_printed(
    tmp_path: Path, run_python: RunPython
) -> None:
    seeds(tmp_path / "ppo", "ppo", [[0, 1], [2, 3]])
    headless = {"DISPLAY": "", "WAYLAND_DISPLAY": "", "MPLBACKEND": ""}
    done = run_python("-m", "spinstat.run", "plot", "ppo", env=headless)
    assert done.stdout == "plot_Performance.png\n"
    assert (tmp_path / "plot_Performance.png").read_bytes().startswith(b"\x89PNG")


def test_where_there_is_a_window_the_figure_is_shown_and_no_file_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import matplotlib.pyplot as plt

    seeds(tmp_path / "ppo", "ppo", [[0, 1], [2, 3]])
    shown: list[object] = []
    monkeypatch.setattr("spinstat.plot.has_window", lambda: True)
    monkeypatch.setattr(plt, "show", lambda: shown.append(plt.gcf()))
    figure = make_plots("ppo")
    plt.close(figure)
    assert shown == [figure]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ppo"]


def test_the_command_tells_errors_without_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plot", "zzz"]) == 1
    assert capsys.readouterr().err == (
        "FileNotFoundError: zzz matches nothing: no folder in . is named so, or in part\n"
    )


def test_without_matplotlib_the_error_tells_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds(tmp_path / "ppo", "ppo", [[0, 1]])
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'spinstat\[plot\]'"):
        make_plots("ppo")


def test_I2_reading_runs_and_the_command_line_load_neither_matplotlib_nor_pandas(
    run_python: RunPython,
) -> None:
    program = "import sys, spinstat.run, spinstat.plot, spinstat.utils.plot; print(*sys.modules)"
    assert not {"matplotlib", "pandas"} & set(run_python("-c", program).stdout.split())
