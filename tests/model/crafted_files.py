"""Model files made on purpose: words and tensors changed, and the checksum put right again, as anybody can."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from torch import Tensor

from anyorder.model.tensor_bytes import LENGTH, VERSION, from_bytes, to_bytes

Header = dict[str, Any]
Change = Callable[[Header, dict[str, Tensor]], None]


def crafted(data: bytes, change: Change, version: int | str = VERSION) -> bytes:
    """The bytes of a model file after ``change`` of its header and tensors, with a right checksum."""
    tensors, header = from_bytes(data)
    change(header, tensors)
    return to_bytes(tensors, header, version)  # type: ignore[arg-type]


def setting(path: str, value: Any) -> Change:
    """A change that puts ``value`` at a path of keys and positions such as ``description.heads.0.variables``."""

    def change(header: Header, tensors: dict[str, Tensor]) -> None:
        inside: Any = header
        *way, last = [int(key) if key.isdecimal() else key for key in path.split(".")]
        for key in way:
            inside = inside[key]
        inside[last] = value

    return change


def with_words(words: str | bytes, tensors: bytes = b"") -> bytes:
    """A safetensors file with these words as its whole JSON."""
    encoded = words.encode() if isinstance(words, str) else words
    return len(encoded).to_bytes(LENGTH, "little") + encoded + tensors


def with_header(words: str) -> bytes:
    """A file of anyorder's without tensors, with these words as the header that describes the model."""
    import hashlib

    metadata = {"format": "anyorder", "version": str(VERSION), "header": words}
    return with_words(json.dumps({"__metadata__": {**metadata, "sha256": hashlib.sha256(words.encode()).hexdigest()}}))
