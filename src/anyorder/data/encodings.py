"""Which encoding a text file is in, and its first and last characters, found out by reading it through once.

A byte order mark decides. Without one, bytes that are zero at every other place are UTF-16. Else the text is UTF-8 if
all of it is, and otherwise Windows-1252, or Latin-1 where it has bytes that Windows-1252 does not use. Every text is
valid in the last two, so that choice is said. A text that is UTF-8 but for a few bytes is damaged, and refused: read as
Windows-1252 its other letters would be wrong.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import BinaryIO

from anyorder.errors import UserError

HEAD = 1 << 16  # characters, at least, from which the layout is found out; more if they are few lines
HEAD_LINES = 16
LONGEST_HEAD = 1 << 24
TAIL = 1 << 14
BLOCK = 1 << 20

MARKS = (
    (codecs.BOM_UTF8, "utf-8", "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16-le", "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16-be", "utf-16"),
)
WESTERN = {"cp1252": "Windows-1252", "latin-1": "Latin-1"}
MOST_CONTROLS = 0.02  # of the characters of a text; one in ten of random bytes is one

Opener = Callable[[], AbstractContextManager[BinaryIO]]
"""Opens the bytes, from their beginning, as often as it is called."""


@dataclass(frozen=True)
class Scan:
    """What reading a text once tells: its encoding, its length in characters and lines, how it begins and ends."""

    encoding: str  # as it is written
    codec: str  # as it is read: without the byte order mark
    length: int
    lines: int
    head: str  # whole lines, unless the first one is too long
    tail: str  # whole lines
    notice: str = ""  # what is doubtful; it goes on with what to do

    @property
    def mark(self) -> bool:
        """Whether a byte order mark stands before the text."""
        return self.codec in ("utf-8-sig", "utf-16")


def scan(reopen: Opener, source: str, encoding: str | None = None) -> Scan:
    """Read the text through; ``source`` is its name in messages, ``encoding`` what somebody said it is in."""
    with reopen() as file:
        start = file.read(BLOCK)
    found = _marked(start)
    if encoding is not None:
        name = _checked(encoding)
        found = found if found and name in (found[0], found[1], "utf-16") else (name, name)
    found = found or _without_mark(start, source)
    try:
        return _through(reopen, source, *found)
    except UnicodeDecodeError as error:
        if encoding is not None:
            raise UserError(
                f"cannot read {source}: not {encoding} text ({error.reason} at byte {error.start}); "
                "give another encoding, or none to have it detected"
            ) from None
        if found[0] != "utf-8" or _marked(start) or _mostly_utf8(reopen):
            raise not_text(source, error) from None
    try:
        western = _through(reopen, source, "cp1252", "cp1252")
    except UnicodeDecodeError:
        western = _through(reopen, source, "latin-1", "latin-1")
    sample = re.sub(r"\s", "", western.head)
    if sum(letter < " " or "\x7f" <= letter <= "\x9f" for letter in sample) > MOST_CONTROLS * len(sample):
        raise no_text_file(source)
    example = re.search(r"\w*[^\W\x00-\x7f]\w*", western.head + western.tail)
    seen = f" (such as {example.group()!r})" if example else ""
    notice = (
        f"{source} is not UTF-8 and was read as {WESTERN[western.encoding]}: check its accented letters"
        f"{seen}; if they are wrong, "
    )
    return replace(western, notice=notice)


def not_text(source: str, error: UnicodeDecodeError) -> UserError:
    """What is said of bytes that are no text in the encoding that they seem to be in."""
    kind = "UTF-16" if error.encoding.startswith("utf-16") else "UTF-8"
    return UserError(f"cannot read {source}: not {kind} text ({error.reason} at byte {error.start}); save it as UTF-8")


def no_text_file(source: str) -> UserError:
    """What is said of bytes that are no text in any encoding."""
    return UserError(f"cannot read {source}: it is not a text file; expected a CSV table")


def _marked(start: bytes) -> tuple[str, str] | None:
    return next(((name, codec) for mark, name, codec in MARKS if start.startswith(mark)), None)


def _without_mark(start: bytes, source: str) -> tuple[str, str]:
    if b"\0" not in start[:HEAD]:
        return "utf-8", "utf-8"
    even, odd = (start[first:HEAD:2].count(0) / max(len(start[first:HEAD:2]), 1) for first in (0, 1))
    for name, often, seldom in (("utf-16-le", odd, even), ("utf-16-be", even, odd)):
        if often >= 0.4 and seldom <= 0.05:
            return name, name
    raise no_text_file(source)


def _checked(encoding: str) -> str:
    try:
        "".encode(encoding)
        return codecs.lookup(encoding).name
    except (LookupError, ValueError):
        raise UserError(
            f"unknown encoding {encoding!r}; expected one such as utf-8, utf-16, cp1252, latin-1, shift_jis"
        ) from None


def _decoded(reopen: Opener, codec: str, errors: str = "strict") -> Iterator[str]:
    decoder, read = codecs.getincrementaldecoder(codec)(errors), 0
    with reopen() as file:
        while block := file.read(BLOCK):
            yield _decode(decoder, block, read, final=False)
            read += len(block)
    yield _decode(decoder, b"", read, final=True)


def _decode(decoder: codecs.IncrementalDecoder, block: bytes, read: int, *, final: bool) -> str:
    kept = len(decoder.getstate()[0])
    try:
        return decoder.decode(block, final)
    except UnicodeDecodeError as error:  # counted from the beginning of the file, not of the block
        begin, end = (read - kept + place for place in (error.start, error.end))
        raise UnicodeDecodeError(error.encoding, error.object, max(begin, 0), end, error.reason) from None


def _through(reopen: Opener, source: str, encoding: str, codec: str) -> Scan:
    length, lines, head, tail, enough = 0, 0, "", "", False
    for text in _decoded(reopen, codec):
        length += len(text)
        lines += text.count("\n") + text.count("\r") - text.count("\r\n")
        lines -= tail.endswith("\r") and text.startswith("\n")
        if not enough:
            head += text
            enough = len(head) >= LONGEST_HEAD or (len(head) >= HEAD and _line_ends(head) > HEAD_LINES)
        tail = (tail + text)[-TAIL:]
    if "\0" in head:
        raise no_text_file(source)
    lines += bool(tail) and not tail.endswith(("\r", "\n"))
    if len(head) < length:
        head = head[: max(head.rfind("\n"), head.rfind("\r", 0, -1)) + 1] or head
    if len(tail) < length:
        found = re.search(r"\r\n|\n|\r", tail)
        tail = tail[found.end() :] if found else ""
    return Scan(encoding, codec, length, lines, head, tail)


def _line_ends(text: str) -> int:
    return max(text.count("\n"), text.count("\r"))


def _mostly_utf8(reopen: Opener) -> bool:
    """Whether the bytes are UTF-8 but for a few: among Western letters hardly two in a row look like it."""
    wrong = right = 0
    for text in _decoded(reopen, "utf-8", "replace"):
        if not text.isascii():
            bad = text.count("\ufffd")
            wrong += bad
            right += len(re.sub(r"[\x00-\x7f]+", "", text)) - bad
    return right > wrong
