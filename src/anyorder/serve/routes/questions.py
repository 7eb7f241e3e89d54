"""Questions to a model of a table, in JSON; every route is a method of ``TableModel``."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import pandas as pd
from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import Field

from anyorder.errors import UserError
from anyorder.questions.ask import reply_to
from anyorder.questions.conditional import Conditional
from anyorder.questions.estimate import Estimate
from anyorder.questions.facts import estimate_facts, reply_facts
from anyorder.questions.grammar import parse_question
from anyorder.questions.marginals import DRAWS as MARGINAL_DRAWS
from anyorder.questions.ranges import DRAWS as RANGE_DRAWS
from anyorder.questions.units import shown_evidence
from anyorder.serve import answers, tables
from anyorder.serve.columns import marginal_facts
from anyorder.serve.errors import ServiceError, of_mistake, placed
from anyorder.serve.models import Served
from anyorder.serve.service import Asked, Rules, Seed, ServiceDep, as_json, key_of, noted, plain_json
from anyorder.serve.statements import Given, evidence_of
from anyorder.serve.workers import Stopped
from anyorder.support.notes import notes_heard
from anyorder.tasks.acquisition.measurements import DRAWS as NEXT_DRAWS
from anyorder.tasks.anomalies import row_scores

router = APIRouter(prefix="/v1/models/{name}", tags=["tables"])
LONGEST = 20_000  # characters of a question
RANGE = re.compile(r"\.\.|[<>{!]|missing")
Names = Annotated[list[Annotated[str, Field(max_length=1000)]], Field(max_length=10_000)]


class _About(Asked):
    given: Given = Field(default_factory=dict, description="what is known, by column", examples=[{"rooms": 6}])
    rules: Rules | None = Field(None, description="rules between columns; null for those of the model, [] for none")


class MarginalsRequest(_About):
    """All columns given what is known."""

    columns: Names = Field(default_factory=list, description="the columns to answer; all that are not given by default")
    draws: int = Field(MARGINAL_DRAWS, ge=2, description="that stand for ranges among the evidence")
    seed: Seed = 0
    evidence: bool = Field(False, description="say also how likely the evidence itself is; takes longer")


class EvidenceRequest(_About):
    """How likely the evidence itself is."""

    draws: int = Field(MARGINAL_DRAWS, ge=2)
    seed: Seed = 0
    rarity: bool = Field(False, description="compare it with rows that the model draws; takes longer")


class AskRequest(_About):
    """A typed question."""

    question: str = Field(max_length=LONGEST, examples=["price, tax | rooms=6", "P(price > 30 | rooms=6)"])
    draws: int | None = Field(None, ge=2, description="that stand for ranges among the evidence")
    seed: Seed = 0
    doubts: bool = Field(False, description="with the model's own doubt about every number; takes longer")


class SampleRequest(_About):
    """Rows drawn jointly."""

    count: int = Field(100, ge=1)
    columns: Names = Field(default_factory=list, description="draw these alone; all by default")
    seed: Seed = 0
    holes: bool = Field(False, description="leave cells empty as in the data; only with missingness='joint'")


class NextRequest(_About):
    """What to ask for next."""

    about: Names = Field(min_length=1, description="the columns to learn about")
    candidates: Names | None = None
    groups: dict[str, Names] | None = None
    costs: dict[str, float] | None = None
    budget: float | None = None
    price: float = 0.0
    least: float | None = None
    reward: Literal["information", "variance", "error"] = "information"
    at_once: int = Field(1, ge=1, le=100)
    look_ahead: int = Field(1, ge=1, le=2)
    draws: int = Field(NEXT_DRAWS, ge=1)
    seed: Seed = 0


@router.get("/schema", response_model=answers.SchemaAnswer, response_model_exclude_none=True)
async def schema(name: str, service: ServiceDep) -> Response:
    """Every column: its kind, levels, axis, what was seen of it, and its marginal."""
    served = service.models.get(name, "table")
    return await service.answer(key_of("schema", name), lambda: served.schema)


@router.post("/marginals", response_model=answers.MarginalsAnswer)
async def marginals(name: str, said: MarginalsRequest, service: ServiceDep) -> Response:
    """All columns given what is known, in one call. Under ranges by draws, else exactly."""
    served = service.models.get(name, "table")
    said = service.within_draws(said, said.draws)
    # Ranges are answered one by one in any case, and take longer: they are not to hold up those that are not.
    what, most = ("ranged marginals", 1) if _seems_ranged(said) else ("marginals", service.settings.together)
    batches = service.together(served, what, lambda some: _marginals(served, some), most)

    async def work() -> bytes:
        if not said.evidence:
            return plain_json(await batches.ask(said))
        found = dict(await batches.ask(said))
        shared = said.model_dump(include={"rules", "draws", "seed"})
        about = EvidenceRequest(given=said.given, **shared)
        return as_json(found | {"evidence": await service.workers.run(lambda: _evidence(served, about))})

    return await service.once(key_of("marginals", name, said.model_dump()), work)


def _seems_ranged(said: MarginalsRequest) -> bool:
    """Whether ranges are probably given; a text is only read later, and no answer depends on this."""
    return bool(said.rules) or any(
        not isinstance(one, bool | int | float | None) and (not isinstance(one, str) or RANGE.search(one) is not None)
        for one in said.given.values()
    )


def _marginals(served: Served, asked: Sequence[MarginalsRequest]) -> list[dict[str, Any] | Exception]:
    """The answers to some requests, those of exact evidence computed side by side; a mistake concerns one alone."""
    found: list[dict[str, Any] | Exception] = []
    questions: list[tuple[int, Conditional]] = []
    for at, said in enumerate(asked):
        with notes_heard() as notes:
            try:
                question = _conditional(served, said).using(draws=said.draws, seed=said.seed)
                for column in said.columns:
                    served.model.schema.asked(column)
                found.append({"given": shown_evidence(served.model.schema, question.evidence), "notes": notes})
                questions.append((at, question))
            except UserError as error:
                found.append(_as_answer(error))
    for at, answer in _answered(served, asked, questions):
        found[at] = answer if isinstance(answer, Exception) else {**found[at], "columns": answer}
    return found


def _answered(served: Served, asked: Sequence[MarginalsRequest], questions: Sequence[tuple[int, Conditional]]) -> Any:
    """The columns of each question, or what is wrong with it."""

    def facts(some: Sequence[tuple[int, Conditional]]) -> list[dict[str, Any]]:
        names = [asked[at].columns for at, _ in some]
        laws = served.marginals.of([question for _, question in some], names)
        return [{column: marginal_facts(one) for column, one in law.items()} for law in laws]

    try:
        yield from zip([at for at, _ in questions], facts(questions), strict=True)
    except Stopped:
        raise
    except Exception as error:  # noqa: BLE001 (one of them cannot be answered: which?)
        if len(questions) == 1:
            yield questions[0][0], _as_answer(error)
            return
        for one in questions:
            yield from _answered(served, asked, [one])


def _as_answer(error: Exception) -> Exception:
    return of_mistake(error, "given", MarginalsRequest.model_fields) if isinstance(error, UserError) else error


def _conditional(served: Served, said: _About, more: Any = None) -> Conditional:
    known = evidence_of(said.given) if more is None else {**evidence_of(said.given), **more}
    question: Conditional = served.model.given(known, rules=said.rules)
    return question


@router.post("/evidence", response_model=answers.EvidenceAnswer)
async def evidence(name: str, said: EvidenceRequest, service: ServiceDep) -> Response:
    """How likely the evidence itself is, and whether it lies far outside of what the model has seen."""
    served = service.models.get(name, "table")
    said = service.within_draws(said, said.draws)
    key = key_of("evidence", name, said.model_dump())
    return await service.answer(key, lambda: _evidence(served, said), "given", said)


def _evidence(served: Served, said: EvidenceRequest) -> dict[str, Any]:
    model = served.model
    with notes_heard() as notes:
        question = _conditional(served, said).using(draws=said.draws, seed=said.seed)
    context = {name: value for name, value in question.evidence.items() if model.schema[name].context}
    rest = {name: value for name, value in question.evidence.items() if name not in context}
    facts: dict[str, Any] = {"given": shown_evidence(model.schema, question.evidence), "log_prob": None, "notes": notes}
    if not rest:
        return facts
    with notes_heard():  # they are known already
        before = model.given(context, rules=[]).using(draws=said.draws, seed=said.seed)
        exact = {name: value for name, value in rest.items() if question.is_exact(name)}
        partial = {name: value for name, value in rest.items() if name not in exact}
        # Values first, and what is said of other columns given these: a density, times a probability.
        nats = before.log_prob(exact) if exact else Estimate(0.0)
        if partial:
            nats = _plus_log(nats, before.given(exact).prob(partial))
        facts["log_prob"] = estimate_facts(nats, doubts=False)
        if said.rarity and not partial:
            row = pd.DataFrame([question.evidence])
            scores = row_scores(model.core, row, drawn=served.own_rows(said.seed))
            facts["rarity"] = float(scores["probability"].iloc[0])
    return facts


def _plus_log(nats: Estimate, probability: Estimate) -> Estimate:
    if probability.value <= 0:
        return Estimate(-math.inf)
    error = math.hypot(nats.standard_error, probability.standard_error / probability.value)
    return Estimate(nats.value + math.log(probability.value), error, probability.method)


@router.post("/ask", response_model=answers.AskAnswer)
async def ask(name: str, said: AskRequest, service: ServiceDep) -> Response:
    """Answer a typed question, as the command of that name does. A mistake says at which character it is."""
    served = service.models.get(name, "table")
    said = service.within_draws(said, said.draws or RANGE_DRAWS)

    def facts() -> dict[str, Any]:
        try:
            return _ask(served, said)
        except UserError as error:
            raise placed(error, said.question) from None

    return await service.answer(key_of("ask", name, said.model_dump()), facts, "question")


def _ask(served: Served, said: AskRequest) -> dict[str, Any]:
    read = parse_question(said.question)

    def given(known: Any) -> Conditional:
        return _conditional(served, said, known).using(draws=said.draws, seed=said.seed)

    return reply_facts(reply_to(read, served.model.schema, given, said.question), read, doubts=said.doubts)


@router.post("/sample", response_model=answers.TableAnswer)
async def sample(name: str, said: SampleRequest, service: ServiceDep, request: Request) -> Response:
    """Draw rows jointly, in which what is given stays fixed."""
    served, kind = service.models.get(name, "table"), tables.accepted(request)
    service.check_draws(said.count, "count")
    tables.check_size(said.count, len(served.model.schema), service.settings.limits)

    def draw() -> Any:
        question = _conditional(served, said)
        if said.columns:
            question = question.asking(*said.columns)
        return question.sample(said.count, seed=said.seed, holes=said.holes)

    if kind == tables.JSON:
        return await service.answer(
            key_of("sample", name, said.model_dump()),
            lambda: tables.rows_of(_pandas(draw())),
            "given",
            said,
        )

    def written() -> Response:
        with noted("given", SampleRequest.model_fields) as notes:
            content = tables.table_bytes(_pandas(draw()), kind, schema=served.model.schema)
        return tables.binary(content, kind, notes)

    return await service.workers.run(written)


def _pandas(frame: Any) -> pd.DataFrame:
    return frame if isinstance(frame, pd.DataFrame) else pd.DataFrame(frame.to_dict(as_series=False))


@router.post("/next", response_model=answers.NextAnswer)
async def next_(name: str, said: NextRequest, service: ServiceDep) -> Response:
    """Rank the unknown columns by how much each is expected to tell about a target, per cost."""
    served = service.models.get(name, "table")
    said = service.within_draws(said, said.draws)

    def facts() -> dict[str, Any]:
        options = said.model_dump(exclude={"given", "rules", "about"})
        found: dict[str, Any] = served.model.next_question(evidence_of(said.given), said.about, **options).to_json()
        return found

    if said.rules is not None:
        raise ServiceError(422, "next takes no rules", where="rules")
    return await service.answer(key_of("next", name, said.model_dump()), facts, "given", said)
