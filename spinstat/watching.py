"""The plotter's --watch: a figure drawn anew while runs write, until Ctrl-C or until its window is closed."""

from __future__ import annotations

import math
import os
import re
import signal
import time
from collections.abc import Collection
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Self

from .drawing import default_name, has_window, import_matplotlib, new_figure, save
from .plot import Request, fill, members_of, panels_of
from .reading import Run, read_run
from .stderr import note
from .terminal import show

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SECONDS = 5.0  # between two looks, where the command line names none
SLICE = 0.1  # seconds between two looks for Ctrl-C, and for what happens in a window
_LINES = re.compile(r": lines? [\d, ]+(?:and \d+ more)?:")

Signature = tuple[tuple[int, int, int] | None, ...]


def watch(wanted: Request, seconds: float = SECONDS) -> None:
    """Draw a request, and again whenever a run has written or another one has come.

    In a window where there is a display and no file is asked for; else into the file, which is replaced in
    one step each time, and whose name is printed once. What is not there yet, folders, rows or columns, is
    told on stderr, once, and waited for. Ctrl-C ends it, and so does closing the window.

    Args:
        wanted: what to draw.
        seconds: how often to look, more than 0.

    Raises:
        ValueError: `seconds` is none.
        ImportError: matplotlib is not installed.
    """
    if not (math.isfinite(seconds) and seconds > 0):
        raise ValueError(f"watch {seconds:g}: give the seconds between two looks, more than 0")
    reader, teller = Reader(), Teller()
    path = wanted.out or default_name(wanted.values)
    with Interrupt() as interrupt:
        import_matplotlib()
        window = _Window() if wanted.out is None and has_window() else None
        note(f"Watching, every {seconds:g} s; Ctrl-C ends it")
        while not interrupt.asked and not (window and window.closed):
            try:
                members = members_of(wanted, reader, teller.tell)
                if reader.look():
                    panels = panels_of(wanted, members, teller.tell)
                    figure = window.figure(len(panels)) if window else new_figure(len(panels), False)
                    fill(figure, wanted, members, panels)
                    if window:
                        window.show()
                    else:
                        save(figure, path)
                        teller.show(path)
            except (ValueError, OSError) as error:
                reader.forget()
                teller.tell(f"{type(error).__name__}: {error}: waiting")
            _wait(seconds, interrupt, window)


class Reader:
    """Reads runs as read_run does, and each again only when its files are others than they were."""

    def __init__(self) -> None:
        self._runs: dict[str, tuple[Signature, Run]] = {}  # by file, as last read
        self._met: dict[str, Signature] = {}  # since the last look
        self._seen: dict[str, Signature] = {}  # at the last look

    def __call__(self, file: str, columns: Collection[str] | None) -> Run:
        """The run of a file. Raises OSError where it cannot be read."""
        found = (_signature(file), _signature(os.path.join(os.path.dirname(file), "config.json")))
        before, run = self._runs.get(file, (None, None))
        if run is None or before != found:
            # What is written while it is read makes another signature than the one from before, and is read
            # at the next look.
            run = read_run(file, columns)
            self._runs[file] = (found, run)
        self._met[file] = found
        return run

    def look(self) -> bool:
        """Whether the files that were read since the last look are others than before it."""
        changed = self._met != self._seen
        self._runs = {file: self._runs[file] for file in self._met}
        self._seen, self._met = self._met, {}
        return changed

    def forget(self) -> None:
        """Let the next look find a change: what was read has not been drawn."""
        self._seen, self._met = {}, {}


def _signature(path: str) -> tuple[int, int, int] | None:
    """What changes with a file that is written or replaced; None where there is none."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


class Teller:
    """Tells everything once, whichever line of a file it is about."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def tell(self, text: str) -> None:
        """Tell on stderr what has not been told yet."""
        matter = _LINES.sub(":", text)
        if matter not in self._told:
            self._told.add(matter)
            note(text)

    def show(self, path: str) -> None:
        """Print a name on stdout that has not been told yet."""
        if path not in self._told:
            self._told.add(path)
            show(path)


class Interrupt:
    """Takes Ctrl-C as a wish, so that it ends nothing half way; a second one ends the process as ever."""

    def __init__(self) -> None:
        self.asked: bool = False
        self._before: Any = None

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGINT, self._ask)
        return self

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        signal.signal(signal.SIGINT, self._before)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        signal.signal(signal.SIGINT, self._before)


class _Window:
    """A window of pyplot's that is opened with the first figure, and goes on answering meanwhile."""

    def __init__(self) -> None:
        self._figure: Figure | None = None
        self._open = False

    @property
    def closed(self) -> bool:
        """Whether it was open once, and is no more."""
        import matplotlib.pyplot as plt

        return self._figure is not None and not plt.fignum_exists(self._figure.number)

    def figure(self, panels: int) -> Figure:
        """The figure in it."""
        if self._figure is None:
            self._figure = new_figure(panels, True)
        return self._figure

    def show(self) -> None:
        """Open it, or show what has changed in its figure."""
        import matplotlib.pyplot as plt

        assert self._figure is not None
        self._figure.canvas.draw_idle()
        if not self._open:  # once: it would come to the front each time
            plt.show(block=False)
        self._open = True

    def wait(self, seconds: float) -> None:
        """Let the window handle its events."""
        if self._figure is None:
            time.sleep(seconds)
        else:
            self._figure.canvas.start_event_loop(seconds)


def _wait(seconds: float, interrupt: Interrupt, window: _Window | None) -> None:
    end = time.monotonic() + seconds
    while not interrupt.asked and not (window and window.closed):
        left = end - time.monotonic()
        if left <= 0:
            return
        if window:
            window.wait(min(left, SLICE))
        else:
            time.sleep(min(left, SLICE))
