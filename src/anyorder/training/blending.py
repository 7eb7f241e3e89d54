"""One model out of several: members are weighted for every variable by what they say about held-out cells.

p(x_i | x_e) = sum_m w_im(e) p_m(x_i | x_e), or of levels a power of it, with weights that depend on what is known and
are learned with the powers from the log-probabilities of cells that no member has seen (:mod:`.gates`). Since every
factor of a chain is normalised, so is the whole, and each answer stays exact. Members are asked what people ask:
random sets of known cells of every size, a single column given all the others, and all columns given one or two. From
the same answers follows how much less, or more, the members must have beyond all that was seen (:mod:`.ends`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from anyorder.errors import UserError
from anyorder.heads import Head
from anyorder.heads.blend import Blend
from anyorder.model import AnyOrderModel, layout_of
from anyorder.networks.blend import SEEN_ALL, BlendNetwork, gate_features
from anyorder.networks.layout import Layout
from anyorder.training.ends import Ends, ends_of, fit_factors
from anyorder.training.gates import Gates, JudgedCells, fit_gates
from anyorder.training.loop import FLOOR
from anyorder.training.rows import Rows
from anyorder.training.trees.growing import beside_context, random_subsets
from anyorder.training.unbiased_edges import allowed_targets, recorded
from anyorder.variables.encoding import Encoding
from anyorder.variables.missingness import without_partner

QUESTIONS = 2_500  # questions about held-out rows by which members are weighed,
QUESTION_CELLS = 50_000  # but no more than fit into so many cells
# How much the questions count that know a random set, one or two cells, and all but one: rows of each row.
RANDOM, FEW, ALL = 0.5, 0.25, 0.5
MOST_LEVELS = 64  # beyond, the mixture of a variable is never sharpened
LEAST_WEIGHT = 0.02  # a member that counts for less costs more time than it is worth


@dataclass(frozen=True)
class Member:
    """Models as they are scored, ``trials[k]`` on the k-th held-out rows, and what goes into the blend for them.

    The models of ``final`` get equal shares. Where a table is fitted by folds they are the trials themselves.
    """

    label: str
    trials: list[AnyOrderModel]
    final: list[AnyOrderModel]


@dataclass(frozen=True)
class Questions:
    """Rows of a held-out set, which of their cells are known, and how much each asked one counts."""

    rows: Rows
    known: Bool[Tensor, "questions variables"]
    counts: Float[Tensor, "questions variables"]
    single: bool = False  # whether each question is about one cell, so that only that variable has to be answered

    @property
    def cells(self) -> tuple[Int[Tensor, " cells"], Int[Tensor, " cells"]]:
        """The question and the variable of each asked cell."""
        question, variable = (self.counts > 0).nonzero(as_tuple=True)
        return question, variable


def blend(
    encoding: Encoding,
    protocol: Any,
    members: list[Member],
    held_out: list[Rows],
    seed: int,
    folds: int = 1,
    seen: Rows | None = None,
) -> tuple[AnyOrderModel, dict[str, Any]]:
    """One model of all members that count, and how they scored on held-out rows.

    With several ``folds`` the k-th model of a member has not seen the rows of fold k, and the blend keeps that.
    ``seen``: all rows of the table, beyond which little is expected; None where they are not at hand.
    """
    variables, layout = len(encoding.codecs), members[0].final[0].network.layout
    sets = [questions(rows, layout, seed, len(held_out)) for rows in held_out]
    ends = [None] * variables if seen is None else ends_of(encoding, seen)
    cells = judged(members, sets, ends)
    broken = _broken(cells, variables)
    if bool(broken.all(dim=0).any()):
        names = [name for name, none in zip(encoding.schema.names, broken.all(dim=0).tolist(), strict=True) if none]
        raise UserError(
            f"no model can score the held-out cells of {', '.join(names)}; check these columns for absurd values"
        )
    cells = replace(
        cells,
        nats=cells.nats.masked_fill(broken[:, cells.variable], FLOOR),
        levels={variable: said for variable, said in cells.levels.items() if not bool(broken[:, variable].any())},
    )
    gates = _pruned(fit_gates(cells, variables), cells, broken)
    scores = _scores(members, gates, cells, sets)
    weights = gates.log_weights.exp().T.numpy()
    weights[:, list(encoding.schema.context)] = 0.0  # nobody is believed about it
    kept = [number for number in range(len(members)) if weights[number].any()]
    parts = [model for number in kept for model in members[number].final]
    if len(parts) == 1:
        return parts[0], scores
    shares = np.concatenate([weights[number] * _even_shares(members[number].final) for number in kept])
    widths = np.cumsum([0, *(part.network.layout.width for part in parts)]).tolist()
    beyond = _beyond(gates, cells, ends)
    gate = [widths[-1] + kind for kind, number in enumerate(kept) for _ in members[number].final]
    heads: list[Head] = [
        parts[0].heads.of(variable)
        if encoding.schema.variables[variable].context
        else Blend(
            tuple(part.heads.of(variable) for part in parts),
            tuple(shares[:, variable].tolist()),
            tuple(widths[:-1]),
            tuple(gate),
            float(gates.sharpness[variable]),
            widths[-1] + len(kept) if gates.sharpness[variable] else 0,
            *beyond.get(variable, ()),
        )
        for variable in range(variables)
    ]
    numbers = [number if folds > 1 else SEEN_ALL for kind in kept for number in range(len(members[kind].final))]
    network = BlendNetwork.of(
        layout_of(encoding.schema, heads),
        [part.network for part in parts],
        numbers,
        folds,
        _slopes(gates, kept),
    )
    return AnyOrderModel(encoding, network, heads, protocol).eval(), scores


def _broken(cells: JudgedCells, variables: int) -> Bool[Tensor, "members variables"]:
    """Where a member answers NaN about a variable: it has no say in it, since NaN loses every comparison."""
    lost = cells.nats.isnan().double()
    return torch.zeros(len(lost), variables, dtype=torch.float64).index_add(1, cells.variable, lost) > 0


def _pruned(gates: Gates, cells: JudgedCells, broken: Bool[Tensor, "members variables"]) -> Gates:
    """The gates without the members that count for next to nothing, variable by variable."""
    sums = torch.zeros_like(gates.log_weights).index_add(
        0, cells.variable, cells.counts[:, None] * gates.weights(cells).exp()
    )
    total = torch.zeros(len(sums), dtype=torch.float64).index_add(0, cells.variable, cells.counts)[:, None]
    mean = torch.where(total > 0, sums / total.clamp(min=1e-12), gates.log_weights.exp())
    without = (mean < LEAST_WEIGHT) | broken.T
    without = without & ~without.all(dim=1, keepdim=True) | broken.T
    return replace(gates, log_weights=gates.log_weights.masked_fill(without, -torch.inf).log_softmax(dim=1))


def _beyond(
    gates: Gates, cells: JudgedCells, ends: Sequence[Ends | None]
) -> dict[int, tuple[tuple[float, float], tuple[float, float]]]:
    """The ends of the variables whose members have too much or too little beyond them, and the factors on that."""
    found = {}
    for variable, masses in cells.beyond.items():
        here = cells.variable == variable
        seen = ends[variable]
        assert seen is not None
        factors = fit_factors(masses, gates.weights(cells)[here].exp(), cells.counts[here], seen.expected)
        if factors != (1.0, 1.0):
            found[variable] = ((seen.low, seen.high), factors)
    return found


def _slopes(gates: Gates, kept: Sequence[int]) -> Float[Tensor, "variables gates features"]:
    """The slopes of the members that are kept, and of the share known, where blends are sharper by it."""
    slopes = gates.slopes[:, kept]
    if not bool(gates.sharpness.any()):
        return slopes
    share = torch.zeros_like(slopes[:, :1])
    share[..., 0] = 1.0
    return torch.cat([slopes, share], dim=1)


def _scores(members: list[Member], gates: Gates, cells: JudgedCells, sets: list[list[Questions]]) -> dict[str, Any]:
    """What the members and the blend say of the cells that were asked given random sets, and the mean weights."""
    random = torch.cat([torch.full((len(own.cells[0]),), not kind) for each in sets for kind, own in enumerate(each)])
    shift = torch.cat([own.rows.log_det.double()[own.cells] for each in sets for own in each])
    counts = torch.where(random, cells.counts, 0.0)
    total = counts.sum().clamp(min=1e-12)
    weights = gates.weights(cells).exp()

    def mean(nats: Tensor) -> float:
        return float((counts * nats).sum() / total)

    return {
        "members": {member.label: mean(cells.nats[number] + shift) for number, member in enumerate(members)},
        "weights": {member.label: mean(weights[:, number]) for number, member in enumerate(members)},
        "held_out": mean(gates.log_prob(cells) + shift),
    }


def _even_shares(models: Sequence[AnyOrderModel]) -> Float[np.ndarray, "models variables"]:
    """An equal share for every model of a member, but none where time did not allow it to learn of a variable."""
    counted = np.array([model.network.learned for model in models], dtype=np.float64)
    counted[0] = np.where(counted.any(axis=0), counted[0], 1.0)  # a variable without any: its marginal answers once
    shares: Float[np.ndarray, "models variables"] = counted / counted.sum(axis=0)
    return shares


def asked_of(variables: int) -> int:
    """How many questions of each kind weigh the members, where so many variables can be asked for and fewer rows are
    held out.
    """
    return min(QUESTIONS, QUESTION_CELLS // variables)


def questions(held_out: Rows, layout: Layout, seed: int, sets: int) -> list[Questions]:
    """What to ask about the rows of one of several ``sets``: random sets known first, then few, then all but one.

    All of them know the context; what is known besides is then few already if it is nothing.
    """
    variables = len(layout.answered)
    most = max(len(held_out), asked_of(variables) // sets)
    generator = np.random.default_rng([seed, 7])
    random = random_subsets(most, variables, generator)
    least = 1 if variables == layout.variables else 0
    half = -(-most // 2)
    few = generator.random((half, variables)).argsort(axis=1) < generator.integers(least, least + 2, (half, 1))
    return [
        _about(held_out, random, layout, RANDOM),
        _about(held_out, few, layout, FEW),
        _single(held_out, max(most, 2 * variables), layout, generator),
    ]


def _about(held_out: Rows, some: Bool[np.ndarray, "questions answered"], layout: Layout, worth: float) -> Questions:
    """Questions that know some variables, about all the rest; each counts once in all, and all of them as the rows."""
    chosen, partners = torch.as_tensor(beside_context(layout, some)), layout.partners
    rows = held_out.take(torch.arange(len(chosen)) % len(held_out))
    asked = (rows.observed & allowed_targets(chosen, partners)).double()
    each = asked / asked.sum(dim=1, keepdim=True).clamp(min=1)
    scale = worth * len(held_out) * some.shape[1] / len(chosen)
    return Questions(rows, recorded(chosen, rows.observed, partners), each * scale)


def _single(held_out: Rows, most: int, layout: Layout, generator: np.random.Generator) -> Questions:
    """Questions about one cell given all the others of its row, of every variable as many."""
    partners, asked_for = layout.partners, torch.zeros(layout.variables, dtype=torch.bool)
    asked_for[list(layout.answered)] = True
    row, target = (held_out.observed & asked_for).nonzero(as_tuple=True)
    order = torch.as_tensor(generator.permutation(len(row)))
    # The first cells of every variable in a random order.
    place = torch.zeros(len(row), dtype=torch.long)
    for variable in range(held_out.values.shape[1]):
        own = order[target[order] == variable]
        place[own] = torch.arange(len(own))
    chosen = (place < -(-most // len(layout.answered))).nonzero()[:, 0]
    row, target = row[chosen], target[chosen]
    rows = held_out.take(row)
    asked = torch.nn.functional.one_hot(target, held_out.values.shape[1])
    known = without_partner(recorded(asked == 0, rows.observed, partners), target, partners) & (asked == 0)
    scale = ALL * held_out.observed.sum(dim=0) / asked.sum(dim=0).clamp(min=1)
    return Questions(rows, known, asked * scale, single=True)


def judged(members: list[Member], sets: list[list[Questions]], ends: Sequence[Ends | None]) -> JudgedCells:
    """What the trials of all members say of every asked cell."""
    layout = members[0].trials[0].network.layout
    asked = [(number, own) for number, each in enumerate(sets) for own in each]
    answers = [[_answers(member.trials[number], own, ends) for number, own in asked] for member in members]
    variable = torch.cat([own.cells[1] for _, own in asked])
    code = torch.cat([own.rows.values[own.cells] for _, own in asked]).long()

    def by_variable(kind: int, dimension: int) -> dict[int, Tensor]:
        keys = sorted(set().union(*(part[kind] for part in answers[0])))
        parts = {key: [[part[kind][key] for part in own if key in part[kind]] for own in answers] for key in keys}
        return {
            key: torch.stack([torch.cat(own, dim=dimension) for own in each], dim=dimension)
            for key, each in parts.items()
        }

    levels = by_variable(1, 0)
    return JudgedCells(
        torch.stack([torch.cat([part[0] for part in own]) for own in answers]),
        variable,
        torch.cat([gate_features(own.known, layout.answered)[own.cells[0]] for _, own in asked]),
        torch.cat([own.counts[own.cells] for _, own in asked]),
        levels,
        {key: code[variable == key] for key in levels},
        by_variable(2, 1),
    )


@torch.no_grad()
def _answers(
    model: AnyOrderModel, asked: Questions, ends: Sequence[Ends | None]
) -> tuple[Float[Tensor, " cells"], dict[int, Float[Tensor, "own levels"]], dict[int, Float[Tensor, "two own"]]]:
    """log p of every asked cell, NaN where the model has none, of all levels of those that have levels, and what lies
    beyond the ends of the others.
    """
    question, variable = asked.cells
    values, known = asked.rows.values, asked.known
    nats = torch.zeros(len(question), dtype=torch.float64)
    levels: dict[int, Tensor] = {}
    beyond: dict[int, Tensor] = {}
    if not asked.single:
        parts = torch.arange(len(values)).split(1000)
        beside = torch.cat([model.features_beside(values[part], known[part]) for part in parts])
    for target in variable.unique().tolist():
        here = (variable == target).nonzero()[:, 0]
        rows = question[here]
        features = model.features_of(values[rows], known[rows], target) if asked.single else beside[rows, target]
        said = model.heads.distribution(features, target)
        nats[here] = said.log_prob(values[rows, target].to(features.dtype)).double()
        count = model.heads.of(target).levels
        if 1 < count <= MOST_LEVELS:
            codes = torch.arange(count, dtype=features.dtype)[:, None]
            levels[target] = said.log_prob(codes).T.double().clamp(min=FLOOR)
        if (seen := ends[target]) is not None:
            beyond[target] = said.outside(seen.low, seen.high)
    return nats.clamp(min=FLOOR), levels, beyond
