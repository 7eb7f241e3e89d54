"""The parts of a model that learn by gradients, each as a model of its own: they can be trained further."""

from __future__ import annotations

from anyorder.model.any_order import AnyOrderModel


def trainable_parts(model: AnyOrderModel) -> list[AnyOrderModel]:
    """The model itself, or what it is made of, down to the networks that can be trained; their weights are shared."""
    if model.network.trainable:
        return [model]
    found: list[AnyOrderModel] = []
    for number, network in enumerate(model.network.inside):
        heads = [model.heads.of(variable).part(number) for variable in range(model.variables)]
        found += trainable_parts(AnyOrderModel(model.encoding, network, heads, model.protocol).eval())
    return found
