"""The header of a model file in version 1, where every variable had an entry of its own.

Version 2 has a repeated variable, its codec and its head once: for a picture of 32 x 32 pixels in colour one entry in
place of 3072. It always names the modality. See ``docs/file_format.md``.
"""

from __future__ import annotations

import itertools
import math
from typing import Any


def as_version_2(header: dict[str, Any]) -> dict[str, Any]:
    """The header of a version 1 file as version 2 would have it, but for lists of equal variables and codecs.

    Those are read in both versions, since tables have them.
    """
    if header.get("kind") != "model":
        return header
    description = header["description"]
    runs = [(head, len(list(run))) for head, run in itertools.groupby(description["heads"])]
    heads = [{"head": head, "variables": length} for head, length in runs]
    card = {"modality": "table", **header["card"]}  # only texts and pictures were named
    return {**header, "description": {**description, "heads": heads}, "card": card}


def as_version_1(description: dict[str, Any]) -> dict[str, Any]:
    """A model's description with an entry for every variable, from which version 1 took the fingerprint of a model."""
    heads = [run["head"] for run in description["heads"] for _ in range(run["variables"])]
    encoding = description["encoding"]
    schema, codecs = dict(encoding["schema"]), encoding["codecs"]
    if "repeat" in schema:
        variable, count = schema.pop("repeat"), math.prod(schema["grid"])
        schema["variables"] = [{**variable, "name": f"{variable['name']}{position}"} for position in range(count)]
        schema["alike"] = True
        codecs = codecs * count if len(codecs) == 1 else codecs
    return {**description, "encoding": {"schema": schema, "codecs": codecs}, "heads": heads}
