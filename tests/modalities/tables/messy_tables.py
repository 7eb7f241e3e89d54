"""A small table with every kind of column and some holes, and the quickest training that gives a model of it."""

from __future__ import annotations

import numpy as np
import pandas as pd

QUICK = {
    "folds": 2,
    "training": {"steps": 60, "batch": 64, "validation_queries": 100},
    "trees": {"members": 1, "shown": 1000, "rounds": 20},
    "network": {"name": "residual_mlp", "width": 32, "blocks": 1},
}


def messy(rows: int = 240, seed: int = 0) -> pd.DataFrame:
    """Every kind of column, dependent, with holes."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rows)
    frame = pd.DataFrame(
        {
            "size": np.exp(0.5 * x + 5),
            "rooms": np.clip(np.round(30 + 8 * x + 4 * rng.normal(size=rows)), 1, 90).astype(int),
            "stars": rng.choice([0.0, 0.5, 1.0], rows),
            "river": np.where(x + rng.normal(size=rows) > 0, "yes", "no"),
            "sold": rng.random(rows) < 0.3,
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 400, rows), unit="D"),
            "clock": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.random(rows) * 30, unit="D"),
        },
        index=pd.Index(np.arange(rows) * 10, name="id"),
    )
    for position, name in enumerate(("size", "stars", "river", "day")):
        frame.loc[frame.index[rng.random(rows) < 0.1 + 0.02 * position], name] = None
    return frame
