"""Three commands worth typing next, made from the columns and values of the table; each of them runs."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from anyorder.errors import UserError
from anyorder.model import AnyOrderModel
from anyorder.questions.ask import reply_to
from anyorder.questions.conditional import Conditional
from anyorder.questions.grammar import Question, parse_question, write_names, write_question
from anyorder.tasks.summary.dependence import Dependence
from anyorder.tasks.summary.predicted import Predicted, worth_asking
from anyorder.tasks.summary.written import level_text, value_text
from anyorder.variables.schema import Schema

Given: TypeAlias = Callable[[Mapping[str, Any]], Conditional]
"""The model, asked with evidence."""

MOST_EVIDENCE = 2
STEPS = 3


@dataclass(frozen=True)
class Step:
    """A command, and what it tells."""

    command: str
    tells: str


@dataclass(frozen=True)
class Files:
    """The names by which commands call the model and the table."""

    model: str = "MODEL"
    table: str = "TABLE"


def next_steps(
    model: AnyOrderModel,
    frame: pd.DataFrame,
    predicted: Sequence[Predicted],
    depends: Dependence,
    files: Files,
    given: Given,
) -> list[Step]:
    """Commands about the column of which most is known but not all, and what tells about it."""
    schema = model.schema
    names = [schema.names[index] for index in schema.answered if not schema.variables[index].indicates]
    needed = [name for name in schema.context_names if not schema[name].optional]
    target = next(iter(worth_asking(predicted, schema)), names[-1])
    near = depends.about(target) if target in depends.columns else []
    others = [*near, *(name for name in names if name != target and name not in near)]
    values, observed = model.encoding.encode(frame)
    beside = others[: min(len(near) or 1, MOST_EVIDENCE)]
    evidence = _evidence(model, frame, values, observed, [*needed, *beside][: max(len(needed), MOST_EVIDENCE)], given)
    program, table = f"anyorder {{}} {shlex.quote(files.model)}", shlex.quote(files.table)
    found = [_asked(schema, program, target, evidence, given)]
    holes = int((~observed[:, [schema.index(name) for name in names]]).sum())
    if holes:
        told = f"every empty cell filled in ({holes:,} of them)"
        found.append(Step(f"{program.format('fill')} {table} -o {shlex.quote(_filled(files.table))}", told))
    else:
        found.append(_event(schema, program, target, evidence, given))
    if len(names) > 1 and not needed:
        about = shlex.quote(write_names([target]))
        found.append(
            Step(f"{program.format('next')} --about {about}", f"what to measure first to learn about {target}")
        )
    spare = [
        Step(f"{program.format('anomalies')} {table}", "the cells that do not fit the rest of their rows"),
        *([] if needed else [Step(f"{program.format('sample')} -n 10", "ten new rows")]),
    ]
    whole = [step for step in found if step is not None]
    return [*whole, *spare][:STEPS]


def _asked(schema: Schema, program: str, target: str, evidence: Mapping[str, str], given: Given) -> Step | None:
    question = Question((target,), {}, evidence)
    where = " and ".join(f"{name} is {value}" for name, value in evidence.items())
    return _checked(
        schema, program, question, f"{target} where {where}" if where else f"how {target} is distributed", given
    )


def _event(schema: Schema, program: str, target: str, evidence: Mapping[str, str], given: Given) -> Step | None:
    """How probable the likeliest level, or more than usual, is."""
    variable, answer = schema[target], given(evidence if schema.context else {})[target]
    if variable.levels:
        value = level_text(variable, int(np.argmax(list(answer.probs().values()))))
        told = f"how probable {target} = {value} is then"
    else:
        end = value_text(answer.quantile(0.75))
        value, told = f">{end}", f"how probable {target} above {end} is then"
    return _checked(schema, program, Question((target,), {target: value}, evidence, "P"), told, given)


def _checked(schema: Schema, program: str, question: Question, tells: str, given: Given) -> Step | None:
    """The command, if what it asks can be read back and answered."""
    text = write_question(question)
    try:
        read = parse_question(text)
        if read != question:
            return None
        reply_to(read, schema, given, text)
    except UserError:
        return None
    return Step(f"{program.format('ask')} {shlex.quote(text)}", tells)


def _evidence(
    model: AnyOrderModel,
    frame: pd.DataFrame,
    values: Float[np.ndarray, "rows variables"],
    observed: Bool[np.ndarray, "rows variables"],
    names: Sequence[str],
    given: Given,
) -> dict[str, str]:
    """Values of a few columns that stand in one row, a usual one; without those that cannot be typed."""
    chosen = [name for name in names if name in frame.columns]
    which = [model.schema.index(name) for name in chosen]
    while chosen and not observed[:, which].all(axis=1).any():
        chosen, which = chosen[:-1], which[:-1]
    if not chosen:
        return {}
    rows = np.flatnonzero(observed[:, which].all(axis=1))
    row = frame.iloc[rows[_usual(model.schema, values[rows][:, which], which)]]
    typed: dict[str, str] = {}
    for name in chosen:
        text = value_text(row[name])
        try:
            given({**typed, name: text})
        except UserError:
            continue
        typed[name] = text
    return typed


def _usual(schema: Schema, values: Float[np.ndarray, "rows some"], which: Sequence[int]) -> int:
    """The row that is nearest to the middle of all columns, and has their most frequent levels if it can."""
    distance = np.zeros(len(values))
    for column, index in enumerate(which):
        cells = values[:, column]
        if schema.variables[index].kind.has_levels:
            _, where, counts = np.unique(cells, return_inverse=True, return_counts=True)
            distance += 1 - counts[where] / counts.max()
        else:
            off = np.abs(cells - np.median(cells))
            distance += off / max(float(np.median(off)), 1e-12)
    return int(distance.argmin())


def _filled(table: str) -> str:
    """A name beside that of the table."""
    stem, dot, _ = table.rpartition(".csv")
    return f"{stem if dot else table.rsplit('.', 1)[0]}_filled.csv"
