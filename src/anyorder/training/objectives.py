"""What training maximises: four ways to spend one pass of a network on the steps that inference will walk.

``parallel``  mean over i not in e of log p(x_i | x_e), e from the induced distribution (MAC eq. 7, ARDM eq. 4):
              one pass of a mask network, including edges that inference never walks.
``edges``     the same pass, but each edge (i, e) counted as often as inference walks it (MAC eq. 6): by closed form
              under M_card and a canonical order, by the one edge that was drawn otherwise.
``chain``     every step of the chain *evidence, then asked* in one pass of a chain network (MAC Algorithm 1).
``stages``    one pass of a mask network at a uniformly drawn step of a masking mode's trajectory, the pixels that may
              be next weighted by their transition probabilities (SFARM eqs. 8 to 10); the network hears of the mode.

Cells that are missing are never known and never asked. A column's own missing-indicator is hidden from it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from anyorder.errors import UserError, nearest
from anyorder.masking import Cardinality, Masking, Modes, TwoStage
from anyorder.model import AnyOrderModel
from anyorder.networks import ChainNetwork, UNet
from anyorder.protocols import Canonical, Protocol
from anyorder.training.induced import Induced, edge_weights
from anyorder.training.unbiased_edges import fair_edges


@dataclass(frozen=True)
class Scores:
    """log p of the steps that a batch counts in model units, its shift to the units of the data, and its weight."""

    log_prob: Float[Tensor, "batch steps"]
    log_det: Float[Tensor, "batch steps"]
    weight: Float[Tensor, "batch steps"]

    def mean(self) -> Float[Tensor, ""]:
        """Nats per counted step."""
        return ((self.log_prob + self.log_det) * self.weight).sum() / self.weight.sum().clamp(min=1e-12)

    def total(self, floor: float) -> tuple[float, float]:
        """Sum and weight in float64, no step below ``floor`` nats: one absurd cell must not drown all others."""
        log_prob = self.log_prob.double().nan_to_num(nan=floor).clamp(min=floor)
        total = (log_prob + self.log_det.double()) * self.weight.double()
        return total.sum().item(), self.weight.double().sum().item()


@dataclass(frozen=True)
class Objective(ABC):
    """A way to draw steps and score them."""

    name: ClassVar[str]

    masking: Masking
    protocol: Protocol
    reweight: bool = False

    @abstractmethod
    def scores(
        self,
        model: AnyOrderModel,
        values: Float[Tensor, "batch variables"],
        observed: Bool[Tensor, "batch variables"],
        log_det: Float[Tensor, "batch variables"],
        generator: torch.Generator,
    ) -> Scores:
        """Draw one query a row and score its steps; ``log_det`` carries each cell into the units of the data."""


@dataclass(frozen=True)
class Parallel(Objective):
    """All unknown cells beside each other."""

    name: ClassVar[str] = "parallel"

    def scores(
        self, model: AnyOrderModel, values: Tensor, observed: Tensor, log_det: Tensor, generator: torch.Generator
    ) -> Scores:
        batch, variables = values.shape
        induced = Induced(self.masking, self.protocol, reweight=self.reweight)
        if model.schema.pairs:
            fair = fair_edges(induced.draw(batch, variables, generator), observed, model.schema.partners)
            return Scores(_beside(model, values, fair.known), log_det, fair.weight.to(log_det.dtype))
        drawn = induced.draw(batch, variables, generator, None if bool(observed.all()) else observed)
        known = drawn.known
        # A row of which the masking can ask nothing (its target is missing, say) does not count.
        asked = (observed & ~known & (drawn.next >= 0)[:, None]).to(log_det.dtype)
        # Each row counts once, whatever the number of its unknown cells: the 1 / (N - |e|) of eq. 7.
        weight = asked / asked.sum(dim=1, keepdim=True).clamp(min=1)
        return Scores(_beside(model, values, known), log_det, weight)


@dataclass(frozen=True)
class Edges(Objective):
    """The same pass, edges weighted as inference walks them: exactly MAC eq. 6 without ``reweight``."""

    name: ClassVar[str] = "edges"

    def scores(
        self, model: AnyOrderModel, values: Tensor, observed: Tensor, log_det: Tensor, generator: torch.Generator
    ) -> Scores:
        batch, variables = values.shape
        complete = bool(observed.all())
        induced = Induced(self.masking, self.protocol, reweight=self.reweight, prefix="visits")
        paired = bool(model.schema.pairs)
        drawn = induced.draw(batch, variables, generator, None if complete or paired else observed)
        known = drawn.known
        if complete and not paired and self.masking == Cardinality() and isinstance(self.protocol, Canonical):
            weight = edge_weights(known, self.protocol).to(log_det.dtype)
        else:
            weight = torch.zeros_like(log_det)
            row = (drawn.next >= 0).nonzero()[:, 0]
            weight[row, drawn.next[row]] = 1.0
        if paired:
            fair = fair_edges(drawn, observed, model.schema.partners)
            known, weight = fair.known, weight * (fair.weight > 0)
        return Scores(_beside(model, values, known), log_det, weight)


@dataclass(frozen=True)
class WholeChain(Objective):
    """Every step of the chain, evidence part and asked part both counted.

    Each step of a drawn chain is walked once, so there is nothing to reweight.
    """

    name: ClassVar[str] = "chain"

    def __post_init__(self) -> None:
        if self.reweight:
            raise UserError("the objective 'chain' counts every step once: leave reweight out, or use 'parallel'")

    def scores(
        self, model: AnyOrderModel, values: Tensor, observed: Tensor, log_det: Tensor, generator: torch.Generator
    ) -> Scores:
        query = self.masking.draw_for(values, generator).among(observed)
        chain = self.protocol.chain(query, generator).whole()
        steps = model.step_log_prob(values, chain)
        shift = log_det.gather(1, chain.order.clamp(min=0))
        return Scores(steps, shift, chain.counted.to(log_det.dtype))


@dataclass(frozen=True)
class Stages(Objective):
    """Of a masking mode or a mixture of them. ``untold``: how often the network does not hear of a row's mode.

    Whoever asks for a picture with an arbitrary mask has no mode to tell, so that must be learned as well.
    """

    name: ClassVar[str] = "stages"

    untold: float = 0.5

    def __post_init__(self) -> None:
        if not isinstance(self.masking, TwoStage | Modes):
            raise UserError("the objective 'stages' needs a masking of modes (random_pixels, left_to_right, ... modes)")
        if self.reweight:
            raise UserError("the objective 'stages' has weights of its own: leave reweight out, or use 'parallel'")

    def scores(
        self, model: AnyOrderModel, values: Tensor, observed: Tensor, log_det: Tensor, generator: torch.Generator
    ) -> Scores:
        batch, variables = values.shape
        assert isinstance(self.masking, TwoStage | Modes)
        stage = self.masking.stage(batch, variables, generator)
        network, known = model.network, stage.known & observed
        if isinstance(network, UNet) and network.modes:
            untold = torch.rand(batch, generator=generator, device=generator.device) < self.untold
            modes = stage.mode.masked_fill(untold, network.modes)
            features = network.beside(values, known, modes=modes, told_channels=bool(network.coupled))
        elif isinstance(network, UNet):
            features = network.beside(values, known, told_channels=bool(network.coupled))
        else:
            features = model.one_pass(values, known)
        following = (stage.next & observed).to(log_det.dtype)
        weight = following / following.sum(dim=1, keepdim=True).clamp(min=1)
        return Scores(model.heads.log_prob_beside(features, values), log_det, weight)


def _beside(model: AnyOrderModel, values: Tensor, known: Tensor) -> Tensor:
    """log p(x_i | x_known) by one pass: who may not see all of what is known is not counted."""
    return model.heads.log_prob_beside(model.one_pass(values, known), values)


OBJECTIVES: dict[str, type[Objective]] = {cls.name: cls for cls in (Parallel, Edges, WholeChain, Stages)}


def objective_for(model: AnyOrderModel, masking: Masking, name: str = "auto", **options: Any) -> Objective:
    """The named objective under the model's own protocol; ``auto`` picks by the kind of network."""
    if name == "auto":
        staged = isinstance(masking, TwoStage | Modes)
        name = "chain" if isinstance(model.network, ChainNetwork) else "stages" if staged else "parallel"
    if name not in OBJECTIVES:
        raise UserError(f"unknown objective {name!r}; {nearest(name, [*OBJECTIVES, 'auto'])}")
    cls = OBJECTIVES[name]
    valid = [field.name for field in fields(cls) if field.name not in ("masking", "protocol")]
    for option in options:
        if option not in valid:
            raise UserError(f"objective {name!r} has no option {option!r}; {nearest(option, valid)}")
    return cls(masking, model.protocol, **options)
