"""Options that hold what they must not are refused with what was expected and what came."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from anyorder.errors import UserError
from anyorder.support.checks import check_fields, checked_seed


@dataclass(frozen=True)
class Fields:
    steps: int | None = None
    batch: int = 8
    minutes: float | None = 1.0
    share: float = 0.5
    rate: float = 0.1
    preset: str = "small"
    free: object = None

    def __post_init__(self) -> None:
        check_fields(
            self,
            whole={"steps": 1, "batch": 1},
            positive=("minutes",),
            within={"share": "[0, 1)", "rate": "(0, inf)"},
            one_of={"preset": {"small": 1, "large": 2}},
            section="mine",
        )


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"steps": 1, "batch": np.int64(3), "minutes": None},
        {"share": 0, "rate": 1e300, "preset": "large"},
        {"share": np.float32(0.999), "free": "anything"},
    ],
)
def test_what_fits_is_taken(given: dict[str, Any]) -> None:
    Fields(**given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"steps": 0}, "mine: steps must be a whole number, 1 or more, got 0"),
        ({"steps": 2.5}, "mine: steps must be a whole number, 1 or more, got 2.5"),
        ({"batch": None}, "mine: batch must be a whole number, 1 or more, got None"),
        ({"batch": True}, "mine: batch must be a whole number, 1 or more, got True"),
        ({"minutes": 0}, "mine: minutes must be a finite number above 0, got 0"),
        ({"minutes": math.inf}, "mine: minutes must be a finite number above 0, got inf"),
        ({"minutes": "2"}, "mine: minutes must be a finite number above 0, got '2'"),
        ({"share": 1}, r"mine: share must be a number in [0, 1), got 1"),
        ({"share": -1e-9}, r"mine: share must be a number in [0, 1), got -1e-09"),
        ({"share": math.nan}, r"mine: share must be a number in [0, 1), got nan"),
        ({"share": None}, r"mine: share must be a number in [0, 1), got None"),
        ({"rate": 0.0}, r"mine: rate must be a number in (0, inf), got 0.0"),
        ({"rate": math.inf}, r"mine: rate must be a number in (0, inf), got inf"),
        ({"preset": "smal"}, "mine: unknown preset 'smal'; did you mean 'small'?"),
        ({"preset": ["small"]}, "mine: unknown preset ['small']; did you mean 'small'?"),
    ],
)
def test_what_does_not_fit_is_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as caught:
        Fields(**given)
    assert str(caught.value).startswith(message)


def test_a_misspelt_field_is_our_own_mistake() -> None:
    @dataclass
    class Other:
        batch: int = 1

    with pytest.raises(KeyError, match="bach"):
        check_fields(Other(), whole={"bach": 1})


@pytest.mark.parametrize("seed", [0, 7, 2**63 - 1, np.int64(5), np.uint8(5)])
def test_a_seed_comes_out_as_an_int(seed: int) -> None:
    assert type(checked_seed(seed)) is int
    assert checked_seed(seed) == seed


@pytest.mark.parametrize("seed", [-1, 2**63, 2**64, 1.5, 1.0, True, np.True_, None, "0", np.float64(2), [1]])
def test_what_is_no_seed_is_refused(seed: object) -> None:
    with pytest.raises(UserError, match=r"seed must be a whole number, 0 or more, got "):
        checked_seed(seed)
