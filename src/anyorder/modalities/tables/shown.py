"""A fitted model of a table in a notebook: its columns and what they hold, how good it is, and what to ask it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anyorder.modalities.card import still_improving
from anyorder.questions.answer import Answer
from anyorder.questions.conditional import Conditional
from anyorder.questions.units import shown
from anyorder.support import html
from anyorder.variables.schema import Kind, Schema, Variable

MOST_COLUMNS = 40
CELLS = 24  # of the small chart beside a column
MEMBERS = {
    "neural": "networks",
    "linear": "linear regressions",
    "trees": "boosted trees",
    "regressions": "boosted regressions",
    "before": "the model before its update",
    "network": "networks trained further",
}


def model_html(everything: Conditional, card: Mapping[str, Any]) -> str:
    """``everything``: the model's answers without evidence, whose marginals are drawn."""
    schema = everything.model.schema
    columns = [variable for variable in schema.variables if not variable.indicates]
    shown_columns = columns[:MOST_COLUMNS]
    answers: dict[str, Answer] = {}
    if not schema.context:  # without it, nothing can be asked
        answers = everything.answers(*(variable.name for variable in shown_columns))
    lines = [
        [one.name, _kind(one), _values(answers[one.name]), _chart(answers[one.name])]
        if answers
        else [one.name, _kind(one), _role(one), ""]
        for one in shown_columns
    ]
    rows = card.get("data", {}).get("rows")
    title = f"A model of {len(columns)} columns" + (f", fitted to {rows} rows" if rows is not None else "")
    more = [html.remark(f"and {len(columns) - MOST_COLUMNS} columns more")] if len(columns) > MOST_COLUMNS else []
    return html.titled(
        title,
        html.table(["column", "kind", "holds", ""], lines),
        *more,
        *(html.remark(line) for line in _facts(schema, card)),
        *_question(answers),
    )


def _role(variable: Variable) -> str:
    if not variable.context:
        return "asked given the context"
    return "context: may be unknown" if variable.optional else "context: always known"


def _kind(variable: Variable) -> str:
    return variable.kind.value if variable.notation is None else f"{variable.kind.value}: {variable.notation.meaning}"


def _values(answer: Answer) -> str:
    """The most probable levels, or where 90 % of the numbers are."""
    variable = answer.variable
    if not variable.levels:
        low, high = answer.interval(0.9)
        return f"{answer.written(low)} .. {answer.written(high)}"
    pairs = sorted(answer.probs().items(), key=lambda pair: -pair[1])
    said = ", ".join(f"{shown(variable, level)} {float(share):.0%}" for level, share in pairs[:3])
    return said + (f", {len(pairs) - 3} others" if len(pairs) > 3 else "")


def _chart(answer: Answer) -> html.Markup:
    if not answer.variable.levels:
        return html.columns(answer.histogram(CELLS)[1].tolist())
    shares = [float(share) for share in answer.probs().values()]
    if answer.variable.kind in (Kind.CATEGORICAL, Kind.BOOLEAN):
        shares.sort(reverse=True)
    return html.columns(shares[: 2 * CELLS])


def _facts(schema: Schema, card: Mapping[str, Any]) -> list[str]:
    """How good it is, what it is made of, what was left out."""
    scores, lines = card.get("scores", {}), []
    if isinstance(held_out := scores.get("held_out"), int | float):
        lines.append(f"held-out score: {held_out:.3f} ({scores.get('unit', 'nats')})")
    if weights := scores.get("weights"):
        parts = sorted(weights.items(), key=lambda pair: -pair[1])
        lines.append("made of " + ", ".join(f"{MEMBERS.get(name, name)} {weight:.0%}" for name, weight in parts))
    if state := still_improving(card):
        lines.append(state)
    why = dict(zip(schema.left_out, schema.why, strict=False))
    lines += [f"left out: {name}" + (f" ({why[name]})" if name in why else "") for name in schema.left_out]
    if rules := card.get("arguments", {}).get("rules"):
        lines.append("rules: " + ", ".join(map(str, rules)))
    if updates := card.get("updates"):
        lines.append(f"updated {len(updates)} time{'s' if len(updates) > 1 else ''} with new rows")
    return lines


def _question(answers: Mapping[str, Answer]) -> list[object]:
    """A line to paste: one column given a usual value of another."""
    if len(answers) < 2:
        return []
    (first, known), *_, (last, _) = answers.items()
    value = known.mode() if known.variable.levels else known.median()
    if known.variable.numeric and known.variable.notation is None and isinstance(value, float):
        value = float(f"{value:.4g}")
    elif not known.variable.levels:
        value = known.written(value)
    ask = (
        f"model.given({first}={value!r})[{last!r}]"
        if first.isidentifier()
        else f"model.given({{{first!r}: {value!r}}})[{last!r}]"
    )
    return [html.Markup(f"{html.remark('ask me:')} {html.code(ask)}")]
