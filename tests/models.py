"""Small models for tests: exact ones, and trained ones whose every query can be enumerated."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch

from anyorder.encoding import Encoding, LevelCodec, LineCodec
from anyorder.heads import Categorical, Gaussian
from anyorder.masking import Cardinality, Conditional, Mixture
from anyorder.model import AnyOrderModel
from anyorder.networks import GaussianNetwork
from anyorder.objectives import objective_for
from anyorder.protocols import Canonical, Protocol
from anyorder.schema import Kind, Schema, Variable
from anyorder.train import Options, Rows, Trainer
from anyorder.warp import Warp


def gaussian_model(
    mean: np.ndarray, covariance: np.ndarray, protocol: Protocol | None = None, scale: float = 1.0
) -> AnyOrderModel:
    """The exact Gaussian in place of a trained network, in double precision.

    ``scale`` stretches the units of the data, so that a forgotten Jacobian shows.
    """
    names = [f"v{i}" for i in range(len(mean))]
    schema = Schema(tuple(Variable(name, Kind.CONTINUOUS) for name in names))
    encoding = Encoding(schema, tuple(LineCodec(v, Warp.affine(0.0, scale)) for v in schema.variables))
    model = AnyOrderModel.build(
        encoding, [Gaussian() for _ in names], {"name": "gaussian"}, protocol or Canonical(), seed=0
    ).double()
    assert isinstance(model.network, GaussianNetwork)
    model.network.set_moments(torch.as_tensor(mean), torch.as_tensor(covariance))
    return model.eval()


LEVELS = (2, 3, 2, 4)


def categorical_table(rows: int = 600, seed: int = 0) -> pd.DataFrame:
    """Four dependent categorical columns."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 2, rows)
    b = (a + (rng.random(rows) < 0.3) * rng.integers(0, 3, rows)) % 3
    c = np.where(rng.random(rows) < 0.8, (a ^ (b == 1)).astype(int), rng.integers(0, 2, rows))
    d = (2 * c + (rng.random(rows) < 0.4)) % 4
    return pd.DataFrame({"a": a, "b": b, "c": c, "d": d}).astype(str)


def categorical_model(network: dict[str, object], protocol: Protocol | None = None, steps: int = 100) -> AnyOrderModel:
    """Trained for a moment: far from uniform, and with every query small enough to enumerate."""
    schema = Schema(
        tuple(
            Variable(name, Kind.CATEGORICAL, levels=tuple(str(k) for k in range(levels)), dtype="str")
            for name, levels in zip("abcd", LEVELS, strict=True)
        )
    )
    encoding = Encoding(schema, tuple(LevelCodec(variable) for variable in schema.variables))
    model = AnyOrderModel.build(
        encoding, [Categorical(levels) for levels in LEVELS], network, protocol or Canonical(), seed=0
    )
    values, observed = encoding.encode(categorical_table())
    rows = Rows(torch.as_tensor(values).float(), torch.as_tensor(observed), torch.zeros(values.shape))
    masking = Mixture((Cardinality(), Conditional(Cardinality(least=0, spare=1))), (0.5, 0.5))
    trainer = Trainer(
        model,
        objective_for(model, masking),
        rows,
        rows.take(torch.arange(100)),
        Options(minutes=None, steps=steps, batch=64, validation_queries=100, learning_rate=3e-3),
        seed=0,
    )
    trainer.run()
    return trainer.finish()
