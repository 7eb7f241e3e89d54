"""Blends that have a power of their mixture: normalised, the mixture without evidence, and drawn by their law."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from anyorder.heads.blend import Blend
from anyorder.model import AnyOrderModel, layout_of
from anyorder.model.leave_out import leave_out
from anyorder.networks.blend import BlendNetwork, gate_count
from anyorder.query import Query

from peaked_models import DRAWS, N, exact, follows, peaked, query

SHARPNESS = (0.9, 0.0, -0.7, 0.0, 1.2)  # of each variable


def blended(sharpness: tuple[float, ...] = SHARPNESS) -> AnyOrderModel:
    parts = [peaked("mask", shift=number) for number in range(2)]
    width = parts[0].network.layout.width
    heads = [
        Blend(tuple(part.heads.of(v) for part in parts), (0.4, 0.6), (0, width), (2 * width, 2 * width + 1), own, share)
        for v, own in enumerate(sharpness)
        for share in [2 * width + 2 if own else 0]
    ]
    slopes = torch.zeros(N, 3, gate_count(N), dtype=torch.float64)
    slopes[:, 0, 0], slopes[:, 1, 3], slopes[:, 2, 0] = 0.8, -1.1, 1.0
    networks = [part.network for part in parts]
    network = BlendNetwork.of(layout_of(parts[0].schema, heads), networks, (0, 1), 2, slopes)
    return AnyOrderModel(parts[0].encoding, network, heads, parts[0].protocol).eval()


@pytest.mark.parametrize(("evidence", "asked"), [({}, [0, 1, 2, 3, 4]), ({1: 2}, [0, 2, 4]), ({0: 1, 3: 0}, [2, 4])])
def test_draws_follow_the_probabilities(evidence: dict[int, int], asked: list[int]) -> None:
    model = blended()
    probs = exact(model, evidence, asked)
    assert probs.sum() == pytest.approx(1.0, abs=1e-6)
    values, questions = query(evidence, asked, DRAWS)
    with torch.no_grad():
        drawn = model.draw(values, model.chain(questions), torch.Generator().manual_seed(0)).numpy()
    assert follows(drawn, asked, probs)
    # The mixture that is not sharpened is another law, and such draws would be noticed.
    assert not follows(drawn, asked, exact(blended((0.0,) * N), evidence, asked))


def test_draws_follow_the_probabilities_where_rows_know_different_things() -> None:
    model = blended()
    asked, halves = [0, 2, 4], ({1: 2}, {1: 2, 3: 0})
    parts = [query(evidence, asked, DRAWS) for evidence in halves]
    values = torch.cat([part for part, _ in parts])
    questions = Query(*(torch.cat([getattr(part, name) for _, part in parts]) for name in ("evidence", "asked")))
    with torch.no_grad():
        drawn = model.draw(values, model.chain(questions), torch.Generator().manual_seed(0)).numpy()
    for evidence, own in zip(halves, (drawn[:DRAWS], drawn[DRAWS:]), strict=True):
        assert follows(own, asked, exact(model, evidence, asked))


def test_power_of_the_mixture_by_hand() -> None:
    sharp, plain = blended(), blended((0.0,) * N)
    values, questions = query({0: 1, 1: 2, 3: 0}, [2, 4], 1)
    known, codes = questions.evidence, torch.arange(3.0)[:, None]
    for variable in (2, 4):
        said = [
            one.heads.distribution(one.features_beside(values, known)[:, variable], variable) for one in (sharp, plain)
        ]
        mass = said[1].log_prob(codes).exp() ** np.exp(SHARPNESS[variable] * 3 / 4)
        torch.testing.assert_close(said[0].log_prob(codes).exp(), mass / mass.sum(), rtol=0, atol=1e-5)


def test_without_evidence_it_is_the_mixture() -> None:
    values, questions = query({}, [0], 1)
    nothing = questions.evidence
    found = [one.log_prob_beside(values, nothing) for one in (blended(), blended((0.0,) * N))]
    torch.testing.assert_close(found[0], found[1], rtol=0, atol=1e-6)


def test_a_view_without_a_fold_is_as_sharp() -> None:
    model = blended()
    view = leave_out(model, 1)
    values, questions = query({0: 1, 1: 2, 2: 1, 3: 0}, [4], 1)
    known, codes = questions.evidence, torch.arange(3.0)[:, None]
    alone = peaked("mask", shift=1)
    mass = alone.heads.distribution(alone.features_beside(values, known)[:, 4], 4).log_prob(codes).exp()
    mass = mass ** np.exp(SHARPNESS[4])
    found = view.heads.distribution(view.features_beside(values, known)[:, 4], 4).log_prob(codes).exp()
    torch.testing.assert_close(found, mass / mass.sum(), rtol=0, atol=1e-5)
