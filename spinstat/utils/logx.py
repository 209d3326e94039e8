"""The names of spinup.utils.logx."""

from __future__ import annotations

from typing import Any

from ..epoch import EpochLogger
from ..logger import Logger
from ..terminal import color2num, colorize
from .mpi_tools import mpi_statistics_scalar, proc_id
from .serialization_utils import convert_json

__all__ = [
    "EpochLogger",
    "Logger",
    "color2num",
    "colorize",
    "convert_json",
    "mpi_statistics_scalar",
    "proc_id",
    "restore_tf_graph",
]


def restore_tf_graph(sess: Any, fpath: str) -> dict[str, Any]:
    """Load a graph that a logger saved: see `spinstat.checkpoint.restore_tf_graph`.

    Args:
        sess: a TensorFlow 1 session.
        fpath: the folder of the graph, <run>/tf1_save.

    Examples:
        >>> import tensorflow as tf
        >>> from spinstat import EpochLogger
        >>> from spinstat.utils.logx import restore_tf_graph
        >>> v1 = tf.compat.v1
        >>> with v1.Graph().as_default(), v1.Session() as sess:
        ...     x = v1.placeholder(tf.float32, (None, 2), name="x")
        ...     logger = EpochLogger("graphs", quiet=True)
        ...     logger.setup_tf_saver(sess, inputs={"x": x}, outputs={"pi": 2 * x})
        ...     logger.save_state({})
        >>> with v1.Graph().as_default(), v1.Session() as sess:
        ...     model = restore_tf_graph(sess, "graphs/tf1_save")
        ...     sess.run(model["pi"], {model["x"]: [[1, 2]]})
        array([[2., 4.]], dtype=float32)
    """
    from .. import checkpoint

    return checkpoint.restore_tf_graph(sess, fpath)
