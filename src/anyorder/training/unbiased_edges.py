r"""Training edges that do not favour some patterns of holes over others, for :mod:`anyorder.variables.missingness`.

Where the mask means something, a row must not count more or less for an edge (i, e) because of cells outside it. So

- the set e is drawn without looking at the row. *To know a cell is to know what is recorded there*: its value, or, if
  it is missing, its indicator. (Dropping missing cells from e instead would let a row with many holes stand in for
  smaller sets: what is learned as p(x_i | x_e) would be the law among rows with more holes than usual.)
- the target drawn has its partner taken out of e; beside it, those targets count whose partner is not in e;
- each counts 1 / (number of targets that e allows), whichever of them the row has.

The target x_i itself can only be trained where it is there; r_i always. For every e the edges to r_i are then
weighted alike over all rows, so that p(r_i | e) is the frequency among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jaxtyping import Bool, Float
from torch import Tensor

from anyorder.training.induced import Known
from anyorder.variables.missingness import partner_known, without_partner


@dataclass(frozen=True)
class UnbiasedEdges:
    """Known sets, and the weight of each variable as a target given its row's set."""

    known: Bool[Tensor, "batch variables"]
    weight: Float[Tensor, "batch variables"]


def unbiased_edges(drawn: Known, observed: Bool[Tensor, "batch variables"], partners: Sequence[int]) -> UnbiasedEdges:
    """Edges for rows with these cells; ``drawn`` must not depend on ``observed``."""
    chosen = without_partner(drawn.known, drawn.next, partners)
    # Nothing is asked of a row for which the masking drew no target; every other set allows at least that one.
    allowed = allowed_targets(chosen, partners) & (drawn.next >= 0)[:, None]
    share = allowed / allowed.sum(dim=1, keepdim=True).clamp(min=1)
    return UnbiasedEdges(recorded(chosen, observed, partners), share * observed)


def recorded(
    chosen: Bool[Tensor, "batch variables"], observed: Bool[Tensor, "batch variables"], partners: Sequence[int]
) -> Bool[Tensor, "batch variables"]:
    """What is known of a row once these variables are looked at.

    An indicator is known if it was chosen, and instead of its column where that was chosen and is missing.
    """
    return (chosen & observed) | partner_known(chosen & ~observed, partners)


def allowed_targets(
    chosen: Bool[Tensor, "batch variables"], partners: Sequence[int]
) -> Bool[Tensor, "batch variables"]:
    """Which variables may be asked once these are looked at: neither they nor their partners."""
    return ~chosen & ~partner_known(chosen, partners)
