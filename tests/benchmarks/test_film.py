"""The film of an episode, on generated pictures."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np
import pytest

from anyorder.errors import UserError

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "kitchen"))
from film import ADDED, BOTTOM, GIVEN, HEIGHT, SECONDS, STRIDES, TOP, bars, write_film

Image = pytest.importorskip("PIL.Image")
ImageColor = pytest.importorskip("PIL.ImageColor")

STEPS, ACTIONS = 48, 9


def episode(noise: int = 0) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """A square that moves over a plain, and actions of which the first four numbers are given."""
    rng = np.random.default_rng(0)
    pictures = []
    for step in range(STEPS):
        picture = np.full((60, 180, 3), 120, dtype=np.uint8)
        picture[20:30, 3 * step : 3 * step + 10] = (200, 40, 40)
        pictures.append(picture + rng.integers(0, noise + 1, picture.shape, dtype=np.uint8))
    actions = np.sin(np.arange(STEPS)[:, None] / 5 + np.arange(ACTIONS))
    who = np.arange(ACTIONS) < 4
    return pictures, np.where(who, actions, np.nan), np.where(who, np.nan, actions)


def test_bars_have_the_colour_of_who_gave_them_and_the_height_of_the_number() -> None:
    given = np.array([1.0, -0.5, 0.25, np.nan, 3.0, *[np.nan] * 4])
    added = np.array([np.nan, np.nan, np.nan, 0.5, np.nan, -1.0, 0.0, 0.75, -9.0])
    drawn = bars(given, added, 360)
    assert drawn.shape == (HEIGHT, 360, 3)
    half = (HEIGHT - TOP - BOTTOM) // 2
    for index in range(ACTIONS):
        column = drawn[TOP : TOP + 2 * half + 1, round((index + 0.5) * 40)]
        value = given[index] if np.isfinite(given[index]) else added[index]
        colour = ImageColor.getrgb(GIVEN if np.isfinite(given[index]) else ADDED)
        rows = np.flatnonzero((column == colour).all(axis=1)) - half  # 0 is the line of zero, up is negative
        assert len(rows) == round(abs(np.clip(value, -1, 1)) * half) + 1
        assert rows[0 if value > 0 else -1] == -round(np.clip(value, -1, 1) * half)


def test_a_film_plays_all_of_the_episode_at_its_own_speed(tmp_path: Path) -> None:
    path = tmp_path / "film.gif"
    size = write_film(path, *episode())
    assert size == path.stat().st_size
    with Image.open(path) as film:
        assert film.size == (180, 60 + HEIGHT)
        assert film.n_frames == STEPS // STRIDES[0]
        lasted = 0
        for frame in range(film.n_frames):
            film.seek(frame)
            lasted += film.info["duration"]
            shown = np.asarray(film.convert("RGB")).astype(int)
            square = shown[25, 3 * frame * STRIDES[0] + 5]
            assert np.abs(square - [200, 40, 40]).max() < 40
        assert lasted == pytest.approx(1000 * SECONDS * STEPS, rel=0.01)


def test_pictures_are_left_out_until_it_is_small_enough(tmp_path: Path) -> None:
    pictures, given, added = (part[:16] for part in episode(noise=60))
    whole = write_film(tmp_path / "whole.gif", pictures, given, added)
    small = write_film(tmp_path / "small.gif", pictures, given, added, most=whole // 2)
    assert small <= whole // 2
    with pytest.raises(UserError, match="take smaller pictures"):
        write_film(tmp_path / "none.gif", pictures, given, added, most=1000)
    assert not (tmp_path / "none.gif").exists()


def test_bad_parts_are_named() -> None:
    pictures, given, added = episode()
    with pytest.raises(UserError, match=r"'added' must be \[48, 9\]"):
        write_film(io.BytesIO(), pictures, given, added[:, :4])  # type: ignore[arg-type]
    both = added.copy()
    both[3, 2] = 0.1
    with pytest.raises(UserError, match="step 3, joint 3: a number is either given or added"):
        write_film("film.gif", pictures, given, both)
    with pytest.raises(UserError, match="one size"):
        write_film("film.gif", [*pictures[:-1], pictures[0][:10]], given, added)
    with pytest.raises(UserError, match="one size"):
        write_film("film.gif", [], given[:0], added[:0])
