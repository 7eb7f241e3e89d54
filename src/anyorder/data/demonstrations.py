"""Demonstrations of a robot as a table: one row a step, with the state that was seen and the action that was taken.

Two public forms are read, both HDF5, without the packages that wrote them:

- Minari (``~/.minari/datasets/D4RL/kitchen/mixed-v2``): a group ``episode_0``, ``episode_1``, ... for every episode, in
  it ``observations`` (one row more than there are steps, since the last state is there too) and ``actions``. In an
  environment with goals, such as FrankaKitchen-v1, ``observations`` is a group with ``observation``,
  ``achieved_goal`` and ``desired_goal``.
- D4RL (``kitchen_microwave_kettle_bottomburner_light-v0.hdf5``): arrays ``observations``, ``actions`` and ``terminals``
  over all episodes; an episode ends where ``terminals`` or, if there, ``timeouts`` is true. D4RL's kitchen has 60
  columns of state, the last 30 of which are the goal; gymnasium-robotics' has 59, without it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from anyorder.errors import UserError, nearest
from anyorder.support.paths import checked_path

Numbers = NDArray[np.float64]

MAIN = Path("data") / "main_data.hdf5"  # Minari's, in the folder of a data set
EPISODE = re.compile(r"episode_(\d+)")


def load(path: str | os.PathLike[str], *, state: str = "observation") -> pd.DataFrame:
    """Read demonstrations from a file of Minari or D4RL, or from the folder of a Minari data set.

    Needs h5py (``pip install 'anyorder[robotics]'``).

    Parameters
    ----------
    path
        An HDF5 file, or a folder with Minari's ``data/main_data.hdf5`` in it.
    state
        Which part of the observations is the state, where they have parts.

    Returns
    -------
    pandas.DataFrame
        ``state_0``, ``state_1``, ..., ``action_0``, ``action_1``, ..., ``episode`` (from 0, in the file's order) and
        ``step`` (from 0).
    """
    h5py = _h5py()
    path = checked_path(path)
    named = str(path)
    if path.is_dir():
        path = _main_file(path)
    if not path.exists():
        raise UserError(f"there is no file {named!r}")
    try:
        with h5py.File(path, "r") as file:
            return _read(h5py, file, named, state)
    except OSError as error:
        raise UserError(f"{named!r} cannot be read as an HDF5 file ({error}); is it whole?") from error


def from_arrays(arrays: Mapping[str, ArrayLike]) -> pd.DataFrame:
    """Make the table of :func:`load` from the arrays of D4RL, as its ``env.get_dataset()`` returns them.

    Parameters
    ----------
    arrays
        ``observations`` and ``actions``, one row a step; ``terminals`` and, if there, ``timeouts``: where an
        episode ends. Other arrays are left alone.

    Examples
    --------
    >>> from anyorder.data.demonstrations import from_arrays
    >>> frame = from_arrays({"observations": [[1.0], [2.0], [3.0]], "actions": [[0.1], [0.2], [0.3]],
    ...                      "terminals": [False, True, False]})
    >>> frame["episode"].tolist(), frame["step"].tolist()
    ([0, 0, 1], [0, 1, 0])
    """
    needed = ("observations", "actions", "terminals")
    if absent := [name for name in needed if name not in arrays]:
        raise UserError(f"D4RL's arrays are {', '.join(needed)}; there is no {absent[0]!r} among {_few(arrays)}")
    states = _matrix(arrays["observations"], "observations")
    actions = _matrix(arrays["actions"], "actions")
    if len(states) != len(actions):
        raise UserError(f"'observations' has {len(states)} rows, but 'actions' has {len(actions)}: one row a step")
    ends = np.zeros(len(states), dtype=bool)
    for name in ("terminals", "timeouts"):
        if name in arrays:
            ends |= _flags(arrays[name], name, len(states))
    # The step after an end begins the next episode.
    episode = np.concatenate([[0], np.cumsum(ends[:-1])]).astype(np.int64) if len(ends) else np.zeros(0, np.int64)
    first = np.searchsorted(episode, episode)  # where the episode of each step begins
    return _frame(states, actions, episode, np.arange(len(states)) - first)


def _read(h5py: Any, file: Any, named: str, state: str) -> pd.DataFrame:
    if EPISODE.fullmatch(next(iter(sorted(file, key=_number)), "")):
        return _minari(h5py, file, named, state)
    if isinstance(file.get("observations"), h5py.Dataset):
        there = {name: value[()] for name, value in file.items() if isinstance(value, h5py.Dataset)}
        try:
            return from_arrays(there)
        except UserError as error:
            raise UserError(f"{named!r}: {error}") from error
    raise UserError(
        f"{named!r} has neither episodes as in Minari ('episode_0', ...) nor arrays as in D4RL ('observations', ...); "
        f"it has {_few(file)}"
    )


def _number(name: str) -> tuple[bool, int]:
    """Sorts ``episode_10`` behind ``episode_9``, and whatever is no episode behind all of them."""
    found = EPISODE.fullmatch(name)
    return found is None, int(found[1]) if found else 0


def _minari(h5py: Any, file: Any, named: str, state: str) -> pd.DataFrame:
    states: list[Numbers] = []
    actions: list[Numbers] = []
    lengths: list[int] = []
    for name in sorted((name for name in file if EPISODE.fullmatch(name)), key=_number):
        place = f"{named!r}, {name}"
        seen = _part(h5py, file[name], "observations", place, state)
        done = _part(h5py, file[name], "actions", place, None)
        if len(seen) != len(done) + 1:
            raise UserError(
                f"{place}: {len(done)} actions need {len(done) + 1} observations (the last state as well), "
                f"but there are {len(seen)}"
            )
        for rows, before, what in ((seen, states, "observations"), (done, actions, "actions")):
            if before and rows.shape[1] != before[0].shape[1]:
                raise UserError(f"{place}: {what} of {rows.shape[1]} numbers, but of {before[0].shape[1]} before it")
        states.append(seen[:-1])
        actions.append(done)
        lengths.append(len(done))
    episode = np.repeat(np.arange(len(lengths)), lengths)
    step = np.concatenate([np.arange(length) for length in lengths])
    return _frame(np.concatenate(states), np.concatenate(actions), episode, step)


def _part(h5py: Any, group: Any, name: str, place: str, inner: str | None) -> Numbers:
    """One array of an episode; ``inner`` is taken where it has parts."""
    found = group.get(name) if isinstance(group, h5py.Group) else None
    if found is None:
        raise UserError(f"{place} has no {name!r}")
    if isinstance(found, h5py.Group):
        if inner is None:
            raise UserError(f"{place}: {name!r} has parts ({_few(found)}), but one array is expected")
        if not isinstance(found.get(inner), h5py.Dataset):
            raise UserError(f"{place}: no part {inner!r} in {name!r}; {nearest(inner, found, noun='parts')}")
        found = found[inner]
    return _matrix(found[()], f"{place}: {name}")


def _matrix(values: ArrayLike, what: str) -> Numbers:
    try:
        rows = np.asarray(values)
    except ValueError as error:  # rows of different lengths
        raise UserError(f"{what}: rows of one length are expected") from error
    if rows.dtype.kind not in "fiub":
        raise UserError(f"{what}: numbers are expected, but these are of the type {rows.dtype}")
    if rows.ndim == 1:
        rows = rows[:, None]
    if rows.ndim != 2:
        raise UserError(f"{what}: a row of numbers for every step is expected, but the shape is {rows.shape}")
    return rows.astype(np.float64)


def _flags(values: ArrayLike, name: str, steps: int) -> NDArray[np.bool_]:
    flags = np.asarray(values)
    if flags.dtype.kind not in "fiub" or flags.size != steps:
        raise UserError(f"{name!r} needs one flag for each of {steps} steps, but has the shape {flags.shape}")
    return flags.reshape(steps).astype(bool)


def _frame(states: Numbers, actions: Numbers, episode: NDArray[Any], step: NDArray[Any]) -> pd.DataFrame:
    names = [f"state_{index}" for index in range(states.shape[1])]
    names += [f"action_{index}" for index in range(actions.shape[1])]
    frame = pd.DataFrame(np.concatenate([states, actions], axis=1), columns=names)
    if frame.empty:
        raise UserError("there is not a single step in these demonstrations")
    return frame.assign(episode=episode, step=step)


def _main_file(folder: Path) -> Path:
    """Minari's file in the folder of a data set, or in its ``data``."""
    for path in (folder / MAIN, folder / MAIN.name):
        if path.exists():
            return path
    for path in (folder / "data" / "metadata.json", folder / "metadata.json"):
        if path.exists() and _data_format(path) not in (None, "hdf5"):
            raise UserError(
                f"{str(folder)!r} is stored as {_data_format(path)!r}, but only HDF5 is read; "
                "minari.create_dataset_from_buffers(..., data_format='hdf5') writes it"
            )
    raise UserError(f"no {str(MAIN)!r} in the folder {str(folder)!r}")


def _data_format(metadata: Path) -> str | None:
    try:
        found = json.loads(metadata.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return str(found["data_format"]) if isinstance(found, dict) and "data_format" in found else None


def _few(names: Iterable[str], limit: int = 6) -> str:
    found = [repr(str(name)) for name in names]
    return ", ".join(found[:limit]) + (", ..." if len(found) > limit else "") or "nothing"


def _h5py() -> Any:
    try:
        import h5py
    except ImportError as error:
        raise UserError("demonstrations are HDF5 files: pip install 'anyorder[robotics]' to read them") from error
    return h5py
