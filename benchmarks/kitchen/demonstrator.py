"""A scripted demonstrator: way-points at the handles, reached by damped least squares on the Jacobian of MuJoCo.

With J the Jacobian of the point between the fingertips (three rows of position, three of rotation, the latter weighed
by a length), e the way to the next way-point in the same units, both cut to a step, and the joints that are free to
move (all but those that would run into a limit):

    dq = J^T (J J^T + damping^2 I)^-1 e + (I - J^+ J) pull * (rest - q)

The servo gets only a part of the way in one step and sags under the arm's weight, so it is sent further:
set point = q + dq / part + weight / stiffness. A demonstrator sees the true state of the simulator, not the noisy one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from anyorder.errors import UserError, nearest

from kitchen import ACTIONS, JOINTS, RANGE, SECONDS, TASKS, Kitchen, Vector

Position = Callable[[], Vector]

REST = np.array([0.148, -1.4, 1.843, -2.2, 0.26, 0.712, 1.595])
"""A posture with all joints away from their limits, to which the arm is drawn where the task leaves it free."""
PULL = 0.1  # of the way to it in a step
DAMPING = 0.05
ROTATION = 0.25  # metres that a rad of rotation counts as
TURN = 0.12  # rad in a step at most
MARGIN = 0.03  # rad that are kept from a joint's limit
STEP = 0.06  # metres in a step at most
OPEN, SHUT = 0.04, 0.0  # metres of each finger
TRIES = 3  # of one task

RIGHT, FORWARD, _ = np.eye(3)


@dataclass(frozen=True)
class Waypoint:
    """Where the fingertips go next, until they are ``near`` or ``done`` is true, for at most so many steps."""

    position: Position
    pointing: Vector = field(default_factory=lambda: FORWARD)
    across: Vector = field(default_factory=lambda: RIGHT)  # the direction in which the fingers open
    fingers: float = OPEN
    near: float = 0.0  # metres
    steps: int = 30
    reach: float = STEP  # metres in a step at most: against something that resists, how hard it is pushed
    done: Callable[[], bool] | None = None


@dataclass(frozen=True)
class Manner:
    """How one episode is done: what differs between people, and between two times that one does the same thing."""

    start_noise: float = 0.0  # rad, standard deviation of each joint at the start
    action_noise: float = 0.0  # standard deviation of what is added to each action
    shift: float = 0.0  # metres, standard deviation of each way-point's position in the free directions
    slowest: float = 1.0  # share of the full speed; each episode draws its own between this and 1


STEADY = Manner()
HUMAN = Manner(start_noise=0.05, action_noise=0.07, shift=0.01, slowest=0.8)


class Demonstrator:
    """Does tasks in the order asked; ``act`` gives the next action, None when there is nothing left to do."""

    def __init__(
        self, kitchen: Kitchen, order: Sequence[str] = TASKS, manner: Manner = STEADY, *, tries: int = TRIES
    ) -> None:
        for task in order:
            if task not in PLANS:
                raise UserError(f"no task {task!r}; {nearest(task, PLANS, noun='tasks')}")
        self.kitchen, self.order, self.manner, self.tries = kitchen, tuple(order), manner, tries
        self.doing: str | None = None
        self._actions: Iterator[Vector] = iter(())

    def start(self, seed: int) -> None:
        """Begin an episode; the kitchen has been reset."""
        self._actions = self._all(np.random.default_rng([seed, 2]))

    def act(self, state: Vector) -> Vector | None:
        """What to do now. The state is the simulator's own, not the noisy one that is handed over."""
        return next(self._actions, None)

    def _all(self, rng: np.random.Generator) -> Iterator[Vector]:
        speed = rng.uniform(self.manner.slowest, 1.0)
        arm = Arm(self.kitchen)
        for task in self.order:
            self.doing = task
            for _ in range(self.tries):
                for waypoint in PLANS[task](arm, rng.normal(0.0, self.manner.shift, 3)):
                    for _ in range(int(waypoint.steps / speed)):
                        if arm.arrived(waypoint):
                            break
                        noise = rng.normal(0.0, self.manner.action_noise, ACTIONS) * NOISY
                        yield np.clip(arm.towards(waypoint, speed) + noise, -1.0, 1.0)
                if task in self.kitchen.completed:
                    break
        self.doing = None


NOISY = np.array([1.0] * JOINTS + [0.2] * (ACTIONS - JOINTS))
"""An action of 0.25 opens a finger all the way, so the noise of fingers is smaller."""


