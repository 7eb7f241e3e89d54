"""What the commands print: every result is first a plain dictionary, then either JSON or a table of it.

So ``--json`` and the text can never say different things.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape as escape_markup
from rich.table import Table

from anyorder.questions.facts import QUANTILES
from anyorder.support.plain import plain
from anyorder.support.visible import visible

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:")


def escape(text: str) -> str:
    """A name or level to print with rich: its own markup is shown, not obeyed."""
    return escape_markup(visible(text))


@contextmanager
def bar(doing: str) -> Iterator[None]:
    """Within, long work shows on a terminal how far it is and how long it will still take."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from anyorder.support.advance import watched

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    # Results go to standard output, which the bar must leave alone.
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False) as shown:
        task = shown.add_task(doing, total=None)
        with watched(lambda done, total: shown.update(task, completed=done, total=total)):
            yield


def as_json(result: Mapping[str, Any]) -> str:
    """One JSON object, as text."""
    return json.dumps(plain(result), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def print_json(result: Mapping[str, Any]) -> None:
    """Write one JSON object to standard output."""
    sys.stdout.write(as_json(result))


def print_result(result: Mapping[str, Any], *, as_json: bool) -> None:
    """Print facts as one JSON object or as two columns."""
    (print_json if as_json else print_facts)(result)


def print_card(card: Mapping[str, Any], *, as_json: bool) -> None:
    """Print a model's card: how it was made."""
    if as_json:
        print_json({"card": card})
    else:
        print_facts(plain(card))


def print_compression(source: Path, target: Path, *, as_json: bool) -> None:
    """Print how small a file became."""
    from anyorder.data.said import bare_name

    source = Path(bare_name(source))
    size, packed = source.stat().st_size if source.is_file() else 0, target.stat().st_size
    facts = {"file": str(target), "bytes": packed, "of": size, "bits_per_byte": 8 * packed / max(size, 1)}
    print_result(facts, as_json=as_json)


def note(text: str) -> None:
    """Write a note to standard error: something the user should know, though the command goes on."""
    remark(f"note: {text}")


def remark(text: str) -> None:
    """Write one line to standard error."""
    sys.stderr.write(f"anyorder: {visible(text)}\n")


def print_answers(result: Mapping[str, Any]) -> None:
    """Print what ``ask`` found: distributions as tables, then the numbers."""
    console = _console()
    console.print(f"[dim]{escape(result['question'])}[/dim]")
    answers: Mapping[str, Any] = result["answers"]
    for times in (False, True):
        shown = {n: facts for n, facts in answers.items() if "mean" in facts and (facts["kind"] == "datetime") is times}
        if not shown:
            continue
        table = _table("variable", "mean", "std (days)" if times else "std", *(f"{level:.0%}" for level in QUANTILES))
        for name, facts in shown.items():
            own = facts.get("written", {})
            cells = [own.get("mean", facts["mean"]), facts["std"], *own.get("quantiles", facts["quantiles"]).values()]
            table.add_row(escape(name), *(_moment(cell) if times and not own else number(cell) for cell in cells))
        console.print(table)
    for name, facts in answers.items():
        if "probs" not in facts:
            continue
        table = _table(name, "probability", "")
        doubts = facts.get("doubts", {}).get("probs", {})
        for level, probability in facts["probs"].items():
            doubt = f" ± {doubts[level]:.2g}" if doubts.get(level) else ""
            table.add_row(escape(level), f"{probability:.4f}{doubt}", f"[blue]{'━' * round(24 * probability)}[/blue]")
        console.print(table)
    methods = sorted({facts["method"] for facts in answers.values() if "method" in facts})
    if methods:
        found = {name: facts.get("standard_errors", {}).get("mean", 0.0) for name, facts in answers.items()}
        errors = ", ".join(f"{name} {error:.2g}" for name, error in found.items() if error)
        remark = f"; standard errors of the means: {errors}" if errors else ""
        console.print(f"[dim]{escape(', '.join(methods) + remark)}[/dim]")
    doubted = {name: facts.get("doubts", {}).get("mean", 0.0) for name, facts in answers.items()}
    if any(doubted.values()):
        said = ", ".join(f"{name} ± {doubt:.2g}" for name, doubt in doubted.items() if doubt)
        remark = f"the model's own doubt about the means: {said}"
        console.print(f"[dim]{escape(remark)}[/dim]")
    if "log_prob" in result:
        asked = ", ".join(f"{name}={value}" for name, value in result["values"].items())
        error = math.hypot(result.get("standard_error", 0.0), result.get("doubt", 0.0))
        spread = f" ± {error:.2g}" if error else ""
        console.print(f"log p({escape(asked)}) = [bold]{number(result['log_prob'])}[/bold]{spread} nats")
    for name in ("probability", "entropy", "mutual_information"):
        if name in result:
            unit = "" if name == "probability" else " nats"
            console.print(f"{name.replace('_', ' ')} {_give_or_take(result[name], unit)}")
    for what, form in (("means", "E[{}]"), ("medians", "median({})"), ("modes", "mode({})")):
        for name, value in result.get(what, {}).items():
            console.print(f"{escape(form.format(name))} = {_give_or_take(value)}")


def _give_or_take(facts: Mapping[str, Any], unit: str = "") -> str:
    doubt = facts.get("doubt") or 0.0
    error = math.hypot(facts["standard_error"], doubt)
    method = facts["method"]
    if doubt:  # exact is the computation, not the model
        method = "exact for this model" if method == "exact" else method
        method += f"; the model's own doubt {doubt:.2g}"
    give = f" ± {error:.2g}" if error else ""
    value = facts["value"]
    shown = _moment(value) if isinstance(value, str) and _TIME.match(value) else number(value)
    return f"[bold]{escape(shown)}[/bold]{give}{unit} [dim]({escape(method)})[/dim]"


def print_facts(result: Mapping[str, Any], title: str | None = None) -> None:
    """Print nested facts as two columns, the names joined by dots."""
    table = _table(title or "", "", head=False)
    for name, value in _flat(result):
        table.add_row(f"[dim]{escape(name)}[/dim]", escape(number(value)))
    _console().print(table)


def print_table(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print rows as a table; the keys of the first row name the columns."""
    table = _table(*rows[0])
    for row in rows:
        table.add_row(*(escape(number(value)) for value in row.values()))
    _console().print(table)


def print_variables(variables: Sequence[Mapping[str, Any]]) -> None:
    """Print the variables of a model: name, kind, levels or what is known of its numbers."""
    table = _table("variable", "kind", "values", numeric=False)
    for variable in variables:
        levels = [str(level) for level in variable["levels"]]
        shown = ", ".join(levels[:6]) + (f", ... ({len(levels)} in all)" if len(levels) > 6 else "")
        values = shown or _line(variable)
        if "context" in variable:
            values = ", ".join(filter(None, [values, f"context, {variable['context']}"]))
        table.add_row(escape(variable["name"]), variable["kind"], escape(values))
    _console().print(table)


def _line(variable: Mapping[str, Any]) -> str:
    """The bounds, atoms and precision of a column of numbers, as far as there are any."""
    facts = []
    if "bounds" in variable:
        low, high = ("" if end is None else number(end) for end in variable["bounds"])
        facts.append(f"{low}..{high} ({variable['bounds_are']})")
    if "atoms" in variable:
        facts.append(f"often {number(variable['atoms'])}")
    if "step" in variable:
        facts.append(f"in steps of {number(variable['step'])}")
    return ", ".join(facts)


def number(value: Any) -> str:
    """A value, short and readable: numbers to five significant figures, whole ones without a point."""
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
    """A time to the minute; a date alone at midnight."""
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
