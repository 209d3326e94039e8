"""Text for people: colours where a terminal shows them, and output that never ends a run."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any

_PACKAGE = os.path.dirname(__file__)

color2num: dict[str, int] = {
    "gray": 30,
    "red": 31,
    "green": 32,
    "yellow": 33,
    "blue": 34,
    "magenta": 35,
    "cyan": 36,
    "white": 37,
    "crimson": 38,
}


def colorize(string: object, color: str, bold: bool = False, highlight: bool = False) -> str:
    """`string` between the terminal codes of a colour, whatever it is printed to.

    Args:
        string: what to colour; str() of it is used.
        color: a name in `color2num`.
        bold: also bold.
        highlight: colour the background instead of the letters.

    Raises:
        KeyError: an unknown colour.

    Examples:
        >>> from spinstat import colorize
        >>> len(colorize("done", "green", bold=True)) - len("done")  # codes before and after it
        11
    """
    check_color(color)
    codes = [str(color2num[color] + (10 if highlight else 0))]
    if bold:
        codes.append("1")
    return f"\x1b[{';'.join(codes)}m{string}\x1b[0m"


def check_color(color: str) -> None:
    """Raise KeyError for an unknown colour."""
    if color not in color2num:
        raise KeyError(f"unknown color {color!r}: choose one of {', '.join(color2num)}")


def wants_color(stream: Any) -> bool:
    """Whether codes belong on this stream: on a terminal, unless NO_COLOR or FORCE_COLOR says otherwise."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return is_terminal(stream)


def is_terminal(stream: Any) -> bool:
    """Whether people see this stream on a terminal, and one that is not dumb."""
    try:
        return os.environ.get("TERM") != "dumb" and bool(stream.isatty())
    except (AttributeError, ValueError, OSError):  # no stream, a minimal one, a closed one
        return False


def show(text: object, color: str | None = None, bold: bool = False) -> None:
    """Write text to the stdout of this moment in one call and flush it.

    Whatever goes wrong with the display is a warning: a run must not end because nobody can read its table.
    """
    stream = sys.stdout
    if color is not None and wants_color(stream):
        text = colorize(text, color, bold)
    if stream is None:  # a process without a console
        return
    try:
        _write(stream, f"{text}\n")
        stream.flush()
    except Exception as error:
        if isinstance(error, BrokenPipeError):
            _discard_output(stream)
        warn(f"stdout cannot be written ({type(error).__name__}: {error}); the run goes on")


def warn(message: str) -> None:
    """Warn at the line outside this package that led here; in silence where stderr is closed."""
    level = 1
    frame = sys._getframe(0)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
        level += 1
    try:
        warnings.warn(message, UserWarning, level)
    except (ValueError, OSError):  # nobody is left to be told
        return


def _write(stream: Any, text: str) -> None:
    try:
        stream.write(text)
    except UnicodeEncodeError:
        encoding = getattr(stream, "encoding", None) or "ascii"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))


def _discard_output(stream: Any) -> None:
    """Point a stream whose reader is gone at nothing.

    What it has buffered would otherwise fail once more when the interpreter exits, and turn the exit code of
    a run that went well into 120.
    """
    try:
        descriptor = stream.fileno()
    except (AttributeError, ValueError, OSError):  # not a file of the system: nothing is flushed at exit
        return
    nothing = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nothing, descriptor)
    finally:
        os.close(nothing)
