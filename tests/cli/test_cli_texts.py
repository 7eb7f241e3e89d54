"""The commands on a model of texts, as a user types them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import anyorder as ao
from anyorder.cli import main

from texts import CORPUS, QUICK


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("texts") / "fox.anyorder"
    ao.fit_text(CORPUS, length=24, preset="tiny", config=QUICK, seed=0).save(path)
    return str(path)


@pytest.fixture
def held_out(tmp_path: Path) -> str:
    path = tmp_path / "held.txt"
    path.write_text((CORPUS * 2)[:600], encoding="utf-8")
    return str(path)


def test_score(model: str, held_out: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", model, held_out, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["windows"] == 25
    assert set(found) >= {"joint", "marginal", "marginal_per_length", "conditional", "errors", "unit"}
    assert main(["score", model, held_out, "--windows", "5"]) == 0
    assert "5 windows of 24 characters" in capsys.readouterr().out
    assert main(["score", model, held_out, "--given", "c0"]) == 2
    assert "--given is for models of tables" in capsys.readouterr().err


def test_sample(model: str, held_out: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sample", model, "--beginning", "the ", "-n", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert all(line.startswith("the ") and len(line) == 24 for line in lines)
    assert main(["sample", model, "--drafts", "3", "--length", "10"]) == 0
    assert len(capsys.readouterr().out) == 11
    assert main(["sample", model, "--calls", "6", "--held-out", held_out]) == 0
    said = capsys.readouterr()
    assert "6 calls for 24 characters; predicted cost" in said.err
    assert "do not exactly follow the model's distribution" in said.err
    assert len(said.out) == 25
    assert main(["sample", model, "--calls", "20", "--held-out", held_out, "--length", "9"]) == 0
    assert len(capsys.readouterr().out) == 10  # shorter than the window that was measured
    out = tmp_path / "drawn.txt"
    assert main(["sample", model, "--order", "confidence", "-o", str(out)]) == 0
    assert "do not exactly follow the model's distribution" in capsys.readouterr().err
    assert len(out.read_text(encoding="utf-8")) == 25


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--given", "a=1"], "--given is for models of tables"),
        (["--order", "confident"], "did you mean 'confidence'"),
        (["--held-out", "x"], "give --calls too"),
        (["--drafts", "2", "--calls", "3"], "one or the other"),
        (["--length", "99"], "length must be between"),
        (["-n", "0"], "at least 1"),
    ],
)
def test_sample_mistakes(model: str, options: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sample", model, *options]) == 2
    assert words in capsys.readouterr().err


def test_info(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", model]) == 0
    assert "alphabet.symbols" in capsys.readouterr().out
    assert main(["info", model, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["card"]["modality"] == "text"


def test_compress(model: str, held_out: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("constriction")
    packed, back = tmp_path / "held.aot", tmp_path / "back.txt"
    for options in ([], ["--calls", "6"], ["--calls", "6", "--held-out", held_out]):
        assert main(["compress", model, held_out, "-o", str(packed), "--json", *options]) == 0
        assert json.loads(capsys.readouterr().out)["bytes"] == packed.stat().st_size
        assert main(["decompress", model, str(packed), "-o", str(back)]) == 0
        assert back.read_bytes() == Path(held_out).read_bytes()
    assert main(["decompress", model, held_out, "-o", str(back)]) == 2
    assert "not compressed by anyorder" in capsys.readouterr().err


def test_what_is_known_is_printed_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "tabs.anyorder"
    ao.fit_text("a\tb\r\n" * 60, length=12, preset="tiny", config=QUICK, seed=0).save(path)
    assert main(["fill", str(path), "--text", "a\tb\r_a\t"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("a\tb\r")
    assert out[5:] == "a\t\n"
    for options, words in (
        (["--missing", "?"], "--missing is for models of tables"),
        (["--intervals", "x.csv", "--held-out", "y.csv"], "--intervals and --held-out are for models of tables"),
    ):
        assert main(["fill", str(path), "--text", "a_", *options]) == 2
        assert words in capsys.readouterr().err
    assert main(["fill", str(path), "rows.csv"]) == 2
    assert "anyorder fill MODEL --text TEXT" in capsys.readouterr().err


def test_fill_draws_a_picture(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "fill.png"
    assert main(["fill", model, "--text", "the q__ck br_wn f_x", "--draws", "2", "--plot", str(picture)]) == 0
    assert picture.read_bytes()[:4] == b"\x89PNG"
    capsys.readouterr()
    assert main(["fill", model, "--text", "the q__ck", "--plot", str(tmp_path / "fill.doc")]) == 2
    assert main(["fill", model, "rows.csv", "--plot", str(picture)]) == 2
    said = capsys.readouterr().err
    assert "the argument 'rows.csv' is for models of tables and pictures" in said
    assert "is a model of texts: anyorder fill MODEL --text TEXT" in said


def test_a_recipe_is_a_preset(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus, config, out = tmp_path / "corpus.txt", tmp_path / "small.toml", tmp_path / "m.anyorder"
    corpus.write_text(CORPUS, encoding="utf-8")
    config.write_text(
        '[network]\nname = "bidirectional_transformer"\nwidth = 16\nheads = 2\nblocks = 1\n'
        "[training]\nsteps = 2\nbatch = 4\nparts = 2\nvalidation_queries = 4\n",
        encoding="utf-8",
    )
    line = ["fit-text", str(corpus), "-o", str(out), "--length", "12", "--config", str(config), "--json"]
    assert main([*line, "--preset", "mac_text8"]) == 0
    card = json.loads(capsys.readouterr().out)["card"]
    assert card["config"]["preset"] == "mac_text8" and card["training"]["steps"] == 2
    assert card["config"]["objective"] == {"name": "parallel", "reweight": True}
    assert card["training"]["engine"] == "neural" and card["config"]["training"]["early_stopping"] is False
    assert main([*line, "--preset", "mac_text9"]) == 2
    assert "did you mean 'mac_text8'" in capsys.readouterr().err


def test_help_names_the_presets(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit-text", "--help"]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in ("tiny", "small", "medium", "mac_text8", "ardm_text8"))
