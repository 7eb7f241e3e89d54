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

HEADER = struct.Struct("<4s8sIII")  # magic, model, checksum of the content, bytes of the JSON, checksum of all the rest


DAMAGED = "the compressed file is damaged: its checksum does not agree; copy it again"
DERAILED = (
    "the content did not come out as it went in: this machine rounds otherwise than the one that compressed it "
    "(another processor or version of torch); decompress it there"
)


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

    def _code(self, symbols: Int[np.ndarray, " rows"], probs: Float[np.ndarray, "rows levels"]) -> Any:
        try:
            found = np.asarray(self.decoder.decode(self.family, probs), dtype=np.int64)
        except (AssertionError, ValueError) as error:  # the words mean nothing under these probabilities
            raise UserError(DERAILED) from error
        if len(found) and not 0 <= found.min() <= found.max() < probs.shape[1]:
            raise UserError(DERAILED)
        return found


@dataclass(frozen=True)
class Sealed:
    """What a file holds besides the model's name: ``facts`` as JSON, some ``blobs``, the coder's ``stream``.

    ``content`` is the checksum of all that is to come out again.
    """

    facts: dict[str, Any]
    stream: bytes
    content: int
    blobs: tuple[bytes, ...] = ()

    def written(self, magic: bytes, model: AnyOrderModel) -> bytes:
        """The whole file."""
        facts = {**self.facts, "blobs": [len(blob) for blob in self.blobs]} if self.blobs else self.facts
        plain = b"\n".join([json.dumps(facts, separators=(",", ":")).encode(), b"".join(self.blobs)])
        # LZMA costs a few dozen bytes of its own; what it writes does not begin with a brace.
        front = min(plain, lzma.compress(plain, lzma.FORMAT_ALONE, preset=9 | lzma.PRESET_EXTREME), key=len)
        body = front + self.stream
        named = (magic, fingerprint(model), self.content, len(front))
        return HEADER.pack(*named, zlib.crc32(body, zlib.crc32(HEADER.pack(*named, 0)))) + body

    @classmethod
    def read(cls, magic: bytes, model: AnyOrderModel, data: bytes) -> Sealed:
        """Read a whole file that this model made; anything else is refused."""
        if len(data) < HEADER.size or data[:4] != magic:
            raise UserError("these bytes were not compressed by anyorder, or by a model of another kind of data")
        body = data[HEADER.size :]
        *named, checksum = HEADER.unpack(data[: HEADER.size])
        _, made_by, content, length = named
        if zlib.crc32(body, zlib.crc32(HEADER.pack(*named, 0))) != checksum or length > len(body):
            raise UserError(DAMAGED)
        if made_by != fingerprint(model):
            raise UserError("this was compressed with another model; decompress it with that one")
        front = body[:length]
        line, _, rest = (front if front[:1] == b"{" else lzma.decompress(front)).partition(b"\n")
        facts = json.loads(line)
        ends = list(itertools.accumulate(facts.pop("blobs", []), initial=0))
        blobs = tuple(rest[start:end] for start, end in itertools.pairwise(ends))
        return cls(facts, body[length:], content, blobs)

    def check(self, content: int) -> None:
        """What came out must be what went in."""
        if content != self.content:
            raise UserError(DERAILED)


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
