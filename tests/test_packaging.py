"""What an interpreter gets with `import spinstat`: little, without MPI, and with its arithmetic intact."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import subprocess
import sys
import tomllib

import pytest
from conftest import ROOT, RunPython, clean_environment

import spinstat

# I2: neither the frameworks nor the slow corners of the standard library.
FRAMEWORKS = {"torch", "tensorflow", "keras", "mpi4py", "gym", "gymnasium", "matplotlib", "pandas", "scipy"}
SLOW = {"joblib", "cloudpickle", "argparse", "subprocess", "inspect"}

# What numpy itself has loaded does not count against spinstat.
REPORT_LOADED = """
import sys
import numpy
before = set(sys.modules)
import spinstat
print(*sorted(set(sys.modules) - before), sep="\\n")
"""


def loaded_by_import(run_python: RunPython, then: str = "") -> set[str]:
    lines = run_python("-c", REPORT_LOADED.replace("import spinstat\n", f"import spinstat\n{then}\n")).stdout
    return set(lines.split())


def test_I2_importing_spinstat_loads_no_framework_and_no_slow_module(run_python: RunPython) -> None:
    loaded = loaded_by_import(run_python)
    assert "spinstat._core" in loaded
    assert not loaded & (FRAMEWORKS | SLOW)


def test_I2_the_loggers_names_load_no_framework_either(run_python: RunPython) -> None:
    names = "spinstat.EpochLogger, spinstat.Logger, spinstat.mpi_statistics_scalar, spinstat.proc_id"
    loaded = loaded_by_import(run_python, names)
    assert "spinstat.epoch" in loaded
    assert not loaded & FRAMEWORKS


def test_I2_a_whole_epoch_of_plain_numbers_loads_no_framework(run_python: RunPython) -> None:
    epoch = (
        "logger = spinstat.EpochLogger(output_dir='run', quiet=True)\n"
        "logger.save_config({'seed': 0})\n"
        "logger.store(A=1.0)\n"
        "logger.log_tabular('A', with_min_and_max=True)\n"
        "logger.dump_tabular()\n"
    )
    loaded = loaded_by_import(run_python, epoch)
    assert "spinstat.epoch" in loaded
    assert not loaded & FRAMEWORKS


def test_I4_the_extension_is_linked_with_no_mpi() -> None:
    extension = importlib.util.find_spec("spinstat._core")
    assert extension is not None
    assert extension.origin is not None
    list_libraries = ["otool", "-L"] if sys.platform == "darwin" else ["ldd"]
    command = [*list_libraries, extension.origin]
    linked = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout
    libraries = [line.split()[0] for line in linked.splitlines()]
    assert any("libc" in name or "libSystem" in name for name in libraries)
    assert not [name for name in libraries if "mpi" in name.lower()]


def test_I4_numpy_is_the_one_requirement() -> None:
    requires = importlib.metadata.requires("spinstat") or []
    always = [line for line in requires if "extra ==" not in line]
    assert [line.split(">")[0].split("=")[0].strip() for line in always] == ["numpy"]


def test_the_extras_are_those_that_error_messages_name() -> None:
    extras = set(importlib.metadata.metadata("spinstat").get_all("Provides-Extra") or [])
    assert {"mpi", "mpich", "torch", "tensorflow", "gym", "plot", "safe", "all"} <= extras
    installing = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Installing")[2]
    assert extras <= set(re.findall(r"`([a-z]+)`", installing))


def test_I5_importing_spinstat_leaves_subnormal_numbers_alone(run_python: RunPython) -> None:
    check = (
        "import sys, spinstat, numpy as np\n"
        "tiny = sys.float_info.min\n"
        "assert tiny / 2 != 0.0 and tiny / 2 * 2 == tiny\n"
        "assert np.float64(tiny) / 2 != 0.0\n"
        "print(spinstat.moments([tiny / 2, tiny / 2]).mean == tiny / 2)\n"
    )
    assert run_python("-c", check).stdout == "True\n"


def test_I5_nan_is_still_seen_after_optimisation() -> None:
    found = spinstat.moments([1.0, float("nan"), 3.0] * 1000)
    assert found.nan_count == 1000
    assert found.mean != found.mean
    assert found.min != found.min


def test_I5_rounding_errors_are_not_reassociated_away() -> None:
    """A million of 1e-16 after a 1: added up one by one, every one of them would be lost."""
    found = spinstat.moments([1.0, *[1e-16] * 1_000_000])
    assert found.mean * found.count - 1.0 == pytest.approx(1e-10, rel=1e-3)


def test_the_version_is_that_of_the_metadata() -> None:
    assert spinstat.__version__ == importlib.metadata.version("spinstat")


def test_every_public_name_is_there_and_documented() -> None:
    expected = {"EpochLogger", "Logger", "Moments", "moments", "target", "mpi_statistics_scalar"}
    assert expected <= set(spinstat.__all__)
    for name in spinstat.__all__:
        value = getattr(spinstat, name)
        assert name.startswith("__") or value.__doc__, f"spinstat.{name} has no docstring"
    assert set(spinstat.__all__) <= set(dir(spinstat))


@pytest.mark.parametrize("name", ["checkpoint", "compare", "plot", "policy"])
def test_a_module_is_there_when_first_asked_for(run_python: RunPython, name: str) -> None:
    program = f"import spinstat; print({name!r} in dir(spinstat), spinstat.{name}.__name__)"
    assert run_python("-c", program).stdout == f"True spinstat.{name}\n"


def test_errors_and_results_of_a_logger_are_names_of_the_package() -> None:
    from spinstat import _core, exchange

    assert spinstat.KeyMismatchError is exchange.KeyMismatchError
    assert spinstat.RowInfo is _core.RowInfo


@pytest.mark.parametrize("module", ["plot", "test_policy"])
def test_modules_that_are_programs_in_spinning_up_are_programs(run_python: RunPython, module: str) -> None:
    assert "usage:" in run_python("-m", f"spinstat.utils.{module}", "--help").stdout


def test_an_unknown_name_of_the_package_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="EpochLoger"):
        spinstat.EpochLoger  # noqa: B018


def test_nothing_of_numpy_is_needed_to_build() -> None:
    """So one wheel works with every NumPy: it is used through Python and the buffer protocol."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert not [name for name in project["build-system"]["requires"] if "numpy" in name]
    sources = [*(ROOT / "spinstat").glob("*.p[yx]*"), *(ROOT / "csrc").glob("*")]
    assert sources
    for path in sources:
        assert not re.search(r"cimport\s+numpy|numpy/\w+\.h", path.read_text(encoding="utf-8")), path


