"""How long fills take: 64 draws of the missing half of a 28 x 28 picture, in 32 calls, against one call a pixel.

And how long the likelihood of a colour picture takes, with a pass of the network for each pixel, against one for each
channel, which is the same number to rounding.

    python benchmarks/pictures/speed.py [--json FILE]    (about ten minutes)

The presets `mnist` (the paper's: 32 channels, four blocks, no smaller grid) and `small`, in two levels and in 256. The
weights are those of untrained networks, on which the time does not depend. One call a pixel (392 of them) is timed on
one draw in eight: the plain baseline. What is known must come out bit by bit.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import typer

from anyorder.modalities.images.core import encoded, image_model
from anyorder.modalities.images.model import ImageModel
from anyorder.modalities.images.options import ImageOptions
from anyorder.networks.base import MaskNetwork
from anyorder.protocols import Pixelwise, Random
from anyorder.query import Query

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import Json, Record, Smoke, best_of, print_rows

TIMES = ("heads", "networks", "model", "modalities/images")
DRAWS, STEPS, PART = 64, 32, 8


def main(
    json: Json = None,
    smoke: Smoke = False,
) -> None:
    """Time the fills of each preset."""
    torch.set_num_threads(2)
    record, side, draws, presets = Record(json, "image_speed.json", smoke=smoke), 28, DRAWS, ("mnist", "small")
    if smoke:
        side, draws, presets = 8, PART, ("tiny",)
    lines: list[dict[str, Any]] = []
    known = np.zeros((side, side), dtype=bool)
    known[:, : side // 2] = True
    for preset in presets:
        for levels in (2, 256):
            network = ImageOptions(preset=preset).described_network(modes=7)
            core = image_model((side, side), levels, network, Random(), head="auto", components=5, seed=0)
            model = ImageModel(core.eval(), {"pictures": {"levels": levels}})
            picture = np.random.default_rng(0).integers(0, levels, (side, side)).astype(np.uint8)
            in_groups = partial(model.fill, picture, known, draws=draws, steps=STEPS)
            filled = in_groups()
            if not (filled[:, known] == picture[known]).all():
                raise SystemExit("a known pixel was changed")
            few = best_of(2, in_groups)
            many = (draws // PART) * best_of(1, partial(model.fill, picture, known, draws=PART))
            lines.append(
                {
                    "preset": preset,
                    "levels": levels,
                    "parameters": f"{sum(parameter.numel() for parameter in core.parameters()):,}",
                    f"{draws} fills, {STEPS} calls": f"{few:.1f} s",
                    "a call a pixel": f"{many:.0f} s",
                    "ratio": f"{many / few:.1f}",
                }
            )
    print_rows(lines)
    colour = likelihood_in_colour(8 if smoke else 32, "tiny" if smoke else "small")
    print_rows([colour])
    record.write(
        {
            "title": "Fills of half a picture",
            "about": f"{draws} draws of the right half of a {side} x {side} picture in {STEPS} network calls, on two "
            f"threads; beside it, one call a pixel ({side * side // 2}).",
            "seed": 0,
            "rows": lines,
            "likelihood_in_colour": [colour],
        },
    )


def likelihood_in_colour(side: int, preset: str) -> dict[str, Any]:
    """Passes and seconds for log p of one picture whose channels share a mixture: a pass a pixel, and a channel."""
    network = ImageOptions(preset=preset).described_network(modes=7, coupled=256)
    core = image_model((side, side, 3), 256, network, Pixelwise(3), head="mixture", components=5, seed=0)
    noise = torch.Generator().manual_seed(0)  # an untrained network says the same of every pixel
    for parameter in core.parameters():
        parameter.data.add_(0.05 * torch.randn(parameter.shape, generator=noise))
    picture = np.random.default_rng(0).integers(0, 256, (1, side, side, 3)).astype(np.uint8)
    values, everything = encoded(core, picture), torch.ones(1, core.variables, dtype=torch.bool)
    chain = core.chain(Query.marginal(everything), torch.Generator().manual_seed(0))
    passes: list[int] = []
    core.network.trunk.register_forward_pre_hook(lambda trunk, inputs: passes.append(len(inputs[0])))  # type: ignore[union-attr]  # a U-Net has a trunk
    found = []
    ways: list[Callable[[], torch.Tensor]] = [
        partial(core.network.along, values, chain),
        partial(MaskNetwork.along, core.network, values, chain),
    ]
    with torch.no_grad():
        for way in ways:
            passes.clear()
            features = way()
            counted = sum(passes)
            found.append((counted, best_of(1, way), features))
    (few, seconds, one), (many, longer, other) = found
    if not torch.allclose(one, other, atol=1e-4):
        raise SystemExit("a pass a pixel says something else than a pass a channel")
    return {
        "preset": preset,
        "picture": f"{side} x {side} x 3",
        "passes": few,
        "seconds": f"{seconds:.2f}",
        "a pass a channel: passes": many,
        "a pass a channel: seconds": f"{longer:.2f}",
        "ratio of passes": round(many / few, 2),
        "ratio of seconds": round(longer / seconds, 2),
    }


if __name__ == "__main__":
    typer.run(main)
