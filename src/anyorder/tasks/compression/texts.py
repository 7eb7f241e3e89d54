r"""Lossless compression of texts with the model's own conditionals and a range coder.

A text is cut into pieces, which are coded side by side, each window by window: the first from nothing, every other one
given the characters before it, which are half of what it sees. Each character costs $-\log_2 p(x_t \mid x_{<t})$ bits
along the chain of its window, and the coder comes within a fraction of a per cent of their sum. Characters outside the
alphabet are kept aside. With fewer ``calls`` than characters, windows know nothing of each other and several characters
a call are coded side by side: quicker, and longer by what ``TextModel.budget`` predicts.

The decoder must see the very probabilities of the encoder, bit by bit, though floating-point sums depend on how they
are computed. So both *walk*: the encoder does not use the single pass that scoring does, but takes the same steps, with
the same rows in the same batches and one thread, as the decoder will. On the same machine with the same versions this
is exact. Elsewhere a last bit may differ and derail the decoder; the checksum of the text shows it, and nothing wrong
is ever returned.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from anyorder.data.text import UNKNOWN, Alphabet
from anyorder.errors import UserError
from anyorder.model import AnyOrderModel
from anyorder.model.few_steps import Budget, call_starts
from anyorder.query import Chain, Query, padded_left
from anyorder.support.boundary import reading
from anyorder.support.checks import whole
from anyorder.support.threads import torch_threads
from anyorder.tasks.compression.coder import Reader, Sealed, Stream, Writer, padded

MAGIC, FORMER = b"AOT3", b"AOT2"
PIECE = 2000  # characters that a piece has at least: fewer beginnings from nothing, or more of them at a time
ROWS = 128  # windows that are walked together: part of the format, since it decides how sums are rounded


def compress_text(model: AnyOrderModel, alphabet: Alphabet, text: str, *, calls: int | Budget | None = None) -> bytes:
    """The text in as few bytes as the model can; :func:`decompress_text` with the same model gives it back."""
    codes = alphabet.encode(text)
    facts: dict[str, Any] = {"count": len(codes), **_set_aside(alphabet, text, codes)}
    if calls is None:
        facts["pieces"] = min(max(len(codes) // PIECE, 1), ROWS)
    else:  # what a budget of calls costs is known of windows from nothing
        facts["starts"] = list(call_starts(calls, model.variables))
    writer = Writer()
    _code(model, np.where(codes == UNKNOWN, 0, codes), writer, facts)
    return Sealed(facts, padded(writer.words(), len(codes)), _checksum(text)).written(MAGIC, model)


def decompress_text(model: AnyOrderModel, alphabet: Alphabet, data: bytes) -> str:
    """The text that :func:`compress_text` compressed with this model."""
    with reading("the compressed text"):
        sealed = Sealed.read(MAGIC, model, data, former=FORMER)
        codes = np.zeros(sealed.count("count"), dtype=np.int64)
        starts = sealed.facts.get("starts")
        if starts is not None and starts != sorted({*starts, 0} & set(range(model.variables))):
            raise UserError(f"starts: expected increasing positions from 0 on, got {starts!r:.80}")
        if not 1 <= whole("pieces", sealed.facts.get("pieces", 1)) <= ROWS:
            raise UserError(f"pieces: expected up to {ROWS}, got {sealed.facts['pieces']}")
        _code(model, codes, Reader(sealed.stream), sealed.facts)
        text = _put_back(alphabet, codes, sealed.facts)
        sealed.check(_checksum(text))
        return text


def _checksum(text: str) -> int:
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))


def _code(model: AnyOrderModel, codes: Int[np.ndarray, " positions"], stream: Stream, facts: dict[str, Any]) -> None:
    """Take the codes, or fill them in, window by window."""
    pieces = facts.get("pieces")
    windows = _apart(len(codes), model.variables) if pieces is None else _rounds(len(codes), model.variables, pieces)
    for positions, fresh in windows:
        inside, asked = torch.from_numpy(positions >= 0), torch.from_numpy(fresh)
        chain = model.chain(Query(inside & ~asked, asked), torch.Generator().manual_seed(0))
        context = torch.from_numpy(np.where(fresh | (positions < 0), 0, codes[positions])).float()
        with torch_threads(1), torch.no_grad():
            for step, features in _features(model, context, chain, facts.get("starts")):
                target = chain.order[:, step]
                rows = (target >= 0).nonzero()[:, 0]
                head = model.heads.of(0)
                probs = head(features[rows, : head.size].double()).probs().numpy()
                here = positions[rows.numpy(), target[rows].numpy()]
                codes[here] = stream.code(codes[here], probs)
                context[rows, target[rows]] = torch.from_numpy(codes[here]).float()


def _features(
    model: AnyOrderModel, context: Tensor, chain: Chain, starts: list[int] | None
) -> Iterator[tuple[int, Tensor]]:
    """The features of each step; between two of them the caller writes what it has learned into ``context``."""
    if starts is None:
        walk = model.network.walk(context, chain)
        for step in range(chain.steps):
            yield step, walk.features()
            walk.tell(context.gather(1, chain.order[:, step : step + 1].clamp(min=0))[:, 0])
        return
    for start, end in zip(starts, (*starts[1:], model.variables), strict=True):
        if start >= chain.steps:
            return
        path = torch.cat([chain.prefix, chain.order[:, :start]], dim=1)
        beside = model.network.beside(context, chain.known_before(start), padded_left(path))
        for step in range(start, min(end, chain.steps)):
            index = chain.order[:, step].clamp(min=0)
            yield step, beside[torch.arange(len(index)), index]


Windows = Iterator[tuple[Int[np.ndarray, "rows length"], Bool[np.ndarray, "rows length"]]]
"""Positions of the windows that are walked together, -1 beyond the end; and which of them are coded there."""


def _rounds(count: int, length: int, pieces: int) -> Windows:
    """Piece beside piece, each a window further in every round."""
    edges = np.linspace(0, count, pieces + 1).astype(np.int64)
    begins, ends = edges[:-1], edges[1:]
    step, coded = max(length // 2, 1), 0
    while bool((begins + coded < ends).any()):
        start = 0 if coded == 0 else coded + step - length
        rows = np.flatnonzero(begins + coded < ends)
        positions = begins[rows, None] + start + np.arange(length)
        positions = np.where(positions < ends[rows, None], positions, -1)
        yield positions, positions >= begins[rows, None] + coded
        coded = start + length


def _apart(count: int, length: int) -> Windows:
    """Windows that know nothing of each other."""
    windows = -(-count // length)
    for start in range(0, windows, ROWS):
        positions = np.arange(start * length, min(start + ROWS, windows) * length).reshape(-1, length)
        positions = np.where(positions < count, positions, -1)
        yield positions, positions >= 0


def _set_aside(alphabet: Alphabet, text: str, codes: Int[np.ndarray, " positions"]) -> dict[str, Any]:
    """Where the alphabet lacks a character: gaps between such positions, and the characters."""
    positions = np.flatnonzero(codes == UNKNOWN)
    if not len(positions):
        return {}
    spread = alphabet.spread(text)
    characters = "".join(spread[position] for position in positions)
    return {"gaps": np.diff(positions, prepend=0).tolist(), "characters": characters}


def _put_back(alphabet: Alphabet, codes: Int[np.ndarray, " positions"], facts: dict[str, Any]) -> str:
    symbols = [alphabet.symbols[code] for code in codes]
    for position, character in zip(np.cumsum(facts.get("gaps", [])).tolist(), facts.get("characters", ""), strict=True):
        symbols[int(position)] = character
    return alphabet.joined("".join(symbols))
