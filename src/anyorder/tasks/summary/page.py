"""A summary as it is shown: as text, in a notebook, and as plain values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from anyorder.support import html
from anyorder.support.visible import visible
from anyorder.tasks.summary.dependence import Dependence, Pair
from anyorder.tasks.summary.predicted import HARDLY, Predicted, ranked
from anyorder.tasks.summary.steps import Step
from anyorder.tasks.summary.surprises import Surprise

MOST_SHOWN = 20  # columns in a terminal
MOST_PAIRS = 5
LONGEST_NAME = 24
USUAL = 0.5  # cells so odd that are expected by chance: from here on one of them is no wonder


@dataclass(frozen=True)
class Summary:
    """What there is to know of a table first.

    Parameters
    ----------
    rows
        How many rows the table has.
    judged
        How many of them were predicted by parts of the model that have never learned from them.
    unjudged
        Why none were, if so.
    predicted
        How well each column can be predicted from the others.
    depends
        The mutual information of all pairs of columns.
    surprises
        The oddest cells.
    steps
        Commands worth typing next.
    """

    rows: int
    judged: int
    unjudged: str
    predicted: tuple[Predicted, ...]
    depends: Dependence
    surprises: tuple[Surprise, ...]
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        parts = [
            ("How well each column can be predicted from the others", [*_aligned(self._lines()), self.basis]),
            ("Which columns go together", self._pair_lines()),
            ("What is surprising", [*map(str, self.surprises), *self._chance()]),
            ("Worth asking next", [line for step in self.steps for line in (step.command, f"    {step.tells}")]),
        ]
        return "\n\n".join(
            "\n".join([heading, *(f"  {visible(line)}" for line in lines if line)]) for heading, lines in parts if lines
        )

    def __repr__(self) -> str:
        return f"Summary({self.judged} of {self.rows} rows measured, {len(self.predicted)} columns)"

    def _repr_html_(self) -> str:
        return html.titled(
            "Summary",
            html.titled("How well each column can be predicted from the others", predicted_table(self.predicted)),
            html.remark(self.basis),
            html.titled("Which columns go together", pair_table(self.pairs())),
            html.titled("What is surprising", *self.surprises, *map(html.remark, self._chance())),
            html.titled("Worth asking next", steps_list(self.steps)),
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "rows": self.rows,
            "judged": self.judged,
            "unjudged": self.unjudged,
            "predicted": [asdict(one) for one in self.predicted],
            "pairs": [{**asdict(pair), "like_correlation": pair.like} for pair in self.depends.pairs()],
            "surprises": [asdict(one) for one in self.surprises],
            "steps": [asdict(one) for one in self.steps],
        }

    def pairs(self) -> list[Pair]:
        """The pairs of columns that tell most of each other."""
        return self.depends.pairs()[:MOST_PAIRS]

    @property
    def basis(self) -> str:
        """On which rows the judgement rests."""
        if not self.judged:
            return f"not known: {self.unjudged}"
        return (
            f"(measured on {self.judged:,} of {self.rows:,} rows, by parts of the model that were not trained on them)"
        )

    def _lines(self) -> list[tuple[str, str, str]]:
        if not self.judged:
            return []
        shown = ranked(self.predicted)
        lines = [(_name(one.column), one.word, one.said) for one in shown[:MOST_SHOWN]]
        if more := shown[MOST_SHOWN:]:
            hardly = sum(one.word == HARDLY for one in more)
            lines.append((f"and {len(more)} more", f"{hardly} of them hardly" if hardly else "", ""))
        return lines

    def _pair_lines(self) -> list[str]:
        lines = [(f"{_name(pair.one)} and {_name(pair.other)}", strength(pair)) for pair in self.pairs()]
        if not lines and self.judged:
            return ["none: the columns look independent of each other"] if len(self.predicted) > 1 else []
        more = len(self.depends.pairs()) - len(lines)
        return [*_aligned(lines), *([f"and {more} more pairs, more weakly"] if more > 0 else [])]

    def _chance(self) -> list[str]:
        usual = sum(one.by_chance > USUAL for one in self.surprises)
        if not usual:
            return []
        which = (
            "these are" if usual == len(self.surprises) else "the last is" if usual == 1 else f"the last {usual} are"
        )
        return [f"({which} no odder than one would expect by chance in a table of this size)"]


def strength(pair: Pair) -> str:
    """How much two columns tell of each other, in words."""
    return f"{pair.nats:.2f} nats, like a correlation of {pair.like:.2f}"


def predicted_table(found: Sequence[Predicted]) -> html.Markup:
    """The columns, those first of which most is known, with a bar for how much smaller errors are."""
    rows = [(one.column, one.word, html.bar(one.smaller), one.said) for one in ranked(found)]
    return html.table(("column", "predicted", "errors smaller by", ""), rows)


def pair_table(pairs: Sequence[Pair]) -> html.Markup:
    """Pairs of columns with a bar for the correlation that would tell as much."""
    rows = [(pair.one, pair.other, html.bar(pair.like), strength(pair)) for pair in pairs]
    return html.table(("", "", "", ""), rows or [("no two columns depend on each other", "", "", "")])


def steps_list(steps: Sequence[Step]) -> html.Markup:
    """The commands, and what each tells."""
    rows = [(html.Markup(f"<code>{html.escaped(step.command)}</code>"), step.tells) for step in steps]
    return html.table(("", ""), rows)


def _name(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"


def _aligned(lines: Sequence[tuple[str, ...]]) -> list[str]:
    """Lines whose parts stand below each other."""
    if not lines:
        return []
    widths = [max(len(visible(line[part])) for line in lines) for part in range(len(lines[0]))]
    return ["  ".join(part.ljust(width) for part, width in zip(line, widths, strict=True)).rstrip() for line in lines]
