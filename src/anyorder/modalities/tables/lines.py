"""The linear experts of a table: one for every fold, where they can be had in a part of the time."""

from __future__ import annotations

import time
from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor

from anyorder.modalities.tables.race import Encoded, Job
from anyorder.model import AnyOrderModel, layout_of
from anyorder.protocols import protocols
from anyorder.training.blending import Member
from anyorder.training.linear import fit_linear, linear_head, linear_seconds, unbending

MOST_OF_BUDGET = 0.15
MOST_SECONDS = 60.0


def linear_member(job: Job, table: Encoded, stop: Callable[[], bool]) -> Member | None:
    """Regressions for every column; None where they would take too much of the time. ``stop`` tells of Ctrl-C."""
    heads = [linear_head(head) for head in table.heads()]
    if all(head.levels == 1 for head in heads):
        return None  # columns of one value each have nothing to tell
    folds = len(job.folds)
    seconds = MOST_SECONDS if job.budget.whole is None else min(MOST_SECONDS, MOST_OF_BUDGET * job.budget.whole)
    holes = not bool(table.rows.observed.all())
    rows = len(job.folds.training[0])
    bends = _bends(table)
    if folds * linear_seconds(heads, rows, holes=holes, unbent=len(bends)) > seconds:
        bends = {}
    if folds * linear_seconds(heads, rows, holes=holes) > seconds:
        return None
    end = time.monotonic() + 2 * seconds  # on a busy machine
    networks = fit_linear(
        heads,
        layout_of(table.encoding.schema, heads),
        [table.training(fold) for fold in range(folds)],
        [table.held_out(fold) for fold in range(folds)],
        late=lambda: stop() or time.monotonic() > end,
        bends=bends,
    )
    protocol = protocols.build(job.options.protocol)
    parts = [AnyOrderModel(table.encoding, network, heads, protocol).eval() for network in networks]
    return Member("linear", parts, parts)


def _bends(table: Encoded) -> dict[int, Float[Tensor, "2 knots"]]:
    """From model units back to those of the data, for the numbers that the encoding has bent."""
    found = {}
    for number, codec in enumerate(table.encoding.codecs):
        if codec.bend is not None and codec.bend.bends:
            cells = table.rows.values[table.rows.observed[:, number], number]
            bend = unbending(codec.measure, cells.numpy())
            if bend is not None:
                found[number] = bend
    return found
