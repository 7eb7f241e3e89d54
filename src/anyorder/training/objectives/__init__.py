"""What training maximises: ways to spend one pass of a network on the steps that inference will walk, one a file."""

from __future__ import annotations

from typing import Any

from anyorder.masking import KnownContext, Masking
from anyorder.model import AnyOrderModel
from anyorder.support.registry import Registry
from anyorder.training.objectives.base import Beside, Drawn, Objective, Scores
from anyorder.training.objectives.chain import WholeChain
from anyorder.training.objectives.edges import Edges
from anyorder.training.objectives.parallel import Parallel
from anyorder.training.objectives.stages import Stages

objectives: Registry[Objective] = Registry("anyorder.training.objectives", Objective, "objective")


def objective_for(model: AnyOrderModel, masking: Masking, /, name: str = "auto", **options: Any) -> Objective:
    """The named objective under the model's own protocol; ``auto`` is the network's own, by stages if masks have them.

    A network that has no other wish than ``parallel`` gains from the transition probabilities that a mode knows. Where
    the model has context, the masking is about the other variables.
    """
    if model.schema.context and not masking.always_known:
        masking = KnownContext(masking, model.schema.context)
    if name == "auto":
        name = model.network.objective
        if masking.staged and name == Parallel.name:
            name = Stages.name
    return objectives.build({"name": name, **options}, masking=masking, protocol=model.protocol)


__all__ = [
    "Beside",
    "Drawn",
    "Edges",
    "Objective",
    "Parallel",
    "Scores",
    "Stages",
    "WholeChain",
    "objective_for",
    "objectives",
]
