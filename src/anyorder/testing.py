"""Contract checks for whoever adds a head, a protocol or a network: they raise AssertionError with the reason.

A head is normalised and its cdf and quantile undo each other. A protocol visits every asked variable once. The three
calls of a network are one function seen from three sides, no value of an unknown variable may reach any of them, and
what they draw comes from the trainer's own generator.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from anyorder.heads.base import Head
from anyorder.networks.base import Network
from anyorder.networks.layout import Layout
from anyorder.networks.parts.dropout import dropout_from
from anyorder.protocols.base import Protocol
from anyorder.query import Chain, Query, ordered, padded_left


def mixed_layout() -> Layout:
    """Five variables, real and coded, with heads of different sizes."""
    return Layout(
        levels=(0, 3, 0, 2, 5),
        sizes=(6, 3, 6, 1, 5),
        groups=(0, 1, 2, 3, 4),
        grid=(5,),
        locations=((2, 3), (), (2, 3), (), ()),
        log_scales=((4, 5), (), (4, 5), (), ()),
    )


def random_values(layout: Layout, batch: int, generator: torch.Generator) -> Float[Tensor, "batch variables"]:
    """Values that the layout allows."""
    columns = []
    for levels in layout.levels:
        if levels == 0:
            columns.append(torch.randn(batch, generator=generator, dtype=torch.float64))
        else:
            columns.append(torch.randint(levels, (batch,), generator=generator).double())
    return torch.stack(columns, dim=1)


def random_chain(layout: Layout, batch: int, generator: torch.Generator) -> Chain:
    """Ragged evidence (empty in the first row) and ragged asked sets (empty in the last), in random order."""
    shape = (batch, layout.variables)
    evidence = torch.rand(shape, generator=generator) < 0.4
    evidence[0] = False
    asked = ~evidence & (torch.rand(shape, generator=generator) < 0.8)
    asked[-1] = False
    query = Query(evidence, asked)
    key = torch.rand(shape, generator=generator)
    return Chain(ordered(query.evidence, key, pad_left=True), ordered(query.asked, key), layout.variables)


def randomised(network: Network, generator: torch.Generator) -> Network:
    """The network in double precision with every parameter moved, so that no branch is switched off at the start."""
    network = network.double().eval()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype), alpha=0.1)
    return network


def check_head(head: Head, seed: int = 0) -> None:
    """Probability one in all, a cdf that rises to the quantile's level, finite gradients for every feature."""
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(5, head.size, generator=generator, dtype=torch.float64).requires_grad_()
    distribution = head.double()(features)
    levels = torch.linspace(0.02, 0.98, 25, dtype=torch.float64)[:, None]
    quantiles = distribution.quantile(levels)
    reached = distribution.cdf(quantiles)
    assert bool((reached >= levels - 1e-6).all()), "cdf(quantile(level)) falls short of the level"
    some = torch.tensor([3, 0])
    apart = distribution.rows(some).log_prob(quantiles[:, some])
    assert torch.allclose(apart, distribution.log_prob(quantiles)[:, some]), "rows(index) are not those of the batch"
    if head.levels:
        codes = torch.arange(head.levels, dtype=torch.float64)[:, None]
        total = distribution.log_prob(codes).exp().sum(dim=0)
    elif not distribution.discrete:
        edges = distribution.quantile(torch.tensor([[1e-10], [1 - 1e-10]], dtype=torch.float64)).detach()
        grid = edges[0] + (edges[1] - edges[0]) * torch.linspace(0, 1, 400_001, dtype=torch.float64)[:, None]
        total = torch.trapezoid(distribution.log_prob(grid).exp(), grid, dim=0)
    else:
        total = distribution.expect(torch.ones_like)
    assert bool((total - 1).abs().max() < 1e-4), f"probabilities add up to {total.tolist()}"
    distribution.log_prob(quantiles[12].detach()).sum().backward()
    assert features.grad is not None and bool(features.grad.isfinite().all()), "log_prob has no finite gradient"


