"""The summary of tables whose relations are known: words, numbers, odd cells, and commands that run."""

from __future__ import annotations

import json
import math
import shlex
from typing import Any

import numpy as np
import pandas as pd
import pytest

import anyorder as ao
from anyorder.cli.show import as_json
from anyorder.modalities.tables import race
from anyorder.modalities.tables.folds import Folds
from anyorder.modalities.tables.model import TableModel
from anyorder.modalities.tables.summary import summary_of, unlearned
from anyorder.model.leave_out import folds, part_count
from anyorder.questions.ask import reply_to
from anyorder.questions.grammar import parse_question
from anyorder.tasks.summary import Summary
from anyorder.tasks.summary.dependence import like_correlation
from anyorder.tasks.summary.judged import JudgedCells, judge_cells
from anyorder.tasks.summary.making import taken
from anyorder.tasks.summary.predicted import HARDLY, predictions
from anyorder.tasks.summary.written import amount, level_text, percent, short
from anyorder.variables.notations.clock import ClockNotation
from anyorder.variables.notations.number import NumberNotation
from anyorder.variables.notations.period import PeriodNotation
from anyorder.variables.schema import Kind, Schema, Variable

BRIEF = {"training": {"steps": 20, "minutes": None}, "trees": {"rounds": 5, "shown": 1_000}}
CODES = {"red": "R", "green": "G", "blue": "B"}


def known_table(rows: int = 240) -> pd.DataFrame:
    """y = x + noise, one column of noise, one class that copies another, a coin; one cell of x is wrong."""
    rng = np.random.default_rng(0)
    x, colour = rng.normal(size=rows), rng.choice(list(CODES), rows)
    frame = pd.DataFrame(
        {
            "x": x,
            "y": [f"${1000 + 100 * value:,.2f}" for value in x + 0.3 * rng.normal(size=rows)],
            "noise": rng.normal(size=rows),
            "colour": colour,
            "code": [CODES[name] for name in colour],
            "coin": rng.choice(["heads", "tails"], rows),
        }
    )
    frame["x"] = np.where(np.arange(rows) == 17, -3.5 * np.sign(x), x)
    return frame


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return known_table()


@pytest.fixture(scope="module")
def model(frame: pd.DataFrame) -> TableModel:
    return ao.fit(frame, seed=0, config=BRIEF)


@pytest.fixture(scope="module")
def summary(model: TableModel, frame: pd.DataFrame) -> Summary:
    return summary_of(model, frame, model_file="my model.anyorder", table_file="rows.csv")


def test_words_and_numbers_of_predictions(summary: Summary) -> None:
    found = {one.column: one for one in summary.predicted}
    words = {name: one.word for name, one in found.items()}
    assert words == {
        "x": "well",
        "y": "well",
        "noise": HARDLY,
        "colour": "almost exactly",
        "code": "almost exactly",
        "coin": HARDLY,
    }
    # The mean distance of a normal from its median is sqrt(2 / pi) of its deviation.
    assert found["y"].error == pytest.approx(30 * math.sqrt(2 / math.pi), rel=0.25)
    assert found["y"].guess_error == pytest.approx(100 * math.sqrt(1.09 * 2 / math.pi), rel=0.15)
    assert found["y"].said.startswith("off by $")
    assert found["colour"].error == 0
    assert found["coin"].guess_error < 0.5
    assert summary.judged == summary.rows == 240


def test_information_of_pairs(summary: Summary) -> None:
    pairs = {frozenset((pair.one, pair.other)): pair for pair in summary.depends.pairs()}
    assert set(pairs) == {frozenset("xy"), frozenset(("colour", "code"))}
    assert pairs[frozenset("xy")].nats == pytest.approx(-0.5 * math.log(1 - 1 / 1.09), abs=0.3)
    assert pairs[frozenset(("colour", "code"))].nats == pytest.approx(math.log(3), abs=0.1)
    assert summary.depends.about("y") == ["x"]
    assert np.isnan(np.diag(summary.depends.nats)).all()
    np.testing.assert_array_equal(summary.depends.nats, summary.depends.nats.T)


def test_the_order_of_rows_does_not_matter(model: TableModel, frame: pd.DataFrame, summary: Summary) -> None:
    """Neighbours of a sorted table are alike, and are no other rows to compare with."""
    again = summary_of(model, frame.sort_values(["colour", "x"]))
    before = {(pair.one, pair.other): pair for pair in summary.depends.pairs()}
    after = {(pair.one, pair.other): pair for pair in again.depends.pairs()}
    assert set(before) == set(after)
    for pair, told in before.items():
        assert after[pair].nats == pytest.approx(told.nats, abs=0.02)


