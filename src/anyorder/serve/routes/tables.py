"""What can be asked of a model of a table; every route is a method of ``TableModel``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from anyorder.errors import UserError
from anyorder.questions.ask import reply_to
from anyorder.questions.conditional import Conditional
from anyorder.questions.estimate import Estimate
from anyorder.questions.facts import estimate_facts, reply_facts
from anyorder.questions.grammar import parse_question
from anyorder.questions.marginals import DRAWS as MARGINAL_DRAWS
from anyorder.questions.units import shown, shown_evidence
from anyorder.serve import answers, tables
from anyorder.serve.columns import marginal_facts
from anyorder.serve.errors import ServiceError, of_mistake
from anyorder.serve.models import Served
from anyorder.serve.service import Rules, Seed, Served_, as_json, key_of, plain_json
from anyorder.serve.statements import Given, evidence_of
from anyorder.serve.workers import notes_heard
from anyorder.support.plain import plain
from anyorder.tasks.acquisition.measurements import DRAWS as NEXT_DRAWS
from anyorder.tasks.anomalies import row_scores
from anyorder.variables.schema import Kind

router = APIRouter(prefix="/v1/models/{name}", tags=["tables"])
LONGEST = 20_000  # characters of a question
Unseen = Annotated[
    Literal["refuse", "missing"],
    Query(description="a level never seen in training: refuse the table, or take the cell for unknown"),
]
Names = Annotated[list[Annotated[str, Field(max_length=1000)]], Field(max_length=10_000)]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _About(_Request):
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
async def schema(name: str, service: Served_) -> Response:
    """Every column: its kind, levels, axis, what was seen of it, and its marginal."""
    served = service.models.get(name, "table")
    return await service.answer(key_of("schema", name), lambda: served.schema)


@router.post("/marginals", response_model=answers.MarginalsAnswer)
async def marginals(name: str, said: MarginalsRequest, service: Served_) -> Response:
    """What is to be said of all columns given what is known, in one call. Under ranges by draws, else exactly."""
    served = service.models.get(name, "table")
    service.check_draws(said.draws)
    lots = service.together(served, "marginals", lambda some: _marginals(served, some))

    async def work() -> bytes:
        if not said.evidence:
            return plain_json(await lots.ask(said))
        found = dict(await lots.ask(said))
        shared = said.model_dump(include={"rules", "draws", "seed"})
        about = EvidenceRequest(given=said.given, **shared)
        return as_json(found | {"evidence": await service.workers.run(lambda: _evidence(served, about))})

    return await service.once(key_of("marginals", name, said.model_dump()), work)


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
                found.append(of_mistake(error, "given"))
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
    except UserError:  # one of them cannot be answered: which?
        for one in questions:
            try:
                yield one[0], facts([one])[0]
            except UserError as error:
                yield one[0], of_mistake(error, "given")


def _conditional(served: Served, said: _About, more: Any = None) -> Conditional:
    known = evidence_of(said.given) if more is None else {**evidence_of(said.given), **more}
    question: Conditional = served.model.given(known, rules=said.rules)
    return question


@router.post("/evidence", response_model=answers.EvidenceAnswer)
async def evidence(name: str, said: EvidenceRequest, service: Served_) -> Response:
    """How likely the evidence itself is, and whether it lies far outside of what the model has seen."""
    served = service.models.get(name, "table")
    service.check_draws(said.draws)
    key = key_of("evidence", name, said.model_dump())
    return await service.answer(key, lambda: _evidence(served, said), "given")


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
            facts["rarity"] = float(row_scores(model.core, row, seed=said.seed)["probability"].iloc[0])
    return facts


def _plus_log(nats: Estimate, probability: Estimate) -> Estimate:
    if probability.value <= 0:
        return Estimate(-math.inf)
    error = math.hypot(nats.standard_error, probability.standard_error / probability.value)
    return Estimate(nats.value + math.log(probability.value), error, probability.method)


@router.post("/ask", response_model=answers.AskAnswer)
async def ask(name: str, said: AskRequest, service: Served_) -> Response:
    """Answer a typed question, as ``anyorder ask`` does. A mistake says at which character it is."""
    served = service.models.get(name, "table")
    service.check_draws(said.draws)
    return await service.answer(key_of("ask", name, said.model_dump()), lambda: _ask(served, said), "question")


def _ask(served: Served, said: AskRequest) -> dict[str, Any]:
    read = parse_question(said.question)

    def given(known: Any) -> Conditional:
        return _conditional(served, said, known).using(draws=said.draws, seed=said.seed)

    return reply_facts(reply_to(read, served.model.schema, given, said.question), read, doubts=said.doubts)


@router.post("/sample", response_model=answers.TableAnswer)
async def sample(name: str, said: SampleRequest, service: Served_, request: Request) -> Response:
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
            key_of("sample", name, said.model_dump()), lambda: tables.rows_of(_pandas(draw())), "given"
        )

    def written() -> Response:
        with notes_heard() as notes:
            content = tables.table_bytes(_pandas(draw()), kind, schema=served.model.schema)
        return tables.binary(content, kind, notes)

    return await service.workers.run(written)


def _pandas(frame: Any) -> pd.DataFrame:
    return frame if isinstance(frame, pd.DataFrame) else pd.DataFrame(frame.to_dict(as_series=False))


@router.post(
    "/fill",
    response_model=answers.FillAnswer,
    openapi_extra=tables.BODY,
    responses={202: {"model": answers.JobAnswer, "description": "with job=true: fetch it from /v1/jobs/{id}"}},
)
async def fill(
    name: str,
    request: Request,
    service: Served_,
    draws: Annotated[int | None, Query(ge=1, description="so many random fills below each other")] = None,
    seed: Annotated[int, Query(ge=0, lt=1 << 63)] = 0,
    unseen: Unseen = "refuse",
    rule: Annotated[list[str] | None, Query(max_length=100)] = None,
    uncertainty: Annotated[bool, Query(description="say of every filled cell how sure it is; as JSON alone")] = False,
    job: Annotated[bool, Query(description="begin a job, for a large table")] = False,
) -> Response:
    """Fill the unknown cells of a table; what is known comes back as it is."""
    served, kind = service.models.get(name, "table"), tables.accepted(request)
    service.check_draws(draws)
    frame_kind, content = tables.media_type(request), await request.body()
    options = {"draws": draws, "seed": seed, "unseen": unseen, "rules": rule}

    def facts() -> dict[str, Any] | tuple[pd.DataFrame, pd.DataFrame]:
        limits = service.settings.limits
        frame = tables.read_table(content, frame_kind, served.model.schema.missing, limits)
        tables.check_size(len(frame) * (draws or 1), len(frame.columns), limits)
        if draws is not None and "draw" in frame.columns:
            raise UserError("the table already has a column 'draw', and draws add one of that name: rename it first")
        found = served.model.fill(frame, progress=False, **options)
        if draws is not None:
            for number, one in enumerate(found):
                one.insert(0, "draw", number)
            found = pd.concat(found, ignore_index=True)
        if kind != tables.JSON:
            return found, frame
        answer = tables.rows_of(found)
        if uncertainty and draws is None:
            answer["filled"] = _filled(served, frame, found, unseen)
        return answer

    def work() -> Response:
        with notes_heard() as notes:
            try:
                found = facts()
            except UserError as error:
                raise of_mistake(error, "body") from error
            if isinstance(found, dict):
                return Response(as_json({**found, "notes": notes}), media_type=tables.JSON)
            bytes_ = tables.table_bytes(found[0], kind, like=found[1], schema=served.model.schema)
            return tables.binary(bytes_, kind, notes)

    if job:
        begun = service.jobs.start("fill", name, work)
        return JSONResponse(begun.facts(), 202, {"Location": f"/v1/jobs/{begun.identity}"})
    return await service.workers.run(work)


def _filled(served: Served, frame: pd.DataFrame, filled: pd.DataFrame, unseen: Any) -> list[dict[str, Any]]:
    """How sure every filled cell is, column by column."""
    model, found = served.model, []
    for column in [name for name in model.columns if name in frame.columns]:
        holes = np.flatnonzero(frame[column].isna().to_numpy() & filled[column].notna().to_numpy())
        variable = model.schema[column]
        if not len(holes) or variable.context:
            continue
        rows = model._others(frame.iloc[holes], column, unseen)[column]
        cells: dict[str, Any]
        if variable.levels:
            best = rows.probs().to_numpy().max(axis=1)
            ends: list[dict[str, Any]] = [{} for _ in holes]
        else:
            low, high = (rows.quantile(level) for level in (0.05, 0.95))
            wide = served.marginals.axes[column].edges
            numbers = [_measured(variable, end) for end in (low, high)]
            best = 1 - np.clip((numbers[1] - numbers[0]) / (wide[-1] - wide[0]), 0, 1)
            ends = [{"low": plain(a), "high": plain(b)} for a, b in zip(low, high, strict=True)]
        for number, (at, sure) in enumerate(zip(holes.tolist(), best.tolist(), strict=True)):
            value = filled[column].iloc[at]
            cells = {"row": at, "column": column, "value": plain(value), "written": shown(variable, value)}
            found.append({**cells, **ends[number], "certainty": sure})
    return found


def _measured(variable: Any, column: Any) -> Any:
    if variable.kind is not Kind.DATETIME:
        return column.to_numpy(dtype=float)
    times = pd.to_datetime(column, utc=True)
    return (times - pd.Timestamp(0, tz="UTC")).dt.total_seconds().to_numpy() / 86400


@router.post("/score", response_model=answers.ScoreAnswer, openapi_extra=tables.BODY)
async def score(
    name: str,
    request: Request,
    service: Served_,
    given: Annotated[list[str] | None, Query(max_length=10_000, description="columns that are evidence")] = None,
    orders: Annotated[int | None, Query(ge=1, le=64)] = None,
    seed: Annotated[int, Query(ge=0, lt=1 << 63)] = 0,
    unseen: Unseen = "refuse",
) -> Response:
    """The log-likelihood of the known cells of each row, in nats."""
    served = service.models.get(name, "table")
    kind, content = tables.media_type(request), await request.body()

    def facts() -> dict[str, Any]:
        frame = tables.read_table(content, kind, served.model.schema.missing, service.settings.limits)
        for column in given or ():
            served.model.schema.index(column)
        if not len(frame):
            raise UserError("the table has no rows to score")
        nats = served.model.log_prob(frame, given=given, orders=orders, seed=seed, unseen=unseen, progress=False)
        rows = len(nats)
        return {
            "rows": rows,
            "given": given or [],
            "mean": float(nats.mean()),
            "standard_error": float(nats.std(ddof=1)) / math.sqrt(rows) if rows > 1 else None,
            "unit": "nats per row",
            "log_prob": nats.tolist(),
        }

    return await service.answer(key_of("score", name, content, kind, given, orders, seed, unseen), facts, "body")


@router.post("/anomalies", response_model=answers.AnomaliesAnswer, openapi_extra=tables.BODY)
async def anomalies(
    name: str,
    request: Request,
    service: Served_,
    top: Annotated[int, Query(ge=1, le=10_000)] = 10,
    rows: Annotated[bool, Query(description="rank whole rows in place of cells")] = False,
    seed: Annotated[int, Query(ge=0, lt=1 << 63)] = 0,
    unseen: Unseen = "refuse",
) -> Response:
    """The cells that are least probable given the rest of their rows, or the least probable rows; counted from 0."""
    served = service.models.get(name, "table")
    kind, content = tables.media_type(request), await request.body()

    def facts() -> dict[str, Any]:
        frame = tables.read_table(content, kind, served.model.schema.missing, service.settings.limits)
        if rows:
            scores = row_scores(served.model.core, frame, seed=seed, unseen=unseen).rename_axis("row").reset_index()
            ranked = scores.sort_values(["probability", "surprise"], ascending=[True, False]).head(top)
            found = [dict(zip(ranked.columns, line, strict=True)) for line in ranked.itertuples(index=False)]
        else:
            found = [asdict(one) for one in served.model.anomalies(frame, top=top, unseen=unseen)]
        return {"rows": len(frame), "anomalies": found}

    return await service.answer(key_of("anomalies", name, content, kind, top, rows, seed, unseen), facts, "body")


@router.post("/next", response_model=answers.NextAnswer)
async def next_(name: str, said: NextRequest, service: Served_) -> Response:
    """Rank the unknown columns by how much each is expected to tell about a target, per cost."""
    served = service.models.get(name, "table")
    service.check_draws(said.draws)

    def facts() -> dict[str, Any]:
        options = said.model_dump(exclude={"given", "rules", "about"})
        found: dict[str, Any] = served.model.next_question(evidence_of(said.given), said.about, **options).to_json()
        return found

    if said.rules is not None:
        raise ServiceError(422, "next takes no rules", where="rules")
    return await service.answer(key_of("next", name, said.model_dump()), facts, "given")
