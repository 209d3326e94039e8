"""run_policy and evaluate: every interface that environments have had, limits, rendering, what is printed."""

from __future__ import annotations

import inspect
import io
import re
import sys
from typing import Any

import agents
import gymnasium
import numpy as np
import pytest
import torch

from spinstat.policy import Episode, evaluate, load_policy_and_env, run_policy
from spinstat.stderr import Bar
from spinstat.utils import test_policy


class Scripted:
    """An environment that returns what it is told: a reset result, then the step results."""

    def __init__(self, reset: Any, *steps: Any, **attributes: Any) -> None:
        self._reset, self._steps = reset, steps
        vars(self).update(attributes)
        self.t = 0

    def reset(self) -> Any:
        self.t = 0
        return self._reset

    def step(self, action: Any) -> Any:
        self.t += 1
        return self._steps[self.t - 1]


def zero(obs: Any) -> int:
    return 0


def without_folder(text: str) -> str:
    return re.sub(r"(Logging data to ).*", r"\1FOLDER", text)


def test_run_policy_prints_what_the_original_prints_and_returns_none(
    capsys: pytest.CaptureFixture[str],
) -> None:
    env = agents.Counter(3)
    assert run_policy(env, lambda obs: 1, num_episodes=2) is None
    assert env.rendered == 6, "every step is rendered"
    shown = capsys.readouterr()
    assert without_folder(shown.out).splitlines() == [
        "Logging data to FOLDER",
        "Episode 0 \t EpRet 9.000 \t EpLen 3",
        "Episode 1 \t EpRet 9.000 \t EpLen 3",
        "-------------------------------------",
        "|    AverageEpRet |               9 |",
        "|        StdEpRet |               0 |",
        "|        MaxEpRet |               9 |",
        "|        MinEpRet |               9 |",
        "|           EpLen |               3 |",
        "-------------------------------------",
    ]
    assert shown.err == ""


def test_the_signatures_under_the_originals_names_are_the_originals() -> None:
    loading = inspect.signature(test_policy.load_policy_and_env)
    assert str(loading) == "(fpath, itr='last', deterministic=False)"
    expected = "(env, get_action, max_ep_len=None, num_episodes=100, render=True)"
    assert str(inspect.signature(test_policy.run_policy)) == expected
    ours = inspect.signature(load_policy_and_env).parameters
    added = [each for name, each in ours.items() if name not in loading.parameters]
    assert all(each.kind is each.KEYWORD_ONLY for each in added)


@pytest.mark.parametrize(
    ("max_ep_len", "length"), [(None, 6), (0, 6), (4, 4), (6, 6), (9, 6), (np.int64(2), 2)]
)
def test_max_ep_len_ends_an_episode(max_ep_len: Any, length: int) -> None:
    (episode,) = evaluate(agents.Counter(6), zero, max_ep_len, 1)
    assert episode == Episode(length * (length + 1) / 2, length, terminated=length == 6, truncated=False)


def test_F12_gymnasium_observations_are_arrays_and_both_ends_count() -> None:
    seen: list[Any] = []
    episodes = evaluate(agents.Modern(3), seen.append, num_episodes=2)
    assert [type(obs) for obs in seen] == [np.ndarray] * 6
    assert [obs[0] for obs in seen] == [0.0, 1.0, 2.0] * 2
    assert episodes == [Episode(6.0, 3, terminated=True, truncated=False)] * 2
    (cut,) = evaluate(agents.Modern(3, cut=True), zero, num_episodes=1)
    assert (cut.terminated, cut.truncated) == (False, True)


def test_F12_a_real_gymnasium_environment_plays() -> None:
    env = gymnasium.make("CartPole-v1")
    episodes = evaluate(env, lambda obs: int(obs[2] + obs[3] > 0), max_ep_len=60, num_episodes=3, seed=1)
    assert [episode.length for episode in episodes] == [60] * 3
    assert [episode.ret for episode in episodes] == [60.0] * 3
    assert not any(episode.terminated or episode.truncated for episode in episodes)


