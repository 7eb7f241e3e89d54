"""Scores of texts: the three kinds of question against the model's own log-probabilities."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from anyorder.errors import UserError
from anyorder.masking import Cardinality
from anyorder.modalities.texts.model import TextModel
from anyorder.modalities.texts.scores import score_text
from anyorder.protocols import Random

from untrained_texts import untrained


def test_scores_are_the_bits_of_the_questions() -> None:
    model = untrained(length=4)
    text = "ab b a bba ab aaba b"  # five windows
    found = score_text(model, text, seed=3)
    parts = [text[start : start + 4] for start in range(0, 20, 4)]
    assert (found.windows, found.length) == (5, 4)
    assert found.joint == pytest.approx(-model.log_prob(parts).sum() / np.log(2) / 20)
    # The same questions, drawn by the same seed, each put together by hand from single answers.
    generator = torch.Generator().manual_seed(3)
    asked = Cardinality().draw(5, 4, generator).asked.numpy()
    bits = 0.0
    for part, mask in zip(parts, asked, strict=True):
        bits += -_marginal(model, part, mask) / np.log(2)
    assert found.marginal == pytest.approx(bits / asked.sum(), rel=1e-5)
    assert found.marginal_per_length == pytest.approx(bits / 20, rel=1e-5)
    hole = (torch.rand(5, 4, generator=generator) < 0.3).numpy()
    hole[np.arange(5), torch.randint(4, (5,), generator=generator).numpy()] |= ~hole.any(axis=1)
    nats = model.log_prob(parts, given=~hole)
    assert found.conditional == pytest.approx(-nats.sum() / np.log(2) / hole.sum(), rel=1e-5)
    # The error of a ratio whose denominators are all alike is that of a mean.
    assert found.errors is not None
    each = -model.log_prob(parts) / np.log(2) / 4
    assert found.errors["joint"] == pytest.approx(each.std(ddof=1) / np.sqrt(5))


def _marginal(model: TextModel, part: str, mask: np.ndarray) -> float:
    """log p of some characters of a window by the chain rule: one question after the other."""
    values = torch.from_numpy(model.alphabet.check(part)).float()[None]
    known = torch.zeros(1, len(part), dtype=torch.bool)
    total = 0.0
    with torch.no_grad():
        for place in np.flatnonzero(mask):
            total += float(model.core.log_prob_beside(values, known)[0, place])
            known[0, place] = True
    return total


def test_a_short_text_is_one_window() -> None:
    model = untrained(length=8)
    found = score_text(model, "ab a")
    assert (found.windows, found.length, found.errors) == (1, 4, None)
    assert found.joint == pytest.approx(-model.log_prob(["ab a"])[0] / np.log(2) / 4)


def test_mistakes_are_named() -> None:
    model = untrained()
    with pytest.raises(UserError, match="no text"):
        score_text(model, "")
    with pytest.raises(UserError, match="between 0 and 1"):
        score_text(model, "ab a", holes=1.0)


def test_orders_of_scores_follow_the_seed() -> None:
    model = untrained(length=4, name="bidirectional_transformer")
    model.core.protocol = Random()
    text = "ab b a bba ab aaba b"
    found = {seed: score_text(model, text, seed=seed).joint for seed in range(4)}
    assert len(set(found.values())) > 1
    assert found[2] == score_text(model, text, seed=2).joint
    several = score_text(model, text, orders=3, seed=2).joint
    assert several == pytest.approx(model.bits_per_character(text, orders=3, seed=2))
    assert several != found[2]
