"""Texts: a model of them against enumeration, filled, resumed, and clear about mistakes."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import anyorder as ao
from anyorder.errors import UserError
from anyorder.modalities.texts.model import Filling, TextModel, _windows
from anyorder.model import AnyOrderModel
from anyorder.model.likelihood import order_protocols
from anyorder.protocols import Random
from anyorder.query import Chain
from anyorder.training.loop import Trainer

from texts import CORPUS, QUICK
from untrained_texts import untrained


@pytest.fixture(scope="module")
def fitted() -> TextModel:
    return ao.fit_text(CORPUS, length=24, preset="tiny", config=QUICK, seed=0)


@pytest.mark.parametrize("name", ["causal_transformer", "bidirectional_transformer"])
def test_probabilities_of_all_texts_add_up(name: str) -> None:
    model = untrained(name=name)
    texts = ["".join(text) for text in itertools.product("ab ", repeat=3)]
    nats = model.log_prob(texts)
    assert np.exp(nats).sum() == pytest.approx(1.0, abs=1e-5)
    # In ascending order a shorter text is exactly the marginal of the longer ones.
    short = np.exp(model.log_prob(["".join(text) for text in itertools.product("ab ", repeat=2)]))
    np.testing.assert_allclose(np.exp(nats).reshape(9, 3).sum(axis=1), short, atol=1e-6)
    # The middle given its neighbours is normalised as well.
    given_ = np.array([[True, False, True]] * 3)
    middle = model.log_prob(["aab", "abb", "a b"], given=given_)
    assert np.exp(middle).sum() == pytest.approx(1.0, abs=1e-5)


def test_bits_are_those_of_the_windows() -> None:
    model = untrained()
    text = "ab a bba a"  # three windows and a rest
    nats = model.log_prob([text[start : start + 3] for start in (0, 3, 6)])
    assert model.bits_per_character(text) == pytest.approx(-nats.sum() / 9 / np.log(2), rel=1e-6)


def test_fill_keeps_what_is_known_and_says_how_sure_it_is(fitted: TextModel) -> None:
    text = "the q__ck br_wn f_x"
    for filling in [fitted.fill(text), *fitted.fill(text, draws=3, seed=1)]:
        assert len(filling.text) == len(text)
        for before, after, sure in zip(text, filling.text, filling.confidence, strict=True):
            assert before in ("_", after)
            assert (sure == 1) if before != "_" else (0 < sure <= 1)
        assert filling.nats == pytest.approx(sum(np.log(filling.confidence)), abs=1e-5)
        marks = np.array([[character != "_" for character in text]])
        assert filling.nats == pytest.approx(float(fitted.log_prob([filling.text], given=marks)[0]), abs=1e-4)
    assert fitted.fill(text, draws=2, seed=1)[0] == fitted.fill(text, draws=2, seed=1)[0]
    assert fitted.fill("the fox") == Filling("the fox", (1.0,) * 7, 0.0, ())


def test_greedy_takes_the_most_probable_character() -> None:
    model = untrained(length=4)
    filled = model.fill("a_b")
    ways = [f"a{symbol}b" for symbol in "ab "]
    nats = model.log_prob(ways, given=np.array([[True, False, True]] * 3))
    assert filled.text == ways[int(nats.argmax())]


@pytest.mark.parametrize(("size", "length"), [(5, 8), (8, 8), (9, 8), (30, 8), (1000, 24)])
def test_every_hole_of_a_long_text_is_filled_once(size: int, length: int) -> None:
    generator = np.random.default_rng(size)
    known = torch.from_numpy(generator.random(size) < 0.5)
    start = known.clone()
    times = torch.zeros(size, dtype=torch.long)
    for window, asked in _windows(known, length):
        assert window.stop - window.start <= length
        times[window] += asked
        known[window] |= asked
    assert torch.equal(times, (~start).long())


def test_a_long_text_is_filled(fitted: TextModel) -> None:
    text = ("the qu_ck brown fox j_mps over the l_zy dog. " * 4)[:150]
    filled = fitted.fill(text)
    assert len(filled.text) == 150
    assert "_" not in filled.text
    assert all(before in ("_", after) for before, after in zip(text, filled.text, strict=True))


def test_the_file_gives_the_same_answers(fitted: TextModel, tmp_path: Path) -> None:
    fitted.save(tmp_path / "model.anyorder")
    again = ao.load(tmp_path / "model.anyorder")
    assert isinstance(again, TextModel)
    text = "the q__ck br_wn f_x"
    assert again.fill(text) == fitted.fill(text)
    assert again.fill(text, draws=2) == fitted.fill(text, draws=2)
    assert np.array_equal(again.log_prob(["the fox"]), fitted.log_prob(["the fox"]))
    assert again.sample(2, length=10, beginning="the", seed=3) == fitted.sample(2, length=10, beginning="the", seed=3)


def test_a_run_is_resumed_to_the_same_weights_and_only_on_its_own_corpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"length": 16, "preset": "tiny", "seed": 0}
    config = QUICK
    whole = ao.fit_text(CORPUS, config=config, checkpoint=tmp_path / "a", **options)
    # The same run, stopped after half of its steps as a kill would, and taken up again.
    stopped = Trainer.run
    monkeypatch.setattr(Trainer, "run", lambda self, **given: stopped(self, share=0.5, **given))
    half = ao.fit_text(CORPUS, config=config, checkpoint=tmp_path / "b", **options)
    monkeypatch.undo()
    assert half.card["training"]["steps"] == 3
    again = ao.fit_text(CORPUS, config=config, checkpoint=tmp_path / "b", resume=True, **options)
    assert again.card["training"]["steps"] == 6
    for one, other in zip(whole.core.parameters(), again.core.parameters(), strict=True):
        assert torch.equal(one, other)
    with pytest.raises(UserError, match="another run"):
        ao.fit_text(CORPUS + "!", config=config, checkpoint=tmp_path / "a", resume=True, **options)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"length": 5000}, "two windows"),
        ({"length": 2.5}, "length must be a whole number"),
        ({"length": "8"}, "length must be a whole number"),
        ({"length": 1}, "length must be"),
        ({"config": {"network": {"name": ["x"]}}}, "network: 'name' must be a text"),
        ({"config": {"masking": {"name": ["x"]}}}, "masking: 'name' must be a text"),
        ({"config": {"objective": {"name": "parallel", "masking": 3}}}, "has no option 'masking'"),
        ({"preset": "huge"}, "preset"),
        ({"config": {"netwrok": {}}}, "network"),
        ({"config": {"training": {"minuets": 1}}}, "minutes"),
        ({"unit": "words"}, "characters"),
        ({"seed": -1}, "seed"),
    ],
)
def test_mistakes_are_named(arguments: dict, words: str) -> None:
    with pytest.raises(UserError, match=words):
        ao.fit_text(CORPUS, **arguments)


def test_mistakes_in_questions_are_named(fitted: TextModel) -> None:
    with pytest.raises(UserError, match="one character"):
        fitted.fill("a__b", mark="__")
    with pytest.raises(UserError, match="alphabet"):
        fitted.fill("THE F_X")
    with pytest.raises(UserError, match="draws"):
        fitted.fill("a_b", draws=0)
    with pytest.raises(UserError, match="list of texts"):
        fitted.log_prob("the fox")
    with pytest.raises(UserError, match="length"):
        fitted.sample(1, length=25)


def test_fewer_calls(fitted: TextModel) -> None:
    exact = fitted.sample(3, length=12, beginning="the ", seed=1, drafts=4)
    grouped = fitted.sample(3, length=12, beginning="the ", seed=1, calls=3)
    budget = fitted.budget(CORPUS[:200], 6)
    whole = fitted.sample(2, seed=1, calls=budget)
    for text in (*exact, *grouped):
        assert len(text) == 12
        assert text.startswith("the ")
    assert all(len(text) == 24 for text in whole)
    assert budget.calls == 6
    # Six steps of training make no model whose every bit of context helps, so the cost may have either sign.
    assert np.isfinite(budget.nats)
    assert fitted.budget(CORPUS[:200], 24).nats == pytest.approx(0.0, abs=1e-9)
    with pytest.raises(UserError, match="one or the other"):
        fitted.sample(1, drafts=2, calls=2)


def watched(draw: Callable[..., Any], orders: list[list[list[int]]]) -> Callable[..., Any]:
    """The same, and it notes in which order it draws."""

    def noted(self: AnyOrderModel, values: torch.Tensor, chain: Chain, *more: Any, **options: Any) -> Any:
        orders.append(chain.order.tolist())
        return draw(self, values, chain, *more, **options)

    return noted


@pytest.mark.parametrize("name", ["causal_transformer", "bidirectional_transformer"])
def test_random_orders_follow_the_seed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = untrained(length=6, name=name, protocol=Random())
    orders: list[list[list[int]]] = []
    for name_of_draw in ("draw", "scored_draw"):
        monkeypatch.setattr(AnyOrderModel, name_of_draw, watched(getattr(AnyOrderModel, name_of_draw), orders))
    for ask in (
        lambda seed: model.sample(4, seed=seed),
        lambda seed: model.fill("a_b__a", draws=4, seed=seed),
        lambda seed: model.fill("______", seed=seed),
    ):
        orders.clear()
        answers = [ask(seed) for seed in (1, 1, 2)]
        assert answers[0] == answers[1]
        assert orders[0] == orders[1] != orders[2]
    assert model.sample(4, seed=1) != model.sample(4, seed=2)
    # A text is as probable as its order says: the seed decides the order, and nothing else does.
    nats = [model.log_prob(["ab a b", "bb a"], seed=seed) for seed in (1, 1, 2)]
    np.testing.assert_array_equal(nats[0], nats[1])
    assert (nats[0] != nats[2]).any()
    averaged = model.log_prob(["ab a b"], orders=3, seed=1)
    np.testing.assert_allclose(averaged, np.log(np.exp(log_probs_of(model, "ab a b", 3)).mean()), atol=1e-6)


def log_probs_of(model: TextModel, text: str, orders: int) -> np.ndarray:
    """log p of a text along each of the orders that the seed 1 draws, one model with that order at a time."""
    alone = []
    for protocol in order_protocols(model.core, orders, seed=1):
        core = AnyOrderModel(
            model.core.encoding, model.core.network, [model.core.heads.of(i) for i in range(6)], protocol
        )
        alone.append(float(TextModel(core.eval(), model.card).log_prob([text])[0]))
    return np.array(alone)
