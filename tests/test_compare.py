"""Groups of seeds compared: which rows count, who is left out, and what is said of it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from plots import make_run, seeds

from spinstat.compare import compare_runs
from spinstat.intervals import Estimate, estimate, mean, probability_of_improvement

NAN, INF = math.nan, math.inf


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder of its own."""
    monkeypatch.chdir(tmp_path)


def runs(group: str, *columns: dict[str, Any]) -> None:
    """A run of the group for each dict of columns."""
    for seed, rows in enumerate(columns):
        make_run(Path(f"data/{group}/{group}_s{seed}"), rows, group)


def values_of(found: Any, group: str) -> list[float]:
    return [seed.value for seed in found.groups[group].seeds]


def missing_of(found: Any, group: str) -> dict[str, str]:
    return {Path(seed.file).parent.name: seed.missing for seed in found.groups[group].missing}


def test_each_group_has_its_statistics_and_all_but_the_first_a_probability(tmp_path: Path) -> None:
    seeds(tmp_path / "data/a", "ppo", [[0, 1], [0, 2], [0, 3], [0, 8], [0, 4]])
    seeds(tmp_path / "data/b", "sac", [[0, 5], [0, 6], [0, 3], [9, 7]])
    found = compare_runs("data/")
    assert list(found.groups) == ["ppo", "sac"]
    assert (found.value, found.columns, found.x) == ("Performance", ("AverageEpRet",), "TotalEnvInteracts")
    ppo, sac = found.groups.values()
    assert values_of(found, "ppo") == [1, 2, 3, 8, 4]
    assert {name: one.value for name, one in ppo.estimates.items()} == {"mean": 3.6, "median": 3, "IQM": 3}
    assert sac.estimates["mean"] == estimate([5, 6, 3, 7], mean)
    assert ppo.improvement is None
    assert sac.improvement == probability_of_improvement([5, 6, 3, 7], [1, 2, 3, 8, 4])
    assert sac.improvement is not None and sac.improvement.value == (4 + 4 + 2.5 + 4) / 20
    assert compare_runs("data/") == found


def test_what_one_group_has_does_not_depend_on_the_others() -> None:
    for group, values in (("a", [1, 5, 2]), ("b", [3, 4, 9, 2]), ("c", [7, 7, 1])):
        runs(group, *({"Epoch": [0], "Loss": [value]} for value in values))
    all_, two = (compare_runs(paths, "Loss") for paths in (["data/"], ["data/a", "data/c"]))
    assert all_.groups["a"] == two.groups["a"] and all_.groups["c"] == two.groups["c"]
    first = compare_runs(["data/c", "data/a"], "Loss").groups
    assert list(first) == ["c", "a"] and first["c"].improvement is None


def test_the_last_row_of_each_counts_and_a_note_says_where_these_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    runs("a", {"Epoch": [0, 1, 2], "Loss": [5, 6, 7]}, {"Epoch": [0, 1], "Loss": [1, 2]})
    assert values_of(compare_runs("data", "Loss"), "a") == [7, 2]
    told = capsys.readouterr().err
    assert ("The last rows are at other Epoch: from 1 (data/a/a_s1/progress.txt) to 2 "
            "(data/a/a_s0/progress.txt)\n") in told


def test_at_a_place_the_last_row_not_behind_it_counts(capsys: pytest.CaptureFixture[str]) -> None:
    runs("a", {"Epoch": [0, 10, 20], "Loss": [5, 6, 7]}, {"Epoch": [0, 12, 20], "Loss": [1, 2, 3]})
    at_12 = compare_runs("data", "Loss", at=12)
    assert values_of(at_12, "a") == [6, 2]
    assert [seed.x for seed in at_12.groups["a"].seeds] == [10, 12]
    assert "The rows that count are at other Epoch: from 10 (data/a/a_s0" in capsys.readouterr().err
    assert values_of(compare_runs("data", "Loss", at=11.9), "a") == [6, 1]
    capsys.readouterr()
    assert values_of(compare_runs("data", "Loss", at="20"), "a") == [7, 3]
    assert capsys.readouterr().err == "Runs from:\n  data\n"


