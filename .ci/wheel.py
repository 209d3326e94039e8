"""Builds the sdist, the wheel from the sdist, and tests the wheel as users get it: make wheel.

    python .ci/wheel.py                     for the Python that runs this, in build/wheel
    python .ci/wheel.py --test-installed    only the tests, on the spinstat that is installed (cibuildwheel)

The tests run in clean environments outside of the checkout, on the oldest NumPy that installs on this Python
and on the newest. They are those that need neither torch nor MPI nor another optional package: see CORE.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "build" / "wheel"

# The first release with wheels for a Python; before 3.12 it is what pyproject.toml asks for.
OLDEST_NUMPY = {(3, 11): "1.24.0", (3, 12): "1.26.0", (3, 13): "2.1.0", (3, 14): "2.3.2", (3, 15): "2.5.2"}
TEST_TOOLS = ["pytest==9.2.0", "pytest-timeout==2.4.0", "hypothesis==6.170.17"]

CORE = [
    "buffers", "compare", "config", "config_properties", "epoch_dict_model", "epoch_model", "epoch_ranks",
    "exchange", "files", "moments", "moments_accuracy", "moments_laws", "moments_regrets",
    "moments_threads", "oracle", "plot_curves", "quantiles_calls", "reading_regular", "relaunch_record",
    "relaunch_settings", "rows_kept", "run_folder", "store_calls", "store_interrupted", "store_reentrant",
    "store_threads", "store_without_memory", "table", "watchdog",
]  # fmt: skip


def run(*command: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> None:
    subprocess.run([str(word) for word in command], cwd=cwd, env=env, check=True)


def make_environment(folder: Path, *packages: str | Path) -> Path:
    """The interpreter of a new virtual environment that has these packages."""
    venv.create(folder, with_pip=True, clear=True)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    pip: list[str | Path] = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run(*pip, "--upgrade", "pip")
    if packages:
        run(*pip, *packages)
    return python


def build(python: Path) -> tuple[Path, Path]:
    """The sdist, and the wheel that is built from it alone."""
    shutil.rmtree(OUT, ignore_errors=True)
    run(python, "-m", "build", "--outdir", OUT, ROOT)  # without a flag: the wheel from the sdist
    (sdist,), (wheel,) = OUT.glob("*.tar.gz"), OUT.glob("*.whl")
    return sdist, wheel


def check_sdist(path: Path) -> None:
    """It has every file that git knows, but for those that serve the repository alone."""
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    known = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    there = [name for name in known.splitlines() if (ROOT / name).exists()]
    missing = [name for name in there if name not in names and not name.startswith((".git", ".github"))]
    assert not missing, f"the sdist lacks {missing}"
    for folder in ("csrc/", "tests/", "docs/", "spinstat/"):
        assert any(name.startswith(folder) for name in names), f"the sdist has no {folder}"
    built = [name for name in names if re.search(r"\.(so|pyd|py[cod])$|_core\.c$", name)]
    assert not built, f"the sdist has what a build has left: {built}"


def check_wheel(path: Path) -> None:
    """It has the package, one extension, its stub and the licence, and nothing of how they are made."""
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    tops = {name.split("/")[0] for name in names}
    assert tops == {"spinstat", next(top for top in tops if top.endswith(".dist-info"))}, tops
    files = [name for name in names if name.startswith("spinstat/")]
    suffixes = {Path(name).suffix for name in files} - {".py", ".pyi", ".typed"}
    assert suffixes in ({".so"}, {".pyd"}), f"more than modules and the extension: {suffixes}"
    modules = {str(file.relative_to(ROOT)).replace(os.sep, "/") for file in ROOT.glob("spinstat/**/*.py")}
    assert modules <= set(files), f"the wheel lacks {sorted(modules - set(files))}"
    assert {"spinstat/py.typed", "spinstat/_core.pyi"} <= set(files)
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test(python: Path, source: Path) -> None:
    """Run the core tests of an unpacked source on the spinstat of an environment, in another folder."""
    with tempfile.TemporaryDirectory() as scratch:
        left_out = shutil.ignore_patterns("__pycache__")
        shutil.copytree(source / "tests", Path(scratch) / "tests", ignore=left_out)
        shutil.copy(source / "pyproject.toml", scratch)
        where = (
            "import numpy, spinstat, sys, sysconfig\n"
            "gil = 'without' if sysconfig.get_config_var('Py_GIL_DISABLED') else 'with'\n"
            "print('Python', sys.version.split()[0], gil, 'the GIL, NumPy', numpy.__version__)\n"
            "print(spinstat.__file__, spinstat.target())\n"
            f"assert not spinstat.__file__.startswith({str(ROOT / 'spinstat')!r})\n"
        )
        clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        run(python, "-c", where, cwd=Path(scratch), env=clean)
        files = [f"tests/test_{name}.py" for name in CORE]
        run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files, cwd=Path(scratch), env=clean)


def main() -> None:
    parser = argparse.ArgumentParser(description="Build and test a wheel.")
    parser.add_argument("--test-installed", action="store_true", help="test the spinstat that is installed")
    if parser.parse_args().test_installed:
        test(Path(sys.executable), ROOT)
        return
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        python = make_environment(scratch / "build", "build==1.6.1", "twine==7.0.0")
        sdist, wheel = build(python)
        run(python, "-m", "twine", "check", "--strict", sdist, wheel)  # README, too
        check_sdist(sdist)
        check_wheel(wheel)
        for file in (sdist, wheel):
            print(f"{file.name}: {file.stat().st_size / 1e6:.2f} MB", flush=True)
        oldest = OLDEST_NUMPY.get(sys.version_info[:2])
        with tarfile.open(sdist) as archive:
            archive.extractall(scratch, filter="data")
        source = scratch / sdist.name.removesuffix(".tar.gz")
        for numpy in [f"numpy=={oldest}"] * (oldest is not None) + ["numpy"]:
            test(make_environment(scratch / "clean", wheel, numpy, *TEST_TOOLS), source)


if __name__ == "__main__":
    main()
