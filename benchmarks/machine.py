"""Where a benchmark runs: the machine, the build, and one core with one thread for whatever is compared."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import re
import runpy
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

ROOT = Path(__file__).resolve().parent.parent

ONE_THREAD = "1, on one core; the libraries compared are held to 1 too (THREADS in benchmarks/machine.py)"

# The name by which each library is told how many threads it may have.
THREADS = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "POLARS_MAX_THREADS",
    "ARROW_CPU_COUNT", "TBB_NUM_THREADS", "RAYON_NUM_THREADS",
)  # fmt: skip
# A choice of kernels that is right for some other program would slow NumPy down.
SLOWING = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")


def settle(pin: bool = True) -> None:
    """One thread for every library, and with `pin` one core for this process.

    Libraries read their variables when they are loaded, and NumPy is by now: where a variable has to change,
    the program starts once more, in this same process.
    """
    wanted = {name: value for name, value in os.environ.items() if name not in SLOWING}
    wanted |= dict.fromkeys(THREADS, "1")
    if wanted != dict(os.environ):
        sys.stdout.flush()
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], wanted)
    if pin and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def unpin(cores: int) -> None:
    """Lets this process have `cores` cores, or all there are."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, set(range(os.cpu_count() or 1)[-cores:]))


def commit() -> str:
    """The commit of the working tree, marked where files differ from it."""
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=12"], cwd=ROOT, capture_output=True, text=True
    )
    return done.stdout.strip() if done.returncode == 0 else "unknown (no git here)"


def version(distribution: str) -> str:
    """Name and version of an installed distribution."""
    try:
        return f"{distribution} {importlib.metadata.version(distribution)}"
    except importlib.metadata.PackageNotFoundError:
        return f"{distribution} not installed"


def cpu_name() -> str:
    """The processor as the system names it."""
    return _cpu_field("model name|Model|cpu model") or platform.processor() or platform.machine()


def _cpu_field(names: str) -> str:
    info = Path("/proc/cpuinfo")
    if not info.exists():
        return ""
    found = re.search(rf"^(?:{names})\s*:\s*(.+)$", info.read_text(), re.MULTILINE)
    return found.group(1) if found else ""


def model() -> str:
    """The processor's name, with family and model where a name alone says little."""
    family, number = _cpu_field("cpu family"), _cpu_field("model")
    return f"{cpu_name()} (family {family}, model {number})" if family and number else cpu_name()


def description() -> str:
    """Processor, cores, the largest cache, the system, and how busy it was."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    cores = f"{os.cpu_count()} cores, {last_level_cache() >> 20} MiB of cache"
    return f"{model()}, {cores}, {platform.platform()}; load {load:.1f} at the start"


def slug() -> str:
    """A name for the machine's results: its processor and its cores."""
    text = re.sub(r"\((?:R|TM|C)\)|\b(?:CPU|Processor)\b|@.*", "", model())
    return f"{re.sub(r'[^a-z0-9]+', '-', text.lower()).strip('-')}-{os.cpu_count()}-cores"


def python() -> str:
    """The interpreter and what it was built with."""
    return f"{platform.python_version()}, {platform.python_compiler()}"


def kernel_target() -> str:
    """The kernels that spinstat has chosen here."""
    import spinstat

    return spinstat.target()


def extension_path() -> Path:
    """The file of spinstat's extension module."""
    import spinstat._core

    return Path(spinstat._core.__file__)


def extension_compiler() -> str:
    """The compiler that left its name in spinstat's extension module."""
    found = re.search(rb"GCC: \([^)\0]*\) [\d.]+|clang version [\d.]+", extension_path().read_bytes())
    return found.group().decode() if found else "an unnamed compiler"


def extension_flags() -> str:
    """The flags that setup.py gives the compiler, after those of this Python (CFLAGS)."""
    collected: dict[str, Any] = {}
    with (
        contextlib.chdir(ROOT),
        mock.patch("setuptools.setup", lambda **arguments: collected.update(arguments)),
        mock.patch("Cython.Build.cythonize", lambda extensions, **_: extensions),
        mock.patch("setuptools.command.build_ext.build_ext.build_extensions", lambda self: None),
    ):
        runpy.run_path("setup.py")
        command = collected["cmdclass"]["build_ext"]
        build = command.__new__(command)  # no __init__, which wants a whole distribution
        build.extensions, build.compiler = collected["ext_modules"], SimpleNamespace(compiler_type="unix")
        build.build_extensions()
    flags = " ".join(collected["ext_modules"][0].extra_compile_args)
    return f"{flags} (setup.py), after {sysconfig.get_config_var('CFLAGS')} (Python's own)"


def last_level_cache() -> int:
    """Bytes of the largest cache that the system reports by any of its ways, 32 MiB where it reports none."""
    found = [32 << 20]
    for index in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        size = re.fullmatch(r"(\d+)([KMG]?)", index.read_text().strip())
        if size:
            found.append(int(size[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[size[2]])
    for level in ("LEVEL3_CACHE_SIZE", "LEVEL4_CACHE_SIZE"):
        with contextlib.suppress(FileNotFoundError):  # a system without getconf
            done = subprocess.run(["getconf", level], capture_output=True, text=True)
            found.append(int(done.stdout) if done.stdout.strip().isdigit() else 0)
    return max(found)
