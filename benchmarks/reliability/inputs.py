"""Tables, option files, texts, pictures and command lines at random: exit 0 or 2, never a traceback, a hang or a flood.

    python benchmarks/reliability/inputs.py --json benchmarks/results/reliability_inputs.json    (about an hour)
    python benchmarks/reliability/inputs.py --seed 0 --only 1234    (one case again, with what it wrote)

Every case is a command line with its files, made from the seed and its number alone. It runs in a process of its own
with limits (:mod:`isolation`). Nothing is written outside of its folder.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import json as json_format
import os
import re
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
from odd_inputs import MODALITIES, NAMES, NUMBERS, QUESTIONS, TEXTS, Case, Inputs

from common import Json, Record, Smoke, print_rows
from isolation import MEMORY, Limits, Verdict, print_faults, verdicts

# What commands import only when they need it: a process that has just started must not spend its seconds on that.
TIMES = ("cli", "data", "modalities", "training", "questions")
PRELOAD = ("torch._dynamo", "pandas", "pyarrow.parquet", "PIL.Image", "matplotlib.figure", "anyorder", "anyorder.cli")
PRELOAD += tuple(f"anyorder.modalities.{name}.fit" for name in ("tables", "texts", "images"))
NOT_TRIED = ("demo", "serve")  # what takes no input, and what does not end by itself
TRAINING = ("fit", "fit-text", "fit-images")
TINY = ("--minutes", "0.001", "--preset", "tiny")
UPDATING = (*TRAINING, "update")  # what takes a budget of time and writes a model
MODALITY_OF = {"fit": "table", "fit-text": "text", "fit-images": "images"}
SOURCES = {"table": "table.csv", "text": "text.txt", "images": "images.npy"}
BESIDE = {"costs": "costs.csv", "queries": "questions.txt", "mask": "mask.png"}
WRITTEN = {"plot": ".png", "intervals": ".intervals.csv", "strip": ".strip.png", "film": ".gif", "log": ".jsonl"}
WRITTEN |= {"transcript": ".json", "checkpoint": "", "tensorboard": ".events"}
NEEDED = {
    ("fill", "table"): {"file"},
    ("fill", "text"): {"text"},
    ("fill", "images"): {"file", "mask", "out"},
    ("sample", "images"): {"out"},
    ("interview", "table"): {"about"},
    ("fit-text", "text"): {"preset", "length"},  # one step of the other presets takes seconds
    ("fit-images", "images"): {"preset"},
}
COLUMNS = ["price", "rooms", "river"]
PLAIN: dict[Any, list[str]] = {
    "engine": ["neural", "trees", "auto"],
    "kind": ["rooms=integer", "rooms=continuous", "river=categorical"],
    "bounds": ["price=0..", "price=-100..100"],
    "missing": ["?", "-999"],
    "drop": ["river", "rooms"],
    "missingness": ["ignore", "joint"],
    "device": ["cpu"],
    "unit": ["characters", "bytes"],
    "preset": ["tiny"],
    "size": ["8x8", "4x4"],
    "levels": ["2", "4"],
    ("fit-text", "length"): ["4", "12"],
    "order": ["model", "confidence"],
    "given": ["rooms=6", "river=yes", "rooms=6, river=no"],
    "beginning": ["the", ""],
    "temperature": ["1", "0.5"],
    "level": ["0.9", "0.5"],
    "unseen": ["refuse", "missing"],
    "text": ["the _at", "____", "the cat ___ on a mat"],
    "mark": ["_"],
    "mode": ["random_pixels", "interior_patch"],
    "candidates": ["rooms, river", "rooms"],
    "group": ["both=rooms, river"],
    "reward": ["information", "variance", "error"],
    "look_ahead": ["1", "2"],
    "draws": ["2", "5"],
    "column": COLUMNS,
    "quantiles": ["0.5", "0.05,0.95"],
}
ANSWERS = b"6\nyes\n22.5\nskip\n" * 3  # what an interview reads
PLAIN_QUESTIONS = [
    "price | rooms=6",
    "price",
    "P(price > 20 | rooms=5)",
    "rooms | river={yes, no}",
    "E[price | rooms=6]",
]
MINUTES = ["0", "-1", "nan", "inf", "1e309", "-1e309", "", "x", "1e-320"]


# The families: each gives the words of one command line. At most one thing in it is odd, so that the rest is reached.


def tables(inputs: Inputs) -> list[str]:
    """Commands that read a table, most of them with an odd one."""
    command = inputs.some(["score", "fill", "fill", "check", "anomalies", "compress", "ask", "fit", "fit"])
    odd = inputs.often(0.7)
    if command == "fit":
        words = ["fit", inputs.table(known=False, odd=odd), "-o", inputs.out(".anyorder"), "--minutes", "0.001"]
        words += ["--engine", inputs.some(["neural", "trees", "trees", "auto"])]
        if not odd and inputs.often(0.5):
            words += ["--kind", f"{inputs.some(NAMES)}={inputs.some(['integer', 'boolean', 'datetime', 'x'])}"]
        return words
    model = inputs.model("table")
    if command == "ask":
        lines = [inputs.some(QUESTIONS if odd else PLAIN_QUESTIONS) for _ in range(inputs.some([1, 3]))]
        content = "\n".join(["question", *(f'"{line}"' for line in lines)] if inputs.often(0.5) else lines).encode()
        content = inputs.damaged(content) if odd and inputs.often(0.5) else content
        return ["ask", model, "--queries", inputs.write(inputs.some(["q.csv", "q.txt"]), content), "--draws", "5"]
    words = [command, model, inputs.table(known=True, odd=odd)]
    if command == "compress":
        return [*words, "-o", inputs.out(".aor")]
    if command in ("score", "fill", "anomalies") and inputs.often(0.4):
        words += ["--unseen", inputs.some(["missing", "refuse"])]
    if command == "fill":
        words += ["-o", inputs.out(inputs.some([".csv", ".parquet", ".csv.gz", ".tsv"]))] if inputs.often(0.6) else []
        words += ["--draws", inputs.some(["1", "2"] if odd else NUMBERS[:5])] if inputs.often(0.3) else []
        words += ["--escape-formulas"] if inputs.often(0.2) else []
    return words


def configurations(inputs: Inputs) -> list[str]:
    """Fits with an odd file of options."""
    command = inputs.some(TRAINING)
    modality = MODALITY_OF[command]
    config = inputs.toml(modality, odd=inputs.often(0.8))
    return [command, inputs.given(SOURCES[modality]), "--config", config, "-o", inputs.out(".anyorder"), *TINY[:2]]


def corpora(inputs: Inputs) -> list[str]:
    """Commands that read texts and pictures, most of them with an odd one."""
    command = inputs.some(
        ["fit-text", "score-text", "compress-text", "fit-images", "score-images", "fill-images", "device"]
    )
    odd = inputs.often(0.7)
    if command == "device":
        device = inputs.some(["/dev/zero", "/dev/urandom", "/dev/null", "/proc/self/mem", str(inputs.folder)])
        return inputs.some(
            [
                ["fit-text", device, "-o", inputs.out(".anyorder"), *TINY],
                ["score", inputs.model("text"), device],
                ["score", inputs.model("images"), device],
                ["score", inputs.model("table"), device],
                ["info", device],
            ]
        )
    if command == "fit-text":
        length = inputs.some(["4", "12"] if odd else ["4", "20", "2", "500"])
        return [command, inputs.corpus(odd=odd), "-o", inputs.out(".anyorder"), "--length", length, *TINY]
    if command == "fit-images":
        return [command, inputs.pictures(odd=odd), "-o", inputs.out(".anyorder"), *TINY]
    if command == "score-text":
        return ["score", inputs.model("text"), inputs.corpus(odd=odd), "--windows", "3"]
    if command == "compress-text":
        text = inputs.corpus(odd=odd, packed=False)
        return ["compress", inputs.model("text"), text, "-o", inputs.out(".aot"), "--calls", "2"]
    if command == "score-images":
        return ["score", inputs.model("images"), inputs.pictures(odd=odd), "--windows", "2"]
    which = inputs.often(0.5)
    words = ["fill", inputs.model("images"), inputs.picture(odd=odd and which), "--steps", "2"]
    return [*words, "--mask", inputs.picture("mask", odd=odd and not which), "-o", inputs.out(".png")]


def commands(inputs: Inputs) -> list[str]:
    """Any command with any of its options, with values that they can have, but for one argument."""
    name = inputs.some([name for name in cli.COMMANDS if not name.startswith(NOT_TRIED)])
    modality = inputs.some(_modalities(name))
    options = {option.name: option for option in _options(name)}
    needed = {option.name for option in options.values() if option.required} | NEEDED.get((name, modality), set())
    own = [option for option in options.values() if option.name in needed or modality in option.modalities]
    values = {
        one.name: _plain(inputs, name, modality, one.name) for one in own if one.name in needed or inputs.often(0.15)
    }
    _without_conflicts(inputs, name, modality, values)
    extra: list[str] = []
    minutes = "0.001"
    if inputs.often(0.6):
        oddity = inputs.some(["value"] * 8 + ["foreign", "missing", "word", "model", "minutes"])
        if oddity == "value":
            option = options[inputs.some([one.name for one in own if not one.switch])]
            values[option.name] = _odd(inputs, option)
        elif oddity == "foreign":
            option = inputs.some([*options.values()])
            values[option.name] = _plain(inputs, name, modality, option.name)
        elif oddity == "missing":
            values.pop(inputs.some([*values]))
        elif oddity == "word":
            extra = [inputs.some(["--help", "--unknown", "", "ü", "--seed=1", "--", "-"])]
        elif oddity == "minutes":
            minutes = inputs.some(MINUTES)
        elif "model" in values:
            values["model"] = inputs.model(inputs.some(MODALITIES))
    words = [name]
    for option in options.values():
        if option.name in values:
            flag = [inputs.some(option.flags)] if option.flags else []
            words += flag if option.switch else [*flag, values[option.name]]
    if name in UPDATING:
        words += ["--minutes", minutes]
    return [*words, *extra]


@dataclass(frozen=True)
class Option:
    """An argument or option of a command, as it is declared."""

    name: str
    kind: str  # its type, as it is written
    required: bool
    flags: tuple[str, ...]  # none: an argument
    modalities: tuple[str, ...]  # for which it is, as its help says

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
            words = set(re.findall(r"(tables|texts|pictures)(?=[a-z, ]*:)", info.help or ""))
            own = {"tables": "table", "texts": "text", "pictures": "images"}
            modalities = tuple(own[word] for word in sorted(words)) or MODALITIES
            found.append(Option(parameter.name, str(kind), required, () if argument else tuple(flags), modalities))
    return found


def _modalities(command: str) -> tuple[str, ...]:
    """The modalities of models that a command takes."""
    if command in TRAINING:
        return (MODALITY_OF[command],)
    if command in ("compress", "decompress"):
        return MODALITIES[:2]
    return MODALITIES if command in ("sample", "fill", "score", "info") else MODALITIES[:1]


def _without_conflicts(inputs: Inputs, command: str, modality: str, values: dict[str, str]) -> None:
    """Leave out what a command does not take together, and add what another option needs."""
    if command == "ask":
        if "queries" in values:
            for name in ("question", "as_json", "plot"):
                values.pop(name, None)
        else:
            values.setdefault("question", inputs.some(PLAIN_QUESTIONS))
            for name in ("out", "escape_formulas"):
                values.pop(name, None)
    if command == "interview":
        if "resume" in values:
            values["transcript"] = inputs.write("out.json", Path(inputs.given("interview.json")).read_bytes())
            for name in ("about", "candidates", "group", "costs", "budget", "given"):
                values.pop(name, None)
    elif "resume" in values:  # there is nothing to resume yet, which is no mistake
        values["checkpoint"] = inputs.out("")
    if command == "predict" and {"quantiles", "probabilities"} & set(values):  # of a number, of levels
        values["column"] = "price" if "quantiles" in values else "river"
        if "quantiles" in values:
            values.pop("probabilities", None)
    if {"group", "candidates"} & set(values):
        values.pop("given", None)
        values["about"] = "price"
    if command == "fill" and modality == "text":
        values.pop("file", None)
    for name, other in (("drafts", "calls"), ("drafts", "order"), ("candidates", "group"), ("text", "file")):
        if name in values and other in values:
            values.pop(name)
    for name, other in (("intervals", "held_out"), ("calls", "held_out"), ("order", "calls"), ("plot", "text")):
        if command in ("fill", "sample", "compress") and (name not in values or other not in values):
            for one in {name, other} - NEEDED.get((command, modality), set()) - {"calls"}:
                values.pop(one, None)


def _plain(inputs: Inputs, command: str, modality: str, name: str) -> str:
    """A value that the option can have."""
    if name in ("table", "file", "corpus", "pictures", "held_out"):
        packed = {"table": "table.aor", "text": "text.aot"}
        picture = command == "fill" and modality == "images"
        return inputs.given(packed[modality] if command == "decompress" and modality in packed
                            else "picture.png" if picture else SOURCES[modality])  # fmt: skip
    if name == "out":
        endings = {"table": ".csv", "text": ".txt", "images": ".png"}
        packed = {"table": ".aor", "text": ".aot"}
        ending = packed.get(modality, ".png") if command == "compress" else endings[modality]
        return inputs.out(".anyorder" if command in UPDATING else ending)
    if name == "config":
        return inputs.toml(modality, odd=False)
    if name in WRITTEN:
        return inputs.out(WRITTEN[name])
    if name == "model":
        return inputs.model(modality)
    if name in BESIDE:
        return inputs.given(BESIDE[name])
    if name in ("question", "about"):
        return inputs.some(PLAIN_QUESTIONS if name == "question" else COLUMNS)
    return inputs.some(PLAIN.get((command, name)) or PLAIN.get(name) or ["1", "2", "3"])


def _odd(inputs: Inputs, option: Option) -> str:
    """A value that it can hardly have."""
    if option.name in {"out", *WRITTEN}:
        return inputs.odd_out()
    if "Path" in option.kind:
        files = [inputs.given(name) for name in sorted({*SOURCES.values(), *BESIDE.values(), "table.aor", "text.aot"})]
        nothing = [str(inputs.folder), "none", "", inputs.write("empty.csv", b"")]
        return inputs.some([*files, *nothing, inputs.table(known=True, odd=True)])
    if "int" in option.kind or "float" in option.kind:
        return inputs.some(NUMBERS)
    return inputs.some([*TEXTS, *NUMBERS, *QUESTIONS])


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
    if status == 2 and ("more memory than there is" in err or "allocate" in err):  # elsewhere it would have been taken
        return MEMORY, f"{shown}\n{err.strip()[-500:]}"
    if status not in (0, 2) or "Traceback" in err or "internal error" in err:
        raise RuntimeError(f"{shown}\nexit {status}: {err.strip()[-500:]}")
    if status == 2 and not (err.strip() and err.splitlines()[-1].startswith("anyorder: ")):
        raise RuntimeError(f"{shown}\nexit 2 without a message: {err[-300:]!r}")
    if "\x1b" in err:
        raise RuntimeError(f"{shown}\na terminal's code in a message: {err[-300:]!r}")
    return ("done" if status == 0 else "refused"), (err.splitlines() or [""])[-1][:200]


def called(words: list[str], folder: str) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of a command that is run in that folder and reads our answers."""
    out, err = io.StringIO(), io.StringIO()
    before, stdin, handler = Path.cwd(), sys.stdin, warnings.showwarning
    os.chdir(folder)
    sys.stdin = io.TextIOWrapper(io.BytesIO(ANSWERS))
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = cli.main(words)
    finally:
        os.chdir(before)
        sys.stdin, warnings.showwarning = stdin, handler
    return status, out.getvalue(), err.getvalue()


