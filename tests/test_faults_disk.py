"""Every call that changes the disk fails once, in turn: the run goes on, and in the end nothing is missing.

Full disks and vanished folders as such are in test_rows_kept.py and test_checkpoint_disk.py.
"""

from __future__ import annotations

import ctypes
import errno
import itertools
import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import joblib
import pytest
from conftest import RunPython, clean_environment
from rows import content

from spinstat import EpochLogger
from spinstat.checkpoint import find_checkpoint, verify_checkpoints

CALLS = ("open", "write", "fsync", "replace", "link", "mkdir", "unlink", "rmdir", "chmod")
EPOCHS = 3
WANTED = "Epoch\tAverageX\tStdX\tLate\n0\t0.5\t0.5\t\n1\t1.5\t0.5\t\n2\t2.5\t0.5\t7.0\n"


class FailingCall:
    """The number-th call of a function of os fails; all others are as they are."""

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self.left = number
        self._call = getattr(os, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.left -= 1
        if self.left == 0:
            if self.name == "write":  # some of it is there already
                self._call(args[0], bytes(args[1])[: len(args[1]) // 2])
            raise OSError(errno.ENOSPC, "No space left on device")
        return self._call(*args, **kwargs)


@contextmanager
def failing(name: str, number: int) -> Iterator[FailingCall]:
    call = FailingCall(name, number)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, name, call)
        yield call


def train(logger: EpochLogger) -> None:
    for epoch in range(EPOCHS):
        logger.store(X=epoch)
        logger.store(X=epoch + 1)
        logger.save_state({"epoch": epoch, "data": bytes(10_000)})
        logger.log_tabular("Epoch", epoch)
        logger.log_tabular("X")
        if epoch == 2:
            logger.log_tabular("Late", 7.0)  # the file is written anew
        logger.dump_tabular()


def saved_epoch(folder: str) -> Any:
    return joblib.load(find_checkpoint(folder).vars)["epoch"]


@pytest.mark.parametrize("name", CALLS)
def test_F4_a_call_that_fails_once_costs_no_row_and_at_most_the_checkpoint_of_that_time(
    tmp_path: Path, name: str
) -> None:
    told_of = 0
    for number in itertools.count(1):
        folder = str(tmp_path / f"{number}")
        logger = EpochLogger(folder, quiet=True)
        with warnings.catch_warnings(record=True) as told, failing(name, number) as call:
            warnings.simplefilter("always")
            train(logger)
            missed = call.left > 0
        logger.close()
        assert content(folder) == WANTED, f"{name} {number}"
        assert saved_epoch(folder) in (1, 2), f"{name} {number}"
        assert joblib.load(os.path.join(folder, "vars.pkl"))["epoch"] in (1, 2), f"{name} {number}"
        with EpochLogger(folder, quiet=True, resume=True) as resumed:
            state = resumed.load_state()
            assert state is not None and state["epoch"] in (1, 2), f"{name} {number}"
            resumed.save_state({"epoch": 9})
        assert verify_checkpoints(folder) == [], f"{name} {number}"
        if missed:
            break
        told_of += len(told)
        shutil.rmtree(folder)
    # A link that cannot be made is a copy. What was told of the rest says why.
    assert number > 1 and (told_of or name == "link"), f"os.{name}: {number - 1} calls failed"


@pytest.mark.parametrize("name", ["open", "write", "fsync", "replace"])
def test_a_configuration_that_cannot_be_written_is_an_error_and_the_one_before_is_kept(
    output_dir: str, name: str
) -> None:
    logger = EpochLogger(output_dir, quiet=True)
    logger.save_config({"lr": 1})
    before = content(output_dir, "config.json")
    with failing(name, 1), pytest.raises(OSError, match=r"config\.json.*No space left on device"):
        logger.save_config({"lr": 2})
    assert content(output_dir, "config.json") == before
    logger.save_config({"lr": 2})
    assert '"lr":\t2' in content(output_dir, "config.json")


def test_a_folder_that_cannot_be_made_is_an_error_that_names_it(tmp_path: Path) -> None:
    with failing("mkdir", 1), pytest.raises(OSError, match="No space left"):
        EpochLogger(str(tmp_path / "run"), quiet=True)


IN_A_READ_ONLY_FOLDER = """
import os, sys, warnings
import spinstat
folder = sys.argv[1]
logger = spinstat.EpochLogger(folder, quiet=True)
logger.log_tabular("Epoch", 0)
logger.dump_tabular()
logger.save_state({"epoch": 0})
os.chmod(folder, 0o555), os.chmod(folder + "/.spinstat", 0o555), os.chmod(folder + "/progress.txt", 0o444)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    logger.log_tabular("Epoch", 1)
    logger.dump_tabular()
    logger.save_state({"epoch": 1})
    try:
        logger.save_config({})
    except OSError as error:
        print("config:", error)
print(*[str(each.message) for each in told], sep="\\n")
try:
    spinstat.EpochLogger(folder + "/inner")
except OSError as error:
    print(error)
os.chmod(folder, 0o755), os.chmod(folder + "/.spinstat", 0o755), os.chmod(folder + "/progress.txt", 0o644)
logger.log_tabular("Epoch", 2)
logger.dump_tabular()
logger.close()
"""


def obey_permissions() -> None:
    """Have the program that this process becomes refused what permissions do not allow, root's as well."""
    PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 24, 1, 2
    if os.getuid() == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
            if libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
                raise OSError(ctypes.get_errno(), "root cannot do without its capabilities")


@pytest.mark.skipif(sys.platform != "linux", reason="root's capabilities are Linux's")
def test_a_folder_that_becomes_read_only_is_told_and_its_rows_are_written_later(output_dir: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", IN_A_READ_ONLY_FOLDER, output_dir], preexec_fn=obey_permissions,
        env=clean_environment(), text=True, capture_output=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert content(output_dir) == "Epoch\n0\n1\n2\n"
    assert joblib.load(os.path.join(output_dir, "vars.pkl")) == {"epoch": 0}
    told = done.stdout
    assert "rows are kept in memory" in told and f"{output_dir}/inner" in told
    assert "could not save the state" in told and f"cannot write {output_dir}/config.json" in told
    assert told.count("Permission denied") == 4, told


ON_A_SMALL_DISK = """
import os, sys, warnings, joblib
from spinstat import EpochLogger
folder = sys.argv[1] + "/run"
logger = EpochLogger(folder, quiet=True)
logger.log_tabular("Epoch", 0)
logger.dump_tabular()
logger.save_state({"epoch": 0})
with open(sys.argv[1] + "/filler", "wb", buffering=0) as filler:
    try:
        while True:
            filler.write(bytes(4096))
    except OSError as error:
        print(error.strerror)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    for epoch in range(1, 400):
        logger.log_tabular("Epoch", epoch)
        logger.log_tabular("Text", "x" * 100)
        logger.dump_tabular()
    logger.save_state({"epoch": 399, "data": bytes(50_000)})
assert told
print(*{str(each.message) for each in told}, sep="\\n")
assert joblib.load(folder + "/vars.pkl") == {"epoch": 0}
os.unlink(sys.argv[1] + "/filler")
logger.close()
with open(folder + "/progress.txt") as file:
    assert [line.split("\\t")[0] for line in file] == ["Epoch", *map(str, range(400))]
"""


def has_small_disks() -> bool:
    command = ["unshare", "-Urm", "mount", "-t", "tmpfs", "-o", "size=1m", "small", "/mnt"]
    return shutil.which("unshare") is not None and subprocess.run(command, check=False).returncode == 0


@pytest.mark.skipif(not has_small_disks(), reason="no disk of its own can be mounted here")
def test_a_disk_that_fills_up_and_is_cleared_again_has_all_rows(tmp_path: Path) -> None:
    mount = f"mount -t tmpfs -o size=512k small {tmp_path} && exec "
    words = f'"{sys.executable}" -c "$0" {tmp_path}'
    done = subprocess.run(
        ["unshare", "-Urm", "sh", "-c", mount + words, ON_A_SMALL_DISK],
        env=clean_environment(), text=True, capture_output=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("No space left on device") >= 3


def test_a_device_that_is_always_full_keeps_the_rows_and_says_so_at_the_end(
    output_dir: str, run_python: RunPython
) -> None:
    script = """
import sys, warnings
from spinstat import Logger
warnings.simplefilter("ignore")
logger = Logger(sys.argv[1], output_fname="/dev/full", quiet=True)
for epoch in range(2):
    logger.log_tabular("Epoch", epoch)
    logger.dump_tabular()
try:
    logger.close()
except OSError as error:
    print(error)
"""
    assert "/dev/full" in (shown := run_python("-c", script, output_dir).stdout)
    assert "2 rows are lost" in shown and "No space left on device" in shown


