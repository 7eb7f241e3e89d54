"""What the command line prints: every result is first a plain dictionary, then either JSON or a table of it.

So ``--json`` and the text can never say different things.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from anyorder.answer import Answer

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
UNORDERED = ("boolean", "categorical")  # kinds without a mean or quantiles


def answer_facts(answer: Answer) -> dict[str, Any]:
    """The facts of one answer: probabilities where it is discrete, moments and quantiles where it is a number."""
    facts: dict[str, Any] = {"kind": answer.kind}
    if answer.variable.levels:
        pairs = list(answer.probs().items())
        if answer.kind in UNORDERED:
            pairs.sort(key=lambda pair: -pair[1])
        facts["probs"] = {str(level): float(probability) for level, probability in pairs}
    if answer.kind not in UNORDERED:
        facts["mean"] = plain(answer.mean())
        facts["std"] = plain(answer.std())
        values = answer.quantile(list(QUANTILES))
        facts["quantiles"] = {f"{level:g}": plain(value) for level, value in zip(QUANTILES, values, strict=True)}
    return facts


def plain(value: Any) -> Any:
    """Values of numpy, pandas and torch as what JSON knows; a number that is not finite becomes null."""
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(item) for key, item in value.items()}
    if isinstance(value, str) or value is None or isinstance(value, bool):
        return value
    if isinstance(value, np.ndarray):
        return [plain(item) for item in value.tolist()]
    if isinstance(value, Sequence | set | frozenset):
        return [plain(item) for item in value]
    # Dates print themselves as ISO text; their `.item()`, where they have one, would lose the unit.
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if isinstance(value, np.datetime64 | np.timedelta64):
        return str(value)
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, int | float | bool) else str(value)


def print_json(result: Mapping[str, Any]) -> None:
    """One JSON object on standard output."""
    sys.stdout.write(json.dumps(plain(result), indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def print_answers(result: Mapping[str, Any]) -> None:
    """The table of ``ask``."""
    console = _console()
    console.print(f"[dim]{escape(result['question'])}[/dim]")
    answers: Mapping[str, Any] = result["answers"]
    for times in (False, True):
        shown = {n: facts for n, facts in answers.items() if "mean" in facts and (facts["kind"] == "datetime") is times}
        if not shown:
            continue
        table = _table("variable", "mean", "std (days)" if times else "std", *(f"{level:.0%}" for level in QUANTILES))
        for name, facts in shown.items():
            cells = [facts["mean"], facts["std"], *facts["quantiles"].values()]
            table.add_row(escape(name), *(_moment(cell) if times else number(cell) for cell in cells))
        console.print(table)
    for name, facts in answers.items():
        if "probs" not in facts:
            continue
        table = _table(name, "probability", "")
        for level, probability in facts["probs"].items():
            table.add_row(escape(level), f"{probability:.4f}", f"[blue]{'━' * round(24 * probability)}[/blue]")
        console.print(table)
    if "log_prob" in result:
        asked = ", ".join(f"{name}={value}" for name, value in result["values"].items())
        console.print(f"log p({escape(asked)}) = [bold]{number(result['log_prob'])}[/bold] nats")


def print_facts(result: Mapping[str, Any], title: str | None = None) -> None:
    """Nested facts as two columns, the names joined by dots."""
    table = _table(title or "", "", head=False)
    for name, value in _flat(result):
        table.add_row(f"[dim]{escape(name)}[/dim]", escape(number(value)))
    _console().print(table)


def print_table(rows: Sequence[Mapping[str, Any]]) -> None:
    """One line a row, its columns named by the keys of the first one."""
    table = _table(*rows[0])
    for row in rows:
        table.add_row(*(escape(number(value)) for value in row.values()))
    _console().print(table)


def print_variables(variables: Sequence[Mapping[str, Any]]) -> None:
    """The variables of a model: name, kind, levels."""
    table = _table("variable", "kind", "levels", numeric=False)
    for variable in variables:
        levels = [str(level) for level in variable["levels"]]
        shown = ", ".join(levels[:6]) + (f", ... ({len(levels)} in all)" if len(levels) > 6 else "")
        table.add_row(escape(variable["name"]), variable["kind"], escape(shown))
    _console().print(table)


def number(value: Any) -> str:
    """Short and readable: five significant figures, whole numbers whole, dates to the second."""
    if value is None:
        return "-"
    if isinstance(value, bool | str):
        return str(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() and abs(value) < 1e7 else f"{value:.5g}"
    if isinstance(value, list):
        return ", ".join(number(item) for item in value[:8]) + (", ..." if len(value) > 8 else "")
    return str(value)


def _moment(value: Any) -> str:
    """A time without what is zero in it."""
    return value[:16].replace("T", " ").removesuffix(" 00:00") if isinstance(value, str) else number(value)


def _console() -> Console:
    # A pipe has no width; 80 columns would break long names and dates apart.
    return Console(highlight=False, width=None if sys.stdout.isatty() else 160)


def _table(*names: str, head: bool = True, numeric: bool = True) -> Table:
    table = Table(box=None, show_header=head, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for index, name in enumerate(names):
        right = numeric and head and index > 0 and bool(name)
        table.add_column(escape(name), justify="right" if right else "left", overflow="fold")
    return table


def _flat(facts: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in facts.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value
