"""find_checkpoint: the newest whole files of a run, whatever has happened to the folder."""

from __future__ import annotations

import json
import os
import shutil
import threading
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
import torch

from spinstat import EpochLogger
from spinstat.checkpoint import find_checkpoint, list_checkpoints, verify_checkpoints


def save(logger: EpochLogger, value: float, itr: int | None = None) -> None:
    """A checkpoint with a state and a model."""
    logger.setup_pytorch_saver(torch.full((2,), value))
    logger.save_state({"value": value}, itr)


def values(folder: str, itr: Any = "last") -> tuple[float, float]:
    """What the files that are found hold."""
    found = find_checkpoint(folder, itr)
    return joblib.load(found.vars)["value"], torch.load(found.pytorch)[0].item()


def records(folder: str) -> list[Path]:
    return sorted(Path(folder, ".spinstat").glob("c*.json"), key=lambda path: int(path.stem[1:]))


@pytest.fixture
def run(output_dir: str) -> str:
    """A run with two checkpoints, 3 and then one without a number."""
    logger = EpochLogger(output_dir)
    save(logger, 3.0, 3)
    save(logger, 1.0)
    logger.close()
    return output_dir


@pytest.mark.parametrize(
    ("itr", "value"), [("last", 3.0), (-1, 3.0), (None, 1.0), (3, 3.0), (np.int64(3), 3.0), (3.0, 3.0)]
)
def test_F10_last_is_the_largest_number(run: str, itr: Any, value: float) -> None:
    assert values(run, itr) == (value, value)


def test_F10_last_is_the_one_without_a_number_where_none_has_one(output_dir: str) -> None:
    save(EpochLogger(output_dir), 2.0)
    assert values(output_dir) == (2.0, 2.0)
    assert find_checkpoint(output_dir).itr is None


def test_a_checkpoint_that_is_not_there_is_an_error_that_names_those_that_are(run: str) -> None:
    with pytest.raises(FileNotFoundError, match=r"checkpoint 7; there are: 3"):
        find_checkpoint(run, 7)


@pytest.mark.parametrize("itr", ["x", "newest", [3]])
def test_an_itr_that_is_none_is_a_value_error(run: str, itr: Any) -> None:
    with pytest.raises(ValueError, match="itr is a number, None or 'last'"):
        find_checkpoint(run, itr)


def test_a_folder_of_the_original_needs_no_records(run: str) -> None:
    shutil.rmtree(os.path.join(run, ".spinstat"))
    assert values(run) == (3.0, 3.0)
    assert values(run, None) == (1.0, 1.0)


def test_the_plain_names_are_found_where_they_are_as_recorded(run: str) -> None:
    found = find_checkpoint(run, 3)
    assert found.vars == os.path.join(run, "vars3.pkl")
    assert found.pytorch == os.path.join(run, "pyt_save", "model3.pt")


@pytest.mark.parametrize("name", ["vars3.pkl", "pyt_save/model3.pt"])
def test_a_plain_file_that_is_gone_is_found_in_the_work_folder(run: str, name: str) -> None:
    os.unlink(os.path.join(run, name))
    assert values(run) == (3.0, 3.0)


def test_an_older_plain_file_loses_against_the_newest_record(output_dir: str, tmp_path: Path) -> None:
    """As a kill leaves it between the commit of a checkpoint and the renewal of the plain names."""
    logger = EpochLogger(output_dir)
    save(logger, 1.0)
    old = tmp_path / "old"
    shutil.copytree(output_dir, old)
    save(logger, 2.0)
    shutil.copy2(old / "vars.pkl", os.path.join(output_dir, "new"))
    os.replace(os.path.join(output_dir, "new"), os.path.join(output_dir, "vars.pkl"))
    assert joblib.load(os.path.join(output_dir, "vars.pkl")) == {"value": 1.0}
    assert values(output_dir) == (2.0, 2.0)


def test_a_newer_plain_file_of_somebody_else_wins_with_a_warning(run: str) -> None:
    path = os.path.join(run, "vars3.pkl")
    os.unlink(path)
    joblib.dump({"value": 9.0}, path)
    with pytest.warns(UserWarning, match=r"vars3\.pkl is newer"):
        assert values(run) == (9.0, 3.0)


def test_a_plain_file_written_in_place_wins_over_its_record(run: str) -> None:
    """The original's joblib.dump writes into the file that is there, and so into the record's own."""
    joblib.dump({"value": 9.0}, os.path.join(run, "vars3.pkl"))
    assert values(run) == (9.0, 3.0)


