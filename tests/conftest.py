"""What every test shares: one thread, reproducible examples, and the folder of real data."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
from hypothesis import settings

# Two workers share two cores; more threads only make them wait for each other.
torch.set_num_threads(1)

# A shared machine is no place for deadlines; derandomised examples keep a failure repeatable.
settings.register_profile("anyorder", deadline=None, max_examples=50, derandomize=True)
settings.load_profile("anyorder")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real tables; a test that asks for it is skipped where there is none."""
    named = os.environ.get("ANYORDER_DATA", "")
    if not named or not Path(named).is_dir():
        pytest.skip("set ANYORDER_DATA to the folder of shared data")
    return Path(named)
