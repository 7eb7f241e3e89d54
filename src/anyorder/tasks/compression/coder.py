"""A range coder and the file around it: what compressed texts and compressed tables have in common.

Encoder and decoder run the same code: a :class:`Stream` is given the probabilities of some symbols, and either takes
the symbols that it is given or hands out those that it reads. So the two cannot drift apart.

The file: magic, eight bytes of the model, checksums of the content and of the rest, a small JSON with whatever else
is needed behind it, the coder's words.
"""

from __future__ import annotations

import itertools
import json
import lzma
import struct
import zlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from anyorder.errors import UserError
from anyorder.model import AnyOrderModel
from anyorder.model.versions import as_version_1, digest
from anyorder.support.checks import whole
from anyorder.support.memory import check_room
from anyorder.support.strict_json import read_json

HEADER = struct.Struct("<4s8sIII")  # magic, model, checksum of the content, bytes of the JSON, checksum of all the rest


DAMAGED = "the compressed file is damaged: its checksum does not agree; copy it again"
DERAILED = (
    "the content did not come out as it went in: this machine rounds otherwise than the one that compressed it "
    "(another processor or version of torch); decompress it there"
)
FREE, PER_BYTE = 100_000, 1000
"""A file may declare this many rows or characters, and this many more for each byte of the coder's words.

Without a limit a few bytes could keep the decoder busy for ever: what is certain takes no bits.
"""

FREE_FORMER = 100_000_000
"""What a file of an earlier format may declare. Its words were not padded, however many certain symbols they stand for.

Nothing is set aside for the symbols before they are decoded, so a false number costs time and no memory.
"""

LEAST_UNPACKED = 1 << 28  # bytes that any file may unpack to; a longer one to a hundred times its length
LZMA_MEMORY = 1 << 28  # for a dictionary of 64 MB, which the strongest preset takes
STEPS = 2.0**24  # of the coder's probabilities: none of them is less than one
SPARE_BITS = 4096


class Stream(ABC):
    """Symbols, one for each row of probabilities: taken or handed out."""

    def __init__(self) -> None:
        self.coder = _constriction()
        self.family = self.coder.stream.model.Categorical(perfect=False)

    def code(self, symbols: Int[np.ndarray, " rows"], probs: Float[np.ndarray, "rows levels"]) -> Any:
        """The symbols of these rows: a writer takes ``symbols`` and gives them back, a reader does not look at them."""
        # Of a single level there is nothing to tell, and the coder has no such distribution.
        return np.zeros_like(symbols) if probs.shape[1] == 1 else self._code(symbols, probs)

    @abstractmethod
    def _code(self, symbols: Int[np.ndarray, " rows"], probs: Float[np.ndarray, "rows levels"]) -> Any:
        """Take or give symbols that have two levels or more."""


