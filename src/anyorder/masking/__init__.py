"""Which questions we train for: one distribution over queries per file."""

from anyorder.masking.base import Masking
from anyorder.masking.bernoulli import Bernoulli
from anyorder.masking.cardinality import Cardinality
from anyorder.masking.conditional import Conditional
from anyorder.masking.directions import BottomUp, LeftToRight, RightToLeft, TopDown
from anyorder.masking.known_context import KnownContext
from anyorder.masking.mixture import Mixture
from anyorder.masking.modes import Modes
from anyorder.masking.observed import Observed
from anyorder.masking.patches import ExteriorPatch, InteriorPatch
from anyorder.masking.random_pixels import RandomPixels
from anyorder.masking.spans import Spans
from anyorder.masking.stretch import Stretch
from anyorder.masking.suffix import Suffix
from anyorder.masking.targets import Targets
from anyorder.masking.two_stage import TwoStage
from anyorder.masking.uniform import Uniform
from anyorder.masking.univariate import Univariate
from anyorder.masking.words import Words
from anyorder.support.registry import Registry

maskings: Registry[Masking] = Registry("anyorder.masking", Masking, "masking")

__all__ = [
    "Bernoulli",
    "BottomUp",
    "Cardinality",
    "Conditional",
    "ExteriorPatch",
    "InteriorPatch",
    "KnownContext",
    "LeftToRight",
    "Masking",
    "Mixture",
    "Modes",
    "Observed",
    "RandomPixels",
    "RightToLeft",
    "Spans",
    "Stretch",
    "Suffix",
    "Targets",
    "TopDown",
    "TwoStage",
    "Uniform",
    "Univariate",
    "Words",
    "maskings",
]
