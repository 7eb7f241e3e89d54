"""A model as it was before it saw some of its rows: the parts of a blend that have never learned from one fold.

A table may be fitted in K parts, of which part k has never seen the rows of fold k
(:mod:`anyorder.variables.folds` tells the fold of a row). What those parts say of the row is what the model would
have said of a row that is new to it, so that a row's own strangeness is not hidden by its having been learned.
"""

from __future__ import annotations

from itertools import accumulate

from anyorder.errors import UserError
from anyorder.heads import Head
from anyorder.heads.blend import Blend
from anyorder.model.any_order import AnyOrderModel, layout_of
from anyorder.networks.blend import BlendNetwork


def folds(model: AnyOrderModel) -> int:
    """In how many folds the model was fitted; 1 where no part of it has kept any rows unseen."""
    network = model.network
    whole = isinstance(network, BlendNetwork) and set(network.folds) >= set(range(network.fold_count))
    return network.fold_count if isinstance(network, BlendNetwork) and whole else 1


def leave_out(model: AnyOrderModel, fold: int) -> AnyOrderModel:
    """A view that shares all weights and answers with those parts alone that have never seen this fold.

    Their shares and gates are those that they have in the whole.
    """
    network = model.network
    if not isinstance(network, BlendNetwork) or fold not in network.folds or fold < 0:
        raise UserError(f"no part of this model has left out fold {fold!r:.80}; it was fitted in {folds(model)}")
    kept = [number for number, own in enumerate(network.folds) if own == fold]
    starts = list(accumulate((network.layout.members[number].width for number in kept), initial=0))
    gates = sum(layout.width for layout in network.layout.members)  # where they begin in the whole
    heads: list[Head] = []
    for variable in range(model.variables):
        head = model.heads.of(variable)
        assert isinstance(head, Blend)
        total = sum(head.weights[number] for number in kept)
        heads.append(
            Blend(
                tuple(head.members[number] for number in kept),
                # A variable about which none of them has learned anything is answered by all of them alike.
                tuple(head.weights[number] / total if total else 1 / len(kept) for number in kept),
                tuple(starts[:-1]),
                tuple(starts[-1] + head.gates[number] - gates for number in kept) if head.gates else (),
                tuple(head.temperatures[number] for number in kept) if head.temperatures else (),
            )
        )
    view = network.only(kept, layout_of(model.schema, heads))
    return AnyOrderModel(model.encoding, view, heads, model.protocol).eval()
