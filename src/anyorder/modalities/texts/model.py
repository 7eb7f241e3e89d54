"""Texts: the public face of a fitted model, in characters.

A window of ``length`` positions is one row of as many variables, all alike. A shorter text names fewer of them, which
costs less along a chain network; a longer one is read in overlapping windows, each hole answered where it has context
on both sides.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from anyorder.data.text import Alphabet, Unit, Windows, holes_in
from anyorder.errors import UserError
from anyorder.modalities.face import FittedModel
from anyorder.modalities.texts.scores import TextScores, score_text
from anyorder.model.few_steps import Budget, cheapest, check_calls, sampler_for, surprise_matrix
from anyorder.model.likelihood import log_prob
from anyorder.model.sampling import Sampler, draws, one_by_one, scored_draws, seeded
from anyorder.model.speculative import Drafted
from anyorder.query import Query
from anyorder.support.boundary import field
from anyorder.support.checks import checked_seed, whole
from anyorder.support.memory import check_room
from anyorder.tasks.compression import compress_text, decompress_text


@dataclass(frozen=True, repr=False)
class Filling:
    """One way to fill the holes of a text.

    ``confidence``: for every position the probability of its character when it was chosen, 1 where it was given.
    ``nats``: the log-probability of all that was filled in, jointly. ``holes``: the positions that were filled.
    """

    text: str
    confidence: tuple[float, ...]
    nats: float
    holes: tuple[int, ...]

    def __repr__(self) -> str:
        return f"Filling({self.text!r}, {len(self.holes)} positions filled, log p = {self.nats:.4g})"


class TextModel(FittedModel):
    """A fitted model of texts: fills, continues, scores and draws them.

    Made by :func:`anyorder.fit_text` or :func:`anyorder.load`. A window of :attr:`length` positions is what it sees at
    once.
    """

    modality = "text"
    noun = "texts"

    def __repr__(self) -> str:
        return f"TextModel(length {self.length}, {len(self.alphabet.symbols)} symbols)"

    def _check(self) -> None:
        with field("alphabet"):
            alphabet = self.alphabet
            if not isinstance(alphabet.symbols, str) or alphabet.unit not in get_args(Unit):
                raise UserError(f"expected a text of symbols, and a unit: {' or '.join(get_args(Unit))}")
            if alphabet.unit == "bytes" and max(alphabet.symbols) > "\xff":
                raise UserError("its symbols are not bytes")
            if not all(variable.levels == tuple(alphabet.symbols) for variable in self.schema.variables):
                raise UserError("its symbols are not the levels of the variables")

    @cached_property
    def alphabet(self) -> Alphabet:
        """The symbols that the model knows."""
        return Alphabet(self.card["alphabet"]["symbols"], self.card["alphabet"]["unit"])

    @property
    def length(self) -> int:
        """How many positions one window has."""
        return self.core.variables

    def fill(self, text: str, *, mark: str = "_", draws: int | None = None, seed: int = 0) -> Any:
        """Fill the holes of a text; what is given stays as it is.

        Texts longer than a window are filled window by window, from left to right. Not for holes of unknown length:
        every mark becomes exactly one character (in a model of bytes, one byte).

        Parameters
        ----------
        text
            A text with a ``mark`` wherever a character is missing.
        mark
            What stands for one missing character.
        draws
            So many joint draws. None fills greedily: the most probable character at each step, which is no draw, and
            not always the most probable text.
        seed
            Decides the draws.

        Returns
        -------
        Filling, or a list of them with ``draws``
            The text, how sure each filled character is, and the log-probability of all that was filled in.

        Examples
        --------
        >>> filled = texts.fill("the q__ck brown fox")
        >>> len(filled.text), filled.holes
        (19, (5, 6))
        >>> len(texts.fill("the q__ck", draws=3, seed=0))
        3
        """
        holes = holes_in(self.alphabet.spread(text), self.alphabet.spread(mark))
        codes = self.alphabet.check(text.replace(mark, self.alphabet.symbols[0]))  # whatever: a hole's code is not read
        count, filled = 1 if draws is None else whole("draws", draws), tuple(np.flatnonzero(holes).tolist())
        check_room("draws", count, len(codes))
        values = torch.from_numpy(codes).double().expand(count, -1).clone()
        nats = torch.zeros(values.shape, dtype=torch.float64)
        generator = seeded(self.core, seed)
        known = torch.from_numpy(~holes)
        for window, asked in _windows(known, self.length):
            part, chances = self._filled(values[:, window], known[window], asked, generator, greedy=draws is None)
            values[:, window], nats[:, window] = part, nats[:, window] + chances
            known[window] |= asked
        fillings = [
            Filling(self.alphabet.decode(row.long().numpy()), tuple(chance.exp().tolist()), float(chance.sum()), filled)
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
        """Draw texts, from nothing or from a beginning.

        Parameters
        ----------
        n
            How many.
        length
            Positions of each text; a whole window by default.
        beginning
            What every text begins with.
        seed
            The same seed gives the same texts.
        drafts
            So many characters at a time are drafted and checked by one call: the model's own distribution in fewer
            calls (:mod:`anyorder.model.speculative`). On a processor fewer calls are not always less time.
        calls
            So many network calls in all, or a measured :meth:`budget`; characters of one call are drawn side by side,
            which is not the model's own distribution (:mod:`anyorder.model.few_steps`).
        order
            ``"confidence"`` draws first where the model is surest: easy on the eye, but less varied than the corpus.

        Returns
        -------
        list of str

        Examples
        --------
        >>> texts.sample(2, length=12, beginning="the ", seed=0)[0][:4]
        'the '
        """
        if drafts is not None and (calls is not None or order == "confidence"):
            raise UserError("drafts= draws exactly, calls= and order='confidence' do not: give one or the other")
        n = whole("n", n)
        check_room("n", n, self.length)
        start = self.alphabet.check(beginning)
        size = self.length if length is None else whole("length", length)
        if not len(start) < size <= self.length:
            raise UserError(f"length must be between {len(start) + 1} and {self.length}, got {size}")
        sampler: Sampler = one_by_one if drafts is None else Drafted(whole("drafts", drafts))
        if calls is not None or order != "model":
            sampler = sampler_for(self.core, calls, order)
        values = torch.zeros(n, self.length)
        values[:, : len(start)] = torch.from_numpy(start).float()
        position = torch.arange(self.length)
        known = position < len(start)
        query = Query(known.expand(n, -1), (~known & (position < size)).expand(n, -1))
        drawn = draws(self.core, values, query, seed=seed, sampler=sampler)
        return [self.alphabet.decode(row[:size].astype(np.int64)) for row in drawn]

    def log_prob(
        self, texts: Sequence[str], *, given: Any = None, orders: int = 1, seed: int = 0
    ) -> Float[np.ndarray, " texts"]:
        """The log-likelihood of each text, in nats, jointly.

        Not for ranking texts of different lengths: longer ones are nearly always less likely; compare per character.

        Parameters
        ----------
        texts
            A list of texts of at most a window each; for longer ones use :meth:`bits_per_character`.
        given
            Booleans [texts, positions] of which characters are evidence. Positions beyond a text do not count.
        orders
            Average the probability over so many orders (SFARM eq. 14): costs as many passes.
        seed
            Decides the orders.

        Returns
        -------
        array
            One number a text.

        Examples
        --------
        >>> likely, unlikely = texts.log_prob(["the quick", "xqzjkvbwp"])
        >>> bool(likely > unlikely)
        True
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
        return log_prob(self.core, values, Query(known & observed, observed & ~known), orders=orders, seed=seed)

    def bits_per_character(self, text: str, *, most: int | None = None, orders: int = 1, seed: int = 0) -> float:
        """Bits per character of a long text, cut into windows that do not overlap, each read from nothing.

        Parameters
        ----------
        text
            Held-out text of the model's alphabet.
        most
            So many windows, evenly spread; all of them if None.
        orders, seed
            As in :meth:`log_prob`.

        Returns
        -------
        float

        Examples
        --------
        >>> texts.bits_per_character("the quick brown fox jumps over the lazy dog. ") > 0
        True
        """
        windows = Windows(torch.from_numpy(self.alphabet.check(text)), self.length).spread(most)
        everything = Query.marginal(torch.ones(windows.shape, dtype=torch.bool))
        nats = log_prob(self.core, windows, everything, orders=orders, seed=seed)
        return float(-nats.mean() / (self.length * math.log(2)))

    def scores(
        self, text: str, *, most: int | None = None, holes: float = 0.3, orders: int = 1, seed: int = 0
    ) -> TextScores:
        """Bits per character of a text by kind of question: jointly, of random characters alone, of scattered holes.

        Parameters
        ----------
        text
            Held-out text.
        most
            So many windows, evenly spread; all of them if None.
        holes
            The share of characters that are hidden in the last kind.
        orders
            Average the probability over so many orders, as in :meth:`log_prob`.
        seed
            Decides which characters are hidden, and the orders.

        Returns
        -------
        TextScores
            Means with standard errors over windows.

        Examples
        --------
        >>> found = texts.scores("the quick brown fox jumps over the lazy dog. ", seed=0)
        >>> found.joint > found.conditional  # with most of the text known, the rest is easier
        True
        """
        return score_text(self, text, most=most, holes=holes, orders=orders, seed=checked_seed(seed))

    def budget(self, text: str, calls: int, *, most: int = 64, seed: int = 0) -> Budget:
        """Where ``calls`` calls for a whole window should begin, measured on held-out text, and what they cost.

        For :meth:`sample` and :meth:`compress`. Measuring takes a pass for every position; equal groups need none.

        Parameters
        ----------
        text
            Held-out text.
        calls
            How many network calls a window may take.
        most
            How many windows are measured.
        seed
            Decides the order, for a model without one of its own.

        Returns
        -------
        Budget

        Examples
        --------
        >>> texts.budget("the quick brown fox jumps over the lazy dog. " * 2, 4).calls
        4
        """
        windows = Windows(torch.from_numpy(self.alphabet.check(text)), self.length).spread(most)
        return cheapest(surprise_matrix(self.core, windows, seed=seed), calls)

    def compress(self, data: Any, *, calls: int | Budget | None = None) -> bytes:  # type: ignore[override]
        """A text in as few bytes as the model can, without loss.

        Slow beside a general compressor: one network call a character and window. Needs the extra ``compress``. The
        same model, on the same kind of machine, gives the text back.

        Parameters
        ----------
        data
            Any text; characters outside the alphabet are kept aside.
        calls
            So many network calls for each window, or a measured :meth:`budget`: fewer are quicker and cost bytes. One
            for every character if None.

        Returns
        -------
        bytes

        Examples
        --------
        >>> texts.decompress(texts.compress("the quick brown fox"))
        'the quick brown fox'
        """
        if not isinstance(data, str):
            raise UserError(f"a model of texts compresses a text, got {type(data).__name__}")
        return compress_text(self.core, self.alphabet, data, calls=check_calls(self.core, calls))

    def decompress(self, data: bytes) -> str:
        """The text that :meth:`compress` compressed with this model.

        Parameters
        ----------
        data
            What :meth:`compress` returned.

        Returns
        -------
        str

        Examples
        --------
        >>> texts.decompress(texts.compress("the fox", calls=3))
        'the fox'
        """
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
                    f"text {row} has {len(codes)} characters, but a window has {self.length}; use bits_per_character"
                )
            values[row, : len(codes)] = torch.from_numpy(codes).double()
            observed[row, : len(codes)] = True
        return values, observed

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
        spare = (0, self.length - width)
        query = Query(*(torch.nn.functional.pad(mask, spare).expand(count, -1) for mask in (known, asked)))
        padded = torch.nn.functional.pad(values, spare).float()
        filled, nats = scored_draws(self.core, padded, query, generator, greedy=greedy)
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
