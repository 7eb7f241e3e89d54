"""What benchmarks of texts ask of every test window, and how their rows are compared: window by window.

joint        all characters of a window, from nothing
marginal     u from M_card: -log2 p(x_u) over |u|; over the length of the window it is MAC's "per N"
conditional  the holes of a window, 30 % of it scattered or in runs of six on average, given all the rest
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from anyorder.data.text import Corpus, Windows
from anyorder.masking import Cardinality, Spans
from anyorder.modalities.texts.core import codes_of
from anyorder.modalities.texts.model import TextModel
from anyorder.modalities.texts.scores import bits_per
from anyorder.model import AnyOrderModel
from anyorder.model.likelihood import log_prob
from anyorder.networks.counts import Counts
from anyorder.query import PAD, Chain, Query

LENGTH = 250
HOLES = ("scattered holes", "runs of holes")
KINDS = ("joint", "marginal", *HOLES)
# The counts of anyorder with stretches of so many characters, all smoothed alike; the last one as long as by default.
COUNTING: dict[str, dict[str, Any]] = {
    **{f"{order}-gram": {"engine": "counts", "config": {"order": order}} for order in (4, 5, 6)},
    "counts": {"engine": "counts"},
}


def questions(windows: int, length: int) -> dict[str, Query]:
    """What is known and what is asked of every test window, by the heading of its column."""
    generator = torch.Generator().manual_seed(7)
    everything = torch.ones(windows, length, dtype=torch.bool)
    scattered = torch.rand(windows, length, generator=generator) < 0.3
    return {
        "joint": Query.marginal(everything),
        "marginal": Cardinality().draw(windows, length, generator),
        "scattered holes": Query(~scattered, scattered),
        "runs of holes": Spans(length=6.0, share=0.3).draw(windows, length, generator),
    }


def windows_of(model: TextModel, corpus: Corpus, windows: int) -> Tensor:
    """Windows of the test text that do not overlap, in an order of no meaning: the first few are from all over it."""
    found = Windows(codes_of(model.alphabet, corpus.test), model.length).spread(windows)
    return found[torch.randperm(len(found), generator=torch.Generator().manual_seed(7))]


def bits_of(model: TextModel, windows: Tensor, query: Query) -> Tensor:
    """Bits of all that is asked of each window."""
    return torch.from_numpy(-log_prob(model.core, windows, query)) / math.log(2)


def network_of(model: TextModel) -> TextModel:
    """The network of a default model alone, without its counts."""
    core = model.core
    heads = [core.heads.of(variable) for variable in range(core.variables)]
    return TextModel(AnyOrderModel(core.encoding, core.network.inside[0], heads, core.protocol).eval(), model.card)


class OnceCounted:
    """What equal counts say of a window is worked out once, however many models they belong to."""

    def __init__(self) -> None:
        self.found: dict[bytes, Tensor] = {}

    def serve(self, counts: Counts) -> None:
        """Answer chains for these counts from now on."""
        ask = counts.along

        def along(values: Tensor, chain: Chain) -> Tensor:
            rows = [slice(row, row + 1) for row in range(len(values))]
            keys = [self._key(values[row], chain.rows(row)) for row in rows]
            for key, row in zip(keys, rows, strict=True):
                if key not in self.found:
                    self.found[key] = ask(values[row], chain.rows(row))[0]
            laws = torch.zeros(*chain.order.shape, counts.layout.width, dtype=values.dtype)
            for row, key in enumerate(keys):
                laws[row, : len(self.found[key])] = self.found[key][: chain.steps]
            return laws

        counts.along = along  # type: ignore[method-assign]

    @staticmethod
    def _key(values: Tensor, chain: Chain) -> bytes:
        own = chain.order[chain.order != PAD]
        return b"|".join(part.cpu().numpy().tobytes() for part in (values, chain.evidence, own))


def per_character(bits: Sequence[float] | Tensor, query: Query) -> tuple[float, float]:
    """Bits of the first windows per asked character, and the standard error over windows."""
    own = torch.as_tensor(bits, dtype=torch.float64)
    return bits_per(own, query.asked[: len(own)].sum(dim=1).double())


def shown(mean: float, error: float, sign: str = "") -> str:
    return f"{mean:{sign}.3f} ± {error:.3f}"


def apart(
    bits: Mapping[str, Sequence[float]], base: Mapping[str, Sequence[float]], wanted: Mapping[str, Query]
) -> dict[str, str]:
    """How far a row is above another by the kind of question, over the first windows, which both were asked."""
    found = {}
    for kind, query in wanted.items():
        common = min(len(bits[kind]), len(base[kind]))
        more = torch.tensor(bits[kind][:common]) - torch.tensor(base[kind][:common])
        found[kind] = shown(*per_character(more, query), sign="+")
    return found
