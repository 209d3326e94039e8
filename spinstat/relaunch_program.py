"""The program of a run, prepared again: its folder, its arguments, and what its script defines."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator, Mapping
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from .stderr import note


class Refused(Exception):
    """A run that cannot be started again so; the text says what is missing and what may help."""


def enter(program: Mapping[str, Any]) -> None:
    """Work where the program did, import from where it did, with its words in sys.argv."""
    cwd = str(program["cwd"])
    if os.path.isdir(cwd):
        os.chdir(cwd)
    else:
        note(f"The run's working directory, {cwd}, is gone; going on in {os.getcwd()}")
    if not sys.flags.safe_path:
        sys.path[:1] = [str(program["path"])]


def load_main(program: Mapping[str, Any]) -> None:
    """Define what the program's own script defines, as the module `__main__`, without running the program.

    Everything of the script is run but what stands under `if __name__ == "__main__":`.

    Raises:
        Refused: there is no script, or the run was started outside of that block, so that it would start now.
    """
    path, spec = _find_script(program)
    tree = _definitions(path, program["line"])
    module = ModuleType("__main__")
    module.__dict__.update(__file__=path, __spec__=spec, __package__=None if spec is None else spec.parent)
    sys.modules["__main__"] = module
    exec(compile(tree, path, "exec", dont_inherit=True), module.__dict__)


def check_script(program: Mapping[str, Any]) -> None:
    """Raise Refused where load_main would for the text of a script; nothing is run or changed.

    Whether a module can be found is only known after `enter`.
    """
    if program["module"] is None:
        _definitions(_find_script(program)[0], program["line"])


def _definitions(path: str, line: int | None) -> ast.Module:
    """A script without its main block.

    Args:
        path: of the script.
        line: where it started its run; None: not known, or started by this module.

    Raises:
        Refused: it cannot be read, or the line is not in a main block.
    """
    try:
        with open(path, "rb") as file:
            tree = ast.parse(file.read(), path)
    except (OSError, SyntaxError, ValueError) as error:
        raise Refused(f"{path} cannot be read: {error}") from error
    guards = [node for node in tree.body if isinstance(node, ast.If) and _is_guard(node)]
    if not any(line is None or guard.lineno <= line <= _end(guard) for guard in guards):
        where = "" if line is None else f" (line {line})"
        raise Refused(
            f'{path} starts its run outside of an `if __name__ == "__main__":` block{where}, so what it '
            "defines cannot be had without starting that run"
        )
    tree.body = list(_without(tree.body, guards))
    return tree


def _find_script(program: Mapping[str, Any]) -> tuple[str, ModuleSpec | None]:
    name, path = program["module"], program["script"]
    if name is not None:
        import importlib.util

        try:
            spec = importlib.util.find_spec(name)
        except ImportError as error:
            raise Refused(f"the module {name}, which the run was, cannot be found: {error}") from error
        if spec is None or not spec.has_location or spec.origin is None:
            raise Refused(f"the module {name}, which the run was, cannot be found")
        return spec.origin, spec
    if path is None:
        raise Refused("the run's code was typed in, read from a pipe or given with -c: it is in no file")
    if not os.path.isfile(path):
        raise Refused(f"the run's script, {path}, is gone")
    return path, None


def _is_guard(node: ast.If) -> bool:
    test = node.test
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq)):
        return False
    sides = {getattr(side, "id", getattr(side, "value", None)) for side in (test.left, test.comparators[0])}
    return sides == {"__name__", "__main__"}


def _end(guard: ast.If) -> int:
    return guard.body[-1].end_lineno or guard.lineno


def _without(body: list[ast.stmt], guards: list[ast.If]) -> Iterator[ast.stmt]:
    """The statements; of a guarded one, what stands in its `else`."""
    for node in body:
        if isinstance(node, ast.If) and node in guards:
            yield from node.orelse
        else:
            yield node
