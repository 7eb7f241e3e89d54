"""The simulated kitchen: what an action means, the demonstrator, and episodes with common random numbers."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "kitchen"))
from anyorder.data.demonstrations import load
from anyorder.errors import UserError

import hearing
import kitchen as simulator
from demonstrate import drawn_order, write
from demonstrator import HUMAN, STEP, Arm, Demonstrator, Waypoint
from episodes import Episode, by_task, mean_and_error, play, play_together
from kitchen import ACTIONS, STATES, TASKS, Kitchen, missing
from shared_autonomy import drawn
from table6 import CHOICES, PARTNERS, Cell, tables

# Where a joint of each thing is in MuJoCo's qpos, and beyond which angle (rad) or line (m) it must get.
MOVED = {"microwave": (22, -0.45), "kettle": (24, 0.55), "bottom burner": (11, -0.58), "light switch": (17, -0.39)}

needs_simulator = pytest.mark.skipif(missing() is not None, reason=missing() or "")


@pytest.fixture(scope="module")
def there() -> Kitchen:
    return Kitchen()


def test_without_the_simulator_one_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulator, "NEEDED", ("mujoco_of_tomorrow",))
    with pytest.raises(UserError, match=r"no mujoco_of_tomorrow.*pip install 'anyorder\[robotics\]'"):
        Kitchen()


@needs_simulator
def test_an_action_moves_the_set_point_of_each_servo(there: Kitchen) -> None:
    """set point = clip(seen position + 0.08 s * 2 rad/s * clip(action)), whatever the noise."""
    seen = there.reset(3)
    assert seen.shape == (STATES,)
    low = np.array([-2.9, -1.8, -2.9, -3.1, -2.9, 0.0, -2.9, 0.0, 0.0])
    high = np.array([2.9, 1.8, 2.9, 0.0, 2.9, 3.8, 2.9, 0.04, 0.04])
    rng = np.random.default_rng(0)
    for _ in range(20):
        action = rng.uniform(-1.5, 1.5, ACTIONS)
        after = there.step(action)
        expected = np.clip(seen[:ACTIONS] + 0.16 * np.clip(action, -1, 1), low, high)
        np.testing.assert_allclose(there.data.ctrl, expected, atol=1e-12)
        seen = after
        np.testing.assert_allclose(seen[:ACTIONS], there.data.qpos[:ACTIONS], atol=0.01 * 0.1)


@needs_simulator
def test_a_seed_is_one_kitchen(there: Kitchen) -> None:
    def walk(seed: int, **options: float) -> np.ndarray:
        return np.array([there.reset(seed, **options)] + [there.step(np.full(ACTIONS, 0.2)) for _ in range(5)])

    np.testing.assert_array_equal(walk(1), walk(1))
    assert (walk(1) != walk(2)).any()
    moved = walk(1, start_noise=0.1)[0, :7] - walk(1)[0, :7]
    assert 0.02 < np.abs(moved).mean() < 0.2
    np.testing.assert_array_equal(walk(1), walk(1))  # the noise of one start is gone at the next


@needs_simulator
@pytest.mark.parametrize(
    "action, message",
    [(np.zeros(4), "has 9 numbers"), (np.array([0, np.nan, *[0] * 7]), "action_1 is not one")],
)
def test_actions_that_are_none(there: Kitchen, action: np.ndarray, message: str) -> None:
    there.reset(0)
    with pytest.raises(UserError, match=message):
        there.step(action)


@needs_simulator
def test_an_episode_ends(there: Kitchen) -> None:
    short = Kitchen(steps=2)
    with pytest.raises(UserError, match="reset"):
        short.step(np.zeros(ACTIONS))
    short.reset(0)
    short.step(np.zeros(ACTIONS))
    assert not short.finished
    short.step(np.zeros(ACTIONS))
    assert short.finished
    with pytest.raises(UserError, match="the episode is over"):
        short.step(np.zeros(ACTIONS))
    with pytest.raises(UserError, match="makes no pictures"):
        short.picture()


@needs_simulator
@pytest.mark.parametrize("way", [(0.05, 0.0, 0.0), (0.0, 0.05, 0.0), (0.0, 0.0, 0.05), (-0.1, 0.1, -0.1)])
def test_the_arm_goes_where_it_is_sent(there: Kitchen, way: tuple[float, float, float]) -> None:
    there.reset(0)
    arm = Arm(there)
    target = arm.tip + way
    point = Waypoint(lambda: target)
    before = np.linalg.norm(target - arm.tip)
    there.step(arm.towards(point))
    assert 0.1 * STEP < before - np.linalg.norm(target - arm.tip) < 1.1 * STEP
    for _ in range(12):
        there.step(arm.towards(point))
    assert np.linalg.norm(target - arm.tip) < 0.01
    rotation = there.data.site("end_effector").xmat.reshape(3, 3)
    assert rotation[1, 2] > 0.98 and rotation[0, 1] > 0.98  # it points ahead and opens sideways


@needs_simulator
@pytest.mark.parametrize("task", TASKS)
def test_each_task_is_done_to_its_goal(there: Kitchen, task: str) -> None:
    found = play(there, Demonstrator(there, [task]), 0)
    assert list(found.completed) == [task]
    assert len(found.states) == len(found.actions) + 1
    index, beyond = MOVED[task]
    first, last = (
        found.states[0][9 + index],
        found.states[-1][9 + index],
    )  # things stand behind 9 + 9 numbers of the arm
    assert min(first, last) < beyond < max(first, last)
    for other, (index, _) in MOVED.items():  # and nothing else was moved
        if other != task:
            assert found.states[-1][9 + index] == pytest.approx(found.states[0][9 + index], abs=0.05)


@needs_simulator
@pytest.mark.slow
def test_all_four_in_order(there: Kitchen) -> None:
    found = [play(there, Demonstrator(there, TASKS, HUMAN), seed, start_noise=HUMAN.start_noise) for seed in range(4)]
    assert np.mean([len(one.completed) for one in found]) >= 3
    assert [task for task in found[0].completed if task in TASKS] == list(found[0].completed)
    assert by_task(found)["kettle"] >= 0.5


@needs_simulator
def test_an_unknown_task_is_named(there: Kitchen) -> None:
    with pytest.raises(UserError, match="did you mean 'kettle'"):
        Demonstrator(there, ["ketle"])


class Counting:
    """A kitchen of three steps in which the first number of an action says how many tasks are done; no simulator."""

    def __init__(self) -> None:
        self.completed: tuple[str, ...] = ()
        self.finished = True

    def reset(self, seed: int, *, start_noise: float = 0.0) -> np.ndarray:
        self.completed, self.finished, self.steps, self.seed = (), False, 0, seed
        return np.array([float(seed)])

    def step(self, action: np.ndarray) -> np.ndarray:
        self.steps += 1
        self.finished = self.steps == 3
        self.completed = TASKS[: int(action[0])]
        return np.array([self.seed + 0.1 * self.steps])


class Always:
    def __init__(self, tasks: list[int]) -> None:
        self.tasks = tasks

    def start(self, seed: int) -> None:
        self.left = list(self.tasks)

    def act(self, state: np.ndarray) -> np.ndarray | None:
        return np.array([float(self.left.pop(0))]) if self.left else None


def test_episodes_are_counted() -> None:
    found = play(Counting(), Always([1, 1, 1]), 5)  # type: ignore[arg-type]
    assert [float(state[0]) for state in found.states] == pytest.approx([5.0, 5.1, 5.2, 5.3])
    assert found.completed == {"microwave": 1}
    stopped = play(Counting(), Always([0, 1]), 5)  # type: ignore[arg-type]
    assert len(stopped.actions) == 2 and stopped.completed == {"microwave": 2}
    assert by_task([found, play(Counting(), Always([]), 0)]) == {  # type: ignore[arg-type]
        "microwave": 0.5,
        "kettle": 0.0,
        "bottom burner": 0.0,
        "light switch": 0.0,
    }


class SeedsAndSteps:
    """Sends in each kitchen a number made of its episode's seed and the step."""

    def act(self, states: np.ndarray, seeds: list[int], step: int) -> np.ndarray:
        assert len(states) == len(seeds)
        return np.array([[seed / 10 + step / 100] for seed in seeds])


