"""How to fit pictures: presets by size, and every option beside them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from anyorder.errors import UserError, nearest
from anyorder.modalities.options import preset_options
from anyorder.training.options import Options

PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {"channels": 16, "blocks": 1, "levels": 2},
    "small": {"channels": 32, "blocks": 1, "levels": 2, "patch": 2},
    # SFARM's table 4; its widths on CIFAR-10 and at 64 x 64 are 256 in the entry and 128 in the blocks.
    "mnist": {"channels": 32, "blocks": 4, "levels": 1},
    "fashion_mnist": {"channels": 32, "blocks": 4, "levels": 1},
    "cifar10": {"channels": 128, "entry": 256, "blocks": 32, "levels": 1, "attention": "every"},
    "64x64": {"channels": 128, "entry": 256, "blocks": 16, "levels": 2, "attention": "every"},
}
# How SFARM trains those (table 4), under what the user says; the small ones take the defaults below.
RECIPES: dict[str, dict[str, Any]] = {
    "mnist": {"training": {"batch": 128, "learning_rate": 2e-4}},
    "fashion_mnist": {"head": "logistic", "training": {"batch": 128, "learning_rate": 2e-4}},
    "cifar10": {"components": 30, "training": {"batch": 32, "learning_rate": 2e-4}},
    "64x64": {"components": 30, "training": {"batch": 16, "learning_rate": 2e-4}},
}
VARIABLES = ("pixels", "channels")
HEADS = ("auto", "bernoulli", "categorical", "logistic", "mixture")


@dataclass(frozen=True)
class ImageOptions:
    """``preset`` sizes the U-Net; ``network``, ``protocol``, ``masking`` and ``objective`` are a name and options.

    The papers' presets also bring their head and training (:meth:`read`). ``head``: ``bernoulli`` for two levels,
    ``categorical``, ``logistic`` (one discretised logistic a pixel) or ``mixture`` of ``components`` of them; ``auto``
    takes the first that suits the number of levels. Masking ``auto`` is SFARM's mixture of modes, pixels at random
    twice as often as the six others together; ``{"name": "modes"}`` has them all alike. ``variables``, in colour:
    ``pixels``, whose channels share one mixture and are known together (SFARM), or ``channels``, each a variable of
    its own (MAC).
    """

    preset: str = "small"
    network: Mapping[str, Any] = field(default_factory=lambda: {"name": "unet"})
    protocol: Mapping[str, Any] = field(default_factory=lambda: {"name": "auto"})
    masking: Mapping[str, Any] = field(default_factory=lambda: {"name": "auto"})
    objective: Mapping[str, Any] = field(default_factory=lambda: {"name": "auto"})
    head: str = "auto"
    components: int = 5
    variables: str = "pixels"
    validation_share: float = 0.05
    training: Options = field(
        default_factory=lambda: Options(
            minutes=10.0,
            batch=16,
            learning_rate=3e-3,
            validate_every=100,
            validation_queries=256,
            patience=20,
            threads=2,
        )
    )

    def __post_init__(self) -> None:
        if self.preset not in PRESETS:
            raise UserError(f"unknown preset {self.preset!r}; {nearest(self.preset, PRESETS)}")
        if self.head not in HEADS:
            raise UserError(f"unknown head {self.head!r} of pictures; {nearest(self.head, HEADS)}")
        if not isinstance(self.components, int) or self.components < 1:
            raise UserError(f"components must be a whole number from 1 up, got {self.components!r}")
        if self.variables not in VARIABLES:
            raise UserError(f"unknown variables {self.variables!r} of pictures; {nearest(self.variables, VARIABLES)}")
        if not 0 < self.validation_share < 1:
            raise UserError(f"validation_share must lie between 0 and 1, got {self.validation_share!r}")

    @classmethod
    def read(
        cls, given: Mapping[str, Any] | None, *, minutes: float | None = None, preset: str | None = None
    ) -> ImageOptions:
        """From a mapping such as a TOML file holds; ``minutes`` and ``preset`` win over it, and it over the recipe."""
        said = dict(given or {})
        recipe = dict(RECIPES.get(str(preset or said.get("preset")), {}))
        training = dataclasses.replace(cls().training, **recipe.pop("training", {}))
        return cls(**preset_options(cls, recipe | said, training, minutes=minutes, preset=preset))

    def described_network(self, modes: int, coupled: int = 0) -> dict[str, Any]:
        """The preset's sizes under what the user said of the network; other networks than the U-Net have their own."""
        if self.network.get("name") != "unet":
            return dict(self.network)
        return {"modes": modes, "coupled": coupled, **PRESETS[self.preset], **self.network}

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)
