"""The time that a fit may take, shared out among what it does.

Everything counts, from the first look at the table to the last weight of a blend: whoever begins asks how much is left.
What an earlier run has spent on networks that are taken up again counts too. Budgets in steps have no clock.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

WEIGHING = 0.06  # share of the budget that is kept for weighing the members and for what cannot be stopped
LEAST_WEIGHING = 0.3  # seconds


@dataclass
class TimeBudget:
    """``whole`` seconds from ``began`` on (None: no limit); ``before``: what an earlier run has spent of them."""

    began: float
    whole: float | None
    before: float = 0.0
    weighing: float = LEAST_WEIGHING  # seconds that are kept for weighing the members, at least

    @property
    def left(self) -> float:
        """Seconds until the members must be weighed; 0 once it is time."""
        if self.whole is None:
            return math.inf
        kept = max(WEIGHING * self.whole, min(self.weighing, self.whole / 4))
        return max(self.whole - kept - self.before - (time.monotonic() - self.began), 0.0)

    def late(self, share: float) -> bool:
        """Whether less than this share of the whole is left."""
        return self.whole is not None and self.left < share * self.whole
