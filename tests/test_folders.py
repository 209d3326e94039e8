"""setup_logger_kwargs and DEFAULT_DATA_DIR: the original's names, and no two runs in one folder."""

from __future__ import annotations

import multiprocessing
import os
import re
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import RunPython
from thread_ranks import on_ranks

from spinstat import EpochLogger, folders, user_config
from spinstat.utils.run_utils import setup_logger_kwargs

NOON = time.struct_time((2026, 3, 4, 12, 5, 6, 2, 63, 0))


@pytest.fixture
def noon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time stands still."""
    monkeypatch.setattr(time, "localtime", lambda *_: NOON)


@pytest.mark.usefixtures("noon")
@pytest.mark.parametrize(
    ("seed", "datestamp", "folder"),
    [
        (None, False, "ppo"),
        (0, False, "ppo/ppo_s0"),
        (17, False, "ppo/ppo_s17"),
        (None, True, "2026-03-04_ppo"),
        (3, True, "2026-03-04_ppo/2026-03-04_12-05-06-ppo_s3"),
    ],
)
def test_folders_are_named_as_the_originals(
    tmp_path: Path, seed: int | None, datestamp: bool, folder: str
) -> None:
    kwargs = setup_logger_kwargs("ppo", seed, str(tmp_path), datestamp)
    assert kwargs == {"output_dir": os.path.join(tmp_path, folder), "exp_name": "ppo"}
    assert not os.path.exists(kwargs["output_dir"]), "the logger makes it"


def test_a_logger_takes_the_arguments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for datestamp in (False, True):
        with EpochLogger(**setup_logger_kwargs("ppo", 0, str(tmp_path), datestamp)) as logger:
            logger.log_tabular("Epoch", 0)
            logger.dump_tabular()
    assert "already exists" not in capsys.readouterr().out
    assert len(list(tmp_path.rglob("progress.txt"))) == 2


@pytest.mark.usefixtures("noon")
@pytest.mark.parametrize("seed", [None, 0])
def test_H2_runs_of_the_same_second_have_folders_of_their_own(tmp_path: Path, seed: int | None) -> None:
    first, second, third = (
        setup_logger_kwargs("ppo", seed, str(tmp_path), True)["output_dir"] for _ in range(3)
    )
    assert second == first + "_2" and third == first + "_3"
    os.makedirs(first + "_4")
    assert setup_logger_kwargs("ppo", seed, str(tmp_path), True)["output_dir"] == first + "_5", (
        "one that is there without a reservation is taken, too"
    )


def _name(data_dir: str, names: Any) -> None:
    names.put(setup_logger_kwargs("ppo", 0, data_dir, datestamp=True)["output_dir"])


def test_H2_processes_that_start_together_have_folders_of_their_own(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    names: Any = context.SimpleQueue()
    children = [context.Process(target=_name, args=(str(tmp_path), names)) for _ in range(8)]
    for child in children:
        child.start()
    found = [names.get() for _ in children]
    for child in children:
        child.join()
    assert len(set(found)) == 8


def test_H2_threads_have_folders_of_their_own(tmp_path: Path) -> None:
    found: list[str] = []
    threads = [
        threading.Thread(
            target=lambda: found.append(setup_logger_kwargs("a", 1, str(tmp_path), True)["output_dir"])
        )
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 8


def test_reservations_have_names_that_no_reader_of_run_folders_takes(tmp_path: Path) -> None:
    setup_logger_kwargs("model_tf1_save.pkl", None, str(tmp_path), True)
    (reservation,) = (path for path in tmp_path.rglob("*") if path.is_file())
    assert reservation.parent.name == ".spinstat"
    assert re.fullmatch(r"r-[0-9a-f]{32}", reservation.name)


@pytest.mark.usefixtures("noon")
def test_ranks_of_a_job_agree_on_the_name_that_rank_0_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = setup_logger_kwargs("ppo", 0, str(tmp_path), True)["output_dir"]
    own = threading.local()
    monkeypatch.setattr(folders, "choose_comm", lambda: own.comm)

    def program(comm: Any) -> str:
        own.comm = comm
        return setup_logger_kwargs("ppo", 0, str(tmp_path), True)["output_dir"]

    assert on_ranks(3, program) == [taken + "_2"] * 3


def test_ranks_of_a_job_fail_together_where_rank_0_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    own = threading.local()
    monkeypatch.setattr(folders, "choose_comm", lambda: own.comm)

    def program(comm: Any) -> str:
        own.comm = comm
        with pytest.raises(OSError) as raised:
            setup_logger_kwargs("ppo", 0, str(blocked), True)
        return str(raised.value)

    answers = on_ranks(2, program)
    assert "SPINSTAT_DATA_DIR" in answers[0] and "rank 0 could not" in answers[1]


def test_ranks_under_mpi_agree(run_python: RunPython, tmp_path: Path) -> None:
    program = """if True:
        import time
        from spinstat.utils.mpi_tools import mpi_fork, proc_id
        mpi_fork(2)
        time.localtime = lambda *_: time.struct_time((2026, 3, 4, 12, 5, 6 + proc_id(), 2, 63, 0))
        from spinstat.utils.run_utils import setup_logger_kwargs
        name = setup_logger_kwargs("ppo", 0, "data", datestamp=True)["output_dir"]
        print(f"{proc_id()} {name}\\n", end="", flush=True)
    """
    shown = run_python("-c", program).stdout.split()
    assert shown[1] == shown[3] == "data/2026-03-04_ppo/2026-03-04_12-05-06-ppo_s0"
    assert {shown[0], shown[2]} == {"0", "1"}


def test_torchrun_without_a_group_yet_makes_none(run_python: RunPython) -> None:
    program = """if True:
        import sys
        from spinstat.utils.run_utils import setup_logger_kwargs
        print(setup_logger_kwargs("ppo", None, "data", datestamp=True)["output_dir"])
        assert "torch" not in sys.modules
    """
    env = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1",
           "TORCHELASTIC_RUN_ID": "x"}  # fmt: skip
    assert "_ppo" in run_python("-c", program, env=env).stdout


def test_H12_the_default_data_dir_is_read_when_it_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPINSTAT_DATA_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    assert user_config.DEFAULT_DATA_DIR == str(tmp_path / "data")
    assert setup_logger_kwargs("a")["output_dir"] == str(tmp_path / "data" / "a")
    monkeypatch.setenv("SPINSTAT_DATA_DIR", "elsewhere")
    assert user_config.DEFAULT_DATA_DIR == str(tmp_path / "elsewhere")
    assert setup_logger_kwargs("a", 2)["output_dir"] == str(tmp_path / "elsewhere" / "a" / "a_s2")
    monkeypatch.setattr(user_config, "DEFAULT_DATA_DIR", "/assigned", raising=False)
    assert setup_logger_kwargs("a")["output_dir"] == "/assigned/a"
    assert setup_logger_kwargs("a", data_dir="/given")["output_dir"] == "/given/a"
    with pytest.raises(AttributeError, match="no attribute 'NO_SUCH'"):
        user_config.NO_SUCH  # noqa: B018


def test_the_datestamp_can_be_forced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_config, "FORCE_DATESTAMP", True)
    name = os.path.basename(setup_logger_kwargs("a", data_dir=str(tmp_path))["output_dir"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\d_a", name)


def test_a_data_dir_that_cannot_be_made_names_the_way_out(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    with pytest.raises(OSError, match=r"data_dir=\.\.\., or set SPINSTAT_DATA_DIR"):
        setup_logger_kwargs("a", 0, str(blocked), datestamp=True)
