"""Playing a policy in an environment of gymnasium's or of gym's interface, old or new."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from .epoch import EpochLogger
from .stderr import Bar, note
from .terminal import show
from .video import Recorder

GetAction = Callable[[Any], Any]
Function = TypeVar("Function", bound=Callable[..., Any])

RENDER_PAUSE = 1e-3  # seconds after each frame, for a window to be drawn


def without_annotations(function: Function) -> Function:
    """Have inspect.signature show a function as the original's is: names and defaults."""
    signature = inspect.signature(function)
    plain = [each.replace(annotation=each.empty) for each in signature.parameters.values()]
    signature = signature.replace(parameters=plain, return_annotation=signature.empty)
    function.__signature__ = signature  # type: ignore[attr-defined]
    return function


@dataclass(frozen=True)
class Episode:
    """One episode.

    Attributes:
        ret: the return, the sum of the rewards.
        length: how many steps.
        terminated: the environment reached an end. In gym's old interface also when it ran out of time,
            unless info has "TimeLimit.truncated".
        truncated: the environment cut the episode short.

    Neither of the two: it was as long as max_ep_len allows.

    Examples:
        >>> from spinstat.policy import Episode
        >>> episode = Episode(ret=21.0, length=21, terminated=True, truncated=False)
        >>> episode.ret, episode.length
        (21.0, 21)
    """

    ret: float
    length: int
    terminated: bool
    truncated: bool


@without_annotations
def run_policy(
    env: Any,
    get_action: GetAction,
    max_ep_len: int | None = None,
    num_episodes: int = 100,
    render: bool = True,
) -> None:
    """Play episodes, print each and, at the end, a table of them, through an EpochLogger of its own.

    `spinstat.policy.evaluate` is the form that returns the episodes.

    Args:
        env: an environment of gymnasium or gym.
        get_action: gives an action for an observation, as the one that load_policy_and_env returns.
        max_ep_len: steps after which an episode is ended; None or 0: the environment's own limit only.
        num_episodes: how many.
        render: call env.render() at every step. If that fails, it is told once and not tried again.

    Raises:
        AssertionError: env is None, as where load_policy_and_env did not find one; tells why.

    Examples:
        >>> from spinstat.policy import load_policy_and_env, run_policy
        >>> run_policy(*load_policy_and_env("runs/ppo"), num_episodes=2, render=False)  # doctest: +ELLIPSIS
        <BLANKLINE>
        ...Episode 0...
    """
    play_and_print(env, get_action, max_ep_len, num_episodes, render)


def play_and_print(
    env: Any,
    get_action: GetAction,
    max_ep_len: int | None = None,
    num_episodes: int = 100,
    render: bool = True,
    *,
    seed: int | None = None,
    video: str | None = None,
) -> None:
    """What run_policy does, with the further arguments of evaluate."""
    _check_env(env, get_action)
    with EpochLogger() as logger:
        played = 0

        def tell(episode: Episode) -> None:
            nonlocal played
            logger.store(EpRet=episode.ret, EpLen=episode.length)
            show("Episode %d \t EpRet %.3f \t EpLen %d" % (played, episode.ret, episode.length))  # noqa: UP031
            played += 1

        evaluate(
            env, get_action, max_ep_len, num_episodes, render, seed=seed, video=video, on_episode=tell
        )
        logger.log_tabular("EpRet", with_min_and_max=True)
        logger.log_tabular("EpLen", average_only=True)
        logger.dump_tabular()


def evaluate(
    env: Any,
    get_action: GetAction,
    max_ep_len: int | None = None,
    num_episodes: int = 100,
    render: bool = False,
    *,
    seed: int | None = None,
    video: str | None = None,
    on_episode: Callable[[Episode], None] | None = None,
) -> list[Episode]:
    """Play episodes and return them; nothing is printed but a progress bar where stderr is a terminal.

    Args:
        env, get_action, max_ep_len, num_episodes, render: as for run_policy.
        seed: of the first episode's reset; each later one has the next number. None: the environment's own
            generator. What get_action draws is its own affair.
        video: a folder, made where needed, in which each episode is left as episode0.gif, episode1.gif, ...
            Needs an environment that was made with render_mode="rgb_array", as `spinstat.video.with_frames`
            makes one, or an old one that has it as a mode of render(); and pillow.
        on_episode: called with each episode when it has ended.

    Raises:
        AssertionError: env is None; tells why.
        TypeError: env.step gives something else than an environment's four or five values.
        NoVideo: render() gives no frames for the video.

    Examples:
        >>> import gymnasium
        >>> from spinstat.policy import evaluate
        >>> env = gymnasium.make("CartPole-v1")
        >>> episodes = evaluate(env, lambda obs: int(obs[2] > 0), num_episodes=3, seed=0)
        >>> len(episodes), all(episode.terminated for episode in episodes)
        (3, True)
    """
    _check_env(env, get_action)
    recorder = None if video is None else Recorder(video, env)
    player = _Player(env, get_action, max_ep_len or None, render, recorder)
    episodes: list[Episode] = []
    with Bar(num_episodes, "episodes") as bar:
        while len(episodes) < num_episodes:
            done = len(episodes)
            start = None if seed is None else seed + done
            episode = player.play(start, lambda step: bar.show(done, f", step {step}"))  # noqa: B023
            if recorder is not None:
                recorder.write(done)
            episodes.append(episode)
            if on_episode is not None:
                bar.hide()
                on_episode(episode)
    return episodes


