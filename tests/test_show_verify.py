"""python -m spinstat.run show and verify: what a folder is, and whether it is whole. No code of it runs."""

from __future__ import annotations

import io
import json
import os
import pickle
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from conftest import RunPython

from spinstat import EpochLogger
from spinstat.run import main


def make_run(output_dir: str) -> None:
    """Two rows, checkpoint 3 and one without a number."""
    with EpochLogger(output_dir, exp_name="demo", quiet=True) as logger:
        logger.save_config({"lr": 0.5, "sizes": (64, 64)})
        logger.setup_pytorch_saver(torch.nn.Linear(2, 1))
        for epoch in range(2):
            logger.log_tabular("Epoch", epoch)
            logger.log_tabular("Note", f"row {epoch}")
            logger.dump_tabular()
            logger.save_state({"epoch": epoch}, itr=3 if epoch == 0 else None)


@pytest.fixture
def run_dir(output_dir: str) -> str:
    make_run(output_dir)
    return output_dir


def shown(command: str, folder: str, capsys: pytest.CaptureFixture[str], status: int = 0) -> str:
    assert main([command, folder]) == status
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def test_show_tells_configuration_rows_checkpoints_and_versions(
    run_dir: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = shown("show", run_dir, capsys)
    parts = [
        f"Run folder {run_dir}", '"exp_name": "demo"', '"lr": 0.5', "Rows: 2 of 2 columns", "Epoch  1",
        "Note   row 1", "spinstat 0.1.0", "numpy", "torch", "function  ", "command   ", "number 3",
        "without a number", "goes on after 2 rows", "    pyt_save/model3.pt", "    vars.pkl",
        "  config.json, ",
    ]  # fmt: skip
    for part in parts:
        assert part in text
    assert ".spinstat" not in text


def test_both_work_from_a_shell(run_dir: str, run_python: RunPython) -> None:
    assert "Rows: 2" in run_python("-m", "spinstat.run", "show", run_dir).stdout
    done = run_python("-m", "spinstat.run", "verify", run_dir)
    assert re.fullmatch(r".* is as it was saved: 2 checkpoint\(s\) of \d+ bytes\n", done.stdout)
    Path(run_dir, "vars.pkl").write_bytes(b"")
    done = run_python("-m", "spinstat.run", "verify", run_dir, check=False)
    assert done.returncode == 1
    assert "vars.pkl is not what the last checkpoint has saved" in done.stdout


def stored(run_dir: str, name: str) -> Path:
    return next(path for path in sorted(Path(run_dir, ".spinstat").glob(f"c*/{name}")))


def rewrite(path: Path, content: bytes) -> None:
    """Write a file anew, so that its hard links keep what they have."""
    path.unlink()
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (lambda run: Path(run, "vars3.pkl").unlink(), "vars3.pkl is missing"),
        (lambda run: rewrite(Path(run, "pyt_save/model.pt"), b"x"), "model.pt is not what the last"),
        (lambda run: rewrite(stored(run, "torch"), b"x"), "torch has 1 bytes, not "),
        (
            lambda run: rewrite(stored(run, "vars"), stored(run, "vars").read_bytes()[:-1] + b"!"),
            "vars has another content",
        ),
        (lambda run: stored(run, "random").unlink(), "random: No such file"),
        (lambda run: Path(run, ".spinstat/c1.json").write_text("{"), "c1.json is left out"),
        (lambda run: Path(run, "config.json").write_text("{"), "config.json is not JSON"),
        (lambda run: Path(run, "launch.json").write_text("[]"), "launch.json holds no JSON object"),
    ],
    ids=[
        "plain file gone",
        "plain file changed",
        "size",
        "content",
        "stored file gone",
        "record",
        "config",
        "launch",
    ],
)
def test_verify_ends_with_1_and_says_what_differs(
    run_dir: str, capsys: pytest.CaptureFixture[str], damage: Callable[[str], object], complaint: str
) -> None:
    damage(run_dir)
    assert complaint in shown("verify", run_dir, capsys, status=1)


