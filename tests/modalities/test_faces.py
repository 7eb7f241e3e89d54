"""One contract, three faces: whatever a model is a model of, it is saved, seeded, refused and asked alike."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.datasets import load_digits

import anyorder as ao
from anyorder.modalities.face import FittedModel
from anyorder.model.few_steps import Budget

from texts import CORPUS

THREADS, QUESTIONS = 8, 60
BRIEF = {"minutes": None, "steps": 8, "threads": 1, "validation_queries": 8}


@dataclass(frozen=True)
class Face:
    """A modality: how to fit it with a seed, and questions to it, each with a seed of its own."""

    cls: type[FittedModel]
    fit: Callable[..., Any]
    questions: tuple[Callable[[Any, int], Any], ...]
    refusals: tuple[tuple[Callable[[Any], Any], str], ...]
    seeded: tuple[Callable[[Any, Any], Any], ...]  # every door that takes a seed


def frame(rows: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 3, rows)
    return pd.DataFrame(
        {
            "x": np.round(rng.normal(kind, 0.5), 3),
            "count": rng.poisson(4 + kind),
            "kind": np.array(["a", "b", "c"])[kind],
            "rain": np.where(rng.random(rows) < 0.5, 0.0, np.round(rng.random(rows), 4)),
        }
    )


TABLE = frame()


def fit_table(seed: int = 0, **more: Any) -> ao.TableModel:
    config = {"training": BRIEF, "trees": {"members": 1, "rounds": 5}, "network": {"name": "residual_mlp", "width": 16}}
    return ao.fit(TABLE, seed=seed, config={**config, "folds": 2}, **more)  # every further fold is one more to ask


def fit_text(seed: int = 0, **more: Any) -> ao.TextModel:
    return ao.fit_text(CORPUS, length=16, preset="tiny", config={"training": BRIEF}, seed=seed, **more)


DIGITS = np.asarray(load_digits().images[:40] // 4, dtype=np.uint8)


def fit_pictures(seed: int = 0, **more: Any) -> ao.ImageModel:
    config = {"training": BRIEF, "network": {"name": "unet", "channels": 8, "blocks": 1, "dropout": 0.1}}
    return ao.fit_images(DIGITS, preset="tiny", config=config, seed=seed, **more)


NO_SEEDS = (1.5, True, "0", -1, 2**63, 2**64)
LAST_SEED = 2**63 - 1
HALF = np.arange(64).reshape(8, 8) % 8 < 4
MOST = np.arange(64).reshape(8, 8) % 11 > 0  # six pixels are left to ask for

FACES = {
    "table": Face(
        ao.TableModel,
        fit_table,
        (
            lambda m, s: m.given(count=4).sample(2, seed=s),
            lambda m, s: m.log_prob(TABLE.head(2), orders=2, seed=s),
            lambda m, s: m.fill(TABLE.head(2).assign(x=None), draws=1, seed=s)[0],
            lambda m, s: m.given(kind="b")["x"].quantile([0.1, 0.9]),
            lambda m, s: float(m.given(x="0..1").using(draws=16, seed=s)["count"].mean()),
        ),
        (
            (lambda m: m.given(nothing=1), "did you mean|valid names"),
            (lambda m: m.sample(-1), "n must be"),
            (lambda m: m.sample(2.5), "n must be a whole number"),
            (lambda m: m.sample(True), "n must be a whole number"),
            (lambda m: m["x"].sample(2.5), "n must be a whole number"),
            (lambda m: m.given(x="0..1")["count"].sample(2.5), "n must be a whole number"),
            (lambda m: m.given(x="0..1").ranged_rows(2.5), "n must be a whole number"),
            (lambda m: m.given(x="0..1").using(draws=2.5), "draws must be a whole number"),
            (lambda m: m.given(x="0..1").using(draws=1), "draws must be"),
            (lambda m: m.next_question(None, "x", draws=2.5), "draws must be a whole number"),
            (lambda m: m.fill(TABLE.head(2).assign(x=None), draws=True), "draws must be a whole number"),
            (lambda m: m.calibration(TABLE, repeats=1.5), "repeats must be a whole number"),
            (lambda m: m.log_prob(TABLE.head(2), orders=0), "orders must be"),
            (lambda m: m.log_prob(TABLE.head(2), seed=-1), "seed must be"),
            (lambda m: m.fill(TABLE.head(2), draws=0), "draws must be"),
        ),
        (
            lambda m, s: m.sample(2, seed=s),
            lambda m, s: m.given(x="0..1").sample(2, seed=s),
            lambda m, s: m["x"].sample(2, seed=s),
            lambda m, s: m.given(x="0..1")["count"].sample(2, seed=s),
            lambda m, s: m.given(x="0..1").log_prob(count=4, seed=s),
            lambda m, s: m.given().order_spread(count=4, x=0.5, orders=2, seed=s),
            lambda m, s: m.prob("count > 3, rain > 0.5", draws=8, seed=s),
            lambda m, s: m.ask("P(count > 3, x > 1 | rain > 0.2)", draws=8, seed=s),
            lambda m, s: m.mutual_information("x", "kind", draws=8, seed=s),
            lambda m, s: m.next_question(None, "x", draws=8, seed=s),
            lambda m, s: m.fill(TABLE.head(2).assign(x=None), draws=2, seed=s),
            lambda m, s: m.calibration(TABLE.head(8), seed=s),
            lambda m, s: m.conformal(TABLE.head(8), seed=s),
            lambda m, s: m.coherence(TABLE.head(8), seed=s),
        ),
    ),
    "text": Face(
        ao.TextModel,
        fit_text,
        (
            lambda m, s: m.sample(2, length=8, seed=s),
            lambda m, s: m.log_prob(["the fox", "dog"], orders=2, seed=s),
            lambda m, s: [one.text for one in m.fill("t_e f_x", draws=2, seed=s)],
            lambda m, s: m.sample(1, length=8, drafts=3, seed=s),
            lambda m, s: m.sample(1, length=8, calls=3, seed=s),
        ),
        (
            (lambda m: m.sample(0), "n must be"),
            (lambda m: m.log_prob(["fox"], orders=0), "orders must be"),
            (lambda m: m.log_prob(["fox"], seed=-1), "seed must be"),
            (lambda m: m.fill("f_x", draws=0), "draws must be"),
            (lambda m: m.sample(1, calls=0), "calls must be"),
            (lambda m: m.sample(1, order="best"), "unknown order"),
            (lambda m: m.sample(1, drafts=2.5), "drafts must be a whole number"),
            (lambda m: m.sample(1, drafts="4"), "drafts must be a whole number"),
            (lambda m: m.sample(1, length=2.5), "length must be a whole number"),
            (lambda m: m.budget(CORPUS, 4, most=0), "most must be"),
            (lambda m: m.scores(CORPUS, most=0), "most must be"),
            (lambda m: m.bits_per_character(CORPUS, most=0), "most must be"),
            (lambda m: m.compress("the fox", calls=0), "calls must be"),
            (lambda m: m.compress("the fox", calls=Budget((0, 2), 5, 0.0)), "measured for another model"),
        ),
        (
            lambda m, s: m.sample(1, length=8, seed=s),
            lambda m, s: m.fill("t_e f_x", draws=2, seed=s),
            lambda m, s: m.scores(CORPUS, most=2, seed=s),
            lambda m, s: m.bits_per_character(CORPUS, most=2, orders=2, seed=s),
            lambda m, s: m.budget(CORPUS, 4, most=2, seed=s),
        ),
    ),
    "images": Face(
        ao.ImageModel,
        fit_pictures,
        (
            lambda m, s: m.fill(DIGITS[0], HALF, steps=2, seed=s),
            lambda m, s: m.fill(DIGITS[0], HALF, steps=2, seed=s, mode=m.modes[s % len(m.modes)]),
            lambda m, s: m.log_prob(DIGITS[:1], known=MOST, orders=2, seed=s, mode=m.modes[s % len(m.modes)]),
            lambda m, s: m.log_prob(DIGITS[:1], known=MOST, seed=s),
            lambda m, s: m.sample(1, steps=2, seed=s, order="confidence"),
        ),
        (
            (lambda m: m.sample(0), "draws must be|n must be"),
            (lambda m: m.log_prob(DIGITS[:1], orders=0), "orders must be"),
            (lambda m: m.log_prob(DIGITS[:1], seed=-1), "seed must be"),
            (lambda m: m.sample(1, steps=0), "^steps must be"),
            (lambda m: m.trace(DIGITS[0], HALF, steps=0), "^steps must be"),
            (lambda m: m.budget(DIGITS[:4], 4, points=0), "points must be"),
            (lambda m: m.budget(DIGITS[:4], 4, points=1), "points must be"),
            (lambda m: m.sample(1, order="best"), "unknown order"),
            (lambda m: m.sample(1, mode="sideways"), "unknown masking mode"),
            (lambda m: m.compress(DIGITS), "cannot compress"),
        ),
        (
            lambda m, s: m.sample(1, steps=2, seed=s),
            lambda m, s: m.trace(DIGITS[0], HALF, steps=2, seed=s),
            lambda m, s: m.budget(DIGITS[:4], 4, points=3, seed=s),
        ),
    ),
}


def fit_text_in_random_order(seed: int = 0, **more: Any) -> ao.TextModel:
    network = {"name": "bidirectional_transformer"}
    config = {"training": BRIEF, "network": network, "protocol": {"name": "random"}}
    return ao.fit_text(CORPUS, length=16, preset="tiny", engine="neural", config=config, seed=seed, **more)


COLOUR = np.stack([DIGITS[:, 1:5, 1:5]] * 3, axis=-1) * 16


def fit_colour(seed: int = 0, **more: Any) -> ao.ImageModel:
    network = {"name": "unet", "channels": 8, "blocks": 1, "levels": 1}
    config = {"training": BRIEF, "network": network, "components": 2}
    return ao.fit_images(COLOUR, levels=256, preset="tiny", config=config, seed=seed, **more)


FACES["text in random order"] = replace(
    FACES["text"],
    fit=fit_text_in_random_order,
    questions=(*FACES["text"].questions, lambda m, s: m.scores("the quick brown fox", seed=s).joint),
)
FACES["colour"] = Face(
    ao.ImageModel,
    fit_colour,
    (
        lambda m, s: m.fill(COLOUR[0], HALF[:4, :4] ^ (s % 2 == 0), steps=2, seed=s),
        lambda m, s: m.log_prob(COLOUR[:1], seed=s, mode=m.modes[s % len(m.modes)]),
        lambda m, s: m.sample(1, steps=2, seed=s),
    ),
    ((lambda m: m.sample(1, order="confidence"), "grey pictures"),),
    (lambda m, s: m.sample(1, steps=2, seed=s), lambda m, s: m.log_prob(COLOUR[:1], orders=2, seed=s)),
)


@pytest.fixture(scope="module", params=FACES)
def face(request: pytest.FixtureRequest) -> Face:
    return FACES[request.param]


@pytest.fixture(scope="module")
def model(face: Face) -> Any:
    return face.fit()


def plain(answer: Any) -> Any:
    """An answer as something that ``==`` compares to the last bit."""
    if isinstance(answer, pd.DataFrame | pd.Series):
        return answer.to_json(double_precision=15)
    if isinstance(answer, np.ndarray):
        return answer.tobytes()
    return repr(answer)


def asked(face: Face, model: Any, number: int) -> Any:
    return plain(face.questions[number % len(face.questions)](model, number))


def test_the_card_says_what_it_is(face: Face, model: Any) -> None:
    assert isinstance(model, face.cls)
    assert model.card["modality"] == face.cls.modality
    assert {"created", "versions", "data", "arguments", "config", "training", "scores"} <= set(model.card)
    assert {"steps", "best_step", "interrupted", "seconds", "parameters"} <= set(model.card["training"])
    assert model.card["arguments"]["seed"] == 0


def test_saved_and_loaded_it_answers_bit_for_bit(face: Face, model: Any, tmp_path: Path) -> None:
    model.save(tmp_path / "one.anyorder")
    again = ao.load(tmp_path / "one.anyorder")
    assert type(again) is face.cls
    assert again.card == model.card
    for number in range(len(face.questions)):
        assert asked(face, again, number) == asked(face, model, number)


def test_it_travels_as_bytes_of_a_file(face: Face, model: Any) -> None:
    state = model.__getstate__()
    assert isinstance(state, bytes)
    assert b"sha256" in state
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert asked(face, again, 0) == asked(face, model, 0)
    with pytest.raises(ao.UserError, match=r"damaged|not one of"):
        face.cls.__new__(face.cls).__setstate__(state[: len(state) // 2])


def test_seeds_decide(face: Face, model: Any) -> None:
    for question in face.questions:
        assert plain(question(model, 5)) == plain(question(model, 5))
    drawn = {plain(face.questions[0](model, seed)) for seed in range(6)}
    assert len(drawn) > 1


def test_another_seed_fits_another_model(face: Face, model: Any) -> None:
    same, other = face.fit(seed=0), face.fit(seed=1)
    assert asked(face, same, 0) == asked(face, model, 0)
    every = range(len(face.questions))
    assert [asked(face, other, number) for number in every] != [asked(face, model, number) for number in every]


def test_every_seed_is_checked_by_one_rule(face: Face, model: Any) -> None:
    for question in face.seeded:
        for wrong in NO_SEEDS:
            with pytest.raises(ao.UserError, match=r"seed must be a whole number, 0 or more, got "):
                question(model, wrong)
        assert plain(question(model, np.int64(3))) == plain(question(model, 3))
        question(model, LAST_SEED)


def test_a_fit_takes_the_seeds_that_questions_take(face: Face, model: Any) -> None:
    for wrong in NO_SEEDS:
        with pytest.raises(ao.UserError, match=r"seed must be a whole number, 0 or more, got "):
            face.fit(seed=wrong)
    again = face.fit(seed=np.int64(0))
    assert type(again.card["arguments"]["seed"]) is int
    assert asked(face, again, 0) == asked(face, model, 0)
    assert face.fit(seed=LAST_SEED).card["arguments"]["seed"] == LAST_SEED


def test_mistakes_are_refused_by_name(face: Face, model: Any) -> None:
    for mistake, words in face.refusals:
        with pytest.raises(ao.UserError, match=words):
            mistake(model)


def test_many_threads_get_the_answers_of_one(face: Face, model: Any) -> None:
    before = {name: tensor.clone() for name, tensor in model.core.state_dict().items()}
    alone = [asked(face, model, number) for number in range(QUESTIONS)]
    with ThreadPoolExecutor(THREADS) as pool:
        jobs = [[pool.submit(asked, face, model, number) for number in range(QUESTIONS)] for _ in range(THREADS)]
        for answers in jobs:
            assert [job.result() for job in answers] == alone
    assert [asked(face, model, number) for number in range(len(face.questions))] == alone[: len(face.questions)]
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.core.state_dict().items())
