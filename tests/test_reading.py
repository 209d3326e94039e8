"""Runs read back: whatever is in the file, and what was skipped."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from rows import dump

from spinstat import EpochLogger, Logger
from spinstat.grouping import find_members
from spinstat.plot import Run, read_run, read_runs


def run_of(folder: Path, text: str | bytes, name: str = "progress.txt", **config: object) -> Path:
    """A run folder with such a file."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
    if config:
        (folder / "config.json").write_text(json.dumps(config))
    return folder


def read(tmp_path: Path, text: str | bytes, name: str = "progress.txt") -> Run:
    return read_run(run_of(tmp_path / "run", text, name))


def lists(run: Run) -> dict[str, list[object]]:
    """The columns as lists, with None for nan."""
    return {
        name: [None if value != value else value for value in column.tolist()]
        for name, column in run.columns.items()
    }


def test_what_a_logger_wrote_is_read_back_exactly_while_it_is_open(output_dir: str) -> None:
    logger = EpochLogger(output_dir=output_dir, exp_name="ppo", quiet=True)
    logger.save_config({"seed": 3})
    for epoch in range(3):
        logger.store(EpRet=[0.1 * epoch, 1 / 3])
        logger.log_tabular("Epoch", epoch)
        logger.log_tabular("EpRet")
        logger.log_tabular("tab\there", epoch / 7)
        logger.dump_tabular()
    run = read_run(output_dir)
    assert run.names == ("Epoch", "AverageEpRet", "StdEpRet", "tab\there")
    assert run["Epoch"].dtype == np.int64
    assert run["Epoch"].tolist() == [0, 1, 2]
    assert run["tab\there"].tolist() == [0.0, 1 / 7, 2 / 7]
    assert run["AverageEpRet"].tolist() == run["Performance"].tolist()
    assert run["AverageEpRet"][2] == np.mean([0.2, 1 / 3])
    assert (run.config["seed"], run.exp_name, len(run), run.skipped) == (3, "ppo", 3, ())
    logger.close()


def test_a_column_that_came_later_is_nan_before(output_dir: str) -> None:
    logger = Logger(output_dir=output_dir, quiet=True)
    dump(logger, A=1)
    dump(logger, A=2, B=5)
    dump(logger)
    logger.close()
    run = read_run(output_dir)
    assert lists(run) == {"A": [1, 2, None], "B": [None, 5, None]}


@pytest.mark.parametrize("end", ["2\t3", "2", "2\t3.5\t", "\0\0\0\0"])
def test_a_torn_last_line_is_skipped_and_told(tmp_path: Path, end: str) -> None:
    run = read(tmp_path, f"A\tB\n1\t2\n{end}")
    assert lists(run) == {"A": [1], "B": [2]}
    assert run.skipped == ("line 3: does not end, so it may be half written: skipped",)


def test_every_prefix_of_a_file_gives_the_rows_that_are_whole_in_it(tmp_path: Path) -> None:
    text = "A\tB\n1\t2.5\n2\t3.5\n3\t4.5\n"
    for length in range(len(text) + 1):
        whole = text[:length].count("\n")
        run = read(tmp_path, text[:length])
        assert len(run) == max(whole - 1, 0)
        assert run.names == (("A", "B") if whole else ())
        if whole:
            assert run["B"].tolist() == [2.5, 3.5, 4.5][: whole - 1]


def test_a_header_in_the_middle_holds_for_the_lines_below_it(tmp_path: Path) -> None:
    run = read(tmp_path, "A\tB\n1\t2\nB\tC\tA\n3\t4\t5\nA\tB\n6\t7\n")
    assert lists(run) == {"A": [1, 5, 6], "B": [2, 3, 7], "C": [None, 4, None]}
    assert run.skipped == ("lines 3, 5: names the columns anew: holds for the lines below it",)


def test_text_cells_among_numbers_are_nan_and_told(tmp_path: Path) -> None:
    run = read(tmp_path, "A\tB\n1\t2\noops\t3\n4\t5\n")
    assert lists(run) == {"A": [1, None, 4], "B": [2, 3, 5]}
    assert run.skipped == ("line 3: the cell of 'A' is text, not a number: nan",)


