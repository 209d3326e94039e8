"""Loading with trust=False: hostile weights, links, records and env.json are errors that tell why."""

from __future__ import annotations

import json
import os
import re
import struct
from pathlib import Path
from typing import Any

import agents  # noqa: F401  registers an environment
import gymnasium
import numpy as np
import pytest
import torch
from untrusted_runs import forge, forge_env, make_model, save, weights_of

from spinstat.checkpoint import verify_checkpoints
from spinstat.policy import load_actor_critic, load_policy_and_env, run_policy
from spinstat.untrusted import UntrustedError

ONE = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}


def load(folder: str) -> Any:
    return load_actor_critic(folder, trust=False, allow=["cores"])


def as_file(header: object, data: bytes = b"\0" * 4) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


FILES = {
    "empty": b"",
    "short": b"\x08\0\0",
    "no header": struct.pack("<Q", 100),
    "a header as large as the disk": struct.pack("<Q", 2**63 - 1) + b"{}",
    "a header larger than allowed": struct.pack("<Q", 2**24 + 1) + b" " * (2**24 + 1),
    "a header of pickle": as_file(b"\x80\x04cos\nsystem\n."),
    "a header that is a list": as_file([]),
    "a deep header": as_file(b'{"a":' * 100_000),
    "no metadata": as_file({"a": ONE}),
    "metadata that is no text": as_file({"__metadata__": {"spinstat": {}}, "a": ONE}),
    "data missing": as_file({"__metadata__": {"spinstat": "{}"}, "a": ONE}, b""),
    "data left over": as_file({"__metadata__": {"spinstat": "{}"}, "a": ONE}, b"\0" * 8),
    "offsets backwards": as_file({"a": {**ONE, "data_offsets": [4, 0]}}),
    "offsets beyond": as_file({"a": {**ONE, "data_offsets": [0, 2**62]}}),
    "overlap": as_file({"a": ONE, "b": ONE}),
    "a shape that overflows": as_file({"a": {**ONE, "shape": [2**40, 2**40]}}),
    "a negative shape": as_file({"a": {**ONE, "shape": [-1]}}),
    "an unknown dtype": as_file({"a": {**ONE, "dtype": "OBJECT"}}),
    "torch.save's": b"PK\x03\x04" + b"\0" * 100,
}


@pytest.mark.parametrize("data", FILES.values(), ids=FILES)
def test_a_malformed_file_of_weights_is_an_error_that_names_it(output_dir: str, data: bytes) -> None:
    save(output_dir)
    weights_of(output_dir).unlink()
    weights_of(output_dir).write_bytes(data)
    Path(output_dir, ".spinstat").rename(Path(output_dir, "records"))  # or the record's own would be taken
    with pytest.raises(UntrustedError, match=r"weights\.safetensors"):
        load(output_dir)


def test_a_file_cut_anywhere_is_an_error(output_dir: str) -> None:
    save(output_dir)
    Path(output_dir, ".spinstat").rename(Path(output_dir, "records"))
    whole = weights_of(output_dir).read_bytes()
    for length in {*range(0, len(whole), 97), len(whole) - 1}:
        weights_of(output_dir).write_bytes(whole[:length])
        with pytest.raises(UntrustedError, match=r"weights\.safetensors"):
            load(output_dir)


def changed(name: str, part: torch.Tensor | None) -> dict[str, torch.Tensor]:
    """The weights of Tied, one of them another or, for None, missing."""
    tensors = {"a": torch.zeros(3), "b": torch.zeros(3), "short": torch.ones(2, dtype=torch.bfloat16),
               "count": torch.tensor(0)}  # fmt: skip
    tensors |= {} if part is None else {name: part}
    return {key: value for key, value in tensors.items() if part is not None or key != name}


WEIGHTS = {
    "another shape": ("a", torch.zeros(4), r"a has shape \(4,\) instead of shape \(3,\)"),
    "more dimensions": ("a", torch.zeros(1, 3), r"a has shape \(1, 3\)"),
    "another dtype": ("a", torch.zeros(3).double(), r"a has float64 and shape \(3,\) instead of float32"),
    "integers": ("short", torch.ones(2, dtype=torch.int64), "short has int64"),
    "missing": ("count", None, "missing: count"),
    "unexpected": ("../../x", torch.zeros(1), r"unexpected: \.\./\.\./x"),
    "a name with an escape": ("\x1b[2J", torch.zeros(1), r"unexpected: \\x1b\[2J$"),
    "a long name": ("y" * 10_000, torch.zeros(1), r"unexpected: y{200}\.\.\.$"),
    "none at all": ("", None, "missing: a, b, short, count"),
}


@pytest.mark.parametrize(("name", "part", "match"), WEIGHTS.values(), ids=WEIGHTS)
def test_weights_that_do_not_fit_the_class_are_told_one_by_one(
    output_dir: str, name: str, part: torch.Tensor | None, match: str
) -> None:
    tensors = changed(name, part) if name else {}
    forge(output_dir, tensors, **{"class": "cores:Tied"})
    with pytest.raises(UntrustedError, match=match):
        load(output_dir)


