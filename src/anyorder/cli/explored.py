"""The explorer inside of a report: it answers from rows that the model drew, so the page needs nobody to ask.

The rows are those of ``model.sample(rows, seed)``, with the numbers of each column beside each other, levels by their
number, deflated and in base64. ``explorer/drawn.js`` keeps those that satisfy the conditions.
"""

from __future__ import annotations

import base64
import json
import math
import shlex
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from anyorder.cli.report import Section
from anyorder.data.frames import as_pandas
from anyorder.explorer.module import one_module
from anyorder.questions.marginals import Marginals
from anyorder.questions.units import shown
from anyorder.serve.columns import prior_of, schema_facts
from anyorder.support.html import Markup
from anyorder.support.notes import notes_heard
from anyorder.variables.cells import Numbers
from anyorder.variables.schema import Kind, Variable

if TYPE_CHECKING:
    from anyorder.modalities.tables.model import TableModel

MOST_ROWS, FEWEST_ROWS = 4_000, 500
MOST_CELLS = 120_000  # about half a megabyte of page
DIGITS = 5  # of a drawn number, counted from the width of its column's central 99 %
SECONDS = 5  # decimals of a day, for times that have more than a day: about a second
MOST_FORMS = 1_000  # values of a column that come as they are written

EXPLAINED = (
    "Every column is a card. Click a level, click on a curve or drag across it, or type a value: it becomes a "
    "condition, and every other card shows what follows from it."
)


def explorer_section(model: TableModel, name: str, *, file: str | None = None, seed: int = 0) -> list[Section]:
    """The section with the explorer; none for a model with columns that are always given, which draws nothing alone.

    ``file`` is where the model is saved, if it is: the page says how to ask it there.
    """
    if model.schema.context:
        return []
    drawn = drawn_rows(model, name, seed=seed)
    text = (
        f"{EXPLAINED}\n\nThis page answers from {drawn['rows']:,} rows that the model drew (seed {seed}): those that "
        "satisfy the conditions are kept and counted. It says how many are left; with few of them it is rough. A model "
        "itself answers exactly, on the page of anyorder serve or by model.explore() in a notebook."
    )
    # What stands inside of the element is seen only where no script made one of it. Without a file there is no command
    # to copy.
    body = (
        f"<any-order-explorer{'' if file else ' in-python'}>"
        "<p>This part of the page needs JavaScript; the rest does not.</p>"
        f'<script type="text/plain">{packed(drawn)}</script></any-order-explorer>'
    )
    code = f"anyorder serve {shlex.quote(file)}" if file else ""
    return [Section("Explore it", text, parts=[Markup(body)], code=code, script=one_module("report.js"))]


def drawn_rows(model: TableModel, name: str, *, seed: int = 0) -> dict[str, Any]:
    """What the page is given: how many rows, the columns, their cells, and how values are written."""
    count = min(MOST_ROWS, max(FEWEST_ROWS, MOST_CELLS // len(model.columns)))
    holes = any(variable.indicates for variable in model.schema.variables)
    with notes_heard():  # how many of them repeat each other under rules is nothing for the one who fits
        frame = as_pandas(model.sample(count, seed=seed, holes=holes))
    marginals = Marginals(model.core)
    facts = schema_facts(name, model, marginals, prior_of(model, marginals))
    for column in facts["columns"]:  # the page counts them in the rows
        column["marginal"] = None
    encoding = model.core.encoding
    cells, there = encoding.cells(frame)
    values, _ = encoding.encode(frame)
    listed, forms = {}, {}
    for index, variable in enumerate(model.schema.variables):
        if variable.indicates:
            continue
        numbers = cells[:, index]
        if variable.kind is Kind.DATETIME:
            numbers = encoding.codecs[index].measure(values[:, index])
        logarithmic = not variable.levels and marginals.axes[variable.name].logarithmic
        rounded = zip(_rounded(variable, numbers, logarithmic), there[:, index], strict=True)
        listed[variable.name] = [value if known else None for value, known in rounded]
        if _in_own_words(variable):
            forms[variable.name] = _forms(
                marginals, variable, [value for value in listed[variable.name] if value is not None]
            )
    return {"name": name, "rows": count, "schema": facts, "cells": listed, "forms": forms}


def packed(drawn: dict[str, Any]) -> str:
    """As a page can hold it: JSON, deflated, in base64."""
    text = json.dumps(drawn, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode("utf-8"), 9)).decode("ascii")


def _rounded(variable: Variable, numbers: Numbers, logarithmic: bool) -> list[float]:
    """The numbers in as many digits as a drawing has use for; an atom, and nothing else, stays what it is."""
    if variable.levels or variable.discrete:
        return [int(number) for number in np.rint(numbers)]
    if variable.kind is Kind.DATETIME:
        return [round(float(number), SECONDS) for number in numbers]
    width = float(np.subtract(*np.quantile(numbers, [0.995, 0.005])))
    decimals = DIGITS - 1 - math.floor(math.log10(width)) if width > 0 else DIGITS
    found = [float(f"{number:.{DIGITS}g}" if logarithmic else round(float(number), decimals)) for number in numbers]
    atoms = set(variable.atoms)
    return [
        float(number) if number in atoms or near in atoms else near for number, near in zip(numbers, found, strict=True)
    ]


def _forms(marginals: Marginals, variable: Variable, numbers: list[float]) -> dict[str, Any]:
    """Values of a column with a form of its own, as it writes them: all that were drawn, or many of them."""
    known = np.unique(numbers)
    if len(known) > MOST_FORMS:
        known = known[np.linspace(0, len(known) - 1, MOST_FORMS).round().astype(int)]
    written = [shown(variable, value) for value in marginals.in_units(variable, known.tolist())]
    return {"numbers": known.tolist(), "written": written}


def _in_own_words(variable: Variable) -> bool:
    """Whether the page cannot write the column's values by itself."""
    return not variable.levels and (variable.notation is not None or variable.form not in ("", "date"))