def test_many_episodes_are_played_step_by_step_in_the_kitchens_there_are() -> None:
    found = play_together([Counting(), Counting()], SeedsAndSteps(), [1, 2, 3])  # type: ignore[list-item, arg-type]
    assert [one.seed for one in found] == [1, 2, 3]
    for one in found:
        assert [float(action[0]) for action in one.actions] == pytest.approx(
            [one.seed / 10 + n / 100 for n in range(3)]
        )
        assert len(one.states) == 4 and float(one.states[0][0]) == one.seed


def test_mean_and_error() -> None:
    assert mean_and_error(np.array([1, 2, 3])) == pytest.approx((2.0, 1 / np.sqrt(3)))
    assert mean_and_error(np.array([2])) == (2.0, float("inf"))


def test_orders_are_like_those_of_mixed() -> None:
    orders = [drawn_order(np.random.default_rng(seed)) for seed in range(4000)]
    assert all(len(set(order)) == len(order) >= 2 for order in orders)
    assert 0.05 < np.mean([order == TASKS for order in orders]) < 0.2  # rarely all four in order
    shares = [np.mean([task in order for order in orders]) for task in TASKS]
    assert shares == pytest.approx([(2 * 0.2 + 3 * 0.65 + 4 * 0.15) / 4] * 4, abs=0.03)
    assert {order[0] for order in orders} == set(TASKS)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py", reason="the extra 'robotics' is not installed")
    rng = np.random.default_rng(0)
    kept = []
    for seed, steps in enumerate((3, 2)):
        states, actions = list(rng.normal(size=(steps + 1, STATES))), list(rng.uniform(-1, 1, (steps, ACTIONS)))
        kept.append((TASKS[:1], Episode(seed, states, actions, {"microwave": steps})))
    path = write(tmp_path / "scripted", kept)
    frame = load(tmp_path / "scripted")
    assert frame["episode"].tolist() == [0, 0, 0, 1, 1] and frame["step"].tolist() == [0, 1, 2, 0, 1]
    expected = [
        np.concatenate([episode.states[step], episode.actions[step]])
        for _, episode in kept
        for step in range(len(episode.actions))
    ]
    np.testing.assert_array_equal(frame.drop(columns=["episode", "step"]).to_numpy(), expected)
    with h5py.File(path) as file:  # a task completed in a step is its reward
        assert file["episode_0/rewards"][()].tolist() == [0, 0, 1]
        assert file["episode_1"].attrs["tasks"] == "microwave" and file["episode_1"].attrs["seed"] == 1


