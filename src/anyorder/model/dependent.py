"""A model with dependencies between its columns around it (:mod:`anyorder.networks.dependent`)."""

from __future__ import annotations

from collections.abc import Sequence

from anyorder.heads import Head
from anyorder.heads.compatible import Compatible
from anyorder.model.any_order import AnyOrderModel, layout_of
from anyorder.networks.dependent import Dependency, DependentNetwork


def dependent(model: AnyOrderModel, dependencies: Sequence[Dependency]) -> AnyOrderModel:
    """The model with these dependencies around its network and its heads; it shares all weights."""
    touched = {variable for one in dependencies for variable in (one.source, one.target)}
    width = model.network.layout.width
    own = [model.heads.of(variable) for variable in range(model.variables)]
    heads: list[Head] = [
        Compatible(head, width if variable in touched else 0) if head.size else head
        for variable, head in enumerate(own)
    ]
    network = DependentNetwork.of(layout_of(model.schema, heads), model.network, dependencies)
    return AnyOrderModel(model.encoding, network, heads, model.protocol).eval()