class Arm:
    """The arm of a kitchen: where it is, and the action that brings it nearer to a way-point."""

    def __init__(self, kitchen: Kitchen) -> None:
        import mujoco

        self._jacobian = mujoco.mj_jacSite
        self.model, self.data = kitchen.model, kitchen.data
        self._site = self.model.site("end_effector").id
        self._stiffness = self.model.actuator_gainprm[:ACTIONS, 0]
        # A servo with friction: dx/dt = stiffness / friction * (set point - x)
        self._part = 1 - np.exp(-self._stiffness / self.model.dof_damping[:ACTIONS] * SECONDS)
        low, high = self.model.jnt_range[:JOINTS].T
        self._low, self._high = low + MARGIN, high - MARGIN

    @property
    def tip(self) -> Vector:
        """The point between the fingertips."""
        return self.data.site_xpos[self._site].copy()

    def site(self, name: str) -> Vector:
        """Where a marked point of the kitchen is now: a handle, a knob."""
        return self.data.site(name).xpos.copy()

    def angle(self, joint: str) -> float:
        """How far a door, knob or switch is turned, in rad."""
        return float(self.data.joint(joint).qpos[0])

    def arrived(self, waypoint: Waypoint) -> bool:
        if waypoint.done is not None and waypoint.done():
            return True
        return bool(np.linalg.norm(waypoint.position() - self.tip) < waypoint.near)

    def towards(self, waypoint: Waypoint, speed: float = 1.0) -> Vector:
        """The action of a step towards a way-point."""
        way = _cut(waypoint.position() - self.tip, waypoint.reach if waypoint.done else waypoint.reach * speed)
        turn = _cut(self._rotation_to(waypoint), TURN)
        joints = self._solve(np.concatenate([way, ROTATION * turn]))
        sent = joints / self._part[:JOINTS] + self.data.qfrc_bias[:JOINTS] / self._stiffness[:JOINTS]
        fingers = (waypoint.fingers - self.data.qpos[JOINTS:ACTIONS]) / self._part[JOINTS:]
        arm = sent / (SECONDS * RANGE)
        arm /= max(1.0, np.abs(arm).max())  # slower, but in the same direction
        return np.clip(np.concatenate([arm, fingers / (SECONDS * RANGE)]), -1.0, 1.0)

    def _rotation_to(self, waypoint: Waypoint) -> Vector:
        forward = waypoint.pointing / np.linalg.norm(waypoint.pointing)
        across = waypoint.across - forward * (waypoint.across @ forward)
        across /= np.linalg.norm(across)
        wanted = np.stack([np.cross(across, forward), across, forward])
        now = self.data.site_xmat[self._site].reshape(3, 3).T
        return 0.5 * np.cross(now, wanted).sum(axis=0)

    def _solve(self, wanted: Vector) -> Vector:
        jacobian = np.zeros((6, self.model.nv))
        self._jacobian(self.model, self.data, jacobian[:3], jacobian[3:], self._site)
        jacobian = jacobian[:, :JOINTS]
        jacobian[3:] *= ROTATION
        now = self.data.qpos[:JOINTS]
        free = np.ones(JOINTS, dtype=bool)
        while True:
            open_ = jacobian * free
            inverse = open_.T @ np.linalg.inv(open_ @ open_.T + DAMPING**2 * np.eye(6))
            rest = (np.diag(free) - inverse @ open_) @ (PULL * (REST - now) * free)
            joints = inverse @ wanted + rest
            stuck = free & (((now + joints > self._high) & (joints > 0)) | ((now + joints < self._low) & (joints < 0)))
            if not stuck.any():
                break
            free &= ~stuck
        # What stands beyond the margin comes back gently.
        inside = np.clip(now, self._low, self._high)
        return np.where(free, joints, 0.3 * (inside - now))


def _cut(vector: Vector, most: float) -> Vector:
    length = float(np.linalg.norm(vector))
    return vector if length <= most else vector * (most / length)


