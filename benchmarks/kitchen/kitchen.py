"""FrankaKitchen-v1 of gymnasium-robotics with the four tasks of D4RL's *mixed*: what is seen, done and counted.

A state has 59 numbers: position and velocity of the arm's seven joints and two fingers (9 + 9), then of everything that
moves in the kitchen (21 + 20). An action has nine numbers in [-1, 1], one for each joint and finger. Twice the number
is a velocity in rad/s (fingers: m/s). For the 0.08 s of a step it moves the set point of that joint's position servo
away from where the joint was last *seen*:

    set point = clip(seen position + 0.08 * 2 * clip(action, -1, 1), the joint's limits)

So an action of 0 does not hold the arm: the servo gives way under its weight and the next set point begins from there.
In a free step a shoulder joint gets half as far as it was sent, the wrist 0.6 and a finger a third. What is seen has
noise: up to 0.001 for a joint (1 % of 0.1 rad), 0.00005 or less for a thing.

A task is completed once the joints of its thing are within 0.3 of their goal (Euclidean); an episode has 280 steps.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import sys
from importlib.metadata import version
from types import TracebackType
from typing import Any, Self

import numpy as np
import typer
from numpy.typing import NDArray

from anyorder.errors import UserError

from common import NOT_RUN

Vector = NDArray[np.float64]
Picture = NDArray[np.uint8]

TASKS = ("microwave", "kettle", "bottom burner", "light switch")
STEPS = 280
STATES, ACTIONS = 59, 9
JOINTS = 7  # the first seven actions move the arm, the last two the fingers
SECONDS, RANGE = 0.08, 2.0  # of a step; rad/s of an action of 1
NEEDED = ("gymnasium_robotics", "mujoco", "h5py")
"""Modules that the extra `robotics` brings."""


def missing() -> str | None:
    """Why there is no simulator, in one line; None where it is installed."""
    absent = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if absent:
        return f"the simulator is not installed (no {', '.join(absent)}): pip install 'anyorder[robotics]'"
    if (found := version("mujoco")).split(".")[0] != "3":
        return f"the kitchen needs mujoco 3, but {found} is installed: pip install 'anyorder[robotics]'"
    return None


def require(*, smoke: bool) -> None:
    """End a script where there is no simulator: a smoke run with success, since nothing is broken."""
    if (why := missing()) is None:
        return
    if smoke:
        print(f"{NOT_RUN}{why}")
        raise typer.Exit(0)
    raise SystemExit(why)


class Kitchen:
    """One simulated kitchen; ``reset`` begins an episode, ``step`` acts, ``completed`` says what was achieved.

    ``size`` is width and height of pictures; without it none are made, which needs no OpenGL. On a machine without a
    screen they are drawn by Mesa in memory (``MUJOCO_GL=osmesa``; Debian's libosmesa6).
    """

    def __init__(self, *, steps: int = STEPS, size: tuple[int, int] | None = None) -> None:
        if (why := missing()) is not None:
            raise UserError(why)
        if size is not None and sys.platform == "linux" and "DISPLAY" not in os.environ:
            os.environ.setdefault("MUJOCO_GL", "osmesa")  # read when mujoco is first imported
        with contextlib.redirect_stderr(io.StringIO()):  # a notice about other environments
            import gymnasium
            import gymnasium_robotics
        gymnasium.register_envs(gymnasium_robotics)
        pictures: dict[str, Any] = {}
        if size is not None:
            pictures = {"render_mode": "rgb_array", "width": size[0], "height": size[1]}
        self._env = gymnasium.make(
            "FrankaKitchen-v1",
            tasks_to_complete=list(TASKS),
            terminate_on_tasks_completed=False,
            max_episode_steps=steps,
            disable_env_checker=True,  # it warns of what the environment does on purpose
            **pictures,
        )
        self._inside: Any = self._env.unwrapped
        self._inside.model.vis.quality.shadowsize = (
            0  # without a graphics card shadows take ten times as long as the rest
        )
        self._first = self._inside.robot_env.init_qpos.copy()
        self.finished = True

    @property
    def model(self) -> Any:
        """MuJoCo's model of the kitchen: masses, joints, geometry."""
        return self._inside.model

    @property
    def data(self) -> Any:
        """MuJoCo's state of the kitchen, without the noise of what is seen."""
        return self._inside.data

    @property
    def completed(self) -> tuple[str, ...]:
        """The tasks completed in this episode, in order; one that is undone later still counts."""
        return tuple(self._inside.episode_task_completions)

    def reset(self, seed: int, *, start_noise: float = 0.0) -> Vector:
        """Begin an episode: the same seed, the same noise in the start and in all that is seen.

        ``start_noise`` is the standard deviation by which each joint of the arm starts elsewhere, in rad; the
        environment itself has none.
        """
        moved = np.random.default_rng([seed, 1]).normal(0.0, start_noise, JOINTS)
        low, high = self.model.jnt_range[:JOINTS].T
        first = self._first.copy()
        if start_noise:
            first[:JOINTS] = np.clip(first[:JOINTS] + moved, low, high)
        self._inside.robot_env.init_qpos = first
        seen, _ = self._env.reset(seed=seed)
        self.finished = False
        return np.array(seen["observation"], dtype=np.float64)

    def step(self, action: Vector) -> Vector:
        """Act for 0.08 s; numbers beyond [-1, 1] count as the bound. Returns the next state."""
        action = np.asarray(action, dtype=np.float64)
        if action.shape != (ACTIONS,):
            raise UserError(
                f"an action of the kitchen has {ACTIONS} numbers, but this one has the shape {action.shape}"
            )
        if not np.isfinite(action).all():
            raise UserError(f"an action needs finite numbers, but {_named(~np.isfinite(action))} is not one")
        if self.finished:
            raise UserError("the episode is over: call reset(seed) to begin another")
        seen, _, terminated, truncated, _ = self._env.step(np.clip(action, -1.0, 1.0))
        self.finished = bool(terminated or truncated)
        return np.array(seen["observation"], dtype=np.float64)

    def picture(self) -> Picture:
        """The kitchen from the front, ``[height, width, 3]``."""
        if self._env.render_mode is None:
            raise UserError("this kitchen makes no pictures: Kitchen(size=(480, 360)) does")
        return np.array(self._env.render(), dtype=np.uint8)

    def close(self) -> None:
        """Give back what pictures need; twice does no harm."""
        self._env.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _named(which: NDArray[np.bool_]) -> str:
    return ", ".join(f"action_{index}" for index in np.flatnonzero(which))
