"""Turned pictures: the eight symmetries of a square, each as often as the others, in training batches alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import anyorder as ao
from anyorder.errors import UserError
from anyorder.modalities.images.augmentation import TURNS, turned
from anyorder.modalities.images.core import decoded, image_model
from anyorder.modalities.images.fit import PictureRows
from anyorder.protocols import Random

TINY = {"name": "unet", "channels": 8, "blocks": 1, "levels": 1}
QUICK = {"network": TINY, "training": {"minutes": None, "steps": 4, "batch": 8, "validation_queries": 8}}


@pytest.mark.parametrize("shape", [(3, 3), (3, 3, 3)])
def test_the_eight_ways_are_flips_and_quarter_turns_as_coins_fall(shape: tuple[int, ...]) -> None:
    picture = np.random.default_rng(0).integers(0, 9, shape).astype(np.uint8)
    made = {turned(picture[None], np.array([way]), "rotate_flip")[0].tobytes() for way in range(8)}
    by_coins = set()
    for across in (False, True):
        for down in (False, True):
            for quarter in (False, True):
                one = picture[:, ::-1] if across else picture
                one = one[::-1] if down else one
                by_coins.add(np.ascontiguousarray(np.rot90(one) if quarter else one).tobytes())
    assert len(made) == 8 and made == by_coins
    mirrored = [turned(picture[None], np.array([way]), "mirror")[0] for way in range(2)]
    assert np.array_equal(mirrored[0], picture) and np.array_equal(mirrored[1], picture[:, ::-1])


def test_rows_are_every_picture_in_every_way() -> None:
    core = image_model((3, 3), 9, TINY, Random(), head="auto", components=1, seed=0)
    pictures = np.arange(18).reshape(2, 3, 3).astype(np.uint8) % 9
    for augment, ways in TURNS.items():
        rows = PictureRows(core, pictures, augment)
        assert len(rows) == 2 * len(ways)
        found = decoded(core, rows.take(torch.arange(len(rows))).values)
        for number, picture in enumerate(found):
            one, way = divmod(number, len(ways))
            assert np.array_equal(picture, turned(pictures[one : one + 1], np.array([way]), augment)[0])


def test_the_seed_decides_and_a_resumed_run_is_another_one_if_it_turns_pictures(tmp_path: Path) -> None:
    pictures = np.random.default_rng(0).integers(0, 3, (12, 4, 4)).astype(np.uint8)

    def weights(augment: str) -> torch.Tensor:
        model = ao.fit_images(pictures, augment=augment, config=QUICK, seed=3, checkpoint=tmp_path / augment)
        assert model.card["config"]["augment"] == augment and model.card["data"]["pictures"] == 11
        return torch.cat([parameter.flatten() for parameter in model.core.parameters()])

    plain, one, other = weights("none"), weights("rotate_flip"), weights("rotate_flip")
    assert torch.equal(one, other) and not torch.equal(one, plain)
    with pytest.raises(UserError, match="another run"):
        ao.fit_images(pictures, config=QUICK, seed=3, checkpoint=tmp_path / "rotate_flip", resume=True)


def test_what_cannot_be_turned_is_refused() -> None:
    pictures = np.random.default_rng(0).integers(0, 3, (12, 4, 5)).astype(np.uint8)
    with pytest.raises(UserError, match="square ones, got 4 x 5"):
        ao.fit_images(pictures, augment="rotate_flip", config=QUICK)
    with pytest.raises(UserError, match="augment"):
        ao.fit_images(pictures, augment="twist", config=QUICK)
