"""Heads for columns: they follow atoms and bounds, and the user's choice."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from anyorder.data.tables import prepare
from anyorder.errors import UserError
from anyorder.heads.bounded import Bounded
from anyorder.heads.spiked import Spiked
from anyorder.modalities.tables.heads import head_for
from anyorder.modalities.tables.options import TableOptions
from anyorder.variables.codecs import LatticeCodec
from anyorder.variables.encoding import Encoding

from rainfall import rain

RNG = np.random.default_rng(0)
ROWS = 400


@pytest.mark.parametrize("warp", ["normal_scores", "standard"])
def test_heads_follow_atoms_and_bounds(warp: str) -> None:
    table = pd.DataFrame({"rain": rain(), "wait": RNG.exponential(1, ROWS), "count": RNG.poisson(12, ROWS)})
    schema, frame = prepare(table, bounds={"count": (0, 40), "wait": (0, None)})
    encoding = Encoding.fit(frame, schema, warp)  # type: ignore[arg-type]
    spiked, bounded, count = (head_for(codec, 3, {}) for codec in encoding.codecs)
    assert isinstance(spiked, Spiked) and isinstance(spiked.base, Bounded) and isinstance(bounded, Bounded)
    generator = torch.Generator().manual_seed(0)
    for head, codec in zip((spiked, bounded, count), encoding.codecs, strict=True):
        distribution = head(3 * torch.randn(500, head.size, generator=generator))
        drawn = codec.decode(distribution.sample(generator).double().numpy())
        assert drawn.min() >= 0 and (codec.variable.name != "count" or drawn.max() <= 40)
    codec = encoding.codec("count")
    assert isinstance(codec, LatticeCodec)
    points = torch.as_tensor(codec.from_measure(np.arange(41.0)))
    total = count(torch.randn(count.size, generator=generator)).log_prob(points).exp().sum()
    assert float(total) == pytest.approx(1, abs=1e-5)


def test_choices_of_heads() -> None:
    table = pd.DataFrame({"rain": rain(), "x": RNG.normal(0, 1, ROWS), "day": pd.date_range("2024", periods=ROWS)})
    schema, frame = prepare(table)
    encoding = Encoding.fit(frame, schema)
    chosen = TableOptions.read(
        {"heads": {k: {"name": "spline", "bins": 4} for k in ("continuous", "spiked", "datetime")}}
    ).heads
    spiked, line, day = (head_for(codec, 3, chosen) for codec in encoding.codecs)
    assert isinstance(spiked, Spiked) and isinstance(spiked.base, Bounded) and spiked.base.base.name == "spline"
    assert line.name == "spline" and line.size == 15
    assert day.name == "discretized_logistic_mixture"  # whole days are a lattice: the choice was for finer times


@pytest.mark.parametrize(
    ("heads", "word"),
    [
        ({"continous": {"name": "spline"}}, "continuous"),
        ({"continuous": {"name": "splin"}}, "spline"),
        ({"continuous": {"name": "categorical"}}, "levels"),
        ({"continuous": {"name": "spline", "bin": 3}}, "bins"),
        ({"continuous": "spline"}, "name"),
        ({"spiked": {"name": "spiked"}}, "inside it"),
        ({"categorical": {"name": "categorical", "levels": 3}}, "set by the column"),
    ],
)
def test_wrong_choices_are_refused(heads: dict[str, object], word: str) -> None:
    with pytest.raises(UserError, match=word):
        TableOptions.read({"heads": heads})
