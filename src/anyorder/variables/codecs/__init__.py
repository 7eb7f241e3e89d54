"""One codec per variable: cells of a column <-> one column of the model tensor. A new family is one new file here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anyorder.errors import UserError
from anyorder.support.registry import Registry
from anyorder.variables.codecs.base import Codec, Space, WarpName
from anyorder.variables.codecs.lattice import LatticeCodec
from anyorder.variables.codecs.level import LevelCodec
from anyorder.variables.codecs.line import LineCodec
from anyorder.variables.codecs.scores import Law, Standing
from anyorder.variables.codecs.spiked import SpikedCodec
from anyorder.variables.schema import Variable

__all__ = [
    "Codec",
    "LatticeCodec",
    "Law",
    "LevelCodec",
    "LineCodec",
    "Space",
    "SpikedCodec",
    "Standing",
    "WarpName",
    "codec_for",
    "codec_from_json",
    "codecs",
]

codecs: Registry[Codec] = Registry("anyorder.variables.codecs", Codec, "codec")


def codec_for(variable: Variable, *, ordinary: bool = False) -> type[Codec]:
    """The family for a variable: the one of highest priority that serves it; of the ``ordinary`` ones on request."""
    serving = [family for family in codecs.classes() if family.serves(variable) and not (ordinary and family.priority)]
    first = max((family.priority for family in serving), default=0)
    best = [family for family in serving if family.priority == first]
    if len(best) != 1:
        named = ", ".join(sorted(family.name for family in best)) or "none"
        raise UserError(
            f"column {variable.name!r} ({variable.kind.value}) needs one codec of highest priority, found {named}"
        )
    return best[0]


def codec_from_json(variable: Variable, described: Mapping[str, Any]) -> Codec:
    """The codec of ``variable`` that :meth:`Codec.to_json` described; without a name, it is an ordinary one."""
    named = isinstance(described, Mapping) and "codec" in described
    family = codecs.get(described["codec"]) if named else codec_for(variable, ordinary=True)
    try:
        return family.from_parameters(variable, described)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UserError(f"the encoding of {variable.name!r} is damaged: {error}") from error
