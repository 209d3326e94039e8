"""Who may know whom: an import or #include that points upwards, or sideways, fails here."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ROOT

PACKAGE = ROOT / "spinstat"
CSRC = ROOT / "csrc"

RECORDING = {"relaunch_objects", "relaunch_record", "relaunch_values"}
PLOTTING = {"compare", "compare_command", "compare_drawing", "curves", "datasets", "drawing", "grouping",
            "intervals", "parsing", "plot", "plot_command", "reading", "regular", "watching"}

# Lowest first. A part may import from the rows below its own, and within itself where it is a set of modules.
# Neighbours in a row do not know each other. A part may be named here before it exists.
ORDER: list[list[set[str]]] = [
    [{"_core", "_arrays"}],
    [{"files", "growing"}, {"histogram", "kept", "row"}, {"stderr", "terminal"}, {"unpickling"},
     {"recipe", "untrusted"}, {"watchdog"}],
    [{"comm"}, {"quantiles"}],
    [{"exchange"}],
    [{"writers", "console", "console_cells", "console_time"},
     {"config", "_describe", "_elements", "_static", *RECORDING}, {"checkpoint"}, {"ranks"},
     {"sync"}, {"envs", "env_description", "untrusted_envs"}, {"sinks"}],
    [{"options"}],
    [{"logger", "saving"}, {"waiting"}],
    [{"epoch"}],
    [{"policy", "playing", "video", "_torch_models", "_tf_models", "_safe_models"}, PLOTTING,
     {"launch", "_rank_main"}, {"folders", "user_config"}],
    [{"inspecting", "relaunch", "relaunch_output", "relaunch_program", "relaunch_settings"}],
    [{"run"}],
    [{"utils"}],
    [{"__init__"}],
]
PLACES = {
    name: (row, part)
    for row, parts in enumerate(ORDER)
    for part, names in enumerate(parts)
    for name in names
}

C_LIBRARY = {"float.h", "limits.h", "math.h", "stdatomic.h", "stddef.h", "stdint.h", "stdlib.h", "string.h"}
INTRINSICS = {"emmintrin.h", "immintrin.h", "arm_neon.h"}
PUBLIC_HEADERS = {"moments.h", "rows.h"}


def part_of(path: Path) -> str:
    """The name in ORDER of a Python file's part: spinstat/utils/logx.py is of utils."""
    inside = path.relative_to(PACKAGE)
    return inside.parts[0] if len(inside.parts) > 1 else inside.stem


