"""mpi_fork: how it starts a program again, and how jobs end. On both MPI libraries."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from jobs import MPICH, OPENMPI, Outcome, launch_command, launcher_flags, python_of, run_job

LAUNCHERS = pytest.mark.parametrize("launcher", [MPICH, OPENMPI])

# Prints what a rank finds, after mpi_fork(2); fails on rank 1 in the way that its first argument names.
PROGRAM = """
import json, os, pickle, sys
from spinstat.utils.mpi_tools import mpi_fork, mpi_statistics_scalar, num_procs, proc_id
how = sys.argv[1] if len(sys.argv) > 1 else ""
of_rank_1 = "1" in (os.environ.get("PMI_RANK"), os.environ.get("OMPI_COMM_WORLD_RANK"))
if how == "before" and of_rank_1:
    raise RuntimeError("told to fail before MPI starts")
mpi_fork(2)
class Local: pass
def fail():
    raise RuntimeError("told to fail")
if of_rank_1 and how == "raise":
    fail()
if proc_id() == 1 and how == "raise later":
    fail()
if proc_id() == 1 and how == "exit 3":
    sys.exit(3)
if proc_id() == 1 and how == "exit text":
    sys.exit("told to exit")
pickle.loads(pickle.dumps(Local()))
mean = mpi_statistics_scalar([float(proc_id())])[0]
mpi_fork(2)
print("\\n" + json.dumps({
    "rank": proc_id(), "size": num_procs(), "mean": mean, "argv": sys.argv, "orig_argv": sys.orig_argv[1:],
    "file": globals().get("__file__"), "dev_mode": sys.flags.dev_mode, "path": sys.path[0],
    "threads": os.environ["OMP_NUM_THREADS"], "safe": sys.flags.safe_path,
}) + "\\n", flush=True)
"""


def fork(launcher: str, folder: Path, *words: str, limit: float = 40, **env: str) -> Outcome:
    """Run this interpreter on words, as a user would, where the program calls mpi_fork(2)."""
    flags = {"SPINSTAT_MPIEXEC_FLAGS": shlex.join(launcher_flags(launcher)), "OMP_NUM_THREADS": "1", **env}
    return run_job([python_of(launcher), *words], folder, limit, flags)


def reports(outcome: Outcome) -> list[dict[str, object]]:
    """What the ranks print, in rank order."""
    assert outcome.status == 0, outcome
    found = [json.loads(line) for line in outcome.stdout.splitlines() if line.startswith("{")]
    return sorted(found, key=lambda report: report["rank"])


@LAUNCHERS
def test_a_script_that_has_changed_its_folder_runs_as_it_was_started(launcher: str, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "train.py").write_text("import os\nos.chdir('sub')\n" + PROGRAM)
    found = reports(fork(launcher, tmp_path, "train.py"))
    assert [report["mean"] for report in found] == [0.5, 0.5]


@LAUNCHERS
def test_a_script_with_options_and_arguments_runs_as_it_was_started(launcher: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    words = ["-X", "dev", "-Wignore", "train.py", "", "--lr", "1e-3"]
    ranks = reports(fork(launcher, tmp_path, *words))
    assert [(rank["rank"], rank["size"], rank["mean"]) for rank in ranks] == [(0, 2, 0.5), (1, 2, 0.5)]
    for rank in ranks:
        assert rank["argv"] == ["train.py", "", "--lr", "1e-3"]
        assert rank["orig_argv"] == words
        assert rank["file"] == str(tmp_path / "train.py")
        assert rank["dev_mode"] is True
        assert rank["path"] == str(tmp_path)
        assert rank["threads"] == "1"


@LAUNCHERS
def test_a_module_runs_as_a_module(launcher: str, tmp_path: Path) -> None:
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "__init__.py").touch()
    (tmp_path / "agents" / "ppo.py").write_text(PROGRAM)
    ranks = reports(fork(launcher, tmp_path, "-um", "agents.ppo", "", "x", OMP_NUM_THREADS="2"))
    assert [rank["size"] for rank in ranks] == [2, 2]
    for rank in ranks:
        assert rank["argv"] == [str(tmp_path / "agents" / "ppo.py"), "", "x"]
        assert rank["file"] == str(tmp_path / "agents" / "ppo.py")
        assert rank["path"] == str(tmp_path)
        assert rank["threads"] == "2"


def test_code_and_folders_run_too(tmp_path: Path) -> None:
    ranks = reports(fork(MPICH, tmp_path, "-c", PROGRAM.replace("class Local: pass", "Local = int"), "", "y"))
    assert [(rank["size"], rank["argv"]) for rank in ranks] == [(2, ["-c", "", "y"])] * 2
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "__main__.py").write_text(PROGRAM)
    ranks = reports(fork(MPICH, tmp_path, "-P", "app"))
    assert [(rank["size"], rank["argv"], rank["safe"]) for rank in ranks] == [(2, ["app"], True)] * 2


@LAUNCHERS
@pytest.mark.parametrize("how", ["before", "raise", "raise later"])
def test_d5_an_exception_on_one_rank_ends_the_job_with_its_traceback(
    launcher: str, how: str, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    outcome = fork(launcher, tmp_path, "train.py", how)
    assert outcome.status not in (0, None), outcome
    assert "RuntimeError: told to fail" in outcome.stderr, outcome
    assert "train.py" in outcome.stderr
    assert "_rank_main" not in outcome.stderr, "the traceback shows the program, and not what runs it"


@LAUNCHERS
def test_an_exit_status_on_one_rank_ends_the_job_with_it(launcher: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    assert fork(launcher, tmp_path, "train.py", "exit 3").status == 3
    outcome = fork(launcher, tmp_path, "train.py", "exit text")
    assert outcome.status == 1
    assert "told to exit" in outcome.stderr


def test_exit_handlers_run_but_cannot_hold_up_the_end_of_the_job(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import atexit\n"
        "from spinstat.utils.mpi_tools import mpi_fork, mpi_statistics_scalar, proc_id\n"
        "mpi_fork(2)\n"
        "if proc_id() == 1:\n"
        "    atexit.register(mpi_statistics_scalar, [1.0])\n"
        "    atexit.register(print, 'first the last one', flush=True)\n"
        "    raise KeyError('gone')\n"
        "import time; time.sleep(60)\n"
    )
    outcome = fork(MPICH, tmp_path, "train.py")
    assert outcome.status == 1, outcome
    assert "KeyError: 'gone'" in outcome.stderr
    assert "first the last one" in outcome.stdout


@LAUNCHERS
def test_mpi_that_the_script_has_started_before_is_no_obstacle(launcher: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("from mpi4py import MPI\n" + PROGRAM)
    assert [rank["size"] for rank in reports(fork(launcher, tmp_path, "train.py"))] == [2, 2]


def test_under_a_launcher_it_returns(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM.replace("mpi_fork(2)", "mpi_fork(5, bind_to_core=True)"))
    command = launch_command(MPICH, 3, "train.py")
    ranks = reports(run_job(command, tmp_path, env={"OMP_NUM_THREADS": "1"}))
    assert [rank["size"] for rank in ranks] == [3, 3, 3]


@LAUNCHERS
def test_ranks_can_be_bound_to_cores(launcher: str, tmp_path: Path) -> None:
    code = "from spinstat import mpi_fork, num_procs; mpi_fork(2, bind_to_core=True); print(num_procs())"
    (tmp_path / "train.py").write_text(code)
    outcome = fork(launcher, tmp_path, "train.py")
    assert outcome.status == 0, outcome
    assert outcome.stdout.split() in (["2", "2"], ["22"])  # lines of ranks may run into one another


@LAUNCHERS
def test_an_interrupt_of_the_launching_process_alone_ends_its_ranks(launcher: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import os, signal, time\n"
        "from spinstat import mpi_fork, mpi_statistics_scalar, proc_id\n"
        "os.environ.setdefault('TO_INTERRUPT', str(os.getpid()))\n"
        "mpi_fork(2)\n"
        "mpi_statistics_scalar([1.0])\n"
        "if proc_id() == 0:\n"
        "    os.kill(int(os.environ['TO_INTERRUPT']), signal.SIGINT)\n"
        "time.sleep(300)\n"
    )
    outcome = fork(launcher, tmp_path, "train.py", limit=60)
    assert outcome.status not in (None, 0), outcome
