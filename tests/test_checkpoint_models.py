"""setup_pytorch_saver: what is in pyt_save/, and how the saving of models can be changed."""

from __future__ import annotations

import os
import threading
from typing import Any

import pytest
import torch
from checkpoints import Recorder, load, tree
from conftest import RunPython

from spinstat import EpochLogger


def test_the_pytorch_saver_saves_the_module_as_it_is_at_the_time(output_dir: str) -> None:
    logger = EpochLogger(output_dir)
    logger.save_state({"a": 1})
    assert not os.path.exists(os.path.join(output_dir, "pyt_save"))
    net = torch.nn.Linear(3, 1)
    logger.setup_pytorch_saver(net)
    assert logger.pytorch_saver_elements is net
    before = net.weight.detach().clone()
    logger.save_state({}, 0)
    with torch.no_grad():
        net.weight.add_(1.0)
    logger.save_state({})
    logger.setup_pytorch_saver({"pi": net, "optimizer": torch.optim.Adam(net.parameters())})
    logger.save_state({}, 21)

    def model(name: str) -> Any:
        return torch.load(os.path.join(output_dir, "pyt_save", name), weights_only=False)

    assert torch.equal(model("model0.pt").weight, before)
    assert torch.equal(model("model.pt").weight, before + 1.0)
    assert sorted(model("model21.pt")) == ["optimizer", "pi"]
    assert sorted(os.listdir(os.path.join(output_dir, "pyt_save"))) == ["model.pt", "model0.pt", "model21.pt"]


def test_the_elements_may_be_set_by_hand(output_dir: str) -> None:
    logger = EpochLogger(output_dir)
    assert not hasattr(logger, "pytorch_saver_elements") and not hasattr(logger, "tf_saver_elements")
    logger.pytorch_saver_elements = {"w": torch.ones(2)}
    logger.save_state({})
    assert torch.load(os.path.join(output_dir, "pyt_save", "model.pt"))["w"].tolist() == [1.0, 1.0]


def test_the_simple_saves_work_alone_and_need_their_setup(output_dir: str) -> None:
    logger = EpochLogger(output_dir)
    with pytest.raises(AssertionError, match="setup_pytorch_saver"):
        logger._pytorch_simple_save()
    with pytest.raises(AssertionError, match="setup_tf_saver"):
        logger._tf_simple_save(3)
    logger.setup_pytorch_saver(torch.ones(1))
    logger._pytorch_simple_save(4)
    assert tree(output_dir) == ["progress.txt", "pyt_save/model4.pt"]


def test_a_subclass_may_replace_how_the_model_is_saved(output_dir: str) -> None:
    class Custom(EpochLogger):
        def _pytorch_simple_save(self, itr: int | None = None) -> None:
            self.seen = itr
            super()._pytorch_simple_save(itr)

    logger = Custom(output_dir)
    logger.setup_pytorch_saver(torch.ones(1))
    logger.save_state({"a": 1}, 6)
    assert logger.seen == 6
    assert tree(output_dir) == ["progress.txt", "pyt_save/model6.pt", "vars6.pkl"]


def test_F2_a_class_of_the_script_loads_in_another_process(output_dir: str, run_python: RunPython) -> None:
    program = """if True:
        import sys, torch
        from spinstat import EpochLogger
        class ActorCritic(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.pi = torch.nn.Linear(2, 2)
                self.scale = lambda x: 2 * x
            def act(self, obs):
                return self.scale(1)
        logger = EpochLogger(sys.argv[1])
        logger.setup_pytorch_saver(ActorCritic())
        logger.save_state({"env": None})
    """
    run_python("-c", program, output_dir)
    model = torch.load(os.path.join(output_dir, "pyt_save", "model.pt"), weights_only=False)
    assert model.act(None) == 2


def test_F4_a_module_that_cannot_be_pickled_leaves_the_last_good_one(output_dir: str) -> None:
    logger = Recorder(output_dir)
    module = torch.nn.Linear(2, 1)
    logger.setup_pytorch_saver(module)
    logger.save_state({"step": 1})
    module.lock = threading.Lock()
    logger.save_state({"step": 2})
    path = os.path.join(output_dir, "pyt_save", "model.pt")
    loaded = torch.load(path, weights_only=False)
    assert torch.equal(loaded.weight, module.weight) and not hasattr(loaded, "lock")
    assert load(output_dir, "vars.pkl") == {"step": 2}
    assert "pyt_save/model.pt" in logger.only_message()
    assert tree(output_dir) == ["progress.txt", "pyt_save/model.pt", "vars.pkl"]
