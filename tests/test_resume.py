"""resume=True: which checkpoint a run goes on from, and what becomes of the file of rows."""

from __future__ import annotations

import os
import random
import shutil
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import RunPython

from spinstat import EpochLogger, Logger
from spinstat.comm import Comm


class Rank(Comm):
    """One of several ranks that do not communicate."""

    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size = rank, size

    def reduce(self, rows: Any) -> None:
        raise AssertionError("a collective")

    def allgather(self, data: bytes) -> list[bytes]:
        raise AssertionError("a collective")

    def allreduce(self, array: Any, op: object = "sum") -> None:
        raise AssertionError("a collective")

    def broadcast(self, array: Any, root: int = 0) -> None:
        raise AssertionError("a collective")

    def barrier(self) -> None:
        raise AssertionError("a collective")


def progress(folder: str, name: str = "progress.txt") -> str:
    with open(os.path.join(folder, name)) as file:
        return file.read()


def save_first(logger: EpochLogger, epoch: int, itr: int | None = None) -> None:
    """An epoch in the order of the documents' scripts."""
    logger.store(X=float(epoch))
    logger.save_state({"epoch": epoch}, itr)
    log(logger, epoch)


def log(logger: EpochLogger, epoch: int) -> None:
    logger.log_tabular("Epoch", epoch)
    logger.log_tabular("X", average_only=True)
    logger.dump_tabular()


def resumed(folder: str) -> tuple[EpochLogger, Any]:
    logger = EpochLogger(folder, quiet=True, resume=True)
    return logger, logger.load_state()


def test_F18_two_sessions_write_the_rows_of_one(output_dir: str, run_python: RunPython) -> None:
    program = """if True:
        import sys
        from spinstat import EpochLogger
        logger = EpochLogger(sys.argv[1], resume=True)
        state = logger.load_state()
        first = 0 if state is None else state["epoch"] + 1
        for epoch in range(first, first + 2):
            logger.store(X=float(epoch))
            logger.save_state({"epoch": epoch})
            logger.log_tabular("Epoch", epoch)
            logger.log_tabular("X", average_only=True)
            logger.dump_tabular()
    """
    run_python("-c", program, output_dir)
    run_python("-c", program, output_dir)
    assert progress(output_dir) == "Epoch\tX\n0\t0.0\n1\t1.0\n2\t2.0\n3\t3.0\n"


def test_without_a_run_there_is_nothing_to_load(output_dir: str) -> None:
    assert EpochLogger(output_dir).load_state() is None
    assert resumed(output_dir + "2")[1] is None


def test_C14_without_a_checkpoint_the_file_is_continued_as_it_stands(output_dir: str) -> None:
    for epoch in range(3):
        logger, state = resumed(output_dir) if epoch else (EpochLogger(output_dir), None)
        assert state is None
        if epoch == 2:
            break
        log_explicit(logger, epoch)
    assert progress(output_dir) == "Epoch\n0\n"
    assert progress(output_dir, "progress.txt.1") == "Epoch\n0\n1\n"


def log_explicit(logger: Logger, epoch: int) -> None:
    logger.log_tabular("Epoch", epoch)
    logger.dump_tabular()


def test_C14_a_script_that_never_asks_for_a_state_adds_rows_each_time(output_dir: str) -> None:
    for epoch in range(3):
        log_explicit(Logger(output_dir, resume=epoch > 0), epoch)
    assert progress(output_dir) == "Epoch\n0\n1\n2\n"


def test_a_checkpoint_saved_before_its_row_counts_once_the_row_is_dumped(output_dir: str) -> None:
    logger = EpochLogger(output_dir)
    save_first(logger, 0)
    logger.store(X=1.0)
    logger.save_state({"epoch": 1})
    logger.log_tabular("Epoch", 1)
    assert resumed(output_dir)[1] == {"epoch": 0}
    assert progress(output_dir) == "Epoch\tX\n0\t0.0\n"

    logger = resumed(output_dir)[0]
    save_first(logger, 1)
    assert resumed(output_dir)[1] == {"epoch": 1}
    assert progress(output_dir) == "Epoch\tX\n0\t0.0\n1\t1.0\n"


