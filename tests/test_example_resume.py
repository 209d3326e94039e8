"""examples/ppo.py --resume goes on where a run was cut off, as if it had not been."""

from __future__ import annotations

import csv
from pathlib import Path

from conftest import ROOT, RunPython

PPO = str(ROOT / "examples" / "ppo.py")


def rows(run_dir: Path) -> list[dict[str, str]]:
    """The rows of a run, but for their times."""
    with open(run_dir / "progress.txt", newline="", encoding="utf-8") as file:
        table = list(csv.DictReader(file, delimiter="\t"))
    return [{key: value for key, value in row.items() if key != "Time"} for row in table]


def test_F18_ppo_on_two_ranks_in_two_parts_gives_the_rows_of_one_go(
    run_python: RunPython, tmp_path: Path
) -> None:
    def train(run_dir: Path, epochs: int) -> None:
        options = ("--cpu", "2", "--steps", "200", "--target_return", "1e9", "--resume")
        run_python(PPO, "--seed", "3", "--output_dir", str(run_dir), "--epochs", str(epochs), *options)

    whole, parts = tmp_path / "whole", tmp_path / "parts"
    train(whole, 3)
    train(parts, 1)
    train(parts, 3)
    assert rows(parts) == rows(whole)
    assert [row["Epoch"] for row in rows(parts)] == ["0", "1", "2"]
