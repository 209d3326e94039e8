"""No row is lost: full disks, vanished folders, ends without close; and no descriptor is held."""

from __future__ import annotations

import gc
import io
import os
import shutil
from pathlib import Path

import pytest
from conftest import RunPython
from rows import content, dump

from spinstat import Logger
from spinstat.row import Row
from spinstat.writers import close_all


class BrokenFile(io.StringIO):
    """A file of the user's that takes nothing."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    def write(self, text: str) -> int:
        raise self._error


class TestNothingIsLost:
    def test_a_vanished_folder_keeps_the_rows_until_it_is_back(self, output_dir: str) -> None:
        logger = Logger(output_dir)
        dump(logger, A=0)
        os.rename(output_dir, output_dir + ".away")
        with pytest.warns(UserWarning, match="rows are kept in memory"):
            dump(logger, A=1)
        with pytest.warns(UserWarning, match="rows are kept in memory"):
            dump(logger, A=2, B=1)
        os.rename(output_dir + ".away", output_dir)
        dump(logger, A=3)
        assert content(output_dir) == "A\tB\n0\t\n1\t\n2\t1\n3\t\n"

    def test_a_folder_that_comes_back_as_a_copy_is_continued(self, output_dir: str) -> None:
        logger = Logger(output_dir)
        dump(logger, A=0)
        shutil.copytree(output_dir, output_dir + ".copy")
        shutil.rmtree(output_dir)
        with pytest.warns(UserWarning, match="the folder is not there any more"):
            dump(logger, A=1)
        os.rename(output_dir + ".copy", output_dir)
        logger.close()
        assert content(output_dir) == "A\n0\n1\n"

    def test_a_file_that_was_removed_begins_again_with_its_header(self, output_dir: str) -> None:
        logger = Logger(output_dir)
        dump(logger, A=0)
        os.unlink(f"{output_dir}/progress.txt")
        with pytest.warns(UserWarning, match="a new one begins"):
            dump(logger, A=1)
        dump(logger, A=2)
        assert content(output_dir) == "A\n1\n2\n"

    def test_a_file_of_somebody_else_in_its_place_is_not_touched(self, output_dir: str) -> None:
        logger = Logger(output_dir)
        dump(logger, A=0)
        path = Path(output_dir, "progress.txt")
        os.rename(path, path.with_name("mine"))
        path.write_text("Theirs\n1\n")
        with pytest.warns(UserWarning, match="another file has taken its place"):
            dump(logger, A=1)
        assert path.read_text() == "Theirs\n1\n"
        os.replace(path.with_name("mine"), path)
        logger.close()
        assert path.read_text() == "A\n0\n1\n"

    def test_close_raises_while_rows_are_left_and_works_later(self, output_dir: str) -> None:
        logger = Logger(output_dir)
        dump(logger, A=0)
        os.rename(output_dir, output_dir + ".away")
        with pytest.warns(UserWarning, match="kept in memory"):
            dump(logger, A=1)
        with pytest.raises(OSError, match=r"progress\.txt.*1 row is lost unless"):
            logger.close()
        os.rename(output_dir + ".away", output_dir)
        logger.close()
        assert content(output_dir) == "A\n0\n1\n"

    def test_a_row_that_a_file_of_the_users_cannot_take_is_not_there_twice(self, output_dir: str) -> None:
        logger = Logger(output_dir)
        own, logger.output_file = logger.output_file, BrokenFile(TypeError("a bytes-like object is required"))
        logger.log_tabular("A", 1)
        for _ in range(2):
            with pytest.raises(TypeError, match="bytes-like"):
                logger.dump_tabular()
        logger.output_file = own
        logger.dump_tabular()
        assert content(output_dir) == "A\n1\n"

    def test_closing_goes_on_after_any_error_and_raises_the_first(self, output_dir: str) -> None:
        closed: list[str] = []

        class Closing:
            def __init__(self, name: str, error: BaseException | None) -> None:
                self._end = name, error

            def write(self, row: Row) -> None:
                pass

            def close(self) -> None:
                name, error = self._end
                closed.append(name)
                if error is not None:
                    raise error

        with pytest.raises(ValueError, match="closed file"):
            close_all([
                Closing("a", ValueError("closed file")), Closing("b", KeyboardInterrupt()), Closing("c", None)
            ])
        assert closed == ["a", "b", "c"]

    def test_the_error_that_ends_a_block_is_not_hidden_by_that_of_closing(self, output_dir: str) -> None:
        with (
            pytest.warns(UserWarning, match="rows are kept"),
            pytest.warns(UserWarning, match="1 row is lost"),
            pytest.raises(RuntimeError, match="training"),
            Logger(output_dir) as logger,
        ):
            os.rename(output_dir, output_dir + ".away")
            dump(logger, A=1)
            raise RuntimeError("training")
        os.rename(output_dir + ".away", output_dir)
        logger.close()
        assert content(output_dir) == "A\n1\n"

    def test_a_full_disk_keeps_the_row_and_leaves_no_torn_line(
        self, output_dir: str, run_python: RunPython
    ) -> None:
        """The limit on the size of files stands for the disk: a write beyond it is cut short, then fails."""
        script = """
