"""Episodes as animated GIFs, which need no encoder beside pillow."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from .files import make_folder
from .stderr import note

DEFAULT_FPS = 30  # frames a second, where the environment does not say


def with_frames(env: Any) -> Any:
    """The environment, or where that was not made to give frames, one like it that is.

    Raises:
        Exception: whatever the environment raises when it is made anew.
    """
    if getattr(env, "render_mode", None) == "rgb_array":
        return env
    spec = getattr(env, "spec", None)
    if spec is None or not hasattr(spec, "additional_wrappers"):
        return env
    import gymnasium

    note("The environment is made anew, with render_mode='rgb_array'.")
    return gymnasium.make(spec, render_mode="rgb_array")


class NoVideo(RuntimeError):
    """The environment gives no frames for a video; tells why."""


class Recorder:
    """Collects the frames of an episode and writes them.

    Args:
        folder: where to, made where needed.
        env: the environment.

    Raises:
        ImportError: pillow is not installed.
        OSError: the folder cannot be made.
    """

    def __init__(self, folder: str, env: Any) -> None:
        try:
            from PIL import Image
        except ImportError as error:
            raise ImportError(f"videos need pillow: pip install pillow ({error})") from error
        make_folder(folder)
        self._image = Image
        self._folder = folder
        self._env = env
        metadata = getattr(env, "metadata", None) or {}
        # gym before 0.26 has no render_mode, and takes the mode with each call
        self._old_style = not hasattr(env, "render_mode") and "rgb_array" in metadata.get("render.modes", ())
        self._fps = metadata.get("render_fps") or metadata.get("video.frames_per_second") or DEFAULT_FPS
        self._frames: list[Any] = []

    def add_frame(self) -> None:
        """Add what the environment shows now.

        Raises:
            NoVideo: it gives no frame.
        """
        try:
            shown = self._env.render(mode="rgb_array") if self._old_style else self._env.render()
        except Exception as error:  # displays fail in as many ways as there are
            raise NoVideo(f"no video: env.render() failed ({type(error).__name__}: {error})") from error
        frame = np.asarray(shown)
        if frame.ndim != 3 or frame.shape[2] != 3:
            what = f"of shape {frame.shape}" if isinstance(shown, np.ndarray) else f"but {shown!r}"
            raise NoVideo(
                f"env.render() gave no frame {what}; a video needs arrays of shape (height, width, 3): make "
                "the environment with render_mode='rgb_array'"
            )
        image = self._image.fromarray(frame.astype(np.uint8))
        self._frames.append(image.quantize(256))  # a byte a pixel, as in the file

    def write(self, number: int) -> None:
        """Write the frames as episode<number>.gif, and forget them."""
        frames, self._frames = self._frames, []
        path = os.path.join(self._folder, f"episode{number}.gif")
        pause = 1000 / self._fps  # milliseconds
        frames[0].save(path, "GIF", save_all=True, append_images=frames[1:], duration=pause, loop=0)
