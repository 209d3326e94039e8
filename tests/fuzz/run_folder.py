"""A run folder with all that a logger writes, and changes of it that bytes choose."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cores
import gymnasium
import torch

from spinstat import EpochLogger

from .draw import Draw

Files = dict[str, Callable[[str], None]]  # by name in the folder: what makes the file at a path

TOKENS = (
    b"\t", b"\n", b"\r\n", b"\0", b"nan", b"inf", b"-", b"1e999", b"1_0", b"\xff\xfe", b"\xef\xbb\xbf", b'"',
    b"{", b"[", b"]", b"}", b",", b":", b"Epoch", b"Loss\tLoss\tLoss", b"\xe2\x80\xa8", b"\x1b[31m",
    b"[" * 5000, b'{"a":' * 3000, b"9" * 5000, b"-1", b"null", b"true", b"../", b"/etc/passwd", b"\\ud800",
    b"\\n", b"\t" * 300, b"a" * 300,
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 10**30, -(10**30), 10**4400, 1e308, float("inf"), -float("inf"), float("nan"), "",
    "..", "/", "x", "../../x", "\ud800", "\0", "a" * 300, "9" * 5000, [], {}, [[]], [None], {"": None},
    {"$call": 1}, {"$call": {"of": "os:system", "args": ["true"]}},
    {"$object": "os:system"}, {"$object": "\0:x"},
    {"$unrecorded": 1}, {"$array": {}}, "١٢", "vars" + "9" * 5000 + ".pkl", "tf1_save", "vars-1.pkl",
    "CartPole-v1", "c1.json", 2**63, 1.5, "torch.nn:Linear", "é", "rank1",
)  # fmt: skip


def train(lr: float, sizes: list[int], output_dir: str) -> None:
    """The run: three rows, two checkpoints with models and environment."""
    model = cores.ActorCritic(SPACES[0], SPACES[1], hidden_sizes=(2,), activation=torch.nn.ReLU)
    with EpochLogger(output_dir, exp_name="demo", quiet=True) as logger:
        logger.save_config({"lr": lr, "sizes": sizes, "model": torch.nn.Linear})
        logger.setup_pytorch_saver(
            model, safe=True, args=SPACES, kwargs={"hidden_sizes": (2,), "activation": torch.nn.ReLU}
        )
        for epoch in range(3):
            logger.store(Loss=[1.0 / (epoch + 1), 2.0], EpRet=epoch)
            env = gymnasium.make("CartPole-v1")
            logger.save_state({"epoch": epoch, "env": env}, 3 if epoch == 1 else None)
            logger.log_tabular("Epoch", epoch)
            logger.log_tabular("Loss", with_min_and_max=True)
            logger.log_tabular("EpRet")
            logger.log_tabular("Note", f"row {epoch}")
            logger.dump_tabular()


SPACES = (gymnasium.spaces.Box(-1.0, 1.0, (4,)), gymnasium.spaces.Discrete(2))


@functools.lru_cache(maxsize=1)
def template(folder: str) -> dict[str, bytes]:
    """The files of the run; TensorFlow's, which takes long to load, are made up."""
    train(0.5, [4, 4], folder)
    path = Path(folder)
    # Where this is run from a file, it holds how to call it again: here a record of that form.
    launch = json.loads((path / "launch.json").read_text())
    launch["program"] = {
        "words": ["python", "etc/hostname", "--lr", "0.5"], "cwd": "/", "path": "/", "module": None,
        "script": "/etc/hostname", "line": 3,
    }  # fmt: skip
    arguments = {"lr": 0.5, "sizes": [4, {"$tuple": [1]}], "output_dir": folder}
    arguments["act"] = {"$object": "torch.nn:ReLU"}
    launch["call"] = {
        "function": "fuzz.run_folder:train", "positional": [], "star": None, "double_star": None,
        "arguments": arguments,
    }  # fmt: skip
    (path / "launch.json").write_text(json.dumps(launch))
    return {
        str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()
    }


def change(whole: dict[str, bytes], draw: Draw) -> Files:
    """The files of a folder, some of them changed."""
    contents = dict(whole)
    special: Files = {}
    texts = [name for name, content in whole.items() if name.endswith((".json", ".txt"))]
    how = draw.integer(0, 7)
    if how == 0:  # the bytes are one file
        contents[draw.choice(texts)] = draw.rest()
    elif how == 1:
        contents = {"progress.csv" if draw.flag() else "progress.txt": draw.rest()}
    for _ in range(draw.integer(1, 4) if how > 1 else 0):
        if not contents:
            break
        name = draw.choice(sorted(texts if draw.flag() else whole))
        content = contents.get(name, b"")
        kind = draw.integer(0, 9)
        if kind < 5 and name.endswith(".json"):
            contents[name] = _json_edit(content, draw)
        elif kind < 8:
            contents[name] = _edit(content, draw)
        elif kind == 8:
            contents.pop(name, None)
        else:
            special[name] = draw.choice([os.mkdir, _link_out, _link_in, _pipe, os.mkdir])
    made: Files = {name: functools.partial(_write, content) for name, content in contents.items()}
    blocked = {name for name in made if any(name.startswith(f"{other}/") for other in special)}
    return {name: make for name, make in {**made, **special}.items() if name not in blocked}


def _write(content: bytes, path: str) -> None:
    with open(path, "wb") as file:
        file.write(content)


def _link_out(path: str) -> None:
    os.symlink("/etc/hostname", path)


def _link_in(path: str) -> None:
    os.symlink(os.path.basename(path) + ".other", path)


def _pipe(path: str) -> None:
    os.mkfifo(path)


def _edit(content: bytes, draw: Draw) -> bytes:
    """Cut, or with something put in at a place."""
    at = draw.integer(0, max(len(content), 1))
    token = draw.choice(TOKENS) if draw.flag() else draw.bytes(draw.integer(1, 8))
    end = draw.choice([at, at + len(token), at + draw.integer(0, 50), len(content)])
    return content[:at] + token + content[end:]


def _json_edit(content: bytes, draw: Draw) -> bytes:
    """With one value in it replaced, added or taken out."""
    try:
        whole = json.loads(content)
    except (ValueError, RecursionError):
        return _edit(content, draw)
    place: Any = whole
    for _ in range(draw.integer(0, 6)):
        inner = [value for value in _inside(place) if isinstance(value, (dict, list)) and value]
        if not inner:
            break
        place = draw.choice(inner)
    value = draw.choice(VALUES)
    if isinstance(place, dict) and place:
        key = draw.choice(list(place))
        how = draw.integer(0, 5)
        if how == 0:
            del place[key]
        elif how == 1 and isinstance(value, str):
            place[value] = place.pop(key)
        else:
            place[key] = value
    elif isinstance(place, list) and place:
        place[draw.integer(0, len(place) - 1)] = value
    else:
        whole = value
    if isinstance(value, int) and abs(value) > 10**4299:  # json refuses to write what it refuses to read
        return content.replace(b"0", b"9" * 4400, 1)
    return json.dumps(whole).encode()


def _inside(place: Any) -> list[Any]:
    if isinstance(place, dict):
        return list(place.values())
    return place if isinstance(place, list) else []