def _open_microwave(arm: Arm, shift: Vector) -> list[Waypoint]:
    """Take the handle between the fingers and walk it around the hinge.

    The hand points 35 degrees to the left, 18 more than the door does: so one finger is hooked behind the handle.
    """
    pointing, across = np.array([-0.574, 0.819, 0.0]), np.array([0.819, 0.574, 0.0])
    hinge = arm.data.joint("microwave").xanchor.copy()
    height = np.array([0.0, 0.0, 0.05 + shift[2]])

    def handle(back: float = 0.0, ahead: float = 0.0) -> Position:
        def position() -> Vector:
            radius = arm.site("microhandle_site") - hinge
            cos, sin = np.cos(ahead), np.sin(ahead)
            turned = np.array([cos * radius[0] - sin * radius[1], sin * radius[0] + cos * radius[1], radius[2]])
            return hinge + turned - back * pointing + height

        return position

    def point(position: Position, fingers: float, **options: object) -> Waypoint:
        return Waypoint(position, pointing, across, fingers, **options)  # type: ignore[arg-type]  # options of several kinds

    return [
        point(handle(0.12 + shift[0]), OPEN, near=0.03, steps=40),
        point(handle(), OPEN, near=0.015, steps=20),
        point(handle(), SHUT, steps=4),
        point(handle(ahead=-0.25), SHUT, steps=40, done=lambda: arm.angle("microwave") < -0.75),
        point(handle(), OPEN, steps=4),
        point(handle(0.15), OPEN, near=0.04, steps=15),
    ]


def _push_kettle(arm: Arm, shift: Vector) -> list[Waypoint]:
    """Push it low, with the fingertips against its front: pushed at the handle it would topple."""
    down = np.array([0.0, 0.85, -0.53])

    def kettle(*beside: float) -> Position:
        return lambda: arm.data.body("kettle").xpos + beside

    done: Callable[[], bool] = lambda: arm.data.body("kettle").xpos[1] > 0.62  # noqa: E731 (one line beside its use)
    return [
        Waypoint(kettle(shift[0], -0.30 + shift[1], 0.25 + shift[2]), down, near=0.05),
        Waypoint(kettle(0.5 * shift[0], -0.23, 0.10), down, near=0.03, steps=25),
        Waypoint(kettle(0.0, -0.05, 0.10), down, steps=50, reach=0.05, done=done),
        Waypoint(kettle(0.0, -0.25, 0.30), near=0.06, steps=20),
    ]


def _turn_knob(arm: Arm, shift: Vector) -> list[Waypoint]:
    """Push the upper end of the knob's bar to the right, around its axis, with the fingers shut."""
    middle, depth = arm.site("knob2_site"), np.array([0.0, -0.04, 0.0])
    aside = np.array([0.3, 1.0, 0.0])  # straight ahead the wrist would be at its limit

    def beside(*way: float) -> Position:
        return lambda: middle + way

    def push() -> Vector:
        angle = -arm.angle("knob_Joint_2")
        end = 0.042 * np.array([np.sin(angle), 0.0, np.cos(angle)])
        tangent = np.array([np.cos(angle), 0.0, -np.sin(angle)])
        return middle + depth + end + 0.03 * tangent

    return [
        Waypoint(beside(-0.05, -0.15 + shift[1], 0.045 + shift[2]), aside, fingers=SHUT, near=0.04, steps=40),
        Waypoint(beside(-0.045 + 0.3 * shift[0], -0.04, 0.045), aside, fingers=SHUT, near=0.015, steps=25),
        Waypoint(push, aside, fingers=SHUT, steps=35, reach=0.06, done=lambda: arm.angle("knob_Joint_2") < -0.80),
        Waypoint(beside(-0.03, -0.15, 0.045), fingers=SHUT, near=0.05, steps=15),
    ]


def _push_switch(arm: Arm, shift: Vector) -> list[Waypoint]:
    """Push the light switch to the left with the fingers shut."""
    first = arm.site("light_site") if arm.angle("light_switch") > -0.05 else np.array([-0.368, 0.616, 2.28])

    def beside(*way: float) -> Position:
        return lambda: first + way

    done: Callable[[], bool] = lambda: arm.angle("light_switch") < -0.65  # noqa: E731 (one line beside its use)
    return [
        Waypoint(beside(0.06 + 0.5 * shift[0], -0.15 + shift[1], shift[2]), fingers=SHUT, near=0.04, steps=40),
        Waypoint(beside(0.06, -0.04, 0.5 * shift[2]), fingers=SHUT, near=0.015, steps=25),
        Waypoint(beside(-0.08, -0.03, 0.5 * shift[2]), fingers=SHUT, steps=30, reach=0.03, done=done),
        Waypoint(beside(0.0, -0.15, 0.0), fingers=SHUT, near=0.05, steps=15),
    ]


PLANS: dict[str, Callable[[Arm, Vector], list[Waypoint]]] = {
    "microwave": _open_microwave,
    "kettle": _push_kettle,
    "bottom burner": _turn_knob,
    "light switch": _push_switch,
}
