"""From linear predictors to features: what some predictors, of one regression or of several alike, say.

What of a regression's numbers concerns these predictors is chosen once, and used for every question
(:mod:`anyorder.networks.linear` has the formulas).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from anyorder.networks.parts.line_inputs import LineInputs
from anyorder.networks.parts.predictors import regression_of_one_set

if TYPE_CHECKING:
    from anyorder.networks.linear import LinearNetwork

TO_LOGISTIC = math.log(math.sqrt(3) / math.pi)  # from a normal's log scale to that of a logistic as broad
LEAST_VARIANCE = torch.finfo(torch.float64).tiny


@dataclass(frozen=True, eq=False)
class LineAnswers:
    """Some predictors: logits first, then locations of numbers; features are counted from ``start`` on."""

    mean: Float[Tensor, "networks inputs"]
    covariance: Float[Tensor, "networks inputs inputs"]
    weight: Float[Tensor, "networks some inputs"]
    intercept: Float[Tensor, "networks one some"]
    size: int  # of the features
    logits: int  # how many of the predictors are logits
    held_back: Float[Tensor, " logits"]  # pi / 8 times how much a difference of two logits varies more than one
    missing: Float[Tensor, "networks one logits"]  # what a logit lacks to the marginal's, for each unit of variance
    base: Int[Tensor, " logits"]  # the first logit of the same variable, among these
    later: Int[Tensor, " later"]  # those that are not the first,
    slot: Int[Tensor, " later"]  # and where their features stand
    shares: Float[Tensor, "networks one numbers components"]
    offsets: Float[Tensor, "networks one numbers components"]
    double_log_scales: Float[Tensor, "networks one numbers components"]
    logistic: Float[Tensor, "numbers one"]  # what is added to a log scale
    low: Float[Tensor, "networks one numbers"]
    high: Float[Tensor, "networks one numbers"]
    number_slot: Int[Tensor, "numbers features"]

    @classmethod
    def of(
        cls,
        network: LinearNetwork,
        kept: Mapping[str, Float[Tensor, "networks ..."]],
        predictors: Int[Tensor, " some"],
        variable: int | None = None,
    ) -> LineAnswers:
        """These predictors of networks that keep ``kept``; the features of one ``variable`` alone, or of all."""
        width = network.layout.width
        start = 0 if variable is None else variable * width
        count = int((predictors < network.logits).sum())
        logit, number = predictors[:count], predictors[count:] - network.logits
        base = torch.searchsorted(logit, network.base[logit])
        later = (base != torch.arange(count, device=base.device)).nonzero()[:, 0]
        seen = network.numbers[number]
        return cls(
            mean=kept["mean"],
            covariance=kept["covariance"],
            weight=kept["weight"][:, predictors],
            intercept=kept["intercept"][:, None, predictors],
            size=width if variable is not None else network.layout.variables * width,
            logits=count,
            held_back=math.pi / 8 * network.apart[logit],
            missing=(kept["missing"] / kept["spread"])[:, None, logit],
            base=base,
            later=later,
            slot=network.slot[torch.searchsorted(network.later, logit[later])] - start,
            shares=kept["shares"][:, None, number],
            offsets=kept["offsets"][:, None, number],
            double_log_scales=2 * kept["log_scales"][:, None, number],
            logistic=torch.where(network.lattice[number, None], TO_LOGISTIC, 0.0).double(),
            low=kept["low"][:, None, seen],
            high=kept["high"][:, None, seen],
            number_slot=network.number_slot[number] - start,
        )

    def given(self, inputs: LineInputs, known: Bool[Tensor, " inputs"]) -> LinesGiven:
        """What is left to do for rows that know the same ``inputs``."""
        index, constant, effective, variance = regression_of_one_set(self.mean, self.covariance, self.weight, known)
        return LinesGiven(self, inputs, self.mean[:, None, index], constant, effective, self.widths(variance))

    def widths(self, variance: Float[Tensor, "networks #batch some"]) -> Widths:
        """What the variance of every predictor does to its features."""
        wide = variance[..., : self.logits]
        spread = variance[..., self.logits :, None].clamp(min=LEAST_VARIANCE)
        return Widths(
            divisor=(1 + self.held_back * wide).sqrt(),
            added=wide * self.missing,
            log_scales=torch.logaddexp(self.double_log_scales, spread.log()) / 2 + self.logistic,
        )

    def features(
        self, location: Float[Tensor, "networks batch some"], widths: Widths
    ) -> Float[Tensor, "networks batch features"]:
        """The features, given the mean of every predictor, the intercept left out."""
        location = location + self.intercept
        flat = location.new_zeros(*location.shape[:2], self.size)
        count = self.logits
        if count:
            logits = location[..., :count] / widths.divisor + widths.added
            flat[..., self.slot] = (logits - logits[..., self.base])[..., self.later]
        if count < location.shape[2]:
            # A value beyond all that were seen is for the residual's law to have.
            means = location[..., count:].clamp(self.low, self.high)[..., None] + self.offsets
            mixture = [part.expand_as(means) for part in (self.shares, means, widths.log_scales)]
            flat[..., self.number_slot] = torch.cat(mixture, dim=-1)
        return flat


@dataclass(frozen=True, eq=False)
class Widths:
    """How much the logits are drawn together and added to, and how broad the laws of numbers are."""

    divisor: Float[Tensor, "networks #batch logits"]
    added: Float[Tensor, "networks #batch logits"]
    log_scales: Float[Tensor, "networks #batch numbers components"]


@dataclass(frozen=True, eq=False)
class LinesGiven:
    """The predictors of ``answers`` where some ``inputs`` are known: ``weight`` times those, less their ``centre``."""

    answers: LineAnswers
    inputs: LineInputs
    centre: Float[Tensor, "networks one known"]
    constant: Float[Tensor, "networks one some"]
    weight: Float[Tensor, "networks known some"]
    widths: Widths

    def features(self, values: Float[Tensor, "networks batch variables"]) -> Float[Tensor, "networks batch features"]:
        """The features of rows that know so much."""
        location = torch.baddbmm(self.constant, self.inputs.read(values) - self.centre, self.weight)
        return self.answers.features(location, self.widths)
