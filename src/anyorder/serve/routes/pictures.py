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
from pydantic import Field

from anyorder.data.picture_files import to_bytes, to_levels
from anyorder.errors import UserError
from anyorder.serve import answers
from anyorder.serve.service import Asked, Seed, ServiceDep, key_of, score_facts

router = APIRouter(prefix="/v1/models/{name}/pictures", tags=["pictures"])

Picture: TypeAlias = (
    Annotated[str, Field(max_length=4 << 20, description="a PNG file in base64")]
    | list[list[int | list[int | None] | None]]
)
Mask: TypeAlias = Annotated[str, Field(max_length=4 << 20)] | list[list[bool]]


class _Drawn(Asked):
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


class PictureScoreRequest(Asked):
    """Pictures to score."""

    pictures: list[Picture] = Field(min_length=1, max_length=1000)
    orders: int = Field(1, ge=1, le=64)
    mode: str | None = Field(None, max_length=100)
    seed: Seed = 0


@router.post("/fill", response_model=answers.PicturesAnswer)
async def fill(name: str, said: PictureFillRequest, service: ServiceDep) -> Response:
    """Fill in the unknown part of a picture; known pixels come back as they are."""
    served = service.models.get(name, "images")
    service.check_draws(said.draws)
    service.check_cells(said.draws, served.model.core.variables, "draws", "pictures")

    def facts() -> dict[str, Any]:
        model = served.model
        picture, known = read_picture(said.picture, model, "picture"), read_known(said.known, model)
        filled = model.fill(picture, known, draws=said.draws, **_way(said))
        return _facts(model, filled, said.format)

    return await service.answer(key_of("pictures/fill", name, said.model_dump()), facts, "picture", said)


@router.post("/sample", response_model=answers.PicturesAnswer)
async def sample(name: str, said: PictureSampleRequest, service: ServiceDep) -> Response:
    """Draw pictures from nothing."""
    served = service.models.get(name, "images")
    service.check_draws(said.count, "count")
    service.check_cells(said.count, served.model.core.variables, "count", "pictures")

    def facts() -> dict[str, Any]:
        return _facts(served.model, served.model.sample(said.count, **_way(said)), said.format)

    return await service.answer(key_of("pictures/sample", name, said.model_dump()), facts, "count", said)


@router.post("/score", response_model=answers.ScoreAnswer)
async def score(name: str, said: PictureScoreRequest, service: ServiceDep) -> Response:
    """The log-likelihood of each picture, in nats."""
    served = service.models.get(name, "images")

    def facts() -> dict[str, Any]:
        read = [read_picture(one, served.model, f"pictures.{at}", whole=True) for at, one in enumerate(said.pictures)]
        stack = np.stack(read)
        nats = served.model.log_prob(stack, orders=said.orders, mode=said.mode, seed=said.seed)
        return score_facts(nats, "nats per picture")

    return await service.answer(key_of("pictures/score", name, said.model_dump()), facts, "pictures", said)


def _way(said: _Drawn) -> dict[str, Any]:
    return said.model_dump(include={"seed", "steps", "order", "temperature", "mode"})


def read_picture(said: Any, model: Any, where: str, *, whole: bool = False) -> Any:
    """A picture of the model's shape; unknown pixels may be null, unless it has to be ``whole``."""
    if isinstance(said, str):
        return to_levels(_png(said, where, model, colour=len(model.shape) == 3), model.levels)
    try:
        array = np.array(said, dtype=object)
        if whole and None in array.ravel().tolist():
            raise UserError(f"{where}: a picture is scored as a whole, so all of its pixels must be known")
        picture: Any = np.array([0 if cell is None else cell for cell in array.ravel()], dtype=np.int64).reshape(
            array.shape
        )
    except UserError:
        raise
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
        return _png(said, "known", model, colour=False) < 128
    try:
        known = np.array(said, dtype=bool)
    except ValueError:
        known = np.zeros(0, dtype=bool)
    if known.shape != tuple(model.shape[:2]):
        raise UserError(f"known: expected booleans of the shape {list(model.shape[:2])}, got {list(known.shape)}")
    return known


def _png(text: str, where: str, model: Any, *, colour: bool) -> Any:
    from PIL import Image

    try:
        content = base64.b64decode(text.partition("base64,")[2] or text, validate=True)
        with Image.open(io.BytesIO(content), formats=["PNG"]) as picture:
            shape = (picture.height, picture.width)
            if shape != tuple(model.shape[:2]):  # before any of it is unpacked
                raise UserError(f"{where}: expected a picture of the shape {list(model.shape[:2])}, got {list(shape)}")
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
