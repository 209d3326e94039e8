"""The plotter's --watch: beside real processes that write, and step by step."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matplotlib
import pytest
from conftest import clean_environment
from matplotlib.backends.backend_agg import FigureCanvasAgg
from plots import lines_of, make_run

from spinstat import watching
from spinstat.drawing import COLORS
from spinstat.plot import request
from spinstat.reading import read_run
from spinstat.run import main
from spinstat.watching import Interrupt, Reader, Teller, watch

matplotlib.use("Agg")

PATIENCE = 120  # seconds until a test gives up

# Writes rows, each in two halves with a pause between them, until the file "enough" is there.
WRITER = """
import json, os, sys, time
folder, name = sys.argv[1:]
os.makedirs(folder)
with open(os.path.join(folder, "config.json"), "w") as config:
    json.dump({"exp_name": name}, config)
with open(os.path.join(folder, "progress.txt"), "w") as file:
    print("Epoch", "AverageEpRet", sep="\\t", file=file, flush=True)
    epoch = 0
    while epoch < 3 or not os.path.exists("enough"):
        row = f"{epoch}\\t{epoch * 1.25}\\n"
        for half in (row[:3], row[3:]):
            file.write(half)
            file.flush()
            time.sleep(0.02)
        epoch += 1
print(epoch)
"""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder of its own."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start this interpreter on arguments; whatever still runs at the end of the test is killed."""
    started: list[subprocess.Popen[str]] = []

    def begin(*words: str, **streams: Any) -> subprocess.Popen[str]:
        environment = clean_environment({"DISPLAY": "", "WAYLAND_DISPLAY": "", "MPLBACKEND": ""})
        command = [sys.executable, *words]
        started.append(subprocess.Popen(command, cwd=tmp_path, env=environment, text=True, **streams))
        return started[-1]

    yield begin
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait()


def until(what: Callable[[], bool], process: subprocess.Popen[str], told: Path) -> None:
    """Wait until something holds, as long as the process runs."""
    end = time.monotonic() + PATIENCE
    while not what():
        assert process.poll() is None, told.read_text()
        assert time.monotonic() < end, told.read_text()
        time.sleep(0.02)


def corners(image: Path, color: str = COLORS[0]) -> int:
    """How many points the line of this colour has in an image, which is whole; 0 where there is none."""
    try:
        text = image.read_text()
    except FileNotFoundError:
        return 0
    assert text.startswith("<?xml") and text.rstrip().endswith("</svg>")
    paths = re.findall(rf'<path d="([^"]*)"[^>]*stroke: {color.lower()}', text)
    return max((len(re.findall("[ML]", path)) for path in paths), default=0)


def test_the_image_grows_with_runs_that_write_and_with_runs_that_come_later(
    tmp_path: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    image, told, shown = tmp_path / "w.svg", tmp_path / "told", tmp_path / "shown"
    with told.open("w") as err, shown.open("w") as out:
        words = ["-m", "spinstat.run", "plot", "data", "-y", "AverageEpRet", "--watch", "0.05"]
        watcher = start(*words, "--out", "w.svg", stdout=out, stderr=err)
    until(lambda: "data matches nothing" in told.read_text(), watcher, told)
    assert not image.exists()
    writers = [start("-c", WRITER, "data/first", "first", stdout=subprocess.PIPE)]
    until(lambda: corners(image) >= 3, watcher, told)
    few = corners(image)
    until(lambda: corners(image) > few, watcher, told)
    writers.append(start("-c", WRITER, "data/second", "second", stdout=subprocess.PIPE))
    until(lambda: corners(image, COLORS[1]) >= 3, watcher, told)
    (tmp_path / "enough").touch()
    rows = [int(writer.communicate(timeout=PATIENCE)[0]) for writer in writers]
    until(lambda: [corners(image, color) for color in COLORS[:2]] == rows, watcher, told)
    watcher.send_signal(signal.SIGINT)
    assert watcher.wait(PATIENCE) == 0, told.read_text()
    assert shown.read_text() == "w.svg\n"
    assert "Traceback" not in told.read_text()
    assert told.read_text().count("data matches nothing") == 1
    assert told.read_text().count("data/first/progress.txt: line ") <= 1
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"data", "enough", "shown", "told", "w.svg"}


