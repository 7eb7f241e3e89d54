"""Model files of version 1: every variable had an entry of its own in the header, and trees were a text.

Version 2 has a repeated variable, its codec and its head once: for a picture of 32 x 32 pixels in colour one entry
instead of 3072. It always names the modality, and its trees are arrays. See ``docs/file_format.md``.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from anyorder.networks import networks

NETWORK = "network."  # before the names of its tensors


def as_version_2(tensors: dict[str, Tensor], header: dict[str, Any]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and header of a version 1 file as version 2 would have them, but for lists of equal variables and codecs.

    Those are read in both versions, since tables have them.
    """
    if header.get("kind") != "model":
        return tensors, header
    description = header["description"]
    runs = [(head, len(list(run))) for head, run in itertools.groupby(description["heads"])]
    heads = [{"head": head, "variables": length} for head, length in runs]
    card = {"modality": "table", **header["card"]}  # only texts and pictures were named
    own = {name.removeprefix(NETWORK): tensor for name, tensor in tensors.items() if name.startswith(NETWORK)}
    network, renewed = networks.of(description["network"]).from_version_1(description["network"], own)
    described = {**description, "heads": heads, "network": network}
    if network != description["network"]:
        # Nobody can find the old tensors from the new ones, so what was compressed must know the model by its old name.
        described["former_digest"] = digest(description, tensors)
    rest = {name: tensor for name, tensor in tensors.items() if not name.startswith(NETWORK)}
    tensors = {**rest, **{NETWORK + name: tensor for name, tensor in renewed.items()}}
    return tensors, {**header, "description": described, "card": card}


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


def digest(description: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> str:
    """The SHA-256 of a model, in hexadecimal digits: of the words that version 1 describes it with, and its tensors."""
    found = hashlib.sha256(json.dumps(description, sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        found.update(name.encode())
        found.update(tensor.cpu().contiguous().numpy().tobytes())
    return found.hexdigest()
