"""Growing the trees: every variable learns to tell its bins or levels apart from whatever else happens to be known.

Each known cell x_i of the table is shown several times, beside random subsets e of the other known cells of its row
(|e| uniform, as in ARDM), the rest hidden. LightGBM's classifier then is p(bin of x_i | x_e) for every e. How many
rounds to boost is judged on held-out rows; the trees that are kept are then grown with that number, on short tables
from all rows. Several sets of them with shifted bins and other subsets are better than one: members of a blend.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from anyorder.errors import UserError
from anyorder.fair import recorded
from anyorder.heads import Bernoulli, Binned, Bounded, Categorical, Head, Spiked
from anyorder.layout import Layout
from anyorder.networks.boosted_trees import BoostedTrees, lightgbm
from anyorder.train import Rows
from anyorder.warp import Warp

T = TypeVar("T")
STRIDE = 5  # rounds between two looks at the held-out rows
FEWEST_IN_A_BIN = 6  # known cells
MOST_SHOWN = 400_000  # cells of a variable times columns: wide tables are learnt from fewer repetitions
PATIENCE = 3  # looks without progress before growth ends


@dataclass(frozen=True)
class TreeOptions:
    """How to grow trees."""

    members: int = 2  # sets of trees
    bins: int = 16
    rounds: int = 100  # at most
    learning_rate: float = 0.15
    leaves: int = 15
    sharp: int = 1  # rows that a leaf must hold where a table repeats itself,
    smooth: int = 10  # and where it is noisy: held-out rows say which, for every variable
    shown: int = 20_000  # cells of one variable that are shown, with repetition
    most_repeats: int = 80  # of one cell
    refit_below: int = 5_000  # rows: below, the trees that are kept are grown from the held-out rows as well
    most_rows: int = 50_000  # rows beyond which engine "auto" does without trees
    workers: int = 0  # variables grown at a time; 0 = as many as there are cores

    def __post_init__(self) -> None:
        for name in ("members", "bins", "rounds", "leaves", "shown", "most_repeats", "sharp", "smooth"):
            if getattr(self, name) < 1 + (name in ("bins", "leaves")):
                raise UserError(f"trees: {name} must be {1 + (name in ('bins', 'leaves'))} or more")
        if not 0 < self.learning_rate <= 1:
            raise UserError(f"trees: learning_rate must lie in (0, 1], got {self.learning_rate!r}")


class Clock:
    """Shares out the time that is left among the variables still to be grown. ``stop`` tells of Ctrl-C."""

    def __init__(self, jobs: int, workers: int, deadline: float | None, stop: Callable[[], bool]) -> None:
        self.jobs = jobs
        self.workers = workers
        self.deadline = deadline
        self.stop = stop
        self._lock = threading.Lock()

    def begin(self) -> Callable[[], bool]:
        """Whether a variable that begins now has used up its part of the time."""
        if self.deadline is None:
            return self.stop
        now = time.monotonic()
        with self._lock:
            part = max(self.deadline - now, 0.0) * min(self.workers, self.jobs) / max(self.jobs, 1)
            self.jobs -= 1
        return lambda: self.stop() or time.monotonic() > now + part


def tree_workers(options: TreeOptions) -> int:
    """How many variables are grown at a time."""
    return options.workers or min(os.cpu_count() or 1, 8)


@dataclass(frozen=True)
class Plan:
    """How to grow one variable's trees: so many rounds, with leaves of so many rows at least."""

    rounds: int = 0
    least_rows: int = 1


@dataclass(frozen=True)
class Judged:
    """Trees grown on the training rows alone, and what made each variable's held-out cells most probable."""

    heads: list[Head]
    network: BoostedTrees
    texts: list[str]
    plans: list[Plan]


