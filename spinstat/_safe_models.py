"""PyTorch models of runs that are not trusted: bare weights, and a class that the caller allows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from ._torch_models import import_torch
from .checkpoint import find_weights, load_weights
from .untrusted import Importer


class UntrustedRun:
    """A run of which nothing is unpickled, and from whose folder nothing is imported.

    Args:
        folder: the run's.
        allow: names of modules that may be imported to make its model and environment.

    Raises:
        ValueError: allow is no such list; as UntrustedError, the folder is on sys.path.
    """

    def __init__(self, folder: str, allow: str | Sequence[str]) -> None:
        self.folder = folder
        self.importer = Importer(allow, folder)

    def find(self, itr: int | str | None) -> str:
        """The path of the weights of a checkpoint."""
        path = find_weights(self.folder, itr)
        return os.path.join(self.folder, os.path.relpath(path, os.path.abspath(self.folder)))

    def load(self, path: str, map_location: Any = None) -> Any:
        """The module of weights at a path, on a device; None: the one that its class has chosen.

        Raises:
            TypeError: map_location is something else.
        """
        torch = import_torch()
        if not isinstance(map_location, str | torch.device | None):
            raise TypeError(f"with trust=False, map_location is a device or its name, not {map_location!r}")
        module = load_weights(self.folder, path, self.importer)
        return module if map_location is None else module.to(map_location)


def check_allow(allow: str | Sequence[str]) -> None:
    """Raise ValueError for modules allowed where all are."""
    if allow:
        message = f"allow={allow!r} is for trust=False (--no-trust): with trust, pickles import anything"
        raise ValueError(message)
