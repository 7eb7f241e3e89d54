"""Small models for tests: exact ones, and trained ones whose every query can be enumerated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from anyorder.heads import Categorical, Gaussian, GaussianMixture
from anyorder.masking import Cardinality, Conditional, Mixture
from anyorder.model import AnyOrderModel, layout_of
from anyorder.networks import GaussianNetwork
from anyorder.networks.base import MaskNetwork
from anyorder.protocols import Canonical, Protocol
from anyorder.training.loop import Trainer
from anyorder.training.objectives import objective_for
from anyorder.training.options import Options
from anyorder.training.rows import Rows
from anyorder.variables.codecs import LevelCodec, LineCodec
from anyorder.variables.encoding import Encoding
from anyorder.variables.schema import Kind, Schema, Variable
from anyorder.variables.warp import Warp


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


@dataclass(eq=False)
class JointTable(MaskNetwork):
    """Every conditional of a joint table of probabilities, exactly: the answer to check others against."""

    name: ClassVar[str] = "joint_table"

    def hold(self, table: np.ndarray) -> JointTable:
        self.register_buffer("table", torch.as_tensor(table, dtype=torch.float64))
        return self

    def beside(self, values: Tensor, known: Tensor, prefix: Tensor | None = None) -> Tensor:
        out = torch.zeros(*values.shape, self.layout.width, dtype=torch.float64)
        for row, (cells, seen) in enumerate(zip(values, known, strict=True)):
            part = self.table
            for axis in range(part.ndim):
                if seen[axis]:
                    part = part.narrow(axis, int(cells[axis]), 1)
            for axis, size in enumerate(self.layout.sizes):
                if not seen[axis]:
                    others = [other for other in range(part.ndim) if other != axis]
                    out[row, axis, :size] = part.sum(dim=others).log().clamp(min=-1e3)
        return out


def joint_table_model(table: np.ndarray, names: Sequence[str]) -> AnyOrderModel:
    """The exact model of a joint table, one axis a variable with levels 0, 1, ..."""
    schema = Schema(
        tuple(
            Variable(name, Kind.CATEGORICAL, levels=tuple(str(k) for k in range(size)), dtype="str")
            for name, size in zip(names, table.shape, strict=True)
        )
    )
    encoding = Encoding(schema, tuple(LevelCodec(variable) for variable in schema.variables))
    heads = [Categorical(size) for size in table.shape]
    return AnyOrderModel(encoding, JointTable(layout_of(schema, heads)).hold(table), heads, Canonical()).eval()


@dataclass(eq=False)
class ClassAndNumber(MaskNetwork):
    """A class k with probability ``shares[k]``, and a number x | k ~ N(means[k], deviations[k]^2), exactly."""

    name: ClassVar[str] = "class_and_number"

    shares: tuple[float, ...] = (0.5, 0.3, 0.2)
    means: tuple[float, ...] = (-1.0, 0.5, 3.0)
    deviations: tuple[float, ...] = (0.5, 1.5, 0.7)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.register_buffer("place", torch.zeros(0))  # a model is where its tensors are

    def beside(self, values: Tensor, known: Tensor, prefix: Tensor | None = None) -> Tensor:
        shares, means, deviations = (torch.tensor(part).double() for part in (self.shares, self.means, self.deviations))
        count = len(shares)
        out = torch.zeros(*values.shape, self.layout.width, dtype=torch.float64)
        near = -0.5 * ((values[:, 1:].double() - means) / deviations) ** 2 - deviations.log()
        out[:, 0, :count] = shares.log() + near.where(known[:, 1:], 0.0)
        same = torch.arange(count) == values[:, :1]
        ruled_out = torch.where(same | ~known[:, :1], 0.0, -1e3)
        out[:, 1, : 3 * count] = torch.cat(
            [shares.log() + ruled_out, means.expand(len(values), -1), deviations.log().expand(len(values), -1)], dim=1
        )
        return out


def class_and_number_model() -> AnyOrderModel:
    """A variable with levels and one on a line, every conditional in closed form."""
    kinds = Variable("kind", Kind.CATEGORICAL, levels=("a", "b", "c"), dtype="str")
    schema = Schema((kinds, Variable("x", Kind.CONTINUOUS)))
    encoding = Encoding(schema, (LevelCodec(kinds), LineCodec(schema.variables[1], Warp.affine(0.0, 1.0))))
    heads = [Categorical(3), GaussianMixture(3)]
    return AnyOrderModel(encoding, ClassAndNumber(layout_of(schema, heads)), heads, Canonical()).eval()
