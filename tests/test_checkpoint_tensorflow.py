"""setup_tf_saver: graphs of TensorFlow 1 through tf.compat.v1, models of TensorFlow 2; tf1_save/ itself."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
import tensorflow as tf
import torch
from checkpoints import Recorder

from spinstat import EpochLogger, Logger
from spinstat.checkpoint import find_checkpoint
from spinstat.checkpoint.swap import exchange, replace_folder
from spinstat.utils.logx import restore_tf_graph

v1 = tf.compat.v1
VARIABLES = ["variables/variables.data-00000-of-00001", "variables/variables.index"]
FILES = ["model_info.pkl", "saved_model.pb", *VARIABLES]


class Graph:
    """y = x w with w = 0, 1, ..., 5 at first, in a graph and session of its own."""

    def __init__(self) -> None:
        with tf.Graph().as_default():
            self.x = v1.placeholder(tf.float32, (None, 3), name="x")
            self.w = v1.get_variable("w", initializer=np.arange(6, dtype=np.float32).reshape(3, 2))
            self.y = tf.matmul(self.x, self.w)
            self.ones = self.w.assign(np.ones((3, 2), np.float32))
            self.session = v1.Session()
            self.session.run(v1.global_variables_initializer())

    def setup(self, logger: Logger) -> None:
        logger.setup_tf_saver(self.session, inputs={"x": self.x}, outputs={"y": self.y})


def answer(folder: str) -> list[float]:
    """What the saved graph gives for ones."""
    session = v1.Session(graph=tf.Graph())
    model = restore_tf_graph(session, folder)
    assert sorted(model) == ["x", "y"]
    return session.run(model["y"], {model["x"]: np.ones((1, 3))})[0].tolist()


def files(folder: str) -> list[str]:
    root = Path(folder)
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def test_the_graph_is_saved_as_it_is_at_the_time(output_dir: str) -> None:
    logger, graph = EpochLogger(output_dir), Graph()
    graph.setup(logger)
    names = {"inputs": {"x": "x:0"}, "outputs": {"y": "MatMul:0"}}
    assert logger.tf_saver_info == names
    assert logger.tf_saver_elements["session"] is graph.session
    logger.save_state({"a": 1})
    folder = os.path.join(output_dir, "tf1_save")
    assert answer(folder) == [6.0, 9.0]
    graph.session.run(graph.ones)
    logger.save_state({"a": 2})
    logger.save_state({"a": 3}, 5)
    assert answer(folder) == [3.0, 3.0] and answer(folder + "5") == [3.0, 3.0]
    assert files(folder) == FILES and files(folder + "5") == FILES
    assert joblib.load(os.path.join(folder, "model_info.pkl")) == names
    assert logger.last_checkpoint.tf == folder + "5"


def test_saving_again_does_not_make_the_graph_grow(output_dir: str) -> None:
    logger, graph = EpochLogger(output_dir), Graph()
    graph.setup(logger)
    logger.save_state({})
    before = len(graph.session.graph.get_operations())
    for _ in range(3):
        logger.save_state({})
    assert len(graph.session.graph.get_operations()) == before


def test_variables_made_after_the_first_save_are_saved_too(output_dir: str) -> None:
    logger, graph = EpochLogger(output_dir), Graph()
    graph.setup(logger)
    logger.save_state({})
    with graph.session.graph.as_default():
        more = v1.get_variable("more", initializer=np.float32(2.0))
        graph.session.run(more.initializer)
        logger.setup_tf_saver(graph.session, {"x": graph.x}, {"y": graph.y * more})
    logger.save_state({})
    assert answer(os.path.join(output_dir, "tf1_save")) == [12.0, 18.0]


def test_a_graph_is_restored_into_the_session_s_own_graph(output_dir: str) -> None:
    logger, graph = EpochLogger(output_dir), Graph()
    graph.setup(logger)
    logger.save_state({})
    own, other = tf.Graph(), tf.Graph()
    session = v1.Session(graph=own)
    with other.as_default():
        model = restore_tf_graph(session, Path(output_dir, "tf1_save"))
    assert model["y"].graph is own and other.get_operations() == []


def test_both_frameworks_are_saved_by_one_logger(output_dir: str) -> None:
    logger = EpochLogger(output_dir)
    Graph().setup(logger)
    logger.setup_pytorch_saver(torch.ones(1))
    logger.save_state({"a": 1}, 3)
    names = [os.path.basename(path) for path in logger.last_checkpoint.paths]
    assert names == ["vars3.pkl", "model3.pt", "tf1_save3"]


class Module(tf.Module):
    """Doubles."""

    def __init__(self) -> None:
        super().__init__()
        self.factor = tf.Variable(2.0)

    @tf.function(input_signature=[tf.TensorSpec((None, 3), tf.float32, name="x")])
    def __call__(self, x: Any) -> Any:
        return {"y": self.factor * x}


def test_a_module_of_tensorflow_2_is_saved_with_its_signature(output_dir: str) -> None:
    logger = EpochLogger(output_dir)
    logger.setup_tf_saver(Module(), None, None)
    logger.save_state({})
    folder = os.path.join(output_dir, "tf1_save")
    loaded = tf.saved_model.load(folder)
    assert loaded(tf.ones((1, 3)))["y"].numpy().tolist() == [[2.0, 2.0, 2.0]]
    assert loaded.signatures["serving_default"](tf.ones((1, 3)))["y"].numpy().tolist() == [[2.0, 2.0, 2.0]]
    assert answer(folder) == [2.0, 2.0, 2.0]


def test_a_keras_model_is_saved_with_its_signature(output_dir: str) -> None:
    logger = EpochLogger(output_dir)
    model = tf.keras.Sequential([tf.keras.layers.Input((3,)), tf.keras.layers.Dense(2)])
    logger.setup_tf_saver(model, None, None)
    logger.save_state({})
    loaded = tf.saved_model.load(os.path.join(output_dir, "tf1_save"))
    assert np.allclose(loaded.serve(tf.ones((1, 3))), model(np.ones((1, 3))))
    assert list(loaded.signatures) == ["serve", "serving_default"]


def test_what_is_neither_session_nor_model_is_a_type_error_that_changes_nothing(output_dir: str) -> None:
    logger, graph = EpochLogger(output_dir), Graph()
    with pytest.raises(TypeError, match="session"):
        logger.setup_tf_saver(3, {}, {})
    with pytest.raises(TypeError, match="inputs is a dict"):
        logger.setup_tf_saver(graph.session, None, {"y": graph.y})
    with pytest.raises(TypeError, match="signatures"):
        logger.setup_tf_saver(Module(), {"x": 1}, None)
    assert not hasattr(logger, "tf_saver_elements")


def test_F4_a_graph_that_cannot_be_saved_leaves_the_last_good_folder(output_dir: str) -> None:
    logger, graph = Recorder(output_dir), Graph()
    graph.setup(logger)
    logger.save_state({"a": 1})
    graph.session.close()
    logger.save_state({"a": 2})
    assert answer(os.path.join(output_dir, "tf1_save")) == [6.0, 9.0]
    assert joblib.load(os.path.join(output_dir, "vars.pkl")) == {"a": 2}
    message = logger.only_message()
    assert "could not save tf1_save" in message and "losed" in message


def test_a_folder_that_a_killed_run_did_not_renew_is_found_in_the_work_folder(
    output_dir: str, tmp_path: Path
) -> None:
    logger, graph = EpochLogger(output_dir), Graph()
    graph.setup(logger)
    logger.save_state({})
    folder = os.path.join(output_dir, "tf1_save")
    old = shutil.copytree(folder, tmp_path / "old")
    graph.session.run(graph.ones)
    logger.save_state({})
    shutil.rmtree(folder)
    assert answer(find_checkpoint(output_dir).tf) == [3.0, 3.0]
    shutil.copytree(old, folder)
    assert answer(folder) == [6.0, 9.0]
    assert answer(find_checkpoint(output_dir).tf) == [3.0, 3.0]
    EpochLogger(output_dir, resume=True)
    assert answer(folder) == [3.0, 3.0]


def two_folders(tmp_path: Path) -> tuple[str, str]:
    for name in ("new", "old"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    return str(tmp_path / "new"), str(tmp_path / "old")


def test_folders_change_places_in_one_step(tmp_path: Path) -> None:
    new, old = two_folders(tmp_path)
    assert exchange(new, old) is True
    assert (tmp_path / "old" / "file").read_text() == "new"
    assert (tmp_path / "new" / "file").read_text() == "old"


@pytest.mark.parametrize("system", ["with exchange", "without exchange"])
def test_the_folder_is_there_at_any_instant_where_the_system_can_exchange(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, system: str
) -> None:
    if system == "without exchange":
        monkeypatch.setattr("spinstat.checkpoint.swap.exchange", lambda one, other: False)
    target = tmp_path / "target"
    two_folders(tmp_path)
    os.rename(tmp_path / "old", target)
    seen: set[bool] = set()
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            seen.add(os.path.isdir(target))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for _ in range(300):
            new = tmp_path / "next"
            new.mkdir()
            (new / "file").write_text("new")
            replace_folder(str(new), str(target))
    finally:
        stop.set()
        reader.join()
    assert seen == {True} or (system == "without exchange" and seen == {True, False})
    assert (target / "file").read_text() == "new"
    assert sorted(os.listdir(tmp_path)) == ["new", "target"]