def test_what_only_python_takes_for_a_number_is_text(tmp_path: Path) -> None:
    run = read(tmp_path, "A\tB\n1_0\t1\n2\t2\n3\t\u0663\n")
    assert lists(run) == {"A": [None, 2, 3], "B": [1, 2, None]}


def test_columns_of_texts_of_truth_and_of_numbers_have_their_types(tmp_path: Path) -> None:
    run = read(tmp_path, "T\tOk\tI\tF\tBig\tX\nab\tTrue\t1\t1\t99999999999999999999\tnan\n"
                         "\tFalse\t-2\t2.5\t1\t-inf\n")
    assert run["T"].tolist() == ["ab", ""]
    assert (run["Ok"].dtype, run["Ok"].tolist()) == (np.bool_, [True, False])
    assert (run["I"].dtype, run["I"].tolist()) == (np.int64, [1, -2])
    assert (run["F"].dtype, run["F"].tolist()) == (np.float64, [1.0, 2.5])
    assert run["Big"].tolist() == [1e20, 1.0]
    assert np.isnan(run["X"][0])
    assert run["X"][1] == -np.inf
    assert run.skipped == ()


def test_rows_of_other_lengths_give_what_they_have(tmp_path: Path) -> None:
    run = read(tmp_path, "A\tB\n1\n2\t3\t4\n5\t6\t\n\n7\t8\n")
    assert lists(run) == {"A": [1, 2, 5, 7], "B": [None, 3, 6, 8]}
    assert run.skipped == (
        "line 2: has fewer than its 2 cells: the others are blank",
        "line 3: has more than its 2 cells: the others are skipped",
        "line 5: empty: skipped",
    )


def test_many_lines_of_one_kind_are_one_note(tmp_path: Path) -> None:
    run = read(tmp_path, "A\tB\n" + "1\n" * 9)
    assert run.skipped == (
        "lines 2, 3, 4, 5, 6 and 4 more: has fewer than its 2 cells: the others are blank",
    )


def test_columns_of_the_same_name_are_all_kept(tmp_path: Path) -> None:
    run = read(tmp_path, "A\tA\tA\n1\t2\t3\n")
    assert lists(run) == {"A": [1], "A.1": [2], "A.2": [3]}
    assert len(run.skipped) == 2


@pytest.mark.parametrize("data", [b"A\tB\r\n1\t2.5\r\n", b"\xef\xbb\xbfA\tB\n1\t2.5\n"], ids=["crlf", "bom"])
def test_other_systems_line_ends_and_marks_are_no_part_of_a_cell(tmp_path: Path, data: bytes) -> None:
    assert lists(read(tmp_path, data)) == {"A": [1], "B": [2.5]}


@pytest.mark.parametrize("text", ["", "A\tB", "A\tB\n"], ids=["empty", "torn header", "header"])
def test_G5_a_file_without_rows_is_a_run_without_rows(tmp_path: Path, text: str) -> None:
    run = read(tmp_path, text)
    assert len(run) == 0
    assert all(len(column) == 0 for column in run.columns.values())


def test_the_csv_of_stable_baselines3_is_read(tmp_path: Path) -> None:
    text = (
        'time/iterations,rollout/ep_rew_mean,note\n1,,"a, ""b""\nc"\n2,21.5,x\n3,22.5,\n4,2'
    )  # its logger quotes text, and leaves blank what is not in a row
    run = read(tmp_path, text, "progress.csv")
    assert lists(run) == {
        "time/iterations": [1, 2, 3],
        "rollout/ep_rew_mean": [None, 21.5, 22.5],
        "note": ['a, "b"\nc', "x", ""],
    }
    assert [line.split(":")[0] for line in run.skipped] == ["line 6"]


def test_the_csv_of_omnisafe_is_read(tmp_path: Path) -> None:
    text = "Metrics/EpRet,Metrics/EpRet/Min,TotalEnvSteps\r\n-1.5,-2.0,20000\r\n0.5,0.25,40000\r\n"
    folder = run_of(tmp_path / "seed-000", text, "progress.csv", exp_name="PPOLag-{Point}", seed=0)
    run = read_run(folder)
    assert run["Metrics/EpRet"].tolist() == [-1.5, 0.5]
    assert run["TotalEnvSteps"].tolist() == [20000, 40000]
    assert run.exp_name == "PPOLag-{Point}"