@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.99])
def test_a_correlation_tells_as_much_as_itself(correlation: float) -> None:
    assert like_correlation(-0.5 * math.log(1 - correlation**2)) == pytest.approx(correlation)


def test_the_wrong_cell_is_the_oddest(summary: Summary, frame: pd.DataFrame) -> None:
    first = summary.surprises[0]
    assert (first.row, first.column) in ((17, "x"), (17, "y"))
    assert str(first).startswith(f"row 17: {first.column} ")
    assert " to " in first.expected
    assert first.by_chance < 0.5
    assert len(summary.surprises) == 3


def test_commands_can_be_asked(summary: Summary, model: TableModel) -> None:
    assert len(summary.steps) == 3
    for step in summary.steps:
        program, command, name, *rest = shlex.split(step.command)
        assert (program, name) == ("anyorder", "my model.anyorder")
        if command == "ask":
            reply = reply_to(parse_question(rest[0]), model.schema, model.given, rest[0])
            assert reply.answers or reply.numbers
    assert {shlex.split(step.command)[1] for step in summary.steps} == {"ask", "next"}


def test_holes_are_to_be_filled(model: TableModel, frame: pd.DataFrame) -> None:
    holes = frame.copy()
    holes.loc[:4, "noise"] = np.nan
    found = summary_of(model, holes, model_file="m.anyorder", table_file="data.csv")
    assert "anyorder fill m.anyorder data.csv -o data_filled.csv" in [step.command for step in found.steps]
    assert any("(5 of them)" in step.tells for step in found.steps)


def test_it_is_shown_in_every_form(summary: Summary) -> None:
    text = str(summary)
    for part in ("How well", "colour", "almost exactly", "go together", "row 17: ", "anyorder ask 'my model"):
        assert part in text
    page = summary._repr_html_()
    for part in ("How well", "What is surprising", "Worth asking next", "<svg"):
        assert part in page
    read = json.loads(as_json(summary.to_json()))
    assert read["judged"] == 240
    assert {one["column"]: one["word"] for one in read["predicted"]}["noise"] == HARDLY


def captured(monkeypatch: pytest.MonkeyPatch) -> list[Folds]:
    """The folds by which a fit divides its rows."""
    found: list[Folds] = []
    divide = getattr(race, "divide")  # noqa: B009 (it is imported there)

    def noted(*given: Any) -> Folds:
        found.append(divide(*given))
        return found[-1]

    monkeypatch.setattr(race, "divide", noted)
    return found


def test_a_row_is_judged_by_parts_that_have_never_learned_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = known_table(120)
    divided = captured(monkeypatch)
    model = ao.fit(rows, seed=0, engine="trees", config=BRIEF)
    judges, why = unlearned(model, rows)
    assert why == "" and len(judges) == len(divided[0]) == folds(model.core)
    for fold, (part, held_out) in enumerate(judges):
        assert set(part.network.folds) == {fold}
        np.testing.assert_array_equal(held_out, divided[0].held_out[fold])
        assert not set(held_out.tolist()) & set(divided[0].training[fold].tolist())


def test_each_judge_speaks_of_its_own_rows_only(model: TableModel, frame: pd.DataFrame) -> None:
    """What one part says of a row of another must not reach the summary."""
    judges, _ = unlearned(model, frame)
    whole = judge_cells(model.core, frame, judges)
    for part, rows in judges:
        alone = judge_cells(model.core, frame, [(part, rows)])
        np.testing.assert_array_equal(np.flatnonzero(alone.judged.all(axis=1)), rows)
        np.testing.assert_array_equal(alone.nats[rows], whole.nats[rows])
        # As the model's own log-probabilities say, given all other cells of the row.
        others = pd.DataFrame(True, index=frame.index[rows], columns=frame.columns).assign(noise=False)
        nats = TableModel(part, model.card).log_prob(frame.iloc[rows], given=others)
        np.testing.assert_allclose(whole.nats[rows, 2], -nats, atol=1e-4)
    swapped = [(part, judges[number - 1][1]) for number, (part, _) in enumerate(judges)]
    assert not np.allclose(judge_cells(model.core, frame, swapped).nats, whole.nats)


