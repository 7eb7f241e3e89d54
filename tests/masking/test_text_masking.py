"""The maskings of texts against the laws that their docstrings state."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from anyorder.errors import UserError
from anyorder.masking import Bernoulli, Conditional, Mixture, Spans, Stretch, Suffix, Words

N, BATCH = 12, 40_000


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def test_a_suffix_is_asked_given_all_before_it() -> None:
    query = Suffix().draw(BATCH, N, seeded())
    assert bool((query.evidence ^ query.asked).all())
    assert bool((query.asked.int().diff(dim=1) >= 0).all())  # once asked, asked to the end
    sizes = torch.bincount(query.asked.sum(dim=1), minlength=N + 1) / BATCH
    assert sizes[0] == 0
    torch.testing.assert_close(sizes[1:], torch.full((N,), 1 / N), atol=0.01, rtol=0)


def test_spans_are_a_stationary_markov_chain() -> None:
    masking = Spans(length=4.0, share=0.3)
    asked = masking.draw(BATCH, N, seeded()).asked.double()
    torch.testing.assert_close(asked.mean(dim=0), torch.full((N,), 0.3).double(), atol=0.012, rtol=0)
    here, following = asked[:, :-1], asked[:, 1:]
    stays = float((here * following).sum() / here.sum())
    begins = float(((1 - here) * following).sum() / (1 - here).sum())
    assert stays == pytest.approx(1 - 1 / 4, abs=0.01)
    assert begins == pytest.approx(0.3 / 0.7 / 4, abs=0.01)
    # Markov: two steps back tell nothing more.
    before, now, after = asked[:, :-2], asked[:, 1:-1], asked[:, 2:]
    after_two = float((before * now * after).sum() / (before * now).sum())
    assert after_two == pytest.approx(stays, abs=0.012)


def test_spans_refuse_a_share_they_cannot_have() -> None:
    with pytest.raises(UserError, match="share"):
        Spans(length=1.0, share=0.6)  # single holes with at least one letter between them: half at most
    Spans(length=1.0, share=0.5)


def test_words_fall_as_a_whole() -> None:
    # "ab_c__def_gh", 0 standing for the gap.
    text = torch.tensor([1, 1, 0, 1, 0, 0, 1, 1, 1, 0, 1, 1]).double()
    words = [[0, 1], [3], [6, 7, 8], [10, 11]]
    query = Words((0,), share=0.4).draw_for(text.expand(BATCH, -1), seeded())
    assert not bool(query.asked[:, text == 0].any())
    assert bool((query.evidence ^ query.asked).all())
    for word in words:
        letters = query.asked[:, word]
        assert bool((letters == letters[:, :1]).all())
        assert float(letters[:, 0].double().mean()) == pytest.approx(0.4, abs=0.012)
    each = np.array([query.asked[:, word[0]].numpy() for word in words], dtype=float)
    np.testing.assert_allclose(np.corrcoef(each) - np.eye(4), 0, atol=0.02)  # each by itself


def test_words_cannot_be_drawn_without_a_text() -> None:
    with pytest.raises(UserError, match="depends on the text"):
        Words((0,)).draw(2, N, seeded())
    with pytest.raises(UserError, match="part words"):
        Words(())


@pytest.mark.parametrize("anchored", [True, False])
def test_a_stretch_has_a_uniform_size_and_place(anchored: bool) -> None:
    everything = Conditional(Bernoulli(0.5))
    query = Stretch(everything, least=4, anchored=anchored).draw(BATCH, N, seeded())
    inside = query.evidence | query.asked
    sizes = torch.bincount(inside.sum(dim=1), minlength=N + 1) / BATCH
    torch.testing.assert_close(sizes[4:], torch.full((N - 3,), 1 / (N - 3)), atol=0.012, rtol=0)
    assert float(sizes[:4].sum()) == 0
    starts = inside.int().argmax(dim=1)
    four = starts[inside.sum(dim=1) == 4]
    share = torch.bincount(four, minlength=N - 3) / len(four)
    expected = torch.zeros(N - 3)
    expected[0] = 1.0
    torch.testing.assert_close(share, expected if anchored else torch.full((N - 3,), 1 / (N - 3)), atol=0.03, rtol=0)
    assert bool((inside.int().diff(dim=1).abs().sum(dim=1) <= 2).all())  # one run of neighbours


def test_a_mixture_hands_the_text_on() -> None:
    text = torch.tensor([1, 1, 0, 1, 1, 0, 1, 1, 1, 0, 1, 1]).double().expand(2000, -1)
    mixture = Mixture((Words((0,), share=0.5), Suffix()), (1.0, 1.0))
    query = mixture.draw_for(text, seeded())
    gaps_asked = query.asked[:, text[0] == 0].any(dim=1).double().mean()
    # Only a suffix asks for a gap: half of the queries, and of these the ten that reach back to the last one at 9.
    assert float(gaps_asked) == pytest.approx(0.5 * 10 / 12, abs=0.04)
