"""The energy head as ACE has it: the energy alone is the density, the proposal only helps to normalise it.

    p(x) = exp(-e(x)) / Z,   Z = E_q[exp(-e(x)) / q(x)]

(Strauss and Oliva, 2021.) In :mod:`anyorder.heads.energy` the proposal q is a factor of the density, so that an
energy of zero is already a good answer; here the energy has to learn all of it. Four residual blocks in the energy's
network and ten Gaussians in the proposal are what MAC's appendix says of both papers; it leaves the widths to ACE,
whose text was not at hand, so ``latent``, ``hidden`` and ``limit`` are our guesses, and the smooth bends our choice.
Two things more are ours, so that every density is one: energies are bounded (|e| < ``limit``), and beyond the reach of
the proposal, 8.5 scales of its outermost components, the density falls off as a normal does. It is for comparisons
with the papers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from anyorder.errors import UserError
from anyorder.heads._energy_head import EnergyHead
from anyorder.heads._energy_network import ResidualEnergyNetwork

MOST_BLOCKS = 64


@dataclass(eq=False)
class AceEnergy(EnergyHead):
    """``latent`` features that the energy reads, then three for each of the proposal's ``components``.

    ``draws`` and ``evaluation_draws``: of the importance normaliser, in training and after it;
    ``normaliser="quadrature"`` needs none. ``limit``: the greatest energy, in nats. Columns with equal options share
    the energy's network.
    """

    name: ClassVar[str] = "ace_energy"
    own_components: ClassVar[bool] = True
    alone: ClassVar[bool] = True

    components: int = 10
    latent: int = 64
    hidden: int = 128
    blocks: int = 4
    limit: float = 30.0
    normaliser: str = "importance"
    draws: int = 20
    evaluation_draws: int = 1000

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_positive("blocks")
        if self.blocks > MOST_BLOCKS:
            raise UserError(f"an energy head takes {MOST_BLOCKS} blocks at most, got {self.blocks}")
        self.network = ResidualEnergyNetwork(self.latent, self.hidden, self.blocks, float(self.limit))
