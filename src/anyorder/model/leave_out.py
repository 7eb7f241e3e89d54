"""A model as it was before it saw some of its rows: the parts of a blend that have never learned from one fold.

A table may be fitted in K parts, of which part k has never seen the rows of fold k
(:mod:`anyorder.variables.folds` tells the fold of a row). What those parts say of the row is what the model would
have said of a row that is new to it, so that a row's own strangeness is not hidden by its having been learned.
"""

from __future__ import annotations

from collections.abc import Sequence

from anyorder.errors import UserError
from anyorder.model.any_order import AnyOrderModel, layout_of


def folds(model: AnyOrderModel) -> int:
    """In how many folds the model was fitted; 1 where no part of it has kept any rows unseen."""
    count = model.network.fold_count
    return count if set(model.network.folds) >= set(range(count)) else 1


def leave_out(model: AnyOrderModel, fold: int) -> AnyOrderModel:
    """A view that shares all weights and answers with those parts alone that have never seen this fold.

    Their shares and gates are those that they have in the whole.
    """
    network = model.network
    if fold not in network.folds or fold < 0:
        raise UserError(f"no part of this model was fitted without fold {fold!r:.80}; it has {folds(model)} folds")
    kept = [number for number, own in enumerate(network.folds) if own == fold]
    return parts_alone(model, kept, len(network.folds))


def part_count(model: AnyOrderModel) -> int:
    """How many parts the blend has; 1 where the model is no blend."""
    layout = model.network.layout
    while len(layout.members) == 1:
        (layout,) = layout.members
    return max(len(layout.members), 1)


def parts_alone(model: AnyOrderModel, kept: Sequence[int], parts: int) -> AnyOrderModel:
    """A view that shares all weights and answers with some of so many ``parts`` alone."""
    widths = _widths(model, parts)
    heads = [model.heads.of(variable).only(kept, widths) for variable in range(model.variables)]
    view = model.network.only(kept, layout_of(model.schema, heads))
    return AnyOrderModel(model.encoding, view, heads, model.protocol).eval()


def _widths(model: AnyOrderModel, parts: int) -> list[int]:
    """How many features each part of the blend has, which may stand inside another network."""
    layout = model.network.layout
    while len(layout.members) != parts:
        (layout,) = layout.members
    return [member.width for member in layout.members]
