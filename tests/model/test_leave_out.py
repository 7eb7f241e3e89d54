"""Views of a model without the parts that have seen a fold, against those parts asked by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from anyorder.errors import UserError
from anyorder.heads import Gaussian
from anyorder.heads.blend import Blend
from anyorder.model import AnyOrderModel, layout_of
from anyorder.model.leave_out import folds, leave_out
from anyorder.networks.blend import BlendNetwork
from anyorder.query import Query

from models import gaussian_model

FOLDS = (0, 1, 0, 1)  # two kinds of members, each with a part for two folds
WEIGHTS = (0.3, 0.3, 0.2, 0.2)
SLOPES = torch.tensor([[1.0, 0.3, -0.5, 0.4, 0.0], [-1.0, 0.7, 0.2, 0.1, 0.6]], dtype=torch.float64)


def model() -> tuple[AnyOrderModel, list[AnyOrderModel]]:
    parts = [gaussian_model(np.full(3, float(k)), np.eye(3) + 0.2 * k) for k in range(len(FOLDS))]
    width = 2 * len(FOLDS)
    heads = [
        Blend(tuple(Gaussian() for _ in FOLDS), WEIGHTS, (0, 2, 4, 6), (width, width, width + 1, width + 1))
        for _ in range(3)
    ]
    network = BlendNetwork.of(
        layout_of(parts[0].schema, heads),
        [part.network for part in parts],
        FOLDS,
        2,
        SLOPES.expand(3, -1, -1),
    )
    return AnyOrderModel(parts[0].encoding, network, heads, parts[0].protocol).eval(), parts


@pytest.mark.parametrize("fold", [0, 1])
def test_only_parts_that_have_not_seen_the_fold_answer(fold: int) -> None:
    whole, parts = model()
    view = leave_out(whole, fold)
    values = torch.tensor([[0.3, -1.0, 2.0], [1.0, 0.5, 0.0]], dtype=torch.float64)
    known = torch.tensor([[False, True, False], [False, False, False]])
    kept = [number for number, own in enumerate(FOLDS) if own == fold]
    each = torch.stack([parts[number].log_prob_beside(values, known) for number in kept])
    features = torch.tensor([[0.0, 0.5, -0.5, 0.5, -0.5], [-0.5, 1.0, -0.5, -0.5, -0.5]], dtype=torch.float64)
    log_weights = torch.tensor([WEIGHTS[number] for number in kept], dtype=torch.float64).log()
    shares = (log_weights + features @ SLOPES.T).log_softmax(1)
    expected = (each + shares.T[:, :, None]).logsumexp(0)
    found = view.log_prob_beside(values, known)
    torch.testing.assert_close(found[~known], expected[~known], rtol=0, atol=1e-6)
    assert view.network.get_buffer("parts.0.covariance").data_ptr() == parts[kept[0]].network.covariance.data_ptr()


def test_draws_of_the_view_follow_its_density() -> None:
    view = leave_out(model()[0], 1)
    nothing = torch.zeros(4000, 3, dtype=torch.bool)
    asked = nothing.clone()
    asked[:, 1] = True
    chain = view.chain(Query(nothing, asked))
    drawn = view.draw(torch.zeros(4000, 3, dtype=torch.float64), chain, torch.Generator().manual_seed(0))[:, 1]
    features = view.features_beside(torch.zeros(1, 3, dtype=torch.float64), nothing[:1])
    distribution = view.heads.distribution(features[:, 1], 1)
    levels = distribution.cdf(drawn)
    counts = torch.histc(levels.double(), 10, 0, 1)
    assert float(((counts - 400) ** 2 / 400).sum()) < 27.9  # chi-squared of nine degrees, one in a thousand


def test_folds_are_counted_and_others_refused() -> None:
    whole, parts = model()
    assert folds(whole) == 2 and folds(parts[0]) == 1
    for fold in (-1, 2):
        with pytest.raises(UserError, match="was fitted without fold"):
            leave_out(whole, fold)
    with pytest.raises(UserError, match="it has 1 fold"):
        leave_out(parts[0], 0)
