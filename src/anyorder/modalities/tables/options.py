"""Every option of a run as plain values: from keywords, from a TOML file, and back into the model's card.

Unknown names are refused with the nearest valid one, so a misspelt option cannot be silently ignored.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from anyorder.errors import UserError, nearest
from anyorder.modalities.options import checked_options, section
from anyorder.modalities.tables.heads import checked_heads
from anyorder.training.options import Options
from anyorder.training.trees.options import TreeOptions
from anyorder.variables.codecs import WarpName

ENCODINGS = ("auto", *get_args(WarpName))


@dataclass(frozen=True)
class Config:
    """How to fit a table.

    ``engine``: ``neural``, ``trees``, or ``auto``: both, blended by how well they do on held-out rows.
    ``encoding``: how numbers enter the model: ``standard`` shifts and scales, ``normal_scores`` bends each column to
    a normal and lets the network predict relative to a closed-form Gaussian; ``auto`` tries both and keeps the
    better one on held-out rows. ``trial`` is the share of the budget that each try gets.
    ``heads``: by kind, a head other than the default one, such as ``{"continuous": {"name": "spline", "bins": 16}}``.
    ``network``, ``protocol``, ``masking``, ``objective`` are a ``name`` and options; masking and objective may be
    ``auto``: single edges beside each other for mask networks, whole chains of evidence and asked for chain networks.
    """

    engine: str = "auto"
    encoding: str = "auto"
    components: int = 10  # of the mixture that a number's distribution is made of
    trial: float = 0.35
    validation_share: float = 0.1
    most_validation_rows: int = 10_000
    heads: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    network: Mapping[str, Any] = field(default_factory=lambda: {"name": "residual_mlp"})
    protocol: Mapping[str, Any] = field(default_factory=lambda: {"name": "canonical"})
    masking: Mapping[str, Any] = field(default_factory=lambda: {"name": "auto"})
    objective: Mapping[str, Any] = field(default_factory=lambda: {"name": "auto"})
    trees: TreeOptions = field(default_factory=TreeOptions)
    training: Options = field(default_factory=Options)

    def __post_init__(self) -> None:
        if self.encoding not in ENCODINGS:
            raise UserError(f"unknown encoding {self.encoding!r}; {nearest(self.encoding, ENCODINGS)}")
        if not 0 < self.validation_share < 1:
            raise UserError(f"validation_share must lie between 0 and 1, got {self.validation_share!r}")
        if not 0 < self.trial <= 0.5:
            raise UserError(f"trial must lie in (0, 0.5], got {self.trial!r}")
        if self.most_validation_rows < 2:
            raise UserError(f"most_validation_rows must be 2 or more, got {self.most_validation_rows!r}")
        if self.components < 1:
            raise UserError(f"components must be 1 or more, got {self.components!r}")
        object.__setattr__(self, "heads", checked_heads(section(self.heads, "heads")))

    @classmethod
    def read(
        cls, given: Mapping[str, Any] | None, *, minutes: float | None = None, engine: str | None = None
    ) -> Config:
        """From a mapping such as a TOML file holds; ``minutes`` and ``engine`` win over the file's."""
        if given is not None and not isinstance(given, Mapping):
            raise UserError(f"config must be a mapping of options, as a TOML file holds them; got {given!r}")
        given = dict(given or {})
        if engine is not None:
            given["engine"] = engine
        training = dict(section(given.pop("training", {}), "training"))
        if minutes is not None:
            training["minutes"] = minutes
        options = checked_options(Options, training, "training option")
        trees = checked_options(TreeOptions, section(given.pop("trees", {}), "trees"), "option of the trees")
        values = checked_options(cls, given, "option")
        for name in ("network", "protocol", "masking", "objective"):
            if name in values:
                section(values[name], name)
        # A file may name a network and nothing else: whatever is left out keeps the component's own default.
        return cls(**values, trees=TreeOptions(**trees), training=Options(**options))

    def to_json(self) -> dict[str, Any]:
        """Plain values from which :meth:`read` makes the same configuration."""
        return dataclasses.asdict(self)
