"""The figures on the pages are those of the result files, each looked up in its own row and column, sign and all."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
NUMBER = r"(?<![\w.])([+-]?(?:\d+\.\d+|\d+(?= s\b)))(?: ?%)?(?: ± (\d+\.\d+))?"

Address = tuple[str, ...]
"""The names on the way to one value of a result file; a row of a list goes by the first of its values, or by the first
few with commas between them."""


@dataclass(frozen=True)
class Figure:
    """A number as it is written: how many digits it has says how far it is rounded."""

    value: str
    error: str | None = None

    def agrees(self, found: Any) -> bool:
        """Whether a value of a result file, a number or a text such as ``(-0.374 ± 0.241)``, is this when rounded."""
        there = figures(found) if isinstance(found, str) else [Figure(str(found))]
        if len(there) != 1 or (self.error is not None and there[0].error is None):
            return False
        errors = self.error is None or same(self.error, there[0].error or "")
        return errors and same(self.value, there[0].value)


def same(written: str, exact: str) -> bool:
    return float(written) == float(f"{float(exact):.{len(written.partition('.')[2])}f}")


def figures(text: str) -> list[Figure]:
    """The decimal fractions of a text with sign and error, in their order, and whole numbers of seconds."""
    return [Figure(found[1], found[2]) for found in re.finditer(NUMBER, text)]


def value_at(content: Any, address: Address) -> Any:
    """The value at an address; KeyError if there is none."""
    for name in address:
        if isinstance(content, list):
            names = [[str(value) for value in row.values()] for row in content]
            (content,) = [
                row
                for row, each in zip(content, names, strict=True)
                if name in (", ".join(each[:count]) for count in range(1, len(each) + 1))
            ] or [{}]
        else:
            content = content[name]
    return content


@dataclass(frozen=True)
class Claim:
    """Figures of one passage of a page, and where in a result file each of them comes from, in their order.

    A passage is what begins with ``start`` and ends before ``end``: some cells of a row, or a sentence.
    """

    page: str
    start: str
    end: str
    result: str
    addresses: tuple[Address, ...]

    @property
    def passage(self) -> str:
        text = (ROOT / self.page).read_text(encoding="utf-8")
        assert text.count(self.start) == 1, f"{self.page} has {text.count(self.start)} times {self.start!r}"
        behind = text.partition(self.start)[2]
        assert self.end in behind, f"{self.page}: {self.end!r} does not follow {self.start!r}"
        return behind.partition(self.end)[0]

    def wrong(self, passage: str) -> list[str]:
        """What does not agree; a figure without an address, or an address without a figure, is wrong too."""
        written = figures(passage)
        if len(written) != len(self.addresses):
            return [f"{len(written)} figures for {len(self.addresses)} addresses: {written}"]
        content = json.loads((RESULTS / self.result).read_text(encoding="utf-8"))
        found = [value_at(content, address) for address in self.addresses]
        return [
            f"{figure} is {value!r} at {address}"
            for figure, value, address in zip(written, found, self.addresses, strict=True)
            if not figure.agrees(value)
        ]


def at(table: str, row: str, *columns: str) -> tuple[Address, ...]:
    return tuple((table, row, column) for column in columns)


def claims() -> Iterator[Claim]:
    yield from readme()
    yield from comparisons()
    yield from design()
    yield from texts()
    yield from robots()
    yield from service()
    yield from uncertainty()
    yield from reproduction()


PAIRED = "over the better closed form"
FILLS = "energy score less that of DDPM, RePaint"
REPAINT, SFARM = "DDPM, RePaint", "anyorder, seven modes (SFARM)"
DEFAULT = "default, 20 minutes"
CHAIN, LEFT = "chain network, MAC order", "chain network, left to right only"
SHARED = tuple(f"operator and {name}" for name in ("independent cloning", "random order (ARDM)", "MAC order"))
ARDM, MAC = "mask network, random order (ARDM)", "mask network, MAC order (MAC)"


def readme() -> Iterator[Claim]:
    page = "README.md"
    for name, start in (("concrete", "| concrete: "), ("diabetes", "| diabetes: ")):
        yield Claim(page, start, "[", "tables_small.json", at("rows", name, "anyorder", "copula", PAIRED))
    for start, column, grams in (
        ("| text8: bits per character from", "joint", "6-gram"),
        ("| text8: bits per character of", "scattered holes", "5-gram"),
    ):
        rows = tuple(("rows", row, column) for row in (DEFAULT, "counts", grams))
        yield Claim(page, start, "[", "text_engines.json", rows)
    for share in ("90", "50"):
        key = f"{share} % missing"
        rows = ((FILLS, SFARM, key), ("seconds", SFARM, key), ("seconds", REPAINT, key))
        yield Claim(page, f"| Fashion-MNIST, {share} %", "[", "image_fills_fashion_mnist.json", rows)
    spreads = (("rows", "iris", "spread of pairs"), ("rows", "breast cancer", "spread of pairs"))
    yield Claim(page, "has a standard deviation of", "[", "coherence.json", spreads)
    ranked = ("anyorder auto", "anyorder 15 s", "miceforest", "BayesianRidge", "pylace", "utrees K=10")
    ranks = tuple(("rows", name, "crps_mean_rank") for name in ranked)
    yield Claim(page, "| fourteen real tables,", "[", "peers.json", ranks)


def comparisons() -> Iterator[Claim]:
    # The page has another table with the same names: the shape tells the rows of this one.
    shapes = {"breast cancer": "512 x 31", "diabetes": "398 x 11", "wine": "160 x 14"}
    shapes |= {"concrete": "927 x 9", "yacht": "277 x 7", "energy": "691 x 9"}
    for name, shape in shapes.items():
        addresses = at("rows", name, "gaussian", "copula", "anyorder", PAIRED)
        yield Claim("docs/comparisons.md", f"| {name} | {shape} |", "\n", "tables_small.json", addresses)
    peers = json.loads((RESULTS / "peers.json").read_text(encoding="utf-8"))
    methods = ("utrees K=10", "miceforest", "BayesianRidge", "linear chain", "pylace", "anyorder 15 s", "anyorder auto")
    for line in peers["crps"]:
        name = line["set"]
        addresses = at("crps", name, *(method for method in methods if line[method] is not None))
        addresses += at("crps_minus_best_peer", name, "anyorder auto")
        start = f"| {name.replace('_', ' ')} | {line['label']} |"
        yield Claim("docs/comparisons.md", start, "\n", "peers.json", addresses)


def design() -> Iterator[Claim]:
    columns = [("yacht", "conditional"), ("energy", "conditional"), ("wine", "conditional")]
    columns += [("wine", "marginal"), ("concrete", "marginal")]
    addresses = [at("orders_at_equal_training_time", name, f"ARDM, {kind}", f"MAC, {kind}") for name, kind in columns]
    yield Claim("docs/design.md", "On six small tables", "The errors", "tables_small.json", sum(addresses, ()))


def texts() -> Iterator[Claim]:
    page, columns = "docs/texts.md", ("joint", "marginal", "scattered holes", "runs of holes")
    for row in (ARDM, MAC, "chain network, random order", LEFT, "counts and chain network (default)"):
        yield Claim(page, f"| {row} |", "\n", "text_table.json", at("rows", row, *columns))
    for row, name in (("6-gram", "counts of six characters"), ("counts", "counts alone")):
        yield Claim(page, f"| {name} |", "\n", "text_table.json", at("rows", row, *columns))
    above = "above {}, bits per character".format
    nearest = at(above("the default"), "counts", *columns)
    yield Claim(page, "(nearest: counts alone, by ", ")", "text_table.json", nearest)
    masks = at(above("MAC's mask network"), ARDM, "joint")
    yield Claim(page, "Of the mask networks, ARDM's has ", " bits", "text_table.json", masks)
    chains = [at(above("the chain network in MAC's order"), row, "joint") for row in (MAC, LEFT)]
    yield Claim(page, "MAC's mask network has ", "\n\n", "text_table.json", sum(chains, ()))
    yield Claim(page, f"| {CHAIN} (the default's) |", "\n", "text_table.json", at("rows", CHAIN, *columns))
    for row in ("4-gram", "5-gram", "6-gram", "counts", "its network alone", "default, 1 minute", DEFAULT):
        kinds = ("joint", "marginal", "scattered holes", "runs of holes", "fit, s")
        yield Claim(page, f"| {row} |", "\n", "text_engines.json", at("rows", row, *kinds))
    packed = "compressed, bits per character"
    yield Claim(page, "| anyorder, 20 minutes", "\n", "text_engines.json", at("rows", DEFAULT, packed))
    yield Claim(page, "| anyorder, counts alone", "\n", "text_engines.json", at("rows", "counts", packed))
    for name in ("xz -9", "zstd -19 --long=27", "zstd -19", "bzip2 -9", "gzip -9"):
        columns = ("bits per character", "bits per character, primed")
        yield Claim(page, f"| `{name}` |", "\n", "compressors.json", at("rows", name, *columns))
    dictionary = "zstd -19, the training text as its dictionary, bits per character"
    yield Claim(page, "as its dictionary takes ", "\n", "compressors.json", ((dictionary,),))


def robots() -> Iterator[Claim]:
    page, result, choices = (
        "docs/robots.md",
        "kitchen_table6.json",
        ("first four joints", "four drawn for each episode"),
    )
    choices += ("gripper and two joints", "mean of the three")
    alone = {
        "cloning, the operator": "cloning alone (the operator)",
        "any-order, random order (ARDM)": "any-order alone, random order (ARDM)",
        "any-order, MAC order (full autonomy)": "any-order alone, MAC order (full autonomy)",
    }
    for name, row in alone.items():
        yield Claim(page, f"| {name} |", "\n", result, at("rows", row, "alone"))
    for row in SHARED:
        yield Claim(page, f"| {row} |", "\n", result, at("rows", row, *choices))
    paired = at("paired differences", "MAC order minus independent cloning", *choices)
    yield Claim(page, "MAC's order less independent cloning: ", "\nof the three", result, paired)
    noisy = at("disturbed commands, four drawn for each episode", "0.1", "independent cloning", "random order (ARDM)")
    noisy += at("disturbed commands, four drawn for each episode", "0.1", "MAC order")
    yield Claim(page, "the independent clone completes ", "\n", result, noisy)
    errors = "squared error of what is added, new demonstrations"
    falls = ((f"MAC order, {heard}", choice) for choice in choices[:3] for heard in ("nothing", "what was done"))
    heard = tuple((errors, *address) for address in falls)
    heard += tuple((errors, "MAC order, what the operator would do", choice) for choice in choices[:3])
    yield Claim(page, "\nerror of the others falls from ", "A clone knows", result, heard)
    models = {
        "one network (20,000 rows)": "neural, 20000, 1",
        "four networks (3,000 rows)": "neural, 3000, 4",
        "four networks, trees and lines (3,000 rows)": "auto, 3000, 16",
    }
    ways, speed = ("sample", "mean", "most probable", "generic sample"), "policy_speed.json"
    for name, model in models.items():
        taken = tuple(("policies", f"{model}, {way}, 1", "ms") for way in ways)
        yield Claim(page, f"| {name} |", "\n", speed, taken)
    together = tuple(("policies", f"{model}, sample, 256", "ms") for model in models.values())
    yield Claim(page, "cheaper than one by one: ", "\n", speed, together)


def service() -> Iterator[Claim]:
    page, result = "docs/how_to/serve.md", "serve_load.json"
    for start, row in (("popular ones come more often", "popular"), ("no question twice", "distinct")):
        together = at("rows", f"{row}, together", "per_second", "median_ms", "p99_ms")
        addresses = (*at("rows", f"{row}, one by one", "per_second"), *together)
        yield Claim(page, f"| {start} |", "\n", result, addresses)
    yield Claim(page, "`anyorder serve` takes ", "\n", result, (("cold start", "seconds"),))
    yield Claim(page, "\nslowest took ", "\n", "serve_hostile.json", (("slowest answer, seconds",),))
    ratios = at("rows", "wine", "ratio") + at("rows", "wide", "ratio")
    yield Claim("docs/how_to/explore.md", "Asked column by", "\n\n", "serve_explorer.json", ratios)


def uncertainty() -> Iterator[Claim]:
    columns = ("spread", "spread of pairs", "gap", "gap, root mean square")
    columns += ("gain of 2 orders", "gain of 4 orders", "gain of 8 orders")
    # The page has another table with some of the names: the number of columns tells the rows of this one.
    for name, width in {"breast cancer": 31, "diabetes": 11, "iris": 5, "wine": 14}.items():
        yield Claim("docs/uncertainty.md", f"| {name} | {width} |", "\n", "coherence.json", at("rows", name, *columns))


def reproduction() -> Iterator[Claim]:
    page = "docs/reproduction.md"

    def row(start: str, end: str, result: str, *addresses: tuple[Address, ...]) -> Claim:
        return Claim(page, start, end, result, sum(addresses, ()))

    masks = ("M_card-mask (ARDM)", "w-MAC", "w-MAC, reweighted", "w-RND, reweighted", "w-MAC, whole chains")
    yield row(
        "| joint, bits per character: ",
        " | ",
        "text_masks.json",
        *(at("rows", name, "joint, equal time") for name in masks),
    )
    both = ("joint", "marginal, per N")
    ours = [at("rows", name, *both) for name in (ARDM, MAC, CHAIN)]
    both_ways = [at("rows", name, choice) for choice in ("mean of the three", "first four joints") for name in SHARED]
    yield row("| mean of three choices of the operator's four numbers", " | ", "kitchen_table6.json", *both_ways)
    yield row("| left-to-right network ", " | ", "text_table.json", at("rows", LEFT, "joint"), *ours)
    sets = {"power": ("3", "5", "6"), "bsds300": ("3", "5", "10"), "miniboone": ("3", "5", "10")}
    firsts = [
        at(name, f"{law} order", *(f"first {k}" for k in ks)) for law in ("MAC", "ARDM") for name, ks in sets.items()
    ]
    yield row("-7.76; GAS, HEPMASS | ", " | ", "mac_tables.json", *firsts)
    rest = [at(name, f"{law} order", "conditional") for law in ("MAC", "ARDM") for name in sets]
    yield row("MINIBOONE 0.07; GAS, HEPMASS | ", " | ", "mac_tables.json", *rest)
    laws = ("M", "D w-RND", "D w-MAC", "D_CR w-MAC")
    entropies = [at("entropy_nats", law, kind) for kind in ("here", "exact") for law in laws]
    yield row("| entropies 7.21, 5.74, 4.44, 5.51 | ", " | ", "mask_entropy.json", *entropies)
    fills = [at("energy score", name, "50 % missing", "90 % missing") for name in ("VAE", "MIWAE", REPAINT, SFARM)]
    paired = at(FILLS, SFARM, "50 % missing", "90 % missing")
    yield row("| energy score at 50 and 90 % missing: ", " | ", "image_fills_fashion_mnist.json", *fills, paired)
    holes = ("mean of halves", "mean of patches", "mean of random")
    modes = [
        at("conditional NLL", name, column) for column in ("energy score of fills", "seven over one") for name in holes
    ]
    yield row("| energy score of fills in 32 calls", " | ", "image_modes_fashion_mnist.json", *modes)
    sfarm = [at("rows", name, "VAE", "MIWAE", "SFARM") for name in ("energy", "yacht", "concrete")]
    default = [at("rows", name, "anyorder") for name in ("energy", "yacht", "concrete")]
    yield row("1.05 ± 0.06 | ", " | ", "sfarm_table1.json", *sfarm, *default)
    curves = ("RMSE, yacht", "RMSE, energy", "RMSE, concrete")
    models = ("anyorder, information", "VAE, histogram", "MIWAE, histogram")
    yield row(
        "| area under the RMSE curve",
        " | ",
        "acquisition_figure5.json",
        *(at("rows", name, *curves) for name in models),
    )
    likelihood = at("rows", "U-Net, seven modes (SFARM)", "test NLL, nats", "5 orders averaged, nats")
    yield row("| SFARM 78.12 | ", " | ", "image_nll_binarized_mnist.json", likelihood)
    steps = [at("rows", count, "equal groups") for count in ("2", "8", "32", "128", "512")]
    yield row("| Frechet distance, not the FID: ", " | ", "image_steps_fashion_mnist.json", *steps)


CLAIMS = list(claims())


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"{Path(claim.page).stem}-{claim.start.strip(' |')[:30]}")
def test_a_figure_is_that_of_its_row_and_column(claim: Claim) -> None:
    assert claim.wrong(claim.passage) == []


@pytest.mark.parametrize("page, columns", [("README.md", (1, 2)), ("docs/reproduction.md", (3,))])
def test_no_row_that_names_a_result_file_goes_unchecked(page: str, columns: tuple[int, ...]) -> None:
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    named = [line for line in lines if line.startswith("| ") and ".json" in line]
    assert len(named) >= 6
    for line in named:
        row = line.strip("|").split("|")
        if figures(" ".join(row[column] for column in columns)):
            assert [claim for claim in CLAIMS if claim.page == page and claim.start in line + "\n"], line[:80]


def test_a_figure_is_read_with_its_sign_and_its_error() -> None:
    read = figures("-0.37 ± 0.24 of 1,523 in 2 steps, v1.2.3, w-MAC 3.58, +0.9% ± 0.3%, -43.6 % ± 3.8 %, 14 s")
    assert read == [
        Figure("-0.37", "0.24"),
        Figure("3.58"),
        Figure("+0.9", "0.3"),
        Figure("-43.6", "3.8"),
        Figure("14"),
    ]


@pytest.mark.parametrize(
    "figure, found, agrees",
    [
        (Figure("1.67"), 1.6749, True),
        (Figure("1.67"), 1.6751, False),
        (Figure("0.37"), -0.37, False),
        (Figure("-0.37", "0.24"), "-0.37 ± 0.24", True),
        (Figure("-0.37", "0.24"), "(-0.374 ± 0.241)", True),
        (Figure("-0.37", "0.24"), "0.37 ± 0.24", False),
        (Figure("-0.37", "0.24"), "-0.37 ± 0.25", False),
        (Figure("-0.37", "0.24"), -0.37, False),
        (Figure("0.65", "0.31"), "+0.65 ± 0.31", True),
        (Figure("1.00"), "-", False),
    ],
)
def test_a_figure_agrees_only_with_its_own_number(figure: Figure, found: Any, agrees: bool) -> None:
    assert figure.agrees(found) is agrees


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"{Path(claim.page).stem}-{claim.start.strip(' |')[:30]}")
def test_a_wrong_figure_is_seen(claim: Claim) -> None:
    """Each figure in turn with another last digit, another sign or another error, and a value of another row."""
    passage = claim.passage
    for found in re.finditer(NUMBER, passage):
        for group in (group for group in (1, 2) if found[group]):
            start, end = found.span(group)
            last = str((int(passage[end - 1]) + 1) % 10)
            assert claim.wrong(passage[: end - 1] + last + passage[end:]), found[0]
        start, end = found.span(1)
        turned = found[1][1:] if found[1][0] == "-" else f"-{found[1].lstrip('+')}"
        if float(turned):
            assert claim.wrong(passage[:start] + turned + passage[end:]), found[0]
    if len(claim.addresses) > 1 and len(set(figures(passage))) == len(claim.addresses):
        assert replace(claim, addresses=claim.addresses[::-1]).wrong(passage)
