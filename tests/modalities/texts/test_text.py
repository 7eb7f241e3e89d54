"""Texts: the alphabet, windows, and a model of them against enumeration."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import lzma
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import anyorder as ao
from anyorder.data.text import Alphabet, Windows, cut_text8, pydoc_topics, read_corpus, text8
from anyorder.errors import UserError
from anyorder.modalities.texts.core import text_model
from anyorder.modalities.texts.model import Filling, TextModel, _windows
from anyorder.protocols import Canonical
from anyorder.training.loop import Trainer

from texts import CORPUS, QUICK


def untrained(symbols: str = "ab ", length: int = 3, name: str = "causal_transformer") -> TextModel:
    network = {"name": name, "width": 16, "blocks": 1, "heads": 2}
    core = text_model(Alphabet(symbols), length, network, Canonical(), seed=0)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in core.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    return TextModel(core.eval(), {"alphabet": {"symbols": symbols, "unit": "characters"}})


@pytest.fixture(scope="module")
def fitted() -> TextModel:
    return ao.fit_text(CORPUS, length=24, preset="tiny", config=QUICK, seed=0)


@given(st.text(max_size=60))
def test_any_text_survives_bytes(text: str) -> None:
    alphabet = Alphabet.of("", "bytes")
    assert alphabet.decode(alphabet.check(text)) == text


@given(st.text(alphabet="aäß😀 \n", max_size=40))
def test_characters_survive(text: str) -> None:
    alphabet = Alphabet("aäß😀 \n")
    codes = alphabet.check(text)
    assert len(codes) == len(text)
    assert alphabet.decode(codes) == text


def test_an_unknown_character_is_named() -> None:
    with pytest.raises(UserError, match="'€' at position 2"):
        Alphabet("ab").check("ab€")
    assert Alphabet("ab").encode("a\U0010ffff").tolist() == [0, -1]


def test_windows_are_stretches_of_the_corpus() -> None:
    windows = Windows(torch.arange(10), 4)
    assert len(windows) == 7
    assert windows.at(torch.tensor([0, 6])).tolist() == [[0, 1, 2, 3], [6, 7, 8, 9]]
    assert windows.apart().tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    with pytest.raises(UserError, match="as long a corpus"):
        Windows(torch.arange(3), 4)


def test_a_corpus_is_read_from_anything(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("grün", encoding="utf-8")
    (tmp_path / "a.xz").write_bytes(lzma.compress("grün".encode()))
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a", "grün")
    for source in ("grün", tmp_path / "a.txt", tmp_path / "a.xz", tmp_path / "a.zip"):
        assert read_corpus(source) == "grün"
    assert read_corpus(["a", "b"]) == "a\nb"
    (tmp_path / "bad").write_bytes(b"\xff\xfe\xfa")
    for source in (tmp_path / "bad", tmp_path / "none", 3):
        with pytest.raises(UserError):
            read_corpus(source)


def test_text8_is_cut_as_in_the_papers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cut = cut_text8("a" * 900 + "b" * 50 + "c" * 50)
    assert (set(cut.training), set(cut.validation), set(cut.test)) == ({"a"}, {"b"}, {"c"})
    monkeypatch.setenv("ANYORDER_DATA", str(tmp_path))
    part = "ab" * 6_250_000
    (tmp_path / "text8_first_12500000.txt.xz").write_bytes(lzma.compress(part.encode(), preset=0))
    found = text8()
    assert (len(found.training), len(found.validation), len(found.test)) == (11_500_000, 500_000, 500_000)
    assert "12.5 M" in found.partial


def test_the_whole_of_text8_is_unpacked_and_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A small file of the same form: a zip with one text in it, found in the cache and checked by its checksum.
    from anyorder.data import text as module

    monkeypatch.setenv("ANYORDER_DATA", str(tmp_path))
    with zipfile.ZipFile(tmp_path / "text8.zip", "w") as archive:
        archive.writestr("text8", " anarchism originated " * 100)
    checksum = hashlib.sha256((tmp_path / "text8.zip").read_bytes()).hexdigest()
    small = dataclasses.replace(module.TEXT8, file="text8.zip", checksum=f"sha256:{checksum}")
    monkeypatch.setattr(module, "TEXT8", small)
    found = text8()
    assert (len(found.training), len(found.validation), len(found.test)) == (1980, 110, 110)
    assert found.training.startswith(" anarchism")
    assert found.partial == ""
    monkeypatch.setattr(module, "TEXT8", dataclasses.replace(small, checksum="sha256:" + "0" * 64))
    with pytest.raises(UserError, match="checksum"):
        text8()
    with zipfile.ZipFile(tmp_path / "two.zip", "w") as archive:
        archive.writestr("a", "a")
        archive.writestr("b", "b")
    with pytest.raises(UserError, match="holds 2 files"):
        read_corpus(tmp_path / "two.zip")


def test_pydoc_is_always_there() -> None:
    found = pydoc_topics()
    assert len(found.training) > 400_000
    assert found.partial == ""


@pytest.mark.parametrize("name", ["causal_transformer", "bidirectional_transformer"])
def test_probabilities_of_all_texts_add_up(name: str) -> None:
    model = untrained(name=name)
    texts = ["".join(text) for text in itertools.product("ab ", repeat=3)]
    nats = model.log_prob(texts)
    assert np.exp(nats).sum() == pytest.approx(1.0, abs=1e-5)
    # In ascending order a shorter text is exactly the marginal of the longer ones.
    short = np.exp(model.log_prob(["".join(text) for text in itertools.product("ab ", repeat=2)]))
    np.testing.assert_allclose(np.exp(nats).reshape(9, 3).sum(axis=1), short, atol=1e-6)
    # The middle given its neighbours is normalised as well.
    given_ = np.array([[True, False, True]] * 3)
    middle = model.log_prob(["aab", "abb", "a b"], given=given_)
    assert np.exp(middle).sum() == pytest.approx(1.0, abs=1e-5)


def test_bits_are_those_of_the_windows() -> None:
    model = untrained()
    text = "ab a bba a"  # three windows and a rest
    nats = model.log_prob([text[start : start + 3] for start in (0, 3, 6)])
    assert model.bits_per_character(text) == pytest.approx(-nats.sum() / 9 / np.log(2), rel=1e-6)


def test_fill_keeps_what_is_known_and_says_how_sure_it_is(fitted: TextModel) -> None:
    text = "the q__ck br_wn f_x"
    for filling in [fitted.fill(text), *fitted.fill(text, draws=3, seed=1)]:
        assert len(filling.text) == len(text)
        for before, after, sure in zip(text, filling.text, filling.confidence, strict=True):
            assert before in ("_", after)
            assert (sure == 1) if before != "_" else (0 < sure < 1)
        assert filling.nats == pytest.approx(sum(np.log(filling.confidence)), abs=1e-5)
        marks = np.array([[character != "_" for character in text]])
        assert filling.nats == pytest.approx(float(fitted.log_prob([filling.text], given=marks)[0]), abs=1e-4)
    assert fitted.fill(text, draws=2, seed=1)[0] == fitted.fill(text, draws=2, seed=1)[0]
    assert fitted.fill("the fox") == Filling("the fox", (1.0,) * 7, 0.0, ())


def test_greedy_takes_the_most_probable_character() -> None:
    model = untrained(length=4)
    filled = model.fill("a_b")
    ways = [f"a{symbol}b" for symbol in "ab "]
    nats = model.log_prob(ways, given=np.array([[True, False, True]] * 3))
    assert filled.text == ways[int(nats.argmax())]


@pytest.mark.parametrize(("size", "length"), [(5, 8), (8, 8), (9, 8), (30, 8), (1000, 24)])
def test_every_hole_of_a_long_text_is_filled_once(size: int, length: int) -> None:
    generator = np.random.default_rng(size)
    known = torch.from_numpy(generator.random(size) < 0.5)
    start = known.clone()
    times = torch.zeros(size, dtype=torch.long)
    for window, asked in _windows(known, length):
        assert window.stop - window.start <= length
        times[window] += asked
        known[window] |= asked
    assert torch.equal(times, (~start).long())


def test_a_long_text_is_filled(fitted: TextModel) -> None:
    text = ("the qu_ck brown fox j_mps over the l_zy dog. " * 4)[:150]
    filled = fitted.fill(text)
    assert len(filled.text) == 150
    assert "_" not in filled.text
    assert all(before in ("_", after) for before, after in zip(text, filled.text, strict=True))


def test_the_file_gives_the_same_answers(fitted: TextModel, tmp_path: Path) -> None:
    fitted.save(tmp_path / "model.anyorder")
    again = ao.load(tmp_path / "model.anyorder")
    assert isinstance(again, TextModel)
    text = "the q__ck br_wn f_x"
    assert again.fill(text) == fitted.fill(text)
    assert again.fill(text, draws=2) == fitted.fill(text, draws=2)
    assert np.array_equal(again.log_prob(["the fox"]), fitted.log_prob(["the fox"]))
    assert again.sample(2, length=10, beginning="the", seed=3) == fitted.sample(2, length=10, beginning="the", seed=3)


def test_a_run_is_resumed_to_the_same_weights_and_only_on_its_own_corpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"length": 16, "preset": "tiny", "seed": 0}
    config = QUICK
    whole = ao.fit_text(CORPUS, config=config, checkpoint=tmp_path / "a", **options)
    # The same run, stopped after half of its steps as a kill would, and taken up again.
    stopped = Trainer.run
    monkeypatch.setattr(Trainer, "run", lambda self, **given: stopped(self, share=0.5, **given))
    half = ao.fit_text(CORPUS, config=config, checkpoint=tmp_path / "b", **options)
    monkeypatch.undo()
    assert half.card["training"]["steps"] == 3
    again = ao.fit_text(CORPUS, config=config, checkpoint=tmp_path / "b", resume=True, **options)
    assert again.card["training"]["steps"] == 6
    for one, other in zip(whole.core.parameters(), again.core.parameters(), strict=True):
        assert torch.equal(one, other)
    with pytest.raises(UserError, match="another run"):
        ao.fit_text(CORPUS + "!", config=config, checkpoint=tmp_path / "a", resume=True, **options)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"length": 5000}, "two windows"),
        ({"preset": "huge"}, "preset"),
        ({"config": {"netwrok": {}}}, "network"),
        ({"config": {"training": {"minuets": 1}}}, "minutes"),
        ({"unit": "words"}, "characters"),
        ({"seed": -1}, "seed"),
    ],
)
def test_mistakes_are_named(arguments: dict, words: str) -> None:
    with pytest.raises(UserError, match=words):
        ao.fit_text(CORPUS, **arguments)


def test_mistakes_in_questions_are_named(fitted: TextModel) -> None:
    with pytest.raises(UserError, match="one character"):
        fitted.fill("a__b", mark="__")
    with pytest.raises(UserError, match="alphabet"):
        fitted.fill("THE F_X")
    with pytest.raises(UserError, match="draws"):
        fitted.fill("a_b", draws=0)
    with pytest.raises(UserError, match="list of texts"):
        fitted.log_prob("the fox")
    with pytest.raises(UserError, match="length"):
        fitted.sample(1, length=25)


def test_fewer_calls(fitted: TextModel) -> None:
    exact = fitted.sample(3, length=12, beginning="the ", seed=1, drafts=4)
    grouped = fitted.sample(3, length=12, beginning="the ", seed=1, calls=3)
    budget = fitted.budget(CORPUS[:200], 6)
    whole = fitted.sample(2, seed=1, calls=budget)
    for text in (*exact, *grouped):
        assert len(text) == 12
        assert text.startswith("the ")
    assert all(len(text) == 24 for text in whole)
    assert budget.calls == 6
    # Six steps of training make no model whose every bit of context helps, so the cost may have either sign.
    assert np.isfinite(budget.nats)
    assert fitted.budget(CORPUS[:200], 24).nats == pytest.approx(0.0, abs=1e-9)
    with pytest.raises(UserError, match="one or the other"):
        fitted.sample(1, drafts=2, calls=2)
