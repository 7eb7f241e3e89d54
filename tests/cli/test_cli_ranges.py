"""Events, ranges and files of questions on the command line.

They are asked of an exact normal: rooms ~ N(5, 1), price | rooms ~ N(10 + 2 rooms, 3).
"""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from anyorder.variables.schema import Kind, Schema, Variable

from commands import refused, refused_late, run


@pytest.fixture
def normal(tmp_path: Path) -> str:
    import torch

    from anyorder.heads import Gaussian
    from anyorder.modalities.tables.model import TableModel
    from anyorder.model import AnyOrderModel
    from anyorder.protocols import Canonical
    from anyorder.variables.codecs import LineCodec
    from anyorder.variables.encoding import Encoding
    from anyorder.variables.warp import Warp

    schema = Schema((Variable("rooms", Kind.CONTINUOUS), Variable("price", Kind.CONTINUOUS)))
    encoding = Encoding(schema, tuple(LineCodec(variable, Warp.affine(0.0, 1.0)) for variable in schema.variables))
    core = AnyOrderModel.build(encoding, [Gaussian(), Gaussian()], {"name": "gaussian"}, Canonical(), seed=0).double()
    core.network.set_moments(torch.tensor([5.0, 20.0]), torch.tensor([[1.0, 2.0], [2.0, 13.0]]))  # type: ignore[operator]
    path = tmp_path / "normal.anyorder"
    TableModel(core.eval(), {"created": "today"}).save(path)
    return str(path)


def test_ask_for_the_probability_of_an_event(normal: str, capsys: pytest.CaptureFixture[str]) -> None:
    exact = norm(22, 3).sf(25)
    for question in ("P(price > 25 | rooms=6)", "price > 25 | rooms=6"):
        result = json.loads(run(capsys, "ask", normal, question, "--json").out)
        assert result["probability"] == {
            "value": pytest.approx(exact, rel=1e-5),
            "standard_error": 0,
            "doubt": 0,
            "method": "exact",
        }
    text = run(capsys, "ask", normal, "P(price > 25 | rooms=6)").out
    assert f"{exact:.5g}" in text
    assert "exact" in text


def test_ask_under_a_range_says_its_error(normal: str, capsys: pytest.CaptureFixture[str]) -> None:
    question = "P(20 < price <= 25 | rooms=4..6)"
    truth, _ = quad(lambda x: norm(5, 1).pdf(x) * (norm(10 + 2 * x, 3).cdf(25) - norm(10 + 2 * x, 3).cdf(20)), 4, 6)
    truth /= norm(5, 1).cdf(6) - norm(5, 1).cdf(4)
    few = json.loads(run(capsys, "ask", normal, question, "--json", "--draws", "200").out)["probability"]
    many = json.loads(run(capsys, "ask", normal, question, "--json", "--draws", "5000", "--seed", "3").out)[
        "probability"
    ]
    assert 0 < many["standard_error"] < few["standard_error"]
    assert abs(many["value"] - truth) < 4 * many["standard_error"]
    assert many["method"] == "truncated draws (5000)"
    text = run(capsys, "ask", normal, "price | rooms=4..6").out
    assert "truncated draws (2000); standard errors of the means: price" in text
    assert "±" in run(capsys, "ask", normal, question).out


def test_ask_for_means_entropy_and_information(normal: str, capsys: pytest.CaptureFixture[str]) -> None:
    result = json.loads(run(capsys, "ask", normal, "E[price | rooms=6]", "--json").out)
    assert result["means"]["price"]["value"] == pytest.approx(22, rel=1e-5)
    result = json.loads(run(capsys, "ask", normal, "H(price | rooms=6)", "--json").out)
    assert result["entropy"]["value"] == pytest.approx(norm(22, 3).entropy(), rel=1e-5)
    result = json.loads(run(capsys, "ask", normal, "I(price; rooms)", "--json").out)
    assert result["mutual_information"]["value"] == pytest.approx(-0.5 * math.log(1 - 4 / 13), rel=2e-3)
    assert "E[price] = 22" in run(capsys, "ask", normal, "E[price | rooms=6]").out


