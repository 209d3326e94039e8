"""What type checkers infer for programs that use spinstat: read by mypy and pyright, never run."""

from __future__ import annotations

from typing import Any, assert_type

import spinstat
from spinstat import EpochLogger, Logger, Moments
from spinstat._core import EpochDict, RowInfo
from spinstat.folders import LoggerKwargs
from spinstat.plot import Run, make_plots, read_run, read_runs
from spinstat.policy import Episode, SavedPolicy, evaluate, load_policy_and_env, run_policy
from spinstat.utils.logx import EpochLogger as SameEpochLogger
from spinstat.utils.mpi_tools import mpi_statistics_scalar, num_procs, proc_id
from spinstat.utils.run_utils import setup_logger_kwargs

assert_type(spinstat.__version__, str)
assert_type(spinstat.target(), str)
assert_type(spinstat.moments([1, 2.5]), Moments)
assert_type(spinstat.moments([1, 2.5]).std(ddof=1), float)
assert_type(spinstat.colorize("text", "green", bold=True), str)

logger = EpochLogger(output_dir="run", exp_name="ppo", batch=True, keep_last=3)
same: type[EpochLogger] = SameEpochLogger
assert_type(logger.store(EpRet=1.0, Obs=[1, [2]]), None)
assert_type(logger.store({"a key": 1.0}), None)
assert_type(logger.log_tabular("EpRet", with_min_and_max=True), None)
assert_type(logger.get_stats("EpRet"), tuple[float, ...])
assert_type(logger.epoch_dict, EpochDict)
assert_type(logger.last_row_info, dict[str, RowInfo])
assert_type(logger.last_row_info["EpRet"].ranks_with_values, int)
assert_type(logger.log_headers, list[str])
assert_type(logger.log_current_row, dict[str, Any])
with logger.batch() as nothing:
    assert_type(nothing, None)
with Logger(output_dir="run") as plain:
    assert_type(plain, Logger)
    assert_type(plain.log_tabular("Epoch", 3), None)
with EpochLogger() as own:
    assert_type(own, EpochLogger)


class MyLogger(EpochLogger):
    """As user code has them: one more method, and `store` overridden."""

    def store(self, data: Any = None, /, **values: object) -> None:
        super().store(data, **values)

    def log_epoch(self, epoch: int) -> None:
        self.log_tabular("Epoch", epoch)


assert_type(MyLogger("run").log_epoch(3), None)

assert_type(setup_logger_kwargs("ppo", seed=0), LoggerKwargs)
assert_type(EpochLogger(**setup_logger_kwargs("ppo", seed=0)), EpochLogger)

assert_type(proc_id(), int)
assert_type(num_procs(), int)
assert_type(mpi_statistics_scalar([1.0, 2.0], with_min_and_max=True), tuple[float, ...])

assert_type(read_run("run"), Run)
assert_type(read_runs(["run"]), list[Run])
make_plots("run", out="curves.svg").savefig("curves.png")

env, get_action = load_policy_and_env("run", itr=10, deterministic=True)
assert_type(get_action, SavedPolicy)
assert_type(evaluate(env, get_action, num_episodes=3), list[Episode])
assert_type(run_policy(env, get_action, render=False), None)
