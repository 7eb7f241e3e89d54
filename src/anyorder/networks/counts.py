"""Counts of a text as a network: an n-gram model that answers given any evidence.

Nothing is trained: stretches of up to ``order`` symbols are counted once (:mod:`.counting.grams`) and smoothed
(:mod:`.counting.smoothing`), and what is known on both sides of a question is carried to it by messages
(:mod:`.counting.messages`). Variables are the positions of a text, all of one alphabet. A chain from left to right
takes one round of messages, a few of which are made again on the way; in any other order every step takes its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from anyorder.errors import UserError
from anyorder.networks.base import MaskNetwork, Walk
from anyorder.networks.counting.grams import Grams
from anyorder.networks.counting.messages import Ascending, Evidence, beside
from anyorder.networks.counting.smoothing import KneserNey
from anyorder.networks.layout import Layout
from anyorder.networks.parts.lookahead import GuessingLookahead, Lookahead, answered_at
from anyorder.query import PAD, Chain
from anyorder.support.checks import check_fields, whole

ORDER = 8  # symbols of the longest stretches: more gain next to nothing from some ten million characters
SMALL = 255  # symbols whose number fits into a byte, and so does how many of them may follow
Array = np.ndarray


@dataclass(eq=False)
class Counts(MaskNetwork):
    """``sizes``: how many stretches of 1, 2, ... symbols occur; the longest are as long as ``sizes``."""

    name: ClassVar[str] = "counts"
    trainable: ClassVar[bool] = False

    sizes: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        self.sizes = tuple(whole("sizes", size) for size in self.sizes)
        check_fields(self, section=self.name)
        symbols = set(self.layout.levels)
        if len(symbols) != 1 or 0 in symbols or self.layout.width not in (0, *symbols):
            raise UserError("counts are for texts: all variables must have the same levels, and a logit for each")
        narrow = torch.uint8 if self.symbols <= SMALL else torch.int32
        self.register_buffer("symbol", torch.zeros(sum(self.sizes), dtype=narrow))
        self.register_buffer("continued", torch.zeros(sum(self.sizes[:-1]), dtype=narrow))
        self.register_buffer("count", torch.ones(sum(self.sizes), dtype=torch.int32))
        self._ready: KneserNey | None = None

    @classmethod
    def of(cls, layout: Layout, codes: Int[Array, " positions"], order: int = ORDER) -> Counts:
        """The counts of a text."""
        grams = Grams.count(codes, layout.levels[0], whole("order", order))
        network = cls(layout, tuple(map(len, grams.keys)))
        packed = {name: torch.from_numpy(part) for name, part in grams.packed().items()}
        network.load_state_dict({name: part.to(network.get_buffer(name).dtype) for name, part in packed.items()})
        return network

    @property
    def symbols(self) -> int:
        return self.layout.levels[0]

    def _load_from_state_dict(self, *arguments: Any) -> None:
        super()._load_from_state_dict(*arguments)
        self._ready = None
        if not self.get_buffer("count").is_meta:
            self._grams()

    def _grams(self) -> Grams:
        arrays = {name: self.get_buffer(name).cpu().numpy() for name in ("symbol", "continued", "count")}
        return Grams.unpacked(self.symbols, self.sizes, **arrays)

    @property
    def smoothed(self) -> KneserNey:
        """Made ready when first asked for. Threads that come together may each make it: the results are equal."""
        if self._ready is None:
            if not self.sizes:
                raise UserError("nothing has been counted yet: fit the model first")
            self._ready = KneserNey(self._grams())
        return self._ready

    def beside(
        self,
        values: Float[Tensor, "batch variables"],
        known: Bool[Tensor, "batch variables"],
        prefix: Int[Tensor, "batch prefix"] | None = None,
    ) -> Float[Tensor, "batch variables width"]:
        codes, given = _codes(values, known), known.cpu().numpy()
        laws = [beside(Evidence(self.smoothed, *row)) for row in zip(codes, given, strict=True)]
        return self._features(np.stack(laws) if laws else np.zeros((0, *codes.shape[1:], self.symbols)), values)

    def at(
        self,
        values: Float[Tensor, "batch variables"],
        known: Bool[Tensor, "batch variables"],
        target: Int[Tensor, " batch"],
        prefix: Int[Tensor, "batch prefix"] | None = None,
    ) -> Float[Tensor, "batch width"]:
        answers = self._answers(_codes(values, known), known.cpu().numpy(), target.cpu().numpy())
        return self._features(answers, values)

    def along(self, values: Float[Tensor, "batch variables"], chain: Chain) -> Float[Tensor, "batch steps width"]:
        order = chain.order.cpu().numpy()
        evidence = chain.evidence
        codes, given = _codes(values, evidence | chain.asked), evidence.cpu().numpy()
        laws = np.full((*order.shape, self.symbols), 1 / self.symbols)
        rising = _rising(order)
        rows, steps = np.nonzero((order != PAD) & rising[:, None])
        targets = order[rows, steps]
        # Where all before it is known by then and nothing behind it is, a step needs no messages.
        asked = chain.asked.cpu().numpy()
        plain = self._plain(given | asked, given)[rows, targets]
        laws[rows[plain], steps[plain]] = self._after(codes[rows[plain]], targets[plain])
        for row in np.unique(rows[~plain]):
            walk = Ascending(Evidence(self.smoothed, codes[row], given[row]), asked[row])
            wanted = set(steps[~plain & (rows == row)].tolist())
            for step in range(max(wanted) + 1):
                target = order[row, step]
                if step in wanted:
                    laws[row, step] = walk.probs(target)
                walk.tell(target, codes[row, target])
        for row in np.flatnonzero(~rising):
            known = given[row].copy()
            for step in np.flatnonzero(order[row] != PAD).tolist():
                target = order[row, step]
                laws[row, step] = self._answers(codes[row : row + 1], known[None], target[None])[0]
                known[target] = True
        return self._features(laws, values)

    def walk(self, values: Float[Tensor, "batch variables"], chain: Chain) -> Walk:
        return _CountsWalk(self, values, chain)

    def look_ahead(self, values: Float[Tensor, "batch variables"], chain: Chain) -> Lookahead:
        return _CountsLookahead(self, values, chain)

    @property
    def drafter(self) -> Counts:
        return self  # its drafts are all right

    def _plain(
        self, known: Bool[Array, "rows variables"], evidence: Bool[Array, "rows variables"]
    ) -> Bool[Array, "rows variables"]:
        """Where nothing behind a position is evidence, and all that a context can hold before it is known."""
        behind = np.flip(np.logical_or.accumulate(np.flip(evidence, 1), axis=1), 1)  # here or later
        size = self.smoothed.order - 1
        missing = np.cumsum(np.pad(~known, ((0, 0), (1, 0))), axis=1)
        position = np.arange(known.shape[1])
        gaps = missing[:, position] - missing[:, np.maximum(position - size, 0)]
        plain: Bool[Array, "rows variables"] = (gaps == 0) & ~np.pad(behind[:, 1:], ((0, 0), (0, 1)))
        return plain

    def _after(
        self, codes: Int[Array, "steps variables"], target: Int[Array, " steps"]
    ) -> Float[Array, "steps symbols"]:
        """Probabilities at each target given all that a context can hold before it."""
        laws = np.zeros((len(codes), self.symbols))
        size = self.smoothed.order - 1
        lengths = np.minimum(target, size)
        for length in np.unique(lengths):
            rows = np.flatnonzero(lengths == length)
            columns = target[rows, None] - np.arange(length, 0, -1)
            weights = self.symbols ** np.arange(length - 1, -1, -1)
            contexts = (codes[rows[:, None], columns] * weights).sum(1) if length else np.zeros(len(rows), np.int64)
            laws[rows] = self.smoothed.after(contexts, int(length))
        return laws

    def _answers(
        self, codes: Int[Array, "rows variables"], known: Bool[Array, "rows variables"], target: Int[Array, " rows"]
    ) -> Float[Array, "rows symbols"]:
        """Probabilities at one position of each row given what else is known of it."""
        known = known & (np.arange(known.shape[1]) != target[:, None])
        laws = np.zeros((len(codes), self.symbols))
        plain = self._plain(known, known)[np.arange(len(target)), target]
        laws[plain] = self._after(codes[plain], target[plain])
        others = np.flatnonzero(~plain)
        if not len(others):
            return laws
        # Draws for one text have much in common, above all at first: each case is worked out once.
        cases = np.column_stack([np.where(known, codes, -1)[others], target[others]])
        _, first, which = np.unique(cases, axis=0, return_index=True, return_inverse=True)
        found = []
        for row in others[first]:
            evidence, position = Evidence(self.smoothed, codes[row], known[row]).around(int(target[row]))
            asked = np.zeros(len(evidence.codes), dtype=bool)
            asked[position] = True
            found.append(Ascending(evidence, asked).probs(position))
        laws[others] = np.stack(found)[which.reshape(-1)]
        return laws

    def _features(self, laws: Float[Array, "*batch symbols"], values: Tensor) -> Float[Tensor, "*batch width"]:
        """Log-probabilities, as a head of levels reads them."""
        return torch.from_numpy(np.log(laws[..., : self.layout.width])).to(values)


class _CountsWalk(Walk):
    """One walk for each row that needs messages and is asked from left to right; other steps are asked one by one."""

    def __init__(self, network: Counts, values: Tensor, chain: Chain) -> None:
        self.network, self.like = network, values
        self.order = chain.order.cpu().numpy()
        self.known, self.asked = chain.evidence.cpu().numpy().copy(), chain.asked.cpu().numpy()
        self.codes = _codes(values, chain.evidence)
        self.rising = _rising(self.order)
        # A row whose evidence lies all before what is asked, with no gap, never needs messages.
        self.plain = network._plain(self.known | self.asked, self.known)
        self.walks: dict[int, Ascending] = {}
        self.evidence = self.known.copy()
        self.step = 0

    def features(self, rows: Tensor | None = None) -> Tensor:
        here = np.arange(len(self.order)) if rows is None else rows.cpu().numpy()
        targets = np.maximum(self.order[here, self.step], 0)
        laws = np.full((len(here), self.network.symbols), 1 / self.network.symbols)
        by_walk = self.rising[here] & ~self.plain[here, targets] & (self.order[here, self.step] != PAD)
        others = np.flatnonzero(~by_walk & (self.order[here, self.step] != PAD))
        laws[others] = self.network._answers(self.codes[here[others]], self.known[here[others]], targets[others])
        for index in np.flatnonzero(by_walk):
            laws[index] = self._walk(int(here[index])).probs(int(targets[index]))
        return self.network._features(laws, self.like)

    def _walk(self, row: int) -> Ascending:
        """The walk of a row, made when it is first needed and told what was told before."""
        if row not in self.walks:
            evidence = Evidence(self.network.smoothed, self.codes[row].copy(), self.evidence[row])
            walk = self.walks[row] = Ascending(evidence, self.asked[row])
            for target in self.order[row, : self.step]:
                walk.tell(int(target), int(self.codes[row, target]))
        return self.walks[row]

    def tell(self, value: Tensor) -> None:
        codes = value.cpu().numpy().astype(np.int64)
        for row, target in enumerate(self.order[:, self.step].tolist()):
            if target != PAD:
                self.codes[row, target], self.known[row, target] = codes[row], True
                if row in self.walks:
                    self.walks[row].tell(target, int(codes[row]))
        self.step += 1


class _CountsLookahead(GuessingLookahead):
    """Looks with the messages of the chain, as a walk does; where several steps are skipped, each has its own."""

    def __init__(self, network: Counts, values: Tensor, chain: Chain) -> None:
        super().__init__(values, chain)
        self.network = network
        order, asked, known = (part.cpu().numpy() for part in (chain.order, chain.asked, chain.evidence))
        # Rows with a step that needs messages, asked from left to right.
        rows = _rising(order) & (asked & ~network._plain(known | asked, known)).any(axis=1)
        codes = _codes(values, chain.evidence)
        self.walks = {
            int(row): Ascending(Evidence(network.smoothed, codes[row], known[row]), asked[row])
            for row in np.flatnonzero(rows)
        }

    def look(self, guesses: Tensor, reach: int) -> Tensor:
        found = answered_at(self.network, self.cases(guesses, reach))
        if reach > 1 or not self.walks:
            return found
        ahead, guessed = self.upcoming(guesses.shape[1] + 1).tolist(), guesses.long().tolist()
        for row, walk in self.walks.items():
            trial, laws = walk.copy(), []
            for right, target in enumerate(ahead[row]):
                if target == PAD:
                    break
                laws.append(trial.probs(target))
                if right < len(guessed[row]):
                    trial.tell(target, guessed[row][right])
            if laws:
                found[row, : len(laws), 0] = self.network._features(np.stack(laws), self.values)
        return found

    def settle(self, right: Tensor, value: Tensor) -> None:
        ahead, guessed = self.upcoming(self.guesses.shape[1] + 1).tolist(), self.guesses.long().tolist()
        for row, walk in self.walks.items():
            told = [*guessed[row][: int(right[row])], int(value[row])]
            for target, symbol in zip(ahead[row], told, strict=False):
                if target != PAD:
                    walk.tell(target, symbol)
        super().settle(right, value)


def _codes(
    values: Float[Tensor, "batch variables"], known: Bool[Tensor, "batch variables"]
) -> Int[Array, "batch variables"]:
    """The symbols of what is known, 0 elsewhere: what is unknown must not be read."""
    codes: Int[Array, "batch variables"] = values.detach().where(known, 0.0).cpu().numpy().astype(np.int64)
    return codes


def _rising(order: Int[Array, "rows steps"]) -> Bool[Array, " rows"]:
    """Whether each row is asked from left to right."""
    last = np.maximum.accumulate(np.where(order == PAD, -1, order), axis=1)
    late = (order[:, 1:] != PAD) & (order[:, 1:] <= last[:, :-1])
    rising: Bool[Array, " rows"] = ~late.any(axis=1)
    return rising
