"""What a hostile table is, the list of them all, and harmless columns to set beside a hostile one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Hostile:
    """A table, and what must become of it: ``refused`` is what the error says, ``warned`` what the one warning says."""

    make: Callable[[np.random.Generator], Any]
    refused: str | None = None
    warned: str | None = None


TABLES: dict[str, Hostile] = {}


def hostile(
    refused: str | None = None, warned: str | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(make: Callable[..., Any]) -> Callable[..., Any]:
        TABLES[make.__name__] = Hostile(make, refused, warned)
        return make

    return add


def plain(rng: np.random.Generator, rows: int = 40) -> pd.DataFrame:
    """Nothing hostile: two dependent columns to stand beside the one that is."""
    x = rng.normal(size=rows)
    return pd.DataFrame({"x": x, "y": 2 * x + rng.normal(size=rows)})


def with_column(rng: np.random.Generator, cells: Any, name: str = "odd") -> pd.DataFrame:
    frame = plain(rng, len(cells))
    frame[name] = cells
    return frame


def holes(rng: np.random.Generator, frame: pd.DataFrame, share: float = 0.1) -> pd.DataFrame:
    return frame.mask(rng.random(frame.shape) < share)