def test_a_checkpoint_saved_after_its_row_counts_at_once(output_dir: str) -> None:
    logger = EpochLogger(output_dir)
    logger.store(X=0.0)
    log(logger, 0)
    logger.save_state({"epoch": 0})
    logger.store(X=1.0)
    log(logger, 1)
    assert resumed(output_dir)[1] == {"epoch": 0}
    assert progress(output_dir) == "Epoch\tX\n0\t0.0\n"


def test_values_of_a_key_that_is_never_logged_do_not_make_a_checkpoint_wait(output_dir: str) -> None:
    logger = EpochLogger(output_dir)
    logger.store(X=0.0, Debug=1.0)
    log(logger, 0)
    logger.save_state({"epoch": 0})
    assert resumed(output_dir)[1] == {"epoch": 0}


def test_without_a_row_of_any_checkpoint_the_run_begins_where_it_did(output_dir: str) -> None:
    logger, state = resumed(output_dir)
    assert state is None
    logger.store(X=0.0)
    logger.save_state({"epoch": 0})
    logger.log_tabular("Epoch", 0)
    logger, state = resumed(output_dir)
    assert state is None and progress(output_dir) == ""
    save_first(logger, 0)
    assert progress(output_dir) == "Epoch\tX\n0\t0.0\n"


def test_rows_that_are_cut_without_a_checkpoint_are_kept_aside(output_dir: str) -> None:
    """A script that logs first, killed before its first save: it begins again, and so do its rows."""
    logger, _ = resumed(output_dir)
    logger.store(X=0.0)
    log(logger, 0)
    assert resumed(output_dir)[1] is None and progress(output_dir) == ""
    assert progress(output_dir, "progress.txt.1") == "Epoch\tX\n0\t0.0\n"


def test_columns_that_only_later_rows_had_go_with_them(output_dir: str) -> None:
    logger = EpochLogger(output_dir)
    save_first(logger, 0)
    logger.store(X=1.0)
    logger.log_tabular("Late", 5)
    log(logger, 1)
    assert progress(output_dir) == "Epoch\tX\tLate\n0\t0.0\t\n1\t1.0\t5\n"
    logger, state = resumed(output_dir)
    assert state == {"epoch": 0} and logger.log_headers == ["Epoch", "X"]
    save_first(logger, 1)
    assert progress(output_dir) == "Epoch\tX\n0\t0.0\n1\t1.0\n"


def test_numbered_checkpoints_resume_from_the_newest(output_dir: str) -> None:
    logger = EpochLogger(output_dir)
    for epoch in range(3):
        save_first(logger, epoch, itr=epoch * 10)
    log_explicit(logger, 3)
    logger = resumed(output_dir)[0]
    assert logger.last_checkpoint.vars == os.path.join(output_dir, "vars20.pkl")
    assert progress(output_dir).count("\n") == 4


def test_the_models_of_the_checkpoint_are_told(output_dir: str) -> None:
    logger = EpochLogger(output_dir)
    for epoch in range(2):
        logger.setup_pytorch_saver(torch.full((1,), float(epoch)))
        save_first(logger, epoch)
    logger.setup_pytorch_saver(torch.full((1,), 7.0))
    logger.store(X=1.0)
    logger.save_state({"epoch": 2})  # its row is never dumped
    logger, state = resumed(output_dir)
    assert state == {"epoch": 1}
    assert torch.load(logger.last_checkpoint.pytorch).item() == 1.0


def test_random_generators_go_on_where_they_were(output_dir: str) -> None:
    def draw() -> tuple[float, float, float, float]:
        return random.random(), random.gauss(0, 1), np.random.normal(), torch.rand(1).item()

    logger = EpochLogger(output_dir)
    draw()
    save_first(logger, 0)
    want = [draw() for _ in range(3)]
    resumed(output_dir)
    assert [draw() for _ in range(3)] == want


