"""Real tables with real holes: each fits, scores and fills, and what was known stays as it was."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import anyorder as ao
from anyorder.data.files import read_table

TABLES = {
    "palmer_penguins": {},
    "titanic": {"drop": ["name", "ticket", "cabin"]},
    "hepatitis": {"missing": ["?"]},
    "chronic_kidney_disease": {"missing": ["?"]},
    "pima_diabetes": {},
}
QUICK = {
    "folds": 2,
    "training": {"steps": 15, "validation_queries": 100},
    "network": {"name": "residual_mlp", "width": 32},
    "trees": {"members": 1, "shown": 1000, "rounds": 10},
}


@pytest.mark.data
@pytest.mark.parametrize("name", TABLES)
def test_real_table(name: str, data_dir: Path) -> None:
    options = TABLES[name]
    frame = read_table(data_dir / f"{name}.csv.gz", missing=tuple(options.get("missing", ())))
    model = ao.fit(frame, seed=0, config=QUICK, **options)
    assert np.isfinite(model.log_prob(frame)).all()
    filled = model.fill(frame)
    modelled = [column for column in frame.columns if column in model.schema.names]
    assert not filled[modelled].isna().any().any()
    for column in frame.columns:
        known = frame[column].notna()
        assert (filled.loc[known, column] == frame.loc[known, column]).all(), column
    drawn = model.sample(50, seed=0)
    assert list(drawn.columns) == modelled
    for variable in model.schema.variables:
        if variable.levels:
            assert set(drawn[variable.name]) <= set(variable.levels)
