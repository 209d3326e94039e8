"""TensorFlow graphs and models as SavedModel folders; TensorFlow is imported when one is needed."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Mapping
from typing import Any

from .pickles import PROTOCOL

SIGNATURE = "serving_default"  # TensorFlow's own name of the signature that a loader takes by default
INFO_NAME = "model_info.pkl"


def is_session(thing: Any) -> bool:
    """Whether it can run a graph."""
    return hasattr(thing, "run") and hasattr(thing, "graph")


def is_model(thing: Any) -> bool:
    """Whether it is a Keras model or a tf.Module."""
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is None:
        return False
    return isinstance(thing, tensorflow.Module) or hasattr(thing, "trainable_variables")


def tensor_names(inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """What model_info.pkl holds: the names of the tensors by the names that the user chose."""
    sides = {"inputs": inputs, "outputs": outputs}
    return {side: {key: tensor.name for key, tensor in named.items()} for side, named in sides.items()}


def check_elements(sess: Any, inputs: Any, outputs: Any) -> dict[str, dict[str, str]]:
    """Check what setup_tf_saver is given, and return what is known of it before it is saved.

    Raises:
        TypeError: sess is neither a session nor a model, or inputs and outputs are not for it.
    """
    if is_session(sess):
        for name, named in (("inputs", inputs), ("outputs", outputs)):
            if not isinstance(named, Mapping):
                raise TypeError(f"{name} is a dict of tensors by names of your choice, not {named!r}")
        return tensor_names(inputs, outputs)
    if not is_model(sess):
        raise TypeError(f"sess is a TensorFlow session, a Keras model or a tf.Module, not {sess!r}")
    if inputs or outputs:
        raise TypeError("a model has its own signatures: give None for inputs and outputs")
    return {"inputs": {}, "outputs": {}}


class GraphSaver:
    """Saves the graph of a session, with the values of its variables.

    The operations that save are added to the graph once. (simple_save adds them at every call: the graph,
    and every file of it, grows from save to save.)
    """

    def __init__(self, elements: Mapping[str, Any]) -> None:
        self.elements = elements
        self._session = elements["session"]
        self._inputs = elements["inputs"]
        self._outputs = elements["outputs"]
        self._saver: Any = None
        self._saved: list[Any] = []

    def save(self, folder: str) -> None:
        """Write saved_model.pb, variables/ and model_info.pkl into a folder that does not exist yet."""
        v1 = tensorflow_v1()
        session, keys = self._session, v1.GraphKeys
        with session.graph.as_default():
            saved = v1.global_variables() + v1.get_collection(keys.SAVEABLE_OBJECTS)
            if self._saver is None or [*map(id, saved)] != [*map(id, self._saved)]:
                self._saver = v1.train.Saver(saved, sharded=True, allow_empty=True)
                self._saved = saved
            signature = v1.saved_model.predict_signature_def(dict(self._inputs), dict(self._outputs))
            builder = v1.saved_model.Builder(folder)
            builder.add_meta_graph_and_variables(
                session,
                [v1.saved_model.tag_constants.SERVING],
                signature_def_map={SIGNATURE: signature},
                assets_collection=v1.get_collection(keys.ASSET_FILEPATHS),
                clear_devices=True,
                saver=self._saver,
            )
            builder.save()
        _write_info(folder, tensor_names(self._inputs, self._outputs))


def save_model(model: Any, folder: str) -> None:
    """Write a Keras model or tf.Module as a SavedModel with its signatures, and the default one's names."""
    import tensorflow

    if hasattr(model, "export"):  # Keras: a forward pass that runs without the classes
        model.export(folder, verbose=False)
    else:
        tensorflow.saved_model.save(model, folder)
    _write_info(folder, _signature_names(folder))


def _signature_names(folder: str) -> dict[str, dict[str, str]]:
    from tensorflow.core.protobuf import saved_model_pb2

    saved = saved_model_pb2.SavedModel()
    with open(os.path.join(folder, "saved_model.pb"), "rb") as file:
        saved.ParseFromString(file.read())
    signature = saved.meta_graphs[0].signature_def[SIGNATURE]  # an empty one where there is none
    return tensor_names(signature.inputs, signature.outputs)


def _write_info(folder: str, info: Mapping[str, Any]) -> None:
    with open(os.path.join(folder, INFO_NAME), "xb") as file:
        pickle.dump(info, file, PROTOCOL)


def restore_tf_graph(sess: Any, fpath: str | os.PathLike[str]) -> dict[str, Any]:
    """Load a graph that a logger saved into the graph of a session, with the values of its variables.

    Args:
        sess: a TensorFlow 1 session (tf.compat.v1.Session), of any graph.
        fpath: the folder: <run>/tf1_save, or a numbered one.

    Returns:
        The tensors by the names that setup_tf_saver was given. A pickle of those names is read: a folder from
        a stranger can run code.

    Raises:
        OSError: there is no such folder, or it is not whole.

    Examples:
        >>> import tensorflow as tf
        >>> from spinstat import EpochLogger
        >>> from spinstat.checkpoint import restore_tf_graph
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
    v1 = tensorflow_v1()
    folder = os.fspath(fpath)
    with open(os.path.join(folder, INFO_NAME), "rb") as file:
        info = pickle.load(file)
    with sess.graph.as_default():
        v1.saved_model.loader.load(sess, [v1.saved_model.tag_constants.SERVING], folder)
    named = {**info["inputs"], **info["outputs"]}
    return {key: sess.graph.get_tensor_by_name(name) for key, name in named.items()}


def tensorflow_v1() -> Any:
    """The interface of TensorFlow 1, in 1 itself and in 2."""
    try:
        import tensorflow
    except ImportError as error:
        message = f"TensorFlow graphs need tensorflow: pip install 'spinstat[tensorflow]' ({error})"
        raise ImportError(message) from error
    compat = getattr(tensorflow, "compat", None)
    return getattr(compat, "v1", tensorflow)
