"""Growing the trees: every variable learns to tell its bins or levels apart from whatever else happens to be known.

Each known cell x_i of the table is shown several times, beside random subsets e of the other known cells of its row
(|e| uniform, as in ARDM), the rest hidden. LightGBM's classifiers then are p(half of the bins of x_i | x_e) for every
e, question by question (:mod:`anyorder.networks.parts.halving`). How many rounds to boost is decided on held-out rows,
for all questions of one depth together, since a single deep one concerns few of them; the trees that are kept are then
grown with that number, on short tables from all rows. Several sets of them with shifted bins and other subsets are
better than one: members of a blend.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int

from anyorder.heads import Head
from anyorder.networks.boosted_trees import BoostedTrees, lightgbm
from anyorder.networks.layout import Layout
from anyorder.networks.parts.halving import Split, all_at_once, halves
from anyorder.networks.parts.lightgbm_text import read_trees
from anyorder.networks.parts.tree_arrays import TreeArrays
from anyorder.networks.parts.tree_network import with_count
from anyorder.query import random_subset
from anyorder.training.rows import Rows
from anyorder.training.trees.options import MOST_INPUTS, MOST_SHOWN, TRIAL_COST, Clock, TreeOptions
from anyorder.training.unbiased_edges import recorded

T = TypeVar("T")
J = TypeVar("J")
STRIDE = 5  # rounds between two looks at the held-out rows
PATIENCE = 3  # looks without progress before growth ends
# Boosters that are trained at the same time share LightGBM's global count of threads, and a process that does so
# crashes now and then. So one variable's trees are grown after another's, in all fits of the process.
_ONE_AT_A_TIME = threading.Lock()


@dataclass(frozen=True)
class Plan:
    """How to grow one depth of a variable's trees: so many rounds, with leaves of so many rows at least."""

    rounds: int = 0
    least_rows: int = 1


@dataclass(frozen=True)
class TrialTrees:
    """Trees grown on the training rows alone, and what made each variable's held-out cells most probable, by depth."""

    heads: list[Head]
    network: BoostedTrees
    questions: list[list[Split]]
    trees: list[list[TreeArrays]]
    plans: list[list[Plan]]


def grow_trial_trees(
    heads: Sequence[Head],
    layout: Layout,
    nominal: Sequence[bool],
    training: Rows,
    held_out: Rows,
    options: TreeOptions,
    *,
    seed: int,
    clock: Clock,
    advance: Callable[[], None],
    like: TrialTrees | None = None,
) -> TrialTrees:
    """Trees with as many rounds as held-out rows ask for; ``advance`` is called when a variable is done.

    A variable for which no time is left answers with its marginal. Trees of another fold, ``like`` which these are to
    be, have settled how small leaves may be.
    """
    jobs = _jobs(heads, layout, nominal, training, options, seed, clock)

    def trial(job: _Job) -> tuple[list[TreeArrays], list[Plan]]:
        known = like.plans[job.index] if like else ()
        return job.trial(held_out, [plan.least_rows if plan.rounds else options.smooth for plan in known])

    done = iter(zip(jobs, one_after_another(trial, jobs, advance), strict=True))
    questions: list[list[Split]] = []
    trees: list[list[TreeArrays]] = []
    plans: list[list[Plan]] = []
    for head in heads:  # context has none of them
        job, grown = next(done) if head.size else (None, ([], []))
        questions.append(job.questions if job else [])
        trees.append(grown[0])
        plans.append(grown[1])
    return TrialTrees(list(heads), _network(heads, layout, jobs, questions, trees), questions, trees, plans)


def grow_trees(
    heads: Sequence[Head],
    layout: Layout,
    nominal: Sequence[bool],
    rows: Rows,
    plans: Sequence[Sequence[Plan]],
    options: TreeOptions,
    *,
    seed: int,
    clock: Clock,
    advance: Callable[[], None],
    instead: TrialTrees | None = None,
) -> BoostedTrees:
    """Trees as the plans of each variable say; where time is up, the trial trees ``instead``, or none.

    Those must have the same heads. Their questions come with them: other rows may part the bins otherwise.
    """
    jobs = _jobs(heads, layout, nominal, rows, options, seed, clock)
    grown = one_after_another(lambda job: job.grown(plans[job.index]), jobs, advance)
    questions: list[list[Split]] = [[] for _ in heads]
    trees: list[list[TreeArrays]] = [[] for _ in heads]
    for job, own in zip(jobs, grown, strict=True):
        questions[job.index] = job.questions
        if own is None and instead is not None:
            questions[job.index] = instead.questions[job.index]
            own = instead.trees[job.index]
        trees[job.index] = [TreeArrays.none()] * len(questions[job.index]) if own is None else own
    return _network(heads, layout, jobs, questions, trees)


