"""examples/tf_digits.py learns, and the graph it saves gives the same answers in another process."""

from __future__ import annotations

import re
from pathlib import Path

from conftest import ROOT, RunPython

DIGITS = str(ROOT / "examples" / "tf_digits.py")


def test_a_script_in_the_style_of_tensorflow_1_trains_saves_and_restores(
    run_python: RunPython, tmp_path: Path
) -> None:
    run_dir = str(tmp_path / "run")
    trained = run_python(DIGITS, "--output_dir", run_dir, "--epochs", "3").stdout
    restored = run_python(DIGITS, "--restore", run_dir).stdout
    said = re.search(r"Test digits: ([\d.]+)% .*", trained)
    assert said and float(said[1]) > 85
    assert said[0] in restored, "the same logits, to the last bit"
    header, *rows = (tmp_path / "run" / "progress.txt").read_text().splitlines()
    assert header == "Epoch\tAverageAcc\tStdAcc\tMaxAcc\tMinAcc\tLoss\tTotalGradientSteps\tTime"
    accuracy = [float(row.split("\t")[1]) for row in rows]
    assert accuracy[0] < accuracy[-1] and accuracy[-1] > 0.9
    left = {path.name for path in (tmp_path / "run" / "tf1_save").iterdir()}
    assert left == {"model_info.pkl", "saved_model.pb", "variables"}
