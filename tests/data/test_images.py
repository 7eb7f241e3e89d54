"""Arrays of pictures: what is taken for one, and how many levels its pixels have."""

from __future__ import annotations

import numpy as np
import pytest

from anyorder.data.images import check_pictures
from anyorder.errors import UserError


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros((2, 3)), "shape"),
        (np.zeros((2, 3, 3, 4)), "shape"),
        (np.zeros((0, 3, 3)), "no pictures"),
        (np.full((1, 2, 2), 0.5), "whole numbers"),
        (np.full((1, 2, 2), 300), "between 0 and 255"),
        (np.full((1, 2, 2), -1), "between 0 and 255"),
        (np.full((1, 2, 2), np.nan), "whole numbers"),
    ],
)
def test_arrays_that_are_no_pictures_are_refused(array: np.ndarray, words: str) -> None:
    with pytest.raises(UserError, match=words):
        check_pictures(array)


def test_levels_are_found() -> None:
    assert check_pictures(np.array([[[0, 1]]]))[1] == 2
    assert check_pictures(np.array([[[0, 16]]]))[1] == 17
    assert check_pictures(np.array([[[0, 40]]]))[1] == 256
    assert check_pictures(np.zeros((2, 3, 3, 1), dtype=bool))[0].shape == (2, 3, 3)
    with pytest.raises(UserError, match="above every pixel"):
        check_pictures(np.array([[[0, 40]]]), 20)
