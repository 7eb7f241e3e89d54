"""What can be asked of a model of texts: holes filled, texts continued, texts scored."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter
from fastapi.responses import Response
from pydantic import Field

from anyorder.serve import answers
from anyorder.serve.service import Asked, Seed, ServiceDep, key_of, score_facts

router = APIRouter(prefix="/v1/models/{name}/text", tags=["texts"])
LONGEST = 20_000  # characters of a text


class TextFillRequest(Asked):
    """A text with holes."""

    text: str = Field(max_length=LONGEST, examples=["the q__ck br_wn f_x"])
    mark: str = Field("_", min_length=1, max_length=4, description="what stands for one missing character")
    draws: int | None = Field(None, ge=1, description="so many joint draws; null takes the likeliest at each step")
    seed: Seed = 0


class TextSampleRequest(Asked):
    """Texts from nothing, or from a beginning."""

    count: int = Field(1, ge=1)
    beginning: str = Field("", max_length=LONGEST, description="what every text begins with")
    length: int | None = Field(None, ge=1, description="characters in each; a whole window by default")
    seed: Seed = 0
    calls: int | None = Field(None, ge=1, description="so many network calls; no longer exact")
    order: Literal["model", "confidence"] = "model"


class TextScoreRequest(Asked):
    """Texts to score."""

    texts: list[Annotated[str, Field(max_length=LONGEST)]] = Field(min_length=1, max_length=1000)
    orders: int = Field(1, ge=1, le=64)
    seed: Seed = 0


@router.post("/fill", response_model=answers.TextFillAnswer)
async def fill(name: str, said: TextFillRequest, service: ServiceDep) -> Response:
    """Fill the holes of a text; what is given stays as it is."""
    served = service.models.get(name, "text")
    service.check_draws(said.draws)
    service.check_cells(said.draws or 1, len(said.text), "draws", "texts")

    def facts() -> dict[str, Any]:
        found = served.model.fill(said.text, mark=said.mark, draws=said.draws, seed=said.seed)
        fillings = found if isinstance(found, list) else [found]
        return {
            "fillings": [
                {
                    "text": one.text,
                    "nats": one.nats,
                    "holes": list(one.holes),
                    "confidence": [one.confidence[at] for at in one.holes],
                }
                for one in fillings
            ]
        }

    return await service.answer(key_of("text/fill", name, said.model_dump()), facts, "text", said)


@router.post("/sample", response_model=answers.TextsAnswer)
async def sample(name: str, said: TextSampleRequest, service: ServiceDep) -> Response:
    """Draw texts, from nothing or from a beginning: a continuation."""
    served = service.models.get(name, "text")
    service.check_draws(said.count, "count")
    service.check_cells(said.count, served.model.length, "count", "texts")

    def facts() -> dict[str, Any]:
        options = said.model_dump(exclude={"count"})
        return {"texts": served.model.sample(said.count, **options)}

    return await service.answer(key_of("text/sample", name, said.model_dump()), facts, "beginning", said)


@router.post("/score", response_model=answers.ScoreAnswer)
async def score(name: str, said: TextScoreRequest, service: ServiceDep) -> Response:
    """The log-likelihood of each text, in nats."""
    served = service.models.get(name, "text")

    def facts() -> dict[str, Any]:
        nats = served.model.log_prob(said.texts, orders=said.orders, seed=said.seed)
        return score_facts(nats, "nats per text")

    return await service.answer(key_of("text/score", name, said.model_dump()), facts, "texts")
