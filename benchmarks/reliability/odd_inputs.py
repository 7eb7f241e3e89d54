"""Odd tables, option files, texts and pictures, each with one oddity, made from a seed and a number alone."""

from __future__ import annotations

import gzip
import io
import json as json_format
import lzma
import random
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from damage_blind import BLIND
from damage_values import toml_text

MODALITIES = ("table", "text", "images")
# fmt: off
NUMBERS = [
    "0", "1", "2", "3", "-1", "1.5", "1e309", "-1e309", "nan", "inf", "2147483648", "9223372036854775808",
    "18446744073709551616", "1e-320", "", " ", "1_000", "0x10", "\u0661\u0662", "1e5",
    "99999999999999999999999999", "0.001", "True", "None", "\xbd",
]
TEXTS = [
    "", " ", "a", "x" * 5000, "\xfc", "\u202eevil", "\x1b[31m", "a\nb", "$x^{", "--", "-", "\U0001f642" * 50, "'", '"',
    "=1+1", "../..", "%s", "{}",
]
QUESTIONS = [
    "price | rooms=6", "price", "P(price > 20 | rooms=5)", "price=3, river", "|", "rooms=>", "price | price=1",
    "E[price]", "rooms | river={yes, no}", "price | rooms=1..", "price | rooms=1e400", "river=maybe", "P(",
    "x" * 3000, "price,price",
]
CELLS = [
    "1", "2.5", "-3", "0", "007", "1e5", "1e400", "inf", "nan", "NA", "", "  ", "True", "yes", "no", "maybe",
    "a b", "x,y", 'q"t', "12345678901234567890", "1,5", "\xfc", "2024-01-01", "2024-13-45", "9999-99-99T", "\x0b",
    "\x1b[0m", "=1+1", "\u202e", "\U0001f642", "6", "22",
]
NAMES = [
    "rooms", "price", "river", "a", "b", "", " ", "a b", "\xfc", "$x^{", "=n", "1.5", "draw", "missing(a)",
    "x" * 2000, "\x1b[31m", "a", "P(", "|", "\u202e",
]
# fmt: on
ENCODINGS = ["utf-8-sig", "utf-16", "utf-16-le", "latin-1", "utf-32", "cp037"]
PLAIN_NAMES = ["rooms", "price", "river", "age", "floor area", "day", "größe"]
HOLES = 0.2  # the share of the cells that a plain table leaves empty
ODDITIES = (
    "cells",
    "a cell",
    "names",
    "delimiter",
    "newline",
    "encoding",
    "quotes",
    "ragged",
    "long",
    "rows",
    "column",
)
ODDITIES += ("more columns", "suffix", "bytes", "json", "blind")


@dataclass(frozen=True)
class Case:
    """One command line: which of a family it is follows from the seed and the number alone."""

    family: str
    seed: int
    number: int
    models: str

    def __str__(self) -> str:
        return f"{self.family}: --seed {self.seed} --only {self.number}"


