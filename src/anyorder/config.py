"""Every option of a run as plain values: from keywords, from a TOML file, and back into the model's card.

Unknown names are refused with the nearest valid one, so a misspelt option cannot be silently ignored.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from anyorder.encoding import WarpName
from anyorder.errors import UserError, nearest
from anyorder.families import checked_heads
from anyorder.train import Options
from anyorder.tree_options import TreeOptions

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
        object.__setattr__(self, "heads", checked_heads(_section(self.heads, "heads")))

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
        training = dict(_section(given.pop("training", {}), "training"))
        if minutes is not None:
            training["minutes"] = minutes
        options = checked_options(Options, training, "training option")
        trees = checked_options(TreeOptions, _section(given.pop("trees", {}), "trees"), "option of the trees")
        values = checked_options(cls, given, "option")
        for name in ("network", "protocol", "masking", "objective"):
            if name in values:
                _section(values[name], name)
        # A file may name a network and nothing else: whatever is left out keeps the component's own default.
        return cls(**values, trees=TreeOptions(**trees), training=Options(**options))

    def to_json(self) -> dict[str, Any]:
        """Plain values from which :meth:`read` makes the same configuration."""
        return dataclasses.asdict(self)


def _section(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise UserError(f"{name} must be a table of options, as in [{name}] of a TOML file; got {value!r}")
    return value


def checked_options(cls: type[Any], given: Mapping[str, Any], noun: str) -> dict[str, Any]:
    """The options as given, once every name is a field of ``cls`` and every number a number."""
    types = {entry.name: entry for entry in dataclasses.fields(cls)}
    for name, value in given.items():
        if name not in types:
            raise UserError(f"unknown {noun} {name!r}; {nearest(name, types)}")
        default = types[name].default
        number = default is None or (isinstance(default, int | float) and not isinstance(default, bool))
        if number and (isinstance(value, bool) or not isinstance(value, int | float | type(None))):
            raise UserError(f"{noun} {name!r} must be a number, got {value!r}")
        whole = isinstance(default, int) or name == "steps"
        if whole and isinstance(value, float):
            if not value.is_integer():
                raise UserError(f"{noun} {name!r} must be a whole number, got {value!r}")
            given = {**given, name: int(value)}
    return dict(given)


def preset_options(
    cls: type[Any], given: Mapping[str, Any] | None, training: Options, *, minutes: float | None, preset: str | None
) -> dict[str, Any]:
    """The options of a family with presets (texts, pictures), over its own defaults of ``training``."""
    options = dict(given or {})
    if preset is not None:
        options["preset"] = preset
    named = options.pop("training", {})
    if not isinstance(named, Mapping):
        raise UserError(f"training must be a table of options, such as {{batch = 32}}, got {named!r}")
    named = dict(named)
    if minutes is not None:
        named["minutes"] = minutes
    named = checked_options(Options, named, "training option")
    return {**checked_options(cls, options, "option"), "training": dataclasses.replace(training, **named)}
