"""How to fit a text: every option and its default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from anyorder.modalities.options import PresetOptions, named
from anyorder.modalities.texts.engines import check_engine
from anyorder.modalities.texts.recipes import RECIPES
from anyorder.networks.counts import ORDER
from anyorder.support.checks import whole
from anyorder.training.options import Options


@dataclass(frozen=True)
class TextOptions(PresetOptions):
    """``network``, ``protocol``, ``masking`` and ``objective`` are a name and options; ``preset``: a size or a recipe.

    A size is one of the network; a recipe is all that a paper did (:mod:`anyorder.modalities.texts.recipes`), under
    what the user says. The default network is the causal transformer, whose one pass answers a whole chain; the
    bidirectional one is the mask network of ARDM and MAC. Masking ``auto`` mixes the questions that people ask of a
    text. ``engine`` is ``auto``, ``neural`` or ``counts`` (:mod:`anyorder.modalities.texts.engines`), and ``order`` the
    length of the longest stretches that are counted.
    """

    recipes: ClassVar[Mapping[str, Mapping[str, Any]]] = RECIPES

    engine: str = "auto"
    order: int = ORDER
    network: Mapping[str, Any] = named("causal_transformer")
    validation_share: float = 0.05
    training: Options = field(
        default_factory=lambda: Options(
            minutes=10.0,
            batch=8,  # of 250 characters: many small steps, since a budget is in minutes
            learning_rate=2e-3,
            validate_every=400,
            validation_queries=128,
            patience=20,
        )
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_engine(self.engine)
        whole("order", self.order)