def test_many_differences_are_counted(output_dir: str) -> None:
    forge(output_dir, {f"w{number}": torch.zeros(1) for number in range(1000)})
    with pytest.raises(UntrustedError, match=r"unexpected: (w\d+, ){5}995 more"):
        load(output_dir)


# Links


@pytest.mark.parametrize("linked", ["pyt_save/weights.safetensors", "pyt_save", ".spinstat"])
def test_links_out_of_the_folder_are_refused(output_dir: str, tmp_path: Path, linked: str) -> None:
    save(output_dir)
    path = Path(output_dir, linked)
    path.rename(tmp_path / "outside")
    path.symlink_to(tmp_path / "outside")
    with pytest.raises(UntrustedError, match=r"links in .* are not followed"):
        load(output_dir)


def test_a_folder_that_is_itself_reached_by_a_link_loads(output_dir: str, tmp_path: Path) -> None:
    model = save(output_dir)
    (tmp_path / "link").symlink_to(output_dir)
    loaded = load(str(tmp_path / "link"))
    assert torch.equal(loaded.v_head.weight, model.v_head.weight)


@pytest.mark.parametrize("linked", ["c1", "c1/weights", "c1.json"])
@pytest.mark.filterwarnings("ignore:.*is left out")
def test_a_generation_behind_a_link_is_not_used(output_dir: str, tmp_path: Path, linked: str) -> None:
    save(output_dir)
    weights_of(output_dir).unlink()
    path = Path(output_dir, ".spinstat", linked)
    path.rename(tmp_path / "outside")
    path.symlink_to(tmp_path / "outside")
    with pytest.raises(FileNotFoundError, match=r"weights\.safetensors"):
        load(output_dir)


@pytest.mark.parametrize(
    "name", ["pyt_save/weights.safetensors", ".spinstat/c1.json", ".spinstat/c1/weights"]
)
@pytest.mark.filterwarnings("ignore:.*is left out")
def test_a_pipe_in_place_of_a_file_does_not_hang(output_dir: str, name: str) -> None:
    save(output_dir)
    weights_of(output_dir).unlink()
    path = Path(output_dir, name)
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    with pytest.raises((UntrustedError, FileNotFoundError), match=r"weights\.safetensors"):
        load(output_dir)


@pytest.mark.parametrize("stored", ["../../../../etc/passwd", "/etc/passwd", "..", "a/b", ""])
@pytest.mark.filterwarnings("ignore:.*is left out")
def test_a_record_that_names_a_path_outside_is_not_used(output_dir: str, stored: str) -> None:
    save(output_dir)
    weights_of(output_dir).unlink()
    record = Path(output_dir, ".spinstat", "c1.json")
    fields = json.loads(record.read_text())
    fields["files"]["pyt_save/weights.safetensors"]["stored"] = stored
    record.write_text(json.dumps(fields))
    with pytest.raises(FileNotFoundError, match=r"weights\.safetensors"):
        load(output_dir)


@pytest.mark.filterwarnings("ignore:.*is left out")
def test_a_record_nested_without_end_is_left_out(output_dir: str) -> None:
    model = save(output_dir)
    Path(output_dir, ".spinstat", "c1.json").write_text("[" * 200_000)
    assert torch.equal(load(output_dir).v_head.weight, model.v_head.weight)


def test_verifying_a_folder_reads_neither_pipes_nor_devices(output_dir: str) -> None:
    save(output_dir)
    path = Path(output_dir, "pyt_save", "model.pt")
    path.unlink()
    path.mkdir()
    (path / "endless").symlink_to("/dev/zero")
    os.mkfifo(path / "pipe")
    (problem,) = verify_checkpoints(output_dir)
    assert "model.pt is not what the last checkpoint has saved" in problem


# Environments


def reason(folder: str, *allow: str) -> str:
    """Why the environment of a run is not made."""
    env, get_action = load_policy_and_env(folder, trust=False, allow=["cores", *allow])
    assert env is None
    with pytest.raises(AssertionError, match="Environment not found!"):
        run_policy(env, get_action)
    return "\n".join(get_action.env_reasons)


def by_id(name: Any = "CartPole-v1", **changes: Any) -> dict[str, Any]:
    return {"library": "gymnasium", "id": name, "kwargs": {}, "max_episode_steps": None, **changes}


