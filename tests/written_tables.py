"""A small table as people write it, and a model of it: amounts, percentages, days first, a clock, a spike."""

from __future__ import annotations

import numpy as np
import pandas as pd

import anyorder as ao

QUICK = {"training": {"steps": 15, "minutes": None, "threads": 1}}


def written_table(rows: int = 120, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    rooms = rng.integers(3, 9, rows)
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 400, rows), unit="D")
    return pd.DataFrame(
        {
            "rooms": rooms,
            "price": [f"${price:,.2f}" for price in np.exp(rng.normal(5 + rooms / 4, 0.5, rows))],
            "off": [f"{share}%" for share in rng.integers(0, 30, rows)],
            "joined": [day.strftime("%d/%m/%Y") for day in days],
            "river": rng.choice(["yes", "no"], rows),
            "rain": np.where(rng.random(rows) < 0.4, 0.0, np.round(rng.gamma(1.2, 3.0, rows), 1)),
        }
    )


def written_model() -> ao.TableModel:
    return ao.fit(written_table(), engine="neural", config=QUICK, seed=0)
