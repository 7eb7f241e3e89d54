"""How long fills take: 64 draws of the missing half of a 28 x 28 picture, in 32 calls, against one call a pixel.

    python benchmarks/pictures/speed.py [--json FILE]

The presets `mnist` (the paper's: 32 channels, four blocks, no smaller grid) and `small`, in two levels and in 256. The
weights are those of untrained networks, on which the time does not depend. One call a pixel (392 of them) is timed on
one draw in eight. What is known must come out bit by bit.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer

from anyorder.modalities.images.core import image_model
from anyorder.modalities.images.model import ImageModel
from anyorder.modalities.images.options import ImageOptions
from anyorder.protocols import Random

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import best_of, machine, print_rows, write_results

DRAWS, STEPS, PART = 64, 32, 8


def main(
    json: Annotated[Path, typer.Option(help="where the figures go")] = Path("benchmarks/results/image_speed.json"),
) -> None:
    """Time the fills of each preset."""
    torch.set_num_threads(2)
    lines: list[dict[str, Any]] = []
    known = np.zeros((28, 28), dtype=bool)
    known[:, :14] = True
    for preset in ("mnist", "small"):
        for levels in (2, 256):
            network = ImageOptions(preset=preset).described_network(7)
            core = image_model((28, 28), levels, network, Random(), head="auto", components=5, seed=0)
            model = ImageModel(core.eval(), {"pictures": {"levels": levels}})
            picture = np.random.default_rng(0).integers(0, levels, (28, 28)).astype(np.uint8)
            in_groups = partial(model.fill, picture, known, draws=DRAWS, steps=STEPS)
            filled = in_groups()
            if not (filled[:, known] == picture[known]).all():
                raise SystemExit("a known pixel was changed")
            few = best_of(2, in_groups)
            many = (DRAWS // PART) * best_of(1, partial(model.fill, picture, known, draws=PART))
            lines.append(
                {
                    "preset": preset,
                    "levels": levels,
                    "parameters": f"{sum(parameter.numel() for parameter in core.parameters()):,}",
                    f"{DRAWS} fills, {STEPS} calls": f"{few:.1f} s",
                    "a call a pixel": f"{many:.0f} s",
                    "ratio": f"{many / few:.1f}",
                }
            )
    print_rows(lines)
    write_results(
        json,
        {
            "title": "Fills of half a picture",
            "about": f"{DRAWS} draws of the right half of a 28 x 28 picture in {STEPS} network calls, on two threads; "
            "beside it, one call a pixel (392).",
            "command": "python benchmarks/pictures/speed.py",
            "seed": 0,
            "machine": machine(),
            "rows": lines,
        },
    )


if __name__ == "__main__":
    typer.run(main)