def test_a_file_of_questions(normal: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    questions = [
        "P(price > 25 | rooms=6)",
        "prise | rooms=6",
        "price | rooms=6",
        "price=25 | rooms=6",
        "P(rooms > 9..)",
    ]
    lines = tmp_path / "q.txt"
    lines.write_text("\n".join(["# a remark", *questions, ""]), encoding="utf-8")
    table = tmp_path / "q.csv"
    with table.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerows([["id", "question"], *([str(k), text] for k, text in enumerate(questions))])
    out = tmp_path / "answers.csv"
    for path in (lines, table):
        result = run(capsys, "ask", normal, "--queries", str(path), "-o", str(out))
        assert result.out == ""
        assert "2 of the questions" in result.err
        rows = list(csv.DictReader(out.open(encoding="utf-8")))
        assert list(dict.fromkeys(row["question"] for row in rows)) == questions
        assert float(rows[0]["value"]) == pytest.approx(norm(22, 3).sf(25), rel=1e-5)
        assert rows[0]["standard_error"] == "0.0"
        assert rows[0]["method"] == "exact"
        assert "did you mean 'price'" in rows[1]["error"]
        assert (rows[2]["what"], float(rows[2]["value"])) == ("mean of price", pytest.approx(22, rel=1e-5))
        assert [row["what"] for row in rows[3:6]] == [
            f"{q} of price" for q in ("5% quantile", "median", "95% quantile")
        ]
        assert float(rows[5]["value"]) == pytest.approx(norm(22, 3).ppf(0.95), rel=1e-4)
        assert (rows[6]["what"], float(rows[6]["value"])) == (
            "log prob",
            pytest.approx(norm(22, 3).logpdf(25), rel=1e-5),
        )
        assert rows[7]["error"]
    as_json = tmp_path / "answers.json"
    assert run(capsys, "ask", normal, "--queries", str(lines), "-o", str(as_json), "--json").out == ""
    answers = json.loads(as_json.read_text(encoding="utf-8"))["answers"]
    assert list(dict.fromkeys(row["question"] for row in answers)) == questions
    assert run(capsys, "ask", normal, "--queries", str(lines)).out.startswith(
        "question,what,value,standard_error,method"
    )


def test_an_answer_with_an_error_is_a_plain_number_in_a_file(
    normal: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "questions.txt"
    path.write_text("P(price > 25, rooms > 6)\nI(price; rooms)\n", encoding="utf-8")
    for row in csv.DictReader(io.StringIO(run(capsys, "ask", normal, "--queries", str(path)).out)):
        assert not row["error"]
        float(row["value"])
        float(row["standard_error"])


def test_sample_under_ranges(normal: str, capsys: pytest.CaptureFixture[str]) -> None:
    frame = pd.read_csv(io.StringIO(run(capsys, "sample", normal, "-n", "50", "--given", "rooms=7..8, price < 20").out))
    assert len(frame) == 50
    assert frame["rooms"].between(7, 8).all()
    assert (frame["price"] <= 20).all()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["ask", "{model}", "price", "--queries", "q.txt"], "--queries"),
        (["ask", "{model}", "--queries", "nowhere.txt"], "nowhere.txt"),
        (["ask", "{model}", "price", "-o", "x.csv"], "-o belongs to --queries"),
        (["ask", "{model}", "price | rooms=9..3"], "ends before it begins"),
        (["ask", "{model}", "price | rooms=missing"], "missingness='joint'"),
        (["ask", "{model}", "P(price=22)"], "a single value has probability 0"),
        (["ask", "{model}", "price | rooms=900..901"], "probability 0 under the model"),
    ],
)
def test_a_wrong_range_is_one_line(
    arguments: list[str], says: str, normal: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert says in refused(capsys, *(argument.format(model=normal) for argument in arguments))


def test_whole_rows_as_anomalies(normal: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """-log p of a row of the normal is closed form; the row far from all others comes first."""
    table = tmp_path / "rows.csv"
    table.write_text("rooms,price\n5,20\n9,12\n4,\n", encoding="utf-8")
    found = json.loads(run(capsys, "anomalies", normal, str(table), "--rows", "--json").out)["anomalies"]
    truth = {
        0: -norm(5, 1).logpdf(5) - norm(20, 3).logpdf(20),
        1: -norm(5, 1).logpdf(9) - norm(28, 3).logpdf(12),
        2: -norm(5, 1).logpdf(4),
    }
    assert found[0]["row"] == 1
    assert found[0]["probability"] == pytest.approx(1 / 201)
    assert {one["row"]: one["surprise"] for one in found} == pytest.approx(truth, rel=1e-5)
    # p(rooms | price = 12) is a normal, from which 9 lies farther than 12 does from what 9 rooms would cost.
    variance = 1 / (1 + 2**2 / 3**2)
    centre = variance * (5 + 2 / 3**2 * (12 - 10))
    assert (found[0]["column"], found[0]["value"]) == ("rooms", 9)
    assert found[0]["expected"] == pytest.approx(centre, abs=0.5)
    assert next(one for one in found if one["row"] == 2)["column"] == "rooms"
    shown = run(capsys, "anomalies", normal, str(table), "--rows", "--top", "1").out
    assert len(shown.strip().splitlines()) == 2


def test_fill_with_conformal_intervals(normal: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The interval of a filled cell is the model's own at the level that the held-out rows ask for."""
    rng = np.random.default_rng(0)
    rooms = rng.normal(5, 1, 400)
    held_out = pd.DataFrame({"rooms": rooms, "price": 10 + 2 * rooms + rng.normal(0, 6, 400)})  # wider than thought
    held_out.to_csv(tmp_path / "held.csv", index=False)
    table, out, ends = tmp_path / "holes.csv", tmp_path / "filled.csv", tmp_path / "ends.csv"
    table.write_text("rooms,price\n6,\n5,20\n,12\n", encoding="utf-8")
    arguments = ["fill", normal, str(table), "-o", str(out), "--intervals", str(ends)]
    run(capsys, *arguments, "--held-out", str(tmp_path / "held.csv"), "--level", "0.8")
    lines = pd.read_csv(ends)
    assert list(zip(lines["row"], lines["column"], strict=True)) == [(0, "price"), (2, "rooms")]
    # A price is always asked from the rooms and the other way round, as in the table: the reach is the (401 c)-th
    # least distance of the 400 held-out cells from what the model expects there.
    rank = math.ceil(401 * 0.8) - 1
    reach = np.sort(np.abs(held_out["price"] - 10 - 2 * held_out["rooms"]))[rank]
    assert reach > 1.5 * 3 * norm.ppf(0.9)
    assert lines.loc[0, ["low", "high"]].tolist() == pytest.approx([22 - reach, 22 + reach], rel=1e-5)
    reach = np.sort(np.abs(held_out["rooms"] - 5 - (held_out["price"] - 20) * 2 / 13))[rank]
    centre = 5 - 8 * 2 / 13
    assert lines.loc[1, ["low", "high"]].tolist() == pytest.approx([centre - reach, centre + reach], rel=1e-5)
    assert pd.read_csv(out)["price"].tolist()[:2] == pytest.approx([22, 20], rel=1e-4)
    assert "need each other" in refused(capsys, *arguments)
    assert "--level" in refused(capsys, *arguments, "--held-out", str(table), "--level", "1")
    same = ["fill", normal, str(table), "-o", str(out), "--intervals", str(tmp_path / "." / "filled.csv")]
    assert "give two different files" in refused(capsys, *same, "--held-out", str(tmp_path / "held.csv"))
    # Four rows say nothing at this level: no end at all, and not a word such as inf.
    held_out.head(4).to_csv(tmp_path / "held.csv", index=False)
    run(capsys, *arguments, "--held-out", str(tmp_path / "held.csv"), "--level", "0.9")
    assert ends.read_text(encoding="utf-8") == "row,column,low,high,levels\n0,price,,,\n2,rooms,,,\n"


def test_intervals_keep_to_bounds_and_notes_come_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from anyorder.heads import Categorical, DiscretizedLogisticMixture, Gaussian
    from anyorder.modalities.tables.model import TableModel
    from anyorder.model import AnyOrderModel
    from anyorder.protocols import Canonical
    from anyorder.variables.codecs import LatticeCodec, LevelCodec, LineCodec
    from anyorder.variables.encoding import Encoding
    from anyorder.variables.warp import Warp

    share = Variable("share", Kind.CONTINUOUS, bounds=(0.0, 1.0), declared=True)
    count = Variable("count", Kind.INTEGER, dtype="int64", bounds=(0.0, None))
    day = Variable("day", Kind.DATETIME, resolution="day", dtype="datetime64[us]")
    town = Variable("town", Kind.CATEGORICAL, levels=("here", "there"), dtype="str")
    codecs = (
        LineCodec(share, Warp.affine(0.5, 0.2)),
        LatticeCodec(count, Warp.affine(5.0, 2.0), 0, 10),
        LatticeCodec(day, Warp.affine(19000.0, 30.0), 18000, 20000),
        LevelCodec(town),
    )
    encoding = Encoding(Schema(tuple(codec.variable for codec in codecs)), codecs)
    heads = [Gaussian(), *(DiscretizedLogisticMixture(1, codec.lattice) for codec in codecs[1:3]), Categorical(2)]
    core = AnyOrderModel.build(encoding, heads, {"name": "residual_mlp", "width": 8}, Canonical(), seed=0).eval()
    TableModel(core, {"created": "today"}).save(tmp_path / "m.anyorder")
    table, held, ends = tmp_path / "holes.csv", tmp_path / "held.csv", tmp_path / "ends.csv"
    table.write_text("share,count,day,town\n,4.5,,\n0.5,,2022-01-05,here\n0.25,,2022-01-06,there\n", encoding="utf-8")
    held.write_text("share,count,day,town\n0.4,4,2022-01-09,nowhere\n0.3,2.5,2022-01-07,here\n", encoding="utf-8")
    arguments = ["fill", str(tmp_path / "m.anyorder"), str(table), "-o", str(tmp_path / "filled.csv")]
    arguments += ["--intervals", str(ends), "--held-out", str(held)]
    assert "'nowhere'" in refused_late(capsys, *arguments)
    notes = run(capsys, *arguments, "--unseen", "missing").err.splitlines()
    lines = ends.read_text(encoding="utf-8").splitlines()
    assert lines.pop(3) in ('0,town,,,"{here, there}"', '0,town,,,"{there, here}"')
    expected = ["row,column,low,high,levels", "0,share,0.0,1.0,", "0,day,,,", "1,count,0.0,,", "2,count,0.0,,"]
    assert lines == expected
    assert len(notes) == 3
    assert sum("1 in 'town'" in note for note in notes) == 1
    assert sum("'count': 1 cell has a fraction (4.5), in row 0, but" in note for note in notes) == 1
    assert sum("'count': 1 cell has a fraction (2.5), in row 1, but" in note for note in notes) == 1


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("id,text\n1,price\n", r"q.csv', row 1: no column 'question' among 'id', 'text'"),
        ("id;question\n1;price\n", r"q.csv', row 1: no column 'question'"),
        ("id,question\n1,price\n2,\n3,rooms\n", "q.csv', row 3 has nothing in the column 'question'"),
        ("id,question\n1,price\n\n3,rooms\n", "q.csv', row 3 is blank"),
        ("question\n", "holds no questions"),
    ],
)
def test_a_wrong_file_of_questions_names_the_row(
    normal: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, words: str
) -> None:
    path = tmp_path / "q.csv"
    path.write_text(content, encoding="utf-8")
    assert words in refused(capsys, "ask", normal, "--queries", str(path))


def test_blank_lines_at_the_end_of_a_file_of_questions(
    normal: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "q.csv"
    path.write_text("id,question\n1,E[price | rooms=6]\n\n,\n", encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(run(capsys, "ask", normal, "--queries", str(path)).out)))
    assert [float(row["value"]) for row in rows] == pytest.approx([22], rel=1e-5)


def test_an_unclosed_bracket_is_pointed_at(normal: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, "ask", normal, "P(price > 30 | rooms=6")
    assert "the bracket '(' after P is never closed (character 2)" in said
