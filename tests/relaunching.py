"""A training script whose runs are relaunched, and what these runs left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

TRAIN = """
import argparse, functools, json, sys
import numpy as np
from spinstat import EpochLogger

print("IMPORTED")

class Net:
    pass

def make_env(width):
    return width

def train(net, lr, hidden=(64,), table=None, env_fn=None, seed=0, act="relu", logger_kwargs=None, **more):
    logger = EpochLogger(**logger_kwargs)
    logger.save_config(locals())
    logger.log_tabular("Seed", seed)
    logger.dump_tabular()
    seen = [net, lr, hidden, table, env_fn(), seed, act, more]
    print("SEEN", __name__, *map(repr, seen), sep="|")

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default="runs/first")
    parser.add_argument("--lambda-env", action="store_true")
    args = parser.parse_args()
    env_fn = (lambda: 7) if args.lambda_env else functools.partial(make_env, 5)
    train(Net, np.float32(0.1), (1, (2,)), {1: Net}, env_fn, args.seed,
          logger_kwargs={"output_dir": args.out, "exp_name": "first"}, size=[1])
"""
SEEN = "__main__|<class '__main__.Net'>|np.float32(0.1)|(1, (2,))|{1: <class '__main__.Net'>}"


def seen(stdout: str) -> str:
    (line,) = [line for line in stdout.splitlines() if line.startswith("SEEN|")]
    return line.removeprefix("SEEN|")


def config(folder: Path) -> dict[str, Any]:
    found = json.loads((folder / "config.json").read_text())
    assert isinstance(found, dict)
    return found


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
