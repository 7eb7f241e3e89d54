"""A codec of one's own is one file in the package, and nothing else: fit, ask, fill, save and load find it."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import anyorder as ao
import anyorder.variables.codecs as package
from anyorder.errors import UserError
from anyorder.heads.bounded import Bounded
from anyorder.modalities.tables.heads import head_for
from anyorder.variables.codecs import LineCodec, codec_for, codec_from_json
from anyorder.variables.encoding import Encoding
from anyorder.variables.schema import Kind, Schema, Variable

SHARES = '''
"""Shares strictly between 0 and 1, on the line of their log odds: no bound is left to cut a head at."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from anyorder.variables.cells import missing_cells, numbers
from anyorder.variables.codecs.base import Codec, Space
from anyorder.variables.restore import numbers_as
from anyorder.variables.schema import Kind


@final
@dataclass(frozen=True)
class ShareCodec(Codec):
    name: ClassVar[str] = "share"
    space: ClassVar[Space] = Space.LINE
    priority: ClassVar[int] = 1

    variable: object
    centre: float

    @classmethod
    def serves(cls, variable):
        return variable.kind is Kind.CONTINUOUS and variable.declared and variable.bounds == (0.0, 1.0)

    @classmethod
    def fit(cls, column, variable, marks, warp):
        odds, known = cls(variable, 0.0).encode(column, marks)
        return cls(variable, float(odds[known].mean()))

    def encode(self, column, marks, *, evidence=False):
        missing = missing_cells(column, marks, words=True)
        units = np.where(missing, 0.5, numbers(column, missing, self.variable.name))
        self._refuse_outside(column, missing, units)
        return np.where(missing, 0.0, self.from_measure(units)), ~missing

    def decode(self, values):
        unknown = np.isnan(values)
        return numbers_as(self.variable, self.measure(np.where(unknown, 0.0, values)), unknown)

    def measure(self, values):
        return 1 / (1 + np.exp(-(values + self.centre)))

    def from_measure(self, measured):
        with np.errstate(divide="ignore"):
            return np.log(measured) - np.log1p(-np.asarray(measured)) - self.centre

    def log_slope(self, values):
        share = self.measure(values)
        return -np.log(share) - np.log1p(-share)

    @property
    def ends(self):
        return None, None

    def parameters(self):
        return {"centre": self.centre}

    @classmethod
    def from_parameters(cls, variable, parameters):
        return cls(variable, float(parameters["centre"]))
'''

SHARE = Variable("share", Kind.CONTINUOUS, bounds=(0.0, 1.0), declared=True)


@pytest.fixture
def dropped_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "share.py").write_text(SHARES, encoding="utf-8")
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    importlib.invalidate_caches()
    yield
    _forget()


def _forget() -> None:
    """Take the class out again: the registry finds whatever lives."""
    module = sys.modules.pop("anyorder.variables.codecs.share", None)
    if module is not None:
        module.ShareCodec.__module__ = "gone"
        del package.share


def table(rows: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    z = rng.normal(size=rows)
    share = 1 / (1 + np.exp(-(2 * z + rng.normal(size=rows) * 0.3)))
    return pd.DataFrame({"share": share, "z": z, "kind": np.where(z > 0, "up", "down")})


@pytest.mark.usefixtures("dropped_in")
def test_one_file_is_enough(tmp_path: Path) -> None:
    frame = table()
    training = {"steps": 60, "batch": 32, "validation_queries": 50, "validate_every": 20, "minutes": None}
    config = {"network": {"name": "residual_mlp", "width": 24, "blocks": 1}, "components": 2, "training": training}
    model = ao.fit(frame, engine="neural", config=config, bounds={"share": (0, 1)}, seed=1)  # type: ignore[arg-type]
    codec = model.core.encoding.codec("share")
    assert type(codec).__name__ == "ShareCodec"
    assert not isinstance(head_for(codec, 2, {}), Bounded)

    model.save(tmp_path / "shares.anyorder")
    again = ao.load(tmp_path / "shares.anyorder")
    assert again.core.encoding.codec("share") == codec
    for asked in (model, again):
        answer = asked.given(z=0.5, kind="up")["share"]
        grid = np.linspace(1e-6, 1 - 1e-6, 20_001)
        assert np.trapezoid(answer.pdf(grid), grid) == pytest.approx(1.0, abs=1e-3)
        below = asked.given(z=0.5).prob(share="0..0.4")
        assert float(below) == pytest.approx(float(asked.given(z=0.5)["share"].cdf(0.4)), abs=1e-9)
        assert asked.given(share=ao.Between(0.9, None)).using(draws=32)["z"].mean() > 0
        assert asked.given(z=0).prob(share=1.5) == 0
        filled = asked.fill(frame.assign(share=np.nan).head(4))
        assert ((filled["share"] > 0) & (filled["share"] < 1)).all()
    np.testing.assert_array_equal(model.log_prob(frame.head(5)), again.log_prob(frame.head(5)))
    with pytest.raises(UserError, match="outside its bounds"):
        model.log_prob(frame.head(1).assign(share=2.0))


@pytest.mark.usefixtures("dropped_in")
def test_a_file_names_a_special_codec_and_an_old_file_means_the_ordinary_one() -> None:
    schema = Schema((SHARE, Variable("z", Kind.CONTINUOUS)))
    described = json.loads(json.dumps(Encoding.fit(table(), schema).to_json()))
    assert described["codecs"][0]["codec"] == "share"
    assert "codec" not in described["codecs"][1]
    old = LineCodec.fit(table()["share"], SHARE, (), "standard").to_json()
    assert type(codec_from_json(SHARE, old)) is LineCodec


def test_without_the_file_its_models_are_refused_by_name() -> None:
    assert codec_for(SHARE) is LineCodec
    with pytest.raises(UserError, match="unknown codec 'share'"):
        codec_from_json(SHARE, {"codec": "share", "centre": 0.0})
    with pytest.raises(UserError, match="damaged"):
        codec_from_json(SHARE, {"origin": 0})


@pytest.mark.parametrize("kind", list(Kind))
def test_the_ordinary_families_share_out_all_variables(kind: Kind) -> None:
    levels = (0, 1) if kind.has_levels else ()
    for resolution in ("day", "second") if kind is Kind.DATETIME else ("",):
        atoms = (0.0,) if kind is Kind.SPIKED else ()
        variable = Variable("x", kind, levels=levels, resolution=resolution, atoms=atoms)
        assert codec_for(variable, ordinary=True) is codec_for(variable)