class Writer(Stream):
    """Takes symbols."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = self.coder.stream.queue.RangeEncoder()

    def _code(self, symbols: Int[np.ndarray, " rows"], probs: Float[np.ndarray, "rows levels"]) -> Any:
        self.encoder.encode(symbols.astype(np.int32), self.family, probs)
        return symbols

    def words(self) -> bytes:
        """All that was written."""
        return np.asarray(self.encoder.get_compressed(), dtype="<u4").tobytes()


class Reader(Stream):
    """Hands out what a writer took."""

    def __init__(self, words: bytes) -> None:
        super().__init__()
        if len(words) % 4:
            raise UserError(DAMAGED)
        self.decoder = self.coder.stream.queue.RangeDecoder(np.frombuffer(words, dtype="<u4").astype(np.uint32))
        self.bits = 1.1 * 8 * len(words) + SPARE_BITS  # left; the coder comes closer to its bits than a tenth

    def _code(self, symbols: Int[np.ndarray, " rows"], probs: Float[np.ndarray, "rows levels"]) -> Any:
        try:
            found = np.asarray(self.decoder.decode(self.family, probs), dtype=np.int64)
        except (AssertionError, ValueError) as error:  # the words mean nothing under these probabilities
            raise UserError(DERAILED) from error
        if len(found) and not 0 <= found.min() <= found.max() < probs.shape[1]:
            raise UserError(DERAILED)
        # Behind its end the decoder goes on and makes something up, without an end.
        self.bits += float(np.log2(probs[np.arange(len(found)), found].clip(1 / STEPS)).sum())
        if self.bits < 0:
            raise UserError("more is declared than its bytes hold")
        return found


@dataclass(frozen=True)
class Sealed:
    """What a file holds besides the model's name: ``facts`` as JSON, some ``blobs``, the coder's ``stream``.

    ``content`` is the checksum of all that is to come out again. ``former``: in a format whose words are not padded.
    """

    facts: dict[str, Any]
    stream: bytes
    content: int
    blobs: tuple[bytes, ...] = ()
    former: bool = False

    def written(self, magic: bytes, model: AnyOrderModel) -> bytes:
        """The whole file."""
        facts = {**self.facts, "blobs": [len(blob) for blob in self.blobs]} if self.blobs else self.facts
        plain = b"\n".join([json.dumps(facts, separators=(",", ":")).encode(), b"".join(self.blobs)])
        # LZMA costs a few dozen bytes of its own; what it writes does not begin with a brace.
        packed = lzma.compress(plain, lzma.FORMAT_ALONE, preset=9 | lzma.PRESET_EXTREME)
        front = packed if len(packed) < len(plain) <= _most_unpacked(packed) else plain
        body = front + self.stream
        named = (magic, fingerprint(model), self.content, len(front))
        return HEADER.pack(*named, zlib.crc32(body, zlib.crc32(HEADER.pack(*named, 0)))) + body

    @classmethod
    def read(cls, magic: bytes, model: AnyOrderModel, data: bytes, *, former: bytes | None = None) -> Sealed:
        """Read a whole file that this model made; anything else is refused. ``former``: a magic that is still read."""
        known = [magic] if former is None else [former, magic]
        if data[:3] == magic[:3] and data[:4] not in known:
            read = " and ".join(repr(one[3:]) for one in known)
            raise UserError(f"these bytes are of format {data[3:4]!r}, and this release reads {read}")
        if len(data) < HEADER.size or data[:4] not in known:
            raise UserError("these bytes were not compressed by anyorder, or by a model of another kind of data")
        body = data[HEADER.size :]
        *named, checksum = HEADER.unpack(data[: HEADER.size])
        _, made_by, content, length = named
        if zlib.crc32(body, zlib.crc32(HEADER.pack(*named, 0))) != checksum or length > len(body):
            raise UserError(DAMAGED)
        if made_by != fingerprint(model):
            raise UserError("this was compressed with another model; decompress it with that one")
        front = body[:length]
        line, _, rest = (front if front[:1] == b"{" else _unpacked(front)).partition(b"\n")
        facts = read_json(line)
        if not isinstance(facts, dict):
            raise UserError(f"its facts must be an object, got {facts!r:.80}")
        sizes = [whole("blobs", size, 0) for size in facts.pop("blobs", [])]
        if sum(sizes) != len(rest):
            raise UserError(f"blobs: {sum(sizes)} bytes are declared, and {len(rest)} are there")
        blobs = tuple(rest[start:end] for start, end in itertools.pairwise(itertools.accumulate(sizes, initial=0)))
        return cls(facts, body[length:], content, blobs, data[:4] == former)

    def count(self, name: str, numbers: int = 1) -> int:
        """A fact that says how many rows or characters there are, refused if these bytes cannot hold that many.

        ``numbers``: so many of them are kept for each row or character while it is decoded.
        """
        count = whole(name, self.facts[name], 0)
        if count > (most := (FREE_FORMER if self.former else FREE) + PER_BYTE * len(self.stream)):
            raise UserError(f"{name}: {count} are declared, and {len(self.stream)} bytes hold {most} at most")
        check_room(name, count, numbers, "decompress it on a larger one")
        return count

    def check(self, content: int) -> None:
        """What came out must be what went in."""
        if content != self.content:
            raise UserError(DERAILED)


def padded(words: bytes, count: int) -> bytes:
    """The coder's words, zeros behind them where they are too few for so many rows or characters to be believed."""
    return words.ljust(-(-(count - FREE) // (4 * PER_BYTE)) * 4, b"\0")


def _unpacked(packed: bytes) -> bytes:
    unpacker = lzma.LZMADecompressor(lzma.FORMAT_ALONE, memlimit=LZMA_MEMORY)
    plain = unpacker.decompress(packed, max_length=_most_unpacked(packed) + 1)
    if len(plain) > _most_unpacked(packed):
        raise UserError(f"{len(packed)} packed bytes become more than {_most_unpacked(packed)}")
    if not unpacker.eof:
        raise UserError(DAMAGED)
    return plain


def _most_unpacked(packed: bytes) -> int:
    return max(LEAST_UNPACKED, 100 * len(packed))


def fingerprint(model: AnyOrderModel) -> bytes:
    """Eight bytes that tell models apart: of the weights and all that describes them."""
    # In the words of the first release, so that what was compressed by it is still known to belong to this model.
    digits = model.former_digest or digest(as_version_1(model.description()), model.state_dict())
    return bytes.fromhex(digits)[:8]


def _constriction() -> Any:
    try:
        import constriction
    except ImportError as error:
        raise UserError("compression needs the entropy coder constriction: pip install anyorder[compress]") from error
    return constriction
