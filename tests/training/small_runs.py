"""A training run of a moment, and how to compare two of them."""

from __future__ import annotations

import torch

from anyorder.heads import Categorical
from anyorder.masking import Cardinality, Conditional
from anyorder.model import AnyOrderModel
from anyorder.protocols import Canonical
from anyorder.training.loop import Trainer
from anyorder.training.objectives import objective_for
from anyorder.training.options import Options
from anyorder.training.rows import Rows
from anyorder.variables.codecs import LevelCodec
from anyorder.variables.encoding import Encoding
from anyorder.variables.schema import Kind, Schema, Variable

from models import categorical_table

QUICK = Options(minutes=None, steps=40, batch=32, validate_every=10, validation_queries=64, checkpoint_every=1e9)


def small_trainer(options: Options = QUICK, network: str = "residual_mlp", **extra: object) -> Trainer:
    levels = (2, 3, 2, 4)
    schema = Schema(
        tuple(
            Variable(n, Kind.CATEGORICAL, tuple(map(str, range(k))), "str") for n, k in zip("abcd", levels, strict=True)
        )
    )
    encoding = Encoding(schema, tuple(LevelCodec(v) for v in schema.variables))
    settings = {"name": network, "width": 16, "blocks": 1, "dropout": 0.2}
    model = AnyOrderModel.build(encoding, [Categorical(k) for k in levels], settings, Canonical(), seed=0)
    values, observed = encoding.encode(categorical_table(200))
    rows = Rows(torch.as_tensor(values).float(), torch.as_tensor(observed), torch.zeros(values.shape))
    objective = objective_for(model, Conditional(Cardinality(least=0, spare=1)))
    held_out, training = rows.take(torch.arange(40)), rows.take(torch.arange(40, 200))
    return Trainer(model, objective, training, held_out, options, seed=0, **extra)  # type: ignore[arg-type]


def weights_of(trainer: Trainer) -> dict[str, torch.Tensor]:
    return dict(trainer.finish().state_dict())


def same_weights(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)
