r"""Answers of smoothed counts given any evidence: messages along one text, from the left and from the right.

Before each position stands a state: the symbols of the last few positions (the *history*). Where they are known there
is one state; where some are not, one for every way to fill them in, as an array with an axis for each. With
$p(a \mid s)$ the probability of the next symbol,

$$\alpha_{t+1}(s') = \sum_{s, a \to s'} \alpha_t(s)\, p(a \mid s), \qquad
\beta_t(s) = \sum_a p(a \mid s)\, \beta_{t+1}(s' \leftarrow s, a), \qquad
p(x_t = a \mid \text{evidence}) \propto \sum_s \alpha_t(s)\, p(a \mid s)\, \beta_{t+1}(s').$$

Both are exact as long as a history is as long as the counts' contexts. Where too many of its positions are unknown it
is shortened (the counts then answer for a shorter context), and symbols that are next to impossible at an unknown
position, by a first round with short histories, are left out there. Either changes the numbers a little, but what comes
out are probabilities that add up to one in any case.

A history only looks back. So what was asked and is now known leaves the messages from the right as they were, but for
the few whose states had to be shortened because it was unknown: these are made again, with longer histories, when the
walk from left to right comes to them. What is said at a step depends on what is known by then, not on how the walk came
there.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray

from anyorder.networks.counting.smoothing import KneserNey, Numbers

Symbols = NDArray[np.int64]


@dataclass(frozen=True)
class Effort:
    """The most states before a position, where histories are ``short`` enough for tables or are longer.

    ``left_out``: the probability of the symbols that are not considered at an unknown position.
    """

    short: int
    longer: int
    left_out: float = 0.0


FIRST = Effort(short=1_000, longer=1_000)
SECOND = Effort(short=20_000, longer=20_000, left_out=1e-2)
ALONE = Effort(short=20_000, longer=1_000)  # from the left, where nothing is known to the right of a gap
NUMBERS = 2_000_000  # states times symbols before one position: bounds the memory where an alphabet is large
KEPT = 1 << 16  # probabilities of one position that are kept for the walk from the left


@dataclass(frozen=True)
class Gapped:
    """A text of which some positions are unknown: the symbols that are possible at each position."""

    counts: KneserNey
    choices: list[Symbols]
    effort: Effort
    histories: list[int]  # how many symbols the history before each position has, and that behind the last one

    @classmethod
    def of(cls, counts: KneserNey, choices: list[Symbols], effort: Effort) -> Gapped:
        """Histories as long as the effort allows."""
        found = [0]
        for position in range(1, len(choices) + 1):
            found.append(_longest(counts, choices, effort, position, found[-1] + 1))
        return cls(counts, choices, effort, found)

    def __len__(self) -> int:
        return len(self.choices)

    @cached_property
    def open(self) -> Bool[np.ndarray, " positions"]:
        """Where more than one symbol is possible."""
        return np.array([len(own) > 1 for own in self.choices], dtype=bool)

    @property
    def exact(self) -> bool:
        """Whether no history had to be shortened."""
        return all(own == min(at, self.counts.order - 1) for at, own in enumerate(self.histories))

    def axes(self, position: int) -> list[int]:
        """The unknown positions of the history before this one: one axis of its states for each."""
        return [at for at in range(position - self.histories[position], position) if self.open[at]]

    @cached_property
    def _kept(self) -> dict[int, Numbers]:
        return {}

    def probs(self, position: int) -> Float[np.ndarray, "..."]:
        """Probabilities of all symbols at a position, after each state before it: [*states, symbols]."""
        found = self._kept.get(position)
        if found is None:
            found = self._probs(position)
            if found.size <= KEPT:
                self._kept[position] = found
        return found

    def _probs(self, position: int) -> Numbers:
        counts, length = self.counts, self.histories[position]
        contexts, weight = np.zeros((), dtype=np.int64), 1
        probs: Numbers | None = None
        # From the nearest symbol back: states that share a short context share the search for it.
        seen: NDArray[np.int64] | None = None
        for back in range(1, length + 1):
            own = self.choices[position - back]
            if len(own) > 1:
                contexts = (own * weight).reshape(-1, *[1] * contexts.ndim) + contexts
                if probs is not None and seen is not None:
                    count, rows = len(own), contexts.size // len(own)
                    probs = np.tile(probs, (count, 1))
                    seen = (np.arange(count)[:, None] * rows + seen).ravel()
            else:
                contexts = contexts + own[0] * weight
            weight *= counts.symbols
            if back < counts.dense - 1 and back < length:
                continue
            flat = contexts.ravel()
            if length < counts.dense:
                return counts.plain[length + 1][flat].reshape(*contexts.shape, -1)
            if probs is None or seen is None:
                probs, seen = counts.start(flat), np.arange(len(flat))
            if back >= counts.dense:
                seen = counts.lengthen(probs, seen, flat[seen], back, top=back == length)
        if probs is None:
            return counts.after(contexts.ravel(), length).reshape(*contexts.shape, -1)
        return probs.reshape(*contexts.shape, -1)

    def told(self, choices: list[Symbols], position: int) -> tuple[Gapped, int]:
        """The text with one choice where there were several before a position, and where that ends to matter.

        Histories are right behind this position. From the second result on they are as they were, and of positions that
        have as many choices as they had, so the messages from the right are the same.
        """
        size = self.counts.order - 1
        start, found = max(position + 1 - size, 0), list(self.histories)  # none behind it begins before
        for at in range(start, len(self) + 1):
            most = size if at == start else found[at - 1] + 1
            found[at] = _longest(self.counts, choices, self.effort, at, most)
            own = slice(at - found[at], at)
            same = found[at] == self.histories[at] and _sizes(choices[own]) == _sizes(self.choices[own])
            if at > position and same:
                break
        return Gapped(self.counts, choices, self.effort, found), at

    def from_the_right(self, last: int, first: int = 0, behind: list[Numbers] | None = None) -> list[Numbers]:
        """What each state before a position says about the known symbols from there on; ``last``: the last of them.

        Up to a factor for each position. With the messages ``behind`` the last, only those from the first to the last
        are made.
        """
        found = [np.ones(())] * (len(self) + 1) if behind is None else list(behind)
        for position in range(last, first - 1, -1):
            own = self.probs(position)[..., self.choices[position]] * _last_axis(found[position + 1], self, position)
            total = own.sum(-1)
            found[position] = total / total.max()
        return found


def _sizes(choices: list[Symbols]) -> list[int]:
    return list(map(len, choices))


def _longest(counts: KneserNey, choices: list[Symbols], effort: Effort, position: int, most: int) -> int:
    """How long a history before a position can be, up to ``most`` symbols, before it has too many states."""
    best, states = 0, 1
    for length in range(1, min(counts.order - 1, position, most) + 1):
        states *= len(choices[position - length])
        allowed = effort.short if length < counts.dense else effort.longer
        if states > min(allowed, NUMBERS // counts.symbols):
            break
        best = length
    return best


def _last_axis(message: Numbers, text: Gapped, position: int) -> Numbers:
    """A message about the states behind a position, with an axis for its symbol in any case."""
    if message.ndim and text.open[position]:
        return message
    return message[..., None]


@dataclass(frozen=True)
class Evidence:
    """What is known of a text, and all that can be said of the rest of it before anything is asked."""

    counts: KneserNey
    codes: Int[np.ndarray, " positions"]
    known: Bool[np.ndarray, " positions"]

    @property
    def last(self) -> int:
        """The last known position; -1 if there is none."""
        found = np.flatnonzero(self.known)
        return int(found[-1]) if len(found) else -1

    def stretch(self, choices: Sequence[Symbols], effort: Effort) -> Gapped:
        """The text with these symbols where it is unknown."""
        own = [self.codes[at : at + 1] if self.known[at] else choices[at] for at in range(len(self.codes))]
        return Gapped.of(self.counts, own, effort)

    def around(self, target: int) -> tuple[Evidence, int]:
        """All that matters to one position, and where it is there: up to contexts in which everything is known."""
        size = self.counts.order - 1
        gaps = np.flatnonzero(~self.known)
        before = gaps[gaps < target]
        start, end = 0, self.last + 1
        edges = np.concatenate([[-1], before, [target]])
        wide = np.flatnonzero(np.diff(edges) > size)  # so many known ones in a row
        if len(wide):
            start = int(edges[wide[-1] + 1]) - size
        behind = np.concatenate([[target], gaps[gaps > target]])
        wide = np.flatnonzero(np.diff(np.append(behind, end)) > size)
        if len(wide):
            end = int(behind[wide[0]]) + 1 + size
        end = max(end, target + 1)
        return Evidence(self.counts, self.codes[start:end], self.known[start:end]), target - start

    @cached_property
    def rounds(self) -> list[tuple[Gapped, list[Numbers]]]:
        """The text and its messages from the right: all symbols and short histories first, then likely ones and longer.

        One round alone where that is exact, or nothing is known behind what is unknown.
        """
        everything = [np.arange(self.counts.symbols)] * len(self.codes)
        first = self.stretch(everything, FIRST)
        last = self.last if (~self.known[: self.last + 1]).any() else -1
        found = [(first, first.from_the_right(last))]
        if last >= 0 and not first.exact:
            likely = everything.copy()
            for at, law in _posterior(self, *found[0]).items():
                likely[at] = _likely(law, SECOND.left_out)
            second = self.stretch(likely, SECOND)
            found.append((second, second.from_the_right(last)))
        return found


def _likely(law: Numbers, left_out: float) -> Symbols:
    """The symbols that are left when the least likely ones, ``left_out`` in all, are gone; two at least."""
    order = np.argsort(law)
    gone = np.cumsum(law[order]) < left_out * law.sum()
    gone[-2:] = False
    return np.sort(order[~gone])


class Forward:
    """Walks along a text from the left: the states before a position, with their probabilities."""

    def __init__(self, text: Gapped) -> None:
        self.text = text
        self.position = 0
        self.states: Numbers = np.ones(())
        self._probs: Numbers | None = None

    def copy(self) -> Forward:
        """One that goes its own way from here on."""
        twin = copy.copy(self)
        twin.text = replace(self.text, choices=list(self.text.choices))
        return twin

    def joint(self) -> Float[np.ndarray, "..."]:
        """Probabilities of states and the next symbol together, up to a factor: [*states, symbols]."""
        if self._probs is None:
            self._probs = self.text.probs(self.position)
        return self.states[..., None] * self._probs

    def go(self, symbol: int | None) -> None:
        """On to the next position, where the symbol here is this one; None for any that is possible."""
        text, here = self.text, self.position
        own = self.joint()[..., text.choices[here]] if symbol is None else self.joint()[..., symbol]
        if symbol is None and not text.open[here]:
            own = own[..., 0]
        axes = len(text.axes(here)) + int(text.open[here])
        behind = len(text.axes(here + 1))
        own = own.sum(tuple(range(axes - behind))) if axes > behind else own
        self.states, self.position, self._probs = own / own.sum(), here + 1, None


class Ascending:
    """One text of which positions are asked from left to right, and known from then on."""

    def __init__(self, evidence: Evidence, asked: Bool[np.ndarray, " positions"]) -> None:
        self.evidence = evidence
        self.codes, self.known = evidence.codes.copy(), evidence.known.copy()  # as they are told
        self.rounds = evidence.rounds
        likely = evidence.rounds[-1][0].choices
        # What is asked has one symbol when the walk is past it: which one is told then.
        choices = [likely[at][:1] if asked[at] else likely[at] for at in range(len(asked))]
        effort = SECOND if len(evidence.rounds) > 1 else ALONE
        self.walk = Forward(Gapped.of(evidence.counts, choices, effort))

    def copy(self) -> Ascending:
        """One that goes its own way from here on."""
        twin = copy.copy(self)
        twin.codes, twin.known, twin.walk = self.codes.copy(), self.known.copy(), self.walk.copy()
        return twin

    def probs(self, position: int) -> Float[np.ndarray, " symbols"]:
        """Probabilities of the symbols at the next position that is asked."""
        while self.walk.position < position:
            self.walk.go(None)
        if len(self.rounds) > 1:
            self._renew(position)
        joint = self.walk.joint()
        found = [self._told(joint, *own) for own in self.rounds]
        return combined(found[0], found[-1], self.rounds[-1][0].choices[position])

    def _renew(self, position: int) -> None:
        """Make the messages of the last round again that are about states which can be longer by now.

        Or about a symbol that was told although it was next to impossible by what was known before.
        """
        text, messages = self.rounds[-1]
        size, choices = self.evidence.counts.order - 1, list(text.choices)
        # A history behind this position begins this far back, and how long it may be was decided as far back again.
        near = [at for at in range(max(position + 1 - 2 * size, 0), position) if text.open[at] and self.known[at]]
        if not near:
            return
        for at in near:
            choices[at] = self.codes[at : at + 1]
        told, end = text.told(choices, position)
        longer = told.histories[position + 1 : end] != text.histories[position + 1 : end]
        if not longer and all(self.codes[at] in text.choices[at] for at in near):
            return
        last = min(end - 1, self.evidence.last)
        self.rounds = [self.rounds[0], (told, told.from_the_right(last, position + 1, messages))]

    def tell(self, position: int, symbol: int) -> None:
        """Fix the symbol at the position that was asked."""
        while self.walk.position < position:
            self.walk.go(None)
        self.walk.text.choices[position] = np.array([symbol])
        self.codes[position], self.known[position] = symbol, True
        self.walk.go(symbol)

    def _told(self, joint: Numbers, text: Gapped, messages: list[Numbers]) -> Numbers:
        """Symbols that are possible here, by the states of the walk and what is known to the right."""
        here, walked = self.walk.position, self.walk.text
        message = messages[here + 1]
        if message.ndim:
            for axis, at in enumerate(text.axes(here + 1)):
                if at == here or (walked.open[at] and len(walked.choices[at]) == len(text.choices[at])):
                    continue
                message = message.take(np.searchsorted(text.choices[at], walked.choices[at]), axis)
            # Axes of what was told have one symbol each and are not among those of the walk.
            kept = [axis for axis, at in enumerate(text.axes(here + 1)) if at == here or walked.open[at]]
            message = message.reshape([message.shape[axis] for axis in kept])
        weighed = joint[..., text.choices[here]] * message
        return _normalised(weighed)


def combined(first: Numbers, second: Numbers, likely: Symbols) -> Float[np.ndarray, " symbols"]:
    """The second round's probabilities of likely symbols, and the first one's of what is left."""
    if second is first:
        return first
    found = first.copy()
    found[likely] = second * first[likely].sum()
    return _normalised(found)


def _normalised(joint: Numbers) -> Numbers:
    """Probabilities of the last axis."""
    total = joint.reshape(-1, joint.shape[-1]).sum(0)
    law: Numbers = total / total.sum()
    return law


def beside(evidence: Evidence) -> Float[np.ndarray, "positions symbols"]:
    """Probabilities of the symbols at every position given the known ones, alone (arbitrary at these)."""
    symbols = evidence.counts.symbols
    found = np.full((len(evidence.codes), symbols), 1 / symbols)
    rounds = [_posterior(evidence, *own) for own in evidence.rounds]
    for position in np.flatnonzero(~evidence.known).tolist():
        likely = evidence.rounds[-1][0].choices[position]
        found[position] = combined(rounds[0][position], rounds[-1][position], likely)
    return found


def _posterior(evidence: Evidence, text: Gapped, messages: list[Numbers]) -> dict[int, Numbers]:
    """Probabilities of the possible symbols at every unknown position, given all evidence."""
    found = {}
    walk = Forward(text)
    for position in range(len(evidence.codes)):
        if not evidence.known[position]:
            joint = walk.joint()[..., text.choices[position]] * _last_axis(messages[position + 1], text, position)
            found[position] = _normalised(joint)
        walk.go(None)
    return found
