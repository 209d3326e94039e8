"""Exporter of exporter.c, compiled when this is imported. Python code cannot give such buffers."""

from __future__ import annotations

import importlib.util
import os
import shlex
import subprocess
import sysconfig
import tempfile
from pathlib import Path
from typing import Any


def _load() -> Any:
    source = Path(__file__).with_suffix(".c")
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "exporter" + str(sysconfig.get_config_var("EXT_SUFFIX")))
        include = sysconfig.get_path("include")
        words = [*compiler, "-shared", "-fPIC", "-O1", f"-I{include}", str(source), "-o", path]
        subprocess.run(words, check=True)
        spec = importlib.util.spec_from_file_location("exporter", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module


Exporter: Any = _load().Exporter