def make_models(folder: Path) -> None:
    """A tiny model of every modality, with what it was fitted to and the options of its run."""
    from PIL import Image

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
    bits = generator.integers(0, 2, (2, 8, 8)).astype(np.uint8) * 255
    for name, pixels in zip(("picture", "mask"), bits, strict=True):
        Image.fromarray(pixels).save(folder / f"{name}.png")
    (folder / "costs.csv").write_text("name,cost\nrooms,1\nprice,2.5\nriver,1\n", encoding="utf-8")
    (folder / "questions.txt").write_text("\n".join(PLAIN_QUESTIONS), encoding="utf-8")
    brief = {"training": {"minutes": None, "steps": 20, "threads": 1}}  # steps: the same models on every machine
    quick: dict[str, Any] = {"seed": 0, "config": brief, "progress": False}
    models = {
        "table": fit(frame, engine="neural", **quick),
        "text": fit_text(folder / "text.txt", length=12, preset="tiny", **quick),
        "images": fit_images(np.load(folder / "images.npy"), preset="tiny", **quick),
    }
    for name, model in models.items():
        model.save(folder / f"{name}.anyorder")
        (folder / f"{name}.json").write_text(json_format.dumps(model.card.get("config", {})), encoding="utf-8")
    (folder / "table.aor").write_bytes(models["table"].compress(frame[:5]))
    (folder / "text.aot").write_bytes(models["text"].compress("the cat sat"))
    about = ["interview", str(folder / "table.anyorder"), "--about", "price", "--draws", "4"]
    status, _, err = called([*about, "--transcript", str(folder / "interview.json")], str(folder))
    if status:
        raise RuntimeError(err)


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
    count = 12 if smoke else count
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