IDS = {
    "a module in the id": (by_id("marking:CartPole-v1"), "no plain id"),
    "a path in the id": (by_id("../CartPole-v1"), "no plain id"),
    "no text": (by_id(7), "'7' is no plain id"),
    "another library": (by_id(library="os"), "'os' is neither"),
    "no object": ([1], "neither gymnasium nor gym"),
    "an absolute path": (by_id(kwargs={"xml_file": "/etc/passwd"}), "may be a path.*'/etc/passwd'"),
    "a path upwards": (by_id(kwargs={"a": [{"b": ".."}]}), "may be a path"),
    "a module": (by_id(kwargs={"env_id": "marking:Net"}), "may be a path or name a module"),
    "a home": (by_id(kwargs={"a": "~root"}), "may be a path"),
    "no arguments": (by_id(kwargs=[]), "malformed"),
    "a limit that is text": (by_id(max_episode_steps="9"), "malformed"),
    "an unknown id": (by_id("NotThere-v0"), "has no NotThere-v0"),
    "arguments that it has not": (by_id(kwargs={"wings": 2}), "wings"),
}


@pytest.mark.parametrize(("entry", "match"), IDS.values(), ids=IDS)
def test_an_id_that_is_more_than_one_is_not_made(output_dir: str, entry: Any, match: str) -> None:
    text = reason(forge_env(output_dir, id=entry))
    assert re.search(match, text), text


def test_the_spec_the_factory_and_modules_of_env_json_run_nothing(
    output_dir: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = tmp_path / "imported"
    (tmp_path / "marked_env.py").write_text(f"import os\nos.mkdir({str(marker)!r})\n")
    monkeypatch.syspath_prepend(tmp_path)
    spec = {"id": "X-v0", "entry_point": "marked_env:Env", "kwargs": {}, "additional_wrappers": []}
    call = {"path": "os:mkdir", "args": [str(marker)], "kwargs": {}}
    modules = ["marked_env", 3, "x\x1b[2J"]
    forge_env(output_dir, spec=json.dumps(spec), factory=call, modules=modules, id=by_id("Marked-v0"))
    text = reason(output_dir)
    assert "not used without trust" in text
    assert "It may be one of marked_env, x\\x1b[2J, which allow does not have" in text
    assert not marker.exists()


@pytest.mark.filterwarnings("ignore:.*could not pickle state_dict")
def test_an_environment_of_another_package_needs_permission(output_dir: str) -> None:
    save(output_dir, env=gymnasium.make("AgentsLocked-v0", length=2))
    assert "if you trust that, give allow=['agents']" in reason(output_dir)
    env, _ = load_policy_and_env(output_dir, trust=False, allow=["cores", "agents"])
    assert env.unwrapped.length == 2


def test_an_environment_with_wrappers_is_left_to_the_caller(output_dir: str) -> None:
    env = gymnasium.wrappers.TransformReward(gymnasium.make("CartPole-v1"), float)
    save(output_dir, env=env)
    assert "wrappers: TransformReward. Make the environment yourself" in reason(output_dir)


@pytest.mark.parametrize(
    ("text", "match"),
    [("", "not JSON"), ("[]", "a list, not an object"), ("[" * 100_000, "not JSON"), ('{"id": NaN}', "NaN"),
     ('"' + "x" * 2**21 + '"', "more than the 1048576 bytes"), ("{}", "not described")],
    ids=["empty", "a list", "deep", "NaN", "huge", "nothing"],
)  # fmt: skip
def test_a_malformed_description_is_told(output_dir: str, text: str, match: str) -> None:
    save(output_dir)
    Path(output_dir, "env.json").write_text(text)
    assert match in reason(output_dir)


def test_a_description_behind_a_link_or_missing_is_told(output_dir: str, tmp_path: Path) -> None:
    save(output_dir)
    assert "there is no env.json" in reason(output_dir)
    (tmp_path / "outside.json").write_text(json.dumps({"id": by_id()}))
    Path(output_dir, "env.json").symlink_to(tmp_path / "outside.json")
    assert "is a link" in reason(output_dir)


def test_the_class_of_the_model_alone_is_what_must_be_allowed(output_dir: str) -> None:
    save(output_dir, env=gymnasium.make("CartPole-v1"))
    env, get_action = load_policy_and_env(output_dir, trust=False, allow="cores")
    obs, _ = env.reset(seed=1)
    assert get_action(obs) in (0, 1) and repr(make_model()) == repr(load(output_dir))


@pytest.mark.filterwarnings("ignore:.*has NaN in")
def test_bytes_changed_anywhere_give_other_numbers_or_an_error(output_dir: str) -> None:
    save(output_dir)
    Path(output_dir, ".spinstat").rename(Path(output_dir, "records"))
    whole = weights_of(output_dir).read_bytes()
    random = np.random.default_rng(5)
    outcomes = set()
    for _ in range(300):
        data = bytearray(whole)
        for place in random.integers(0, len(whole), random.integers(1, 4)):
            data[place] = random.integers(0, 256)
        weights_of(output_dir).write_bytes(data)
        try:
            outcomes.add(type(load(output_dir)).__name__)
        except UntrustedError as error:
            assert "weights.safetensors" in str(error)
            outcomes.add("error")
        except ModuleNotFoundError as error:
            assert "is not there: install" in str(error)
    assert outcomes == {"ActorCritic", "error"}
