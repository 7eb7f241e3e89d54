"""What can be asked of a model of pictures: holes filled, pictures drawn, pictures scored.

A picture is nested lists of whole numbers from 0 to levels - 1, or a PNG file in base64 (0 to 255, as files have it).
"""

from __future__ import annotations

import base64
import io
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from fastapi import APIRouter
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from anyorder.data.picture_files import to_bytes, to_levels
from anyorder.errors import UserError
from anyorder.serve import answers
from anyorder.serve.errors import ServiceError
from anyorder.serve.routes.texts import scores
from anyorder.serve.service import Seed, Served_, Service, key_of

router = APIRouter(prefix="/v1/models/{name}/pictures", tags=["pictures"])
MOST_PIXELS = 1 << 20

Picture: TypeAlias = (
    Annotated[str, Field(max_length=4 << 20, description="a PNG file in base64")]
    | list[list[int | list[int | None] | None]]
)
Mask: TypeAlias = Annotated[str, Field(max_length=4 << 20)] | list[list[bool]]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Drawn(_Request):
    seed: Seed = 0
    steps: int | None = Field(None, ge=1, description="so many network calls: quicker, and no longer exact")
    order: Literal["model", "confidence"] = "model"
    temperature: float = Field(1.0, gt=0, le=10, allow_inf_nan=False)
    mode: str | None = Field(None, max_length=100, description="the masking mode to answer in")
    format: Literal["levels", "png"] = Field("levels", description="nested lists, or PNG files in base64")


class PictureFillRequest(_Drawn):
    """A picture with a hole."""

    picture: Picture
    known: Mask = Field(description="true where a pixel is known; or a PNG file that is black there, as for --mask")
    draws: int = Field(1, ge=1)


class PictureSampleRequest(_Drawn):
    """Pictures from nothing."""

    count: int = Field(1, ge=1)


class PictureScoreRequest(_Request):
    """Pictures to score."""

    pictures: list[Picture] = Field(min_length=1, max_length=1000)
    orders: int = Field(1, ge=1, le=64)
    mode: str | None = Field(None, max_length=100)
    seed: Seed = 0


@router.post("/fill", response_model=answers.PicturesAnswer)
async def fill(name: str, said: PictureFillRequest, service: Served_) -> Response:
    """Fill in the unknown part of a picture; known pixels come back as they are."""
    served = service.models.get(name, "images")
    _check_work(service, said.draws, served.model.core.variables, "draws")

    def facts() -> dict[str, Any]:
        model = served.model
        picture, known = read_picture(said.picture, model, "picture"), read_known(said.known, model)
        filled = model.fill(picture, known, draws=said.draws, **_way(said))
        return _facts(model, filled, said.format)

    return await service.answer(key_of("pictures/fill", name, said.model_dump()), facts, "picture")


@router.post("/sample", response_model=answers.PicturesAnswer)
async def sample(name: str, said: PictureSampleRequest, service: Served_) -> Response:
    """Draw pictures from nothing."""
    served = service.models.get(name, "images")
    _check_work(service, said.count, served.model.core.variables, "count")

    def facts() -> dict[str, Any]:
        return _facts(served.model, served.model.sample(said.count, **_way(said)), said.format)

    return await service.answer(key_of("pictures/sample", name, said.model_dump()), facts, "count")


@router.post("/score", response_model=answers.ScoreAnswer)
async def score(name: str, said: PictureScoreRequest, service: Served_) -> Response:
    """The log-likelihood of each picture, in nats."""
    served = service.models.get(name, "images")

    def facts() -> dict[str, Any]:
        stack = np.stack([read_picture(one, served.model, f"pictures.{at}") for at, one in enumerate(said.pictures)])
        nats = served.model.log_prob(stack, orders=said.orders, mode=said.mode, seed=said.seed)
        return scores(nats, "nats per picture")

    return await service.answer(key_of("pictures/score", name, said.model_dump()), facts, "pictures")


def _way(said: _Drawn) -> dict[str, Any]:
    return said.model_dump(include={"seed", "steps", "order", "temperature", "mode"})


def _check_work(service: Service, count: int, variables: int, where: str) -> None:
    service.check_draws(count, where)
    limit = service.settings.limits.cells
    if count * variables > limit:
        raise ServiceError(
            413,
            f"{count} pictures of {variables} values are too many, {limit} values are allowed",
            kind="cells_limit",
            where=where,
            limit=limit,
        )


def read_picture(said: Any, model: Any, where: str) -> Any:
    """A picture of the model's shape; unknown pixels may be null."""
    if isinstance(said, str):
        return to_levels(_png(said, where, colour=len(model.shape) == 3), model.levels)
    try:
        array = np.array(said, dtype=object)
        picture: Any = np.array([0 if cell is None else cell for cell in array.ravel()], dtype=np.int64).reshape(
            array.shape
        )
    except (TypeError, ValueError, OverflowError):
        picture = np.zeros(0)
    if picture.shape != model.shape:
        raise UserError(f"{where}: expected numbers of the shape {list(model.shape)}, got {list(picture.shape)}")
    if picture.min() < 0 or picture.max() >= model.levels:
        raise UserError(f"{where}: pixels are whole numbers from 0 to {model.levels - 1}")
    return picture.astype(np.uint8)


def read_known(said: Any, model: Any) -> Any:
    """Where a picture is known."""
    if isinstance(said, str):
        return _png(said, "known", colour=False) < 128
    try:
        known = np.array(said, dtype=bool)
    except ValueError:
        known = np.zeros(0, dtype=bool)
    if known.shape != tuple(model.shape[:2]):
        raise UserError(f"known: expected booleans of the shape {list(model.shape[:2])}, got {list(known.shape)}")
    return known


def _png(text: str, where: str, *, colour: bool) -> Any:
    from PIL import Image

    try:
        content = base64.b64decode(text.partition("base64,")[2] or text, validate=True)
        with Image.open(io.BytesIO(content), formats=["PNG"]) as picture:
            if picture.width * picture.height > MOST_PIXELS:  # before any of it is unpacked
                raise UserError(f"{where}: a picture of {picture.width} x {picture.height} pixels is too large")
            return np.asarray(picture.convert("RGB" if colour else "L"))
    except UserError:
        raise
    except (ValueError, OSError, SyntaxError, Image.DecompressionBombError) as error:  # what Pillow and base64 raise
        raise UserError(f"{where}: expected a PNG file in base64: {type(error).__name__}") from None


def _facts(model: Any, pictures: Any, form: str) -> dict[str, Any]:
    facts: dict[str, Any] = {"shape": list(model.shape), "levels": model.levels}
    if form == "levels":
        return facts | {"pictures": pictures.tolist()}
    return facts | {"pictures": [_as_png(one) for one in to_bytes(pictures, model.levels)]}


def _as_png(picture: Any) -> str:
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(picture).save(buffer, format="PNG")
    return base64.b64encode(buffer.getvalue()).decode("ascii")