def test_a_seed_that_lacks_the_value_there_is_named_and_not_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    whole = {"Epoch": [0, 10, 20], "Loss": [5, 6, 7]}
    runs(
        "a", whole, {"Epoch": [0, 10], "Loss": [1, 2]}, {"Epoch": [15, 20], "Loss": [1, 2]},
        {"Epoch": [0, 10, 20], "Loss": [1, NAN, 3]}, {"Epoch": [0, 20], "KL": [1, 2]},
        {"Epoch": [], "Loss": []},
    )
    found = compare_runs("data", "Loss", at=14)
    assert values_of(found, "a") == [6]
    expected = {
        "a_s1": "ended at 10", "a_s2": "begins at 15", "a_s3": "nan at 10", "a_s4": "no column 'Loss'",
        "a_s5": "no rows",
    }
    assert missing_of(found, "a") == expected
    told = capsys.readouterr().err
    for folder, reason in expected.items():
        assert f"data/a/{folder}/progress.txt: {reason}: not counted\n" in told


def test_common_is_the_last_x_that_all_have_reached() -> None:
    runs("a", {"Epoch": [0, 1, 2], "Loss": [5, 6, 7]}, {"Epoch": [0, 1], "Loss": [1, 2]}, {"KL": [1]})
    runs("b", {"Epoch": [0, 1, 2, 3], "Loss": [0, 8, 0, 0]})
    found = compare_runs("data", "Loss", at="common")
    assert found.at == 1
    assert (values_of(found, "a"), values_of(found, "b")) == ([6, 2], [8])
    assert missing_of(found, "a") == {"a_s2": "no column 'Loss'"}


def test_the_mean_of_several_rows_is_of_those_that_have_the_value(
    capsys: pytest.CaptureFixture[str],
) -> None:
    runs(
        "a", {"Epoch": [0, 1, 2, 3], "Loss": [5, 6, 7, 9]}, {"Epoch": [0, 1, 2, 3], "Loss": [1, 2, NAN, 6]},
        {"Epoch": [2, 3], "Loss": [1, 3]}, {"Epoch": [1, 2, 3], "Loss": [NAN, NAN, NAN]},
    )
    found = compare_runs("data", "Loss", last=3)
    assert values_of(found, "a") == [(6 + 7 + 9) / 3, 4, 2]
    assert [seed.rows for seed in found.groups["a"].seeds] == [3, 2, 2]
    assert missing_of(found, "a") == {"a_s3": "nan at 3"}
    told = capsys.readouterr().err
    assert "data/a/a_s1/progress.txt: the mean of 2 rows, not of 3\n" in told
    assert "data/a/a_s2/progress.txt: the mean of 2 rows, not of 3\n" in told
    assert "a_s0" not in told
    assert values_of(compare_runs("data", "Loss", at=2, last=2), "a") == [6.5, 2, 1]


def test_rows_that_a_run_wrote_anew_after_a_checkpoint_count_once() -> None:
    runs("a", {"Epoch": [0, 1, 2, 1, 2], "Loss": [0, 10, 20, 30, 40]})
    assert values_of(compare_runs("data", "Loss", at=1), "a") == [30]
    assert values_of(compare_runs("data", "Loss", last=2), "a") == [35]


def test_infinite_values_count() -> None:
    runs("a", *({"Epoch": [0], "Loss": [value]} for value in (1, 2, 3)))
    runs("b", *({"Epoch": [0], "Loss": [value]} for value in (INF, INF, 0)))
    group = compare_runs("data", "Loss").groups["b"]
    assert (group.estimates["mean"].value, group.estimates["median"].value) == (INF, INF)
    assert group.improvement is not None and group.improvement.value == 6 / 9


def test_x_is_the_plotters_or_the_column_that_is_named() -> None:
    runs("a", {"Epoch": [0, 1], "TotalEnvInteracts": [100, 200], "Time": [5, 9], "Loss": [3, 4]})
    assert values_of(compare_runs("data", "Loss", at=150), "a") == [3]
    assert compare_runs("data", "Loss", at=7, xaxis="Time").x == "Time"
    assert values_of(compare_runs("data", "Loss", at=9, xaxis="Time"), "a") == [4]
    make_run(Path("other/a"), {"Loss": [5, 6, 7]})
    found = compare_runs("other", "Loss", at=1)
    assert (found.x, values_of(found, "exp")) == ("Row", [6])
    with pytest.raises(ValueError, match=r"no run with 'Loss' has the column 'Time'; there are: Loss$"):
        compare_runs("other", "Loss", xaxis="Time")


def test_a_legend_names_the_groups() -> None:
    for name in ("x", "y"):
        make_run(Path(f"data/{name}"), {"Loss": [5, 6, 7]}, "same")
    assert list(compare_runs(["data/x", "data/y"], "Loss", legend=["first", "second"]).groups) == [
        "first", "second"
    ]
    assert len(compare_runs(["data/x", "data/y"], "Loss").groups["same"].seeds) == 2
    assert list(compare_runs("data", "Loss", legend="all", exclude="/x").groups) == ["all"]


