"""How trees are grown, and in how much time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from anyorder.support.checks import check_fields
from anyorder.support.threads import most_threads, usual_threads

MOST_SHOWN = 200_000  # cells of a variable times columns to grow for: wide tables are learnt from fewer repetitions
MOST_INPUTS = 600_000  # cells of a variable times all columns, context too


@dataclass(frozen=True)
class TreeOptions:
    """How to grow trees."""

    members: int = 4  # sets of trees, their bins shifted against each other
    bins: int = 16
    rounds: int = 100  # at most
    learning_rate: float = 0.15
    leaves: int = 15
    input_bins: int = 255  # into which LightGBM sorts the numbers of a column that it reads
    sharp: int = 1  # rows that a leaf must hold where a table repeats itself,
    smooth: int = 10  # and where it is noisy: held-out rows say which, for every variable
    shown: int = 20_000  # cells of one variable that are shown, with repetition
    most_repeats: int = 80  # of one cell
    refit_below: int = 5_000  # rows: below, the trees that are kept are grown from the held-out rows as well
    most_rows: int = 50_000  # rows beyond which engine "auto" does without trees
    threads: int = field(default_factory=usual_threads)  # of LightGBM: see anyorder.support.threads

    def __post_init__(self) -> None:
        counts = ("members", "rounds", "shown", "most_repeats", "sharp", "smooth", "threads")
        rows = ("refit_below", "most_rows")
        check_fields(
            self,
            whole={**dict.fromkeys(counts, 1), **dict.fromkeys(rows, 0), "bins": 2, "leaves": 2, "input_bins": 2},
            most={"threads": most_threads(), "members": 1000, "bins": 4096, "leaves": 131_072, "input_bins": 65_535},
            within={"learning_rate": "(0, 1]"},
            section="trees",
        )


TRIAL_COST = 2  # sets of trees: in the trial, sharp ones and smooth ones are grown
SECONDS = 5e-5  # of one core for each cell that is shown, with all its rounds, on a machine that has other work too
FEWEST_SHOWN = 500
REPEATS, CELLS = 8, 4_000  # of each cell and of one variable's, from which on further ones bring little
# With time for fewer cells than that there are fewer and larger trees, which learn faster, and more bins: a round costs
# as much as thousands of cells do, so that the same time shows each row three times as often.
HURRIED: dict[str, Any] = {"learning_rate": 0.4, "rounds": 20, "leaves": 31, "bins": 24, "input_bins": 63}
HURRIED_SET = 0.06  # seconds of one core for a set of such trees,
HURRIED_CELL = 1.5e-5  # and for each cell that it is shown


def tree_seconds(rows: int, variables: int, options: TreeOptions) -> float:
    """About how long trees for a table of this size need if they are not hurried."""
    shown = min(options.shown, MOST_SHOWN // variables, rows * options.most_repeats)
    return SECONDS * variables * shown * (TRIAL_COST + options.members)


def shown_within(seconds: float, rows: int, jobs: int, options: TreeOptions) -> TreeOptions:
    """The options with as many cells shown as so many ``jobs``, each a variable's set of trees, have time for.

    All of a variable's questions from fewer cells are worth more than the first few from all of them. Trees that cannot
    see each of the ``rows`` often enough are fewer and learn faster, unless somebody has said how they are to be grown.
    """
    if seconds >= least_seconds(rows, jobs, options) or not _as_usual(options):
        affordable = seconds / (SECONDS * jobs)
    else:
        affordable = (seconds / jobs - HURRIED_SET) / HURRIED_CELL
        options = replace(options, **{**HURRIED, "rounds": min(HURRIED["rounds"], options.rounds)})
    return replace(options, shown=int(min(options.shown, max(FEWEST_SHOWN, affordable))))


def _as_usual(options: TreeOptions) -> bool:
    """Whether nobody has said how trees are to be grown; how many rounds at most does not count."""
    return all(getattr(options, name) == getattr(TreeOptions, name) for name in HURRIED if name != "rounds")


def least_seconds(rows: int, jobs: int, options: TreeOptions) -> float:
    """How long so many ``jobs`` take that show each of the ``rows`` often enough, or enough of them."""
    return SECONDS * jobs * min(options.shown, CELLS, rows * min(REPEATS, options.most_repeats))


class Clock:
    """Divides the time that is left among the variables still to be grown. ``stop`` tells of Ctrl-C."""

    def __init__(self, jobs: int, deadline: float | None, stop: Callable[[], bool]) -> None:
        self.jobs = jobs
        self.deadline = deadline
        self.stop = stop

    def begin(self, parts: int = 1) -> Callable[[], bool]:
        """Whether a variable that begins now has used up its part of the time: so many of the ``jobs``."""
        if self.deadline is None:
            return self.stop
        now = time.monotonic()
        part = max(self.deadline - now, 0.0) * min(parts / max(self.jobs, 1), 1.0)
        self.jobs -= parts
        return lambda: self.stop() or time.monotonic() > now + part
