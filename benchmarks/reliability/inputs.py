"""Tables, option files, texts, pictures and command lines at random: exit 0 or 2, never a traceback, a hang or a flood.

    python benchmarks/reliability/inputs.py --json benchmarks/results/reliability_inputs.json    (about an hour)
    python benchmarks/reliability/inputs.py --seed 0 --only 1234    (one case again, with what it wrote)

Every case is a command line with its files, made from the seed and its number alone. It runs in a process of its own
with limits (:mod:`isolation`). Nothing is written outside of its folder.
"""

from __future__ import annotations

import contextlib
import gzip
import inspect
import io
import json as json_format
import os
import random
import shlex
import sys
import tempfile
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, get_args

import numpy as np
import pandas as pd
import typer
from typer.models import ArgumentInfo

from anyorder import cli
from anyorder.cli.signatures import parameters_of

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import Json, Record, Smoke, print_rows
from isolation import Limits, Verdict, print_faults, verdicts

# What commands import only when they need it: a process that has just started must not spend its seconds on that.
TIMES = ("cli", "data", "modalities", "training", "questions")
PRELOAD = ("torch._dynamo", "pandas", "pyarrow.parquet", "PIL.Image", "matplotlib.figure", "anyorder", "anyorder.cli")
PRELOAD += tuple(f"anyorder.modalities.{name}.fit" for name in ("tables", "texts", "images"))
MODALITIES = ("table", "text", "images")
TRAINING = ("fit", "fit-text", "fit-images")
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
MINUTES = ["0.001"] * 9 + ["0", "-1", "nan", "inf", "1e309", "-1e309", "", "x", "1e-320"]
ENCODINGS = ["utf-8"] * 8 + ["utf-8-sig", "utf-16", "utf-16-le", "latin-1", "utf-32", "cp037"]


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
        self.odd = self.chance.choice([0.0, 0.0, 0.02, 0.3])  # share of odd cells

    def some(self, options: Sequence[Any]) -> Any:
        return self.chance.choice(options)

    def often(self, share: float) -> bool:
        return self.chance.random() < share

    def model(self, modality: str) -> str:
        """Nearly always the model of that modality."""
        return str(self.models / f"{modality if self.often(0.97) else self.some(MODALITIES)}.anyorder")

    def write(self, name: str, content: bytes) -> str:
        (self.folder / name).write_bytes(content)
        return str(self.folder / name)

    def out(self, endings: Sequence[str]) -> str:
        """Where to write: in the folder of the case, now and then where nothing can be written."""
        ending = self.some(endings) if self.often(0.95) else self.some([".xyz", "", ".csv.gz"])
        where = self.folder if self.often(0.95) else self.folder / "nowhere"
        return str(where / f"out{ending}")

    # Tables

    def table(self, *, known: bool) -> str:
        """A table with the model's columns, or with any; whole, odd or damaged."""
        width = self.chance.randint(1, 6)
        names = ["rooms", "price", "river"] if known else [self.some(NAMES) for _ in range(width)]
        if known and self.often(0.1):
            names.append(self.some(NAMES))
        rows = self.some([0, 1, 2, 8, 30, 60])
        frame = [[self._cell(name) for name in names] for _ in range(rows)]
        kind = self.some(["csv"] * 12 + ["gz", "parquet", "json", "bytes", "one", "xlsx"])
        if kind == "parquet":
            path = self.folder / "t.parquet"
            with contextlib.suppress(Exception):
                pd.DataFrame(
                    frame, columns=[f"{name}{i}" if names.count(name) > 1 else name for i, name in enumerate(names)]
                ).to_parquet(path)
            content = path.read_bytes() if path.exists() else b"PAR1"
            return self.write("t.parquet", self._damaged(content, 0.6))
        if kind == "json":
            return self.write(self.some(["t.json", "t.csv"]), json_format.dumps(frame).encode())
        if kind == "bytes":
            return self.write(
                self.some(["t.csv", "t.tsv", "t.csv.gz", "t.pq"]), self.chance.randbytes(self.some([0, 1, 50, 3000]))
            )
        if kind == "one":
            names, frame = names[:1], [row[:1] for row in frame]
        content = self._delimited(names, frame)
        if kind == "gz":
            return self.write("t.csv.gz", self._damaged(gzip.compress(content), 0.4))
        name = self.some(["t.csv"] * 8 + ["t.tsv", "t.psv", "t.txt", "T.CSV", "t.xlsx", "t"])
        return self.write(name, self._damaged(content, 0.15))

    def _cell(self, name: str) -> str:
        plain = {"rooms": "6", "price": "22.5", "river": "yes"}.get(name, "3")
        return str(self.some(CELLS)) if self.often(self.odd) else plain

    def _delimited(self, names: Sequence[str], rows: Sequence[Sequence[str]]) -> bytes:
        delimiter = self.some([","] * 6 + [";", "\t", "|", " ", ":"])
        newline = self.some(["\n"] * 5 + ["\r\n", "\r", "\n\n", "\u2028"])
        quoted = self.often(0.9)
        lines = []
        for row in [names, *rows]:
            cells = [
                f'"{cell.replace(chr(34), chr(34) * 2)}"' if quoted and {delimiter, '"', "\n"} & set(cell) else cell
                for cell in row
            ]
            if self.often(0.02):
                cells = cells[:-1] if self.often(0.5) else [*cells, "extra"]
            if self.often(0.003):
                cells[0] = "long" * 50_000
            lines.append(delimiter.join(cells))
        text = newline.join(lines) + (newline if self.often(0.8) else "")
        return text.encode(self.some(ENCODINGS), errors="replace")

    def _damaged(self, content: bytes, share: float) -> bytes:
        if not content or not self.often(share):
            return content
        changed = bytearray(content)
        for _ in range(self.chance.randint(1, 4)):
            place = self.chance.randrange(len(changed))
            what = self.some(["flip", "cut", "nul", "insert", "double"])
            if what == "flip":
                changed[place] ^= 1 << self.chance.randrange(8)
            elif what == "cut":
                del changed[place + 1 :]
            elif what == "nul":
                changed[place] = 0
            elif what == "insert":
                changed[place:place] = self.some([b'"', b"\r", b"\n", b"\xff", b",", b"\0"])
            else:
                changed += changed[place : place + 1000]
        return bytes(changed)

    # Options

    def toml(self, modality: str) -> str:
        """The options of a real run, with some values, names and types changed; now and then no TOML at all."""
        content: dict[str, Any] = json_format.loads((self.models / f"{modality}.json").read_text(encoding="utf-8"))
        for _ in range(self.some([0, 1, 1, 1, 2, 4])):
            self._mutate(content)
        text = "\n".join(self._toml_lines(content, []))
        if self.often(0.1):
            return self.write("o.toml", self._damaged(text.encode(), 1.0))
        if self.often(0.03):
            return self.write("o.toml", b"a = " + b"[" * self.some([10, 2000]) + b"1")
        return self.write("o.toml", text.encode(self.some(["utf-8"] * 9 + ["utf-16"])))

    def value(self) -> Any:
        kinds: list[Any] = [
            0,
            1,
            -1,
            2,
            7,
            2**31,
            2**63 - 1,
            2**64,
            0.5,
            -0.5,
            1e308,
            float("nan"),
            float("inf"),
            True,
            False,
        ]
        kinds += ["", "a", "neural", "auto", [], [1, "a"], {}, {"a": 1}, [[[]]], "x" * 1000]
        return self.some(kinds)

    def _mutate(self, content: dict[str, Any]) -> None:
        here = content
        while (deeper := [value for value in here.values() if isinstance(value, dict)]) and self.often(0.7):
            here = self.some(deeper)
        name = self.some([*here, "unknown", "", "minutes", "seed"]) if here else "unknown"
        here[name] = self.value()
        if self.often(0.1):
            here.pop(name)

    def _toml_lines(self, content: dict[str, Any], above: list[str]) -> list[str]:
        lines = [f"[{'.'.join(map(json_format.dumps, above))}]"] if above else []
        lines += [
            f"{json_format.dumps(k)} = {_toml(v)}"
            for k, v in content.items()
            if v is not None and not isinstance(v, dict)
        ]
        for name, value in content.items():
            if isinstance(value, dict):
                lines += self._toml_lines(value, [*above, name])
        return lines

    # Texts and pictures

    def corpus(self) -> str:
        text = "".join(
            self.some(["the cat sat ", "on a mat\n", "ü", "\x1b[0m", "\r\n"]) for _ in range(self.some([0, 1, 40, 300]))
        )
        content = text.encode(self.some(ENCODINGS), errors="replace")
        name = self.some(["c.txt"] * 4 + ["c.txt.gz", "c.zip", "c.txt.xz"])
        if name.endswith("gz"):
            content = gzip.compress(content)
        elif name.endswith("zip"):
            import zipfile

            buffer = io.BytesIO()
            with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
                for index in range(self.some([1, 1, 1, 0, 2])):
                    archive.writestr(f"c{index}.txt", content)
            content = buffer.getvalue()
        elif name.endswith("xz"):
            import lzma

            content = lzma.compress(content)
        return self.write(name, self._damaged(content, 0.4))

    def picture(self, name: str = "p") -> str:
        from PIL import Image

        mode = self.some(["L", "L", "RGB", "1", "P", "RGBA", "LA", "CMYK", "I;16", "F", "I"])
        kind = self.some(["png", "png", "tif", "gif", "webp", "bmp", "jpg"])
        height, width = self.some([(8, 8), (8, 8), (8, 8), (1, 1), (9, 300), (40, 40)])
        buffer = io.BytesIO()
        try:
            picture = Image.new(mode, (width, height))
            picture.save(buffer, format={"jpg": "JPEG", "tif": "TIFF"}.get(kind, kind.upper()))
        except (OSError, ValueError, KeyError):
            buffer = io.BytesIO(b"no picture")
        return self.write(f"{name}.{kind}", self._damaged(buffer.getvalue(), 0.4))

    def pictures(self) -> str:
        if self.often(0.5):
            folder = self.folder / "pictures"
            folder.mkdir(exist_ok=True)
            for index in range(self.some([0, 1, 3, 9])):
                self.picture(f"pictures/p{index}")
            return str(folder)
        array: Any = np.zeros(
            (self.some([0, 1, 6]), 8, 8), dtype=self.some(["u1", "f8", "i2", "?", "c8", "M8[s]", "S3"])
        )
        if self.often(0.2):
            array = self.some(
                [np.zeros(3), np.array(5), np.zeros((2, 8, 8, 3)), np.zeros((2, 8, 8, 2)), np.zeros(3, dtype="u1,f8")]
            )
        buffer = io.BytesIO()
        packed = self.often(0.5)
        (np.savez_compressed if packed else np.save)(buffer, array)  # type: ignore[operator]
        return self.write("a.npz" if packed else "a.npy", self._damaged(buffer.getvalue(), 0.4))


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json_format.dumps(name)} = {_toml(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json_format.dumps(value)


# The families: each gives the words of one command line.


def tables(inputs: Inputs) -> list[str]:
    """Commands that read a table, each with an odd one."""
    command = inputs.some(["score", "fill", "fill", "check", "anomalies", "compress", "ask", "fit"])
    if command == "fit":
        words = [
            "fit",
            inputs.table(known=False),
            "-o",
            inputs.out([".anyorder"]),
            "--minutes",
            "0.001",
            "--engine",
            "neural",
        ]
        return words + (
            ["--kind", f"{inputs.some(NAMES)}={inputs.some(['integer', 'boolean', 'datetime', 'x'])}"]
            if inputs.often(0.3)
            else []
        )
    model = inputs.model("table")
    if command == "ask":
        lines = [inputs.some(QUESTIONS) for _ in range(inputs.some([0, 1, 3]))]
        if inputs.often(0.3):
            return [
                "ask",
                model,
                inputs.some(QUESTIONS),
                *(["--plot", inputs.out([".png", ".svg"])] if inputs.often(0.2) else []),
            ]
        text = "\n".join(["question", *(f'"{line}"' for line in lines)] if inputs.often(0.5) else lines)
        content = inputs._damaged(text.encode(inputs.some(ENCODINGS), errors="replace"), 0.3)
        return ["ask", model, "--queries", inputs.write(inputs.some(["q.csv", "q.txt"]), content), "--draws", "5"]
    words = [command, model, inputs.table(known=True)]
    if command == "compress":
        return [*words, "-o", inputs.out([".aor"])]
    if command in ("score", "fill", "anomalies") and inputs.often(0.4):
        words += ["--unseen", inputs.some(["missing", "refuse", "x"])]
    if command == "fill":
        words += ["-o", inputs.out([".csv", ".parquet", ".csv.gz", ".tsv"])] if inputs.often(0.6) else []
        words += ["--draws", inputs.some(["1", "2", *NUMBERS[:5]])] if inputs.often(0.3) else []
        words += ["--escape-formulas"] if inputs.often(0.2) else []
    return words


def configurations(inputs: Inputs) -> list[str]:
    """Fits with an odd file of options."""
    command = inputs.some(TRAINING)
    sources = {"fit": "table.csv", "fit-text": "text.txt", "fit-images": "images.npy"}
    modality = sources[command].partition(".")[0]
    budget = ["--minutes", "0.001"]
    return [
        command,
        str(inputs.models / sources[command]),
        "--config",
        inputs.toml(modality),
        "-o",
        inputs.out([".anyorder"]),
        *budget,
    ]


def corpora(inputs: Inputs) -> list[str]:
    """Commands that read texts and pictures, each with an odd one."""
    command = inputs.some(
        ["fit-text", "score-text", "compress-text", "fit-images", "score-images", "fill-images", "device"]
    )
    tiny = ["--minutes", "0.001", "--preset", "tiny"]
    if command == "device":
        device = inputs.some(["/dev/zero", "/dev/urandom", "/dev/null", "/proc/self/mem", str(inputs.folder)])
        return inputs.some(
            [
                ["fit-text", device, "-o", inputs.out([".anyorder"]), *tiny],
                ["score", inputs.model("text"), device],
                ["score", inputs.model("images"), device],
                ["score", inputs.model("table"), device],
                ["info", device],
            ]
        )
    if command == "fit-text":
        return [
            command,
            inputs.corpus(),
            "-o",
            inputs.out([".anyorder"]),
            "--length",
            inputs.some(["4", "20", "2", "500"]),
            *tiny,
        ]
    if command == "fit-images":
        return [command, inputs.pictures(), "-o", inputs.out([".anyorder"]), *tiny]
    if command == "score-text":
        return ["score", inputs.model("text"), inputs.corpus(), "--windows", "3"]
    if command == "compress-text":
        return ["compress", inputs.model("text"), inputs.corpus(), "-o", inputs.out([".aot"]), "--calls", "2"]
    if command == "score-images":
        return ["score", inputs.model("images"), inputs.pictures(), "--windows", "2"]
    return [
        "fill",
        inputs.model("images"),
        inputs.picture(),
        "--mask",
        inputs.picture("mask"),
        "-o",
        inputs.out([".png", ".webp"]),
        "--steps",
        "2",
    ]


def commands(inputs: Inputs) -> list[str]:
    """Any command with any of its options, most of them with values that they can have."""
    name = inputs.some([name for name in cli.COMMANDS if not name.startswith("demo")])
    modality = inputs.some(MODALITIES) if name in ("sample", "fill", "score", "compress", "info") else "table"
    words = [name]
    for option in _options(name):
        own = {"text": ("text",), "images": ("mask", "out", "file")}.get(modality, ("out", "file", "question", "about"))
        foreign = name in ("fill", "sample", "score") and option.name in ("text", "mask") and option.name not in own
        often = 0.97 if option.required or option.name in own else 0.01 if foreign else 0.12
        if not inputs.often(often):
            continue
        value = _value(inputs, name, modality, option)
        if not option.flags:
            words.append(value)
        else:
            words += [inputs.some(option.flags), *([] if option.switch else [value])]
    if name in TRAINING[1:] and "--preset" not in words:
        words += ["--preset", "tiny"]  # one step of the others takes seconds
    if name == "fit-text" and "--length" not in words:
        words += ["--length", "12"]
    if name in TRAINING:
        words += ["--minutes", inputs.some(MINUTES)]
    if inputs.often(0.05):
        words.insert(inputs.chance.randrange(len(words) + 1), inputs.some(["--help", "--unknown", "", "ü", "--seed=1"]))
    return words


@dataclass(frozen=True)
class Option:
    """An argument or option of a command, as it is declared."""

    name: str
    kind: str  # its type, as it is written
    required: bool
    flags: tuple[str, ...]  # none: an argument

    @property
    def switch(self) -> bool:
        return "bool" in self.kind


@cache
def _options(command: str) -> list[Option]:
    found = []
    for parameter in parameters_of(cli.COMMANDS[command]):
        if parameter.name not in ("context", "minutes"):
            kind, info = get_args(parameter.annotation)[:2]
            said = [one for one in (info.default, *(info.param_decls or ())) if isinstance(one, str) and one[:1] == "-"]
            flags = [flag for one in said or ["--" + parameter.name.replace("_", "-")] for flag in one.split("/")]
            argument = isinstance(info, ArgumentInfo)
            required = parameter.default is inspect.Parameter.empty
            found.append(Option(parameter.name, str(kind), required, () if argument else tuple(flags)))
    return found


def _value(inputs: Inputs, command: str, modality: str, option: Option) -> str:
    name = option.name
    written = {"out": [".csv", ".png", ".txt", ".anyorder"], "plot": [".png"], "intervals": [".csv"], "strip": [".png"]}
    written |= {"film": [".gif"], "log": [".jsonl"], "transcript": [".json"], "checkpoint": [""], "tensorboard": [""]}
    if name in written:
        return inputs.out(written[name])
    if name == "model":
        return inputs.model(modality)
    if name in ("table", "file", "held_out", "pictures", "corpus", "mask", "config", "queries", "costs", "resume_from"):
        if command in TRAINING or name in ("corpus", "pictures", "table"):
            source = {"fit-text": "text.txt", "fit-images": "images.npy"}.get(command, "table.csv")
            return str(inputs.models / source) if name not in ("config",) else inputs.toml("table")
        sources = {"table": "table.csv", "text": "text.txt", "images": "images.npy"}
        good = str(inputs.models / sources[modality])
        return (
            good if inputs.often(0.8) else inputs.some([str(inputs.folder), "none.csv", "", inputs.table(known=True)])
        )
    if "Path" in option.kind:
        return inputs.some([str(inputs.models / "table.csv"), "none", str(inputs.folder), inputs.table(known=True)])
    if name == "preset":
        return "tiny" if inputs.often(0.8) else inputs.some(TEXTS)
    if name == "engine":
        return "neural" if inputs.often(0.8) else inputs.some(TEXTS)
    if name == "text":
        return inputs.some(["the _at", "____", *TEXTS])
    if "int" in option.kind or "float" in option.kind:
        return inputs.some(["1", "2", "3", "0.5"]) if inputs.often(0.6) else inputs.some(NUMBERS)
    if name in ("question", "given", "about", "asked", "ask", "target"):
        return inputs.some(["rooms=6", "price", "rooms, river", *QUESTIONS])
    return inputs.some(
        [*TEXTS, *NUMBERS, "rooms=6", "price", "rooms=continuous", "rooms=0..", "32x32", "confidence", "joint"]
    )


FAMILIES: dict[str, tuple[int, Callable[[Inputs], list[str]]]] = {
    "tables": (5, tables),
    "option files": (1, configurations),
    "texts and pictures": (2, corpora),
    "command lines": (4, commands),
}


def family_of(number: int) -> str:
    """Families in a fixed turn, each as often as its weight says."""
    turn = [name for name, (weight, _) in FAMILIES.items() for _ in range(weight)]
    return turn[number % len(turn)]


def words_of(case: Case, folder: Path) -> list[str]:
    """The command line of a case, with its files written into the folder."""
    return FAMILIES[case.family][1](Inputs(case, folder))


def run(case: Case) -> tuple[str, str]:
    """Run one case; whatever is neither done nor refused in words is raised."""
    with tempfile.TemporaryDirectory(prefix="anyorder-inputs-") as folder:
        words = words_of(case, Path(folder))
        status, _, err = called(words, folder)
    shown = shlex.join(word if len(word) < 200 else word[:200] + "..." for word in words)
    if status not in (0, 2) or "Traceback" in err or "internal error" in err:
        raise RuntimeError(f"{shown}\nexit {status}: {err.strip()[-500:]}")
    if status == 2 and not (err.strip() and err.splitlines()[-1].startswith("anyorder: ")):
        raise RuntimeError(f"{shown}\nexit 2 without a message: {err[-300:]!r}")
    if "\x1b" in err:
        raise RuntimeError(f"{shown}\na terminal's code in a message: {err[-300:]!r}")
    return ("done" if status == 0 else "refused"), (err.splitlines() or [""])[-1][:200]


def called(words: list[str], folder: str) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of a command that is run in that folder, with nothing to read."""
    out, err = io.StringIO(), io.StringIO()
    before, stdin, handler = Path.cwd(), sys.stdin, warnings.showwarning
    os.chdir(folder)
    sys.stdin = io.TextIOWrapper(io.BytesIO(b""))
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = cli.main(words)
    finally:
        os.chdir(before)
        sys.stdin, warnings.showwarning = stdin, handler
    return status, out.getvalue(), err.getvalue()


def make_models(folder: Path) -> None:
    """A tiny model of every modality, with what it was fitted to and the options of its run."""
    from anyorder.modalities.images.fit import fit_images
    from anyorder.modalities.tables.fit import fit
    from anyorder.modalities.texts.fit import fit_text

    generator = np.random.default_rng(0)
    rooms = generator.integers(3, 9, 60)
    frame = pd.DataFrame({"rooms": rooms, "price": rooms * 4 + generator.normal(size=60).round(2)})
    frame["river"] = generator.choice(["yes", "no"], 60)
    frame.to_csv(folder / "table.csv", index=False)
    (folder / "text.txt").write_text("the cat sat on a mat. " * 40, encoding="utf-8")
    np.save(folder / "images.npy", generator.integers(0, 2, (12, 8, 8)).astype(np.uint8))
    quick: dict[str, Any] = {"minutes": 0.002, "seed": 0, "progress": False}
    models = {
        "table": fit(frame, engine="neural", **quick),
        "text": fit_text(folder / "text.txt", length=12, preset="tiny", **quick),
        "images": fit_images(np.load(folder / "images.npy"), preset="tiny", **quick),
    }
    for name, model in models.items():
        model.save(folder / f"{name}.anyorder")
        (folder / f"{name}.json").write_text(json_format.dumps(model.card.get("config", {})), encoding="utf-8")


def main(
    count: int = 6000,
    seed: int = 0,
    minutes: Annotated[float | None, typer.Option(help="begin no further case after this time")] = None,
    only: Annotated[int | None, typer.Option(help="run this case alone and print its command line")] = None,
    workers: int = 2,
    json: Json = None,
    smoke: Smoke = False,
) -> None:
    """Run all cases, print how many ended how, and fail if one did not end as it must."""
    record = Record(json, smoke=smoke)
    count = 24 if smoke else count
    with tempfile.TemporaryDirectory(prefix="anyorder-inputs-models-") as models:
        make_models(Path(models))
        numbers = range(count) if only is None else [only]
        cases = [Case(family_of(number), seed, number, models) for number in numbers]
        if only is not None:
            with tempfile.TemporaryDirectory() as folder:
                print(shlex.join(words_of(cases[0], Path(folder))))
        found: list[Verdict[Case]] = list(
            verdicts(run, cases, Limits(), workers=workers, minutes=minutes, preload=PRELOAD)
        )
    rows = _summary(found)
    print_rows(rows)
    print(f"seed {seed}; run one case again with --seed {seed} --only NUMBER")
    print_faults(found)
    if wrong := sorted(one.case.number for one in found if one.fault):
        print(f"numbers of the faults: {', '.join(map(str, wrong))}")
    if only is not None:
        print(found[0].outcome, found[0].detail)
    payload = {
        "title": "Odd tables, option files, texts, pictures and command lines",
        "about": "Commands on inputs made at random, each in a process with at most 10 s and 1 GB: done (exit 0), "
        "refused in words (exit 2), or a fault.",
        "seed": seed,
        "rows": rows,
    }
    record.write(payload)
    if any(one.fault for one in found):
        raise SystemExit(1)


def _summary(found: Sequence[Verdict[Case]]) -> list[dict[str, Any]]:
    """One row for each family."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for one in found:
        counts[one.case.family][one.outcome if not one.fault else "faults"] += 1
    return [
        {
            "inputs": name,
            "cases": sum(counts[name].values()),
            **{outcome: counts[name][outcome] for outcome in ("done", "refused", "faults")},
            "most seconds": round(max((one.seconds for one in found if one.case.family == name), default=0.0), 1),
            "most MB": round(max((one.megabytes for one in found if one.case.family == name), default=0.0)),
        }
        for name in FAMILIES
    ]


if __name__ == "__main__":
    typer.run(main)
