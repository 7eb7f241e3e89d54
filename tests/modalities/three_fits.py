"""A model of each kind, trained by steps: what one process and several are compared by."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import anyorder as ao

from texts import CORPUS


def by_steps(count: int, **more: Any) -> dict[str, Any]:
    return {"training": {"steps": count, "minutes": None, "validate_every": 4, "validation_queries": 40, **more}}


def three_fits() -> dict[str, Any]:
    numbers = np.random.default_rng(0).normal(size=(60, 3))
    table = pd.DataFrame(numbers + numbers[:, :1], columns=list("abc")).assign(d=np.where(numbers[:, 1] > 0, "u", "v"))
    table.loc[::7, "b"] = np.nan
    digits = np.arange(20 * 64).reshape(20, 8, 8) * 7 % 5
    return {
        "table": ao.fit(table, engine="neural", config=by_steps(12, batch=32)),
        "text": ao.fit_text(CORPUS, length=16, preset="tiny", config=by_steps(8, batch=8)),
        "pictures": ao.fit_images(digits, preset="tiny", config=by_steps(6, batch=8, parts=2)),
    }