def check_protocol(protocol: Protocol, variables: int = 6, seed: int = 0) -> None:
    """Evidence first, then every asked variable once, nothing else."""
    generator = torch.Generator().manual_seed(seed)
    evidence = torch.rand(50, variables, generator=generator) < 0.3
    asked = ~evidence & (torch.rand(50, variables, generator=generator) < 0.7)
    chain = protocol.chain(Query(evidence, asked), generator)
    assert torch.equal(chain.evidence, evidence), "the prefix is not the evidence"
    assert torch.equal(chain.asked, asked), "the order is not the asked set"
    assert torch.equal(chain.counted.sum(dim=1), asked.sum(dim=1)), "a variable is asked more than once"


def check_no_leak(network: Network, seed: int = 0) -> None:
    """Unknown values must not reach ``beside``, ``along`` or ``walk``: replacing them by NaN must change nothing."""
    generator = torch.Generator().manual_seed(seed)
    values = random_values(network.layout, 16, generator)
    chain = random_chain(network.layout, 16, generator)
    known = chain.evidence
    hidden = values.masked_fill(~known, torch.nan)
    assert torch.equal(network.beside(values, known), network.beside(hidden, known)), "beside reads an unknown value"
    others = random_values(network.layout, 16, generator)
    never = values.masked_fill(~(known | chain.asked), torch.nan)
    clear, obscured = network.along(values, chain), network.along(never, chain)
    assert torch.equal(clear[chain.counted], obscured[chain.counted]), "along reads a value that no step knows"
    for step in range(chain.steps):
        # Later steps do read these values, so they must be valid ones: others, not NaN.
        later = torch.where(chain.known_before(step), values, others)
        here = chain.counted[:, : step + 1]
        first = network.along(later, chain)[:, : step + 1]
        assert torch.equal(clear[:, : step + 1][here], first[here]), (
            f"step {step} of along reads its own or a later value"
        )
    walk = network.walk(hidden, chain)
    assert bool(walk.features()[chain.counted[:, 0]].isfinite().all()), "walk reads more than the evidence"


def check_calls_agree(network: Network, seed: int = 0, tolerance: float = 1e-10) -> None:
    """``along`` must equal one ``beside`` per step, and ``walk`` must retrace ``along``."""
    generator = torch.Generator().manual_seed(seed)
    values = random_values(network.layout, 16, generator)
    chain = random_chain(network.layout, 16, generator)
    along = network.along(values, chain)
    walk = network.walk(values, chain)
    rows = torch.arange(len(values))
    for step in range(chain.steps):
        target, here = chain.order[:, step].clamp(min=0), chain.counted[:, step]
        _close(walk.features()[here], along[:, step][here], tolerance, f"walk and along differ at step {step}")
        walk.tell(values[rows, target])
        path = torch.cat([chain.prefix, chain.order[:, :step]], dim=1)
        prefix = padded_left(path)
        beside = network.beside(values, chain.known_before(step), prefix)
        _close(beside[rows, target][here], along[:, step][here], tolerance, f"beside and along differ at step {step}")


def check_gradients(network: Network, seed: int = 0) -> None:
    """Every parameter must matter: a non-zero, finite gradient from ``along``."""
    generator = torch.Generator().manual_seed(seed)
    values = random_values(network.layout, 32, generator)
    chain = random_chain(network.layout, 32, generator)
    features = network.along(values, chain)
    weights = torch.randn(features.shape, generator=generator, dtype=features.dtype)
    (features * weights)[chain.counted].sum().backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None and bool(parameter.grad.isfinite().all()), f"{name} has no finite gradient"
        assert bool((parameter.grad != 0).any()), f"{name} never changes the answer"


def check_own_randomness(network: Network, seed: int = 0) -> None:
    """A pass while training must draw from the trainer's generator, and from nothing else."""
    generator = torch.Generator().manual_seed(seed)
    values = random_values(network.layout, 8, generator)
    chain = random_chain(network.layout, 8, generator)
    network.train()
    before = torch.get_rng_state()
    with dropout_from(generator):
        network.beside(values, chain.evidence)
        network.along(values, chain)
    assert torch.equal(torch.get_rng_state(), before), (
        "it draws from the random state of the whole process: use anyorder.networks.parts.dropout"
    )


def _close(one: Tensor, other: Tensor, tolerance: float, message: str) -> None:
    if one.numel():
        gap = (one - other).abs().max().item()
        assert gap <= tolerance, f"{message} (by {gap:.2g})"
