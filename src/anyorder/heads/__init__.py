"""One-dimensional families: features in, a normalised distribution out. One family per file."""

from anyorder.distributions.base import Distribution
from anyorder.heads.ace_energy import AceEnergy
from anyorder.heads.base import Head
from anyorder.heads.bernoulli import Bernoulli
from anyorder.heads.binned import Binned
from anyorder.heads.bounded import Bounded
from anyorder.heads.categorical import Categorical
from anyorder.heads.discretized_logistic_mixture import DiscretizedLogisticMixture
from anyorder.heads.energy import Energy
from anyorder.heads.gaussian import Gaussian
from anyorder.heads.gaussian_mixture import GaussianMixture
from anyorder.heads.ordinal import Ordinal
from anyorder.heads.spiked import Spiked
from anyorder.heads.spline import Spline
from anyorder.heads.student_mixture import StudentMixture
from anyorder.support.registry import Registry

heads: Registry[Head] = Registry("anyorder.heads", Head, "head")

__all__ = [
    "AceEnergy",
    "Bernoulli",
    "Binned",
    "Bounded",
    "Categorical",
    "DiscretizedLogisticMixture",
    "Distribution",
    "Energy",
    "Gaussian",
    "GaussianMixture",
    "Head",
    "Ordinal",
    "Spiked",
    "Spline",
    "StudentMixture",
    "heads",
]
