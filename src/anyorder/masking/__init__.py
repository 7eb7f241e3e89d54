"""Which questions we train for: one distribution over queries per file."""

from anyorder.masking.base import Masking
from anyorder.masking.bernoulli import Bernoulli
from anyorder.masking.cardinality import Cardinality
from anyorder.masking.conditional import Conditional
from anyorder.masking.mixture import Mixture
from anyorder.masking.observed import Observed
from anyorder.masking.spans import Spans
from anyorder.masking.stretch import Stretch
from anyorder.masking.suffix import Suffix
from anyorder.masking.targets import Targets
from anyorder.masking.uniform import Uniform
from anyorder.masking.univariate import Univariate
from anyorder.masking.words import Words
from anyorder.registry import Registry

maskings: Registry[Masking] = Registry("anyorder.masking", Masking, "masking")

__all__ = [
    "Bernoulli",
    "Cardinality",
    "Conditional",
    "Masking",
    "Mixture",
    "Observed",
    "Spans",
    "Stretch",
    "Suffix",
    "Targets",
    "Uniform",
    "Univariate",
    "Words",
    "maskings",
]
