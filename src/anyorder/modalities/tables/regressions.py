"""The boosted regressions of a table: one set for every fold."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from anyorder.modalities.tables.forest import without_order
from anyorder.modalities.tables.race import Encoded, Job
from anyorder.model import AnyOrderModel, layout_of
from anyorder.protocols import protocols
from anyorder.training.blending import Member
from anyorder.training.linear import linear_head
from anyorder.training.progress import columns_bar
from anyorder.training.trees.options import Clock
from anyorder.training.trees.regressing import fit_regressions

UNHURRIED = 0.3  # seconds for the regression of a column in one fold


def regression_member(job: Job, table: Encoded, seconds: float, stop: Callable[[], bool]) -> Member:
    """Regressions of all columns, within so many seconds; ``stop`` tells of Ctrl-C."""
    deadline = None if math.isinf(seconds) else time.monotonic() + seconds
    heads = [linear_head(head) for head in table.heads()]
    folds, asked = range(len(job.folds)), len(job.schema.answered)
    with columns_bar(job.run.progress, "boosting regressions", asked) as advance:
        networks = fit_regressions(
            heads,
            layout_of(table.encoding.schema, heads),
            without_order(table.encoding),
            [table.training(fold) for fold in folds],
            [table.held_out(fold) for fold in folds],
            seed=job.run.seed,
            clock=Clock(asked, deadline, stop),
            advance=advance,
            units=[codec.measure if codec.bend and codec.bend.bends else None for codec in table.encoding.codecs],
            hurried=seconds < UNHURRIED * len(folds) * asked,
        )
    protocol = protocols.build(job.options.protocol)
    parts = [AnyOrderModel(table.encoding, network, heads, protocol).eval() for network in networks]
    return Member("regressions", parts, parts)
