"""One service of three small models, of a table, of texts and of pictures, for all tests that only ask."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from asking import PICTURES, TABLE, TEXT, Asking, asked, load


@pytest.fixture(scope="session")
def models() -> dict[str, Any]:
    return {"table": load(TABLE), "text": load(TEXT), "pictures": load(PICTURES)}


@pytest.fixture(scope="session")
def service(models: dict[str, Any]) -> Iterator[Asking]:
    with asked(models, workers=2, remembered=0) as asking:
        yield asking
