"""The command line: what it prints is what the closed form says, and a mistake is one line and status 2.

Most tests put a model with known answers behind the commands: rooms ~ N(5, 1), price | rooms ~ N(10 + 2 rooms, 3), and
river = yes with probability 0.3, independent. The last ones go the whole way, from a CSV file to answers.
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
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from anyorder import cli
from anyorder.errors import UserError
from anyorder.schema import Kind, Schema, Variable

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
    monkeypatch.setattr("anyorder.loading.load", lambda path: KnownModel())
    path = tmp_path / "house.anyorder"
    path.write_bytes(b"")
    return str(path)


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "houses.csv"
    path.write_text("rooms,price,river\n5,21.5,no\n6,,yes\n4,17,no\n", encoding="utf-8")
    return str(path)


def run(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> SimpleNamespace:
    got = cli.main(list(arguments))
    out, err = capsys.readouterr()
    assert got == status, err
    return SimpleNamespace(out=out, err=err)


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line of a user's mistake."""
    result = run(capsys, *arguments, status=2)
    assert result.out == ""
    assert result.err.startswith("anyorder: ")
    assert result.err.count("\n") == 1
    return str(result.err)


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

    monkeypatch.setattr("anyorder.loading.load", fault)
    return model


def test_interrupted(model: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt(path: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("anyorder.loading.load", interrupt)
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

    monkeypatch.setattr("anyorder.tables.fit", lambda frame, **_: Fitted())
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

    monkeypatch.setattr("anyorder.tables.fit", fit)
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


@pytest.fixture(scope="module")
def houses(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """price = 10 + 3 rooms + 4 [river = yes] + N(0, 2); tax = 10 price + N(0, 5); a tenth of the prices are '?'."""
    folder = tmp_path_factory.mktemp("houses")
    generator = np.random.default_rng(0)
    rooms = generator.integers(2, 9, 600)
    river = np.where(generator.random(600) < 0.4, "yes", "no")
    price = 10 + 3 * rooms + 4 * (river == "yes") + generator.normal(0, 2, 600)
    tax = 10 * price + generator.normal(0, 5, 600)
    written = [f"{value:.2f}" if seen else "?" for value, seen in zip(price, generator.random(600) > 0.1, strict=True)]
    frame = pd.DataFrame({"rooms": rooms, "river": river, "price": written, "tax": tax.round(1)})
    frame.to_csv(folder / "houses.csv", index=False, sep=";")
    (folder / "run.toml").write_text('engine = "neural"\nmissing = ["?"]\n[training]\nsteps = 600\n')
    table, out, config = (str(folder / name) for name in ("houses.csv", "m.anyorder", "run.toml"))
    assert cli.main(["fit", table, "-o", out, "--config", config]) == 0
    return folder


@pytest.mark.slow
def test_from_csv_to_an_answer(houses: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(houses / "m.anyorder")
    asked = json.loads(run(capsys, "ask", model, "price, tax | rooms=6, river=yes", "--json").out)["answers"]
    assert asked["price"]["mean"] == pytest.approx(32, abs=1)
    assert asked["price"]["std"] == pytest.approx(2, abs=0.7)
    assert asked["tax"]["mean"] == pytest.approx(320, abs=10)
    # Given the tax, the price is known to within half a unit, wherever the question started.
    sharp = json.loads(run(capsys, "ask", model, "price, river | rooms=6, tax=320", "--json").out)["answers"]
    assert sharp["price"]["mean"] == pytest.approx(32, abs=1)
    assert sharp["price"]["std"] < asked["price"]["std"]
    assert sum(sharp["river"]["probs"].values()) == pytest.approx(1, abs=1e-5)
    # At the same number of rooms, a higher tax means a river.
    low = json.loads(run(capsys, "ask", model, "river | rooms=6, tax=280", "--json").out)["answers"]
    assert sharp["river"]["probs"]["yes"] > low["river"]["probs"]["yes"] + 0.2


@pytest.mark.slow
def test_from_csv_to_a_full_table(houses: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, table = str(houses / "m.anyorder"), str(houses / "houses.csv")
    before = pd.read_csv(table, sep=";", na_values="?")
    run(capsys, "fill", model, table, "-o", str(houses / "filled.csv"), "--missing", "?")
    after = pd.read_csv(houses / "filled.csv")
    known = before["price"].notna()
    assert after["price"].notna().all()
    assert (after.loc[known, "price"] == before.loc[known, "price"]).all()
    assert after[["rooms", "river", "tax"]].equals(before[["rooms", "river", "tax"]])
    error = (after["price"] - before["tax"] / 10)[~known]
    assert float(np.sqrt((error**2).mean())) < 1.5
    given = json.loads(run(capsys, "score", model, table, "--missing", "?", "--given", "tax,rooms", "--json").out)
    joint = json.loads(run(capsys, "score", model, table, "--missing", "?", "--json").out)
    assert given["rows"] == joint["rows"] == 600
    assert given["mean"] > joint["mean"]
    drawn = pd.read_csv(io.StringIO(run(capsys, "sample", model, "-n", "50", "--given", "rooms=3, river=no").out))
    assert set(drawn["rooms"]) == {3}
    assert drawn["price"].mean() == pytest.approx(19, abs=1.5)
    assert "river" in run(capsys, "info", model).out


@pytest.mark.slow
def test_real_mistakes_are_one_line(houses: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, table = str(houses / "m.anyorder"), str(houses / "houses.csv")
    assert "did you mean 'price'" in refused(capsys, "ask", model, "prise")
    assert "yes" in refused(capsys, "ask", model, "price | river=yess")
    assert "number" in refused(capsys, "ask", model, "price | tax=high")
    assert "rooms" in refused(capsys, "score", model, table, "--given", "roms")
    damaged = houses / "damaged.anyorder"
    damaged.write_bytes(Path(model).read_bytes()[:-100])
    refused(capsys, "info", str(damaged))
    refused(capsys, "info", table)
    refused(capsys, "fit", table, "-o", str(houses / "x.anyorder"), "--kind", "price=colour")
    refused(capsys, "fit", table, "-o", str(houses / "x.anyorder"), "--drop", "prise")
    refused(capsys, "fit", table, "-o", str(houses / "x.anyorder"), "--device", "toaster")


def test_a_model_remembers_its_marks_and_unseen_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, out, config = (tmp_path / name for name in ("t.csv", "m.anyorder", "run.toml"))
    numbers = np.random.default_rng(0).normal(20, 3, 40)
    lines = [f"{number:.3f},{word}" for number, word in zip(numbers, ["no", "yes"] * 20, strict=True)]
    table.write_text("\n".join(["price,river", *lines, "?,no", "?,?"]) + "\n", encoding="utf-8")
    config.write_text('missing = ["?"]\n[training]\nsteps = 5\n', encoding="utf-8")
    run(capsys, "fit", str(table), "-o", str(out), "--config", str(config))
    filled = pd.read_csv(io.StringIO(run(capsys, "fill", str(out), str(table)).out))
    assert filled["price"].dtype == float
    assert filled["price"].notna().all()
    assert set(filled["river"]) == {"no", "yes"}
    assert json.loads(run(capsys, "score", str(out), str(table), "--json").out)["rows"] == 42
    table.write_text("price,river,note\n20.5,perhaps,a\n!,no,b\n", encoding="utf-8")
    assert "--unseen missing" in refused_late(capsys, "fill", str(out), str(table), "--missing", "!")
    got = run(capsys, "fill", str(out), str(table), "--unseen", "missing", "--missing", "!")
    assert got.out.splitlines()[:2] == ["price,river,note", "20.5,perhaps,a"]
    notes = got.err.splitlines()
    assert len(notes) == 2
    assert all(note.startswith("anyorder: note: ") for note in notes)
    assert "'note'" in got.err
    assert "1 in 'river'" in got.err
    run(capsys, "score", str(out), str(table), "--unseen", "missing", "--missing", "!")


def refused_late(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The last line of a mistake that came after remarks."""
    return str(run(capsys, *arguments, status=2).err.splitlines()[-1])


# Events, ranges and files of questions, asked of an exact normal: rooms ~ N(5, 1), price | rooms ~ N(10 + 2 rooms, 3).


@pytest.fixture
def normal(tmp_path: Path) -> str:
    import torch

    from anyorder.encoding import Encoding, LineCodec
    from anyorder.heads import Gaussian
    from anyorder.model import AnyOrderModel
    from anyorder.protocols import Canonical
    from anyorder.tables import TableModel
    from anyorder.warp import Warp

    schema = Schema(SCHEMA.variables[:2])
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
    assert result["mutual_information"]["value"] == pytest.approx(-0.5 * math.log(1 - 4 / 13), rel=1e-4)
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
        assert [row["question"] for row in rows] == questions
        assert float(rows[0]["value"]) == pytest.approx(norm(22, 3).sf(25), rel=1e-5)
        assert rows[0]["standard_error"] == "0.0"
        assert rows[0]["method"] == "exact"
        assert "did you mean 'price'" in rows[1]["error"]
        assert (rows[2]["what"], float(rows[2]["value"])) == ("mean of price", pytest.approx(22, rel=1e-5))
        assert (rows[3]["what"], float(rows[3]["value"])) == (
            "log prob",
            pytest.approx(norm(22, 3).logpdf(25), rel=1e-5),
        )
        assert rows[4]["error"]
    as_json = tmp_path / "answers.json"
    assert run(capsys, "ask", normal, "--queries", str(lines), "-o", str(as_json), "--json").out == ""
    assert [row["question"] for row in json.loads(as_json.read_text(encoding="utf-8"))["answers"]] == questions
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
        (["ask", "{model}"], "--queries"),
        (["ask", "{model}", "price", "--queries", "q.txt"], "--queries"),
        (["ask", "{model}", "--queries", "nowhere.txt"], "nowhere.txt"),
        (["ask", "{model}", "price", "-o", "x.csv"], "-o belongs to --queries"),
        (["ask", "{model}", "price | rooms=9..3"], "ends before it begins"),
        (["ask", "{model}", "price | rooms=missing"], "missingness='joint'"),
        (["ask", "{model}", "P(price=22)"], "one value has probability 0"),
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
    assert "belong together" in refused(capsys, *arguments)
    assert "--level" in refused(capsys, *arguments, "--held-out", str(table), "--level", "1")
    same = ["fill", normal, str(table), "-o", str(out), "--intervals", str(tmp_path / "." / "filled.csv")]
    assert "name two files" in refused(capsys, *same, "--held-out", str(tmp_path / "held.csv"))
    # Four rows say nothing at this level: no end at all, and not a word such as inf.
    held_out.head(4).to_csv(tmp_path / "held.csv", index=False)
    run(capsys, *arguments, "--held-out", str(tmp_path / "held.csv"), "--level", "0.9")
    assert ends.read_text(encoding="utf-8") == "row,column,low,high,levels\n0,price,,,\n2,rooms,,,\n"


def test_intervals_keep_to_bounds_and_notes_come_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from anyorder.encoding import Encoding, LatticeCodec, LevelCodec, LineCodec
    from anyorder.heads import Categorical, DiscretizedLogisticMixture, Gaussian
    from anyorder.model import AnyOrderModel
    from anyorder.protocols import Canonical
    from anyorder.tables import TableModel
    from anyorder.warp import Warp

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
    assert sum("'count': 1 cell holds a fraction (4.5), in row 0, but" in note for note in notes) == 1
    assert sum("'count': 1 cell holds a fraction (2.5), in row 1, but" in note for note in notes) == 1


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