def _check_env(env: Any, get_action: GetAction) -> None:
    if env is not None:
        return
    reasons = "".join(f"\n  - {reason}" for reason in getattr(get_action, "env_reasons", ()))
    tried = f"\nWhat was tried:{reasons}\n" if reasons else "\n"
    raise AssertionError(
        f"Environment not found!\n{tried}The policy needs one to act in. Make it and give it to run_policy:\n"
        "    from spinstat.policy import load_policy_and_env, run_policy\n"
        "    _, get_action = load_policy_and_env('the run\\'s folder')\n"
        "    run_policy(your_env, get_action)"
    )


class _Player:
    """An environment, whichever interface it has, and the policy in it."""

    def __init__(
        self,
        env: Any,
        get_action: GetAction,
        max_ep_len: int | None,
        render: bool,
        recorder: Recorder | None,
    ) -> None:
        self._env = env
        self._get_action = get_action
        self._max_ep_len = max_ep_len
        self._render = render
        self._recorder = recorder

    def play(self, seed: int | None, on_step: Callable[[int], None]) -> Episode:
        obs = self._reset(seed)
        ret, length = 0.0, 0
        self._record()
        while True:
            if self._render:
                self._show()
            obs, reward, terminated, truncated = _read_step(self._env.step(self._get_action(obs)))
            ret += reward
            length += 1
            on_step(length)
            self._record()
            if terminated or truncated or length == self._max_ep_len:
                return Episode(ret, length, terminated, truncated)

    def _reset(self, seed: int | None) -> Any:
        if seed is None:
            return _read_reset(self._env.reset(), self._env)
        try:
            return _read_reset(self._env.reset(seed=seed), self._env)
        except TypeError as error:  # gym before 0.22
            if "seed" not in str(error) or not hasattr(self._env, "seed"):
                raise
        self._env.seed(seed)
        return _read_reset(self._env.reset(), self._env)

    def _record(self) -> None:
        if self._recorder is not None:
            self._recorder.add_frame()

    def _show(self) -> None:
        try:
            self._env.render()
        except Exception as error:  # a display problem must not end a run
            note(f"render() failed, and is not called again ({type(error).__name__}: {error})")
            self._render = False
        else:
            time.sleep(RENDER_PAUSE)


def _read_reset(result: Any, env: Any) -> Any:
    """The observation in what reset gave: observation and info, or the observation alone.

    A pair whose second half is a dict is the former, unless the environment says that its observations are
    such pairs.
    """
    if not (isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], dict)):
        return result
    space = getattr(env, "observation_space", None)
    if hasattr(space, "spaces") and _contains(space, result):
        return result
    return result[0]


def _contains(space: Any, value: Any) -> bool:
    try:
        return bool(space.contains(value))
    except Exception:  # spaces differ in what they make of a value of another kind
        return False


def _read_step(result: Any) -> tuple[Any, float, bool, bool]:
    """Observation, reward, terminated and truncated of what step gave in either interface."""
    if not (isinstance(result, tuple | list) and len(result) in (4, 5)):
        what = f"{len(result)} values" if isinstance(result, tuple | list) else f"a {type(result).__name__}"
        raise TypeError(
            f"env.step() gave {what}; it gives (obs, reward, terminated, truncated, info) in gymnasium, "
            "(obs, reward, done, info) in gym before 0.26"
        )
    obs, reward = result[0], _single(result[1], "a reward", float)
    if len(result) == 5:
        return obs, reward, _single(result[2], "terminated", bool), _single(result[3], "truncated", bool)
    done, info = _single(result[2], "done", bool), result[3]
    truncated = done and isinstance(info, dict) and bool(info.get("TimeLimit.truncated", False))
    return obs, reward, done and not truncated, truncated


def _single(value: Any, what: str, kind: Callable[[Any], Any]) -> Any:
    """A number or flag that may come as an array or tensor of one element."""
    try:
        return kind(value.item() if hasattr(value, "item") else value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(
            f"env.step() gave {what} that is not a single value: {value!r}. One environment is played at a "
            "time; of a vector environment, give one of its environments"
        ) from error