class Steps:
    """Stands for the time between two looks: each call takes the next step, and the last one is Ctrl-C."""

    def __init__(self, *steps: Callable[[], object]) -> None:
        self._steps = [*steps, lambda: os.kill(os.getpid(), signal.SIGINT)]

    def __call__(self, *_: object) -> None:
        self._steps.pop(0)()

    @property
    def done(self) -> bool:
        return not self._steps


def append(folder: Path, *rows: str) -> None:
    """More text in a run's file."""
    with (folder / "progress.txt").open("a") as file:
        file.writelines(rows)


@pytest.fixture
def images(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The lines of each image that is written."""
    written: list[dict[str, Any]] = []
    save = watching.save

    def note_and_save(figure: Any, path: str) -> None:
        save(figure, path)
        written.append(lines_of(figure.axes[0]))

    monkeypatch.setattr(watching, "save", note_and_save)
    return written


def steps(monkeypatch: pytest.MonkeyPatch, *each: Callable[[], object]) -> Steps:
    """Let these happen between looks."""
    script = Steps(*each)
    monkeypatch.setattr(watching, "_wait", script)
    return script


def test_only_what_has_changed_is_read_again_and_drawn(
    monkeypatch: pytest.MonkeyPatch, images: list[dict[str, Any]]
) -> None:
    read: list[str] = []

    def note_and_read(file: str, columns: Any) -> Any:
        read.append(file)
        return read_run(file, columns)

    monkeypatch.setattr(watching, "read_run", note_and_read)
    a, b = (make_run(Path(f"data/{name}"), {"Epoch": [0], "Loss": [1]}, name) for name in "ab")
    a_file, b_file = (str(folder / "progress.txt") for folder in (a, b))
    script = steps(
        monkeypatch,
        lambda: append(a, "1\t2\n"),
        lambda: None,
        lambda: make_run(Path("data/c"), {"Epoch": [0], "Loss": [7]}, "c"),
        lambda: append(b, "1\t"),
        lambda: append(b, "5\n"),
        lambda: (b / "progress.txt").unlink(),
        lambda: (a / "config.json").write_text('{"exp_name": "other"}'),
        lambda: None,
    )
    assert main(["plot", "data", "-y", "Loss", "--watch", "--out", "a.png"]) == 0
    assert script.done
    c_file = "data/c/progress.txt"
    assert read == [a_file, b_file, a_file, c_file, b_file, b_file, a_file]
    first, second = ([0], [1]), ([0, 1], [1, 2])
    assert images == [
        {"a": first, "b": first},
        {"a": second, "b": first},
        {"a": second, "b": first, "c": ([0], [7])},
        {"a": second, "b": first, "c": ([0], [7])},
        {"a": second, "b": ([0, 1], [1, 5]), "c": ([0], [7])},
        {"a": second, "c": ([0], [7])},
        {"other": second, "c": ([0], [7])},
    ]


def test_what_is_not_there_yet_is_told_once_and_waited_for(
    monkeypatch: pytest.MonkeyPatch, images: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path("data/a")
    script = steps(
        monkeypatch,
        lambda: None,
        lambda: folder.mkdir(parents=True),
        lambda: (folder / "progress.txt").write_text("Epoch\tKL\n"),
        lambda: append(folder, "0\t2\n"),
        lambda: None,
        lambda: append(folder, "Epoch\tKL\tLoss\n1\t2\t3\n"),
    )
    assert main(["plot", "data", "-y", "Loss", "--watch", "1", "--out", "a.png"]) == 0
    assert script.done
    out, err = capsys.readouterr()
    assert out == "a.png\n"
    for matter in ("matches nothing: no folder in . is named so", "no run (progress.txt or progress.csv) was",
                   "no run has a row yet", "no run has the column 'Loss'; there are: Epoch, KL: waiting"):
        assert err.count(matter) == 1
    assert err.startswith("Watching, every 1 s; Ctrl-C ends it\n")
    (drawn,) = images
    x, y = drawn["exp"]
    assert (x, y[1:]) == ([0, 1], [3])


def test_an_image_that_cannot_be_written_now_is_written_later(
    monkeypatch: pytest.MonkeyPatch, images: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    make_run(Path("data/a"), {"Epoch": [0], "Loss": [1]}, "a")
    Path("images").mkdir()
    wanted = request("data", values="Loss", out="images/a.png")
    Path("images").rmdir()
    script = steps(monkeypatch, lambda: None, lambda: Path("images").mkdir())
    watch(wanted)
    assert script.done
    assert len(images) == 1 and Path("images/a.png").read_bytes().startswith(b"\x89PNG")
    assert capsys.readouterr().err.count("FileNotFoundError") == 1


def test_a_torn_line_is_told_once_however_often_another_one_is_met(
    monkeypatch: pytest.MonkeyPatch, images: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    a = make_run(Path("data/a"), {"Epoch": [0], "Loss": [1]}, "a")
    append(a, "1")
    steps(monkeypatch, lambda: append(a, "\t2\n2\t"), lambda: append(a, "3\n3"))
    assert main(["plot", "data", "-y", "Loss", "--watch", "--out", "a.png"]) == 0
    assert [lines["a"][1] for lines in images] == [[1], [1, 2], [1, 2, 3]]
    assert capsys.readouterr().err.count("does not end") == 1


def test_a_window_is_drawn_again_and_closing_it_is_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    import matplotlib.pyplot as plt

    plt.switch_backend("agg")
    a = make_run(Path("data/a"), {"Epoch": [0], "Loss": [1]}, "a")
    opened: list[Any] = []
    drawn: list[Any] = []
    waited: list[float] = []

    def wait(canvas: Any, seconds: float) -> None:
        waited.append(seconds)
        lines = lines_of(canvas.figure.axes[0])
        if not drawn or drawn[-1] != lines:
            drawn.append(lines)
        if len(waited) == 2:
            append(a, "1\t2\n")
        if len(drawn) == 2:
            plt.close(canvas.figure)

    monkeypatch.setattr(watching, "has_window", lambda: True)
    monkeypatch.setattr(plt, "show", lambda block: opened.append((plt.gcf(), block)))
    monkeypatch.setattr(FigureCanvasAgg, "start_event_loop", wait)
    monkeypatch.setattr(watching, "SLICE", 0.0)
    assert main(["plot", "data", "-y", "Loss", "--watch", "0.001"]) == 0
    assert [block for _, block in opened] == [False]
    assert drawn == [{"a": ([0], [1])}, {"a": ([0, 1], [1, 2])}]
    assert sorted(path.name for path in Path().iterdir()) == ["data"]


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf"])
def test_seconds_that_are_none_are_an_error(seconds: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plot", "data", f"--watch={seconds}"]) == 1
    assert "give the seconds between two looks, more than 0" in capsys.readouterr().err


def test_a_wrong_argument_is_an_error_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plot", "data", "--watch", "--out", "a.jpg"]) == 1
    assert "a.jpg: the name of an image ends in .png" in capsys.readouterr().err


def test_a_second_interrupt_is_as_without_the_first() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Interrupt() as interrupt:
        assert not interrupt.asked
        os.kill(os.getpid(), signal.SIGINT)
        assert interrupt.asked
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(PATIENCE)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_file_that_grows_while_it_is_read_is_read_at_the_next_look(monkeypatch: pytest.MonkeyPatch) -> None:
    a = make_run(Path("data/a"), {"Epoch": [0], "Loss": [1]}, "a")
    file = str(a / "progress.txt")

    def read_and_grow(path: str, columns: Any) -> Any:
        run = read_run(path, columns)
        if len(run) == 1:
            append(a, "1\t2\n")
        return run

    monkeypatch.setattr(watching, "read_run", read_and_grow)
    reader = Reader()
    assert len(reader(file, None)) == 1 and reader.look()
    assert len(reader(file, None)) == 2 and reader.look()
    assert len(reader(file, None)) == 2 and not reader.look()


def test_two_files_have_each_their_notes(capsys: pytest.CaptureFixture[str]) -> None:
    teller = Teller()
    for where in ("a_s1: line 3", "a_s1: line 4", "a_s2: line 4", "a_s1: lines 3, 4 and 9 more"):
        teller.tell(f"{where}: torn")
    assert capsys.readouterr().err == "a_s1: line 3: torn\na_s2: line 4: torn\n"