def all_rows(training: Rows, held_out: Rows) -> Rows:
    """Training and held-out rows as one table."""
    pairs = ((getattr(rows, name).cpu() for rows in (training, held_out)) for name in ("values", "observed", "log_det"))
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
    columns = [index for index, flag in enumerate(nominal) if flag]
    return [_Job(heads[index], index, layout, columns, rows, options, seed, clock) for index in layout.answered]


def one_after_another(work: Callable[[J], T], jobs: Sequence[J], advance: Callable[[], None]) -> list[T]:
    """The work done for every job, while no other fit of this process does any."""
    results: list[T] = []
    for job in jobs:
        with _ONE_AT_A_TIME:
            results.append(work(job))
        advance()
    return results


def _network(
    heads: Sequence[Head],
    layout: Layout,
    jobs: Sequence[_Job],
    questions: Sequence[Sequence[Split]],
    trees: Sequence[Sequence[TreeArrays]],
) -> BoostedTrees:
    marginal = torch.zeros(layout.variables, max(layout.width, 2), dtype=torch.float64)
    for job in jobs:
        frequencies = job.frequencies()
        marginal[job.index, : len(frequencies)] = torch.as_tensor(frequencies).log()
    return BoostedTrees.of(layout, questions, trees, [head.atom_count for head in heads], marginal)


