"""How much to believe a network and its counts: the weights of :mod:`anyorder.networks.counted`, from held-out text.

Both answer questions about text that neither has seen. What they say is computed once; the few hundred numbers that
turn it into weights are then fitted by maximum likelihood. Some texts are kept back for early stopping, and to see that
the mixture is no worse than either of the two: if it is, the better one answers alone.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from anyorder.networks.counted import Counted, nearby_along
from anyorder.query import Chain
from anyorder.support.randomness import drawing_from

STEPS, RATE = 400, 0.02
KEPT_BACK = 4  # one of so many texts judges
PATIENCE = 60
AT_ONCE = 4  # texts
SHARE_OF_ANSWERS = 0.7  # of the time; the rest is for fitting
SILENT = -30.0  # logarithm of the weight of one that has no say


@dataclass(frozen=True)
class Answers:
    """What both say at every step of some texts, what is near, the symbol that is there, and the text it belongs to."""

    network: Float[Tensor, "steps levels"]
    counts: Float[Tensor, "steps levels"]
    near: Float[Tensor, "steps three"]
    symbol: Int[Tensor, " steps"]
    text: Int[Tensor, " steps"]

    @property
    def judges(self) -> Bool[Tensor, " steps"]:
        """The steps that judge: of every fourth text, or every fourth step where there are few texts."""
        number = self.text if int(self.text.max()) >= 2 * KEPT_BACK else torch.arange(len(self.text))
        return number % KEPT_BACK == KEPT_BACK - 1

    def rows(self, chosen: Bool[Tensor, " steps"]) -> Answers:
        """Some of the steps."""
        return Answers(*(part[chosen] for part in (self.network, self.counts, self.near, self.symbol, self.text)))


def never() -> bool:
    """Go on."""
    return False


@torch.no_grad()
def answers(
    network: Counted,
    values: Float[Tensor, "texts variables"],
    chain: Chain,
    seconds: float | None = None,
    stop: Callable[[], bool] = never,
) -> Answers:
    """The answers about as many texts as there is time for; about all of them if there is no limit."""
    began = time.monotonic()
    found = []
    for start in range(0, len(values), AT_ONCE):
        rows = slice(start, start + AT_ONCE)
        own, part = values[rows], chain.rows(rows)
        laws = [member.along(own, part) for member in network.inside]
        text, step = part.counted.nonzero(as_tuple=True)
        symbol = own.gather(1, part.order.clamp(min=0))[text, step].long()
        found.append((*(law[text, step] for law in laws), nearby_along(part)[text, step], symbol, text + start))
        if stop() or (seconds is not None and time.monotonic() - began > seconds):
            break
    return Answers(*(torch.cat(parts) for parts in zip(*found, strict=True)))


def learn_mixing(
    network: Counted,
    values: Float[Tensor, "texts variables"],
    chain: Chain,
    *,
    seed: int,
    seconds: float | None = None,
    stop: Callable[[], bool] = never,
) -> dict[str, float]:
    """Fit the weights to questions about held-out texts.

    In at most about so many ``seconds``, or until ``stop`` says so; without a limit the same texts give the same
    weights. Returns what both say alone and together about the texts that were kept back, in nats a symbol.
    """
    end = None if seconds is None else time.monotonic() + seconds
    every = answers(network, values, chain, None if seconds is None else SHARE_OF_ANSWERS * seconds, stop)
    learned, judged = every.rows(~every.judges), every.rows(every.judges)
    if not len(judged.symbol):  # a handful of steps: they judge themselves
        learned = judged = every
    weights = network.weights
    first, last = weights[0], weights[2]
    assert isinstance(first, nn.Linear) and isinstance(last, nn.Linear)
    with drawing_from(torch.Generator().manual_seed(seed)):
        first.reset_parameters()
    optimiser = torch.optim.AdamW(weights.parameters(), lr=RATE, weight_decay=1e-3)
    best, since, kept = float("-inf"), 0, copy.deepcopy(weights.state_dict())
    for _ in range(STEPS):
        with torch.no_grad():
            score = float(_score(network, judged))
        if score > best + 1e-5:
            best, since, kept = score, 0, copy.deepcopy(weights.state_dict())
        since += 1
        if since > PATIENCE or stop() or (end is not None and time.monotonic() > end):
            break
        optimiser.zero_grad()
        with torch.enable_grad():
            (-_score(network, learned)).backward()
        optimiser.step()
    weights.load_state_dict(kept)
    alone = {name: _mean(getattr(judged, name), judged.symbol) for name in ("network", "counts")}
    better = max(alone, key=lambda name: alone[name])
    if alone[better] > best:
        nn.init.zeros_(last.weight)
        with torch.no_grad():
            last.bias.copy_(torch.tensor([0.0, SILENT] if better == "network" else [SILENT, 0.0]))
        best = alone[better]
    return {**alone, "together": best}


def _score(network: Counted, own: Answers) -> Float[Tensor, ""]:
    return _chosen(network.mixed(own.network, own.counts, own.near), own.symbol).mean()


def _mean(logits: Float[Tensor, "steps levels"], symbol: Int[Tensor, " steps"]) -> float:
    return float(_chosen(logits.log_softmax(-1), symbol).mean())


def _chosen(law: Float[Tensor, "steps levels"], symbol: Int[Tensor, " steps"]) -> Float[Tensor, " steps"]:
    return law.gather(1, symbol[:, None])[:, 0]
