"""Fuzzed questions, typed and from Python, to small models of every modality: an answer that holds, or a UserError.

    python benchmarks/reliability/questions.py [--count 4000] [--seed 0] [--minutes 10] [--json FILE]
    python benchmarks/reliability/questions.py --seed 0 --only 1234    (one case again, with its question)

Families: questions of the grammar; the same with letters lost, doubled and put in; very large ones; evidence, ranges
and sets from Python, reversed, empty, of the wrong kind, about unknown names; texts; pictures. An answer holds if
probabilities lie in [0, 1] and sum to 1 over a partition, quantiles ascend, draws lie inside what is known, and nothing
is NaN. Each question may take 10 seconds and 1 GB. At most one part of a question is odd, so that many are answered.
"""

from __future__ import annotations

import math
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from random import Random
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import anyorder as ao

from common import Json, Record, Smoke, print_rows
from isolation import Verdict, print_faults, verdicts

TIMES = ("questions", "variables", "distributions", "model", "modalities")
BRIEF = {"minutes": None, "steps": 20, "threads": 1, "validation_queries": 16}
NAMES = ("rooms", "river", "price", "rain", "day", "größe")
ODD: tuple[Any, ...] = (
    *(0, -1, 7, 3.5, 1e300, -1e300, 1e-320, math.nan, math.inf, -math.inf, 10**30, 2**63, True, None, "", " "),
    *(
        "yes",
        "no",
        "6",
        "6.0",
        " 6 ",
        "1e3",
        "nan",
        "inf",
        "missing",
        "..",
        "3..",
        "..3",
        "5..2",
        "{}",
        "{6}",
        "{6,7}",
        ">3",
        "><",
    ),
    *(
        "2024-02-30",
        "2024-05-01",
        "\u202eabc",
        "日本",
        "\x00",
        "a" * 300,
        "🙂",
        "\ud800",
        [],
        [1],
        {},
        (1, 2),
        b"x",
        object(),
    ),
    *(np.float32(2), np.int64(3), np.nan, np.datetime64("2024-05-01"), pd.NaT, pd.Timestamp("2024-05-01"), ao.MISSING),
)
PLAIN: dict[str, tuple[Any, ...]] = {
    "rooms": (2, 3, 6),
    "river": ("yes", "no"),
    "price": (9.5, 20.0, 31.0),
    "rain": (0.0, 0.5, 2.5),
    "day": (pd.Timestamp("2024-02-01"), pd.Timestamp("2024-07-01")),
    "größe": ("S", "M", "L"),
}
PIECES = (
    "|",
    ",",
    "=",
    "<",
    ">",
    "<=",
    "..",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    '"',
    "'",
    "\\",
    ";",
    "P(",
    "E[",
    "H(",
    " ",
    "\n",
    "\t",
    "\x00",
    "é",
    "𝔘",
    "\u202e",
    "0",
    "-",
    "1e999",
    "missing",
)
LONG = 200_000  # letters of a very large question, about


@dataclass(frozen=True)
class Case:
    """One question; the seed and the number make it again."""

    seed: int
    number: int
    family: str

    @property
    def random(self) -> Random:
        return Random(f"{self.seed}/{self.number}")


def frame() -> pd.DataFrame:
    """Columns of many kinds: whole numbers, levels, a continuum, spikes, days."""
    rng = np.random.default_rng(0)
    rooms = rng.integers(1, 9, 80)
    return pd.DataFrame(
        {
            "rooms": rooms,
            "river": np.where(rng.random(80) > 0.5, "yes", "no"),
            "price": rooms * 5 + rng.normal(size=80),
            "rain": np.where(rng.random(80) < 0.4, 0.0, rng.gamma(2.0, size=80)),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, 80), unit="D"),
            "größe": pd.Categorical(rng.choice(["S", "M", "L"], 80), ["S", "M", "L"], ordered=True),
        }
    )