class Inputs:
    """What a case is made of: chance, and a folder to write files into."""

    def __init__(self, case: Case, folder: Path) -> None:
        self.chance = random.Random(f"{case.seed} {case.number}")
        self.folder = folder
        self.models = Path(case.models)

    def some(self, options: Sequence[Any]) -> Any:
        return self.chance.choice(options)

    def often(self, share: float) -> bool:
        return self.chance.random() < share

    def given(self, name: str) -> str:
        """A file that lies beside the models."""
        return str(self.models / name)

    def model(self, modality: str) -> str:
        return self.given(f"{modality}.anyorder")

    def write(self, name: str, content: bytes) -> str:
        (self.folder / name).write_bytes(content)
        return str(self.folder / name)

    def out(self, ending: str) -> str:
        return str(self.folder / f"out{ending}")

    def odd_out(self) -> str:
        """Where nothing, or nothing of that kind, can be written."""
        return self.some([str(self.folder / f"out{ending}") for ending in (".xyz", "", ".csv.gz", ".PNG")]
                         + [str(self.folder), str(self.folder / "nowhere" / "out.csv"), ""])  # fmt: skip

    def damaged(self, content: bytes) -> bytes:
        """Blind damage, as the attack on files does it."""
        if not content:
            return content
        other = (self.models / "table.csv").read_bytes()
        rng = np.random.default_rng(self.chance.getrandbits(32))
        return BLIND[self.some(sorted(BLIND))](content, other, rng)

    # Tables

    def table(self, *, known: bool, odd: bool) -> str:
        """A table with the model's columns, or with any: plain, with holes; if it is odd, then in one way."""
        oddity = self.some(ODDITIES) if odd else ""
        names = ["rooms", "price", "river"] if known else self.chance.sample(PLAIN_NAMES, self.chance.randint(2, 5))
        if oddity == "names":
            names = [self.some(NAMES) if self.often(0.5) else name for name in names]
        elif oddity == "more columns":
            names.append(self.some(NAMES))
        elif oddity == "column":
            names = names[:1]
        rows = self.some([0, 1, 2, 3]) if oddity == "rows" else self.some([1, 2, 8, 30]) if known else 60
        cells = list(zip(*(self._column(name, rows) for name in names), strict=True))
        table = [[*row] for row in cells]
        if oddity in ("cells", "a cell") and table:
            column = self.chance.randrange(len(names))
            for row in table if oddity == "cells" else [self.some(table)]:
                row[column] = self.some(CELLS) if self.often(0.7) else row[column]
        content = self._delimited(names, table, oddity)
        if oddity == "bytes":
            content = self.chance.randbytes(self.some([0, 1, 50, 3000]))
        elif oddity == "json":
            content = json_format.dumps(table).encode()
        suffix = self.some(["csv"] * 4 + ["csv.gz", "parquet", "csv" if oddity else "tsv"])
        if oddity == "suffix":
            suffix = self.some(["psv", "txt", "CSV", "xlsx", "json", "parquet", "gz"])
        elif suffix == "csv.gz":
            content = gzip.compress(content, mtime=0)
        elif suffix == "parquet" and oddity in ("", "cells", "a cell", "rows", "column", "blind"):
            buffer = io.BytesIO()
            pd.read_csv(io.BytesIO(content)).to_parquet(buffer)
            content = buffer.getvalue()
        elif suffix == "tsv":
            content = self._delimited(names, table, "tabs")
        return self.write(f"t.{suffix}", self.damaged(content) if oddity == "blind" else content)

    def _column(self, name: str, rows: int) -> list[str]:
        """Plain cells of one kind, some of them empty."""
        plain = {
            "rooms": lambda: str(self.chance.randint(3, 8)),
            "price": lambda: f"{self.chance.gauss(24, 6):.2f}",
            "river": lambda: self.some(["yes", "no"]),
            "day": lambda: f"2024-{self.chance.randint(1, 12):02}-{self.chance.randint(1, 28):02}",
            "größe": lambda: self.some(["S", "M", "L"]),
        }.get(name, lambda: str(self.chance.randint(0, 90)))
        return ["" if self.often(HOLES) else plain() for _ in range(rows)]

    def _delimited(self, names: Sequence[str], rows: Sequence[Sequence[str]], oddity: str) -> bytes:
        delimiter = self.some([";", "\t", "|", " ", ":"]) if oddity == "delimiter" else ","
        delimiter = "\t" if oddity == "tabs" else delimiter
        newline = self.some(["\r\n", "\r", "\n\n", "\u2028"]) if oddity == "newline" else "\n"
        lines = []
        for row in [names, *rows]:
            cells = [
                f'"{cell.replace(chr(34), chr(34) * 2)}"' if {delimiter, '"', "\n", "\r"} & set(cell) else cell
                for cell in row
            ]
            if oddity == "quotes" and self.often(0.2):
                cells[-1] = self.some(['"', '"a', 'a"b', '""', '"a"b"'])
            if oddity == "ragged" and self.often(0.2):
                cells = cells[:-1] if self.often(0.5) else [*cells, "extra"]
            lines.append(delimiter.join(cells))
        if oddity == "long":
            lines[-1] = "long" * 50_000 + lines[-1]
        text = newline.join(lines) + newline
        return text.encode(self.some(ENCODINGS) if oddity == "encoding" else "utf-8", errors="replace")

    # Options

    def toml(self, modality: str, *, odd: bool) -> str:
        """The options of a real run, in which one value, name or type may be changed; now and then no TOML at all."""
        content: dict[str, Any] = json_format.loads((self.models / f"{modality}.json").read_text(encoding="utf-8"))
        oddity = self.some(["value"] * 7 + ["blind", "nested", "encoding"]) if odd else ""
        if oddity == "value":
            self._mutate(content)
        text = toml_text(content)
        if oddity == "blind":
            return self.write("o.toml", self.damaged(text.encode()))
        if oddity == "nested":
            return self.write("o.toml", b"a = " + b"[" * self.some([10, 2000]) + b"1")
        return self.write("o.toml", text.encode("utf-16" if oddity == "encoding" else "utf-8"))

    def _mutate(self, content: dict[str, Any]) -> None:
        # fmt: off
        values: list[Any] = [
            0, 1, -1, 2, 7, 2**31, 2**63 - 1, 2**64, 0.5, -0.5, 1e308, float("nan"), float("inf"), True, False, "", "a",
            "neural", "trees", "auto", [], [1, "a"], {}, {"a": 1}, [[[]]], "x" * 1000,
        ]
        # fmt: on
        here = content
        while (deeper := [value for value in here.values() if isinstance(value, dict)]) and self.often(0.7):
            here = self.some(deeper)
        name = self.some([*here, "unknown", "", "minutes", "seed"]) if here else "unknown"
        here[name] = self.some(values)
        if self.often(0.1):
            here.pop(name)

    # Texts and pictures

    def corpus(self, *, odd: bool, packed: bool = True) -> str:
        """A text that fits the model; if it is odd: with other characters, short, in another encoding, damaged."""
        oddity = self.some(["characters", "short", "encoding", "blind", "blind", "files"]) if odd else ""
        size = self.some([0, 1, 2]) if oddity == "short" else self.some([20, 40, 100])
        pieces = ["ü", "\x1b[0m", "\r\n", "\0"] if oddity == "characters" else []
        text = "".join(self.some(["the cat sat ", "on a mat. ", *pieces]) for _ in range(size))
        content = text.encode(self.some(ENCODINGS) if oddity == "encoding" else "utf-8", errors="replace")
        name = "c.zip" if oddity == "files" else self.some(["c.txt"] * 3 + ["c.txt.gz", "c.zip", "c.txt.xz"] * packed)
        if name.endswith("gz"):
            content = gzip.compress(content, mtime=0)
        elif name.endswith("zip"):
            buffer = io.BytesIO()
            with zipfile.ZipFile(buffer, "w") as archive:
                for index in range(self.some([0, 2]) if oddity == "files" else 1):
                    archive.writestr(zipfile.ZipInfo(f"c{index}.txt"), content, zipfile.ZIP_DEFLATED)
            content = buffer.getvalue()
        elif name.endswith("xz"):
            content = lzma.compress(content)
        return self.write(name, self.damaged(content) if oddity == "blind" else content)

    def picture(self, name: str = "p", *, odd: bool) -> str:
        """A picture that fits the model; if it is odd: of another mode, size or format, or damaged."""
        from PIL import Image

        oddity = self.some(["mode", "size", "format", "blind", "blind", "none"]) if odd else ""
        mode = self.some(["RGB", "1", "P", "RGBA", "LA", "CMYK", "I;16", "F", "I"]) if oddity == "mode" else "L"
        kind = self.some(["gif", "webp", "jpg"]) if oddity == "format" else self.some(["png", "png", "tif", "bmp"])
        size = self.some([(1, 1), (9, 300), (40, 40)]) if oddity == "size" else (8, 8)
        buffer = io.BytesIO()
        try:
            picture = Image.new(mode, size)
            if mode == "L":
                picture.putdata([255 * self.chance.randrange(2) for _ in range(size[0] * size[1])])
            picture.save(buffer, format={"jpg": "JPEG", "tif": "TIFF"}.get(kind, kind.upper()))
        except (OSError, ValueError, KeyError):  # a mode that the format has not
            oddity = "none"
        content = b"no picture" if oddity == "none" else buffer.getvalue()
        return self.write(f"{name}.{kind}", self.damaged(content) if oddity == "blind" else content)

    def pictures(self, *, odd: bool) -> str:
        """A folder of pictures or an array; if it is odd: an odd picture, none, other shapes or types, damaged."""
        oddity = self.some(["shape", "kind", "blind", "number", "blind"]) if odd else ""
        if self.often(0.5):
            folder = self.folder / "pictures"
            folder.mkdir(exist_ok=True)
            for index in range(self.some([0, 1]) if oddity == "number" else 9):
                self.picture(f"pictures/p{index}", odd=odd and index == 0)
            return str(folder)
        array: Any = np.array([self.chance.randrange(2) for _ in range(9 * 64)], dtype="u1").reshape(9, 8, 8)
        if oddity == "kind":
            array = array.astype(self.some(["f8", "i2", "?", "c8", "M8[s]", "S3"]))
        elif oddity == "shape":
            shapes = [(2, 8, 8, 3), (2, 8, 8, 2), (3,), (), (0, 8, 8), (2, 4, 4)]
            array = self.some([*(np.zeros(shape, "u1") for shape in shapes), np.zeros(3, dtype="u1,f8")])
        elif oddity == "number":
            array = array[: self.some([0, 1])]
        buffer = io.BytesIO()
        np.save(buffer, array)
        name, content = "a.npy", buffer.getvalue()
        if self.often(0.5):  # not savez: it writes the time
            packed = io.BytesIO()
            with zipfile.ZipFile(packed, "w") as archive:
                archive.writestr(zipfile.ZipInfo("pictures.npy"), content, zipfile.ZIP_DEFLATED)
            name, content = "a.npz", packed.getvalue()
        return self.write(name, self.damaged(content) if oddity == "blind" else content)