@dataclass(frozen=True, eq=False)
class _Job:
    """One variable to grow trees for."""

    head: Head
    index: int
    layout: Layout
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

    @cached_property
    def depths(self) -> list[list[Split]]:
        """The questions about this variable's classes."""
        frequencies = self.frequencies()
        cells = self.rows.values[self.rows.observed[:, self.index], self.index]
        # Where a column has few values, each its own class, one question for all does better: see docs/engines.md.
        if self.index in self.nominal or len(torch.unique(cells)) <= len(frequencies):
            return all_at_once(len(frequencies))
        return halves(frequencies, self.head.atom_count)

    @property
    def questions(self) -> list[Split]:
        return [split for splits in self.depths for split in splits]

    def grown(self, plans: Sequence[Plan]) -> list[TreeArrays] | None:
        """Trees for all questions by these plans; None where there is no time for all of them."""
        over = self.clock.begin()
        generator = np.random.default_rng([self.seed, self.index])
        if over():
            return None
        shown = self._shown(self.rows, self.options.shown, generator)
        trees = []
        for depth, splits in enumerate(self.depths):
            plan = plans[min(depth, len(plans) - 1)] if plans else Plan()
            for split in splits:
                booster: Any = self._booster(split, plan.least_rows, shown) if plan.rounds else None
                if booster is None:
                    trees.append(TreeArrays.none())
                    continue
                for _ in range(plan.rounds):
                    if over():
                        return None
                    booster.update()
                trees.append(read_trees(booster.model_to_string()))
        return trees

    def trial(self, held_out: Rows, leaves: Sequence[int] = ()) -> tuple[list[TreeArrays], list[Plan]]:
        """Trees that make held-out cells most probable, sharp or smooth ones, and the plans that led to them.

        Coarse questions come first, so that time which runs out costs detail alone. ``leaves``: how many rows a leaf
        must hold, by depth, if that is known.
        """
        over = self.clock.begin(1 if leaves else TRIAL_COST)
        generator = np.random.default_rng([self.seed, self.index])
        trees: list[TreeArrays] = []
        plans: list[Plan] = []
        if not over():
            shown = self._shown(self.rows, self.options.shown, generator)
            unseen = self._shown(held_out, max(2_000, len(held_out.values)), generator)
            for depth, splits in enumerate(self.depths):
                asked = [_Asked(split, unseen.inputs, unseen.target) for split in splits]
                both = (self.options.smooth, self.options.sharp)  # the smooth ones are sooner done
                found, plan = self._depth(asked, shown, over, leaves[min(depth, len(leaves) - 1) :][:1] or both)
                trees += found
                plans.append(plan)
                if over():
                    break
        return trees + [TreeArrays.none()] * (len(self.questions) - len(trees)), plans

    def _depth(
        self, asked: Sequence[_Asked], shown: _Shown, over: Callable[[], bool], leaves: Sequence[int]
    ) -> tuple[list[TreeArrays], Plan]:
        """The trees for the questions of one depth, with the better of these leaves."""
        best: float | None = None
        plan, kept = Plan(), list[Any]()
        for least_rows in leaves:
            if over() and plan.rounds:
                break
            boosters = [self._booster(one.split, least_rows, shown) for one in asked]
            if best is None:  # what no trees at all would score, on the same cells
                pairs = zip(boosters, asked, strict=True)
                best = sum(one.baseline(shown.target, shown.repeats) for booster, one in pairs if booster is not None)
            nats, rounds = self._rounds(boosters, asked, over)
            if rounds and (nats > best or (not plan.rounds and not any(len(one.truth) for one in asked))):
                best, plan, kept = nats, Plan(rounds, least_rows), boosters
        trees = [TreeArrays.none() for _ in asked]
        for number, booster in enumerate(kept):
            if booster is not None:
                trees[number] = read_trees(booster.model_to_string(num_iteration=plan.rounds))
        return trees, plan

    def _rounds(self, boosters: Sequence[Any], asked: Sequence[_Asked], over: Callable[[], bool]) -> tuple[float, int]:
        """Boost until held-out cells gain no more; how probable they were at best, and after how many rounds."""
        pairs = [(booster, one) for booster, one in zip(boosters, asked, strict=True) if booster is not None]
        if not pairs:
            return -np.inf, 0
        if not any(len(one.truth) for _, one in pairs):  # no held-out row knows this variable
            few = max(1, self.options.rounds // 4)
            for booster, _ in pairs:
                for _ in range(few):
                    booster.update()
            return 0.0, few
        cells = sum(len(one.truth) for _, one in pairs)
        scores: list[Any] = [0.0] * len(pairs)
        best, best_round, stale = -np.inf, 0, 0
        for since in range(0, self.options.rounds, STRIDE):
            more = min(STRIDE, self.options.rounds - since)
            nats = 0.0
            for index, (booster, one) in enumerate(pairs):
                for _ in range(more):
                    booster.update()
                if len(one.truth):
                    scores[index] = scores[index] + booster.predict(
                        one.unseen,
                        raw_score=True,
                        start_iteration=since,
                        num_iteration=more,
                        num_threads=self.options.threads,
                    )
                    nats += _log_score(np.asarray(scores[index]), one.truth)
            if nats > best + 1e-4 * cells:
                best, best_round, stale = nats, since + more, 0
            else:
                stale += 1
            if stale >= PATIENCE or over():
                break
        return best, best_round

    def _targets(self, rows: Rows) -> tuple[Int[np.ndarray, " cells"], int]:
        here = rows.observed[:, self.index]
        classes, count = self.head.classes(rows.values[here, self.index].cpu())
        return classes.numpy(), max(count, 2)

    def _booster(
        self,
        split: Split,
        least_rows: int,
        shown: _Shown,
    ) -> Any:
        """LightGBM's classifier for one question before its first round; None where all answers are the same."""
        options = self.options
        here = np.flatnonzero(split.concerns(shown.target))
        answers = split.answer(shown.target[here])
        if not len(answers) or answers.min() == answers.max():
            return None
        parameters = {
            "objective": "binary" if split.answers == 2 else "multiclass",
            **({} if split.answers == 2 else {"num_class": split.answers}),
            "learning_rate": options.learning_rate,
            "num_leaves": options.leaves,
            # A leaf should hold whole rows, however often each row is shown.
            "min_data_in_leaf": max(least_rows * shown.repeats, 2),
            "lambda_l2": 1.0,
            "bagging_fraction": 0.6,  # of the cells shown, for every round anew: quicker, and no worse
            "bagging_freq": 1,
            "feature_pre_filter": False,
            "num_threads": options.threads,
            "verbose": -1,
            "seed": self.seed,
            "deterministic": True,
            "force_row_wise": True,
            "max_bin": options.input_bins,
        }
        nominal = [column for column in self.nominal if column != self.index]
        data = lightgbm().Dataset(shown.inputs[here], answers, categorical_feature=nominal, params=parameters)
        return lightgbm().Booster(parameters, data)

    def _shown(self, rows: Rows, shown: int, generator: np.random.Generator) -> _Shown:
        """Known cells of the variable beside random subsets of their rows."""
        observed = rows.observed.cpu().numpy()
        asked = len(self.layout.answered)
        shown = min(shown, MOST_SHOWN // asked, MOST_INPUTS // observed.shape[1])
        target, _ = self._targets(rows)
        sources = np.flatnonzero(observed[:, self.index])
        most = self.options.most_repeats if asked > 1 else 1  # beside context alone, a cell is always shown the same
        repeats = int(np.clip(shown // max(len(sources), 1), 1, most))
        if len(sources) > shown:
            chosen = np.sort(generator.choice(len(sources), shown, replace=False))
            sources, target = sources[chosen], target[chosen]
        sources, target = np.repeat(sources, repeats), np.repeat(target, repeats)
        chosen = beside_context(self.layout, random_subsets(len(sources), asked, generator))
        chosen[:, self.index] = False
        partners = self.layout.partners
        if partners and partners[self.index] >= 0:  # a column and its own indicator never see each other
            chosen[:, partners[self.index]] = False
        known = recorded(torch.as_tensor(chosen), torch.as_tensor(observed[sources]), partners).numpy()
        values = rows.values.cpu().numpy().astype(np.float64)[sources]
        return _Shown(with_count(np.where(known, values, np.nan)), target, repeats)


def random_subsets(rows: int, variables: int, generator: np.random.Generator) -> Bool[np.ndarray, "rows variables"]:
    """Subsets whose size is uniform on 0..variables, and which are uniform given their size."""
    size = torch.from_numpy(generator.integers(0, variables + 1, size=rows))
    return random_subset(torch.ones(rows, variables, dtype=torch.bool), size, generator).numpy()


def beside_context(layout: Layout, chosen: Bool[np.ndarray, "rows answered"]) -> Bool[np.ndarray, "rows variables"]:
    """Sets of the variables that can be asked for, as sets of all variables: with the context in each."""
    if len(layout.answered) == layout.variables:
        return chosen
    whole = np.ones((len(chosen), layout.variables), dtype=bool)
    whole[:, list(layout.answered)] = chosen
    return whole


@dataclass(frozen=True, eq=False)
class _Shown:
    """Cells of one variable beside other cells of their rows; their classes, and how often each is shown."""

    inputs: Float[np.ndarray, "cells variables"]
    target: Int[np.ndarray, " cells"]
    repeats: int


@dataclass(frozen=True, eq=False)
class _Asked:
    """One question as it is put to held-out cells."""

    split: Split
    all_unseen: Float[np.ndarray, "cells variables"]
    all_truth: Int[np.ndarray, " cells"]

    @cached_property
    def unseen(self) -> Float[np.ndarray, "here variables"]:
        here: Float[np.ndarray, "here variables"] = self.all_unseen[self.split.concerns(self.all_truth)]
        return here

    @cached_property
    def truth(self) -> Int[np.ndarray, " here"]:
        return self.split.answer(self.all_truth[self.split.concerns(self.all_truth)])

    def baseline(self, target: Int[np.ndarray, " shown"], repeats: int) -> float:
        """The log-probability of the true answers if each were as frequent as in training."""
        seen = self.split.answer(target[self.split.concerns(target)])
        counts = np.bincount(seen, minlength=self.split.answers) + 0.5 * repeats
        return float(np.log(counts / counts.sum())[self.truth].sum())


def _log_score(scores: Float[np.ndarray, "cells ..."], truth: Int[np.ndarray, " cells"]) -> float:
    """The log-probability of the true answers."""
    if scores.ndim == 1:
        log_probs = -np.logaddexp(0.0, np.where(truth == 1, -scores, scores))
    else:
        log_probs = torch.from_numpy(scores).log_softmax(1).numpy()[np.arange(len(truth)), truth]
    # No single cell may cost more than an answer that was left to the marginal's share would.
    return float(log_probs.clip(min=-10.0).sum())
