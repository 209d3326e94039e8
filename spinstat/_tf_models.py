"""Graphs in tf1_save/: acting with them, their value functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .checkpoint.graphs import restore_tf_graph, tensorflow_v1
from .terminal import show

CRITICS = ("v", "q", "q1", "q2")  # names of the value functions in what Spinning Up's algorithms save


class Graph:
    """A graph that was saved with setup_tf_saver, in a session of its own.

    Args:
        path: its folder.

    Attributes:
        tensors: by the names given to setup_tf_saver.
    """

    def __init__(self, path: str) -> None:
        v1 = tensorflow_v1()
        self._path = path
        self._session = v1.Session(graph=v1.Graph())
        self.tensors: dict[str, Any] = restore_tf_graph(self._session, path)

    def make_get_action(self, deterministic: bool) -> Callable[[Any], Any]:
        """A function that gives the action for one observation.

        The action is the tensor "pi"; for deterministic ones "mu", where there is one (as in SAC).

        Raises:
            TypeError: there is no "x" to feed, or no "pi".
        """
        observation = self._tensor("x", "an observation is fed to it")
        if deterministic and "mu" in self.tensors:
            show("Using deterministic action op.")
            action = self.tensors["mu"]
        else:
            show("Using default action op.")
            action = self._tensor("pi", "it gives the action")
        run = self._session.run
        return lambda obs: run(action, {observation: np.asarray(obs)[None]})[0]

    def make_value_function(self) -> Callable[..., Any]:
        """The critic, as load_value_function describes it.

        Raises:
            TypeError: there is no v, q, q1 or q2, or no tensor to feed.
        """
        names = ["v"] if "v" in self.tensors else [name for name in CRITICS if name in self.tensors]
        if not names:
            raise TypeError(f"{self._path} has no value function: {', '.join(CRITICS)}; {self._known()}")
        fed = [self._tensor("x", "an observation is fed to it")]
        if names != ["v"]:
            fed.append(self._tensor("a", "an action is fed to it"))
        critics = [self.tensors[name] for name in names]

        def value(*inputs: Any) -> Any:
            if len(inputs) != len(fed):
                raise TypeError(f"this value function takes {len(fed)} arguments, not {len(inputs)}")
            feed = dict(zip(fed, map(_as_batch, inputs, fed), strict=True))
            least = np.min(self._session.run(critics, feed), axis=0)
            return float(least.item()) if least.size == 1 else least

        return value

    def _tensor(self, name: str, use: str) -> Any:
        if name not in self.tensors:
            raise TypeError(
                f"{self._path} has no tensor {name!r} ({use}); {self._known()}. Load it with "
                "spinstat.utils.logx.restore_tf_graph and run its tensors"
            )
        return self.tensors[name]

    def _known(self) -> str:
        return f"it has {', '.join(sorted(self.tensors))}"


def _as_batch(value: Any, placeholder: Any) -> Any:
    """A value with the batch dimension that a placeholder has, added where it is missing."""
    array = np.asarray(value)
    dimensions: Sequence[Any] | None = placeholder.shape.dims
    return array[None] if dimensions is not None and array.ndim == len(dimensions) - 1 else array