def test_wheels_are_made_for_every_python_that_is_supported() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    built = project["tool"]["cibuildwheel"]["build"].split()
    versions = {name.removesuffix("-*") for name in built}
    assert versions == {"cp311", "cp312", "cp313", "cp314", "cp314t", "cp315", "cp315t"}
    named = [line.rpartition(" :: ")[2] for line in project["project"]["classifiers"]]
    named = [f"cp{name.replace('.', '')}" for name in named if name.startswith("3.")]
    assert set(named) == versions - {"cp314t", "cp315t"}
    assert project["project"]["requires-python"] == ">=3.11"


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "SECURITY.md"])
def test_what_contributors_are_told_exists(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    for link in re.findall(r"\]\((?!https?:)([^)#]+)\)", text):
        assert (ROOT / link).exists(), link
    targets = {word for names in re.findall(r"`?\bmake ([a-z -]+)`", text) for word in names.split()}
    if name == "CONTRIBUTING.md":
        assert {"types", "docs", "wheel"} <= targets
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    declared = " ".join(re.findall(r"^([\w -]+):", makefile, re.MULTILINE))
    assert targets <= set(declared.split())
    paths = re.findall(r"`((?:csrc|tests|spinstat|docs|\.ci)/[\w./]+)`", text)
    assert not [path for path in paths if not (ROOT / path).exists()]


def test_reports_go_where_they_can_be_sent() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    people = [*project.get("authors", []), *project.get("maintainers", [])]
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert "Report a vulnerability" in text
    assert "metadata" not in text or any("email" in person for person in people)


@pytest.mark.parametrize("name", ["LICENSE", "README.md", "CHANGELOG.md"])
def test_a_source_folder_tells_its_licence_and_its_history(name: str) -> None:
    assert "spinstat" in (ROOT / name).read_text(encoding="utf-8")


def test_the_package_is_typed() -> None:
    assert (ROOT / "spinstat" / "py.typed").exists()


def test_the_environment_of_children_is_clean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PMI_RANK", "3")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")
    monkeypatch.setenv("SPINSTAT_MPI", "1")
    cleaned = clean_environment({"A": "1"})
    assert cleaned["A"] == "1"
    assert not {"PMI_RANK", "OMPI_COMM_WORLD_SIZE", "SPINSTAT_MPI"} & set(cleaned)
