"""A head for a variable: what the user chose of it, and what the variable itself decides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anyorder.heads import Head, heads
from anyorder.modalities.options import option_names
from anyorder.variables.codecs import Codec


def built_head(described: Mapping[str, Any], codec: Codec, components: int) -> Head:
    """The described head with what its variable decides; ``components`` is the default of mixtures."""
    family = heads.of(described)
    options = option_names(family)
    made = dict(described)
    if "components" in options and not family.own_components:
        made.setdefault("components", components)
    if "levels" in options:
        made["levels"] = len(codec.variable.levels)
    if "lattice" in options and codec.lattice is not None:
        made["lattice"] = codec.lattice
    if "reach" in options:
        made["reach"] = codec.reach
    return heads.build(made)
