"""Demonstrations in the public forms: small files laid out as Minari and D4RL write them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anyorder.data.demonstrations import from_arrays, load
from anyorder.errors import UserError

h5py = pytest.importorskip("h5py", reason="the extra 'robotics' is not installed")

LENGTHS = [3, 1, 4, 2, 5, 1, 2, 3, 1, 2, 6, 2]  # more than ten: episode_10 must not come before episode_2
STATES, ACTIONS = 59, 9


def steps(episode: int) -> tuple[np.ndarray, np.ndarray]:
    """States (one more than actions) and actions in which every number says where it stands."""
    length = LENGTHS[episode]
    states = episode + np.arange(length + 1)[:, None] / 100 + np.arange(STATES) / 10_000
    actions = -(episode + np.arange(length)[:, None] / 100 + np.arange(ACTIONS) / 10_000)
    return states, actions


def minari(path: Path, *, parts: bool = True) -> None:
    """As Minari's HDF5 storage lays out FrankaKitchen-v1; ``parts``: observations with goals beside them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        for episode in range(len(LENGTHS)):
            states, actions = steps(episode)
            group = file.create_group(f"episode_{episode}")
            group.attrs.update({"id": episode, "seed": 1, "total_steps": len(actions)})
            seen = group.create_group("observations") if parts else group
            seen.create_dataset("observation" if parts else "observations", data=states)
            if parts:
                for goal in ("achieved_goal", "desired_goal"):
                    seen[f"{goal}/kettle"] = np.zeros((len(states), 7))
            group["actions"] = actions
            group["rewards"] = np.zeros(len(actions))
            group["terminations"] = group["truncations"] = np.zeros(len(actions), dtype=bool)


def d4rl(timeouts: bool = True) -> dict[str, Any]:
    both = [steps(episode) for episode in range(len(LENGTHS))]
    ends = np.zeros(sum(LENGTHS), dtype=bool)
    ends[np.cumsum(LENGTHS) - 1] = True
    arrays: dict[str, Any] = {
        "observations": np.concatenate([states[:-1] for states, _ in both]).astype(np.float32),
        "actions": np.concatenate([actions for _, actions in both]).astype(np.float32),
        "rewards": np.zeros(len(ends), dtype=np.float32),
        "terminals": ends,
    }
    if timeouts:
        at_time = np.cumsum(np.arange(len(ends)) >= 0) % 2 == 0
        arrays |= {"terminals": ends & at_time, "timeouts": ends & ~at_time}
    return arrays


def check(frame: Any, tolerance: float = 0.0) -> None:
    expected = [f"state_{index}" for index in range(STATES)] + [f"action_{index}" for index in range(ACTIONS)]
    assert list(frame.columns) == [*expected, "episode", "step"]
    assert frame["episode"].tolist() == [e for e, length in enumerate(LENGTHS) for _ in range(length)]
    assert frame["step"].tolist() == [step for length in LENGTHS for step in range(length)]
    both = [steps(episode) for episode in range(len(LENGTHS))]
    states = frame.filter(like="state_").to_numpy()
    actions = frame.filter(like="action_").to_numpy()
    # The last state of an episode has no action and is no row.
    np.testing.assert_allclose(states, np.concatenate([seen[:-1] for seen, _ in both]), rtol=tolerance)
    np.testing.assert_allclose(actions, np.concatenate([done for _, done in both]), rtol=tolerance)


@pytest.mark.parametrize("parts", [True, False])
def test_minari(tmp_path: Path, parts: bool) -> None:
    path = tmp_path / "D4RL" / "kitchen" / "mixed-v2" / "data" / "main_data.hdf5"
    minari(path, parts=parts)
    for named in (path, str(path), path.parent, path.parent.parent):
        check(load(named))


