"""The engines of a text: counts alone, a network alone, and both; short corpora, budgets, interruptions, files."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import anyorder as ao
from anyorder.errors import UserError
from anyorder.modalities.texts.engines import mixing_seconds
from anyorder.networks.counted import Counted
from anyorder.networks.counts import Counts
from anyorder.support.interrupt import deferred_interrupt

CORPUS = "it was the best of times, it was the worst of times, it was the age of wisdom. " * 12
TRAINING = {"minutes": None, "steps": 6, "threads": 1, "batch": 8, "validation_queries": 12}


def fit(engine: str, corpus: str = CORPUS, *, length: int = 24, **more: Any) -> ao.TextModel:
    config = {"training": TRAINING, **more.pop("config", {})}
    return ao.fit_text(corpus, length=length, preset="tiny", engine=engine, config=config, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(("engine", "kind"), [("counts", Counts), ("auto", Counted)])
def test_an_engine_is_saved_and_loaded_bit_for_bit(engine: str, kind: type, tmp_path: Path) -> None:
    model = fit(engine)
    assert isinstance(model.core.network, kind)
    assert model.card["training"]["engine"] == engine
    model.save(tmp_path / "model.anyorder")
    again = ao.load(tmp_path / "model.anyorder")
    texts = ["it was the worst", "wisdom of"]
    np.testing.assert_array_equal(again.log_prob(texts), model.log_prob(texts))
    assert again.fill("it was the b__t of") == model.fill("it was the b__t of")
    assert again.sample(2, length=12, seed=1) == model.sample(2, length=12, seed=1)


def test_counts_fill_what_they_have_seen() -> None:
    filled = fit("counts").fill("it w_s t_e w__st of ti_es")
    assert filled.text == "it was the worst of times"
    assert math.exp(filled.nats) > 0.5


@pytest.mark.parametrize("windows", [2, 3, 5])
@pytest.mark.parametrize("engine", ["auto", "counts"])
def test_short_corpora_have_finite_scores(engine: str, windows: int) -> None:
    scores = fit(engine, CORPUS[: 24 * windows]).card["scores"]
    numbers = [scores["held_out"], *scores.get("engines", {}).values()]
    assert all(math.isfinite(number) for number in numbers)


def test_the_mixture_is_no_worse_than_either_where_it_is_judged() -> None:
    scores = fit("auto").card["scores"]["engines"]
    assert scores["together"] >= max(scores["network"], scores["counts"]) - 1e-9


def test_held_out_text_is_counted_in_the_end_unless_it_is_a_text_of_its_own() -> None:
    last = "quiz"  # only at the end of the corpus, where it is held out
    inside = fit("counts", CORPUS + last * 20)
    apart = fit("counts", CORPUS + "quz", validation=last * 20)
    assert inside.log_prob(["quiz"])[0] > apart.log_prob(["quiz"])[0] + 1


def test_with_a_budget_in_steps_the_same_seed_gives_the_same_model() -> None:
    assert mixing_seconds(None) is None
    one, other = (fit("auto", seed=3).core.state_dict() for _ in range(2))
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_an_interruption_after_training_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from anyorder.modalities.texts import engines

    learned = engines.learn_mixing
    asked = []

    def interrupted(*arguments: Any, **options: Any) -> dict[str, float]:
        with deferred_interrupt() as interrupt:
            interrupt.requested = True
        asked.append(options["stop"]())
        return learned(*arguments, **options)

    monkeypatch.setattr(engines, "learn_mixing", interrupted)
    model = fit("auto")
    assert asked == [True]
    assert math.isfinite(model.log_prob(["it was"])[0])


def test_wrong_choices_are_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="did you mean 'counts'"):
        fit("count")
    with pytest.raises(UserError, match="order"):
        fit("counts", config={"order": 0})
    with pytest.raises(UserError, match="leave out checkpoint"):
        fit("counts", checkpoint=tmp_path / "run")


def test_drafts_by_counts_alone_are_the_counts_own_law() -> None:
    model = fit("counts")
    texts = model.sample(40, length=20, drafts=3, seed=0)
    assert all(len(text) == 20 for text in texts)
    drawn, one_by_one = (float(np.mean(model.log_prob(part))) for part in (texts, model.sample(40, length=20, seed=1)))
    assert drawn == pytest.approx(one_by_one, abs=4)
