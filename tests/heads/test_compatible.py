"""Limits on levels, against their definition and by enumeration."""

from __future__ import annotations

import pytest
import torch

from anyorder.errors import UserError
from anyorder.heads import Bernoulli, Categorical, Gaussian, Head, heads
from anyorder.heads.blend import Blend
from anyorder.heads.compatible import Compatible, limited
from anyorder.heads.ordinal import Ordinal
from anyorder.support.registry import describe
from anyorder.testing import check_head

BLEND = Blend((Categorical(4), Categorical(4)), (0.3, 0.7), (0, 4))


@pytest.mark.parametrize("base", [Categorical(4), Bernoulli(), Ordinal(5), BLEND], ids=lambda head: head.name)
def test_every_base_keeps_the_contract_of_a_head(base: Head) -> None:
    check_head(Compatible(base, base.size + 2))
    check_head(Compatible(base))


def test_levels_ruled_out_have_the_limit_together_and_keep_their_proportions() -> None:
    probs = torch.tensor([[0.1, 0.5, 0.3, 0.1], [0.97, 0.01, 0.01, 0.01]], dtype=torch.float64)
    limits = torch.tensor([[0.0, 1e-3, 1e-3, 0.0], [0.0, 0.05, 0.05, 0.05]], dtype=torch.float64)
    found = limited(probs.log(), limits.where(limits == 0, limits.log())).softmax(-1)
    torch.testing.assert_close(found[0, 1:3].sum(), torch.tensor(1e-3, dtype=torch.float64), rtol=1e-9, atol=0)
    torch.testing.assert_close(found[0, 1] / found[0, 2], torch.tensor(5 / 3, dtype=torch.float64))
    torch.testing.assert_close(found[0, 0] / found[0, 3], torch.tensor(1.0, dtype=torch.float64))
    # A mass that is below its limit is left alone.
    torch.testing.assert_close(found[1], probs[1])


def test_a_lower_limit_holds_inside_a_higher_one() -> None:
    probs = torch.tensor([0.01, 0.39, 0.4, 0.2], dtype=torch.float64)
    log_limits = torch.tensor([0.0, 0.02, 1e-6, 0.02], dtype=torch.float64)
    found = limited(probs.log(), log_limits.where(log_limits == 0, log_limits.log())).softmax(-1)
    assert found[2] <= 1e-6 * 1.03 and found[1:].sum() <= 0.02 * 1.001
    torch.testing.assert_close(found[1] / found[3], torch.tensor(1.95, dtype=torch.float64))


def test_where_all_levels_are_ruled_out_nothing_is_said() -> None:
    probs = torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64)
    found = limited(probs.log(), torch.full((3,), -9.0, dtype=torch.float64)).softmax(-1)
    torch.testing.assert_close(found, probs)


def test_draws_follow_the_probabilities() -> None:
    head = Compatible(Categorical(3), 3)
    features = torch.tensor([0.3, 1.0, -0.2, 0.0, -2.0, 0.0]).expand(40_000, -1)
    law = head(features)
    drawn = law.sample(torch.Generator().manual_seed(0)).long().bincount(minlength=3) / 40_000
    expected = law.log_prob(torch.arange(3.0)[:, None])[:, 0].exp()
    torch.testing.assert_close(drawn, expected, atol=0.01, rtol=0)
    assert abs(float(expected[1]) - torch.tensor(-2.0).exp()) < 1e-6


@pytest.mark.parametrize(
    ("base", "after"), [(Gaussian(), 4), (Categorical(4), 2), (Categorical(4), -1), (Categorical(4), 4.5)]
)
def test_limits_that_make_no_sense_are_refused(base: Head, after: int) -> None:
    with pytest.raises(UserError):
        Compatible(base, after)


def test_a_description_is_read_back() -> None:
    head = Compatible(BLEND, 8)
    assert describe(heads.build(describe(head))) == describe(head)