def tree_head(
    head: Head, values: Float[np.ndarray, " cells"], bins: int, shift: float, warp: Warp | None = None
) -> Head:
    """The same variable's head with bins in place of its smooth family; ``values`` are its known cells.

    ``warp`` leads to their normal scores, if it is known already.
    """
    if isinstance(head, Bounded):
        return Bounded(tree_head(head.base, values, bins, shift, warp), head.low, head.high)
    if isinstance(head, Spiked):
        atoms = np.asarray(head.atoms, dtype=values.dtype)
        return Spiked(head.atoms, tree_head(head.base, values[~np.isin(values, atoms)], bins, shift, warp))
    if head.levels:
        return head if isinstance(head, Bernoulli) else Categorical(head.levels)
    lattice = getattr(head, "lattice", None)
    if not len(values):
        return Binned(lattice=lattice)
    # Bins of a few cells each would be noise.
    few = max(4, min(bins, len(values) // FEWEST_IN_A_BIN))
    return Binned.fit(values.astype(np.float64), few, shift, lattice, warp)


def classes_of(head: Head, values: Float[Tensor, " cells"]) -> tuple[Int[Tensor, " cells"], int]:
    """Which class of a tree's head each value is, and how many there are."""
    if isinstance(head, Bounded):
        return classes_of(head.base, values)
    if isinstance(head, Spiked):
        found = values[:, None] == torch.tensor(head.atoms, dtype=values.dtype)
        rest, count = classes_of(head.base, values)
        atoms = len(head.atoms)
        return torch.where(found.any(1), found.long().argmax(1), atoms + rest), atoms + count
    if isinstance(head, Binned):
        return head.bin_of(values), head.size
    return values.long(), head.levels


def judge_trees(
    heads: Sequence[Head],
    layout: Layout,
    nominal: Sequence[bool],
    training: Rows,
    judges: Rows,
    options: TreeOptions,
    *,
    seed: int,
    clock: Clock,
    advance: Callable[[], None],
) -> Judged:
    """Trees with as many rounds as held-out rows ask for; ``advance`` is called when a variable is done.

    A variable for which no time is left answers with its marginal.
    """
    jobs = _jobs(heads, layout, nominal, training, options, seed, clock)
    grown = _all(lambda job: job.judged(judges), jobs, options, advance)
    texts = [text for text, _ in grown]
    return Judged(list(heads), _network(heads, layout, jobs, texts), texts, [plan for _, plan in grown])


def grow_trees(
    heads: Sequence[Head],
    layout: Layout,
    nominal: Sequence[bool],
    rows: Rows,
    plans: Sequence[Plan],
    options: TreeOptions,
    *,
    seed: int,
    clock: Clock,
    advance: Callable[[], None],
    instead: Sequence[str] = (),
) -> BoostedTrees:
    """Trees as the plan of each variable says; where time is up, those of the text that stands ``instead``, or none."""
    jobs = _jobs(heads, layout, nominal, rows, options, seed, clock)
    grown = _all(lambda job: job.grown(plans[job.place]), jobs, options, advance)
    if instead:
        grown = [text or other for text, other in zip(grown, instead, strict=True)]
    return _network(heads, layout, jobs, grown)


def all_rows(training: Rows, judges: Rows) -> Rows:
    """Both together."""
    pairs = ((getattr(rows, name).cpu() for rows in (training, judges)) for name in ("values", "observed", "log_det"))
    return Rows(*(torch.cat(tuple(pair)) for pair in pairs))


def _jobs(
    heads: Sequence[Head],
    layout: Layout,
    nominal: Sequence[bool],
    rows: Rows,
    options: TreeOptions,
    seed: int,
    clock: Clock,
) -> list[_Job]:
    lightgbm()
    columns = [place for place, flag in enumerate(nominal) if flag]
    return [_Job(head, place, layout.partners, columns, rows, options, seed, clock) for place, head in enumerate(heads)]


def _all(work: Callable[[_Job], T], jobs: Sequence[_Job], options: TreeOptions, advance: Callable[[], None]) -> list[T]:
    results: list[T] = []
    with ThreadPoolExecutor(tree_workers(options)) as pool:
        for result in pool.map(work, jobs):
            results.append(result)
            advance()
    return results


def _network(heads: Sequence[Head], layout: Layout, jobs: Sequence[_Job], texts: Sequence[str]) -> BoostedTrees:
    marginal = torch.zeros(layout.variables, max(layout.width, 2), dtype=torch.float64)
    for job in jobs:
        frequencies = job.frequencies()
        marginal[job.place, : len(frequencies)] = torch.as_tensor(frequencies).log()
    return BoostedTrees(layout, atoms=tuple(_atoms(head) for head in heads)).set_trees(texts, marginal)


def _atoms(head: Head) -> int:
    return _atoms(head.base) if isinstance(head, Bounded) else len(head.atoms) if isinstance(head, Spiked) else 0


@dataclass(frozen=True)
class _Job:
    """One variable to grow trees for, in LightGBM's text ("" for none). ``partners``: as in the layout."""

    head: Head
    place: int
    partners: tuple[int, ...]
    nominal: list[int]
    rows: Rows
    options: TreeOptions
    seed: int
    clock: Clock

    def frequencies(self) -> Float[np.ndarray, " classes"]:
        """How often each class occurs, half a cell added."""
        target, count = self._targets(self.rows)
        counts = np.bincount(target, minlength=count).astype(np.float64)
        smoothed: Float[np.ndarray, " classes"] = (counts + 0.5) / (counts.sum() + 0.5 * count)
        return smoothed

    def grown(self, plan: Plan) -> str:
        """Trees by this plan; none where there is no time for all of them."""
        over = self.clock.begin()
        generator = np.random.default_rng([self.seed, self.place])
        if plan.rounds == 0 or over():
            return ""
        booster = self._booster(plan.least_rows, *self._shown(self.rows, self.options.shown, generator))
        if booster is None:
            return ""
        for _ in range(plan.rounds):
            if over():
                return ""
            booster.update()
        return str(booster.model_to_string())

    def judged(self, judges: Rows) -> tuple[str, Plan]:
        """Trees that make held-out cells most probable, sharp or smooth ones, and the plan that led to them."""
        over = self.clock.begin()
        generator = np.random.default_rng([self.seed, self.place])
        if over():
            return "", Plan()
        shown = self._shown(self.rows, self.options.shown, generator)
        unseen, truth, _ = self._shown(judges, max(2_000, len(judges.values)), generator)
        best, text, plan = -np.inf, "", Plan()
        for least_rows in (self.options.smooth, self.options.sharp):  # the smooth ones are sooner done
            booster = self._booster(least_rows, *shown)
            if booster is None or (over() and text):
                break
            nats, rounds = self._rounds(booster, unseen, truth, over)
            if nats > best:
                best, plan = nats, Plan(rounds, least_rows)
                text = str(booster.model_to_string(num_iteration=rounds))
        return text, plan

    def _rounds(
        self,
        booster: Any,
        unseen: Float[np.ndarray, "cells variables"],
        truth: Int[np.ndarray, " cells"],
        over: Callable[[], bool],
    ) -> tuple[float, int]:
        """Boost until held-out cells gain no more; how probable they were at best, and after how many rounds."""
        if not len(truth):  # no held-out row knows this variable
            few = max(1, self.options.rounds // 4)
            for _ in range(few):
                booster.update()
            return 0.0, few
        scores, best, best_round, stale = 0.0, -np.inf, 0, 0
        for since in range(0, self.options.rounds, STRIDE):
            more = min(STRIDE, self.options.rounds - since)
            for _ in range(more):
                booster.update()
            scores = scores + booster.predict(unseen, raw_score=True, start_iteration=since, num_iteration=more)
            nats = _log_score(np.asarray(scores), truth)
            if nats > best + 1e-4:
                best, best_round, stale = nats, since + more, 0
            else:
                stale += 1
            if stale >= PATIENCE or over():
                break
        return best, best_round

    def _targets(self, rows: Rows) -> tuple[Int[np.ndarray, " cells"], int]:
        here = rows.observed[:, self.place]
        classes, count = classes_of(self.head, rows.values[here, self.place].cpu())
        return classes.numpy(), max(count, 2)

    def _booster(
        self,
        least_rows: int,
        inputs: Float[np.ndarray, "cells variables"],
        target: Int[np.ndarray, " cells"],
        repeats: int,
    ) -> Any:
        """LightGBM's classifier before its first round; None where there is but one class."""
        library, options = lightgbm(), self.options
        count = self._targets(self.rows)[1]
        if len(np.unique(target)) < 2:
            return None
        parameters = {
            "objective": "binary" if count == 2 else "multiclass",
            **({} if count == 2 else {"num_class": count}),
            "learning_rate": options.learning_rate,
            "num_leaves": options.leaves,
            # A leaf should hold whole rows, however often each row is shown.
            "min_data_in_leaf": max(least_rows * repeats, 2),
            "lambda_l2": 1.0,
            "bagging_fraction": 0.6,  # of the cells shown, for every round anew: quicker, and no worse
            "bagging_freq": 1,
            "feature_pre_filter": False,
            "num_threads": 1,
            "verbose": -1,
            "seed": self.seed,
            "deterministic": True,
            "force_row_wise": True,
        }
        nominal = [column for column in self.nominal if column != self.place]
        return library.Booster(
            parameters, library.Dataset(inputs, target, categorical_feature=nominal, params=parameters)
        )

    def _shown(
        self, rows: Rows, shown: int, generator: np.random.Generator
    ) -> tuple[Float[np.ndarray, "cells variables"], Int[np.ndarray, " cells"], int]:
        """Known cells of the variable beside random subsets of their rows; their classes; how often each is shown."""
        observed = rows.observed.cpu().numpy()
        shown = min(shown, MOST_SHOWN // observed.shape[1])
        target, _ = self._targets(rows)
        place = np.flatnonzero(observed[:, self.place])
        repeats = int(np.clip(shown // max(len(place), 1), 1, self.options.most_repeats))
        if len(place) > shown:
            chosen = np.sort(generator.choice(len(place), shown, replace=False))
            place, target = place[chosen], target[chosen]
        place, target = np.repeat(place, repeats), np.repeat(target, repeats)
        chosen = random_subsets(len(place), observed.shape[1], generator)
        chosen[:, self.place] = False
        if self.partners and self.partners[self.place] >= 0:  # a column and its own indicator never see each other
            chosen[:, self.partners[self.place]] = False
        known = recorded(torch.as_tensor(chosen), torch.as_tensor(observed[place]), self.partners).numpy()
        values = rows.values.cpu().numpy().astype(np.float64)[place]
        return np.where(known, values, np.nan), target, repeats


def random_subsets(rows: int, variables: int, generator: np.random.Generator) -> Bool[np.ndarray, "rows variables"]:
    """Subsets whose size is uniform on 0..variables, and which are uniform given their size."""
    share = generator.integers(0, variables + 1, size=(rows, 1))
    ranks = generator.random((rows, variables)).argsort(axis=1).argsort(axis=1)
    subsets: Bool[np.ndarray, "rows variables"] = ranks < share
    return subsets


def _log_score(scores: Float[np.ndarray, "cells ..."], truth: Int[np.ndarray, " cells"]) -> float:
    """The mean log-probability of the true classes."""
    if scores.ndim == 1:
        scores = np.stack([np.zeros_like(scores), scores], axis=1)
    log_probs = torch.from_numpy(scores).log_softmax(1).numpy()
    # No single cell may cost more than a class that was left to the marginal's share would.
    return float(log_probs[np.arange(len(truth)), truth].clip(min=-10.0).mean())