def test_generators_are_left_alone_where_there_is_nothing_to_load(output_dir: str) -> None:
    random.seed(4)
    before = random.getstate()
    resumed(output_dir)
    assert random.getstate() == before


def test_a_new_run_in_the_folder_does_not_go_on_from_the_old_one(output_dir: str) -> None:
    old = EpochLogger(output_dir)
    for epoch in range(3):
        save_first(old, epoch)
    new = EpochLogger(output_dir)
    new.store(X=0.0)
    new.save_state({"epoch": 0})  # killed before the row
    logger, state = resumed(output_dir)
    assert state is None and progress(output_dir) == ""
    save_first(logger, 0)
    assert resumed(output_dir)[1] == {"epoch": 0}


def test_a_damaged_checkpoint_gives_way_to_the_one_before_with_a_warning(output_dir: str) -> None:
    logger = EpochLogger(output_dir)
    save_first(logger, 0, 0)
    save_first(logger, 1, 1)
    newest = max(Path(output_dir, ".spinstat").glob("c*/vars"), key=lambda path: int(path.parent.name[1:]))
    newest.write_bytes(b"damaged")
    with pytest.warns(UserWarning, match="a checkpoint is left out"):
        assert resumed(output_dir)[1] == {"epoch": 0}
    assert progress(output_dir) == "Epoch\tX\n0\t0.0\n"


def test_a_state_that_could_not_be_pickled_at_all_resumes_with_the_models(output_dir: str) -> None:
    logger = EpochLogger(output_dir)
    logger.setup_pytorch_saver(torch.ones(1))
    logger.store(X=0.0)
    logger.save_state({"lock": threading.Lock()})
    log(logger, 0)
    with pytest.warns(UserWarning, match="there is no whole checkpoint.* without vars.pkl"):
        logger, state = resumed(output_dir)
    assert state == {}
    assert torch.load(logger.last_checkpoint.pytorch).item() == 1.0
    assert progress(output_dir).count("\n") == 2


def test_an_entry_that_is_never_pickled_does_not_stop_a_run_from_going_on(output_dir: str) -> None:
    logger = EpochLogger(output_dir)
    for epoch in range(3):
        logger.store(X=0.0)
        logger.save_state({"epoch": epoch, "lock": threading.Lock()}, epoch)
        log(logger, epoch)
    with pytest.warns(UserWarning, match="there is no whole checkpoint.* without 'lock' of vars2.pkl"):
        assert resumed(output_dir)[1] == {"epoch": 2}


def test_a_later_checkpoint_without_an_entry_does_not_replace_a_whole_one(output_dir: str) -> None:
    logger = EpochLogger(output_dir)
    for epoch in range(3):
        logger.store(X=0.0)
        logger.save_state({"epoch": epoch, "agent": threading.Lock() if epoch else "agent"})
        log(logger, epoch)
    with pytest.warns(UserWarning, match="row 3 is without 'agent' of vars.pkl; .* row 1"):
        assert resumed(output_dir)[1] == {"epoch": 0, "agent": "agent"}
    assert progress(output_dir) == "Epoch\tX\n0\t0.0\n"


def test_a_class_that_is_not_there_is_named(output_dir: str, run_python: RunPython) -> None:
    program = """if True:
        import sys, types
        module = types.ModuleType("vanished")
        exec("class Env: pass", module.__dict__)
        sys.modules["vanished"] = module
        from spinstat import EpochLogger
        EpochLogger(sys.argv[1]).save_state({"env": module.Env()})
    """
    run_python("-c", program, output_dir)
    with pytest.raises(ImportError, match="vanished"):
        resumed(output_dir)


def test_an_open_logger_finds_the_plain_names_that_a_killed_one_did_not_renew(output_dir: str) -> None:
    logger = EpochLogger(output_dir)
    save_first(logger, 0)
    os.unlink(os.path.join(output_dir, "vars.pkl"))
    resumed(output_dir)
    assert os.path.exists(os.path.join(output_dir, "vars.pkl"))