import resource, signal, sys, warnings
from spinstat import Logger
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
logger = Logger(sys.argv[1], quiet=True)
logger.log_tabular("A", "first"); logger.dump_tabular()
resource.setrlimit(resource.RLIMIT_FSIZE, (12, resource.RLIM_INFINITY))
for text in ("second", "third"):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        logger.log_tabular("A", text); logger.dump_tabular()
    assert "kept in memory" in str(caught[0].message), caught
    assert open(logger.output_file.name).read() == "A\\nfirst\\n"
logger.log_tabular("A", "fourth"); logger.log_tabular("New", 1)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
logger.dump_tabular()
"""
        run_python("-c", script, output_dir)
        assert content(output_dir) == "A\tNew\nfirst\t\nsecond\t\nthird\t\nfourth\t1\n"

    def test_a_full_disk_keeps_the_file_when_a_column_is_new(
        self, output_dir: str, run_python: RunPython
    ) -> None:
        script = """
import os, resource, signal, sys, warnings
from spinstat import Logger
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
warnings.simplefilter("ignore")
logger = Logger(sys.argv[1], quiet=True)
logger.log_tabular("A", 1); logger.dump_tabular()
resource.setrlimit(resource.RLIMIT_FSIZE, (5, resource.RLIM_INFINITY))
logger.log_tabular("NewColumn", 2); logger.dump_tabular()
assert open(logger.output_file.name).read() == "A\\n1\\n"
assert os.listdir(sys.argv[1] + "/.spinstat") == []
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
logger.close()
"""
        run_python("-c", script, output_dir)
        assert content(output_dir) == "A\tNewColumn\n1\t\n\t2\n"

    @pytest.mark.parametrize("ending", ["del logger", "logger.me = logger; del logger", ""])
    def test_a_logger_that_nobody_closes_writes_what_waits(
        self, output_dir: str, run_python: RunPython, ending: str
    ) -> None:
        script = f"""
import os, sys, warnings
from spinstat import EpochLogger
warnings.simplefilter("ignore")
folder = sys.argv[1]
logger = EpochLogger(folder)
os.rename(folder, folder + ".away")
logger.log_tabular("A", 1); logger.dump_tabular()
os.rename(folder + ".away", folder)
{ending}
"""
        run_python("-c", script, output_dir)
        assert content(output_dir) == "A\n1\n"

    def test_a_forked_child_leaves_what_waits_to_its_parent(
        self, output_dir: str, run_python: RunPython
    ) -> None:
        script = """
import os, sys, warnings
from spinstat import Logger
warnings.simplefilter("ignore")
folder = sys.argv[1]
logger = Logger(folder, quiet=True)
os.rename(folder, folder + ".away")
logger.log_tabular("A", 1); logger.dump_tabular()
os.rename(folder + ".away", folder)
child = os.fork()
if child == 0:
    sys.exit()
os.waitpid(child, 0)
"""
        run_python("-c", script, output_dir)
        assert content(output_dir) == "A\n1\n"


class TestManyLoggers:
    def test_a_thousand_loggers_need_no_descriptors(self, tmp_path: Path, run_python: RunPython) -> None:
        script = """
import resource, sys
import spinstat
resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
loggers = [spinstat.EpochLogger(f"{sys.argv[1]}/{i}", quiet=True) for i in range(1000)]
for row in range(2):
    for i, logger in enumerate(loggers):
        logger.store(A=i + row)
        logger.log_tabular("A", average_only=True)
        logger.dump_tabular()
assert not any(logger.output_file.closed for logger in loggers)
"""
        run_python("-c", script, str(tmp_path))
        for i in (0, 500, 999):
            assert content(str(tmp_path / str(i))) == f"A\n{i}.0\n{i + 1}.0\n"

    def test_dropped_loggers_leave_no_open_file(self, tmp_path: Path) -> None:
        before = len(os.listdir("/proc/self/fd"))
        for i in range(20):
            logger = Logger(str(tmp_path / str(i)), quiet=True)
            assert logger.output_file is not None
            logger.output_file.fileno()
            dump(logger, A=1)
        del logger
        gc.collect()
        assert len(os.listdir("/proc/self/fd")) == before
