"""Models that range questions are put to: a normal, a table that can be summed, and one with bounds."""

from __future__ import annotations

import pytest

from anyorder.modalities.tables.heads import head_for
from anyorder.model import AnyOrderModel
from anyorder.protocols import Canonical
from anyorder.variables.codecs import LatticeCodec, LineCodec
from anyorder.variables.codecs.spiked import SpikedCodec
from anyorder.variables.encoding import Encoding
from anyorder.variables.schema import Kind, Schema, Variable
from anyorder.variables.warp import Warp

from models import categorical_model, gaussian_model
from range_oracles import COVARIANCE, MEAN, SCALE


@pytest.fixture(scope="session")
def gaussian() -> AnyOrderModel:
    return gaussian_model(MEAN, COVARIANCE, scale=SCALE)


@pytest.fixture(scope="session")
def table() -> AnyOrderModel:
    return categorical_model({"name": "residual_mlp", "width": 32, "blocks": 1}, steps=60)


@pytest.fixture(scope="module", params=[True, False], ids=["declared", "guessed"])
def bounded(request: pytest.FixtureRequest) -> AnyOrderModel:
    """Three normals: cut at 0 and 10, whole numbers from 0 to 10, and a spike at 0 with a continuum up to 10."""
    ends = {"bounds": (0.0, 10.0), "declared": request.param}
    line, whole = Variable("line", Kind.CONTINUOUS, **ends), Variable("whole", Kind.INTEGER, **ends)
    spike = Variable("spike", Kind.SPIKED, atoms=(0.0,), **ends)
    schema = Schema((line, whole, spike, Variable("other", Kind.CONTINUOUS)))
    warp = Warp.affine(5.0, 2.0)
    codecs = (
        LineCodec(line, warp),
        LatticeCodec(whole, warp, 0, 10),
        SpikedCodec(spike, LineCodec(spike, warp)),
        LineCodec(schema.variables[3], warp),
    )
    encoding = Encoding(schema, codecs)
    heads = [head_for(codec, 2, {"continuous": {"name": "gaussian"}}) for codec in codecs]
    return AnyOrderModel.build(
        encoding, heads, {"name": "residual_mlp", "width": 16, "blocks": 1}, Canonical(), seed=0
    ).eval()
