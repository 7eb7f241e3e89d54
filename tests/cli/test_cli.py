"""The command line: what it prints is what the closed form says, and a mistake is one line and status 2.

Most tests put a model with known answers behind the commands: rooms ~ N(5, 1), price | rooms ~ N(10 + 2 rooms, 3), and
river = yes with probability 0.3, independent.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from anyorder import cli
from anyorder.errors import UserError
from anyorder.variables.schema import Kind, Schema, Variable

from commands import refused, run

SCHEMA = Schema(
    (
        Variable("rooms", Kind.CONTINUOUS),
        Variable("price", Kind.CONTINUOUS),
        Variable("river", Kind.CATEGORICAL, levels=("no", "yes"), dtype="str"),
    )
)


class KnownAnswer:
    """A normal or a coin."""

    def __init__(self, variable: Variable, law: Any) -> None:
        self.variable = variable
        self.law = law
        self.kind = str(variable.kind)
        self.discrete = bool(variable.levels)

    def mean(self) -> float:
        return float(self.law.mean())

    def std(self) -> float:
        return float(self.law.std())

    def quantile(self, levels: list[float]) -> Any:
        return self.law.ppf(levels)

    def pdf(self, values: Any) -> Any:
        return self.law.pdf(values)

    def probs(self) -> dict[str, float]:
        return {"no": 0.7, "yes": 0.3}


class KnownConditional:
    def __init__(self, evidence: Mapping[str, Any]) -> None:
        if evidence.get("river", "no") not in ("no", "yes"):
            raise UserError(f"river has no value {evidence['river']!r}")
        self.evidence = dict(evidence)

    def __getitem__(self, name: str) -> KnownAnswer:
        return KnownAnswer(SCHEMA[name], self.law(name))

    def law(self, name: str) -> Any:
        if name == "rooms":
            return norm(5, 1)
        rooms = self.evidence.get("rooms")
        return norm(20, math.sqrt(9 + 4)) if rooms is None else norm(10 + 2 * float(rooms), 3)

    def log_prob(self, values: Mapping[str, Any]) -> float:
        (price,) = values.values()
        return float(self.law("price").logpdf(float(price)))

    def sample(self, n: int, seed: int, holes: bool = False) -> pd.DataFrame:
        generator = np.random.default_rng(seed)
        frame = pd.DataFrame({"rooms": generator.normal(size=n), "price": 1.0, "river": "no"})
        return frame.assign(**self.evidence)


class KnownModel:
    schema = SCHEMA
    card: Mapping[str, Any] = {
        "created": "today",
        "training": {"steps": 7},
        "scores": {"held_out": -1.5, "bad": math.nan},
    }

    def given(self, evidence: Mapping[str, Any]) -> KnownConditional:
        return KnownConditional(evidence)

    def log_prob(self, frame: pd.DataFrame, given: Any = None, *, orders: int = 1, unseen: str = "") -> pd.Series:
        rooms, price = frame["rooms"].to_numpy(float), frame["price"].to_numpy(float)
        nats = norm(10 + 2 * rooms, 3).logpdf(price)
        if given is None:
            nats = nats + norm(5, 1).logpdf(rooms)
        return pd.Series(nats, index=frame.index)

    def fill(self, frame: pd.DataFrame, draws: int | None = None, seed: int = 0, unseen: str = "") -> Any:
        if draws is None:
            return frame.fillna({"price": 20.0})
        return [frame.fillna({"price": 100.0 * seed + draw}) for draw in range(draws)]


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file name behind which :class:`KnownModel` stands."""
    monkeypatch.setattr("anyorder.modalities.load.load", lambda path: KnownModel())
    path = tmp_path / "house.anyorder"
    path.write_bytes(b"")
    return str(path)


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "houses.csv"
    path.write_text("rooms,price,river\n5,21.5,no\n6,,yes\n4,17,no\n", encoding="utf-8")
    return str(path)


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


