"""Corpora: the alphabet, windows, and the public texts as the papers cut them."""

from __future__ import annotations

import dataclasses
import hashlib
import lzma
import zipfile
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from anyorder.data.text import Alphabet, Windows, cut_text8, pydoc_topics, read_corpus, text8
from anyorder.errors import UserError


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
