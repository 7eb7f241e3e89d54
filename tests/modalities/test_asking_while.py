"""Many threads ask one model while others load it, save it, fit beside it or ask its cold caches first."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import anyorder as ao

THREADS = 8
MLP = {"name": "residual_mlp", "width": 16, "blocks": 1}
BRIEF = {"minutes": None, "steps": 3, "threads": 1, "validation_queries": 8}

QUESTIONS: tuple[Callable[[ao.TableModel], Any], ...] = (
    lambda m: float(m.given(rooms=5)["price"].mean()).hex(),
    lambda m: m.given(rooms=ao.Between(2, 6), river="yes").using(draws=16)["price"].quantile(0.5),
    lambda m: m.prob("price > 20, river=yes | rooms=3", draws=16),
    lambda m: m.ask("I(price; rooms)", draws=8),
    lambda m: m.ask("rooms={2, 3, 4, 7} | river=no"),
    lambda m: m.given(river="no")["rooms"].probs(),
    lambda m: m.sample(3, seed=2).to_csv(),
    lambda m: m.fill(frame().head(2).assign(price=None)).to_csv(),
    lambda m: m.log_prob(frame().head(3), orders=2).tolist(),
    lambda m: m.next_question({"rooms": 3}, about="price", draws=4).best,
    lambda m: m.anomalies(frame().head(5), top=2),
    lambda m: m.given(rooms=4).order_spread(price=20.0, river="yes", orders=3).log_probs,
)


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    rooms = rng.integers(1, 9, 40)
    river = np.where(rng.random(40) > 0.5, "yes", "no")
    return pd.DataFrame({"rooms": rooms, "river": river, "price": rooms * 5 + rng.normal(size=40)})


def asked(model: ao.TableModel, first: int = 0) -> dict[int, str]:
    """Answers to all questions, beginning with another one in each thread."""
    order = [(first + number) % len(QUESTIONS) for number in range(len(QUESTIONS))]
    return {number: repr(QUESTIONS[number](model)) for number in order}


def together(work: list[Callable[[], Any]]) -> list[Any]:
    """All of it at the same moment."""
    start = threading.Barrier(len(work))

    def begin(one: Callable[[], Any]) -> Any:
        start.wait()
        return one()

    with ThreadPoolExecutor(len(work)) as pool:
        return [job.result() for job in [pool.submit(begin, one) for one in work]]


@pytest.fixture(scope="module", params=["neural", "auto"])
def file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    config = {"training": BRIEF, "network": MLP, "trees": {"members": 1, "rounds": 3}}
    path = tmp_path_factory.mktemp("model") / f"{request.param}.anyorder"
    ao.fit(frame(), engine=request.param, config=config).save(path)
    return path


@pytest.fixture(scope="module")
def alone(file: Path) -> dict[int, str]:
    return asked(loaded(file))


def loaded(path: Path) -> ao.TableModel:
    model = ao.load(path)
    assert isinstance(model, ao.TableModel)
    return model


def test_whoever_comes_first_builds_what_is_kept(file: Path, alone: dict[int, str]) -> None:
    model = loaded(file)  # nothing has been asked of it yet: every cache is built in the crowd
    for answers in together([lambda first=first: asked(model, first) for first in range(THREADS)]):
        assert answers == alone


def test_loads_beside_questions(file: Path, alone: dict[int, str]) -> None:
    model = loaded(file)
    work = [lambda: asked(model), lambda: asked(loaded(file)), lambda: asked(loaded(file), 3), lambda: asked(model, 5)]
    for answers in together(work):
        assert answers == alone


def test_saves_beside_questions(file: Path, alone: dict[int, str], tmp_path: Path) -> None:
    model = loaded(file)

    def save(name: str) -> bytes:
        for _ in range(4):
            model.save(tmp_path / name)
        return (tmp_path / name).read_bytes()

    first, second, one, other = together(
        [lambda: asked(model), lambda: asked(model, 4), lambda: save("one"), lambda: save("same")]
    )
    assert first == second == alone
    assert one == other == file.read_bytes()


def test_fits_beside_questions(file: Path, alone: dict[int, str]) -> None:
    model = loaded(file)
    config = {"training": BRIEF, "network": MLP}
    answers, fitted = together([lambda: asked(model), lambda: ao.fit(frame(), engine="neural", config=config)])
    assert answers == alone
    assert asked(fitted) == asked(ao.fit(frame(), engine="neural", config=config))
