"""Our files taken apart, changed and sealed again by a right checksum: models, checkpoints, compressed ones."""

from __future__ import annotations

import hashlib
import itertools
import json
import lzma
import math
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from damage_blind import BLIND, flipped
from damage_bombs import xz_bomb, zlib_bomb
from damage_values import FIELDS, Crafted, Generator, malformed_json, places, words

KINDS = {
    "F64": ("float64", 8), "F32": ("float32", 4), "F16": ("float16", 2), "BF16": ("bfloat16", 2), "I64": ("int64", 8),
    "I32": ("int32", 4), "I16": ("int16", 2), "I8": ("int8", 1), "U8": ("uint8", 1), "BOOL": ("bool", 1),
    "F8_E5M2": ("float8_e5m2", 1), "F8_E4M3": ("float8_e4m3fn", 1), "C64": ("complex64", 8), "U16": ("uint16", 2),
    "U32": ("uint32", 4), "U64": ("uint64", 8),
}  # fmt: skip
FLOATS = {"F64": np.float64, "F32": np.float32, "F16": np.float16}
WHOLE = {"I64": np.int64, "I32": np.int32, "I16": np.int16, "I8": np.int8, "U8": np.uint8}


@dataclass
class TensorFile:
    """A file of ours in its parts; :meth:`written` recomputes the checksum as ``docs/file_format.md`` has it."""

    tensors: dict[str, tuple[str, list[int], bytes]]
    header: Any
    version: str
    text: str | None = None  # in place of the header, where it is no JSON value
    metadata: dict[str, Any] = field(default_factory=dict)  # over what a right file says

    @classmethod
    def read(cls, data: bytes) -> TensorFile:
        """Take a whole file apart."""
        length = int.from_bytes(data[:8], "little")
        said = json.loads(data[8 : 8 + length])
        metadata = said.pop("__metadata__")
        start = 8 + length
        tensors = {}
        for name, one in said.items():
            low, high = one["data_offsets"]
            tensors[name] = (one["dtype"], one["shape"], data[start + low : start + high])
        return cls(tensors, json.loads(metadata["header"]), metadata["version"])

    def written(self) -> bytes:
        """The whole file, with a right checksum."""
        entries, content, at = {}, b"", 0
        for name, (kind, shape, raw) in sorted(self.tensors.items(), key=lambda one: (-KINDS[one[1][0]][1], one[0])):
            entries[name] = {"dtype": kind, "shape": shape, "data_offsets": [at, at + len(raw)]}
            content += raw
            at += len(raw)
        text = words(self.header) if self.text is None else self.text
        metadata = {"format": "anyorder", "version": self.version, "header": text, "sha256": self.digest(text)}
        metadata = {name: item for name, item in (metadata | self.metadata).items() if item is not None}
        front = json.dumps({"__metadata__": metadata, **entries}, separators=(",", ":"), ensure_ascii=True).encode()
        front = front.ljust(-(-len(front) // 8) * 8)
        return len(front).to_bytes(8, "little") + front + content

    def digest(self, text: str) -> str:
        """SHA-256 of the words, and of the name, type, shape and bytes of every tensor in the order of their names."""
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass"))
        for name in sorted(self.tensors):
            kind, shape, raw = self.tensors[name]
            digest.update(f"{name} torch.{KINDS[kind][0]} {tuple(shape)}".encode("utf-8", "surrogatepass"))
            digest.update(raw)
        return digest.hexdigest()


def _in_tensors(change: Callable[[TensorFile, Generator], None]) -> Crafted:
    def crafted(data: bytes, rng: Generator) -> bytes:
        file = TensorFile.read(data)
        change(file, rng)
        return file.written()

    return crafted


def _in_header(change: Callable[[Any, Generator], None]) -> Crafted:
    """A change to the description of the model, or to its card (or to what a checkpoint says)."""

    def crafted(file: TensorFile, rng: Generator) -> None:
        part = file.header
        if "description" in part:
            chosen = rng.random()
            part = part["description"] if chosen < 0.6 else part["card"] if chosen < 0.9 else part
        for _ in range(int(rng.choice([1, 1, 1, 2]))):
            change(part, rng)

    return _in_tensors(crafted)


def _some_tensor(file: TensorFile, rng: Generator, kinds: Any = KINDS) -> str | None:
    names = sorted(name for name, (kind, _, raw) in file.tensors.items() if kind in kinds and raw)
    return names[int(rng.integers(len(names)))] if names else None


def tensor_missing(file: TensorFile, rng: Generator) -> None:
    if name := _some_tensor(file, rng):
        del file.tensors[name]
    if rng.random() < 0.1:
        file.tensors.clear()


def tensor_extra(file: TensorFile, rng: Generator) -> None:
    if name := _some_tensor(file, rng):
        file.tensors[str(rng.choice(["extra", "network.extra", name + "2", "", "a/b/c", "optimizer/x/y"]))] = (
            file.tensors[name]
        )


def tensor_renamed(file: TensorFile, rng: Generator) -> None:
    one, other = _some_tensor(file, rng), _some_tensor(file, rng)
    if one and other:
        if rng.random() < 0.5:
            file.tensors[one], file.tensors[other] = file.tensors[other], file.tensors[one]
        else:
            file.tensors[one + str(rng.choice(["x", " ", "\n", "."]))] = file.tensors.pop(one)


def tensor_shape(file: TensorFile, rng: Generator) -> None:
    """Another shape: of the same bytes, or of more or fewer."""
    name = _some_tensor(file, rng)
    if name is None:
        return
    kind, shape, raw = file.tensors[name]
    count = math.prod(shape)
    choices: list[list[int]] = [
        [count], [1, *shape], [*shape, 1], shape[::-1], [count, 1], [1, count], [0], [], [0, 30_000], [1] * 70,
        [side + 1 for side in shape], [max(side - 1, 0) for side in shape], [*shape[:-1], 1],
    ]  # fmt: skip
    chosen = choices[int(rng.integers(len(choices)))]
    size = math.prod(chosen) * KINDS[kind][1]
    file.tensors[name] = (kind, chosen, (raw * (size // len(raw) + 1))[:size])


def tensor_kind(file: TensorFile, rng: Generator) -> None:
    """Another type of number, the shape kept: the values cast where that can be done, else zeros."""
    name = _some_tensor(file, rng)
    if name is None:
        return
    old, shape, raw = file.tensors[name]
    kind = str(rng.choice([kind for kind in KINDS if kind != old]))
    count = math.prod(shape)
    known = {**FLOATS, **WHOLE}
    if old in known and kind in known:
        with np.errstate(all="ignore"):
            content = np.frombuffer(raw, dtype=known[old]).astype(known[kind]).tobytes()
    else:
        content = bytes(count * KINDS[kind][1])
    file.tensors[name] = (kind, shape, content)


def tensor_values(file: TensorFile, rng: Generator) -> None:
    """Numbers that are none, infinite, huge, tiny, or all the same."""
    name = _some_tensor(file, rng, FLOATS)
    if name is None:
        return
    kind, shape, raw = file.tensors[name]
    values = np.frombuffer(raw, dtype=FLOATS[kind]).copy()
    most = float(np.finfo(FLOATS[kind]).max)
    value = float(rng.choice([math.nan, math.inf, -math.inf, most, -most, 1e10, -1e10, 1e4, 0.0, -1.0, 1e-45]))
    with np.errstate(all="ignore"):
        if rng.random() < 0.4:
            values[:] = value
        elif rng.random() < 0.2:
            values *= np.asarray(rng.choice([-1, 100, 1e6, 1e20])).astype(values.dtype)
        else:
            values[rng.integers(0, len(values), max(1, int(rng.integers(1, 4))))] = value
    file.tensors[name] = (kind, shape, values.tobytes())


def tensor_integers(file: TensorFile, rng: Generator) -> None:
    """Indices, children and counts out of their range; files without any get other floats."""
    name = _some_tensor(file, rng, WHOLE)
    if name is None:
        tensor_values(file, rng)
        return
    kind, shape, raw = file.tensors[name]
    values = np.frombuffer(raw, dtype=WHOLE[kind]).copy()
    ends = np.iinfo(WHOLE[kind])
    choices = [0, 1, -1, -2, 2, 100, 10**6, ends.max, ends.min, ends.max - 1, len(values), len(values) - 1]
    where = rng.integers(0, len(values), max(1, int(rng.choice([1, 1, 2, 20]))))
    if rng.random() < 0.2:
        where = np.arange(len(values))
    change = rng.random()
    if change < 0.6:
        values[where] = int(np.clip(choices[int(rng.integers(len(choices)))], ends.min, ends.max))
    elif change < 0.8:
        with np.errstate(all="ignore"):
            values[where] += np.asarray(rng.choice([1, -1]), dtype=np.int64).astype(values.dtype)
    else:
        values = values[rng.permutation(len(values))]
    file.tensors[name] = (kind, shape, values.tobytes())


def envelope(file: TensorFile, rng: Generator) -> None:
    """The words around: versions, formats, kinds of file, foreign entries."""
    choices: tuple[dict[str, Any], ...] = (
        {"version": str(rng.choice(["0", "1", "2", "3", "12", "-1", "two", "", "1.0", "²", "1" * 5000, " 2", "٢"]))},
        {"format": str(rng.choice(["pt", "", "Anyorder", "anyorder2"]))},
        {"extra": "x" * int(rng.choice([0, 10, 10**6]))},
        {"format": None},
        {"version": None},
        {"header": None},
        {"sha256": None},
        {"sha256": "0" * 64},
        {"version": 2},
        {"sha256": ["a"]},
    )
    file.metadata = choices[int(rng.integers(len(choices)))]


def _lengths(data: bytes, rng: Generator) -> bytes:
    """The length of the front, and where tensors lie in the file."""
    length = int.from_bytes(data[:8], "little")
    if rng.random() < 0.5:
        others = [0, 1, length - 1, length + 1, length + 8, len(data), 2**31, 2**62, 2**63, 2**64 - 1, 100_000_000]
        return int(others[int(rng.integers(len(others)))]).to_bytes(8, "little") + data[8:]
    said = json.loads(data[8 : 8 + length])
    names = sorted(set(said) - {"__metadata__"})
    one = said[names[int(rng.integers(len(names)))]]
    choices: tuple[tuple[str, Any], ...] = (
        ("data_offsets", [0, 0]),
        ("data_offsets", [one["data_offsets"][1], one["data_offsets"][0]]),
        ("data_offsets", [0, 2**60]),
        ("data_offsets", [-1, 3]),
        ("data_offsets", [one["data_offsets"][0]]),
        ("data_offsets", "x"),
        ("shape", [2**32, 2**32]),
        ("shape", [-1]),
        ("shape", [10**6, 10**6]),
        ("shape", [2**63]),
        ("shape", None),
        ("dtype", "X9"),
        ("dtype", "F4"),
        ("dtype", None),
    )
    name, value = choices[int(rng.integers(len(choices)))]
    one[name] = value
    front = json.dumps(said).encode()
    return len(front).to_bytes(8, "little") + front + data[8 + length :]


def tree_texts(file: TensorFile, rng: Generator) -> None:
    """Trees that are kept as LightGBM's text: a number, a line or a length in it is another; else other integers."""
    texts = sorted(
        name for name, (kind, _, raw) in file.tensors.items() if name.endswith("text") and kind == "U8" and raw
    )
    networks = [
        where[name] for where, name in places(file.header) if isinstance(where[name], dict) and "lengths" in where[name]
    ]
    if not texts or not networks:
        tensor_integers(file, rng)
        return
    number = int(rng.integers(min(len(texts), len(networks))))
    network, (kind, _, raw) = networks[number], file.tensors[texts[number]]
    ends = list(itertools.accumulate((length for own in network["lengths"] for length in own), initial=0))
    if ends[-1] != len(raw):
        tensor_integers(file, rng)
        return
    parts = [raw[low:high] for low, high in itertools.pairwise(ends)]
    chosen = int(rng.choice([index for index, part in enumerate(parts) if part]))
    text = zlib.decompress(parts[chosen]).decode()
    parts[chosen] = zlib.compress(_other_tree(text, rng).encode("utf-8", "surrogatepass"))
    if rng.random() < 0.1:
        parts[chosen] = zlib_bomb()
    counts = iter(len(part) for part in parts)
    network["lengths"] = [[next(counts) for _ in own] for own in network["lengths"]]
    content = b"".join(parts)
    file.tensors[texts[number]] = (kind, [len(content)], content)


def _other_tree(text: str, rng: Generator) -> str:
    lines = text.split("\n")
    known = [index for index, line in enumerate(lines) if "=" in line]
    index = known[int(rng.integers(len(known)))]
    name, _, value = lines[index].partition("=")
    numbers = ["-1", "0", "1", "5", "-7", "99", "1000000", "2147483648", "-2147483648", "nan", "inf", "1e400", "x", ""]
    change = rng.random()
    if change < 0.6:
        items = value.split(" ")
        items[int(rng.integers(len(items)))] = str(rng.choice(numbers))
        lines[index] = f"{name}={' '.join(items)}"
    elif change < 0.7:
        del lines[index]
    elif change < 0.8:
        lines[index] = f"{name}={' '.join(value.split(' ')[:-1])}"
    elif change < 0.9:
        lines[index] = f"{name}={value} {value}"
    else:
        return text[: int(rng.integers(len(text)))]
    return "\n".join(lines)


def _malformed_header(file: TensorFile, rng: Generator) -> None:
    file.text = malformed_json(file.header, rng)


TENSORS: dict[str, Crafted] = {
    **{name: _in_header(change) for name, change in FIELDS.items()},
    "malformed JSON": _in_tensors(_malformed_header),
    "tensor missing": _in_tensors(tensor_missing),
    "tensor extra": _in_tensors(tensor_extra),
    "tensor renamed": _in_tensors(tensor_renamed),
    "tensor of another shape": _in_tensors(tensor_shape),
    "tensor of another type": _in_tensors(tensor_kind),
    "other floats": _in_tensors(tensor_values),
    "other integers": _in_tensors(tensor_integers),
    "other trees": _in_tensors(tree_texts),
    "other envelope": _in_tensors(envelope),
    "other lengths": _lengths,
}

CODED = struct.Struct("<4s8sIII")


def _coded(change: Callable[[Any, list[bytes], bytes, Generator], tuple[bytes, bytes]]) -> Crafted:
    """Take a compressed file apart, change what is in it, and seal it again."""

    def crafted(data: bytes, rng: Generator) -> bytes:
        magic, model, content, length, _ = CODED.unpack(data[: CODED.size])
        body = data[CODED.size :]
        front, stream = body[:length], body[length:]
        line, _, rest = (front if front[:1] == b"{" else lzma.decompress(front)).partition(b"\n")
        facts = json.loads(line)
        ends = list(itertools.accumulate(facts.get("blobs", []), initial=0))
        blobs = [rest[low:high] for low, high in itertools.pairwise(ends)]
        front, stream = change(facts, blobs, stream, rng)
        named = (magic, model, content if rng.random() < 0.9 else 7, len(front))
        whole = front + stream
        return CODED.pack(*named, zlib.crc32(whole, zlib.crc32(CODED.pack(*named, 0)))) + whole

    return crafted


def _front(facts: Any, blobs: list[bytes]) -> bytes:
    return words(facts, sort=False).encode() + b"\n" + b"".join(blobs)


def _coded_fields(change: Callable[[Any, Generator], None]) -> Crafted:
    def changed(facts: Any, blobs: list[bytes], stream: bytes, rng: Generator) -> tuple[bytes, bytes]:
        change(facts, rng)
        return _front(facts, blobs), stream

    return _coded(changed)


def _coded_malformed(facts: Any, blobs: list[bytes], stream: bytes, rng: Generator) -> tuple[bytes, bytes]:
    text = malformed_json(facts, rng).encode("utf-8", "surrogatepass")
    return (text if text[:1] == b"{" else lzma.compress(text, lzma.FORMAT_ALONE)) + b"\n" + b"".join(blobs), stream


def _coded_blobs(facts: Any, blobs: list[bytes], stream: bytes, rng: Generator) -> tuple[bytes, bytes]:
    if not blobs:
        return _coded_stream(facts, blobs, stream, rng)
    index = int(rng.integers(len(blobs)))
    if rng.random() < 0.3:
        blobs[index] = blobs[int(rng.integers(len(blobs)))]
    elif rng.random() < 0.3:
        texts = [b"[]", b"[[]]", b"[1]", b'[["int", "x"]]', b'[["float", "zz"]]', b'[["Timestamp", [1]]]', b"[" * 10**5,
                 b'[["decimal", "1E+999999999"]]', b'[["int", "' + b"9" * 6000 + b'"]]', b'[["date", 3]]']  # fmt: skip
        blobs[index] = texts[int(rng.integers(len(texts)))]
    elif blobs[index]:
        name = sorted(BLIND)[int(rng.integers(len(BLIND)))]
        blobs[index] = BLIND[name](blobs[index], blobs[0] or b"x", rng)
    else:
        blobs[index] = rng.bytes(int(rng.choice([4, 7, 48])))
    facts["blobs"] = [len(blob) for blob in blobs]
    return _front(facts, blobs), stream


def _coded_stream(facts: Any, blobs: list[bytes], stream: bytes, rng: Generator) -> tuple[bytes, bytes]:
    change = rng.random()
    if change < 0.2:
        stream = b""
    elif change < 0.4:
        stream = stream + rng.bytes(int(rng.choice([4, 8, 400])))
    else:
        stream = flipped(stream, b"", rng)
    return _front(facts, blobs), stream


def _coded_bomb(facts: Any, blobs: list[bytes], stream: bytes, rng: Generator) -> tuple[bytes, bytes]:
    return xz_bomb(), stream


CODED_FILES: dict[str, Crafted] = {
    **{name: _coded_fields(change) for name, change in FIELDS.items()},
    "malformed JSON": _coded(_coded_malformed),
    "other blobs": _coded(_coded_blobs),
    "other code": _coded(_coded_stream),
    "bomb": _coded(_coded_bomb),
}
