"""examples/ppo.py learns, leaves the files it promises, and does so on two ranks as on one."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, RunPython, clean_environment
from consoles import last_table

PPO = str(ROOT / "examples" / "ppo.py")
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def rows(run_dir: Path) -> list[dict[str, str]]:
    with open(run_dir / "progress.txt", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def train(run_python: RunPython, run_dir: Path, *options: str) -> str:
    return run_python(PPO, "--seed", "3", "--output_dir", str(run_dir), *options).stdout


@pytest.mark.parametrize("ranks", [1, 2])
def test_ppo_learns_and_leaves_its_files(ranks: int, run_python: RunPython, tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    printed = train(run_python, run_dir, "--cpu", str(ranks), "--steps", "1000", "--target_return", "60")

    history = rows(run_dir)
    returns = [float(row["AverageEpRet"]) for row in history]
    assert returns[0] < 45, "a policy that knows nothing keeps the pole up for some 20 steps"
    assert returns[-1] > 60
    assert len(returns) < 50, "it stops at its target"

    assert [int(row["Epoch"]) for row in history] == list(range(len(history)))
    assert [int(row["TotalEnvInteracts"]) for row in history] == [1000 * (n + 1) for n in range(len(history))]
    for row in history:
        assert float(row["MinEpRet"]) <= float(row["AverageEpRet"]) <= float(row["MaxEpRet"])
        assert float(row["EpLen"]) == float(row["AverageEpRet"]), "CartPole pays 1 for each step"
        assert float(row["DeltaLossV"]) < 0

    assert printed.count("AverageEpRet") == len(history), "one table an epoch, whatever the number of ranks"
    config = json.loads((run_dir / "config.json").read_text(encoding="utf-8"))
    assert config["seed"] == 3
    assert config["exp_name"] == "ppo"
    assert (run_dir / "learning_curve.png").read_bytes().startswith(PNG_SIGNATURE)
    assert (run_dir / "pyt_save" / "model.pt").stat().st_size > 1000
    assert (run_dir / "vars.pkl").stat().st_size > 0

    table = run_python(PPO, "--evaluate", str(run_dir), "--episodes", "3").stdout
    episodes = [line.split("|") for line in table.splitlines() if line.startswith("|")]
    shown = {cells[1].strip(): float(cells[2]) for cells in episodes}
    assert shown["Episodes"] == 3
    assert shown["MinEpRet"] <= shown["AverageEpRet"] <= shown["MaxEpRet"]
    assert shown["AverageEpRet"] > 60


def test_ppo_gives_the_same_run_for_the_same_seed(run_python: RunPython, tmp_path: Path) -> None:
    histories = []
    for name in ("first", "second"):
        train(run_python, tmp_path / name, "--steps", "400", "--epochs", "2")
        histories.append([{k: v for k, v in row.items() if k != "Time"} for row in rows(tmp_path / name)])
    assert len(histories[0]) == 2
    assert histories[0] == histories[1]


@pytest.mark.parametrize(
    ("option", "value", "complaint"),
    [("--env", "Pendulum-v1", "discrete actions only"), ("--steps", "0", "steps_per_epoch=0")],
)
def test_ppo_says_what_it_cannot_do(
    option: str, value: str, complaint: str, run_python: RunPython, output_dir: str
) -> None:
    done = run_python(PPO, option, value, "--output_dir", output_dir, check=False)
    assert done.returncode != 0
    assert complaint in done.stderr


def test_ppo_gives_its_rows_to_sinks_and_its_console_too(run_python: RunPython, tmp_path: Path) -> None:
    options = ["--steps", "400", "--epochs", "2", "--sinks", "jsonl", "csv", "--console", "rich"]
    run_dir = tmp_path / "run"
    env = {"FORCE_COLOR": "1", "COLUMNS": "90"}
    printed = run_python(PPO, *options, "--output_dir", str(run_dir), env=env).stdout
    lines = (run_dir / "rows.jsonl").read_text(encoding="utf-8").splitlines()
    returns = [float(row["AverageEpRet"]) for row in rows(run_dir)]
    assert [json.loads(line)["AverageEpRet"] for line in lines] == returns
    shown = last_table(printed)
    assert shown["TotalEnvInteracts"] == ("800", "+400", "")
    assert shown["AverageVVals"].n == "400"
    assert "1 of 2 epochs, about " in printed


def test_the_demo_ends_with_where_its_curve_is_and_a_command_that_reads_its_run(
    run_python: RunPython, tmp_path: Path
) -> None:
    """The commands as they are printed, in another folder and with one short epoch."""
    command = ["make", "-n", "--no-print-directory", "demo"]  # this may be a make within `make test`
    plan = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    train = re.search(r"examples/ppo\.py (--cpu 2 .*)", plan)
    assert train is not None
    run_python(PPO, *train[1].split(), "--epochs", "1", "--steps", "200")

    last = [line for line in plan.splitlines() if line.strip()][-2:]
    told = "".join(
        subprocess.run(line, shell=True, capture_output=True, text=True, check=True).stdout for line in last
    )
    curve = re.search(r"\S+\.png", told)
    assert curve is not None
    assert (tmp_path / curve[0]).read_bytes().startswith(PNG_SIGNATURE)

    program, *arguments = told.splitlines()[-1].split()
    assert Path(program).name == "tensorboard"
    tensorboard = Path(sys.executable).with_name("tensorboard")
    done = subprocess.run(
        [tensorboard, *arguments, "--inspect", "--tag", "AverageEpRet"],
        cwd=tmp_path, env=clean_environment(), capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    assert re.search(r"scalars\n +first_step +200\n", done.stdout), done.stdout
