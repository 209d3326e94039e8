"""Builds the C references of the benchmarks with the machine's own compiler, and loads them."""

from __future__ import annotations

import ctypes
import hashlib
import importlib.machinery
import importlib.util
import os
import shlex
import subprocess
import sysconfig
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from .machine import ROOT, cpu_name

SOURCES = Path(__file__).parent / "csrc"
BUILT = ROOT / "build" / "benchmarks"
FLAGS = ("-O3", "-march=native", "-fPIC", "-shared")


def compiler() -> list[str]:
    """The C compiler: CC, else the one that built this Python, else cc."""
    return shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")


def build(name: str) -> Path:
    """Compiles benchmarks/csrc/<name>.c to a shared library, unless that was done before. Returns its path.

    Raises RuntimeError with the compiler's words where it fails.
    """
    source = SOURCES / f"{name}.c"
    command = [*compiler(), *FLAGS, f"-I{sysconfig.get_path('include')}"]
    if os.uname().sysname == "Darwin":
        command += ["-undefined", "dynamic_lookup"]
    circumstances = (command, cpu_name(), sysconfig.get_config_var("EXT_SUFFIX"))
    key = hashlib.sha256(repr(circumstances).encode() + source.read_bytes())
    target = BUILT / f"{name}-{key.hexdigest()[:16]}.so"
    if target.exists():
        return target
    BUILT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BUILT) as folder:
        made = Path(folder) / target.name
        done = subprocess.run([*command, str(source), "-o", str(made)], capture_output=True, text=True)
        if done.returncode:
            said = f"{shlex.join(done.args)} said:\n{done.stderr}"
            raise RuntimeError(f"the benchmarks need a C compiler (CC names another one); {said}")
        made.replace(target)  # another process may build the same: either file is whole
    return target


def empty_type() -> type[Any]:
    """The type with the empty `store` of csrc/empty.c."""
    path = build("empty")
    loader = importlib.machinery.ExtensionFileLoader("empty", str(path))
    spec = importlib.util.spec_from_file_location("empty", path, loader=loader)
    assert spec is not None
    module: ModuleType = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    made: type[Any] = module.Empty
    return made


class Reader:
    """The ways to read of csrc/read.c, over the whole 512-byte steps inside one buffer."""

    WAYS = ("one", "one_ahead", "one_far_ahead", "two", "two_ahead", "four")

    def __init__(self, address: int, nbytes: int) -> None:
        self._library = ctypes.CDLL(str(build("read")))
        start = -(-address // 64) * 64
        self._start = ctypes.c_void_p(start)
        self._lines = ctypes.c_size_t((address + nbytes - start) // 512 * 8)
        self.nbytes = self._lines.value * 64

    def read(self, way: str) -> int:
        """Reads the buffer once; returns the XOR of its 64-bit words (of all lines that were read)."""
        function = getattr(self._library, f"read_{way}")
        function.restype = ctypes.c_uint64
        return int(function(self._start, self._lines))
