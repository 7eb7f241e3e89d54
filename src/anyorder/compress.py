r"""Lossless compression of texts with the model's own conditionals and a range coder.

A text is cut into windows; each character costs $-\log_2 p(x_t \mid x_{<t})$ bits along the chain of its window, and
the coder comes within a fraction of a per cent of their sum. Characters outside the alphabet are kept aside, and the
whole begins with checksums: of the model, of the stream and of the text.

The decoder must see the very probabilities of the encoder, bit by bit, though floating-point sums depend on how they
are computed. So both *walk*: the encoder does not use the single pass that scoring does, but takes the same steps, with
the same rows in the same batches and one thread, as the decoder will. On the same machine with the same versions this
is exact. Elsewhere a last bit may differ and derail the decoder; the checksum of the text tells, and nothing wrong is
ever returned.
"""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from anyorder.data.text import UNKNOWN, Alphabet
from anyorder.errors import UserError
from anyorder.query import Chain, Query
from anyorder.text import TextModel
from anyorder.threads import torch_threads

Places: TypeAlias = Int[np.ndarray, " rows"]
Probs: TypeAlias = Float[np.ndarray, "rows symbols"]

MAGIC = b"AOT1"
HEADER = struct.Struct("<4s8sIIQI")  # magic, model, checksum of the text, of the stream, positions, bytes set aside
ROWS = 128  # windows that are walked together: part of the format, since it decides how sums are rounded


def compress(model: TextModel, text: str) -> bytes:
    """The text in as few bytes as the model can; :func:`decompress` with the same model gives it back."""
    coder = _constriction()
    codes = model.alphabet.encode(text)
    aside = _set_aside(model.alphabet, text, codes)
    codes = np.where(codes == UNKNOWN, 0, codes)
    encoder = coder.stream.queue.RangeEncoder()
    family = coder.stream.model.Categorical(perfect=False)

    def tell(place: Places, probs: Probs) -> Places:
        told: Places = codes[place]
        encoder.encode(told.astype(np.int32), family, probs)
        return told

    for window in _batches(len(codes), model.length):
        _walk(model, window, tell)
    stream = aside + np.asarray(encoder.get_compressed(), dtype="<u4").tobytes()
    checksums = zlib.crc32(text.encode("utf-8", "surrogatepass")), zlib.crc32(stream)
    return HEADER.pack(MAGIC, fingerprint(model), *checksums, len(codes), len(aside)) + stream


def decompress(model: TextModel, data: bytes) -> str:
    """The text that :func:`compress` compressed with this model."""
    coder = _constriction()
    if len(data) < HEADER.size or data[:4] != MAGIC:
        raise UserError("these bytes are no text compressed by anyorder")
    _, made_by, text_sum, stream_sum, count, aside_length = HEADER.unpack(data[: HEADER.size])
    stream = data[HEADER.size :]
    if zlib.crc32(stream) != stream_sum or aside_length > len(stream) or (len(stream) - aside_length) % 4:
        raise UserError("the compressed text is damaged: its checksum does not agree; copy it again")
    if made_by != fingerprint(model):
        raise UserError("this was compressed with another model; decompress it with that one")
    words = np.frombuffer(stream[aside_length:], dtype="<u4").astype(np.uint32)
    decoder = coder.stream.queue.RangeDecoder(words)
    family = coder.stream.model.Categorical(perfect=False)
    codes = np.zeros(count, dtype=np.int64)

    def tell(place: Places, probs: Probs) -> Places:
        told: Places = np.asarray(decoder.decode(family, probs), dtype=np.int64)
        codes[place] = told
        return told

    for window in _batches(count, model.length):
        _walk(model, window, tell)
    text = _put_back(model.alphabet, codes, stream[:aside_length])
    if zlib.crc32(text.encode("utf-8", "surrogatepass")) != text_sum:
        raise UserError(
            "the text did not come out as it went in: this machine rounds otherwise than the one that compressed it "
            "(another processor or version of torch); decompress it there"
        )
    return text


def fingerprint(model: TextModel) -> bytes:
    """Eight bytes that tell models apart: of the weights and all that describes them."""
    digest = hashlib.sha256(json.dumps(model.core.description(), sort_keys=True).encode())
    for name, tensor in sorted(model.core.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.cpu().contiguous().numpy().tobytes())
    return digest.digest()[:8]


def _batches(count: int, length: int) -> Iterator[Int[np.ndarray, "rows length"]]:
    """The positions of the windows that are walked together; -1 beyond the end of the text."""
    places = np.arange(-(-count // length) * length).reshape(-1, length)
    places = np.where(places < count, places, -1)
    for start in range(0, len(places), ROWS):
        yield places[start : start + ROWS]


@torch.no_grad()
def _walk(
    model: TextModel,
    places: Int[np.ndarray, "rows length"],
    tell: Callable[[Places, Probs], Places],
) -> None:
    """Walk the chains of these windows; ``tell`` hears of the probabilities at some positions and gives the codes."""
    inside = torch.from_numpy(places >= 0)
    chain: Chain = model.core.chain(Query.marginal(inside), torch.Generator().manual_seed(0))
    with torch_threads(1):
        walk = model.core.network.walk(torch.zeros(places.shape), chain)
        for step in range(chain.steps):
            target = chain.order[:, step]
            rows = (target >= 0).nonzero()[:, 0]
            probs = _probs(model, walk.features())[rows.numpy()]
            codes = tell(places[rows.numpy(), target[rows].numpy()], probs)
            told = torch.zeros(len(places))
            told[rows] = torch.from_numpy(codes).float()
            walk.tell(told)


def _probs(model: TextModel, features: Tensor) -> Probs:
    head = model.core.heads.of(0)
    found: Probs = head(features[:, : head.size].double()).probs().numpy()
    return found


def _set_aside(alphabet: Alphabet, text: str, codes: Int[np.ndarray, " positions"]) -> bytes:
    """Where the alphabet lacks a character: gaps between such places, and the characters."""
    places = np.flatnonzero(codes == UNKNOWN)
    if not len(places):
        return b""
    spread = alphabet.spread(text)
    described = {"gaps": np.diff(places, prepend=0).tolist(), "characters": "".join(spread[p] for p in places)}
    return zlib.compress(json.dumps(described).encode(), 9)


def _put_back(alphabet: Alphabet, codes: Int[np.ndarray, " positions"], aside: bytes) -> str:
    symbols = [alphabet.symbols[code] for code in codes]
    if aside:
        described = json.loads(zlib.decompress(aside))
        for place, character in zip(np.cumsum(described["gaps"]).tolist(), described["characters"], strict=True):
            symbols[place] = character
    return alphabet.joined("".join(symbols))


def _constriction() -> Any:
    try:
        import constriction
    except ImportError as error:
        raise UserError("compression needs the entropy coder constriction: pip install anyorder[compress]") from error
    return constriction
