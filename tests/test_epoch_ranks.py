"""EpochLogger on several ranks, and its batches: threads stand for the ranks here."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from rows import content, dump
from thread_ranks import ThreadComm, on_ranks

from spinstat import EpochLogger
from spinstat.exchange import KeyMismatchError
from spinstat.row import Row


class TestSeveralRanks:
    def test_all_values_count_wherever_they_were_stored_d1(self, output_dir: str) -> None:
        def program(comm: ThreadComm) -> list[object]:
            logger = EpochLogger(output_dir, comm=comm, quiet=True)
            for i in range(0 if comm.rank == 1 else 3 + comm.rank):
                logger.store(Ret=100 * comm.rank + i)
            # Options change what is shown and never what is sent (D3).
            logger.log_tabular("Ret", with_min_and_max=comm.rank == 0)
            row = list(logger.log_current_row.values())[:2]
            logger.dump_tabular()
            return row

        values = [0, 1, 2, 200, 201, 202, 203, 204]
        rows = on_ranks(3, program)
        assert rows[0] == rows[1] == rows[2] == pytest.approx([np.mean(values), np.std(values)], rel=1e-14)

    @pytest.mark.parametrize("batch", [False, True])
    def test_keys_in_another_order_are_an_error_on_all_ranks_and_the_next_row_is_right_d2(
        self, output_dir: str, batch: bool
    ) -> None:
        def program(comm: ThreadComm) -> str:
            logger = EpochLogger(output_dir, comm=comm, batch=batch, quiet=True)
            logger.log_tabular("Epoch", 0)
            logger.store(A=comm.rank + 1.0, B=comm.rank + 100.0)
            with pytest.raises(KeyMismatchError, match="the ranks are not in the same call") as caught:
                for key in ("A", "B") if comm.rank == 0 else ("B", "A"):
                    logger.log_tabular(key)
                logger.dump_tabular()
            assert (logger.log_current_row, logger.log_headers, logger.first_row) == ({}, [], True)
            assert dict(logger.epoch_dict) == {"Epoch": [], "A": [], "B": []}
            logger.log_tabular("Epoch", 1)
            logger.store(A=10.0 * comm.rank)
            logger.log_tabular("A")
            logger.dump_tabular()
            return str(caught.value)

        messages = on_ranks(2, program)
        assert messages[0] == messages[1]
        assert content(output_dir) == "Epoch\tAverageA\tStdA\n1\t5.0\t5.0\n"

    def test_a_mismatch_in_a_later_row_takes_back_only_its_columns(self, output_dir: str) -> None:
        def program(comm: ThreadComm) -> None:
            logger = EpochLogger(output_dir, comm=comm, quiet=True)
            logger.store(A=1.0)
            logger.log_tabular("A", average_only=True)
            logger.dump_tabular()
            logger.log_tabular("New", 1)
            with pytest.raises(KeyMismatchError):
                logger.get_stats("A") if comm.rank else logger.log_tabular("A")
            assert logger.log_headers == ["A"]
            logger.store(A=2.0)
            logger.log_tabular("A", average_only=True)
            logger.dump_tabular()

        on_ranks(2, program)
        assert content(output_dir) == "A\n1.0\n2.0\n"

    def test_rows_of_rank_0_alone_do_not_disturb_the_common_ones_d4(self, output_dir: str) -> None:
        def program(comm: ThreadComm) -> None:
            logger = EpochLogger(output_dir, comm=comm, quiet=True)
            for epoch in range(3):
                if comm.rank == 0:
                    logger.log_tabular("Note", f"before {epoch}")
                    logger.dump_tabular()
                logger.store(A=epoch)
                logger.log_tabular("A", average_only=True)
                logger.dump_tabular()

        on_ranks(2, program)
        assert content(output_dir) == ("Note\tA\nbefore 0\t\n\t0.0\nbefore 1\t\n\t1.0\nbefore 2\t\n\t2.0\n")

    def test_a_key_that_no_rank_has_is_one_warning_of_rank_0(self, output_dir: str) -> None:
        def program(comm: ThreadComm) -> None:
            logger = EpochLogger(output_dir, comm=comm, quiet=True)
            logger.log_tabular("A")

        with pytest.warns(UserWarning, match="'A'") as caught:
            on_ranks(3, program)
        assert len(caught) == 1

    def test_strict_keys_is_a_key_error_on_all_ranks(self, output_dir: str) -> None:
        def program(comm: ThreadComm) -> None:
            logger = EpochLogger(output_dir, comm=comm, strict_keys=True, quiet=True)
            if comm.rank == 1:
                logger.store(B=1.0)
            with pytest.raises(KeyError, match="'A'"):
                logger.log_tabular("A")
            logger.log_tabular("B")

        on_ranks(2, program)

    def test_it_tells_which_rank_is_far_off(self, output_dir: str) -> None:
        def program(comm: ThreadComm) -> Any:
            logger = EpochLogger(output_dir, comm=comm, quiet=True)
            if comm.rank != 1:
                logger.store(A=[comm.rank, comm.rank + 1])
            logger.log_tabular("A")
            info = logger.last_row_info["A"]
            return info.count, info.ranks_with_values, info.min_mean, info.min_mean_rank, info.max_mean_rank

        assert on_ranks(3, program) == [(4, 2, 0.5, 0, 2)] * 3


class TestBatch:
    def test_a_block_reduces_its_keys_in_one_collective(self, output_dir: str) -> None:
        def program(comm: ThreadComm) -> int:
            logger = EpochLogger(output_dir, comm=comm, quiet=True)
            for epoch in range(2):
                logger.store(A=comm.rank, B=2.0, C=3.0)
                with logger.batch():
                    logger.log_tabular("A", with_min_and_max=True)
                    logger.log_tabular("Epoch", epoch)
                    logger.log_tabular("B", average_only=True)
                assert list(logger.log_current_row.values()) == [0.5, 0.5, 1.0, 0.0, epoch, 2.0]
                logger.log_tabular("C", average_only=True)
                logger.dump_tabular()
            return comm.collectives

        assert on_ranks(2, program) == [4, 4]
        assert content(output_dir) == (
            "AverageA\tStdA\tMaxA\tMinA\tEpoch\tB\tC\n0.5\t0.5\t1.0\t0.0\t0\t2.0\t3.0\n0.5\t0.5\t1.0\t0.0\t1\t2.0\t3.0\n"
        )

    def test_batch_true_reduces_in_dump_tabular(self, output_dir: str) -> None:
        def program(comm: ThreadComm) -> int:
            logger = EpochLogger(output_dir, comm=comm, batch=True, quiet=True)
            for epoch in range(2):
                logger.store(A=comm.rank, B=2.0)
                logger.log_tabular("Epoch", epoch)
                logger.log_tabular("A")
                logger.log_tabular("B", average_only=True)
                logger.dump_tabular()
                assert list(logger.last_row_info) == ["A", "B"]
            return comm.collectives

        assert on_ranks(2, program) == [2, 2]
        assert content(output_dir) == "Epoch\tAverageA\tStdA\tB\n0\t0.5\t0.5\t2.0\n1\t0.5\t0.5\t2.0\n"

    def test_a_dump_within_the_block_reduces_there(self, output_dir: str) -> None:
        logger = EpochLogger(output_dir)
        with logger.batch():
            for value in (1.0, 2.0):
                logger.store(A=value)
                logger.log_tabular("A", average_only=True)
                logger.dump_tabular()
        assert content(output_dir) == "A\n1.0\n2.0\n"

    @pytest.mark.parametrize("always", [False, True])
    def test_reading_or_setting_the_row_in_between_says_why_not(self, output_dir: str, always: bool) -> None:
        logger = EpochLogger(output_dir, batch=always)
        logger.store(A=1.0)
        with logger.batch():
            logger.log_tabular("Epoch", 1)
            assert logger.log_current_row == {"Epoch": 1}
            logger.log_tabular("A", average_only=True)
            with pytest.raises(RuntimeError, match=r"log_current_row.*A.*batch"):
                dict(logger.log_current_row)
            with pytest.raises(RuntimeError, match=r"log_current_row.*A.*batch"):
                logger.log_current_row = {}
        assert logger.log_current_row == {"Epoch": 1, "A": 1.0}

    def test_a_key_is_closed_where_it_is_logged(self, output_dir: str) -> None:
        logger = EpochLogger(output_dir)
        logger.store(A=1.0)
        with logger.batch():
            logger.log_tabular("A", average_only=True)
            logger.store(A=100.0)
            with pytest.raises(AssertionError, match="'A'"):
                logger.log_tabular("A", average_only=True)
        assert logger.log_current_row == {"A": 1.0}
        assert logger.epoch_dict["A"] == [100.0]

    def test_an_empty_key_is_nan_with_a_warning_at_the_end_c1(self, output_dir: str) -> None:
        logger = EpochLogger(output_dir)
        logger.store(B=1.0)
        with pytest.warns(UserWarning, match="'A'.*Keys with values: B"), logger.batch():
            logger.log_tabular("A", average_only=True)
            logger.log_tabular("B", average_only=True)
        logger.dump_tabular()
        assert content(output_dir) == "A\tB\nnan\t1.0\n"

    def test_strict_keys_is_a_key_error_at_the_end_and_the_other_keys_stay_c1(self, output_dir: str) -> None:
        logger = EpochLogger(output_dir, strict_keys=True)
        logger.store(B=1.0)
        with pytest.raises(KeyError, match="'A'"), logger.batch():
            logger.log_tabular("A")
            logger.log_tabular("B", average_only=True)
        logger.dump_tabular()
        assert content(output_dir) == "B\n1.0\n"

    def test_a_block_that_raises_drops_the_row(self, output_dir: str) -> None:
        logger = EpochLogger(output_dir)
        logger.store(A=1.0)
        with pytest.raises(ZeroDivisionError), logger.batch():
            logger.log_tabular("A")
            raise ZeroDivisionError
        assert (logger.log_current_row, logger.log_headers) == ({}, [])
        logger.store(A=2.0)
        logger.log_tabular("A", average_only=True)
        logger.dump_tabular()
        assert content(output_dir) == "A\n2.0\n"

    @pytest.mark.parametrize("dumped", [False, True])
    def test_a_block_of_explicit_values_that_raises_drops_the_row(
        self, output_dir: str, dumped: bool
    ) -> None:
        logger = EpochLogger(output_dir)
        with pytest.raises(ZeroDivisionError), logger.batch():
            if dumped:
                dump(logger, Epoch=0)
            logger.log_tabular("Epoch", 1)
            raise ZeroDivisionError
        assert logger.log_current_row == {}
        dump(logger, Epoch=2)
        assert content(output_dir) == ("Epoch\n0\n2\n" if dumped else "Epoch\n2\n")

    @pytest.mark.parametrize("always", [False, True])
    def test_an_interrupted_reduction_drops_the_row(
        self, output_dir: str, monkeypatch: pytest.MonkeyPatch, always: bool
    ) -> None:
        logger = EpochLogger(output_dir, batch=always)

        def interrupted(*arguments: object) -> None:
            raise KeyboardInterrupt

        logger.store(A=1.0)
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(logger, "_reduce", interrupted)
            with nullcontext() if always else logger.batch():
                logger.log_tabular("Epoch", 0)
                logger.log_tabular("A")
                logger.dump_tabular() if always else None
        assert (logger.log_current_row, logger.log_headers) == ({}, [])
        dump(logger, Epoch=1)
        assert content(output_dir) == "Epoch\n1\n"

    def test_a_block_in_a_block_is_refused(self, output_dir: str) -> None:
        logger = EpochLogger(output_dir)
        with logger.batch(), pytest.raises(RuntimeError, match="in a batch already"), logger.batch():
            pass

    def test_unequal_numbers_of_keys_are_an_error_on_all_ranks(self, output_dir: str) -> None:
        def program(comm: ThreadComm) -> None:
            logger = EpochLogger(output_dir, comm=comm, batch=True, quiet=True)
            logger.store(A=1.0, B=2.0)
            logger.log_tabular("A")
            if comm.rank == 1:
                logger.log_tabular("B")
            with pytest.raises(KeyMismatchError):
                logger.dump_tabular()
            logger.store(A=5.0)
            logger.log_tabular("A", average_only=True)
            logger.dump_tabular()

        on_ranks(2, program)
        assert content(output_dir) == "A\n5.0\n"


class Interrupted:
    """A sink during whose first row Ctrl-C is pressed."""

    def write(self, row: Row) -> None:
        if row.number == 0:
            raise KeyboardInterrupt

    def close(self) -> None:
        pass


class TestErrorsOfOneRank:
    @pytest.mark.parametrize("new_keys", ["add", "error"])
    def test_a_key_that_one_rank_cannot_log_is_an_error_on_all(self, output_dir: str, new_keys: Any) -> None:
        def program(comm: ThreadComm) -> list[object]:
            logger = EpochLogger(output_dir, comm=comm, quiet=True, new_keys=new_keys)
            if comm.rank == 0 and new_keys == "add":
                logger.log_tabular("AverageA", 0)
            elif comm.rank == 0:
                logger.log_tabular("Epoch", 0)
                logger.dump_tabular()
            logger.store(A=comm.rank)
            with pytest.raises(KeyMismatchError, match=r"refused log_tabular.*(\n.*)*log_tabular\('A'\)"):
                logger.log_tabular("A")
            logger.store(A=5.0 + comm.rank)
            return list(logger.get_stats("A"))

        assert on_ranks(2, program) == [[5.5, 0.5]] * 2

    def test_a_key_that_no_rank_can_log_is_each_ranks_own_error(self, output_dir: str) -> None:
        def program(comm: ThreadComm) -> list[object]:
            logger = EpochLogger(output_dir, comm=comm, quiet=True)
            logger.store(A=1.0)
            logger.log_tabular("A")
            logger.store(A=2.0 + comm.rank)
            with pytest.raises(AssertionError, match="AverageA"):
                logger.log_tabular("A")
            logger.dump_tabular()
            logger.log_tabular("A")
            return list(logger.log_current_row.values())

        assert on_ranks(2, program) == [[2.5, 0.5]] * 2

    def test_assigned_values_that_one_rank_cannot_read_are_an_error_on_all(self, output_dir: str) -> None:
        def program(comm: ThreadComm) -> None:
            logger = EpochLogger(output_dir, comm=comm, quiet=True)
            logger.epoch_dict["A"] = ["no number"] if comm.rank else [1.0]
            with pytest.raises(KeyMismatchError):
                logger.log_tabular("A")

        on_ranks(2, program)

    @pytest.mark.parametrize("logged", [False, True])
    def test_a_batch_that_one_rank_leaves_by_an_error_is_an_error_on_all(
        self, output_dir: str, logged: bool
    ) -> None:
        def program(comm: ThreadComm) -> list[object]:
            logger = EpochLogger(output_dir, comm=comm, quiet=True)
            logger.store(A=1.0)
            if comm.rank == 1:
                with pytest.raises(ValueError, match="an error of the script") as raised, logger.batch():
                    if logged:
                        logger.log_tabular("A")
                    raise ValueError("an error of the script")
                assert "Other ranks" in raised.value.__notes__[0]
            else:
                with pytest.raises(KeyMismatchError, match="rank 1: refused batch"), logger.batch():
                    logger.log_tabular("A")
            logger.store(A=7.0 + comm.rank)
            logger.log_tabular("A")
            return list(logger.log_current_row.values())

        assert on_ranks(2, program) == [[7.5, 0.5]] * 2

    def test_quantiles_that_one_rank_alone_cannot_take_in_a_batch_hang_nobody(self, output_dir: str) -> None:
        def program(comm: ThreadComm) -> None:
            logger = EpochLogger(output_dir, comm=comm, quiet=True)
            logger.store(A=1.0)
            expected = ValueError if comm.rank else KeyMismatchError
            with pytest.raises(expected), logger.batch():
                logger.log_tabular("A", quantiles=(1.5,) if comm.rank else (0.5,))

        on_ranks(2, program)

    def test_a_batch_that_an_interrupt_ends_meets_nobody(self, output_dir: str) -> None:
        def program(comm: ThreadComm) -> None:
            logger = EpochLogger(output_dir, comm=comm, quiet=True)
            if comm.rank == 1:
                with pytest.raises(KeyboardInterrupt), logger.batch():
                    raise KeyboardInterrupt
                logger.store(A=4.0)
                with pytest.raises(KeyMismatchError):
                    logger.log_tabular("A")
            else:
                with pytest.raises(KeyMismatchError), logger.batch():
                    logger.log_tabular("A")

        on_ranks(2, program)

    @pytest.mark.parametrize("batch", [False, True])
    def test_an_interrupt_of_a_sink_ends_the_row_as_on_the_other_ranks(
        self, output_dir: str, batch: bool
    ) -> None:
        def program(comm: ThreadComm) -> None:
            interrupted = Interrupted()
            logger = EpochLogger(output_dir, comm=comm, quiet=True, batch=batch, sinks=[interrupted])
            for epoch in range(3):
                logger.store(A=epoch + comm.rank, Kept=1.0)
                logger.log_tabular("A", average_only=True)
                with pytest.raises(KeyboardInterrupt) if comm.rank == epoch == 0 else nullcontext():
                    logger.dump_tabular()
                assert logger._is_between_rows()

        on_ranks(2, program)
        assert content(output_dir) == "A\n0.5\n1.5\n2.5\n"

    def test_a_batch_that_all_ranks_left_by_an_error_precedes_a_right_one(self, output_dir: str) -> None:
        def program(comm: ThreadComm) -> list[object]:
            logger = EpochLogger(output_dir, comm=comm, quiet=True)
            logger.store(A=1.0)
            with pytest.raises(ValueError, match="of all"), logger.batch():
                logger.log_tabular("A")
                raise ValueError("of all")
            logger.store(A=7.0 + comm.rank)
            with logger.batch():
                logger.log_tabular("A")
            return list(logger.log_current_row.values())

        assert on_ranks(2, program) == [[7.5, 0.5]] * 2
