"""Every public name says what it is, what it takes, and shows it in an example, which runs here."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import spinstat
from spinstat import EpochLogger, Logger
from spinstat._core import EpochStore

# Modules whose __all__ is for users; of the others, the names that README.md and docs/ use.
MODULES = ["spinstat", "spinstat.compare", "spinstat.plot", "spinstat.policy"]
MODULES += [f"spinstat.utils.{name}" for name in (
    "logx", "mpi_pytorch", "mpi_tools", "plot", "run_utils", "serialization_utils", "test_policy",
)]  # fmt: skip
NAMES = [
    *("spinstat.checkpoint." + name for name in (
        "Checkpoint", "Listed", "find_checkpoint", "list_checkpoints", "restore_tf_graph",
        "verify_checkpoints",
    )),
    *("spinstat.sinks." + name for name in (
        "CsvSink", "JsonlSink", "MlflowSink", "Sink", "TensorBoardSink", "WandbSink",
    )),
    "spinstat._core.RowInfo", "spinstat.exchange.KeyMismatchError",
]  # fmt: skip


def public() -> Iterator[tuple[str, Any]]:
    """The documented things by one of their names."""
    seen: set[int] = set()
    names = [f"{module}.{name}" for module in MODULES for name in importlib.import_module(module).__all__]
    for dotted in [*names, *NAMES]:
        module, _, name = dotted.rpartition(".")
        value = getattr(importlib.import_module(module), name)
        if callable(value) and id(value) not in seen:
            seen.add(id(value))
            yield dotted, value


PUBLIC = dict(public())


def methods(cls: type) -> dict[str, Any]:
    """The public methods of a class that are spinstat's own."""
    own = [base for base in reversed(cls.__mro__) if base.__module__.startswith("spinstat")]
    found = {name: value for base in own for name, value in vars(base).items() if not name.startswith("_")}
    return {name: value for name, value in found.items() if callable(getattr(cls, name))}


def examples(value: Any) -> list[doctest.DocTest]:
    """The examples of a function, or of a class and its methods."""
    values = [value, *methods(value).values()] if isinstance(value, type) else [value]
    found = []
    for each in values:
        text = inspect.getdoc(each) or ""
        test = doctest.DocTestParser().get_doctest(text, {"__name__": "__main__"}, each.__name__, None, 0)
        if test.examples:
            found.append(test)
    return found


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """runs/ppo and runs/sac, which the examples read: three rows, a policy, an environment."""
    import gymnasium
    import torch

    class Actor(torch.nn.Module):
        def act(self, obs: Any, deterministic: bool = False) -> int:
            return int(obs[2] > 0)

        def v(self, obs: Any) -> Any:
            return obs.sum(-1)

    folder = tmp_path_factory.mktemp("trained")
    for name, speed in (("ppo", 10), ("sac", 20)):
        with EpochLogger(folder / "runs" / name, exp_name=name, quiet=True) as logger:
            logger.save_config({"seed": 0})
            logger.setup_pytorch_saver(Actor())
            for epoch in range(3):
                logger.log_tabular("Epoch", epoch)
                logger.log_tabular("AverageEpRet", speed * (epoch + 1.0))
                logger.dump_tabular()
            logger.save_state({"env": gymnasium.make("CartPole-v1"), "epoch": 2})
    return folder


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_has_a_docstring_and_an_example(name: str) -> None:
    value = PUBLIC[name]
    text = inspect.getdoc(value) or ""
    assert text and not text.startswith(f"{value.__name__}("), "no docstring of its own"
    assert examples(value), "no example"


@pytest.mark.parametrize("name", [name for name, value in PUBLIC.items() if not isinstance(value, type)])
def test_the_docstring_of_a_function_names_its_arguments(name: str) -> None:
    value = PUBLIC[name]
    text = inspect.getdoc(value) or ""
    try:
        names = list(inspect.signature(value).parameters)
    except ValueError:  # a function of the extension
        names = ["x", "threads"] if name == "spinstat.moments" else []
    told = text.partition("Args:")[2].partition("Returns:")[0] if "Args:" in text else ""
    missing = [argument for argument in names if not re.search(rf"\b{argument}\b", told)]
    assert not missing, f"not under Args: {missing}"


@pytest.mark.parametrize(
    "path",
    sorted(Path(spinstat.__file__).parent.rglob("*.py")),
    ids=lambda path: f"{path.parent.stem}.{path.stem}",
)
def test_a_line_of_a_section_names_what_it_tells_of_or_is_indented_further(path: Path) -> None:
    sections = re.compile(r"^(?:Args|Attributes|Environment|Raises):\n((?: +.+\n?)+)", re.MULTILINE)
    defined = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        text = ast.get_docstring(node) if isinstance(node, defined) else None
        for section in sections.findall(text or ""):
            for line in re.findall(r"^ {4}\S.*", section, re.MULTILINE):
                assert re.match(r" {4}[\w, *.]+: ", line), f"{node.name}: {line}"


@pytest.mark.parametrize("cls", [EpochLogger, Logger, spinstat.Moments], ids=lambda cls: cls.__name__)
def test_every_method_is_documented_and_called_in_an_example(cls: type) -> None:
    tests = examples(cls) + (examples(Logger) if issubclass(cls, Logger) else [])
    called = "\n".join(example.source for test in tests for example in test.examples)
    for name in methods(cls):
        assert inspect.getdoc(getattr(cls, name)), f"{cls.__name__}.{name} has no docstring"
        assert f".{name}(" in called, f"no example calls {cls.__name__}.{name}"


@pytest.mark.parametrize("name", PUBLIC)
def test_the_examples_run(
    name: str, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    for number, test in enumerate(examples(PUBLIC[name])):
        folder = tmp_path / str(number)
        shutil.copytree(trained, folder)
        monkeypatch.chdir(folder)
        report: list[str] = []
        result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=report.append)
        assert result.failed == 0, "".join(report)
        assert result.attempted > 0


def test_the_store_of_the_extension_is_among_what_is_checked() -> None:
    assert methods(EpochLogger)["store"] is vars(EpochStore)["store"]
