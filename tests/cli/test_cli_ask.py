"""``anyorder ask``: what it prints is what the closed form says."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path

import pytest
from scipy.stats import norm

from commands import run


def test_ask_gives_the_exact_law(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    result = json.loads(run(capsys, "ask", model, "price, river | rooms=6", "--json").out)
    law = norm(22, 3)
    facts = result["answers"]["price"]
    assert facts["mean"] == pytest.approx(22)
    assert facts["std"] == pytest.approx(3)
    for level, value in facts["quantiles"].items():
        assert value == pytest.approx(law.ppf(float(level)))
    assert result["answers"]["river"]["probs"] == {"no": 0.7, "yes": 0.3}
    assert result["evidence"] == {"rooms": "6"}
    assert "log_prob" not in result


def test_ask_with_a_value_gives_its_log_density(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    result = json.loads(run(capsys, "ask", model, "price=25 | rooms=6", "--json").out)
    assert result["log_prob"] == pytest.approx(norm(22, 3).logpdf(25))
    assert result["answers"] == {}
    text = run(capsys, "ask", model, "price=25, rooms").out
    assert f"{norm(20, math.sqrt(13)).logpdf(25):.5g}" in text
    assert "log p(price=25)" in text
    assert "rooms" in text


def test_ask_prints_a_table(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = run(capsys, "ask", model, "price, river | rooms=6").out
    assert "26.935" in text  # 22 + 1.6449 * 3
    assert "0.7000" in text
    assert "price, river | rooms=6" in text


def test_ask_draws_a_picture(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "out.png"
    run(capsys, "ask", model, "price, river", "--plot", str(picture))
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "latin-1"])
def test_queries_are_read_as_tables_are(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], encoding: str, end: str
) -> None:
    queries = tmp_path / "queries.csv"
    queries.write_bytes(f"question,größe{end}price | rooms=6,ü{end}".encode(encoding))
    said = run(capsys, "ask", model, "--queries", str(queries), "--json")
    assert json.loads(said.out)["answers"][0]["value"] == pytest.approx(22)
    assert ("if they are wrong, save it as UTF-8" in said.err) == (encoding == "latin-1")


@pytest.mark.parametrize("content", [b"PK\x03\x04\0\0", b"\xff\xfea", "größe, ü\n".encode() + b"\xff\n"])
def test_queries_that_are_no_text_are_refused(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    (tmp_path / "queries.csv").write_bytes(content)
    said = run(capsys, "ask", model, "--queries", str(tmp_path / "queries.csv"), status=2).err
    assert "queries.csv" in said


@pytest.mark.parametrize("end", ["\r", "\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("header", ["question\n", ""])
def test_queries_on_standard_input_are_read_as_files_are(
    model: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    encoding: str,
    end: str,
    header: str,
) -> None:
    content = (header + "price | rooms=6\nprice\n").replace("\n", end).encode(encoding)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content), encoding="utf-8"))
    found = json.loads(run(capsys, "ask", model, "--queries", "-", "--json").out)
    means = [answer["value"] for answer in found["answers"] if answer["what"] == "mean of price"]
    assert means == pytest.approx([22, 20])


def test_queries_that_are_no_csv_are_refused(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def rows(*_: object, **__: object) -> None:
        raise csv.Error("line contains NUL")

    (tmp_path / "queries.csv").write_text("question\nprice\n")
    monkeypatch.setattr("csv.reader", rows)
    said = run(capsys, "ask", model, "--queries", str(tmp_path / "queries.csv"), status=2).err
    assert "cannot be read as CSV: line contains NUL" in said


def test_a_question_may_be_very_long(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "queries.csv").write_text(f'question\n"{"x" * 200_000}"\n"price"\n')
    found = json.loads(run(capsys, "ask", model, "--queries", str(tmp_path / "queries.csv"), "--json").out)
    assert "error" in found["answers"][0] and found["answers"][1]["value"] == pytest.approx(20)


def test_formulas_in_answers_are_escaped_where_asked(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "queries.txt").write_text("=cmd|x\n")
    asked = ("ask", model, "--queries", str(tmp_path / "queries.txt"))
    assert run(capsys, *asked).out.splitlines()[1].startswith("=cmd|x,")
    assert run(capsys, *asked, "--escape-formulas").out.splitlines()[1].startswith("'=cmd|x,")


def test_what_a_terminal_would_obey_is_written_out_in_errors(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = run(capsys, "ask", model, "price | \x1b[31m\u202eroms=6", status=2).err
    assert "\x1b" not in said and "\u202e" not in said


def test_queries_have_all_that_a_question_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(Path(__file__).parents[1] / "files" / "v1" / "table_trees.anyorder")
    (tmp_path / "queries.txt").write_text("size, kind, grade, rain, day | flag=True\nmedian(size)\n")
    found = json.loads(run(capsys, "ask", file, "--queries", str(tmp_path / "queries.txt"), "--json").out)
    rows = {row["what"]: row["value"] for row in found["answers"] if row["question"].startswith("size")}
    numbers = ["mean", "5% quantile", "median", "95% quantile"]
    assert [f"{what} of size" for what in numbers] == list(rows)[:4]
    assert {"P(kind=ash)", "P(grade=d)", "P(rain=0.0)", "mean of rain", "median of grade", "mean of day"} <= set(rows)
    assert not {"mean of kind", "median of kind", "mean of grade"} & set(rows)
    assert sum(rows[f"P(kind={level})"] for level in ("ash", "birch", "cedar")) == pytest.approx(1)
    alone = json.loads(run(capsys, "ask", file, "size | flag=True", "--json").out)["answers"]["size"]
    assert rows["mean of size"] == pytest.approx(alone["mean"])
    assert rows["95% quantile of size"] == pytest.approx(alone["quantiles"]["0.95"])
    assert found["answers"][-1]["what"] == "median of size"
