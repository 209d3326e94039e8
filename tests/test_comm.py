"""Which communicator is chosen, what is imported for it, and what a process alone gets from mpi_tools."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from conftest import RunPython
from memory_ranks import Meeting, MemoryComm

from spinstat import EpochLogger
from spinstat.comm import SerialComm, TorchComm, choose_comm
from spinstat.utils import mpi_pytorch, mpi_tools
from spinstat.utils.mpi_tools import mpi_statistics_scalar

LAUNCHED = {
    "Open MPI": {"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "1"},
    "MPICH": {"PMI_RANK": "1", "PMI_SIZE": "4"},
    "PMIx": {"PMIX_RANK": "1"},
    "Hydra": {"MPI_LOCALNRANKS": "4"},
}
TORCHRUN = {
    "RANK": "2", "WORLD_SIZE": "3", "MASTER_ADDR": "localhost", "MASTER_PORT": "29500",
    "TORCHELASTIC_RUN_ID": "none",
}
SLURM = {"SLURM_PROCID": "1", "SLURM_NTASKS": "4", "SLURM_JOB_ID": "7", "SLURM_LOCALID": "1"}

# An mpi4py whose import ends the process, as MPI does where no launcher has prepared it. No `except` helps.
ABORTING = "import os\nos.abort()\n"

USES_A_LOGGER = """
import sys
import spinstat
logger = spinstat.EpochLogger('run', quiet=True)
logger.store(X=1.0)
logger.log_tabular('X')
logger.dump_tabular()
print(spinstat.mpi_statistics_scalar([1, 2]), spinstat.proc_id(), spinstat.num_procs())
assert 'mpi4py.MPI' not in sys.modules
assert 'torch' not in sys.modules
"""


def fake_mpi4py(folder: Path, text: str) -> dict[str, str]:
    """The environment for children that import this text as mpi4py."""
    (folder / "fake" / "mpi4py").mkdir(parents=True)
    (folder / "fake" / "mpi4py" / "__init__.py").write_text(text)
    return {"PYTHONPATH": str(folder / "fake")}


# -- imports
# -------------------------------------------------------------------------------------------------------


def test_d6_without_a_launcher_mpi4py_is_not_imported(run_python: RunPython, tmp_path: Path) -> None:
    done = run_python("-c", USES_A_LOGGER, env=fake_mpi4py(tmp_path, ABORTING))
    assert done.stdout == "(1.5, 0.5) 0 1\n"


@pytest.mark.parametrize(
    "env", [SLURM, {"SPINSTAT_MPI": "0", **LAUNCHED["MPICH"]}], ids=["SLURM alone", "switched off"]
)
def test_d6_what_is_no_proof_of_a_launcher_imports_nothing(
    env: dict[str, str], run_python: RunPython, tmp_path: Path
) -> None:
    done = run_python("-c", USES_A_LOGGER, env={**env, **fake_mpi4py(tmp_path, ABORTING)})
    assert done.stdout == "(1.5, 0.5) 0 1\n"


def test_d7_without_mpi4py_a_process_alone_lacks_nothing(run_python: RunPython) -> None:
    code = "import sys\nsys.modules['mpi4py'] = None\n" + USES_A_LOGGER + "spinstat.mpi_fork(1)\n"
    assert run_python("-c", code).stdout == "(1.5, 0.5) 0 1\n"


@pytest.mark.parametrize("launcher", LAUNCHED)
@pytest.mark.parametrize(
    "broken", ["raise ImportError('no such thing')", "raise RuntimeError('cannot load MPI library')"]
)
def test_d7_under_a_launcher_without_a_usable_mpi4py_is_an_error(
    launcher: str, broken: str, run_python: RunPython, tmp_path: Path
) -> None:
    env = {**LAUNCHED[launcher], **fake_mpi4py(tmp_path, broken)}
    done = run_python("-c", USES_A_LOGGER, env=env, check=False)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("RuntimeError: an MPI launcher started ")
    assert broken.split("'")[1] in last
    assert "SPINSTAT_MPI=0" in last
    assert not (tmp_path / "run").exists()


def test_d7_a_job_of_one_process_needs_no_mpi4py(run_python: RunPython, tmp_path: Path) -> None:
    env = {"PMI_RANK": "0", "PMI_SIZE": "1", **fake_mpi4py(tmp_path, "raise ImportError('none')")}
    assert run_python("-c", USES_A_LOGGER, env=env).stdout == "(1.5, 0.5) 0 1\n"


def test_the_setting_can_ask_for_mpi_where_nobody_else_does(run_python: RunPython, tmp_path: Path) -> None:
    env = {"SPINSTAT_MPI": "1", **fake_mpi4py(tmp_path, "raise ImportError('none')")}
    done = run_python("-c", "import spinstat; spinstat.proc_id()", env=env, check=False)
    assert "RuntimeError: SPINSTAT_MPI=1 asks for MPI, but mpi4py cannot be imported (none)" in done.stderr
    done = run_python("-c", "import spinstat; spinstat.proc_id()", env={"SPINSTAT_MPI": "yes"}, check=False)
    assert "ValueError: SPINSTAT_MPI=yes" in done.stderr


def test_mpi_that_the_script_runs_already_is_used(run_python: RunPython) -> None:
    code = (
        "from mpi4py import MPI\n"
        "import spinstat.comm as c\n"
        "assert type(c.choose_comm()) is c.MpiComm\n"
        "assert c.choose_comm() is c.choose_comm(MPI.COMM_WORLD)\n"
        "import os; os.environ['SPINSTAT_MPI'] = '0'\n"
        "assert type(c.choose_comm()) is c.SerialComm\n"
    )
    run_python("-c", code)


def test_mpi_that_is_not_started_or_has_ended_is_left_alone_or_an_error(run_python: RunPython) -> None:
    code = (
        "import mpi4py; mpi4py.rc.initialize = False\n"
        "from mpi4py import MPI\n"
        "import os, spinstat, spinstat.comm as c\n"
        "assert type(c.choose_comm()) is c.SerialComm\n"
        "os.environ['PMI_RANK'] = '0'\n"
        "try: spinstat.proc_id()\n"
        "except RuntimeError as error: print(error)\n"
        "MPI.Init(); MPI.Finalize()\n"
        "try: spinstat.proc_id()\n"
        "except RuntimeError as error: print(error)\n"
    )
    lines = run_python("-c", code).stdout.splitlines()
    assert "MPI was not started" in lines[0]
    assert "MPI has been ended already" in lines[1]


def test_d8_processes_can_be_forked_since_mpi_does_not_run(run_python: RunPython, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "import multiprocessing as mp, spinstat\n"
        "def work(): spinstat.EpochLogger('child', quiet=True).close()\n"
        "if __name__ == '__main__':\n"
        "    spinstat.EpochLogger('parent', quiet=True)\n"
        "    for way in ('fork', 'forkserver', 'spawn'):\n"
        "        child = mp.get_context(way).Process(target=work)\n"
        "        child.start(); child.join(60)\n"
        "        assert child.exitcode == 0, way\n"
    )
    run_python("script.py", env=fake_mpi4py(tmp_path, ABORTING))


# -- choice
# --------------------------------------------------------------------------------------------------------


def test_torchrun_tells_rank_and_size_before_any_group_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in TORCHRUN.items():
        monkeypatch.setenv(name, value)
    comm = choose_comm()
    assert isinstance(comm, TorchComm)
    assert (comm.rank, comm.size) == (2, 3)
    logger = EpochLogger("never_made", quiet=True)
    assert logger.output_file is None
    assert not os.path.exists("never_made")


def test_torchrun_in_a_job_of_mpiexec_is_the_nearer_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**TORCHRUN, **LAUNCHED["Open MPI"]}.items():
        monkeypatch.setenv(name, value)
    assert isinstance(choose_comm(), TorchComm)


def test_a_communicator_can_be_passed() -> None:
    comm = MemoryComm(Meeting(2), 1)
    assert choose_comm(comm) is comm
    assert isinstance(choose_comm("serial"), SerialComm)


@pytest.mark.parametrize("comm", ["parallel", 0, object(), np.zeros(2)])
def test_what_is_no_communicator_is_refused(comm: object) -> None:
    with pytest.raises(TypeError, match=r"an mpi4py intracommunicator or a torch.distributed group"):
        EpochLogger(comm=comm, quiet=True)


def test_a_null_communicator_is_refused(run_python: RunPython) -> None:
    code = (
        "from mpi4py import MPI\n"
        "from spinstat.comm import choose_comm\n"
        "for comm in (MPI.COMM_NULL, MPI.Intracomm()):\n"
        "    try: choose_comm(comm)\n"
        "    except (TypeError, ValueError) as error: print(error)\n"
        "assert choose_comm(MPI.COMM_SELF).size == 1\n"
    )
    assert len(run_python("-c", code).stdout.splitlines()) == 2


def test_a_torch_group_can_be_passed_and_its_end_is_noticed(run_python: RunPython, tmp_path: Path) -> None:
    code = (
        "import torch.distributed as dist\n"
        "from spinstat import EpochLogger, Moments\n"
        "from spinstat.comm import TorchComm, choose_comm\n"
        f"dist.init_process_group('gloo', init_method='file://{tmp_path}/store', rank=0, world_size=1)\n"
        "assert type(choose_comm()) is TorchComm\n"
        "comm = choose_comm(dist.new_group([0]))\n"
        "rows = bytearray(120); comm.reduce(rows); assert comm.allgather(b'abc') == [b'abc']\n"
        "assert comm.shared() is choose_comm(comm._given()).shared()\n"
        "logger = EpochLogger(comm=dist.group.WORLD, quiet=True)\n"
        "logger.store(X=2.0); logger.log_tabular('X'); assert logger.log_current_row['AverageX'] == 2.0\n"
        "dist.destroy_process_group()\n"
        "try: comm.barrier()\n"
        "except RuntimeError as error: print(error)\n"
    )
    assert "has been destroyed" in run_python("-c", code).stdout


def test_one_process_alone_does_what_many_do() -> None:
    comm = SerialComm()
    array = np.arange(3.0)
    comm.allreduce(array)
    comm.broadcast(array)
    comm.barrier()
    rows = bytearray(b"x" * 120)
    comm.reduce(rows)
    assert array.tolist() == [0.0, 1.0, 2.0]
    assert rows == b"x" * 120
    assert comm.allgather(b"mine") == [b"mine"]
    with pytest.raises(ValueError, match="root is 1"):
        comm.broadcast(array, root=1)


# -- mpi_tools in one process
# --------------------------------------------------------------------------------------


def test_sums_and_averages_of_one_process_are_copies_in_float64() -> None:
    for array in (np.array([1.0, 2.0]), np.array([1.0, 2.0], dtype=np.float32), np.array([1, 2])):
        total = mpi_tools.mpi_sum(array)
        total[:] = 9
        assert array.tolist() == [1, 2]
        assert total.dtype == np.float64
    assert mpi_tools.mpi_avg([1, 2, 3]).tolist() == [1.0, 2.0, 3.0]
    assert mpi_tools.mpi_sum(np.zeros((2, 3, 4))[:, ::2]).shape == (2, 2, 4)
    assert mpi_tools.mpi_sum([]).tolist() == []


@pytest.mark.parametrize("x", [2.5, 3, True, np.float32(0.5), np.int64(2**53)])
def test_a_number_gives_a_float64_scalar(x: object) -> None:
    total = mpi_tools.mpi_sum(x)
    assert type(total) is np.float64
    assert total == x


def test_a17_a_0d_array_gives_a_0d_array_and_counts_as_one_value() -> None:
    total = mpi_tools.mpi_sum(np.array(2.0))
    assert isinstance(total, np.ndarray)
    assert total.shape == ()
    assert mpi_statistics_scalar(np.array(3.0), True) == (3.0, 0.0, 3.0, 3.0)
    assert mpi_statistics_scalar(3.0) == (3.0, 0.0)


def test_a5_large_counts_keep_their_last_digit() -> None:
    assert mpi_tools.mpi_sum(2**24 + 1) == 16777217
    assert mpi_tools.mpi_sum([0.0, 2**24 + 1])[1] == 16777217


def test_a16_statistics_count_every_element() -> None:
    assert mpi_statistics_scalar(np.ones((4, 3)), True) == (1.0, 0.0, 1.0, 1.0)


def test_statistics_are_python_floats_and_empty_ones_those_of_the_original() -> None:
    assert [type(value) for value in mpi_statistics_scalar([1, 2], True)] == [float] * 4
    mean, std, least, greatest = mpi_statistics_scalar([], with_min_and_max=True)
    assert np.isnan([mean, std]).all()
    assert (least, greatest) == (np.inf, -np.inf)


@pytest.mark.parametrize("x", [None, "1.5", [1.0, None], (i for i in range(3))])
def test_statistics_of_what_is_no_number_are_refused(x: object) -> None:
    with pytest.raises(TypeError):
        mpi_statistics_scalar(x)


def test_messages_name_the_rank(capsys: pytest.CaptureFixture[str]) -> None:
    mpi_tools.msg("hello")
    mpi_tools.msg(3, "tag")
    assert capsys.readouterr().out == "Message from 0:  \t hello\nMessage from 0: tag \t 3\n"


def test_the_remaining_tools_leave_one_process_as_it_is() -> None:
    x, received = np.arange(3.0), np.zeros(3)
    assert mpi_tools.broadcast(x) is None
    mpi_tools.allreduce(x, received)
    assert received.tolist() == x.tolist() == [0.0, 1.0, 2.0]
    assert mpi_tools.mpi_op(x, "max").tolist() == [0.0, 1.0, 2.0]
    assert (mpi_tools.proc_id(), mpi_tools.num_procs()) == (0, 1)
    assert mpi_tools.mpi_fork(1) is None
    assert mpi_tools.mpi_fork(0) is None


def test_mpi_pytorch_leaves_one_process_as_it_is() -> None:
    import torch

    net, threads = torch.nn.Linear(2, 1), torch.get_num_threads()
    before = [parameter.tolist() for parameter in net.parameters()]
    net(torch.ones(1, 2)).sum().backward()
    mpi_pytorch.mpi_avg_grads(net)
    mpi_pytorch.sync_params(net)
    mpi_pytorch.setup_pytorch_for_mpi()
    assert [parameter.tolist() for parameter in net.parameters()] == before
    assert net.weight.grad is not None
    assert net.weight.grad.tolist() == [[1.0, 1.0]]
    assert torch.get_num_threads() == threads