def test_score_is_a_mean_with_its_standard_error(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = pd.DataFrame({"rooms": [5.0, 6.0, 4.0, 5.5], "price": [21.5, 30.0, 17.0, 20.0], "river": "no"})
    path = tmp_path / "t.csv"
    rows.to_csv(path, index=False)
    exact = norm(10 + 2 * rows["rooms"], 3).logpdf(rows["price"])
    result = json.loads(run(capsys, "score", model, str(path), "--given", "rooms, river", "--json", "--per-row").out)
    assert result["mean"] == pytest.approx(exact.mean())
    assert result["standard_error"] == pytest.approx(exact.std(ddof=1) / 2)
    assert result["log_prob"] == pytest.approx(exact.tolist())
    assert result["given"] == ["rooms", "river"]
    joint = run(capsys, "score", model, str(path)).out
    assert f"{(exact + norm(5, 1).logpdf(rows['rooms'])).mean():.4f} ±" in joint


def test_score_per_row_is_csv(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.csv"
    path.write_text("rooms,price,river\n5,21.5,no\n6,22.5,no\n", encoding="utf-8")
    result = run(capsys, "score", model, str(path), "--per-row", "--given", "rooms")
    rows = list(csv.DictReader(io.StringIO(result.out)))
    assert [row["row"] for row in rows] == ["0", "1"]
    assert float(rows[0]["log_prob"]) == pytest.approx(norm(20, 3).logpdf(21.5))
    assert "nats per row" in result.err


def test_one_row_has_no_standard_error(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.csv"
    path.write_text("rooms,price,river\n5,21.5,no\n", encoding="utf-8")
    exact = norm(20, 3).logpdf(21.5)
    assert run(capsys, "score", model, str(path), "--given", "rooms").out == f"{exact:.4f} nats per row (1 row)\n"
    assert json.loads(run(capsys, "score", model, str(path), "--json").out)["standard_error"] is None


def test_sample_keeps_what_is_given(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = run(capsys, "sample", model, "-n", "5", "--given", "river=yes", "--seed", "3").out
    frame = pd.read_csv(io.StringIO(text))
    assert len(frame) == 5
    assert set(frame["river"]) == {"yes"}
    assert frame["rooms"].to_numpy() == pytest.approx(np.random.default_rng(3).normal(size=5))
    out = tmp_path / "draws.parquet"
    assert run(capsys, "sample", model, "-n", "7", "-o", str(out)).out == ""
    assert len(pd.read_parquet(out)) == 7


def test_fill_once_and_many_times(model: str, table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "6,20.0,yes" in run(capsys, "fill", model, table).out
    out = tmp_path / "filled.csv"
    run(capsys, "fill", model, table, "-o", str(out), "--draws", "3", "--seed", "2")
    frame = pd.read_csv(out)
    assert list(frame.columns) == ["draw", "rooms", "price", "river"]
    assert frame["draw"].tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert frame.loc[frame["rooms"] == 6, "price"].tolist() == [200, 201, 202]
    assert frame.loc[frame["rooms"] == 4, "price"].tolist() == [17, 17, 17]


def test_info(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    result = json.loads(run(capsys, "info", model, "--json").out)
    assert result["variables"][2] == {"name": "river", "kind": "categorical", "levels": ["no", "yes"]}
    assert result["card"]["training"]["steps"] == 7
    assert result["card"]["scores"]["bad"] is None  # JSON has no NaN
    text = run(capsys, "info", model).out
    assert "river" in text
    assert "training.steps" in text


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["ask", "{model}", "prise | rooms=6"], "did you mean 'price'"),
        (["ask", "{model}", "price | rooms"], "rooms=VALUE"),
        (["ask", "{model}", "| rooms=6"], "nothing is asked"),
        (["ask", "{model}", "price | river=maybe"], "maybe"),
        (["ask", "{model}", "price", "--plot", "out.doc"], ".png"),
        (["ask", "nowhere.anyorder", "price"], "nowhere.anyorder"),
        (["sample", "{model}", "-n", "0"], "at least 1"),
        (["sample", "{model}", "-n", "ten"], "-n"),
        (["sample", "{model}", "-o", "no/such/folder.csv"], "no/such"),
        (["sample", "{model}", "-o", "out.xyz"], ".csv"),
        (["fill", "{model}", "nowhere.csv"], "nowhere.csv"),
        (["fill", "{model}", "{table}", "--draws", "0"], "at least 1"),
        (["score", "{model}", "{table}", "--given", "rums"], "did you mean 'rooms'"),
        (["fit", "{table}", "-o", "m.anyorder", "--resume"], "--checkpoint"),
        (["fit", "{table}", "-o", "no/such/m.anyorder"], "no/such"),
        (["fit", "{table}", "-o", "m.anyorder", "--minutes", "0"], "--minutes"),
        (["fit", "{table}"], "-o"),
        (["fit", "{table}", "-o", "m.anyorder", "--config", "nowhere.toml"], "'nowhere.toml' does not exist"),
        (["fit", "{table}", "-o", "m.anyorder", "--checkpoint", "{table}"], "--checkpoint needs a folder"),
        (["fit", "{table}", "-o", "m.anyorder", "--tensorboard", "{table}"], "--tensorboard needs a folder"),
        (["fit", "{table}", "-o", "m.anyorder", "--seed", "-1"], "--seed"),
        (["sample", "{model}", "--seed", "-1"], "--seed"),
        (["score", "{model}", "{table}", "--unseen", "perhaps"], "--unseen"),
        (["frobnicate"], "frobnicate"),
        (["fit", "--frobnicate"], "--frobnicate"),
    ],
)
def test_a_mistake_is_one_line_and_status_2(
    arguments: list[str],
    says: str,
    model: str,
    table: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    filled = [argument.format(model=model, table=table) for argument in arguments]
    assert says in refused(capsys, *filled)


def test_draws_do_not_hide_a_column(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.csv"
    path.write_text("rooms,price,river,draw\n5,,no,1\n", encoding="utf-8")
    assert "'draw'" in refused(capsys, "fill", model, str(path), "--draws", "2")


@pytest.fixture
def broken(model: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A model file that makes the program fail."""

    def fault(path: Path) -> None:
        raise ZeroDivisionError("no luck")

    monkeypatch.setattr("anyorder.modalities.load.load", fault)
    return model


def test_interrupted(model: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt(path: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("anyorder.modalities.load.load", interrupt)
    assert run(capsys, "info", model, status=130).err == "anyorder: interrupted\n"


def test_our_own_faults_are_told_apart(
    broken: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("ANYORDER_DEBUG", raising=False)
    short = run(capsys, "info", broken, status=1).err
    assert short.startswith("anyorder: internal error: ZeroDivisionError: no luck (please report")
    assert short.count("\n") == 1
    monkeypatch.setenv("ANYORDER_DEBUG", "1")
    assert "Traceback" in run(capsys, "info", broken, status=1).err


def test_a_closed_pipe_is_no_fault(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`anyorder sample ... | head -1`."""
    source, sink = os.pipe()
    os.close(source)
    with open(sink, "w") as closed:
        monkeypatch.setattr(sys, "stdout", closed)
        assert cli.main(["sample", model, "-n", "20000"]) == 0
        monkeypatch.undo()


def test_an_interrupted_fit_says_what_it_kept(
    table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Fitted(KnownModel):
        card: Mapping[str, Any] = {"training": {"steps": 31, "interrupted": True}}

        def save(self, path: Path) -> None:
            path.write_bytes(b"saved")

    monkeypatch.setattr("anyorder.modalities.tables.fit.fit", lambda frame, **_: Fitted())
    result = run(capsys, "fit", table, "-o", str(tmp_path / "m.anyorder"), "--json")
    assert result.err == "anyorder: note: interrupted: kept the best of 31 steps\n"
    json.loads(result.out)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('minutes = "ten"', "minutes must be a number"),
        ("minutes = true", "minutes must be a number"),
        ("minutes = -1", "minutes must be a number above 0"),
        ('missing = "?"', "missing must be a list"),
        ("missing = [[1]]", "missing must be a list"),
        ('kinds = ["price"]', "kinds must be a table"),
        ("kinds = {price = 3}", "kinds must be a table"),
        ("seed = 1.5", "seed must be a whole number"),
        ("seed = -1", "seed must be a whole number from 0"),
        ('drop = "price"', "drop must be a list"),
        ("drop = [1]", "drop must be a list"),
        ("device = 3", "device must be a text"),
    ],
)
def test_wrong_types_in_a_file(
    line: str, says: str, table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "run.toml"
    config.write_text(line + "\n", encoding="utf-8")
    said = refused(capsys, "fit", table, "-o", str(tmp_path / "m.anyorder"), "--config", str(config))
    assert says in said
    assert "run.toml" in said


def test_options_of_fit(
    table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the file and from the command line, which wins."""
    seen: dict[str, Any] = {}

    class Fitted(KnownModel):
        def save(self, path: Path) -> None:
            path.write_bytes(b"saved")

    def fit(frame: pd.DataFrame, **arguments: Any) -> Fitted:
        seen.update(arguments, rows=len(frame))
        return Fitted()

    monkeypatch.setattr("anyorder.modalities.tables.fit.fit", fit)
    config = tmp_path / "run.toml"
    config.write_text(
        'minutes = 5\nseed = 4\nmissing = ["?"]\ncomponents = 3\n'
        '[kinds]\nrooms = "atoms"\nprice = "integer"\n[training]\nbatch = 8\n',
        encoding="utf-8",
    )
    out = tmp_path / "m.anyorder"
    arguments = ["fit", table, "-o", str(out), "--config", str(config)]
    result = json.loads(
        run(capsys, *arguments, "--seed", "9", "--kind", "price=continuous", "--drop", "river", "--json").out
    )
    assert out.read_bytes() == b"saved"
    assert result["rows"] == 3
    assert seen["minutes"] == 5
    assert seen["seed"] == 9
    assert seen["missing"] == ["?"]
    assert seen["drop"] == ["river"]
    assert seen["kinds"] == {"rooms": "atoms", "price": "continuous"}
    assert seen["config"] == {"components": 3, "training": {"batch": 8}}
    seen.clear()
    run(capsys, "fit", table, "-o", str(out))
    assert "minutes" not in seen  # the library's own default holds
    assert seen["config"] is None


def test_a_model_file_repeats_its_run(
    table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = tmp_path / "first.anyorder", tmp_path / "second.anyorder"
    rows = pd.DataFrame({"a": np.arange(30.0) ** 1.5, "b": list("xyz") * 10})
    rows.to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "run.toml").write_text("seed = 5\n[training]\nsteps = 20\n")
    run(capsys, "fit", f"{tmp_path}/rows.csv", "-o", str(first), "--config", f"{tmp_path}/run.toml")
    run(capsys, "fit", f"{tmp_path}/rows.csv", "-o", str(second), "--config", str(first))
    scores = [json.loads(run(capsys, "score", str(m), f"{tmp_path}/rows.csv", "--json").out) for m in (first, second)]
    assert scores[0] == scores[1]


def test_help_and_module(tmp_path: Path) -> None:
    """``python -m anyorder`` is the same program, and its mistakes are one line there too."""
    environment = {**os.environ, "PYTHONPATH": str(Path(cli.__file__).parents[2])}

    def shell(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "anyorder", *arguments]
        return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)

    shown = shell()
    assert shown.returncode == 0
    assert "fit" in shown.stdout
    wrong = shell("info", "nowhere.anyorder")
    assert wrong.returncode == 2
    assert wrong.stdout == ""
    assert wrong.stderr.startswith("anyorder: ")
    assert "Traceback" not in wrong.stderr
    assert wrong.stderr.count("\n") == 1