def test_a_checkpoint_whose_files_are_damaged_gives_way_to_the_one_before(output_dir: str) -> None:
    logger = EpochLogger(output_dir)
    save(logger, 1.0)
    save(logger, 2.0)
    newest = records(output_dir)[-1]
    shutil.copytree(newest.with_suffix(""), Path(output_dir, ".spinstat", "c7"))
    damaged = json.loads(newest.read_text())
    damaged["files"]["vars.pkl"]["sha256"] = "0" * 64
    Path(output_dir, ".spinstat", "c7.json").write_text(json.dumps(damaged))
    assert values(output_dir) == (2.0, 2.0)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"itr": "", "time": 0, "files": {"vars.pkl": 3}}'])
def test_a_record_that_cannot_be_read_is_left_out_with_a_warning(run: str, text: str) -> None:
    records(run)[-1].write_text(text)
    with pytest.warns(UserWarning, match="is left out"):
        assert values(run, None) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("plain", "stored"),
    [
        ("../vars.pkl", "vars"),
        ("/etc/passwd", "vars"),
        ("tf1_save/../../x", "vars"),
        ("tf1_save//x", "vars"),
        ("progress.txt", "vars"),
        ("vars.pkl", "../c1/vars"),
        ("vars.pkl", "/etc/passwd"),
        ("vars.pkl", ".."),
    ],
)
def test_a_record_that_leads_out_of_the_folder_is_refused(run: str, plain: str, stored: str) -> None:
    path = records(run)[-1]
    record = json.loads(path.read_text())
    record["files"] = {plain: {**record["files"]["vars.pkl"], "stored": stored}}
    path.write_text(json.dumps(record))
    with pytest.warns(UserWarning, match="is left out"):
        find_checkpoint(run, None)


def test_a_stored_file_that_is_a_link_is_not_followed(run: str, tmp_path: Path) -> None:
    generation = records(run)[0].with_suffix("")
    outside = tmp_path / "outside"
    os.rename(generation / "vars", outside)
    os.symlink(outside, generation / "vars")
    os.unlink(os.path.join(run, "vars3.pkl"))
    assert find_checkpoint(run, 3).vars is None


def test_plain_files_are_links_so_that_a_checkpoint_takes_its_space_once(run: str) -> None:
    generation = records(run)[0].with_suffix("")
    assert os.path.samefile(generation / "vars", os.path.join(run, "vars3.pkl"))


def test_plain_files_are_copies_where_there_are_no_links(
    output_dir: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_link(*args: object, **kwargs: object) -> None:
        raise PermissionError("no links here")

    monkeypatch.setattr(os, "link", no_link)
    logger = EpochLogger(output_dir)
    save(logger, 1.0)
    save(logger, 2.0)
    assert values(output_dir) == (2.0, 2.0)
    generation = records(output_dir)[-1].with_suffix("")
    assert not os.path.samefile(generation / "vars", os.path.join(output_dir, "vars.pkl"))


def test_the_checkpoints_of_a_run_are_listed(run: str) -> None:
    first, second = list_checkpoints(run)
    assert (first.rank, first.itr, second.itr) == (0, 3, None)
    assert first.names == ("vars3.pkl", "pyt_save/model3.pt") and first.rows == 0
    assert first.number < second.number and first.time <= second.time and first.size > 1000
    assert verify_checkpoints(run) == []


def test_a_folder_without_checkpoints_lists_none(tmp_path: Path) -> None:
    assert list_checkpoints(tmp_path) == [] and verify_checkpoints(tmp_path) == []


def test_what_is_not_as_it_was_saved_is_told(run: str) -> None:
    joblib.dump("mine", os.path.join(run, "vars3.pkl"))
    stored, plain = verify_checkpoints(run)
    assert "vars" in stored and "bytes" in stored
    assert plain.endswith("vars3.pkl is not what the last checkpoint has saved")
    os.unlink(os.path.join(run, "vars3.pkl"))
    assert "vars3.pkl is missing" in verify_checkpoints(run)[-1]


def test_nothing_of_the_folder_is_run_by_looking_at_it(output_dir: str, tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "exploded"),)

    EpochLogger(output_dir).save_state({"bomb": Bomb()})
    list_checkpoints(output_dir)
    verify_checkpoints(output_dir)
    find_checkpoint(output_dir)
    assert not (tmp_path / "exploded").exists()


@pytest.mark.filterwarnings("error")
def test_a_run_that_is_saving_can_be_read(output_dir: str) -> None:
    logger = EpochLogger(output_dir, quiet=True)
    save(logger, 0.0)
    stop = threading.Event()
    seen: list[float] = []

    def write() -> None:
        value = 0.0
        while not stop.is_set():
            value += 1.0
            save(logger, value)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        while len(set(seen)) < 40:
            seen.append(joblib.load(find_checkpoint(output_dir).vars)["value"])
    finally:
        stop.set()
        writer.join()
    assert seen == sorted(seen)
