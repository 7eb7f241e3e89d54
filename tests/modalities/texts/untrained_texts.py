"""A text model with random weights, small enough to enumerate every text."""

from __future__ import annotations

import torch

from anyorder.data.text import Alphabet
from anyorder.modalities.texts.core import text_model
from anyorder.modalities.texts.model import TextModel
from anyorder.protocols import Canonical, Protocol


def untrained(
    symbols: str = "ab ", length: int = 3, name: str = "causal_transformer", protocol: Protocol | None = None
) -> TextModel:
    network = {"name": name, "width": 16, "blocks": 1, "heads": 2}
    core = text_model(Alphabet(symbols), length, network, protocol or Canonical(), seed=0)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in core.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    return TextModel(core.eval(), {"alphabet": {"symbols": symbols, "unit": "characters"}})