def absolute_imports(source: str, package: list[str]) -> Iterator[tuple[str, str]]:
    """(module, name) of every import in a Python source, wherever it stands; name is "" where there is none.

    `package` is the dotted package that the source lies in, for relative imports. import_module("x") and
    __import__("x") count, since an import inside a function is an arrow like any other.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield from ((module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in {"import_module", "__import__"}:
                module = str(node.args[0].value)
                yield (".".join(package) + module if module.startswith(".") else module, "")


def cython_imports(source: str) -> Iterator[tuple[str, str]]:
    """The same for a Cython source, whose files all lie in spinstat itself; cimports count."""
    for module, names in re.findall(r"^\s*from\s+([\w.]+)\s+c?import\s+\(?([^#\n]+)", source, re.MULTILINE):
        module = f"spinstat{module}".rstrip(".") if module.startswith(".") else module
        yield from ((module, name.split()[0]) for name in names.split(",") if name.strip(" )"))
    for names in re.findall(r"^\s*c?import\s+([\w., ]+)", source, re.MULTILINE):
        yield from ((name.split()[0], "") for name in names.split(",") if name.strip())


def parts_imported(imports: Iterator[tuple[str, str]]) -> set[str]:
    """The parts of spinstat among some imports; a name of the package itself is an arrow to its top."""
    found = set()
    for module, name in imports:
        top, _, rest = module.partition(".")
        if top == "spinstat":
            found.add(rest.partition(".")[0] or (name if name in PLACES else "__init__"))
    return found


def forbidden(importer: str, imported: str) -> bool:
    """Whether the arrow points anywhere but down or inside one part."""
    if imported not in PLACES:
        return True
    (row, part), (other_row, other_part) = PLACES[importer], PLACES[imported]
    return other_row > row or (other_row == row and other_part != part)


def python_files() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py"))


def cython_files() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*") if path.suffix in {".pyx", ".pxi", ".pxd"})


def imports_of(path: Path) -> list[tuple[str, str]]:
    package = ["spinstat", *path.relative_to(PACKAGE).parent.parts]
    return list(absolute_imports(path.read_text(encoding="utf-8"), package))


def headers_named(source: str) -> list[str]:
    """The headers that a C source includes and that a Cython source declares things of."""
    included = re.findall(r"^\s*#\s*include\s+[<\"]([^>\"]+)[>\"]", source, re.MULTILINE)
    return included + re.findall(r"^\s*cdef\s+extern\s+from\s+[<\"]([^>\"]+)[>\"]", source, re.MULTILINE)


def test_the_sources_are_where_this_file_looks() -> None:
    assert {"_core.pyx"} <= {path.name for path in cython_files()}
    assert {"logger", "epoch", "comm", "utils"} <= {part_of(path) for path in python_files()}
    assert {"moments.h", "moments.c", "kernels.h"} <= {path.name for path in CSRC.iterdir()}


@pytest.mark.parametrize("path", python_files(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_has_a_place_and_imports_only_from_below_it(path: Path) -> None:
    part = part_of(path)
    assert part in PLACES, f"{path.name} has no place in ORDER: decide who may import it, and add it"
    wrong = sorted(other for other in parts_imported(iter(imports_of(path))) if forbidden(part, other))
    assert not wrong, f"{part} must not import {', '.join(wrong)}"


@pytest.mark.parametrize("path", cython_files(), ids=lambda path: path.name)
def test_the_extension_imports_nothing_of_the_package_but_its_own_helper(path: Path) -> None:
    own = parts_imported(cython_imports(path.read_text(encoding="utf-8")))
    assert own <= {"_core", "_arrays", *(file.stem for file in cython_files())}


def test_every_cython_file_belongs_to_the_one_extension() -> None:
    main = (PACKAGE / "_core.pyx").read_text(encoding="utf-8")
    included = set(re.findall(r"^include\s+\"([^\"]+)\"", main, re.MULTILINE))
    assert {path.name for path in cython_files() if path.suffix == ".pxi"} == included
    assert [path.name for path in cython_files() if path.suffix == ".pyx"] == ["_core.pyx"]


def test_the_extension_sees_public_headers_only() -> None:
    ours = {path.name for path in CSRC.glob("*.h")}
    sources = [path.read_text(encoding="utf-8") for path in cython_files()]
    used = {Path(name).name for source in sources for name in headers_named(source)}
    assert used & ours <= PUBLIC_HEADERS
    assert "moments.h" in used


@pytest.mark.parametrize("path", sorted(CSRC.glob("*.[ch]")), ids=lambda path: path.name)
def test_csrc_includes_only_itself_and_the_c_library(path: Path) -> None:
    files = {file.name for file in CSRC.iterdir()}
    known = files | C_LIBRARY | INTRINSICS
    named = set(headers_named(path.read_text(encoding="utf-8")))
    assert named <= known, f"{path.name} includes {sorted(named - known)}"
    if path.name == "moments.h":
        assert not named & files, "the public struct stands on nothing"
    if path.name in PUBLIC_HEADERS:
        assert "kernels.h" not in named, "a public header must not show the private one"


def test_comm_alone_imports_mpi4py_and_torch_distributed() -> None:
    importers = set()
    for path in python_files():
        for module, name in imports_of(path):
            dotted = f"{module}.{name}"
            if dotted.startswith(("mpi4py", "torch.distributed")):
                importers.add(part_of(path))
    assert importers == {"comm"}


@pytest.mark.parametrize(
    ("importer", "source"),
    [
        ("comm", "from .epoch import EpochLogger"),
        ("writers", "from . import logger"),
        ("writers", "from spinstat.config import dumps_config"),
        ("logger", "def f():\n    import spinstat.epoch as e"),
        ("epoch", "import spinstat"),
        ("logger", "from spinstat import colorize"),
        ("config", "import importlib\nimportlib.import_module('.logger', __package__)"),
        ("run", "class A:\n    def f(self):\n        from .utils.logx import Logger"),
        ("comm", "from .somewhere_new import f"),
    ],
)
def test_an_arrow_that_points_up_or_sideways_is_seen(importer: str, source: str) -> None:
    parts = parts_imported(absolute_imports(source, ["spinstat"]))
    assert any(forbidden(importer, part) for part in parts)


def test_a_relative_import_in_a_subpackage_is_resolved_from_there() -> None:
    package = ["spinstat", "utils"]
    assert parts_imported(absolute_imports("from ..logger import Logger", package)) == {"logger"}
    assert parts_imported(absolute_imports("from .mpi_tools import proc_id", package)) == {"utils"}


def test_cython_imports_are_seen_in_every_form() -> None:
    lines = ["from .moments cimport spin_moments", "from . import _arrays", "cimport cython",
             "from spinstat.epoch import f, g", "from spinstat cimport comm"]
    assert parts_imported(cython_imports("\n".join(lines))) == {"moments", "_arrays", "epoch", "comm"}
