"""Looking at what a logger has saved, for the tests of checkpoints."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import joblib

from spinstat import Logger


class Recorder(Logger):
    """Keeps what is logged instead of printing it."""

    def log(self, msg: object, color: str = "green") -> None:
        self.__dict__.setdefault("messages", []).append((msg, color))

    def only_message(self) -> str:
        ((text, color),) = self.__dict__.pop("messages")
        assert color == "red"
        return str(text)


def load(folder: str, name: str) -> Any:
    return joblib.load(os.path.join(folder, name))


def tree(folder: str) -> list[str]:
    """All files, but for those in the work folder."""
    root = Path(folder)
    paths = (path.relative_to(root) for path in root.rglob("*") if path.is_file())
    return sorted(str(path) for path in paths if path.parts[0] != ".spinstat")
