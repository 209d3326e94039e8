"""Run a target under atheris: python -m fuzz NAME --seconds N | --runs N [--seed N] [--found FOLDER]."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import tempfile
from pathlib import Path

import atheris

CORPUS = Path(__file__).resolve().parent.parent / "data" / "fuzz"


def main() -> None:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("target", choices=("buffers", "store", "files"))
    parser.add_argument("--seconds", type=int, default=0, help="how long; 0: no limit")
    parser.add_argument("--runs", type=int, default=-1, help="how many inputs; -1: no limit")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--found", help="folder for inputs that reach something new, and for failures")
    args = parser.parse_args()
    with atheris.instrument_imports(include=["spinstat"]):
        importlib.import_module("spinstat")
        target = importlib.import_module(f"fuzz.target_{args.target}")
    found = args.found or tempfile.mkdtemp(prefix="spinstat-fuzz-")
    os.makedirs(found, exist_ok=True)
    options = {
        "-max_total_time": args.seconds, "-runs": args.runs, "-seed": args.seed, "-timeout": 30,
        "-rss_limit_mb": 3000, "-max_len": 4096, "-len_control": 0,
        "-print_final_stats": 1,
    }  # fmt: skip
    words = [f"{name}={value}" for name, value in options.items()]
    print(f"{args.target}: seed {args.seed}, inputs go to {found}", flush=True)
    atheris.Setup(
        [sys.argv[0], *words, f"-artifact_prefix={found}/", found, str(CORPUS / args.target)], target.one
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main()
