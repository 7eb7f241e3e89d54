"""The engines of a text: counts, a network, or both as one.

Counts take seconds and are hard to beat near known characters; a network sees the whole window and goes on learning.
Together they answer better than either, so that is the default. Counts are made of the text that is learned from; once
held-out text has told how far to believe them, they take in that text as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import torch
from jaxtyping import Int
from torch import Tensor

from anyorder.errors import UserError, nearest
from anyorder.masking import Cardinality, Masking, Mixture
from anyorder.model import AnyOrderModel
from anyorder.model.any_order import layout_of
from anyorder.model.likelihood import log_probs
from anyorder.networks.counted import Counted
from anyorder.networks.counts import Counts
from anyorder.query import Query
from anyorder.training.mixing import learn_mixing
from anyorder.training.rows import Rows

Engine: TypeAlias = Literal["auto", "neural", "counts"]
TRAINED = ("auto", "neural")  # those with a network
TOGETHER = ("auto",)  # those of which that is not all
SHARE, MOST_SECONDS = 0.1, 20.0  # of the budget that is kept for learning how to mix
JUDGES = 16  # windows by which counts alone are judged: more would take longer than counting
UNBOUNDED = 20.0  # seconds for it where the budget is a number of steps


def check_engine(engine: str) -> str:
    """The engine, if there is one of this name."""
    if not isinstance(engine, str) or engine not in get_args(Engine):
        raise UserError(f"unknown engine {engine!r}; {nearest(engine, get_args(Engine))}")
    return engine


def mixing_seconds(minutes: float | None) -> float:
    """How long learning to mix may take of so many minutes."""
    return UNBOUNDED if minutes is None else min(SHARE * 60 * minutes, MOST_SECONDS)


@dataclass(frozen=True)
class Counting:
    """What is counted, and the questions about held-out text that judge it.

    ``more``: held-out text that is counted in the end, if it is not a text of its own.
    """

    codes: Int[Tensor, " positions"]
    more: Int[Tensor, " further"]
    order: int
    held_out: Rows
    masking: Masking
    seed: int

    def counts(self, core: AnyOrderModel) -> Counts:
        """The counts of what is learned from, for the variables of this model."""
        return Counts.of(layout_of(core.schema, _heads(core)), self.codes.numpy(), self.order)

    def finished(self, network: Counts) -> Counts:
        """With the held-out text, where that is part of the corpus."""
        if not len(self.more):
            return network
        return Counts.of(network.layout, torch.cat([self.codes, self.more]).numpy(), self.order)

    def query(self) -> Query:
        """A question about every held-out window, the same each time; one in four about some characters alone."""
        questions = Mixture((self.masking, Cardinality()), (3.0, 1.0))
        return questions.draw_for(self.held_out.values, torch.Generator().manual_seed(self.seed))

    def alone(self, core: AnyOrderModel) -> tuple[AnyOrderModel, dict[str, Any]]:
        """A model of counts alone, and its score."""
        counts = self.counts(core)
        spread = torch.linspace(0, len(self.held_out.values) - 1, JUDGES).long().unique()
        values, query = self.held_out.values[spread], self.query().rows(spread)
        judged = AnyOrderModel(core.encoding, counts, _heads(core), core.protocol)
        nats = log_probs(judged, values, query)[0].sum() / max(int(query.asked.sum()), 1)
        final = AnyOrderModel(core.encoding, self.finished(counts), _heads(core), core.protocol)
        return final.eval(), {"held_out": float(nats)}

    def together(self, core: AnyOrderModel, seconds: float) -> tuple[AnyOrderModel, dict[str, Any]]:
        """A trained network and counts as one model, and their scores."""
        if core.heads.of(0).levels == 1:  # one symbol: nothing is left to learn
            return core, {}
        counts = self.counts(core)
        network = Counted.of(core.network.layout, core.network, counts)
        chain = core.protocol.chain(self.query(), torch.Generator().manual_seed(self.seed))
        scores = learn_mixing(network, self.held_out.values, chain, seconds=seconds, seed=self.seed)
        final = Counted.of(core.network.layout, core.network, self.finished(counts))
        final.weights.load_state_dict(network.weights.state_dict())
        model = AnyOrderModel(core.encoding, final, _heads(core), core.protocol)
        return model.eval(), {"held_out": scores["together"], "engines": scores}


def _heads(core: AnyOrderModel) -> list[Any]:
    return [core.heads.of(variable) for variable in range(core.variables)]
