"""Tensors and the words that explain them as one string of bytes: safetensors with a JSON header, no pickle.

The header carries a SHA-256 over words and tensors, so damage is noticed as a whole. Anybody can compute that sum, so
it says nothing about who wrote the bytes: what they declare is checked before memory is taken for it.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import torch
from safetensors.torch import load as tensors_in
from safetensors.torch import save as tensors_as_bytes
from torch import Tensor

from anyorder.errors import UserError
from anyorder.model.versions import as_version_2
from anyorder.support.boundary import reason_of
from anyorder.support.strict_json import MOST_VALUES, read_json

FORMAT = "anyorder"
VERSION = 2
LENGTH = 8  # bytes at the beginning of a safetensors file, which say how long the JSON behind them is
FOREIGN = "it is not an anyorder file, or it is damaged"
LONGEST_HEADER = 64_000_000  # bytes of JSON: ten thousand columns of numbers; 32 x 32 pixels in colour take 2 kB

ROOM = 0.9  # of a header for the description; the rest is for the card and the names of tensors


def to_bytes(tensors: dict[str, Tensor], header: dict[str, Any], version: int = VERSION) -> bytes:
    """Tensors and header as :func:`from_bytes` reads them; ``version`` is the one that the header is in."""
    tensors = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    words = json.dumps(header, sort_keys=True)
    metadata = {"format": FORMAT, "version": str(version), "header": words, "sha256": _digest(tensors, words)}
    data = tensors_as_bytes(tensors, metadata=metadata)
    end = LENGTH + int.from_bytes(data[:LENGTH], "little")  # whatever its length: what was trained must not be lost
    return data[:LENGTH] + _in_order(data[LENGTH:end]) + data[end:]


def check_description(description: dict[str, Any]) -> None:
    """Refuse what could be written but not be read again, so that it is never trained."""
    words = json.dumps(json.dumps(description))
    values = sum(words.count(sign) for sign in ",[{")
    if len(words) > ROOM * LONGEST_HEADER or values > ROOM * MOST_VALUES:
        raise UserError(
            f"the description has {len(words)} bytes and {values} values, but a file that can be loaded holds at most "
            f"{LONGEST_HEADER} and {MOST_VALUES}; fit fewer columns, or columns with fewer levels"
        )


def from_bytes(data: bytes) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """What :func:`to_bytes` took; ``UserError`` for any other bytes."""
    end = header_end(data[:LENGTH], len(data))
    try:
        metadata = read_json(data[LENGTH:end]).get("__metadata__", {})
        tensors = tensors_in(data)
    except Exception as error:  # whatever a parser makes of bytes that are none of ours
        raise UserError(f"{FOREIGN} ({reason_of(error)}); fit or copy it again") from error
    return _checked(tensors, metadata)


def header_end(start: bytes, size: int) -> int:
    """Where the JSON of a file of ``size`` bytes ends, by its first eight; refused where that cannot be."""
    end = LENGTH + int.from_bytes(start[:LENGTH], "little")
    if size < LENGTH or end > size:
        raise UserError(f"{FOREIGN} (it ends before its header does); fit or copy it again")
    if end > LONGEST_HEADER:
        raise UserError(f"its header has {end} bytes, but at most {LONGEST_HEADER} are read")
    return end


def _in_order(words: bytes) -> bytes:
    """The JSON at the beginning of a safetensors file, as long as before, its metadata sorted by name.

    safetensors writes them in an order that changes from call to call; a model saved twice should give equal files.
    """
    said = json.loads(words)
    said["__metadata__"] = dict(sorted(said["__metadata__"].items()))
    ordered = json.dumps(said, separators=(",", ":"), ensure_ascii=False).encode().ljust(len(words))
    return ordered if len(ordered) == len(words) else words


def _checked(tensors: dict[str, Tensor], metadata: dict[str, str]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and the words that came with them, once it is certain that both are ours and whole."""
    if metadata.get("format") != FORMAT:
        raise UserError("it is a safetensors file, but not one of anyorder's")
    found = metadata.get("version", "")
    version = int(found) if found.isdecimal() and len(found) < 10 else 0
    if version > VERSION:
        raise UserError(f"it was written by a newer anyorder (format {version}); upgrade to read it")
    if version < 1:
        known = " and ".join(str(number) for number in range(1, VERSION + 1))
        raise UserError(f"it is damaged (there is no format {found!r:.40}, only {known}); fit or copy it again")
    words = metadata.get("header", "")
    if _digest(tensors, words) != metadata.get("sha256"):
        raise UserError("it is damaged (its checksum does not match); fit or copy it again")
    header = read_json(words, finite=False)  # a score in the card may be none
    if not isinstance(header, dict):
        raise UserError(f"its header must be an object, got {header!r:.80}")
    return as_version_2(tensors, header) if version == 1 else (tensors, header)


def _digest(tensors: dict[str, Tensor], words: str) -> str:
    digest = hashlib.sha256(words.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
