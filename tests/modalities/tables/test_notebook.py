"""What a notebook shows: HTML that is well formed and escaped, and lines without the names of types."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

import anyorder as ao
from anyorder.modalities.tables.shown import MOST_COLUMNS
from anyorder.support import bars
from anyorder.tasks.acquisition.interview import Interview, Setup

from written_tables import QUICK, written_table

NOISE = re.compile(r"np\.|numpy|array\(|Timestamp|tensor\(|<class|object at 0x|Estimate\(|dtype")


@pytest.fixture(scope="module")
def model() -> ao.TableModel:
    frame = written_table().rename(columns={"river": "<river & co>"})
    return ao.fit(frame, engine="neural", config=QUICK, seed=0)


@pytest.fixture(scope="module")
def rows(model: ao.TableModel) -> pd.DataFrame:
    return model.sample(25, seed=1)


def shown(model: ao.TableModel, rows: pd.DataFrame) -> dict[str, Any]:
    known = model.given(rooms=6, price="$500.00", off=ao.Between(5, 20))
    some = model.given(rows[["rooms", "<river & co>"]])
    return {
        "model": model,
        "nothing known": model.given(),
        "known": known,
        "a row": model.given(rows.iloc[0]),
        **{f"answer {name}": model[name] for name in model.columns},
        "answer under a range": known.using(draws=8)["joined"],
        "rows": some,
        **{f"rows of {name}": some[name] for name in ("price", "joined", "off", "rain")},
        "rows of levels": model.given(rows[["rooms"]])["<river & co>"],
        "anomalies": model.anomalies(rows, top=5),
        "calibration": model.calibration(rows),
        "coherence": model.coherence(rows),
        "conformal": model.conformal(rows),
        "most probable": model.most_probable({"rooms": 6}),
        "exact": model.given(rooms=6).prob("rain > 2"),
        "estimate": known.using(draws=8).prob("rain > 2"),
        "next question": model.next_question({"rooms": 6}, about="price", draws=16),
        "stop": model.next_question({"rooms": 6}, about="price", draws=16, least=1e9),
        "pooled": ao.pool([1.0, 1.2, 0.9], [0.04, 0.05, 0.04], names=["<slope>"]),
    }


def test_everything_has_a_page_and_a_line(model: ao.TableModel, rows: pd.DataFrame) -> None:
    for what, thing in shown(model, rows).items():
        page = thing._repr_html_()
        text = " ".join(ElementTree.fromstring(f"<div>{page}</div>").itertext())
        assert not NOISE.search(text), f"{what}: {text}"
        assert not NOISE.search(repr(thing)), f"{what}: {thing!r}"
        assert "<river" not in page and "<slope" not in page, what
        assert len(repr(thing)) < 600, f"{what}: {thing!r}"


def test_the_model_names_its_columns_and_a_question(model: ao.TableModel) -> None:
    page = model._repr_html_()
    for said in ("A model of 6 columns, fitted to 120 rows", "an amount in $", "held-out score", "ask me:"):
        assert said in page
    question = re.search(r"<code>(.*?)</code>", page)
    assert question is not None
    assert isinstance(eval(question[1].replace("&#x27;", "'"), {"model": model}), ao.Answer)


def test_columns_are_names(model: ao.TableModel) -> None:
    assert model.columns == ["rooms", "price", "off", "joined", "<river & co>", "rain"]
    assert len(model.columns) == 6


def test_a_wide_model_is_shown_in_part() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"c{at}": rng.integers(0, 2, 40).astype(str) for at in range(MOST_COLUMNS + 5)})
    wide = ao.fit(frame, engine="neural", config={"training": {"steps": 2, "minutes": None, "threads": 1}}, seed=0)
    assert "and 5 columns more" in wide._repr_html_()
    assert repr(wide).count("c1") < 8 and "..." in repr(wide)


def test_smaller_results_have_lines_too(model: ao.TableModel) -> None:
    spread = model.given(rooms=6).order_spread(price=500.0, rain=0.0)
    assert repr(spread).startswith("OrderSpread(8 orders: log p ")
    particles = model.given(rooms=ao.Between(4, 6)).using(draws=8).particles()
    assert repr(particles) == "Particles(8 weighted draws of 1 variables)"
    session = Interview(model.core, Setup(about=("price",)))
    assert repr(session) == "Interview(about price: 0 turns so far)"
    ranked = model.next_question({"rooms": 6}, about="price", draws=16).candidates
    assert repr(ranked[0]).startswith(f"Candidate({ranked[0].name}: gain ") and not NOISE.search(repr(ranked))


def test_work_tells_how_far_it_is(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(bars, "FIRST_LINE", 0.0)
    monkeypatch.setattr(bars, "LAST_GAP", 0.0)
    frame = written_table()
    config = {"training": {"steps": 20, "minutes": None, "threads": 1, "validate_every": 5}, "trees": {"rounds": 3}}
    fitted = ao.fit(frame, config=config, seed=0, progress=True)
    said = capsys.readouterr().err
    for what in ("trying encodings", "boosting regressions: 1 of 6 columns", "growing trees", "training networks: "):
        assert what in said
    fitted.fill(frame.assign(price=None), draws=2, progress=True)
    assert "filling rows: 100%" in capsys.readouterr().err
    fitted.log_prob(frame, progress=True)
    assert "scoring rows: 100%" in capsys.readouterr().err
    fitted.log_prob(frame)
    assert capsys.readouterr().err == "", "nobody asked, and there is no terminal"
