"""One model of the messy table, for all who only ask it."""

from __future__ import annotations

import pandas as pd
import pytest

import anyorder as ao

from messy_tables import QUICK, messy


@pytest.fixture(scope="session")
def frame() -> pd.DataFrame:
    return messy()


@pytest.fixture(scope="session")
def model(frame: pd.DataFrame) -> ao.TableModel:
    return ao.fit(frame, seed=0, config=QUICK)