def test_only_newlines_end_a_line(tmp_path: Path) -> None:
    assert lists(read(tmp_path, "A\tB\nx\x0cy\u2028z\t1\n")) == {"A": ["x\x0cy\u2028z"], "B": [1]}
    folder = run_of(tmp_path / "csv", 'A,B\n"x\x0cy\u2028z",1\n', "progress.csv")
    assert lists(read_run(folder)) == {"A": ["x\x0cy\u2028z"], "B": [1]}


def test_reading_goes_on_below_a_line_that_is_not_csv(tmp_path: Path) -> None:
    run = read(tmp_path, 'A,B\n1,"2"x\n3,4\n5,"6"\n', "progress.csv")
    assert lists(run) == {"A": [3, 5], "B": [4, 6]}
    assert [line.split(":")[0] for line in run.skipped] == ["line 2"]


def test_an_unknown_column_is_an_error_that_lists_those_there_are(tmp_path: Path) -> None:
    run = read(tmp_path, "Epoch\tLoss\n0\t1\n")
    with pytest.raises(KeyError, match=r"no column 'Lost'.*Epoch, Loss"):
        run["Lost"]


def test_a_column_read_alone_is_the_same(tmp_path: Path) -> None:
    folder = run_of(tmp_path / "run", "A\tB\tC\n1\tx\t3\n2\ty\t4\n")
    run = read_run(folder, columns=["C", "D"])
    assert (list(run.columns), run.names, len(run)) == (["C"], ("A", "B", "C"), 2)
    assert run["C"].tolist() == [3, 4]


@pytest.mark.parametrize("text", ['{"seed": 1', "[1]", "\xff"], ids=["torn", "a list", "no json"])
def test_a_configuration_that_is_none_is_told_and_the_rows_are_read(tmp_path: Path, text: str) -> None:
    folder = run_of(tmp_path / "run", "A\n1\n")
    (folder / "config.json").write_text(text, encoding="latin-1")
    run = read_run(folder)
    assert (run.config, len(run)) == ({}, 1)
    (told,) = run.skipped
    assert told.startswith("config.json: ")
    assert told.endswith(": skipped; the run is called 'exp' where it is given no other name")
    assert [member.group for member in find_members([str(folder)], None, False, ["A"])] == ["exp"]


def test_runs_are_found_at_any_depth_and_in_order(tmp_path: Path) -> None:
    for name in ("data/b/b_s1", "data/b/b_s0", "data/a", "data/.spinstat/x"):
        run_of(tmp_path / name, "A\n1\n")
    (tmp_path / "data/empty").mkdir()
    runs = read_runs(tmp_path / "data")
    assert [os.path.relpath(run.folder, tmp_path / "data") for run in runs] == ["a", "b/b_s0", "b/b_s1"]
    assert len(read_runs([tmp_path / "data/b", tmp_path / "data/a"])) == 3
    assert [run.folder for run in read_runs(str(tmp_path / "data/b/b_s"))] == [runs[1].folder, runs[2].folder]


def test_G3_a_name_in_the_current_folder_needs_no_slash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_of(tmp_path / "run1", "A\n1\n")
    monkeypatch.chdir(tmp_path)
    assert [run.folder for run in read_runs("run1")] == ["run1"]
    assert [run.folder for run in read_runs("run")] == ["run1"]


def test_G5_the_folders_that_were_searched_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nothing_like_it matches nothing"):
        read_runs(tmp_path / "nothing_like_it")
    with pytest.raises(FileNotFoundError, match="matches nothing"):
        read_runs(tmp_path / "no folder" / "run")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=f"searched: {tmp_path}/empty"):
        read_runs(tmp_path / "empty")
    with pytest.raises(FileNotFoundError, match=r"empty holds neither progress\.txt nor progress\.csv"):
        read_run(tmp_path / "empty")


def test_no_pandas_is_needed_and_frames_have_the_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = read(tmp_path, "A\tB\n1\tx\n2\t\n")
    frame = run.to_pandas()
    assert list(frame.columns) == ["A", "B"]
    assert frame["A"].tolist() == [1, 2]
    other = run.to_polars()
    assert other.to_dict(as_series=False) == {"A": [1, 2], "B": ["x", ""]}
    for name in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(ImportError, match=f"pip install {name}"):
            getattr(run, f"to_{name}")()
    assert len(read(tmp_path, "A\tB\n1\tx\n2\t\n")) == 2
