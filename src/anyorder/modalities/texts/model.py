"""Texts: from a corpus to a fitted model, and the model's public face in characters.

A window of ``length`` positions is one row of as many variables, all alike. A shorter text names fewer of them, which
costs less along a chain network; a longer one is read in overlapping windows, each hole answered where it has context
on both sides.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from anyorder.data.text import Alphabet, Windows, holes_in
from anyorder.errors import UserError, nearest
from anyorder.modalities.face import FittedModel
from anyorder.modalities.texts.scores import TextScores, score_text
from anyorder.model import row_chunks
from anyorder.model.few_steps import Budget, call_starts, cheapest, draw_by_confidence, draw_in_groups, surprise_matrix
from anyorder.model.speculative import speculate
from anyorder.query import Query
from anyorder.tasks.compression import compress_text, decompress_text


@dataclass(frozen=True)
class Filling:
    """One way to fill the holes of a text.

    ``confidence``: for every position the probability of its character when it was chosen, 1 where it was given.
    ``nats``: the log-probability of all that was filled in, jointly. ``holes``: the positions that were filled.
    """

    text: str
    confidence: tuple[float, ...]
    nats: float
    holes: tuple[int, ...]


class TextModel(FittedModel):
    """A fitted model of texts: fills, continues, scores and draws them."""

    modality = "text"
    noun = "texts"

    def __repr__(self) -> str:
        return f"TextModel(length {self.length}, {len(self.alphabet.symbols)} symbols)"

    @cached_property
    def alphabet(self) -> Alphabet:
        """The symbols that the model knows."""
        return Alphabet(self.card["alphabet"]["symbols"], self.card["alphabet"]["unit"])

    @property
    def length(self) -> int:
        """How many positions one window has."""
        return self.core.variables

    def fill(self, text: str, *, mark: str = "_", draws: int | None = None, seed: int = 0) -> Any:
        """The holes of a text filled: greedily (one :class:`Filling`), or by ``draws`` joint draws (a list of them).

        Greedy takes the most probable character at each step of the chain; it is no draw, and not always the most
        probable text. Texts longer than a window are filled window by window, from left to right.
        """
        if draws is not None and draws < 1:
            raise UserError(f"draws must be 1 or more, got {draws}; leave it out for the greedy fill")
        holes = holes_in(self.alphabet.spread(text), self.alphabet.spread(mark))
        codes = self.alphabet.check(text.replace(mark, self.alphabet.symbols[0]))  # whatever: a hole's code is not read
        count, places = draws or 1, tuple(np.flatnonzero(holes).tolist())
        values = torch.from_numpy(codes).double().expand(count, -1).clone()
        nats = torch.zeros(values.shape, dtype=torch.float64)
        generator = torch.Generator(self.core.device).manual_seed(seed)
        known = torch.from_numpy(~holes)
        for window, asked in _windows(known, self.length):
            part, chances = self._filled(values[:, window], known[window], asked, generator, greedy=draws is None)
            values[:, window], nats[:, window] = part, nats[:, window] + chances
            known[window] |= asked
        fillings = [
            Filling(self.alphabet.decode(row.long().numpy()), tuple(chance.exp().tolist()), float(chance.sum()), places)
            for row, chance in zip(values, nats, strict=True)
        ]
        return fillings[0] if draws is None else fillings

    def sample(
        self,
        n: int = 1,
        *,
        length: int | None = None,
        beginning: str = "",
        seed: int = 0,
        drafts: int | None = None,
        calls: int | Budget | None = None,
        order: Literal["model", "confidence"] = "model",
    ) -> list[str]:
        """``n`` texts of ``length`` positions (a whole window by default), all with the same beginning.

        One character a network call, or fewer calls: ``drafts`` characters at a time drafted and checked, which is the
        same distribution (:mod:`anyorder.model.speculative`); or ``calls`` in all, each drawing several characters side
        by side, which is not (:mod:`anyorder.model.few_steps`): a number, in equal groups, or a measured
        :meth:`budget`. ``order="confidence"`` draws first where the model is surest, which is not the model's own
        distribution either: such texts are less varied than the corpus.
        """
        if order not in ("model", "confidence"):
            raise UserError(f"unknown order {order!r}; {nearest(order, ('model', 'confidence'))}")
        if drafts is not None and (calls is not None or order == "confidence"):
            raise UserError("drafts are exact; calls and order='confidence' are not: give one or the other")
        if n < 1:
            raise UserError(f"n must be 1 or more, got {n}")
        start = self.alphabet.check(beginning)
        size = self.length if length is None else length
        if not len(start) < size <= self.length:
            raise UserError(f"length must lie in {len(start) + 1}..{self.length}, got {size}")
        values = torch.zeros(n, self.length, dtype=torch.float64)
        values[:, : len(start)] = torch.from_numpy(start).double()
        place = torch.arange(self.length)
        query = Query((place < len(start)).expand(n, -1), ((place >= len(start)) & (place < size)).expand(n, -1))
        device = self.core.device
        generator = torch.Generator(device).manual_seed(seed)
        parts = []
        for rows in row_chunks(self.core, n):
            chain = self.core.chain(query.rows(rows), torch.Generator().manual_seed(0)).to(device)
            part = values[rows].float().to(device)
            if order == "confidence":
                if isinstance(calls, Budget):
                    raise UserError("a measured budget belongs to the model's own order; give the number of calls")
                parts.append(draw_by_confidence(self.core, part, query.rows(rows), calls, generator))
            elif drafts is not None:
                parts.append(speculate(self.core, part, chain, generator, drafts=drafts).values)
            elif calls is not None:
                parts.append(draw_in_groups(self.core, part, chain, call_starts(calls, chain.steps), generator))
            else:
                parts.append(self.core.draw(part, chain, generator))
        drawn = torch.cat(parts).cpu()
        return [self.alphabet.decode(row[:size].long().numpy()) for row in drawn]

    def log_prob(self, texts: Sequence[str], *, given: Any = None) -> Float[np.ndarray, " texts"]:
        """log p of each text in nats, jointly, texts of at most a window.

        ``given``: booleans [texts, positions] of which characters are evidence; positions beyond a text do not count.
        """
        values, observed = self._encoded(texts)
        known = torch.zeros_like(observed) if given is None else torch.as_tensor(np.asarray(given, dtype=bool))
        if known.ndim != 2 or len(known) != len(values) or known.shape[1] > self.length:
            raise UserError(
                f"given must be booleans [{len(values)} texts, up to {self.length} positions], got the shape "
                f"{tuple(known.shape)}"
            )
        if known.shape[1] < self.length:
            known = torch.nn.functional.pad(known, (0, self.length - known.shape[1]))
        return self.nats(values, Query(known & observed, observed & ~known))

    @torch.no_grad()
    def nats(self, values: Float[Tensor, "texts positions"], query: Query) -> Float[np.ndarray, " texts"]:
        """log p(x_asked | x_evidence) of encoded texts."""
        total = torch.zeros(len(values), dtype=torch.float64)
        generator = torch.Generator().manual_seed(0)  # of the orders, under a random protocol
        device = self.core.device
        for rows in row_chunks(self.core, len(values)):
            chain = self.core.chain(query.rows(rows), generator).to(device)
            steps = self.core.step_log_prob(values[rows].float().to(device), chain)
            total[rows] = steps.double().sum(dim=1).cpu()
        return total.numpy()

    def bits_per_character(self, text: str, *, most: int | None = None) -> float:
        """Of a long text cut into windows that do not overlap, each from nothing; ``most`` windows, evenly spread."""
        windows = Windows(torch.from_numpy(self.alphabet.check(text)), self.length).spread(most)
        everything = torch.ones(windows.shape, dtype=torch.bool)
        nats = self.nats(windows, Query.marginal(everything))
        return float(-nats.mean() / (self.length * math.log(2)))

    def scores(self, text: str, *, most: int | None = None, holes: float = 0.3, seed: int = 0) -> TextScores:
        """Bits per character of a text: jointly, of marginals (M_card) and of scattered holes given the rest."""
        return score_text(self, text, most=most, holes=holes, seed=seed)

    def budget(self, text: str, calls: int, *, most: int = 64) -> Budget:
        """Where ``calls`` calls for a whole window should begin, measured on held-out text, and what they cost."""
        windows = Windows(torch.from_numpy(self.alphabet.check(text)), self.length).spread(most)
        return cheapest(surprise_matrix(self.core, windows), calls)

    def compress(self, data: Any, **options: Any) -> bytes:
        """A text in as few bytes as the model can.

        ``calls``: the network calls for each window, or a measured :meth:`budget`; fewer are quicker and cost bytes.
        """
        if not isinstance(data, str):
            raise UserError(f"a model of texts compresses a text, got {type(data).__name__}")
        return compress_text(self.core, self.alphabet, data, **options)

    def decompress(self, data: bytes) -> str:
        """The text that :meth:`compress` compressed with this model."""
        return decompress_text(self.core, self.alphabet, data)

    def _encoded(self, texts: Sequence[str]) -> tuple[Float[Tensor, "texts length"], Bool[Tensor, "texts length"]]:
        if isinstance(texts, str):
            raise UserError("log_prob takes a list of texts; write [text] for a single one")
        values = torch.zeros(len(texts), self.length, dtype=torch.float64)
        observed = torch.zeros(values.shape, dtype=torch.bool)
        for row, text in enumerate(texts):
            codes = self.alphabet.check(text)
            if len(codes) > self.length:
                raise UserError(
                    f"text {row} has {len(codes)} characters and a window {self.length}; use bits_per_character"
                )
            values[row, : len(codes)] = torch.from_numpy(codes).double()
            observed[row, : len(codes)] = True
        return values, observed

    @torch.no_grad()
    def _filled(
        self,
        values: Float[Tensor, "draws positions"],
        known: Bool[Tensor, " positions"],
        asked: Bool[Tensor, " positions"],
        generator: torch.Generator,
        *,
        greedy: bool,
    ) -> tuple[Float[Tensor, "draws positions"], Float[Tensor, "draws positions"]]:
        """One window filled, and the log-probability of each filled character when it was chosen."""
        count, width = values.shape
        padded = torch.nn.functional.pad(values, (0, self.length - width))
        marks = (torch.nn.functional.pad(mask, (0, self.length - width)).expand(count, -1) for mask in (known, asked))
        query = Query(*marks)
        nats = torch.zeros(padded.shape, dtype=torch.float64)
        filled = padded
        if bool(asked.any()):
            device = self.core.device
            chain = self.core.chain(query, torch.Generator().manual_seed(0)).to(device)
            drawn = self.core.draw(padded.float().to(device), chain, generator, greedy=greedy)
            steps = self.core.step_log_prob(drawn, chain).double().cpu()
            filled = drawn.double().cpu()
            nats.scatter_(1, chain.order.clamp(min=0).cpu(), steps)
        return filled[:, :width], nats[:, :width]


def _windows(known: Bool[Tensor, " positions"], length: int) -> Iterator[tuple[slice, Bool[Tensor, " window"]]]:
    """Windows over a text and which of their holes are to be filled there: those with context behind them."""
    size = len(known)
    start = 0
    while True:
        window = slice(start, min(start + length, size))
        last = window.stop == size
        asked = ~known[window]
        if not last:  # holes in the last quarter wait for a window in which more of what follows is seen
            asked[3 * length // 4 :] = False
        yield window, asked
        if last:
            return
        start = min(start + max(length // 2, 1), max(size - length, 0))