def test_a_folder_of_another_logger_has_nothing_to_verify(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pyt_save").mkdir()
    (tmp_path / "pyt_save" / "model.pt").write_bytes(b"old")
    (tmp_path / "progress.txt").write_text("A\tB\n1\t2\n3\t4\n5\t")
    assert "no checkpoint on record" in shown("verify", str(tmp_path), capsys)
    text = shown("show", str(tmp_path), capsys)
    assert "Started: not known" in text
    assert "Rows: 2 of 2 columns" in text  # the last line is torn
    assert "B  4" in text
    assert "pyt_save/model.pt, 3 bytes" in text


@pytest.mark.parametrize("command", ["show", "verify"])
def test_what_is_no_folder_ends_with_1(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert f"{tmp_path}/none is no folder" in shown(command, f"{tmp_path}/none", capsys, status=1)


class Bomb:
    """Pickled, it makes a file when it is unpickled."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (self.path,)


def test_neither_command_runs_code_of_the_folder(run_dir: str, tmp_path: Path, run_python: RunPython) -> None:
    """Pickles, module names in JSON files, Python files beside them: all would leave a folder."""
    exploded = str(tmp_path / "exploded")
    with EpochLogger(run_dir, quiet=True, resume=True) as logger:
        logger.save_state({"bomb": Bomb(exploded)}, itr=9)
    bomb = pickle.dumps(Bomb(exploded))
    for name in ("extra.pkl", "pyt_save/model77.pt"):
        Path(run_dir, name).write_bytes(bomb)
    torch.save(Bomb(exploded), buffer := io.BytesIO())
    Path(run_dir, "pyt_save/model78.pt").write_bytes(buffer.getvalue())
    source = f"import os\nos.mkdir({exploded!r})\n"
    for name in ("json.py", "torch.py", "sitecustomize.py", "bomb.py"):
        Path(run_dir, name).write_text(source)
    record = json.loads(Path(run_dir, "launch.json").read_text())
    record["call"] = {
        "function": "bomb:train",
        "arguments": {"$call": {"of": "os:mkdir", "args": [exploded]}},
    }
    Path(run_dir, "launch.json").write_text(json.dumps(record))
    for command in ("show", "verify"):
        run_python("-m", "spinstat.run", command, run_dir)
    assert not os.path.exists(exploded)


def test_neither_command_loads_a_framework(run_dir: str, run_python: RunPython) -> None:
    for command in ("show", "verify"):
        loaded = run_python(
            "-c",
            f"import sys; from spinstat.run import main; main([{command!r}, {run_dir!r}]); "
            "assert not {'torch', 'tensorflow', 'joblib', 'cloudpickle', 'gymnasium'} & set(sys.modules)",
        )
        assert loaded.stdout


@pytest.mark.parametrize(
    "name", ["config.json", "progress.txt", "launch.json", "vars.pkl", "pyt_save", ".spinstat"]
)
def test_a_link_out_of_the_folder_is_refused(
    run_dir: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    outside = tmp_path / "outside"
    shutil.move(Path(run_dir, name), outside)
    Path(run_dir, name).symlink_to(outside)
    secret = outside if outside.is_file() else outside / "secret"
    secret.write_text('{"secret": "hunter2"}\nhunter2\n')
    told = shown("verify", run_dir, capsys, status=1)
    assert f"{name} leads out of the folder" in told
    told = shown("show", run_dir, capsys, status=1)
    assert f"{name} leads out of the folder" in told
    assert "hunter2" not in told


def test_a_link_within_the_folder_is_followed(run_dir: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(run_dir, "config.json").rename(Path(run_dir, "config_1.json"))
    Path(run_dir, "config.json").symlink_to("config_1.json")
    assert '"lr": 0.5' in shown("show", run_dir, capsys)
    shown("verify", run_dir, capsys)


@pytest.mark.parametrize("plain", ["../escape.pkl", "/etc/passwd", "vars1.pkl/../../x", "tf1_save/../../x"])
def test_a_record_that_names_a_path_out_of_the_folder_is_refused(
    run_dir: str, capsys: pytest.CaptureFixture[str], plain: str
) -> None:
    path = Path(run_dir, ".spinstat", "c1.json")
    record = json.loads(path.read_text())
    record["files"][plain] = record["files"].pop("vars3.pkl")
    path.write_text(json.dumps(record))
    told = shown("verify", run_dir, capsys, status=1)
    assert "c1.json is left out" in told
    assert "is no file of a checkpoint" in told


def test_a_pipe_in_place_of_a_file_does_not_hang(run_dir: str, capsys: pytest.CaptureFixture[str]) -> None:
    os.unlink(f"{run_dir}/config.json")
    os.mkfifo(f"{run_dir}/config.json")
    for command in ("show", "verify"):
        assert "config.json is no ordinary file" in shown(command, run_dir, capsys, status=1)


def test_nothing_of_the_folder_moves_the_cursor_of_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = "\x1b[2Jx\x9b1m\r\u202e"
    (tmp_path / "progress.txt").write_text(f"A{evil}\n{evil}\n")
    (tmp_path / "config.json").write_text(json.dumps({evil: evil}))
    (tmp_path / "launch.json").write_text(
        json.dumps({"time": evil, "versions": {evil: evil}, "git": {"commit": evil}})
    )
    (tmp_path / f"{evil}.txt").write_text("")
    text = shown("show", str(tmp_path), capsys)
    assert "\\x1b[2Jx\\x9b1m" in text
    assert all(letter.isprintable() or letter == "\n" for letter in text)


@pytest.mark.parametrize(
    "content", ["", "{", "[" * 200_000, '{"program": 3, "call": [], "versions": null, "git": 1}', "\xff"]
)
def test_a_damaged_file_never_ends_in_a_traceback(
    run_dir: str, capsys: pytest.CaptureFixture[str], content: str
) -> None:
    for name in ("config.json", "launch.json"):
        Path(run_dir, name).write_bytes(content.encode("latin-1"))
    assert main(["show", run_dir]) in (0, 1)
    assert "Rows: 2" in capsys.readouterr().out
