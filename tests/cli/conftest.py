"""A model file behind which a model with known answers stands, and a table for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from known_model import KnownModel


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file name behind which :class:`KnownModel` stands."""
    monkeypatch.setattr("anyorder.modalities.load.load", lambda path: KnownModel())
    path = tmp_path / "house.anyorder"
    path.write_bytes(b"")
    return str(path)


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "houses.csv"
    path.write_text("rooms,price,river\n5,21.5,no\n6,,yes\n4,17,no\n", encoding="utf-8")
    return str(path)
