"""ACE's energy head: a learned energy tilts a mixture proposal.

    p(x) = q(x) exp(-e(x)) / Z,   Z = E_q[exp(-e)]

(Strauss and Oliva, 2021, "Arbitrary Conditional Distributions with Energy".) The proposal q is a Gaussian mixture
trained by maximum likelihood, the energy e by the likelihood of p. ACE estimates Z with draws from q, twenty of
them in training: ``normaliser="importance"``. Quadrature gives Z to float precision: ``normaliser="quadrature"``, the
default (:mod:`anyorder.heads._energy_distribution`). In ACE's own form the proposal is no factor
(:mod:`anyorder.heads.ace_energy`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from anyorder.heads._energy_distribution import EnergyDistribution
from anyorder.heads._energy_head import EnergyHead
from anyorder.heads._energy_network import EnergyNetwork

__all__ = ["Energy", "EnergyDistribution"]


@dataclass(eq=False)
class Energy(EnergyHead):
    """``latent`` features that the energy reads, then three for each of the proposal's ``components``.

    ``draws`` and ``evaluation_draws``: of the importance normaliser, in training and after it. ``limit``: the greatest
    energy, in nats. Columns with equal options share the energy's network, as in ACE.
    """

    name: ClassVar[str] = "energy"

    components: int = 5
    latent: int = 16
    hidden: int = 32
    limit: float = 10.0
    normaliser: str = "quadrature"
    draws: int = 20
    evaluation_draws: int = 1000

    def __post_init__(self) -> None:
        super().__post_init__()
        self.network = EnergyNetwork(self.latent, self.hidden, float(self.limit))
