"""How to fit a text: presets by size, and every option beside them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from anyorder.errors import UserError, nearest
from anyorder.modalities.options import preset_options
from anyorder.training.options import Options

PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {"width": 64, "blocks": 2, "heads": 2},
    "small": {"width": 128, "blocks": 4, "heads": 4},
    "medium": {"width": 256, "blocks": 6, "heads": 8},
    "mac": {"width": 768, "blocks": 12, "heads": 12},  # MAC's and ARDM's text8 model
}


@dataclass(frozen=True)
class TextOptions:
    """``preset`` sizes the network; ``network``, ``protocol``, ``masking`` and ``objective`` are a name and options.

    The default network is the causal transformer, whose one pass answers a whole chain; the bidirectional one is the
    mask network of ARDM and MAC. Masking ``auto`` mixes the questions that people ask of a text.
    """

    preset: str = "small"
    network: Mapping[str, Any] = field(default_factory=lambda: {"name": "causal_transformer"})
    protocol: Mapping[str, Any] = field(default_factory=lambda: {"name": "canonical"})
    masking: Mapping[str, Any] = field(default_factory=lambda: {"name": "auto"})
    objective: Mapping[str, Any] = field(default_factory=lambda: {"name": "auto"})
    validation_share: float = 0.05
    training: Options = field(
        default_factory=lambda: Options(
            minutes=10.0,
            batch=8,  # of 250 characters: many small steps, since a budget is in minutes
            learning_rate=2e-3,
            validate_every=400,
            validation_queries=128,
            patience=20,
            threads=2,
        )
    )

    def __post_init__(self) -> None:
        if self.preset not in PRESETS:
            raise UserError(f"unknown preset {self.preset!r}; {nearest(self.preset, PRESETS)}")
        if not 0 < self.validation_share < 1:
            raise UserError(f"validation_share must lie between 0 and 1, got {self.validation_share!r}")

    @classmethod
    def read(
        cls, given: Mapping[str, Any] | None, *, minutes: float | None = None, preset: str | None = None
    ) -> TextOptions:
        """From a mapping such as a TOML file holds; ``minutes`` and ``preset`` win over it."""
        return cls(**preset_options(cls, given, cls().training, minutes=minutes, preset=preset))

    def described_network(self) -> dict[str, Any]:
        """The preset's sizes under what the user said of the network."""
        # Windows are cut anywhere, so only distances mean something.
        if "transformer" not in str(self.network.get("name")):
            return dict(self.network)  # another family has other sizes
        return {"positions": "rotary", **PRESETS[self.preset], **self.network}

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)