@pytest.mark.parametrize("timeouts", [True, False])
def test_d4rl(tmp_path: Path, timeouts: bool) -> None:
    arrays = d4rl(timeouts)
    check(from_arrays(arrays), 1e-6)
    columns = {name: values[:, None] if values.ndim == 1 else values for name, values in arrays.items()}
    check(from_arrays(columns), 1e-6)
    with h5py.File(tmp_path / "kitchen.hdf5", "w") as file:
        for name, values in arrays.items():
            file[name] = values
        file["metadata/algorithm"] = "human"
    check(load(tmp_path / "kitchen.hdf5"), 1e-6)


def test_an_episode_without_an_end_is_one(tmp_path: Path) -> None:
    arrays = d4rl()
    arrays["terminals"][-1] = arrays["timeouts"][-1] = False
    check(from_arrays(arrays), 1e-6)


def damaged(path: Path, what: str) -> str | None:
    """A file with one thing wrong with it; returns the part to ask for, if it is not the usual one."""
    if what == "text":
        path.write_text("not HDF5")
        return None
    minari(path)
    if what == "half":
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        return None
    with h5py.File(path, "a") as file:
        group = file["episode_2"]
        if what == "no actions":
            del group["actions"]
        elif what == "actions with parts":
            del group["actions"]
            group["actions/arm"] = np.zeros((4, 7))
        elif what == "lengths":
            del group["actions"]
            group["actions"] = np.zeros((5, ACTIONS))
        elif what == "widths":
            del group["actions"]
            group["actions"] = np.zeros((4, 8))
        elif what == "texts":
            del group["actions"]
            group["actions"] = ["left"] * 4
        elif what == "pictures":
            del group["observations"]["observation"]
            group["observations/observation"] = np.zeros((5, 8, 8, 3))
        elif what == "no episodes":
            for name in list(file):
                file.move(name, name.replace("episode", "trial"))
        elif what == "no group":
            del file["episode_2"]
            file["episode_2"] = np.zeros(3)
    return "observatoin" if what == "part" else None


MESSAGES = {
    "text": "cannot be read as an HDF5 file",
    "half": "cannot be read as an HDF5 file",
    "no actions": "episode_2 has no 'actions'",
    "actions with parts": r"'actions' has parts \('arm'\)",
    "lengths": "5 actions need 6 observations .* but there are 5",
    "widths": "actions of 8 numbers, but of 9 before it",
    "texts": "numbers are expected",
    "pictures": r"the shape is \(5, 8, 8, 3\)",
    "no episodes": "neither episodes as in Minari .* nor arrays as in D4RL",
    "no group": "episode_2 has no 'observations'",
    "part": "did you mean 'observation'",
}


@pytest.mark.parametrize("what", MESSAGES)
def test_bad_files_are_named(tmp_path: Path, what: str) -> None:
    path = tmp_path / "main_data.hdf5"
    part = damaged(path, what)
    with pytest.raises(UserError, match=MESSAGES[what]) as raised:
        load(path, **({"state": part} if part else {}))
    assert "main_data.hdf5" in str(raised.value)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"terminals": None}, "no 'terminals'"),
        ({"actions": np.zeros((3, 9))}, "'actions' has 3"),
        ({"terminals": np.zeros(3)}, "one flag for each of 32 steps"),
        ({"observations": [[1.0], [1.0, 2.0]]}, "rows of one length"),
        (
            {"observations": np.zeros((0, 59)), "actions": np.zeros((0, 9)), "terminals": [], "timeouts": []},
            "single step",
        ),
    ],
)
def test_bad_arrays_are_named(change: dict[str, Any], message: str) -> None:
    arrays = {name: values for name, values in (d4rl() | change).items() if values is not None}
    with pytest.raises(UserError, match=message):
        from_arrays(arrays)


def test_folders_without_the_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no file"):
        load(tmp_path / "nowhere.hdf5")
    with pytest.raises(UserError, match=r"no 'data.main_data\.hdf5' in the folder"):
        load(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "metadata.json").write_text(json.dumps({"data_format": "arrow"}))
    with pytest.raises(UserError, match="stored as 'arrow', but only HDF5"):
        load(tmp_path)