@pytest.mark.parametrize(("heard", "expected"), [(hearing.NOTHING, 1.0), (hearing.DONE, 0.0), (hearing.CLONED, 1.0)])
def test_a_partner_that_hears_gains_from_what_was_done_and_not_from_an_operator_that_knows_nothing(
    heard: str, expected: float
) -> None:
    """All nine numbers of an action are one, a fair coin's: who hears one of them knows all."""

    class Copying:
        def complete(self, states: np.ndarray, given: np.ndarray, seeds: object, step: int) -> np.ndarray:
            told = np.array([row[~np.isnan(row)][:1].sum() for row in given])
            return np.where(np.isnan(given), told[:, None], given)

    class Still:
        def act(self, states: np.ndarray, seeds: object, step: int) -> np.ndarray:
            return np.zeros((len(states), ACTIONS))

    coins = np.tile([1.0, -1.0, -1.0, 1.0], 3)
    frame = pd.DataFrame({f"action_{index}": coins for index in range(ACTIONS)})
    frame = frame.assign(state_0=0.0, episode=np.repeat([0, 1, 2], 4))
    assert hearing.errors(frame, Copying(), Still(), drawn(4), heard) == pytest.approx([expected] * 3)


def test_a_table_is_written_while_some_trainings_have_not_been_played() -> None:
    """A cell with one of two trainings is left out of all lines; the others are paired as before."""
    row = {"0": [1, 2], "1": [3, 4]}
    cells = {Cell(partner, choice).key: dict(row) for partner in PARTNERS for choice in CHOICES}
    cells[Cell(PARTNERS[0], "gripper and two joints").key] = {"0": [4, 4]}
    found = tables({"completed": cells, "errors": {}}, 1)
    assert [line["policy"] for line in found["rows"]] == [f"operator and {partner}" for partner in PARTNERS[1:]]
    assert [line["mean of the three"] for line in found["paired differences"]] == ["+0.00 ± 0.00"]
