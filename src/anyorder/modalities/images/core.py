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
from anyorder.heads import Bernoulli, Categorical, DiscretizedLogisticMixture, Head
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
)
from anyorder.model import AnyOrderModel
from anyorder.protocols import Protocol
from anyorder.variables.codecs import Codec, LatticeCodec, LevelCodec
from anyorder.variables.encoding import Encoding
from anyorder.variables.schema import Kind, Variable
from anyorder.variables.warp import Warp

MODES = (RandomPixels, LeftToRight, RightToLeft, TopDown, BottomUp, InteriorPatch, ExteriorPatch)
FEW_LEVELS = 32  # up to so many, auto gives each level a probability of its own


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
    """An untrained model of pictures of this shape."""
    head = chosen_head(head, levels)
    if head == "bernoulli" and levels != 2:
        raise UserError(f"the head 'bernoulli' is for pictures of two levels, these have {levels}")
    codec: Codec
    made: Head
    if head in ("bernoulli", "categorical"):
        names = tuple(str(level) for level in range(levels))
        codec = LevelCodec(Variable("p", Kind.CATEGORICAL, names, dtype="str"))
        made = Bernoulli() if head == "bernoulli" else Categorical(levels)
    else:
        # 0 .. L - 1 to -1 .. 1: the scale that the network reads and its heads answer in.
        warp = Warp.affine((levels - 1) / 2, (levels - 1) / 2)
        variable = Variable("p", Kind.INTEGER, dtype="int64", bounds=(0.0, float(levels - 1)), declared=True)
        codec = LatticeCodec(variable, warp, 0, levels - 1)
        made = DiscretizedLogisticMixture(1 if head == "logistic" else components, codec.lattice)
    encoding = Encoding.repeat(codec, shape)
    return AnyOrderModel.build(encoding, [made] * len(encoding.schema), dict(network), protocol, seed=seed)


def chosen_head(head: str, levels: int) -> str:
    """What ``auto`` stands for."""
    if head != "auto":
        return head
    return "bernoulli" if levels == 2 else "categorical" if levels <= FEW_LEVELS else "mixture"


def image_masking(shape: tuple[int, ...], *, together: bool = True) -> Masking:
    """SFARM's seven modes, pixels at random two thirds of the time; ``together``: channels are known together.

    SFARM draws all modes alike. But whatever the hole, most steps of a fill know scattered pixels of it already, which
    the uniform mode is there to learn.
    """
    channels = shape[2] if len(shape) == 3 else 1
    modes = tuple(mode(shape[0], shape[1], channels, together=together) for mode in MODES)
    return Modes(modes, tuple(2.0 * (len(MODES) - 1) if mode is RandomPixels else 1.0 for mode in MODES))


def encoded(model: AnyOrderModel, pictures: Pictures) -> Float[Tensor, "pictures variables"]:
    """Pixels as model values; every pixel has the same codec."""
    flat = torch.from_numpy(np.ascontiguousarray(pictures)).flatten(1).float()
    codec = model.encoding.codecs[0]
    if isinstance(codec, LatticeCodec):
        half = (codec.stop - codec.start) / 2
        return (flat - half) / half
    return flat


def decoded(model: AnyOrderModel, values: Float[Tensor, "pictures variables"]) -> Pictures:
    """Model values as pixels."""
    codec = model.encoding.codecs[0]
    if isinstance(codec, LatticeCodec):
        half = (codec.stop - codec.start) / 2
        values = values * half + half
    shape = (len(values), *model.schema.grid)
    return values.round().clamp(0, 255).to(torch.uint8).cpu().numpy().reshape(shape)
