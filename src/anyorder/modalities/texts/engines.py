"""The engines of a text: counts, a network, or both as one.

Counts take seconds and are hard to beat near known characters; a network sees the whole window and goes on learning.
Together they answer better than either, so that is the default. Counts are made of the text that is learned from; once
held-out text has told how far to believe them, they take in that text as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

import torch
from jaxtyping import Float, Int
from torch import Tensor

from anyorder.errors import UserError, nearest
from anyorder.masking import Cardinality, Masking, Mixture
from anyorder.model import AnyOrderModel
from anyorder.model.likelihood import log_probs
from anyorder.networks.counted import Counted
from anyorder.networks.counts import Counts
from anyorder.networks.layout import Layout
from anyorder.query import Query
from anyorder.training.mixing import learn_mixing
from anyorder.training.rows import Rows

Engine: TypeAlias = Literal["auto", "neural", "counts"]
WITH_NETWORK = ("auto", "neural")
WITH_BOTH = ("auto",)
SHARE, MOST_SECONDS = 0.1, 20.0  # of the budget that is kept for learning how to mix
JUDGES = 16  # windows by which counts alone are judged: more would take longer than counting
MIXED_ON = 32  # windows from which mixing is learned where the budget is a number of steps: no clock decides then


def check_engine(engine: str) -> str:
    """The engine, if there is one of this name."""
    if not isinstance(engine, str) or engine not in get_args(Engine):
        raise UserError(f"unknown engine {engine!r}; {nearest(engine, get_args(Engine))}")
    return engine


def mixing_seconds(minutes: float | None) -> float | None:
    """How long learning to mix may take of so many minutes; None where there is no limit."""
    return None if minutes is None else min(SHARE * 60 * minutes, MOST_SECONDS)


@dataclass(frozen=True)
class Counting:
    """What is counted, and the questions about held-out text that judge it.

    ``held_out_codes``: held-out text that is counted in the end, if it is not a text of its own. ``layout``: that of
    the windows.
    """

    codes: Int[Tensor, " positions"]
    held_out_codes: Int[Tensor, " further"]
    order: int
    layout: Layout
    held_out: Rows
    masking: Masking
    seed: int

    @cached_property
    def counts(self) -> Counts:
        """The counts of what is learned from."""
        return Counts.of(self.layout, self.codes.numpy(), self.order)

    @cached_property
    def final_counts(self) -> Counts:
        """With the held-out text, where that is part of the corpus."""
        if not len(self.held_out_codes):
            return self.counts
        return Counts.of(self.layout, torch.cat([self.codes, self.held_out_codes]).numpy(), self.order)

    def make_ready(self) -> None:
        """Count now: before a network is trained, as a part of its time."""
        _ = self.counts.smoothed, self.final_counts

    def query(self) -> Query:
        """A question about every held-out window, the same each time; one in four about some characters alone."""
        questions = Mixture((self.masking, Cardinality()), (3.0, 1.0))
        return questions.draw_for(self.held_out.values, torch.Generator().manual_seed(self.seed))

    def alone(self, core: AnyOrderModel) -> tuple[AnyOrderModel, dict[str, Any]]:
        """A model of counts alone, and its score."""
        values, query = self._spread(JUDGES)
        judged = AnyOrderModel(core.encoding, self.counts, _heads(core), core.protocol)
        nats = log_probs(judged, values, query)[0].sum() / max(int(query.asked.sum()), 1)
        final = AnyOrderModel(core.encoding, self.final_counts, _heads(core), core.protocol)
        return final.eval(), {"held_out": float(nats)}

    def _spread(self, most: int) -> tuple[Float[Tensor, "windows positions"], Query]:
        """So many of the held-out windows, evenly spread, and what is asked of each."""
        index = torch.linspace(0, len(self.held_out.values) - 1, most).long().unique()
        return self.held_out.values[index], self.query().rows(index)

    def together(
        self, core: AnyOrderModel, seconds: float | None, stop: Callable[[], bool]
    ) -> tuple[AnyOrderModel, dict[str, Any]]:
        """A trained network and counts as one model, and their scores; sooner than in ``seconds`` if told to stop."""
        if core.heads.of(0).levels == 1:  # one symbol: nothing is left to learn
            return core, {}
        network = Counted.of(self.layout, core.network, self.counts)
        values, query = self._spread(MIXED_ON if seconds is None else len(self.held_out.values))
        # Whatever the time is enough for should be from all over the text.
        order = torch.randperm(len(values), generator=torch.Generator().manual_seed(self.seed))
        chain = core.protocol.chain(query.rows(order), torch.Generator().manual_seed(self.seed))
        scores = learn_mixing(network, values[order], chain, seed=self.seed, seconds=seconds, stop=stop)
        final = Counted.of(self.layout, core.network, self.final_counts)
        final.weights.load_state_dict(network.weights.state_dict())
        model = AnyOrderModel(core.encoding, final, _heads(core), core.protocol)
        return model.eval(), {"held_out": scores["together"], "engines": scores}


def _heads(core: AnyOrderModel) -> list[Any]:
    return [core.heads.of(variable) for variable in range(core.variables)]