def test_rows_that_were_dealt_out_judge_the_parts_that_left_them_out(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    colour = rng.choice(list(CODES), 200)
    rows = pd.DataFrame(
        {"colour": colour, "code": [CODES[name] for name in colour], "coin": rng.choice(["a", "b"], 200)}
    )
    divided = captured(monkeypatch)
    model = ao.fit(rows, seed=3, engine="neural", config={**BRIEF, "dependencies": False})
    assert folds(model.core) == 1  # the file does not tell, since copies of a row are in several folds
    judges, why = unlearned(model, rows)
    assert why == "" and len(judges) == part_count(model.core) == len(divided[0]) > 1
    inside = model.core.network.inside
    for fold, (part, held_out) in enumerate(judges):
        np.testing.assert_array_equal(held_out, divided[0].held_out[fold])
        assert not set(held_out.tolist()) & set(divided[0].training[fold].tolist())
        assert [id(network) for network in part.network.inside] == [id(inside[fold])]
    assert {one.column: one.word for one in summary_of(model, rows).predicted}["coin"] == HARDLY


def test_rows_held_back_once_judge_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = known_table(100)
    divided = captured(monkeypatch)
    model = ao.fit(rows, seed=5, engine="neural", config={**BRIEF, "folds": 1})
    ((part, held_out),), why = unlearned(model, rows)
    assert part is model.core and why == ""
    np.testing.assert_array_equal(held_out, divided[0].held_out[0])
    new = rows.assign(noise=rows["noise"] + 1)
    ((_, every),), _ = unlearned(model, new)
    assert len(every) == len(new)  # another table, none of whose rows is known


def test_where_every_row_was_learned_nothing_is_judged() -> None:
    rows = known_table(30).drop(columns="y")
    model = ao.fit(rows, seed=0, engine="trees", config=BRIEF)
    found = summary_of(model, rows)
    assert found.judged == 0
    assert "every row was used for training" in str(found)
    assert len(found.steps) == 3


def test_rows_are_drawn_from_all_judges(model: TableModel) -> None:
    judges = [(model.core, np.arange(10, 60)), (model.core, np.arange(100, 150))]
    some = taken(judges, 20, seed=0)
    assert sum(len(rows) for _, rows in some) == 20
    assert all(len(rows) and set(rows) <= set(own) for (_, rows), (_, own) in zip(some, judges, strict=True))
    assert taken(judges, 100, seed=0) == judges


@pytest.mark.parametrize(
    ("number", "said"), [(12345.6, "12,300"), (0.012345, "0.0123"), (0.0, "0"), (1e9, "1,000,000,000")]
)
def test_short_numbers(number: float, said: str) -> None:
    assert short(number) == said


@pytest.mark.parametrize(
    ("share", "said"), [(1.0, "100%"), (0.999, "over 99%"), (0.42, "42%"), (0.001, "under 1%"), (0.0, "0%")]
)
def test_percent(share: float, said: str) -> None:
    assert percent(share) == said


def test_amounts_are_written_as_the_column_is() -> None:
    dollars = Variable("price", Kind.CONTINUOUS, dtype="str", notation=NumberNotation("$", "", ",", ".", 2, True))
    assert amount(dollars, 12345.678) == "$12,300.00"
    assert amount(dollars, 0.001) == "0.001"
    since = Variable("since", Kind.INTEGER, dtype="str", notation=PeriodNotation("MMM YYYY"))
    assert amount(since, 30.33) == "30.3 months"
    opens = Variable("opens", Kind.INTEGER, dtype="str", notation=ClockNotation())
    assert amount(opens, 45.0) == f"45 {ClockNotation().unit}"
    assert amount(Variable("when", Kind.DATETIME, resolution="second"), 0.25) == "6 hours"
    assert amount(Variable("when", Kind.DATETIME, resolution="day"), 3.21) == "3.21 days"


def test_a_level_that_is_a_number_is_written_as_the_column_is() -> None:
    share = NumberNotation("", "%")
    assert level_text(Variable("part", Kind.ATOMS, (50.0, 80.0), dtype="str", notation=share), 1) == "80%"


def test_a_rare_level_that_is_never_the_best_answer_is_still_known() -> None:
    """One in ten, and one in three where the other column says so: always "no" is right as often as can be."""
    rng = np.random.default_rng(2)
    rows = 2_000
    sign = rng.random(rows) < 0.3
    chance = np.where(sign, 1 / 3, 0.0)
    rare = (rng.random(rows) < chance).astype(float)
    schema = Schema((Variable("rare", Kind.CATEGORICAL, levels=("no", "yes"), dtype="str"),))
    square = 2 * (rare - chance) ** 2
    cells = JudgedCells(*(each[:, None] for each in (rare, np.zeros(rows), square, square, square)))
    (found,) = predictions(schema, cells)
    assert found.error == found.guess_error == pytest.approx(0.1, abs=0.02)
    # The variance that is left, over that of one in ten.
    assert found.smaller == pytest.approx(1 - 0.3 * 2 / 9 / 0.09, abs=0.03)
    assert found.word == "somewhat"
    assert found.said.endswith("but its probabilities say more")
    guessing = JudgedCells(*(each[:, None] for each in (rare, np.zeros(rows), *3 * [2 * (rare - 0.1) ** 2])))
    assert predictions(schema, guessing)[0].word == HARDLY
