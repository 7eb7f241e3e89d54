"""How to fit pictures: every option and its default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from anyorder.heads import heads
from anyorder.modalities.images.augmentation import TURNS
from anyorder.modalities.images.recipes import RECIPES
from anyorder.modalities.options import MOST_COMPONENTS, PresetOptions, named
from anyorder.support.checks import check_fields
from anyorder.training.options import Options
from anyorder.variables.codecs import Space

VARIABLES = ("pixels", "channels")
SHORT_HEADS = ("auto", "logistic", "mixture")


@dataclass(frozen=True)
class ImageOptions(PresetOptions):
    """``preset`` sizes the U-Net; ``network``, ``protocol``, ``masking`` and ``objective`` are a name and options.

    The papers' presets also bring their head and training (``recipes``). ``head``: ``bernoulli`` for two levels,
    ``categorical``, ``logistic`` (one discretised logistic a pixel), ``mixture`` of ``components`` of them, or another
    head for levels or a lattice; ``auto`` takes the first of these that suits the number of levels. Masking ``auto`` is
    SFARM's mixture of modes, pixels at random twice as often as the six others together; ``{"name": "modes"}`` has them
    all alike. ``variables``, in colour: ``pixels``, whose channels share one mixture and are known together (SFARM), or
    ``channels``, each a variable of its own (MAC). ``augment``: the ways in which pictures are turned to learn from
    (:mod:`anyorder.modalities.images.augmentation`).
    """

    recipes: ClassVar[Mapping[str, Mapping[str, Any]]] = RECIPES

    network: Mapping[str, Any] = named("unet")
    protocol: Mapping[str, Any] = named("auto")
    head: str = "auto"
    components: int = 5
    variables: str = "pixels"
    augment: str = "none"
    validation_share: float = 0.05
    training: Options = field(
        default_factory=lambda: Options(
            minutes=10.0,
            batch=16,
            learning_rate=3e-3,
            # The average reaches back a ninth of the run, as it does in short ones, up to 90,000 steps.
            average=0.9999,
            validate_every=100,
            validation_queries=256,
            patience=20,
            # A pixel costs few nats, so small gains are gains: a tenth of the budget without any makes the rate fall.
            patience_share=0.1,
            noticeable=0.0,
        )
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        known = [*SHORT_HEADS, *(name for name in heads.names() if heads.get(name).space is not Space.LINE)]
        check_fields(
            self,
            whole={"components": 1},
            most={"components": MOST_COMPONENTS},
            one_of={"head": known, "variables": VARIABLES, "augment": tuple(TURNS)},
        )