def test_rows_of_a_file_that_has_lost_some_are_continued_with_a_warning(output_dir: str) -> None:
    logger = EpochLogger(output_dir)
    save_first(logger, 0)
    save_first(logger, 1)
    logger.close()
    Path(output_dir, "progress.txt").write_text("Epoch\tX\n0\t0.0\n")
    with pytest.warns(UserWarning, match="with the checkpoint it had 3"):
        logger, state = resumed(output_dir)
    assert state == {"epoch": 1}
    save_first(logger, 2)
    assert progress(output_dir) == "Epoch\tX\n0\t0.0\n2\t2.0\n"


def ranks(folder: str, size: int, resume: bool) -> list[Logger]:
    return [Logger(folder, comm=Rank(rank, size), quiet=True, resume=resume) for rank in range(size)]


def epoch_on(loggers: list[Logger], epoch: int, savers: list[int], dumpers: list[int] | None = None) -> None:
    """An epoch saved before it is logged, by some of the ranks."""
    for rank, logger in enumerate(loggers):
        logger.log_tabular("Epoch", epoch)
        if rank in savers:
            logger.save_state({"epoch": epoch, "rank": rank})
    for rank, logger in enumerate(loggers):
        if dumpers is None or rank in dumpers:
            logger.dump_tabular()


def test_every_rank_goes_on_with_its_own_state(output_dir: str) -> None:
    loggers = ranks(output_dir, 3, resume=False)
    for epoch in range(4):
        epoch_on(loggers, epoch, [0, 1, 2])
    loggers = ranks(output_dir, 3, resume=True)
    assert [logger.load_state() for logger in loggers] == [{"epoch": 3, "rank": rank} for rank in range(3)]
    assert len({logger.last_checkpoint.vars for logger in loggers}) == 1
    epoch_on(loggers, 4, [0, 1, 2])
    assert [logger.load_state() for logger in ranks(output_dir, 3, resume=True)][2] == {"epoch": 4, "rank": 2}
    assert progress(output_dir) == "Epoch\n0\n1\n2\n3\n4\n"


@pytest.mark.parametrize("dumpers", [[0], [1], [0, 2], []])
def test_ranks_that_were_killed_one_row_apart_go_on_from_the_row_that_all_have(
    output_dir: str, dumpers: list[int]
) -> None:
    loggers = ranks(output_dir, 3, resume=False)
    for epoch in range(3):
        epoch_on(loggers, epoch, [0, 1, 2])
    epoch_on(loggers, 3, [0, 1, 2], dumpers)
    loggers = ranks(output_dir, 3, resume=True)
    assert [logger.load_state()["epoch"] for logger in loggers] == [2, 2, 2]
    assert progress(output_dir) == "Epoch\n0\n1\n2\n"
    epoch_on(loggers, 3, [0, 1, 2])
    assert [logger.load_state()["epoch"] for logger in ranks(output_dir, 3, resume=True)] == [3, 3, 3]


def test_what_a_rank_had_saved_after_the_row_that_all_go_on_from_is_not_gone_on_from_later(
    output_dir: str,
) -> None:
    loggers = ranks(output_dir, 2, resume=False)
    epoch_on(loggers, 0, [0, 1])
    epoch_on(loggers, 1, [0, 1], [0])  # rank 0 is one row ahead when they are killed
    loggers = ranks(output_dir, 2, resume=True)
    epoch_on(loggers, 1, [1])  # and now rank 1, which must not be taken for the other half of that
    assert [logger.load_state()["epoch"] for logger in ranks(output_dir, 2, resume=True)] == [0, 0]


def test_ranks_killed_while_one_had_not_saved_yet_go_on_from_the_row_before(output_dir: str) -> None:
    loggers = ranks(output_dir, 2, resume=False)
    epoch_on(loggers, 0, [0, 1])
    epoch_on(loggers, 1, [0], [])
    assert [logger.load_state()["epoch"] for logger in ranks(output_dir, 2, resume=True)] == [0, 0]