@pytest.mark.parametrize(
    ("result", "attributes", "obs"),
    [
        ((1.0, {}), {}, 1.0),
        (((1.0, 2.0), {"info": 1}), {}, (1.0, 2.0)),
        ((1.0, 2.0), {}, (1.0, 2.0)),
        ([1.0, {}], {}, [1.0, {}]),
        ((1.0, 2.0, {}), {}, (1.0, 2.0, {})),
        ({"a": 1.0}, {}, {"a": 1.0}),
        ((1, {"b": 1}), {"observation_space": "nothing with contains"}, 1),
        (
            (1, {"b": 0}),
            {
                "observation_space": gymnasium.spaces.Tuple(
                    (gymnasium.spaces.Discrete(3), gymnasium.spaces.Dict(b=gymnasium.spaces.Discrete(2)))
                )
            },
            (1, {"b": 0}),
        ),
        (
            ((1, {"b": 0}), {"info": 1}),
            {
                "observation_space": gymnasium.spaces.Tuple(
                    (gymnasium.spaces.Discrete(3), gymnasium.spaces.Dict(b=gymnasium.spaces.Discrete(2)))
                )
            },
            (1, {"b": 0}),
        ),
    ],
    ids=[
        "with info", "a pair with info", "a pair", "a list", "a triple", "a dict", "no usable space",
        "a pair with a dict by its space", "the same with info",
    ],
)  # fmt: skip
def test_F12_reset_with_and_without_info(result: Any, attributes: dict[str, Any], obs: Any) -> None:
    seen: list[Any] = []
    env = Scripted(result, (0.0, 1.0, True, {}), **attributes)
    evaluate(env, seen.append, num_episodes=1)
    assert seen == [obs]


@pytest.mark.parametrize(
    ("step", "ends"),
    [
        ((0, 2, True, {}), (True, False)),
        ((0, 2, True, {"TimeLimit.truncated": True}), (False, True)),
        ((0, 2, np.bool_(True), {}), (True, False)),
        ((0, np.array([2.0]), np.array([True]), {}), (True, False)),
        ((0, torch.tensor(2.0), torch.tensor(True), torch.tensor(False), {}), (True, False)),
        ((0, np.float32(2), False, True, {}), (False, True)),
        ((0, 2, True, True, {}), (True, True)),
        ([0, 2, True, {}], (True, False)),
    ],
)
def test_B15_step_results_of_every_kind_give_plain_numbers(step: Any, ends: tuple[bool, bool]) -> None:
    (episode,) = evaluate(Scripted(0, step), zero, num_episodes=1)
    assert episode == Episode(2.0, 1, *ends)
    assert (type(episode.ret), type(episode.length)) == (float, int)


@pytest.mark.parametrize(
    ("step", "complaint"),
    [
        ((0, 1.0, True), "gave 3 values"),
        ((0, 1.0, True, False, {}, 6), "gave 6 values"),
        (None, "gave a NoneType"),
        ((0, np.ones(2), np.ones(2, bool), {}), "a reward that is not a single value.*one of its env"),
        ((0, 1.0, np.ones(2, bool), np.ones(2, bool), {}), "terminated that is not a single value"),
        ((0, None, True, {}), "a reward that is not a single value: None"),
    ],
)
def test_a_step_that_is_no_step_is_a_clear_error(step: Any, complaint: str) -> None:
    with pytest.raises(TypeError, match=complaint):
        evaluate(Scripted(0, step), zero, num_episodes=1)


def test_an_info_that_speaks_of_truncation_does_not_end_an_episode() -> None:
    steps = (0, 1.0, False, {"TimeLimit.truncated": True}), (0, 1.0, True, {"TimeLimit.truncated": False})
    assert evaluate(Scripted(0, *steps), zero, num_episodes=1) == [Episode(2.0, 2, True, False)]


