"""Loading with trust=False: nothing imported but what is allowed, nothing called but a class of modules."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from untrusted_runs import forge, forge_text, save, weights_of

from spinstat.policy import load_actor_critic
from spinstat.untrusted import UntrustedError

TESTS = str(Path(__file__).parent)
OBS = np.array([0.5, -1.0, 0.25, 2.0], np.float32)


@pytest.fixture
def marking_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module on sys.path that leaves a file when it is imported; the path of that file."""
    (tmp_path / "elsewhere").mkdir()
    marker = tmp_path / "imported"
    source = f"import os, torch\nos.mkdir({str(marker)!r})\nclass Net(torch.nn.Module): pass\n"
    (tmp_path / "elsewhere" / "marking.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path / "elsewhere")
    monkeypatch.delitem(sys.modules, "marking", raising=False)
    return marker


def test_a_module_is_imported_only_if_it_is_allowed(output_dir: str, marking_module: Path) -> None:
    forge(output_dir, **{"class": "marking:Net"})
    for allow in ([], ["cores"], ["mark"], ["marking.inner"]):
        with pytest.raises(UntrustedError, match=r"module marking is not allowed.*allow=\['marking'\]"):
            load_actor_critic(output_dir, trust=False, allow=allow)
    assert not marking_module.exists()
    assert type(load_actor_critic(output_dir, trust=False, allow=["marking"])).__name__ == "Net"
    assert marking_module.exists()
    sys.modules.pop("marking")


def test_a_class_among_the_arguments_needs_permission_too(output_dir: str, marking_module: Path) -> None:
    forge(output_dir, args=[{"$import": "marking:Net"}])
    with pytest.raises(UntrustedError, match="module marking is not allowed"):
        load_actor_critic(output_dir, trust=False, allow=["cores"])
    assert not marking_module.exists()


@pytest.mark.parametrize("inside", ["evil.py", "evil/__init__.py"])
def test_a_module_in_the_folder_of_the_run_is_not_imported_even_if_allowed(
    output_dir: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inside: str
) -> None:
    forge(output_dir, **{"class": "run.evil:Net"})
    path = Path(output_dir, inside)
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"import os\nos.mkdir({str(tmp_path / 'imported')!r})\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UntrustedError, match="in the folder of the run"):
        load_actor_critic(output_dir, trust=False, allow=["run"])
    assert not (tmp_path / "imported").exists()


def test_nothing_is_loaded_while_the_folder_of_the_run_is_on_the_path(
    output_dir: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(output_dir)
    monkeypatch.chdir(output_dir)
    monkeypatch.syspath_prepend("")
    with pytest.raises(UntrustedError, match="Run this from another folder"):
        load_actor_critic(".", trust=False, allow=["cores"])


CALLS = {
    "a program": ("subprocess:Popen", ["subprocess"], r"no class of torch\.nn\.modules\.module\.Module's"),
    "a class": ("cores:NoModule", ["cores"], "no class of torch"),
    "a function": ("cores:double", ["cores"], "no class of torch"),
    "another module's": ("agents:torch.nn.Linear", ["agents"], "defined in agents"),
    "another module's function": ("conftest:os.system", ["conftest"], "defined in conftest"),
    "nothing": ("cores:Missing", ["cores"], "defined in cores"),
    "dunder": ("cores:__builtins__", ["cores"], "no import path"),
    "a path": ("../cores:ActorCritic", ["cores"], "no import path"),
    "an absolute path": ("/tmp/cores:ActorCritic", ["cores"], "no import path"),
    "no class": ("cores", ["cores"], "no import path"),
    "relative": (".cores:ActorCritic", ["cores"], "no import path"),
    "spaces": ("cores:ActorCritic ", ["cores"], "no import path"),
}


@pytest.mark.parametrize(("path", "allow", "match"), CALLS.values(), ids=CALLS)
def test_nothing_is_called_but_a_class_of_modules(
    output_dir: str, tmp_path: Path, path: str, allow: list[str], match: str
) -> None:
    forge(output_dir, **{"class": path, "args": [["touch", str(tmp_path / "called")]]})
    with pytest.raises(UntrustedError, match=match) as caught:
        load_actor_critic(output_dir, trust=False, allow=allow)
    assert str(weights_of(output_dir)) in str(caught.value)
    assert not (tmp_path / "called").exists()


@pytest.mark.parametrize("module", ["not_here", "not_here.cores", "cores.inner", "cores.inner.most"])
def test_a_class_whose_module_is_not_here_is_named(output_dir: str, module: str) -> None:
    forge(output_dir, **{"class": f"{module}:Net"})
    with pytest.raises(ModuleNotFoundError, match=rf"module {module} is not there: install.*PYTHONPATH"):
        load_actor_critic(output_dir, trust=False, allow=["not_here", "cores"])


RECIPES = {
    "empty": ("", "not JSON"),
    "a list": ("[]", "no format 1"),
    "a later format": ('{"format": 2}', "no format 1"),
    "deep": ("[" * 100_000, "not JSON"),
    "NaN": ('{"format": 1, "args": [NaN]}', "NaN is no JSON"),
    "a class that is a number": ('{"format": 1, "class": 3}', "'class' is int, not str"),
    "args that are an object": ('{"format": 1, "class": "cores:Keeper", "args": {}}', "'args' is dict"),
}


@pytest.mark.parametrize(("text", "match"), RECIPES.values(), ids=RECIPES)
def test_a_malformed_recipe_is_an_error_that_names_the_file(output_dir: str, text: str, match: str) -> None:
    forge_text(output_dir, text)
    with pytest.raises(UntrustedError, match=match) as caught:
        load_actor_critic(output_dir, trust=False, allow=["cores"])
    assert str(weights_of(output_dir)) in str(caught.value)


BAD_ARGUMENTS: dict[str, Any] = {
    "an unknown tag": {"$pickle": "gASV"},
    "two tags": {"$float": "inf", "$tuple": []},
    "a float that is code": {"$float": "1e5"},
    "an import of a number": {"$import": 3},
    "a tuple of nothing": {"$tuple": None},
    "a space of another library": {"$space": {"library": "os", "kind": "Box"}},
    "another attribute of the library": {"$space": {"library": "gymnasium", "kind": "np"}},
    "a space that is incomplete": {"$space": {"library": "gymnasium", "kind": "Discrete"}},
    "a space of objects": {"$space": {
        "library": "gymnasium", "kind": "Box", "low": 0, "high": 1, "shape": [2], "dtype": "O"}},
    "a space without end": {"$space": {
        "library": "gymnasium", "kind": "Box", "low": 0, "high": 1, "shape": [10**12], "dtype": "int8"}},
    "a space of text": {"$space": {
        "library": "gymnasium", "kind": "Box", "low": "a", "high": 1, "shape": [1], "dtype": "int8"}},
}  # fmt: skip


@pytest.mark.parametrize("argument", BAD_ARGUMENTS.values(), ids=BAD_ARGUMENTS)
def test_a_malformed_argument_is_an_error_that_names_the_file(output_dir: str, argument: Any) -> None:
    forge(output_dir, args=[[argument]])
    with pytest.raises(UntrustedError) as caught:
        load_actor_critic(output_dir, trust=False, allow=["cores"])
    assert str(weights_of(output_dir)) in str(caught.value)


def test_arguments_that_the_class_does_not_take_are_an_error(output_dir: str) -> None:
    forge(output_dir, **{"class": "cores:Tied", "args": [1]})
    with pytest.raises(UntrustedError, match=r"cores:Tied cannot be made.*TypeError"):
        load_actor_critic(output_dir, trust=False, allow=["cores"])
