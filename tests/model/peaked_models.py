"""Random models of five characters whose variables depend strongly on each other, small enough to enumerate."""

from __future__ import annotations

import itertools

import numpy as np
import torch
from scipy import stats

from anyorder.data.text import Alphabet
from anyorder.modalities.texts.core import text_model
from anyorder.model import AnyOrderModel
from anyorder.protocols import Canonical
from anyorder.query import Query

N, SYMBOLS, DRAWS = 5, "abc", 12_000
NETWORKS = {
    "chain": {"name": "causal_transformer", "width": 16, "blocks": 2, "heads": 2},
    "rotary chain": {"name": "causal_transformer", "width": 16, "blocks": 2, "heads": 2, "positions": "rotary"},
    "mask": {"name": "bidirectional_transformer", "width": 16, "blocks": 2, "heads": 2},
}


def peaked(network: str, protocol: object = None, *, shift: int = 0) -> AnyOrderModel:
    """A random model whose variables depend strongly on each other; another one for each ``shift``."""
    model = text_model(Alphabet(SYMBOLS), N, NETWORKS[network], protocol or Canonical(), seed=0)
    generator = torch.Generator().manual_seed(1 + shift)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.5 * torch.randn(parameter.shape, generator=generator))
    return model.eval()


def query(evidence: dict[int, int], asked: list[int], rows: int) -> tuple[torch.Tensor, Query]:
    values = torch.zeros(rows, N)
    known, wanted = torch.zeros(rows, N, dtype=torch.bool), torch.zeros(rows, N, dtype=torch.bool)
    for position, code in evidence.items():
        values[:, position], known[:, position] = code, True
    wanted[:, asked] = True
    return values, Query(known, wanted)


def exact(model: AnyOrderModel, evidence: dict[int, int], asked: list[int]) -> np.ndarray:
    """p(x_asked | x_evidence) of all ways to fill in, along the model's own chain."""
    ways = list(itertools.product(range(len(SYMBOLS)), repeat=len(asked)))
    values, questions = query(evidence, asked, len(ways))
    values[:, asked] = torch.tensor(ways, dtype=values.dtype)
    with torch.no_grad():
        return model.step_log_prob(values, model.chain(questions)).double().sum(dim=1).exp().numpy()


def follows(drawn: np.ndarray, asked: list[int], probs: np.ndarray) -> bool:
    """Whether the draws follow the law, by chi-squared at 1 in 1000; rare values are counted together."""
    number = drawn[:, asked].astype(int) @ len(SYMBOLS) ** np.arange(len(asked))[::-1]
    counts = np.bincount(number, minlength=len(probs))
    often = probs * len(drawn) > 5
    observed = np.append(counts[often], counts[~often].sum())
    expected = np.append(probs[often], probs[~often].sum()) * len(drawn)
    kept = expected > 0
    return bool(stats.chisquare(observed[kept], expected[kept] * observed.sum() / expected[kept].sum()).pvalue > 1e-3)
