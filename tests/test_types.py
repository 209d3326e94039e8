"""What type checkers are told of the extension is what it does, and the package keeps to it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from conftest import ROOT, RunPython

from spinstat import _core

# Other modules count as unknown, so that NumPy and torch need not be read.
CONFIG = """
[mypy]
strict = true
follow_imports = skip
"""

BEFORE = """
from spinstat._core import EpochStore, Moments, StoredValues, merge_rows, moments, own_results, target
m, store, values = Moments(), EpochStore(), StoredValues()
result, = own_results([("A", m)])
"""

REVEALED = {
    "target()": "str",
    "moments([1, [2.5]], threads=4)": "spinstat._core.Moments",
    "m.count": "int",
    "m.mean": "float",
    "m.std(ddof=1)": "float",
    "m + m": "spinstat._core.Moments",
    "m == 3": "bool",
    "m.copy()": "spinstat._core.Moments",
    "Moments.from_bytes(m.to_bytes())": "spinstat._core.Moments",
    "store.keep_values": "bool",
    "store.epoch_dict": "spinstat._core.EpochDict",
    "store.epoch_dict | {}": "dict[str, Any]",
    "list(store.epoch_dict)": "list[str]",
    "store._take('A')": "spinstat._core.Moments",
    "values[0]": "Any",
    "values[1:]": "list[Any]",
    "values + [1.0]": "list[Any]",
    "[1.0] + values": "list[Any]",
    "values.copy()": "list[Any]",
    "len(values)": "int",
    "result.moments.max": "float",
    "result.info.max_mean_rank": "int | None",
}

TAKEN = [
    "store.store(A=1.0, B='whatever may be a number', C=[1, [2.0]])",
    "store.store({'a b/c': 1, 'self': 2}, A=3)",
    "store.store(None)",
    "store.epoch_dict = {'A': [1.0], 'B': (2,)}",
    "store.epoch_dict['A'] = range(3)",
    "values.append(1)\nvalues[0] = 2\nvalues[1:] = [3]\ndel values[0]",
    "values += [1.0]\nvalues *= 2\nm += Moments(3)",
    "a, *rest = values",
    "class Mine(EpochStore):\n    def __init__(self, name: str) -> None: ...\nMine('x').store(A=1)",
]

# What must be an error, and a word of it.
REFUSED = {
    "m.mean = 3.0": "read-only",
    "m + 1": "operand",
    "m.update([1], 2, 3)": "Too many",
    "m.merge(3)": "Moments",
    "class Mine(Moments): ...": "final",
    "class Mine(StoredValues): ...": "final",
    "store.store(1.0)": "Mapping",
    "store.store({1: 1.0})": "str",
    "store.keep_values = 'yes'": "bool",
    "store.epoch_dict = [1.0]": "Mapping",
    "store.epoch_dict['A'] = 3.0": "Iterable",
    "store.epoch_dict[3]": "str",
    "values.extend(3)": "Iterable",
    "result.info.count = 3": "read-only",
}


def mypy(run_python: RunPython, folder: Path, statements: list[str]) -> list[list[str]]:
    """What mypy says to each of some statements that follow BEFORE."""
    (folder / "mypy.ini").write_text(CONFIG)
    lines, first = BEFORE.splitlines(), []
    for statement in statements:
        first.append(len(lines) + 1)
        lines += statement.splitlines()
    (folder / "example.py").write_text("\n".join(lines) + "\n")
    command = ("-m", "mypy", "--config-file", "mypy.ini", "example.py")
    done = run_python(*command, env={"MYPYPATH": str(ROOT)}, cwd=folder, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    said: list[list[str]] = [[] for _ in statements]
    for line, text in re.findall(r"^example\.py:(\d+): (.*)", done.stdout, re.MULTILINE):
        assert int(line) >= first[0], text
        said[sum(int(line) >= start for start in first) - 1].append(text)
    return said


def test_the_stub_says_what_the_extension_has(run_python: RunPython, tmp_path: Path) -> None:
    (tmp_path / "mypy.ini").write_text(CONFIG)
    done = run_python(
        "-m", "mypy.stubtest", "spinstat._core", "--mypy-config-file", "mypy.ini",
        "--allowlist", str(ROOT / "tests" / "stubtest_allowlist.txt"), "--ignore-unused-allowlist",
        env={"MYPYPATH": str(ROOT), "PYTHONPATH": str(ROOT)}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_types_are_inferred_as_a_reader_would(run_python: RunPython, tmp_path: Path) -> None:
    said = mypy(run_python, tmp_path, [f"reveal_type({expression})" for expression in REVEALED])
    revealed = {}
    for expression, lines in zip(REVEALED, said, strict=True):
        assert len(lines) == 1, (expression, lines)
        revealed[expression] = re.sub(r'^note: Revealed type is "(.*)"$', r"\1", lines[0])
    assert revealed == REVEALED


def test_what_works_has_no_type_error(run_python: RunPython, tmp_path: Path) -> None:
    assert mypy(run_python, tmp_path, TAKEN) == [[]] * len(TAKEN)


def test_what_fails_has_a_type_error_that_says_why(run_python: RunPython, tmp_path: Path) -> None:
    said = mypy(run_python, tmp_path, list(REFUSED))
    for (statement, word), lines in zip(REFUSED.items(), said, strict=True):
        errors = [line for line in lines if line.startswith("error:")]
        assert len(errors) >= 1 and re.search(word, " ".join(lines)), (statement, lines)


def test_the_package_is_strictly_typed(run_python: RunPython) -> None:
    done = run_python("-m", "mypy", cwd=ROOT, check=False, timeout=250)
    assert done.returncode == 0, done.stdout + done.stderr


def test_programs_that_use_the_package_are_typed_as_their_authors_would_say(run_python: RunPython) -> None:
    """`make types` has pyright read the same file."""
    examples = "tests/typed_examples.py"
    done = run_python("-m", "mypy", "--strict", examples, cwd=ROOT, env={"MYPYPATH": str(ROOT)}, check=False)
    assert [line for line in done.stdout.splitlines() if line.startswith(examples)] == []
    assert "assert_type" in (ROOT / examples).read_text(encoding="utf-8")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", _core.__all__)
def test_every_public_name_says_what_it_is(name: str) -> None:
    thing = getattr(_core, name)
    if isinstance(thing, int):
        return
    assert thing.__doc__ and thing.__doc__.strip()
    if isinstance(thing, type):
        parts = {part for part in vars(thing) if not part.startswith("_")}
        told = {part for part in parts if getattr(thing, part).__doc__}
        assert parts - told - set(re.findall(r"\w+", thing.__doc__)) == set()


def test_the_stub_and_the_marker_of_types_lie_in_the_package() -> None:
    folder = Path(sys.modules["spinstat"].__file__ or "").parent
    assert (folder / "_core.pyi").exists() and (folder / "py.typed").exists()
