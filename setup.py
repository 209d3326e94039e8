"""Builds the extension, and nothing else: all metadata is in pyproject.toml.

From the environment: SPINSTAT_DEBUG=1 (assertions, -O0 -g), SPINSTAT_SANITIZE=address,undefined (as
-fsanitize), SPINSTAT_WERROR=1 (warnings are errors).
"""

import os
import sys
from glob import glob

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

DEBUG = os.environ.get("SPINSTAT_DEBUG", "0") == "1"
SANITIZE = os.environ.get("SPINSTAT_SANITIZE", "")
WERROR = os.environ.get("SPINSTAT_WERROR", "0") == "1"


class Build(build_ext):
    """Gives each compiler its own spelling of the same flags."""

    def build_extensions(self) -> None:
        if self.compiler.compiler_type == "msvc":
            compile_args = ["/std:c11", "/fp:precise", "/Od" if DEBUG else "/O2"]
            compile_args += ["/WX"] if WERROR else []
            link_args = []
        else:
            # Contraction to fused multiply-adds would give each processor its own last bits.
            compile_args = ["-std=c11", "-ffp-contract=off", "-fno-fast-math", "-fvisibility=hidden"]
            # -O3 unrolls the loops over lanes; at -O2 gcc 12 keeps them in memory.
            compile_args += ["-O0", "-g"] if DEBUG else ["-O3", "-g0"]
            link_args = [] if sys.platform == "darwin" else ["-Wl,--exclude-libs,ALL"]
            if SANITIZE:
                compile_args += [f"-fsanitize={SANITIZE}", "-fno-omit-frame-pointer", "-fno-sanitize-recover"]
                link_args += [f"-fsanitize={SANITIZE}"]
            if WERROR:
                compile_args += ["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"]
        for extension in self.extensions:
            extension.extra_compile_args = compile_args
            extension.extra_link_args = link_args
        super().build_extensions()


core = Extension(
    "spinstat._core",
    ["spinstat/_core.pyx", *sorted(path for path in glob("csrc/*.c") if not path.endswith(".inc.c"))],
    include_dirs=["csrc"],
    depends=glob("csrc/*.h") + glob("csrc/*.inc.c") + glob("spinstat/*.pxi") + glob("spinstat/*.pxd"),
    define_macros=[] if DEBUG else [("NDEBUG", "1")],
)

setup(cmdclass={"build_ext": Build}, ext_modules=cythonize([core], language_level=3))
