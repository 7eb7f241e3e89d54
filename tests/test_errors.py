"""Checks that every door shares: what passes comes out as a plain number, what does not is named."""

from __future__ import annotations

import numpy as np
import pytest

from anyorder.errors import UserError, checked_seed


@pytest.mark.parametrize("seed", [0, 7, 2**63 - 1, np.int64(5), np.uint8(5)])
def test_a_seed_comes_out_as_an_int(seed: int) -> None:
    assert type(checked_seed(seed)) is int
    assert checked_seed(seed) == seed


@pytest.mark.parametrize("seed", [-1, 2**63, 2**64, 1.5, 1.0, True, np.True_, None, "0", np.float64(2), [1]])
def test_what_is_no_seed_is_refused(seed: object) -> None:
    with pytest.raises(UserError, match=r"seed must be a whole number, 0 or more, got "):
        checked_seed(seed)
