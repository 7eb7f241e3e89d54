"""One-dimensional families: features in, a normalised distribution out. One family per file."""

from anyorder.heads.base import Distribution, Head
from anyorder.heads.bernoulli import Bernoulli
from anyorder.heads.categorical import Categorical
from anyorder.heads.discretized_logistic_mixture import DiscretizedLogisticMixture
from anyorder.heads.gaussian import Gaussian
from anyorder.heads.gaussian_mixture import GaussianMixture
from anyorder.registry import Registry

heads: Registry[Head] = Registry("anyorder.heads", Head, "head")

__all__ = [
    "Bernoulli",
    "Categorical",
    "DiscretizedLogisticMixture",
    "Distribution",
    "Gaussian",
    "GaussianMixture",
    "Head",
    "heads",
]
