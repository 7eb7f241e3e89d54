"""What training a model of pictures needs: an untrained core and the masking modes to learn.

A picture of height x width pixels in L levels is a row of as many variables (times three in colour), all alike. Two
levels are coded 0 and 1; more either as codes or, for the logistic heads, as points of a lattice between -1 and 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from anyorder.data.images import Pictures
from anyorder.errors import UserError
from anyorder.heads import heads
from anyorder.masking import (
    BottomUp,
    ExteriorPatch,
    InteriorPatch,
    LeftToRight,
    Masking,
    Modes,
    RandomPixels,
    RightToLeft,
    TopDown,
    maskings,
)
from anyorder.masking.two_stage import TwoStage
from anyorder.modalities.heads import built_head
from anyorder.modalities.options import option_names
from anyorder.model import AnyOrderModel
from anyorder.networks import networks
from anyorder.protocols import Protocol
from anyorder.variables.codecs import Codec, LatticeCodec, LevelCodec, Space
from anyorder.variables.encoding import Encoding
from anyorder.variables.schema import Kind, Variable
from anyorder.variables.warp import Warp

MODES = (RandomPixels, LeftToRight, RightToLeft, TopDown, BottomUp, InteriorPatch, ExteriorPatch)
FEW_LEVELS = 32  # up to so many, auto gives each level a probability of its own
SHORT_NAMES: dict[str, dict[str, Any]] = {
    "logistic": {"name": "discretized_logistic_mixture", "components": 1},
    "mixture": {"name": "discretized_logistic_mixture"},
}


def image_model(
    shape: tuple[int, ...],
    levels: int,
    network: Mapping[str, Any],
    protocol: Protocol,
    *,
    head: str,
    components: int,
    seed: int,
) -> AnyOrderModel:
    """An untrained model of pictures of this shape; ``head`` as in :class:`ImageOptions`.

    A network that embeds levels is told how many there are.
    """
    described = described_head(head, levels)
    family = heads.of(described)
    codec: Codec
    if family.space is Space.LEVELS:
        if not family.suits(levels):
            raise UserError(f"the head {head!r} cannot answer for pictures of {levels} levels; choose another")
        names = tuple(str(level) for level in range(levels))
        codec = LevelCodec(Variable("p", Kind.CATEGORICAL, names, dtype="str"))
    else:
        # 0 .. L - 1 to -1 .. 1: the scale that the network reads and its heads answer in.
        warp = Warp.affine((levels - 1) / 2, (levels - 1) / 2)
        variable = Variable("p", Kind.INTEGER, dtype="int64", bounds=(0.0, float(levels - 1)), declared=True)
        codec = LatticeCodec(variable, warp, 0, levels - 1)
    made = built_head(described, codec, components)
    encoding = Encoding.repeat(codec, shape)
    told = {"embedded": levels} if "embedded" in option_names(networks.of(network)) else {}
    return AnyOrderModel.build(encoding, [made] * len(encoding.schema), {**told, **network}, protocol, seed=seed)


def described_head(head: str, levels: int) -> dict[str, Any]:
    """The head that a user's word stands for: its own name, or one of the short names of pictures."""
    if head == "auto":
        head = "bernoulli" if levels == 2 else "categorical" if levels <= FEW_LEVELS else "mixture"
    return dict(SHORT_NAMES.get(head, {"name": head}))


def image_masking(shape: tuple[int, ...], *, together: bool = True) -> Masking:
    """SFARM's seven modes, pixels at random two thirds of the time; ``together``: channels are known together.

    SFARM draws all modes alike. But whatever the hole, most steps of a fill know scattered pixels of it already, which
    the uniform mode is there to learn.
    """
    channels = shape[2] if len(shape) == 3 else 1
    modes = tuple(mode(shape[0], shape[1], channels, together=together) for mode in MODES)
    return Modes(modes, tuple(2.0 * (len(MODES) - 1) if mode is RandomPixels else 1.0 for mode in MODES))


def sized(described: Mapping[str, Any], shape: tuple[int, ...], *, together: bool) -> dict[str, Any]:
    """A masking by its name alone: where it has options for the size of the pictures, that is known here."""
    out = dict(described)
    if out.get("name") == Modes.name:
        listed = out.get("modes", [mode.name for mode in MODES])
        modes = [{"name": mode} if isinstance(mode, str) else mode for mode in listed]
        return {**out, "modes": [sized(mode, shape, together=together) for mode in modes]}
    known = option_names(maskings.of(out))
    channels = shape[2] if len(shape) == 3 else 1
    size = {"height": shape[0], "width": shape[1], "channels": channels, "together": together}
    return {**{name: value for name, value in size.items() if name in known}, **out}


def mode_masking(card: Mapping[str, Any], mode: str, shape: tuple[int, ...], *, together: bool) -> TwoStage:
    """The masking mode of this name that a model with this card was trained in, with whatever options it had."""
    listed = card.get("config", {}).get("masking", {}).get("modes", ())
    described = next((one for one in listed if isinstance(one, Mapping) and one.get("name") == mode), {"name": mode})
    made = maskings.build(sized(described, shape, together=together))
    if not isinstance(made, TwoStage):
        raise UserError(f"{mode!r} is no masking mode of pictures")
    return made


def encoded(model: AnyOrderModel, pictures: Pictures) -> Float[Tensor, "pictures variables"]:
    """Pixels as model values; every pixel has the same codec, whose values are listed in the order of the levels."""
    values = model.encoding.codecs[0].listed()
    assert values is not None  # pixels are levels or points of a lattice
    return torch.from_numpy(values).float()[torch.from_numpy(np.ascontiguousarray(pictures)).flatten(1).long()]


def decoded(model: AnyOrderModel, values: Float[Tensor, "pictures variables"]) -> Pictures:
    """Model values as pixels."""
    levels = model.encoding.codecs[0].index(values.double().cpu().numpy())
    return levels.astype(np.uint8).reshape(len(values), *model.schema.grid)


def shades(
    model: AnyOrderModel, values: Float[Tensor, "pictures variables"]
) -> Float[np.ndarray, "pictures variables"]:
    """Model values as levels that need not be whole."""
    codec, numbers = model.encoding.codecs[0], values.double().cpu().numpy()
    return numbers if codec.space is Space.LEVELS else codec.measure(numbers)
