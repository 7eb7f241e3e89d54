"""A column with atoms: how much rain fell on a day."""

from __future__ import annotations

import numpy as np
import pandas as pd


def rain(rows: int = 400, seed: int = 0) -> pd.Series:
    """Dry on 40 % of the days, else positive and skewed; clipped at 25."""
    rng = np.random.default_rng(seed)
    fallen = np.where(rng.random(rows) < 0.4, 0.0, rng.lognormal(1.0, 1.0, rows))
    return pd.Series(np.where(rng.random(rows) < 0.12, 25.0, fallen))
