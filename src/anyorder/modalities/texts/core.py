"""What training a model of texts needs: an untrained core, the corpus as rows, the questions to learn.

All positions are variables of one kind that share their ends of the network. What is asked of a text is a mixture of
the questions that people ask: scattered holes, runs of them, whole words, continuations, texts shorter than a window.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from anyorder.data.text import Alphabet, Windows
from anyorder.errors import UserError
from anyorder.heads import Categorical
from anyorder.masking import Cardinality, Conditional, Masking, Mixture, Spans, Stretch, Suffix, Words
from anyorder.model import AnyOrderModel
from anyorder.networks import Network
from anyorder.training.rows import Digest, Rows
from anyorder.variables.codecs import LevelCodec
from anyorder.variables.encoding import Encoding
from anyorder.variables.schema import Kind, Variable

LEAST_STRETCH = 8  # characters of the shortest texts that are trained for


@dataclass(frozen=True)
class WindowRows:
    """A corpus as rows for the trainer: windows are cut out when they are taken."""

    windows: Windows

    def __len__(self) -> int:
        return len(self.windows)

    def take(self, index: Tensor) -> Rows:
        values = self.windows.at(index)
        return Rows(values, torch.ones(values.shape, dtype=torch.bool, device=values.device), torch.zeros_like(values))

    def to(self, device: torch.device) -> WindowRows:
        return WindowRows(Windows(self.windows.codes.to(device), self.windows.length))

    def update(self, digest: Digest) -> None:
        digest.update(self.windows.codes.cpu().numpy().tobytes())
        digest.update(str(self.windows.length).encode())


def text_model(
    alphabet: Alphabet, length: int, network: Mapping[str, Any], protocol: Any, *, seed: int
) -> AnyOrderModel:
    """An untrained model of windows of ``length`` positions."""
    if length < 2:
        raise UserError(f"length must be 2 or more, got {length}")
    levels = tuple(alphabet.symbols)
    encoding = Encoding.repeat(LevelCodec(Variable("c", Kind.CATEGORICAL, levels, dtype="str")), (length,))
    return AnyOrderModel.build(encoding, [Categorical(len(levels))] * length, dict(network), protocol, seed=seed)


def text_masking(alphabet: Alphabet, network: Network) -> Masking:
    """The questions people ask of a text: half of them scattered holes, then runs, words, continuations, short texts.

    Scattered holes are the slowest to learn, and what is learned of them serves the others as well.
    """
    evidence = Cardinality(least=0, spare=1)
    parts: list[Masking] = [Conditional(evidence), Spans(), Suffix(), Stretch(Conditional(evidence), LEAST_STRETCH)]
    spaces = tuple(code for code, symbol in enumerate(alphabet.symbols) if symbol.isspace())
    if spaces and network.reads_order:  # mask networks draw their edges without looking at the text
        parts.append(Words(spaces))
    return Mixture(tuple(parts), (len(parts) - 1.0, *(1.0 for _ in parts[1:])))


def codes_of(alphabet: Alphabet, text: str) -> Int[Tensor, " positions"]:
    """A corpus as a tensor of codes."""
    return torch.from_numpy(alphabet.check(text)).long()
