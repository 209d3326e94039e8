"""Systems without what Linux has: hard links, locks, exchanges of folders, /tmp; and what the dead leave."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import joblib
import pytest
import torch
from rows import content, dump

from spinstat import EpochLogger, files
from spinstat.checkpoint import drafts, find_checkpoint, random_state, swap, verify_checkpoints
from spinstat.checkpoint.generations import STALE_AFTER, Shelf
from spinstat.checkpoint.resume import cut_rows


def refuse(code: int) -> Any:
    def refused(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    return refused


def save_twice(folder: str) -> EpochLogger:
    logger = EpochLogger(folder, quiet=True)
    for epoch in range(2):
        logger.save_state({"epoch": epoch})
    return logger


@pytest.fixture
def two_folders(tmp_path: Path) -> tuple[str, str]:
    for name in ("new", "target"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "which").write_text(name)
    return str(tmp_path / "new"), str(tmp_path / "target")


# Hard links and locks


def test_without_hard_links_checkpoints_are_copies(output_dir: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", refuse(errno.EPERM))
    save_twice(output_dir)
    assert joblib.load(os.path.join(output_dir, "vars.pkl")) == {"epoch": 1}
    assert os.stat(os.path.join(output_dir, "vars.pkl")).st_nlink == 1
    assert verify_checkpoints(output_dir) == []
    assert EpochLogger(output_dir, quiet=True, resume=True).load_state() == {"epoch": 1}


def test_without_hard_links_rows_that_are_cut_are_kept_in_a_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", refuse(errno.EPERM))
    path = tmp_path / "progress.txt"
    path.write_text("A\n1\n2\n")
    cut_rows(str(path), 2, ["A"], backup=True)
    assert (path.read_text(), (tmp_path / "progress.txt.1").read_text()) == ("A\n1\n", "A\n1\n2\n")


def test_a_file_that_cannot_be_kept_aside_is_not_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "progress.txt"
    path.write_text("A\n1\n2\n")
    monkeypatch.setattr(os, "link", refuse(errno.ENOENT))
    with pytest.raises(FileNotFoundError):
        cut_rows(str(path), 2, ["A"], backup=True)
    assert path.read_text() == "A\n1\n2\n"


@pytest.mark.parametrize("kind", ["no module", "no locks there"])
def test_without_locks_checkpoints_are_whole_and_nothing_unfinished_is_taken_for_abandoned(
    output_dir: str, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    locks = None if kind == "no module" else SimpleNamespace(
        flock=refuse(errno.ENOLCK), LOCK_SH=1, LOCK_NB=4, LOCK_EX=2
    )  # fmt: skip
    monkeypatch.setattr(drafts, "fcntl", locks)
    save_twice(output_dir)
    os.mkdir(os.path.join(output_dir, ".spinstat", "c99"))
    logger = EpochLogger(output_dir, quiet=True, resume=True)
    assert logger.load_state() == {"epoch": 1}
    logger.save_state({"epoch": 2})
    assert joblib.load(find_checkpoint(output_dir).vars) == {"epoch": 2}
    assert os.path.isdir(os.path.join(output_dir, ".spinstat", "c99"))


# Exchange of folders


@pytest.mark.parametrize("code", [errno.ENOSYS, errno.EINVAL, errno.EPERM, errno.EOPNOTSUPP])
def test_where_folders_cannot_be_exchanged_two_renames_do_it(
    two_folders: tuple[str, str], monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    import ctypes

    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: SimpleNamespace(renameat2=lambda *_: -1))
    monkeypatch.setattr(ctypes, "get_errno", lambda: code)
    swap.replace_folder(*two_folders)
    assert Path(two_folders[1], "which").read_text() == "new"
    assert os.listdir(os.path.dirname(two_folders[1])) == ["target"]


def test_a_system_without_the_call_is_noticed(
    two_folders: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import ctypes

    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: SimpleNamespace())
    assert swap.exchange(*two_folders) is False


def test_an_exchange_that_is_refused_is_an_error_and_changes_nothing(two_folders: tuple[str, str]) -> None:
    new, target = two_folders
    with pytest.raises(OSError, match="No such file"):
        swap.exchange(new + "-not-there", target)
    assert Path(target, "which").read_text() == "target"


def test_a_second_rename_that_fails_puts_the_old_folder_back(
    two_folders: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    new, target = two_folders
    rename = os.rename
    monkeypatch.setattr(swap, "exchange", lambda *_: False)
    monkeypatch.setattr(os, "rename", lambda a, b: refuse(errno.EIO)() if a == new else rename(a, b))
    with pytest.raises(OSError, match="error"):
        swap.replace_folder(new, target)
    assert Path(target, "which").read_text() == "target"


# Folders for temporary files


def test_without_tmp_the_default_folder_is_in_the_systems_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    isdir = os.path.isdir
    monkeypatch.setattr(os.path, "isdir", lambda path: path != "/tmp" and isdir(path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = files.make_default_folder()
    assert os.path.dirname(folder) == str(tmp_path / "experiments") and isdir(folder)


def test_a_default_folder_that_cannot_be_made_tells_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "makedirs", refuse(errno.EROFS))
    with pytest.raises(OSError, match=r"no folder for this run.*give output_dir"):
        files.make_default_folder()


def test_a_file_that_cannot_be_moved_aside_takes_no_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rows").write_text("x")
    monkeypatch.setattr(os, "replace", refuse(errno.EIO))
    with pytest.raises(OSError, match="error"):
        files.move_aside(str(tmp_path / "rows"))
    assert os.listdir(tmp_path) == ["rows"]


# What killed processes have left


def test_temporaries_are_cleared_once_they_are_old_and_their_process_is_gone(output_dir: str) -> None:
    logger = save_twice(output_dir)
    work = Path(output_dir, ".spinstat")
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    old = time.time() - 2 * STALE_AFTER
    kept = {f"tmp-{gone.pid}-new": None, f"tmp-{os.getpid()}-mine": old, "tmp-1-inits": old}
    for name, when in {**kept, f"tmp-{gone.pid}-old": old, f"tmp-{10**30}-nobodys": old}.items():
        (work / name).write_text("")
        if when is not None:
            os.utime(work / name, (when, when))
    Shelf(output_dir).clean()
    assert {path.name for path in work.glob("tmp-*")} == set(kept)
    logger.save_state({"epoch": 2})
    assert verify_checkpoints(output_dir) == []


# Generators of devices


def test_generators_of_cuda_devices_are_saved_and_those_that_are_there_restored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    states = [torch.arange(4, dtype=torch.uint8) + number for number in range(2)]
    given: dict[int, torch.Tensor] = {}
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_rng_state_all", lambda: states)
    monkeypatch.setattr(torch.cuda, "set_rng_state", lambda state, number: given.update({number: state}))
    random_state.restore_random_state(random_state.random_state())
    assert list(given) == [0] and torch.equal(given[0], states[0])


@pytest.mark.parametrize("text", ["{}", '{"python": 3}', '{"python": [3, [], null], "numpy": {}}', "nothing"])
def test_a_state_of_generators_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        random_state.restore_random_state(text)


# Odd files and values


def test_a_run_whose_progress_file_is_a_pipe_is_not_cut_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "progress.txt")
    cut_rows(str(tmp_path / "progress.txt"), 1, ["A"])


def test_rows_by_hand_that_cannot_be_written_show_what_they_are(output_dir: str) -> None:
    class Mute:
        def __str__(self) -> str:
            raise RuntimeError("no text")

    logger = EpochLogger(output_dir, quiet=True)
    logger.log_current_row["A"] = Mute()
    dump(logger, B=1)
    assert content(output_dir) == "B\tA\n1\t<Mute>\n"