def test_where_rank_0_alone_saves_all_go_on_with_its_state_and_a_warning(output_dir: str) -> None:
    loggers = ranks(output_dir, 2, resume=False)
    epoch_on(loggers, 0, [0])
    for logger in ranks(output_dir, 2, resume=True):
        with pytest.warns(UserWarning, match="no state of each of the 2 ranks"):
            assert logger.load_state() == {"epoch": 0, "rank": 0}


def test_another_number_of_ranks_goes_on_with_the_state_of_rank_0(output_dir: str) -> None:
    loggers = ranks(output_dir, 2, resume=False)
    epoch_on(loggers, 0, [0, 1])
    for size in (1, 3):
        for logger in ranks(output_dir, size, resume=True):
            with pytest.warns(UserWarning, match=f"each of the {size} ranks"):
                assert logger.load_state() == {"epoch": 0, "rank": 0}


def test_all_ranks_go_on_from_the_newest_checkpoint_that_is_whole_on_each(output_dir: str) -> None:
    loggers = ranks(output_dir, 2, resume=False)
    for epoch in range(2):
        for rank, logger in enumerate(loggers):
            logger.log_tabular("Epoch", epoch)
            if epoch and rank:
                with pytest.warns(UserWarning, match="rank 1: .*'other'"):
                    logger.save_state({"epoch": epoch, "other": threading.Lock()})
            else:
                logger.save_state({"epoch": epoch, "other": None})
            logger.dump_tabular()
    for logger in ranks(output_dir, 2, resume=True):
        assert logger.load_state() == {"epoch": 0, "other": None}


@pytest.mark.parametrize("itr", [None, 1])
@pytest.mark.parametrize("last", [2, 1])
def test_a_save_of_rank_0_alone_does_not_part_it_from_the_others(
    output_dir: str, itr: int | None, last: int
) -> None:
    loggers = ranks(output_dir, 2, resume=False)
    for epoch in range(3):
        epoch_on(loggers, epoch, [0, 1] if epoch <= last else [0])
        if epoch == 1:
            loggers[0].save_state({"epoch": epoch, "rank": 0}, itr)  # the best so far
    loggers = ranks(output_dir, 2, resume=True)
    assert [logger.load_state() for logger in loggers] == [{"epoch": last, "rank": rank} for rank in (0, 1)]
    epoch_on(loggers, last + 1, [0, 1])
    loggers = ranks(output_dir, 2, resume=True)
    assert [logger.load_state()["epoch"] for logger in loggers] == [last + 1] * 2


def test_what_another_rank_than_0_could_not_save_is_told(output_dir: str) -> None:
    loggers = [Logger(output_dir, comm=Rank(rank, 2)) for rank in range(2)]
    loggers[0].save_state({"epoch": 0})
    with pytest.warns(UserWarning, match="^rank 1: Warning: could not pickle state_dict.*'agent'"):
        loggers[1].save_state({"epoch": 0, "agent": threading.Lock()})


def test_a_rank_that_has_no_folder_saves_nothing() -> None:
    logger = Logger(comm=Rank(1, 2), quiet=True)
    assert logger.save_state({"a": 1}) is None
    assert logger.last_checkpoint is None


def test_a_checkpoint_that_has_lost_its_files_does_not_stop_a_run_from_opening(output_dir: str) -> None:
    logger = EpochLogger(output_dir)
    save_first(logger, 0)
    shutil.rmtree(max(Path(output_dir, ".spinstat").glob("c*/")))
    os.unlink(os.path.join(output_dir, "vars.pkl"))
    with pytest.warns(UserWarning, match="left out"):
        logger, state = resumed(output_dir)
    assert state is None
    save_first(logger, 0)
    assert resumed(output_dir)[1] == {"epoch": 0}
