"""One model out of several: members are weighted for every variable by what they say about held-out cells.

p(x_i | x_e) = sum_m w_im p_m(x_i | x_e), with the weights w_i by EM on the log-probabilities of cells that no
member has seen. Since every factor of a chain is normalised, so is the whole, and each answer stays exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from anyorder.errors import UserError
from anyorder.heads import Head
from anyorder.heads.blend import Blend, blend_weights
from anyorder.model import AnyOrderModel, layout_of
from anyorder.networks.blend import SEEN_ALL, BlendNetwork
from anyorder.training.loop import FLOOR
from anyorder.training.rows import Rows
from anyorder.training.trees.growing import random_subsets
from anyorder.training.unbiased_edges import allowed_targets, recorded
from anyorder.variables.encoding import Encoding

QUESTIONS = 4_000  # questions about held-out rows by which members are weighed,
QUESTION_CELLS = 100_000  # but no more than fit into so many cells
PRIOR_ROWS = 4.0  # held-out rows that a variable's own weights must outweigh, against those of all variables
LEAST_WEIGHT = 0.02  # a member that counts for less costs more time than it is worth


@dataclass(frozen=True)
class Member:
    """Models as they are scored, ``trials[k]`` on the k-th held-out rows, and what goes into the blend for them.

    The models of ``final`` get equal shares. Where a table is fitted by folds they are the trials themselves.
    """

    label: str
    trials: list[AnyOrderModel]
    final: list[AnyOrderModel]


def blend(
    encoding: Encoding, protocol: Any, members: list[Member], held_out: list[Rows], seed: int, folds: int = 1
) -> tuple[AnyOrderModel, dict[str, Any]]:
    """One model of all members that count, and how they scored on held-out rows.

    With several ``folds`` the k-th model of a member has not seen the rows of fold k, and the blend keeps that.
    """
    sets = [_asked(rows, encoding.schema.partners, seed, len(held_out)) for rows in held_out]
    asked = _joined([rows for rows, _, _ in sets])
    weight = torch.cat([weight for _, _, weight in sets])
    rows = sum(map(len, held_out))
    log_probs = np.stack(
        [
            np.concatenate(
                [
                    _log_probs(trial, each.values, known)
                    for trial, (each, known, _) in zip(member.trials, sets, strict=True)
                ]
            )
            for member in members
        ]
    )
    # A member that answers NaN about a variable has no say in it: NaN loses every comparison.
    broken = np.isnan(log_probs).any(axis=1)
    if broken.all(axis=0).any():
        names = [name for name, none in zip(encoding.schema.names, broken.all(axis=0), strict=True) if none]
        raise UserError(f"no model can score held-out cells of {', '.join(names)}; look for absurd values there")
    log_probs = np.where(broken[:, None, :], FLOOR, log_probs)
    weights = _weights(log_probs, weight.numpy(), rows)
    weights[broken | (weights < LEAST_WEIGHT)] = 0
    weights[:, weights.sum(axis=0) == 0] = ~broken[:, weights.sum(axis=0) == 0]
    weights /= weights.sum(axis=0)
    kept = [number for number in range(len(members)) if weights[number].any()]
    shift = asked.log_det.double().numpy()
    scores = {
        "members": {member.label: _mean(log_probs[number] + shift, weight) for number, member in enumerate(members)},
        "weights": {member.label: float(weights[number].mean()) for number, member in enumerate(members)},
        "held_out": _mean(_mixture(log_probs, weights) + shift, weight),
    }
    parts = [model for number in kept for model in members[number].final]
    shares = np.concatenate([weights[number] * _even_shares(members[number].final) for number in kept])
    if len(parts) == 1:
        return parts[0], scores
    numbers = [number if folds > 1 else SEEN_ALL for kind in kept for number in range(len(members[kind].final))]
    starts = np.concatenate([[0], np.cumsum([part.network.layout.width for part in parts])[:-1]]).tolist()
    heads: list[Head] = [
        Blend(tuple(part.heads.of(variable) for part in parts), tuple(shares[:, variable].tolist()), tuple(starts))
        for variable in range(len(encoding.codecs))
    ]
    layout = layout_of(encoding.schema, heads)
    network = BlendNetwork.of(layout, [part.network for part in parts], numbers, folds)
    return AnyOrderModel(encoding, network, heads, protocol).eval(), scores


def _even_shares(models: Sequence[AnyOrderModel]) -> Float[np.ndarray, "models variables"]:
    """An equal share for every model of a member, but none where time did not allow it to learn of a variable."""
    counted = np.array([model.network.learned for model in models], dtype=np.float64)
    counted[0] = np.where(counted.any(axis=0), counted[0], 1.0)  # a variable without any: its marginal answers once
    shares: Float[np.ndarray, "models variables"] = counted / counted.sum(axis=0)
    return shares


def _asked(
    held_out: Rows, partners: Sequence[int], seed: int, sets: int
) -> tuple[Rows, Bool[Tensor, "questions variables"], Float[Tensor, "questions variables"]]:
    """Rows to ask about, one of several ``sets``; which of their cells are known, and how much each asked one counts.

    Every question counts once in all.
    """
    most = max(len(held_out), min(QUESTIONS, QUESTION_CELLS // held_out.values.shape[1]) // sets)
    index = torch.arange(len(held_out)).repeat(-(-most // len(held_out)))[:most]
    observed = held_out.observed.repeat(-(-most // len(held_out)), 1)[:most]
    generator = np.random.default_rng([seed, 7])
    chosen = torch.as_tensor(random_subsets(len(observed), observed.shape[1], generator))
    asked = (observed & allowed_targets(chosen, partners)).double()
    weight = asked / asked.sum(dim=1, keepdim=True).clamp(min=1)
    return held_out.take(index), recorded(chosen, observed, partners), weight


def _joined(sets: Sequence[Rows]) -> Rows:
    return Rows(*(torch.cat([getattr(rows, name) for rows in sets]) for name in ("values", "observed", "log_det")))


@torch.no_grad()
def _log_probs(
    model: AnyOrderModel, values: Tensor, known: Bool[Tensor, "questions variables"]
) -> Float[np.ndarray, "questions variables"]:
    parts = [
        model.log_prob_beside(values[part], known[part]).double() for part in torch.arange(len(values)).split(1000)
    ]
    nats: Float[np.ndarray, "questions variables"] = torch.cat(parts).clamp(min=FLOOR).numpy()
    return nats


def _weights(
    log_probs: Float[np.ndarray, "members questions variables"],
    weight: Float[np.ndarray, "questions variables"],
    rows: int,
) -> Float[np.ndarray, "members variables"]:
    """The members' weights for every variable; a variable with few held-out cells follows all variables together."""
    members, questions, variables = log_probs.shape
    even = np.full(members, 1 / members)
    # Many questions about one row are worth little more than one: cells count so that rows are what is counted.
    scale = rows / questions
    flat = log_probs.reshape(members, -1)
    common = blend_weights(flat, even, PRIOR_ROWS, counts=weight.reshape(-1) * scale)
    own = [
        blend_weights(log_probs[:, :, variable], common, PRIOR_ROWS, counts=weight[:, variable] * scale * variables)
        for variable in range(variables)
    ]
    return np.stack(own, axis=1)


def _mixture(log_probs: np.ndarray, weights: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        mixed: np.ndarray = np.logaddexp.reduce(log_probs + np.log(weights)[:, None, :], axis=0)
    return mixed


def _mean(nats: np.ndarray, weight: Tensor) -> float:
    counted = weight.numpy()
    return float((nats * counted).sum() / max(counted.sum(), 1e-12))
