"""The command line the whole way: from a CSV file to a model, to answers and to a full table."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from anyorder import cli

from commands import refused, refused_late, run


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
    # One split: in folds, each of the networks would get a quarter of the steps.
    words = 'engine = "neural"\nmissing = ["?"]\nfolds = 1\n[training]\nsteps = 600\n'
    (folder / "run.toml").write_text(words)
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
    after = pd.read_csv(houses / "filled.csv", sep=";")
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


def test_a_table_is_compressed_and_comes_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("constriction")
    table, model, packed, back = (str(tmp_path / name) for name in ("t.csv", "m.anyorder", "t.aor", "back.csv"))
    frame = pd.DataFrame({"count": np.arange(40) % 7, "river": ["no", "yes"] * 20})
    frame.to_csv(table, index=False)
    (tmp_path / "run.toml").write_text('engine = "neural"\n[training]\nsteps = 5\n', encoding="utf-8")
    run(capsys, "fit", table, "-o", model, "--config", str(tmp_path / "run.toml"))
    facts = json.loads(run(capsys, "compress", model, table, "-o", packed, "--json").out)
    assert facts["bytes"] == Path(packed).stat().st_size
    assert facts["of"] == Path(table).stat().st_size
    run(capsys, "decompress", model, packed, "-o", back)
    pd.testing.assert_frame_equal(pd.read_csv(back), frame)
    assert "--calls is for models of texts" in refused(capsys, "compress", model, table, "-o", packed, "--calls", "3")
    assert "must end in one of" in refused(capsys, "decompress", model, packed, "-o", str(tmp_path / "back.xyz"))
