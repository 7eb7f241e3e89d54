"""Texts: characters to codes and back, windows of a corpus, and where the corpora come from.

A text is a row of one variable per position. Its alphabet is the characters of the corpus or, for any text at
all, the 256 bytes of UTF-8 (each written as the character of that number). text8 is the first 10^8 characters of a
cleaned English Wikipedia (a-z and the space); papers cut it into 90 M for training, 5 M for validation, 5 M for tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from anyorder.data.origin import Origin, fetch, find
from anyorder.data.unpacking import read_bytes
from anyorder.errors import UserError
from anyorder.support.checks import whole

Unit: TypeAlias = Literal["characters", "bytes"]
UNKNOWN = -1
TEXT8 = Origin(
    "http://mattmahoney.net/dc/text8.zip",
    "text8.zip",
    "sha256:a6640522afe85d1963ad56c05b0ede0a0c000dddc9671758a6cc09b7a38e5232",
)
TEXT8_PART = "text8_first_12500000.txt.xz"


@dataclass(frozen=True)
class Alphabet:
    """The symbols of a text, in the order of their codes. With ``unit="bytes"`` a text is seen as its UTF-8 bytes."""

    symbols: str
    unit: Unit = "characters"

    def __post_init__(self) -> None:
        if len(set(self.symbols)) != len(self.symbols) or not self.symbols:
            raise UserError("an alphabet needs one or more symbols, all different")

    @classmethod
    def of(cls, text: str, unit: Unit = "characters") -> Alphabet:
        """The characters that occur, sorted; or all bytes."""
        if unit == "bytes":
            return cls("".join(map(chr, range(256))), "bytes")
        if unit != "characters":
            raise UserError(f"a text is read by 'characters' or 'bytes', got {unit!r}")
        return cls("".join(sorted(set(text))))

    @cached_property
    def _codes(self) -> Int[np.ndarray, " points"]:
        """The code of every code point up to the greatest symbol."""
        table = np.full(max(map(ord, self.symbols)) + 2, UNKNOWN, dtype=np.int64)
        table[[ord(symbol) for symbol in self.symbols]] = np.arange(len(self.symbols))
        return table

    def spread(self, text: str) -> str:
        """The text with one character for each position: itself, or its bytes."""
        return text.encode("utf-8", "surrogatepass").decode("latin-1") if self.unit == "bytes" else text

    def joined(self, symbols: str) -> str:
        """The text that :meth:`spread` spread; bytes that are no UTF-8 (a draw may be anything) become U+FFFD."""
        if self.unit != "bytes":
            return symbols
        data = symbols.encode("latin-1")
        try:
            return data.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            return data.decode("utf-8", "replace")

    def encode(self, text: str) -> Int[np.ndarray, " positions"]:
        """The code of each position, ``UNKNOWN`` where the alphabet lacks a character."""
        points = np.frombuffer(self.spread(text).encode("utf-32-le", "surrogatepass"), dtype=np.uint32).astype(np.int64)
        codes: Int[np.ndarray, " positions"] = self._codes[np.minimum(points, len(self._codes) - 1)]
        return codes

    def decode(self, codes: Sequence[int] | Int[np.ndarray, " positions"]) -> str:
        """The text of these codes."""
        return self.joined("".join(self.symbols[int(code)] for code in codes))

    def check(self, text: str) -> Int[np.ndarray, " positions"]:
        """Codes of a text that the alphabet must have in full."""
        codes = self.encode(text)
        if (codes == UNKNOWN).any():
            position = int((codes == UNKNOWN).argmax())
            shown = self.symbols if len(self.symbols) <= 40 else self.symbols[:40] + "..."
            raise UserError(
                f"character {self.spread(text)[position]!r} at position {position} is not in the model's alphabet "
                f"({shown!r}); replace it, or fit with unit='bytes', which knows every text"
            )
        return codes


@dataclass(frozen=True)
class Windows:
    """All stretches of ``length`` neighbours of a corpus: rows for the trainer that are cut out when they are taken."""

    codes: Int[Tensor, " positions"]
    length: int

    def __post_init__(self) -> None:
        if len(self.codes) < self.length:
            raise UserError(
                f"the text must be at least as long as a window of {self.length} characters, got {len(self.codes)}; "
                "make length smaller or give more text"
            )

    def __len__(self) -> int:
        return len(self.codes) - self.length + 1

    def at(self, starts: Int[Tensor, " rows"]) -> Float[Tensor, "rows length"]:
        """The windows that begin there, as model values."""
        offsets = torch.arange(self.length, device=self.codes.device)
        return self.codes[starts[:, None] + offsets].float()

    def apart(self) -> Float[Tensor, "rows length"]:
        """The windows that do not overlap, one after the other: a test set, every character once."""
        count = len(self.codes) // self.length
        return self.codes[: count * self.length].reshape(count, self.length).float()

    def spread(self, most: int | None) -> Float[Tensor, "rows length"]:
        """At most so many of the windows that do not overlap, evenly spread over the text."""
        windows = self.apart()
        if most is None or whole("most", most) >= len(windows):
            return windows
        return windows[torch.linspace(0, len(windows) - 1, most).long()]


def read_corpus(source: Any) -> str:
    """A corpus from a text, a list of texts (joined by line breaks) or a path; .gz, .xz and .zip are unpacked."""
    if isinstance(source, Path):
        return _read(source)
    if isinstance(source, str):
        if len(source) < 256 and "\n" not in source and Path(source).is_file():
            raise UserError(
                f"{source!r} is taken as the text itself; to read the file of that name, give a pathlib.Path"
            )
        return source
    if isinstance(source, Sequence) and all(isinstance(part, str) for part in source):
        return "\n".join(source)
    raise UserError(f"a corpus is a text, a list of texts or a pathlib.Path, got {type(source).__name__}")


def _read(path: Path) -> str:
    try:
        return read_bytes(path).decode("utf-8")  # line ends stay as they are
    except FileNotFoundError:
        raise UserError(f"no such file: {str(path)!r}") from None
    except OSError as error:
        raise UserError(f"cannot read {str(path)!r}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{str(path)!r} is not UTF-8 text ({error}); convert it first") from error


@dataclass(frozen=True)
class Corpus:
    """A text in three parts; ``partial`` says what is missing of the full set, empty if nothing is."""

    name: str
    training: str
    validation: str
    test: str
    partial: str = ""


def text8() -> Corpus:
    """text8 from $ANYORDER_DATA, the cache or its origin; else the first 12.5 M characters, if they are at hand."""
    folder = find(TEXT8_PART)
    if find(TEXT8.file) is None and folder is not None:
        text = _read(folder / TEXT8_PART)
        said = "the first 12.5 M of text8's 100 M characters: 11.5 M training, 0.5 M validation, 0.5 M test"
        return Corpus("text8", text[:11_500_000], text[11_500_000:12_000_000], text[12_000_000:], said)
    return cut_text8(_read(fetch(TEXT8)))


def cut_text8(text: str) -> Corpus:
    """90 %, 5 % and 5 %, as in every paper that uses text8."""
    first, second = len(text) * 90 // 100, len(text) * 95 // 100
    return Corpus("text8", text[:first], text[first:second], text[second:])


def pydoc_topics() -> Corpus:
    """Python's own help on its language: 0.7 MB of English with code, at hand wherever Python is."""
    from pydoc_data.topics import topics

    text = "\n".join(topics[name] for name in sorted(topics))
    first, second = len(text) * 90 // 100, len(text) * 95 // 100
    return Corpus("pydoc topics", text[:first], text[first:second], text[second:])


def holes_in(text: str, mark: str) -> Bool[np.ndarray, " characters"]:
    """Where the hole mark stands."""
    if len(mark) != 1:
        raise UserError(f"a hole is marked by one character, such as '_', got {mark!r}")
    return np.array([character == mark for character in text], dtype=bool)
