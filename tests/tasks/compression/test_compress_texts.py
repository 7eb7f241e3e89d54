"""Compression: any text comes back, its size is what the likelihood says, damage is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import anyorder as ao
from anyorder.errors import UserError
from anyorder.modalities.face import compress, decompress
from anyorder.modalities.texts.model import TextModel
from anyorder.tasks.compression.coder import HEADER
from anyorder.tasks.compression.texts import MAGIC, PIECE

from altered_files import assert_never_wrong

pytest.importorskip("constriction")


CORPUS = "the quick brown fox jumps over the lazy dog. " * 60


QUICK = {"training": {"minutes": None, "steps": 60, "threads": 1, "batch": 16, "validation_queries": 8}}


@pytest.fixture(scope="module")
def model() -> TextModel:
    return ao.fit_text(CORPUS, length=20, preset="tiny", engine="neural", config=QUICK, seed=0)


@pytest.fixture(scope="module", params=["auto", "counts"])
def counted(request: pytest.FixtureRequest) -> TextModel:
    return ao.fit_text(CORPUS, length=20, preset="tiny", engine=request.param, config=QUICK, seed=0)


@given(st.text(st.characters(exclude_categories=()), max_size=90))
@settings(max_examples=40, deadline=None)
def test_any_text_comes_back(model: TextModel, text: str) -> None:
    assert decompress(model, compress(model, text)) == text


def test_counts_bring_a_text_back(counted: TextModel) -> None:
    text = CORPUS[3:700] + "!" + CORPUS[90:2000]
    packed = compress(counted, text)
    assert decompress(counted, packed) == text
    assert len(packed) < len(text) / 10


@pytest.mark.parametrize("size", [0, 1, 19, 20, 21, 20 * 128, 20 * 128 + 1])
def test_every_length_comes_back(model: TextModel, size: int) -> None:
    text = (CORPUS * 3)[:size]
    assert decompress(model, compress(model, text)) == text


def test_the_size_is_what_the_likelihood_says(model: TextModel) -> None:
    text = (CORPUS * 8)[:20_000]
    pieces = [text[start : start + PIECE] for start in range(0, len(text), PIECE)]
    bits = -model.log_prob([piece[:20] for piece in pieces]).sum() / np.log(2)
    # Behind its first window, a piece goes on half a window at a time, given the half before.
    windows = [piece[start : start + 20] for piece in pieces for start in range(10, PIECE - 19, 10)]
    before = np.tile(np.arange(20) < 10, (len(windows), 1))
    bits -= model.log_prob(windows, given=before).sum() / np.log(2)
    packed = compress(model, text)
    assert 8 * (len(packed) - HEADER.size) == pytest.approx(bits, rel=0.01)
    assert 8 * len(packed) < 1.02 * bits
    assert len(packed) < len(text) / 2


def test_threads_do_not_matter(model: TextModel) -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        packed = compress(model, CORPUS[:200])
        torch.set_num_threads(1)
        assert decompress(model, packed) == CORPUS[:200]
    finally:
        torch.set_num_threads(before)


def test_bytes_and_a_mask_network() -> None:
    network = {"network": {"name": "bidirectional_transformer"}, "training": {**QUICK["training"], "steps": 3}}
    model = ao.fit_text("grün 😀 " * 40, length=12, unit="bytes", preset="tiny", config=network, seed=0)
    text = "grün, blau 😀 und \x00 mehr"
    assert decompress(model, compress(model, text)) == text


def test_fewer_calls_come_back_and_cost_what_was_predicted(model: TextModel) -> None:
    text = (CORPUS * 8)[:6_000]
    whole = compress(model, text, calls=model.length)
    sizes = []
    for calls in (4, model.budget(text, 4)):
        packed = compress(model, text, calls=calls)
        assert decompress(model, packed) == text
        sizes.append(len(packed))
    assert len(whole) < sizes[1] <= sizes[0] * 1.001
    budget = model.budget(text, 4, most=10_000)
    extra = 8 * (len(compress(model, text, calls=budget)) - len(whole)) * np.log(2) / (len(text) / 20)
    assert extra == pytest.approx(budget.nats, rel=0.05)
    # A text that ends before the last group begins.
    assert decompress(model, compress(model, "the", calls=4)) == "the"


def test_damage_is_refused(model: TextModel) -> None:
    packed = bytearray(compress(model, CORPUS[:300] + "ÄÖ"))
    for place in (*range(4, HEADER.size + 4), len(packed) - 1):
        broken = packed.copy()
        broken[place] ^= 1
        with pytest.raises(UserError, match="damaged"):
            decompress(model, bytes(broken))
    for wrong in (b"", b"AOT2", bytes(packed[:-4]), b"zip" + bytes(packed[3:])):
        with pytest.raises(UserError):
            decompress(model, wrong)
    assert_never_wrong(MAGIC, model, bytes(packed), lambda back: bool(back == CORPUS[:300] + "ÄÖ"))


def test_half_a_surrogate_and_a_single_symbol_come_back(model: TextModel) -> None:
    assert decompress(model, compress(model, "the \udcff fox\ud800")) == "the \udcff fox\ud800"
    alone = ao.fit_text("a" * 80, length=10, preset="tiny", config=QUICK | {"training": {"steps": 2, "minutes": None}})
    for text in ("", "aaa", "a" * 25, "aab"):
        assert decompress(alone, compress(alone, text)) == text


def test_another_model_is_refused(model: TextModel) -> None:
    other = ao.fit_text(
        CORPUS, length=20, preset="tiny", config={"training": {**QUICK["training"], "steps": 2}}, seed=1
    )
    with pytest.raises(UserError, match="another model"):
        decompress(other, compress(model, "the fox"))
