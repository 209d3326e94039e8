"""Episodes as files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import agents
import gymnasium
import numpy as np
import pytest
from conftest import RunPython
from PIL import Image

from spinstat import EpochLogger
from spinstat.policy import evaluate
from spinstat.run import main
from spinstat.video import NoVideo, with_frames


class Screen(agents.Modern):
    """Shows its step as the brightness of its picture."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}  # noqa: RUF012

    def __init__(self, length: int = 3, render_mode: str | None = None) -> None:
        super().__init__(length)
        self.render_mode = render_mode

    def render(self) -> Any:
        return np.full((4, 6, 3), 60 * self.t, np.uint8) if self.render_mode else None


class OldScreen(agents.Counter):
    """In gym's old interface, where the mode is an argument of render()."""

    metadata = {"render.modes": ["rgb_array"], "video.frames_per_second": 20}  # noqa: RUF012

    def render(self, mode: str = "human") -> Any:
        assert mode == "rgb_array"
        return np.full((4, 6, 3), 60 * self.t, np.uint8)


class Seeded(Screen):
    """Begins with a brightness of its seed's."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        gymnasium.Env.reset(self, seed=seed)
        obs, info = super().reset(seed=seed, options=options)
        self.t = int(self.np_random.integers(4))
        return obs, info

    def step(self, action: Any) -> Any:
        obs, _, _, _, info = super().step(action)
        return obs, 1.0, self.t > 3, False, info


class Flat(agents.Counter):
    def render(self) -> Any:
        return np.zeros((4, 6))


class Broken(agents.Counter):
    def render(self) -> Any:
        raise ZeroDivisionError("no display")


gymnasium.register("Screen-v0", entry_point="test_policy_video:Screen")
gymnasium.register("Seeded-v0", entry_point="test_policy_video:Seeded")


def frames(path: Path) -> list[tuple[int, float]]:
    """The brightness and the duration in milliseconds of each frame."""
    found = []
    with Image.open(path) as image:
        assert image.size == (6, 4)
        for number in range(image.n_frames):
            image.seek(number)
            found.append((image.convert("L").getpixel((0, 0)), image.info["duration"]))
    return found


@pytest.mark.parametrize("env", [Screen(3, "rgb_array"), OldScreen(3)], ids=["gymnasium", "old gym"])
def test_each_episode_is_a_file_with_a_frame_for_each_state(tmp_path: Path, env: Any) -> None:
    evaluate(env, lambda obs: 0, num_episodes=2, video=str(tmp_path / "videos"))
    assert sorted(path.name for path in (tmp_path / "videos").iterdir()) == ["episode0.gif", "episode1.gif"]
    expected = [(60 * step, 50) for step in range(4)]
    assert frames(tmp_path / "videos" / "episode0.gif") == expected
    assert frames(tmp_path / "videos" / "episode1.gif") == expected


def test_an_environment_with_a_specification_is_made_anew_to_give_frames(
    capsys: pytest.CaptureFixture[str],
) -> None:
    env = gymnasium.make("Screen-v0", length=5)
    able = with_frames(env)
    assert able.render_mode == "rgb_array" and able.unwrapped.length == 5
    assert "made anew" in capsys.readouterr().err
    assert with_frames(able) is able
    old = agents.Counter()
    assert with_frames(old) is old


@pytest.mark.parametrize(
    ("env", "complaint"),
    [
        (Screen(3), "gave no frame but None.*render_mode='rgb_array'"),
        (agents.Counter(), "no frame but None"),
        (Flat(), r"no frame of shape \(4, 6\)"),
        (Broken(), "failed.*ZeroDivisionError: no display"),
    ],
)
def test_an_environment_without_frames_is_a_clear_error(tmp_path: Path, env: Any, complaint: str) -> None:
    with pytest.raises(NoVideo, match=complaint):
        evaluate(env, lambda obs: 0, num_episodes=1, video=str(tmp_path))


def test_a_command_that_cannot_record_ends_with_1_and_says_why(
    tmp_path: Path, output_dir: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with EpochLogger(output_dir, quiet=True) as logger:
        logger.setup_pytorch_saver(agents.Lean())
        logger.save_state({"env": agents.Counter(2)})
    assert main(["test_policy", output_dir, "-n", "1", "--video", str(tmp_path / "v")]) == 1
    assert "NoVideo: env.render() gave no frame" in capsys.readouterr().err


def test_the_command_records_and_a_seed_repeats_it(tmp_path: Path, output_dir: str) -> None:
    with EpochLogger(output_dir, quiet=True) as logger:
        logger.setup_pytorch_saver(agents.Lean())
        logger.save_state({"env": gymnasium.make("Seeded-v0")})
    recorded = []
    for name in ("first", "second", "other"):
        folder = tmp_path / name
        seed = "6" if name == "other" else "5"
        words = ["test_policy", output_dir, "-n", "8", "--seed", seed, "--video", str(folder)]
        assert main(words) == 0
        recorded.append([(folder / f"episode{number}.gif").read_bytes() for number in range(8)])
    assert recorded[0] == recorded[1]
    assert recorded[0] != recorded[2] and len(set(recorded[0])) > 1


def test_a_seed_makes_drawn_actions_the_same(output_dir: str, capsys: pytest.CaptureFixture[str]) -> None:
    with EpochLogger(output_dir, quiet=True) as logger:
        logger.setup_pytorch_saver(Drawing())
        logger.save_state({"env": agents.Modern(20)})
    tables = []
    for seed in ("5", "5", "6"):
        Drawing.drawn.clear()
        assert main(["test_policy", output_dir, "-nr", "-n", "1", "--seed", seed]) == 0
        tables.append([*Drawing.drawn])
    assert tables[0] == tables[1] != tables[2] and len(tables[0]) == 20


class Drawing:
    drawn: list[tuple[float, float]] = []  # noqa: RUF012

    def act(self, obs: Any) -> int:
        import torch

        self.drawn.append((torch.rand(()).item(), np.random.rand()))
        return 0


def test_pillow_that_is_not_installed_is_named(run_python: RunPython) -> None:
    program = """if True:
        import sys
        sys.modules["PIL"] = None
        from spinstat.policy import evaluate
        class Env:
            pass
        try:
            evaluate(Env(), None, video="videos")
        except ImportError as error:
            print(error)
    """
    assert "pip install pillow" in run_python("-c", program).stdout