def make_models(folder: Path) -> None:
    """Small models of every modality, as files."""
    mlp = {"name": "residual_mlp", "width": 16, "blocks": 1}
    config = {"training": BRIEF, "network": mlp, "trees": {"members": 1, "rounds": 5}}
    table = frame()
    ao.fit(table, engine="neural", kinds={"rooms": "integer"}, config=config).save(folder / "neural")
    holes = table.assign(price=table["price"].where(table["rooms"] > 2))
    ao.fit(holes, engine="auto", missingness="joint", config=config).save(folder / "auto")
    ao.fit_text("to be or not to be, that is " * 6, length=16, preset="tiny", config={"training": BRIEF}).save(
        folder / "texts"
    )
    pictures = np.random.default_rng(0).integers(0, 4, (16, 5, 5)).astype(np.uint8)
    ao.fit_images(pictures, preset="tiny", config={"training": BRIEF}).save(folder / "pictures")


@lru_cache
def loaded(folder: Path, name: str) -> Any:
    """A model, once for each worker."""
    return ao.load(folder / name)


def judge(folder: Path, case: Case) -> tuple[str, str]:
    """Ask, and check what comes back."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            FAMILIES[case.family](folder, case.random)
        except ao.UserError as error:
            if len(str(error)) < 12:
                raise AssertionError(f"refused without a reason: {error!r}") from error
            return "refused", ""
    return "answered", ""


# Questions of the grammar.


def typed(random: Random) -> str:
    """A question that is well formed, mostly."""
    names = random.sample(NAMES, random.randint(1, 3))
    evidence = [value(random, name) for name in random.sample(NAMES, random.randint(0, 3)) if name not in names]
    bar = f" | {', '.join(evidence)}" if evidence else ""
    form = random.choice(("", "", "P", "P", "E", "H", "I"))
    if form == "P":
        return f"P({', '.join(value(random, name) for name in names)}{bar})"
    if form == "I":
        return f"I({names[0]}; {random.choice([n for n in NAMES if n != names[0]])}{bar})"
    if form:
        return f"{form}{'[' if form == 'E' else '('}{names[0]}{bar}{']' if form == 'E' else ')'}"
    return f"{', '.join(names)}{bar}"


def value(random: Random, name: str) -> str:
    """What is said of a column, in one of the forms of the grammar."""
    ends = {
        "rooms": ("2", "6"),
        "price": ("9.5", "31"),
        "rain": ("0", "2.5"),
        "day": ("2024-02-01", "2024-07-01"),
        "größe": ("S", "M"),
        "river": ("yes", "no"),
    }
    low, high = ends[name]
    if random.random() < 0.2:
        low, high = high, low
    one = random.choice((low, high))
    forms = [
        f"{name}={one}",
        f"{name}={low}..{high}",
        f"{name} > {one}",
        f"{name} <= {one}",
        f"{low} < {name} <= {high}",
    ]
    forms += [f"{name}={{{low}, {high}}}", f"{name}=missing", f"{name}={low}..", f"{name}=..{high}"]
    return random.choice(forms if name != "river" else [forms[0], forms[5], forms[6]])


def ask_typed(folder: Path, random: Random) -> None:
    model = loaded(folder, random.choice(("neural", "auto")))
    question = typed(random)
    check_reply(model.ask(question, draws=random.choice((2, 16, 64)), seed=random.randrange(99)), question)


def ask_broken(folder: Path, random: Random) -> None:
    model = loaded(folder, random.choice(("neural", "auto")))
    letters = list(typed(random))
    at = random.randrange(len(letters) + 1)
    kind = random.random()
    if kind < 0.25:
        letters[at:at] = random.choice((" ", "  ", "\t", "\n", "\u00a0"))
    elif kind < 0.4:
        del letters[at : at + random.randint(1, 4)]
    elif kind < 0.55:
        letters[at:at] = letters[at : at + random.randint(1, 9)]
    elif kind < 0.75 and (digits := [place for place, letter in enumerate(letters) if letter.isdigit()]):
        letters[random.choice(digits)] = random.choice("0123456789.-e")
    else:
        letters[at:at] = random.choice(PIECES)
    question = "".join(letters)
    check_reply(model.ask(question, draws=4), question)


def ask_huge(folder: Path, random: Random) -> None:
    model = loaded(folder, "neural")
    size = random.choice((100, 5_000, LONG))
    piece = random.choice(PIECES)
    question = random.choice(
        (
            f"P(rooms={{{', '.join(str(random.randrange(size)) for _ in range(size // 7))}}} | river=yes)",
            f"price | rooms={{{', '.join(map(str, range(size // 7)))}}}",
            f"P(river={{{', '.join(random.choice(('yes', 'no', 'x')) for _ in range(size // 4))}}})",
            piece * (size // len(piece)),
            "price | rooms=" + piece * (size // len(piece)),
            "P(" * (size // 4) + "price > 3" + ")" * (size // 4),
            ", ".join(f"c{number}" for number in range(size // 6)),
            "price | " + ", ".join(f"rooms={number}" for number in range(size // 8)),
            "price" * (size // 5),
            "price | rooms=" + "1" * size,
            f"price | river='{'x' * size}'",
        )
    )
    check_reply(model.ask(question, draws=8), question[:200])


# Questions from Python.


def said(random: Random, name: str, *, odd: bool) -> Any:
    """What is said of a column from Python: a value, a range or a set, of which one part may be odd."""
    plain = PLAIN.get(name, (1, 2))
    kind = random.random()
    if kind < 0.25 and (name != "river" or odd):
        low, high = sorted(random.choices(plain, k=2), key=plain.index)
        if odd:
            low, high = random.choice(((random.choice(ODD), high), (low, random.choice(ODD)), (high, low)))
        return ao.Between(low, high, random.random() < 0.3 and low != high, random.random() < 0.3 and low != high)
    if kind < 0.5:
        levels = random.sample(plain, random.randint(1, len(plain)))
        return ao.OneOf(*levels, *(random.choices(ODD, k=random.randint(0, 20)) if odd else ()))
    return random.choice(ODD if odd else plain)


def ask_python(folder: Path, random: Random) -> None:
    model = loaded(folder, random.choice(("neural", "auto")))
    odd = random.choice(("", "", "evidence", "name", "value"))
    first, second, name = random.sample(NAMES, 3)
    evidence: dict[Any, Any] = {
        column: said(random, column, odd=odd == "evidence" and column == first)
        for column in (first, second)[: random.randint(1 if odd == "evidence" else 0, 2)]
    }
    asked: Any = random.choice(("room", "", "missing(price)", "\x00", 3, *evidence)) if odd == "name" else name
    conditional = model.given(evidence).using(draws=random.choice((2, 16)), seed=random.randrange(9))
    what = random.randrange(7)
    label = f"{evidence!r} {asked!r} {what}"
    value = random.choice(ODD if odd == "value" else PLAIN[name])
    if what == 0:
        check_reply(conditional[asked], label)
    elif what == 1:
        check_probability(conditional.prob({asked: said(random, name, odd=odd == "value")}), label)
    elif what == 2:
        check(not math.isnan(conditional.log_prob({asked: value}, orders=random.choice((1, 2)))), label)
    elif what == 3:
        check_draws(conditional.sample(random.choice((1, 5)), seed=random.randrange(9)), evidence, label)
    elif what == 4:
        answer = conditional[asked]
        for density in np.atleast_1d(answer.pdf(value)):
            check(density >= 0, f"{label}: a density of {density} at {value!r}")
        for share in np.atleast_1d(answer.cdf(value)):
            check_probability(float(share), f"{label}, cdf at {value!r}")
    elif what == 5:
        answer = conditional[asked]
        low, high = answer.interval(random.choice((0.5, 0.9, 0.0, 2) if odd == "value" else (0.5, 0.9)))
        levels = list(answer.variable.levels)
        check(levels.index(low) <= levels.index(high) if levels else low <= high, label)
    else:
        row = {column: random.choice(PLAIN[column]) for column in (first, second)}
        row |= {second: random.choice(ODD)} if odd == "value" else {}
        found = model.next_question(row, about=asked, draws=random.choice((2, 4)))
        check(all(math.isfinite(one.gain) for one in found.candidates), label)


def ask_rows(folder: Path, random: Random) -> None:
    model = loaded(folder, random.choice(("neural", "auto")))
    rows = frame().sample(random.randint(1, 4), random_state=random.randrange(99)).astype(object)
    for _ in range(random.randint(0, 4)):
        rows.iat[random.randrange(len(rows)), random.randrange(rows.shape[1])] = random.choice((None, *ODD))
    unseen = random.choice(("refuse", "missing"))
    if random.random() < 0.5:
        check(not model.log_prob(rows, unseen=unseen).isna().any(), rows.to_dict())
    else:
        filled = model.fill(rows, unseen=unseen)
        check(unseen == "missing" or not filled[list(NAMES)].isna().any().any(), rows.to_dict())


def ask_partition(folder: Path, random: Random) -> None:
    """The parts of a column have probability 1 together, whatever is known."""
    model = loaded(folder, random.choice(("neural", "auto")))
    name = random.choice(NAMES)
    evidence = ", ".join(value(random, other) for other in random.sample(NAMES, 2) if other != name)
    bar = f" | {evidence}" if evidence else ""
    seed = random.randrange(99)
    if name == "river":
        parts = [f"{name}=yes", f"{name}=no"]
    elif name == "größe":
        parts = [f"{name}={level}" for level in "SML"]
    else:
        at = str(random.choice(frame()[name].tolist()))[:10]
        parts = [f"{name} <= {at}", f"{name} > {at}"]
    found = [model.prob(part + bar, draws=16, seed=seed) for part in parts]
    for one in found:
        check_probability(one, parts)
    check(abs(sum(found) - 1) < 1e-4, f"{parts}{bar}: {found} sum to {sum(found)}")


# Texts and pictures.


def ask_texts(folder: Path, random: Random) -> None:
    model = loaded(folder, "texts")
    letters = "to be or nt,hais" if random.random() < 0.7 else "to xé\x00日_ "
    text = "".join(random.choices(letters, k=random.choice((0, 1, 8, 16, 40))))
    what = random.randrange(3)
    if what == 0:
        check(bool((model.log_prob([text], orders=random.choice((1, 2))) <= 1e-6).all()), text)
    elif what == 1:
        marked = "".join(random.choice((letter, "_")) for letter in text)
        filled = model.fill(marked, mark=random.choice(("_", "_", "?", "")))
        check(len(filled.text) == len(marked) and all(-1e-6 <= one <= 1 + 1e-6 for one in filled.confidence), marked)
    else:
        size = random.choice((None, 0, 5, 16, 99))
        drawn = model.sample(2, length=size, beginning=text[: random.randint(0, 8)], drafts=random.choice((None, 3)))
        check(len(drawn) == 2 and len(drawn[0]) == (16 if size is None else size), text)


def ask_pictures(folder: Path, random: Random) -> None:
    model = loaded(folder, "pictures")
    rng = np.random.default_rng(random.randrange(2**32))
    odd = random.choice(("", "", "shape", "levels", "kind", "known", "option"))
    shape = random.choice(((4, 5), (5, 5, 3), (0, 5), (1, 5, 5), (25,))) if odd == "shape" else (5, 5)
    picture: Any = rng.integers(0, 9 if odd == "levels" else 4, shape)
    if odd == "kind":
        picture = random.choice((picture.astype(float), picture + 0.5, picture.tolist(), None))
    known: Any = random.choice((rng.random((5, 5)) < 0.7, rng.random((5, 5)) < 0.1))
    if odd == "known":
        known = random.choice((rng.random((4, 5)) < 0.5, np.ones((5, 5), bool), np.zeros((5, 5), bool), None, "x"))
    if random.random() < 0.5:
        stack = picture[None] if odd not in ("shape", "kind") else picture
        check(bool((model.log_prob(stack, known=known) <= 1e-5).all()), "log_prob")
    else:
        steps = random.choice((0, 99, -1, 1.5)) if odd == "option" else random.choice((None, 2))
        filled = model.fill(picture, known, draws=1, steps=steps, temperature=random.choice((1.0, 0.5)))
        check(bool((filled < 4).all()), "fill")
        if not odd:
            check(bool((np.asarray(filled).reshape(-1, 5, 5)[:, known] == picture[known]).all()), "known pixels stay")


# What holds of every answer.


def check(true: bool, about: object) -> None:
    if not true:
        raise AssertionError(str(about)[:2000])


def check_probability(found: float, about: object) -> None:
    check(-1e-9 <= found <= 1 + 1e-6, f"{about}: a probability of {found}")


def check_draws(drawn: pd.DataFrame, evidence: Mapping[Any, Any], about: str) -> None:
    """No cell of them is empty, and what is known is so in each."""
    check(not drawn.isna().any().any(), f"{about}: an empty cell in {drawn.to_dict()}")
    for name, known in evidence.items():
        for cell in drawn[name]:
            check(_inside(cell, known, PLAIN[name]), f"{about}: drew {name} = {cell!r}")


def _inside(cell: Any, known: Any, plain: tuple[Any, ...]) -> bool:
    """Whether a draw is what evidence says; of evidence that is odd, nothing can be said."""
    if isinstance(known, ao.OneOf):
        return not all(_is_plain(one, plain) for one in known.levels) or cell in known.levels
    if isinstance(known, ao.Between):
        if not (_is_plain(known.low, plain) and _is_plain(known.high, plain)):
            return True
        low, at, high = (plain.index(one) if isinstance(one, str) else one for one in (known.low, cell, known.high))
        return (low < at if known.low_open else low <= at) and (at < high if known.high_open else at <= high)
    return not _is_plain(known, plain) or cell == known


def _is_plain(known: Any, plain: tuple[Any, ...]) -> bool:
    return any(type(known) is type(one) and known == one for one in plain)


def check_reply(reply: Any, about: str) -> None:
    """Whatever ``ask`` gives back: numbers, distributions, or several by name."""
    if isinstance(reply, Mapping):
        for part in reply.values():
            check_reply(part, about)
    elif isinstance(reply, float):
        check(not math.isnan(reply), f"{about}: {reply}")
        if about.startswith("P"):
            check_probability(reply, about)
    elif isinstance(reply, ao.Answer):
        if reply.variable.levels:
            found = list(reply.probs().values())
            check(abs(sum(found) - 1) < 1e-4, f"{about}: levels sum to {sum(found)}")
        if reply.kind not in ("categorical", "boolean"):
            # Of levels with an order, the codes ascend.
            levels = reply.spread(5) if reply.kind == "ordinal" else np.asarray(reply.quantile([0.1, 0.5, 0.9]))
            check(bool((levels[1:] >= levels[:-1]).all()), f"{about}: quantiles {levels}")


FAMILIES: dict[str, Callable[[Path, Random], None]] = {
    "typed": ask_typed,
    "typed, broken": ask_broken,
    "typed, huge": ask_huge,
    "from Python": ask_python,
    "rows": ask_rows,
    "partitions": ask_partition,
    "texts": ask_texts,
    "pictures": ask_pictures,
}


def summary(found: list[Verdict[Case]]) -> list[dict[str, Any]]:
    """How each family fared."""
    rows = []
    for family in FAMILIES:
        own = [one for one in found if one.case.family == family]
        outcomes = Counter("fault" if one.fault else one.outcome for one in own)
        rows.append(
            {
                "family": family,
                "questions": len(own),
                "answered": outcomes["answered"],
                "refused": outcomes["refused"],
                "faults": outcomes["fault"],
                "longest (s)": round(max((one.seconds for one in own), default=0.0), 2),
                "most memory (MB)": round(max((one.megabytes for one in own), default=0.0)),
            }
        )
    return rows


def main(
    count: int = 4000,
    seed: int = 0,
    minutes: Annotated[float, typer.Option(help="no further question is begun after so long")] = 10.0,
    only: Annotated[int | None, typer.Option(help="the number of one case, which is asked here")] = None,
    json: Json = None,
    smoke: Smoke = False,
) -> None:
    """Ask, print a table by family, and exit with 1 if anything failed."""
    record = Record(json, smoke=smoke)
    count = 24 if smoke else count
    print(f"seed {seed}; one case again: --seed {seed} --only NUMBER")
    families = list(FAMILIES)
    cases = [Case(seed, number, families[number % len(families)]) for number in range(count)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_models(folder)
        if only is not None:
            print(judge(folder, Case(seed, only, families[only % len(families)])))
            return
        workers = 1 if smoke else 2
        found = list(verdicts(partial(judge, folder), cases, workers=workers, minutes=minutes))
    rows = summary(found)
    print_rows(rows)
    print_faults(found)
    payload = {
        "title": "Fuzzed questions",
        "about": f"{len(found)} questions to small models of every modality, each in at most 10 s and 1 GB.",
        "seed": seed,
        "rows": rows,
    }
    record.write(payload)
    if any(one.fault for one in found):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