def test_a_group_without_any_value_has_none_and_nobody_is_better_or_worse() -> None:
    runs("a", {"Epoch": [0], "Loss": [NAN]})
    runs("b", {"Epoch": [0], "Loss": [1]}, {"Epoch": [0], "Loss": [2]})
    found = compare_runs("data", "Loss")
    assert all(math.isnan(number) for one in found.groups["a"].estimates.values() for number in one)
    assert found.groups["b"].estimates["mean"].value == 1.5
    improvement = found.groups["b"].improvement
    assert improvement is not None and all(math.isnan(number) for number in improvement)


def test_runs_whose_performance_is_not_the_same_column_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    with_test = {"Epoch": [0], "AverageEpRet": [1], "AverageTestEpRet": [2]}
    runs("a", with_test, {"Epoch": [0], "AverageEpRet": [3]})
    found = compare_runs("data")
    assert values_of(found, "a") == [2, 3]
    assert found.columns == ("AverageTestEpRet", "AverageEpRet")
    told = capsys.readouterr().err
    assert "Performance is AverageTestEpRet in some runs and AverageEpRet in others: these may not be" in told


def both_kinds() -> tuple[str, str]:
    """Two runs of this package and one of Stable-Baselines3, and what is told of their columns."""
    ours = {"Epoch": [0, 1], "AverageEpRet": [1, 2]}
    runs("a", ours, ours)
    Path("data/b").mkdir()
    Path("data/b/progress.csv").write_text("time/iterations,rollout/ep_rew_mean\n1,5\n")
    return (
        "Epoch, AverageEpRet (data/a/a_s0/progress.txt and 1 more)",
        "time/iterations, rollout/ep_rew_mean (data/b/progress.csv)",
    )


def test_where_no_run_has_a_column_those_of_each_kind_of_run_are_listed() -> None:
    listed = "; ".join(both_kinds())
    with pytest.raises(ValueError) as caught:
        compare_runs("data", "KL")
    assert str(caught.value) == f"no run has the column 'KL'; there are: {listed}"
    with pytest.raises(ValueError) as caught:  # the others have it
        compare_runs("data", xaxis="time/iterations")
    performance = "Performance (AverageTestEpRet or AverageEpRet)"
    told = f"no run with {performance} has the column 'time/iterations'; there are: {listed}"
    assert str(caught.value) == told


def test_where_some_runs_have_no_such_column_those_of_each_kind_are_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    listed = "; ".join(both_kinds())
    assert values_of(compare_runs("data"), "a") == [2, 2]
    told = capsys.readouterr().err
    assert "data/b/progress.csv: no column 'Performance': not counted\n" in told
    assert f"Columns of the runs: {listed}\n" in told
    compare_runs("data/a")
    assert "Columns" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"last": 0}, "last=0"),
        ({"resamples": 0}, "resamples=0"),
        ({"at": "end"}, "at=end: give 'last', 'common' or a number"),
        ({"at": NAN}, "at=nan: give"),
        ({"value": "KL"}, "no run has the column 'KL'; there are: Epoch, Loss, Note"),
        ({"value": "Performance"}, r"Performance \(AverageTestEpRet or AverageEpRet\); there are: Epoch"),
        ({"value": "Note"}, "the column 'Note' of data/progress.txt holds text, not numbers"),
        ({"at": 5}, "no run has a value of Loss there"),
        ({"legend": ["x", "y"]}, "2 names for 1 folders; the folders are: data"),
    ],
    ids=str,
)
def test_a_wrong_argument_is_named(wrong: dict[str, Any], message: str) -> None:
    Path("data").mkdir()
    Path("data/progress.txt").write_text("Epoch\tLoss\tNote\n0\t1\tgood\n")
    with pytest.raises(ValueError, match=message):
        compare_runs("data", **{"value": "Loss", **wrong})


def test_no_run_is_an_error_that_names_what_was_searched() -> None:
    with pytest.raises(FileNotFoundError, match="zzz matches nothing: no folder in"):
        compare_runs("zzz")
    Path("data").mkdir()
    with pytest.raises(FileNotFoundError, match=r"no run .* searched: data"):
        compare_runs("data")
    runs("a", {"Epoch": [], "Loss": []})
    with pytest.raises(FileNotFoundError, match="no run has a row yet; searched: data"):
        compare_runs("data", "Loss")


def test_one_seed_has_a_value_without_an_interval() -> None:
    runs("a", {"Epoch": [0], "Loss": [3]})
    one = compare_runs("data", "Loss").groups["a"].estimates["IQM"]
    assert isinstance(one, Estimate)
    assert one.value == 3 and math.isnan(one.low) and math.isnan(one.high)
