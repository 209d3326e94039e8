"""The run folder and output_file, as scripts handle them."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from rows import content, dump

from spinstat import EpochLogger, Logger


class TestOutputFile:
    def test_it_looks_like_an_open_file(self, output_dir: str) -> None:
        logger = Logger(output_dir)
        file = logger.output_file
        assert file is not None
        assert file.name == f"{output_dir}/progress.txt"
        assert (file.closed, file.writable(), file.readable(), file.isatty()) == (False, True, False, False)
        assert os.path.samestat(os.fstat(file.fileno()), os.stat(f"{output_dir}/progress.txt"))

    def test_what_a_script_writes_stands_between_the_rows(self, output_dir: str) -> None:
        logger = Logger(output_dir)
        dump(logger, A=1)
        assert logger.output_file is not None
        assert logger.output_file.write("# note\n") == 7
        print("# printed", file=logger.output_file, flush=True)
        dump(logger, A=2)
        assert content(output_dir) == "A\n1\n# note\n# printed\n2\n"

    def test_closed_by_the_script_it_refuses_rows(self, output_dir: str) -> None:
        logger = Logger(output_dir)
        dump(logger, A=1)
        assert logger.output_file is not None
        logger.output_file.close()
        logger.log_tabular("A", 2)
        with pytest.raises(ValueError, match="closed"):
            logger.dump_tabular()
        logger.close()
        assert content(output_dir) == "A\n1\n"

    def test_replaced_by_the_script_it_gets_the_rows(self, output_dir: str) -> None:
        logger = Logger(output_dir)
        logger.output_file = mine = io.StringIO()
        dump(logger, A=1)
        dump(logger, A=2)
        dump(logger, B=3)
        assert logger.output_file is mine
        assert mine.getvalue() == "A\n1\n2\nA\tB\n\t3\n"
        assert content(output_dir) == ""

    def test_none_of_it_means_no_rows(self, output_dir: str) -> None:
        logger = Logger(output_dir)
        logger.output_file = None
        dump(logger, A=1)
        logger.close()
        assert content(output_dir) == ""

    def test_a_closed_logger_refuses_rows(self, output_dir: str) -> None:
        with Logger(output_dir) as logger:
            dump(logger, A=1)
        assert logger.output_file is not None
        assert logger.output_file.closed
        logger.log_tabular("A", 2)
        with pytest.raises(ValueError, match="closed"):
            logger.dump_tabular()
        logger.close()
        assert content(output_dir) == "A\n1\n"


class TestFolders:
    def test_a_script_may_change_its_directory(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        logger = EpochLogger("run")
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        dump(logger, A=1)
        dump(logger, B=2)
        logger.save_config({})
        assert content(str(tmp_path / "run")) == "A\tB\n1\t\n\t2\n"
        assert (tmp_path / "run" / "config.json").exists()
        assert os.listdir(tmp_path / "elsewhere") == []

    def test_a_path_object_is_kept_as_it_is(self, tmp_path: Path) -> None:
        logger = Logger(tmp_path / "a" / "b")
        assert logger.output_dir == tmp_path / "a" / "b"
        dump(logger, A=1)
        assert content(str(tmp_path / "a" / "b")) == "A\n1\n"

    def test_a_file_in_the_way_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(FileExistsError, match=r"output_dir.*is a file"):
            Logger(tmp_path / "file")

    def test_jobs_that_start_at_once_in_one_folder_lose_no_row_h3(self, output_dir: str) -> None:
        script = """
import sys
from spinstat import Logger
sys.stdin.readline()
logger = Logger(sys.argv[1], quiet=True)
for row in range(20):
    logger.log_tabular("Job", sys.argv[2])
    logger.dump_tabular()
"""
        jobs = [
            subprocess.Popen([sys.executable, "-c", script, output_dir, str(job)], stdin=subprocess.PIPE)
            for job in range(6)
        ]
        for job in jobs:
            assert job.stdin is not None
            job.stdin.close()
        assert [job.wait(timeout=60) for job in jobs] == [0] * 6
        assert sorted(content(output_dir, name) for name in os.listdir(output_dir)) == [
            "Job\n" + f"{job}\n" * 20 for job in range(6)
        ]

    def test_default_folders_are_new_ones_h2(self) -> None:
        script = "import spinstat; print(spinstat.Logger(quiet=True).output_dir)"
        command = [sys.executable, "-c", script]
        children = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(8)]
        folders = [child.communicate()[0].strip() for child in children]
        folders += [str(Logger(quiet=True).output_dir) for _ in range(2)]
        try:
            assert len(set(folders)) == 10
            for folder in folders:
                assert os.path.dirname(folder) == "/tmp/experiments"
                assert os.path.basename(folder).isdigit()
                assert os.listdir(folder) == ["progress.txt"]
        finally:
            for folder in set(folders):
                shutil.rmtree(folder)
