"""Packed files that were altered behind their checksum."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from anyorder.errors import UserError
from anyorder.modalities.face import decompress
from anyorder.tasks.compression.coder import Sealed


def assert_never_wrong(magic: bytes, model: Any, packed: bytes, right: Callable[[Any], bool]) -> None:
    """A sound file whose words mean something else, as on a machine that rounds otherwise: refused, or no harm done."""
    sealed = Sealed.read(magic, model.core, packed)
    refused = 0
    for place in range(0, len(sealed.stream), max(1, len(sealed.stream) // 40)):
        words = bytearray(sealed.stream)
        words[place] ^= 0x55
        file = dataclasses.replace(sealed, stream=bytes(words)).written(magic, model.core)
        try:
            back = decompress(model, file)
        except UserError as error:
            refused += "rounds otherwise" in str(error)
            continue
        assert right(back)  # the last words hold bits that nothing depends on
    assert refused > 20
