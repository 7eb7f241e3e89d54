"""Corpora: the alphabet, windows, and the public texts as the papers cut them."""

from __future__ import annotations

import dataclasses
import gzip
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
    with pytest.raises(UserError, match="at least as long as a window"):
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
    with pytest.raises(UserError, match="contains 2 files"):
        read_corpus(tmp_path / "two.zip")


def test_pydoc_is_always_there() -> None:
    found = pydoc_topics()
    assert len(found.training) > 400_000
    assert found.partial == ""


def test_packed_corpora_that_are_broken_or_locked_or_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = b"some words, again and again\n" * 50_000
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.txt", text)
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(text))
    (tmp_path / "a.txt.xz").write_bytes(lzma.compress(text))
    packed = sorted(tmp_path.iterdir())
    assert [read_corpus(path) for path in packed] == [text.decode()] * 3
    for path in packed:
        whole = path.read_bytes()
        flipped = bytearray(whole)
        flipped[len(whole) // 2] ^= 0xFF
        for content in (whole[: len(whole) // 2], bytes(flipped), whole[9:]):
            broken = tmp_path / f"broken{path.suffix}"
            broken.write_bytes(content)
            with pytest.raises(UserError, match=r"broken.*damaged or not a (gzip|xz|zip) file"):
                read_corpus(broken)
    monkeypatch.setattr("anyorder.data.unpacking.UNPACKED", 1_000_000)
    for path in packed:
        with pytest.raises(UserError, match=r"unpacks to more than 1 MB"):
            read_corpus(path)
    locked = bytearray((tmp_path / "a.zip").read_bytes())
    for mark in (b"PK\x03\x04", b"PK\x01\x02"):  # the flag that says "encrypted", in both headers
        locked[locked.index(mark) + (6 if mark[2] == 3 else 8)] |= 1
    (tmp_path / "locked.zip").write_bytes(locked)
    with pytest.raises(UserError, match="password required"):
        read_corpus(tmp_path / "locked.zip")


def test_a_device_is_no_corpus() -> None:
    with pytest.raises(UserError, match="it is a device"):
        read_corpus(Path("/dev/zero"))