def test_each_episode_of_a_seeded_evaluation_has_its_own_seed() -> None:
    env = agents.Modern(2)
    evaluate(env, zero, num_episodes=3, seed=40)
    evaluate(env, zero, num_episodes=1)
    assert env.seeds == [40, 41, 42, None]
    first, second = (
        evaluate(gymnasium.make("CartPole-v1"), lambda obs: int(obs[2] > 0), num_episodes=3, seed=7)
        for _ in range(2)
    )
    assert first == second and len({episode.length for episode in first}) > 1


def test_an_old_environment_is_seeded_by_its_seed_method() -> None:
    class Old(agents.Counter):
        seeds: list[int] = []  # noqa: RUF012

        def seed(self, seed: int) -> None:
            self.seeds.append(seed)

    assert [episode.length for episode in evaluate(Old(2), zero, num_episodes=2, seed=5)] == [2, 2]
    assert Old.seeds == [5, 6]
    with pytest.raises(TypeError, match="seed"):
        evaluate(agents.Counter(2), zero, num_episodes=1, seed=5)


def test_render_that_fails_is_told_once_and_the_run_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    class Blind(agents.Counter):
        def render(self) -> None:
            self.rendered += 1
            if self.rendered == 2:
                raise RuntimeError("no display")

    env = Blind(3)
    assert len(evaluate(env, zero, num_episodes=2, render=True)) == 2
    assert env.rendered == 2
    assert capsys.readouterr().err == (
        "render() failed, and is not called again (RuntimeError: no display)\n"
    )


def test_an_interrupt_while_rendering_ends_the_run() -> None:
    class Interrupted(agents.Counter):
        def render(self) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate(Interrupted(3), zero, num_episodes=1, render=True)


def test_evaluate_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    evaluate(agents.Counter(3), zero, num_episodes=2)
    assert capsys.readouterr() == ("", "")


def test_no_episodes_give_a_table_of_nan(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.warns(UserWarning, match="EpRet"):
        run_policy(agents.Counter(3), zero, num_episodes=0, render=False)
    assert "|    AverageEpRet |             nan |" in capsys.readouterr().out
    assert evaluate(agents.Counter(3), zero, num_episodes=0) == []


@pytest.mark.parametrize("play", [run_policy, evaluate])
def test_no_environment_is_an_assertion_error_with_a_way_out(play: Any) -> None:
    with pytest.raises(AssertionError, match=r"^Environment not found!(.|\n)*run_policy\(your_env") as raised:
        play(None, zero)
    assert "What was tried" not in str(raised.value)


def test_an_error_of_the_policy_is_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    def broken(obs: Any) -> int:
        raise ZeroDivisionError("in the policy")

    with pytest.raises(ZeroDivisionError, match="in the policy"):
        run_policy(agents.Counter(3), broken, render=False)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_is_shown_on_a_terminal_and_taken_away_before_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with Bar(4, "episodes") as bar:
        bar.show(1, ", step 3")
        bar.hide()
        bar.hide()
        bar.show(2)
    erase = "\r\x1b[K"
    assert stream.getvalue() == f"{erase}[######..................] 1/4 episodes, step 3{erase}", (
        "a second look within the interval is left out"
    )


@pytest.mark.parametrize("term", ["xterm", "dumb"])
def test_no_bar_where_stderr_is_no_terminal(monkeypatch: pytest.MonkeyPatch, term: str) -> None:
    monkeypatch.setenv("TERM", term)
    stream = Terminal() if term == "dumb" else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    evaluate(agents.Counter(3), zero, num_episodes=2)
    assert stream.getvalue() == ""


def test_a_stderr_that_is_closed_or_missing_does_not_end_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = Terminal()
    closed.close()
    for stream in (closed, None):
        monkeypatch.setattr(sys, "stderr", stream)
        assert len(evaluate(agents.Counter(2), zero, num_episodes=1)) == 1
