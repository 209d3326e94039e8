"""Files that are replaced in one step."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from conftest import RunPython

from spinstat.files import move_aside, write_atomic


def test_a_file_is_made_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    write_atomic(path, "ä\n")
    assert path.read_bytes() == "ä\n".encode()
    write_atomic(str(path), b"\x00\xff")
    assert path.read_bytes() == b"\x00\xff"


def test_a_new_file_has_the_permissions_of_any_other_and_keeps_changed_ones(tmp_path: Path) -> None:
    path, usual = tmp_path / "file", tmp_path / "usual"
    usual.write_text("")
    write_atomic(path, "1")
    assert path.stat().st_mode == usual.stat().st_mode
    path.chmod(0o604)
    write_atomic(path, "2")
    assert path.stat().st_mode & 0o777 == 0o604


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_stays_and_what_it_leads_to_is_replaced(tmp_path: Path, exists: bool) -> None:
    target, link = tmp_path / "scratch" / "rows.txt", tmp_path / "run" / "progress.txt"
    target.parent.mkdir()
    link.parent.mkdir()
    if exists:
        target.write_text("before")
        target.chmod(0o604)
    link.symlink_to("../scratch/rows.txt")
    write_atomic(link, "after")
    assert link.is_symlink()
    assert target.read_text() == "after"
    assert not exists or target.stat().st_mode & 0o777 == 0o604
    assert os.listdir(target.parent) == ["rows.txt"]


def test_a_device_that_a_link_leads_to_is_left_alone(tmp_path: Path) -> None:
    link = tmp_path / "progress.txt"
    link.symlink_to(os.devnull)
    write_atomic(link, "rows")
    assert not link.is_symlink()
    assert link.read_text() == "rows"
    assert not os.path.isfile(os.devnull)


def test_a_failure_keeps_the_old_file_and_no_temporary(tmp_path: Path, run_python: RunPython) -> None:
    script = """
import resource, signal, sys
from spinstat.files import write_atomic
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
write_atomic(sys.argv[1], "old")
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
try:
    write_atomic(sys.argv[1], "new" * 1000)
except OSError as error:
    assert "what was there before is unchanged" in str(error) and sys.argv[1] in str(error), error
else:
    raise AssertionError("no error")
"""
    path = tmp_path / "file"
    run_python("-c", script, str(path))
    assert path.read_text() == "old"
    assert os.listdir(tmp_path / ".spinstat") == []


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit])
def test_an_interruption_passes_and_leaves_no_temporary_f5(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interruption: type[BaseException]
) -> None:
    path = tmp_path / "file"
    write_atomic(path, "old")

    def interrupted(descriptor: int) -> None:
        raise interruption

    with monkeypatch.context() as patch, pytest.raises(interruption):
        patch.setattr(os, "fsync", interrupted)
        write_atomic(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path / ".spinstat") == []


def test_a_temporary_has_a_name_that_no_reader_of_run_folders_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    replace = os.replace

    def watched(source: str, target: str) -> None:
        seen.append(source)
        replace(source, target)

    monkeypatch.setattr(os, "replace", watched)
    for name in ("model.pt", "vars.pkl", "progress.txt", "tf1_save"):
        write_atomic(tmp_path / name, "x")
    for source in seen:
        folder, name = os.path.split(source)
        assert folder == str(tmp_path / ".spinstat")
        assert "model" not in name
        assert "tf1_save" not in name
        assert not name.endswith((".pkl", "progress.txt"))
    assert len(set(seen)) == 4


def test_a_missing_folder_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere/file"):
        write_atomic(tmp_path / "nowhere" / "file", "x")


def test_a_file_moves_to_the_first_free_number(tmp_path: Path) -> None:
    (tmp_path / "file.1").write_text("taken")
    for number, text in ((2, "a"), (3, "b")):
        (tmp_path / "file").write_text(text)
        assert move_aside(str(tmp_path / "file")) == str(tmp_path / f"file.{number}")
        assert (tmp_path / f"file.{number}").read_text() == text
    assert not (tmp_path / "file").exists()
    with pytest.raises(FileNotFoundError):
        move_aside(str(tmp_path / "file"))
    assert not (tmp_path / "file.4").exists()
