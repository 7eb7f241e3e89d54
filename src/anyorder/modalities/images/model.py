"""Pictures: the public face of a fitted model in arrays of pixels.

A picture with a mask of what is known of it goes in; filled ones come out, many at once, in as many network calls as
there are unknown pixels or in far fewer. What is known is never touched: it comes out bit by bit as it went in.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, UInt8
from torch import Tensor

from anyorder.data.images import Pictures, check_pictures, one_array
from anyorder.errors import UserError, nearest, positive, whole
from anyorder.masking.cardinality import masks_of_size
from anyorder.modalities.face import FittedModel
from anyorder.modalities.images.core import decoded, encoded
from anyorder.model import row_chunks
from anyorder.model.few_steps import Budget, call_starts, cheapest, draw_by_confidence, draw_in_groups
from anyorder.networks import UNet
from anyorder.protocols import Canonical
from anyorder.query import Chain, Query


@dataclass(frozen=True)
class Moment:
    """A picture on its way: ``picture`` counts where ``known``; ``expected`` is what is known, or else expected."""

    picture: Pictures
    known: Bool[np.ndarray, "*shape"]
    expected: Float[np.ndarray, "*shape"]


class ImageModel(FittedModel):
    """A fitted model of pictures: fills, draws and scores them."""

    modality = "images"
    noun = "pictures"

    def __repr__(self) -> str:
        return f"ImageModel({' x '.join(map(str, self.shape))}, {self.levels} levels)"

    @property
    def shape(self) -> tuple[int, ...]:
        """Height, width, and the channels of a picture in colour."""
        return self.core.schema.grid

    @property
    def levels(self) -> int:
        """How many values a pixel can have."""
        return int(self.card["pictures"]["levels"])

    @property
    def modes(self) -> tuple[str, ...]:
        """The masking modes that the model can be told of."""
        return tuple(self.card["pictures"].get("modes", ()))

    def fill(
        self,
        picture: Any,
        known: Any,
        *,
        draws: int = 1,
        steps: int | Budget | None = None,
        order: str = "model",
        temperature: float = 1.0,
        mode: str | None = None,
        seed: int = 0,
    ) -> UInt8[np.ndarray, "draws *pictures"]:
        """``draws`` pictures that agree with ``picture`` where ``known`` (booleans [height, width]) is true.

        A stack of pictures [pictures, height, width] is filled as quickly as one, each under its own mask or all under
        the same, and comes back as [draws, pictures, height, width].

        One network call a pixel, or ``steps`` calls: that many equal groups of pixels, each drawn side by side (SFARM
        section 4.3.1), or a measured :meth:`budget`; not the model's own distribution then. ``order="confidence"``
        draws first where the model is surest, which is not either. A ``temperature`` below 1 narrows every draw.
        """
        stack, given = self._question(picture, known)
        values = encoded(self.core, stack)
        draws = whole("draws", draws)
        filled = self._drawn(values.repeat(draws, 1), given.repeat(draws, 1), steps, order, temperature, mode, seed)
        out = decoded(self.core, filled).reshape(draws, *stack.shape)
        pictures = np.where(given.numpy().reshape(stack.shape), stack, out)
        return pictures if np.ndim(picture) > len(self.shape) else pictures[:, 0]

    def sample(
        self,
        n: int = 1,
        *,
        steps: int | Budget | None = None,
        order: str = "model",
        temperature: float = 1.0,
        mode: str | None = None,
        seed: int = 0,
    ) -> UInt8[np.ndarray, "n *shape"]:
        """``n`` pictures from nothing; options as in :meth:`fill`."""
        blank = np.zeros(self.shape, dtype=np.uint8)
        nothing = np.zeros(self.shape[:2], dtype=bool)
        return self.fill(
            blank, nothing, draws=n, steps=steps, order=order, temperature=temperature, mode=mode, seed=seed
        )

    @torch.no_grad()
    def trace(
        self,
        picture: Any,
        known: Any,
        *,
        steps: int | Budget,
        temperature: float = 1.0,
        mode: str | None = None,
        seed: int = 0,
    ) -> list[Moment]:
        """How one picture comes to be: what there is before every call, and what the model expects of the rest.

        The last moment is the finished picture.
        """
        stack, given = self._question(picture, known)
        if len(stack) != 1:
            raise UserError(f"one picture is traced at a time, got {len(stack)}")
        if bool(given.all()):
            raise UserError("nothing of this picture is to be filled in, so there is no way to trace")
        values = encoded(self.core, stack)
        seen: list[tuple[Tensor, Tensor, Tensor]] = []
        way, temperature, generator = self._way(steps, temperature, seed)
        with self._in(mode):
            chain, starts = self._groups(self.core.chain(Query(given, ~given).to(self.core.device), generator), way)
            drawn = draw_in_groups(
                self.core,
                values.to(self.core.device),
                chain,
                starts,
                generator,
                temperature=temperature,
                watch=lambda *now: seen.append(now),
            )
        moments = []
        for so_far, told, features in seen:
            expected = self.core.heads.distribution(features, 0).mean().to(so_far.dtype)
            shades = self._shades(torch.where(told, so_far, expected))[0]
            moments.append(Moment(decoded(self.core, so_far)[0], told[0].cpu().numpy().reshape(self.shape), shades))
        last = decoded(self.core, drawn)[0]
        return [*moments, Moment(last, np.ones(self.shape, dtype=bool), last.astype(np.float64))]

    def _shades(self, values: Float[Tensor, "pictures variables"]) -> Float[np.ndarray, "pictures *shape"]:
        """Model values as levels that need not be whole."""
        codec = self.core.encoding.codecs[0]
        units = values.double().cpu().numpy()
        return codec.measure(units).reshape(-1, *self.shape) if self._line else units.reshape(-1, *self.shape)

    @property
    def _line(self) -> bool:
        return self.core.heads.of(0).levels == 0

    @torch.no_grad()
    def log_prob(
        self, pictures: Any, *, known: Any = None, orders: int = 1, mode: str | None = None, seed: int = 0
    ) -> Float[np.ndarray, " pictures"]:
        """log p of each picture in nats, of what is not ``known`` given the rest, averaged over ``orders`` orders.

        The average is of probabilities (SFARM eq. 14): its logarithm rises with the number of orders. They are fixed by
        the seed before a picture is seen, the same for all, so the average is a normalised density. ``known`` is one
        mask [height, width], or one for each picture.
        """
        array = self._checked(pictures)
        given = self._masks(known, len(array))
        orders = whole("orders", orders)
        nats = torch.zeros(orders, len(array), dtype=torch.float64)
        values, query = encoded(self.core, array), Query(given, ~given)
        generator = torch.Generator().manual_seed(whole("seed", seed, 0))
        everything = torch.ones(1, self.core.variables, dtype=torch.bool)
        with self._in(mode):
            for number in range(orders):
                fixed = self.core.protocol
                if fixed.random:
                    fixed = Canonical(order=tuple(fixed.keys(everything, generator)[0].argsort().tolist()))
                for rows in row_chunks(self.core, len(array)):
                    chain = fixed.chain(query.rows(rows)).to(self.core.device)
                    steps = self.core.step_log_prob(values[rows].to(self.core.device), chain)
                    nats[number, rows] = steps.double().sum(dim=1).cpu()
        return (nats.logsumexp(dim=0) - math.log(orders)).numpy()

    @torch.no_grad()
    def budget(self, pictures: Any, steps: int, *, points: int = 24, seed: int = 0) -> Budget:
        """Where ``steps`` calls for a whole picture should begin, measured on held-out pictures, and what they cost.

        Under a random order the mean surprise of a pixel depends on how many are known alone (ARDM), so it is measured
        at some ``points`` and read off between them.
        """
        if self._coupled:
            raise UserError("a measured budget is for grey pictures, or channels as variables; give a number of steps")
        array = self._checked(pictures)
        values, variables = encoded(self.core, array), self.core.variables
        generator = torch.Generator().manual_seed(seed)
        at = np.unique(np.linspace(0, variables - 1, min(points, variables)).round().astype(int))
        surprise = []
        for count in at:
            known = masks_of_size(torch.full((len(values),), int(count)), variables, generator)
            total = 0.0
            for rows in row_chunks(self.core, len(values)):
                part, told = values[rows].to(self.core.device), known[rows].to(self.core.device)
                total -= float(self.core.log_prob_beside(part, told).double().where(~told, 0.0).sum())
            surprise.append(total / int((~known).sum()))
        # A pixel cannot become more surprising by knowing more: noise of the measurement is smoothed away.
        curve = np.interp(np.arange(variables), at, np.minimum.accumulate(surprise))
        loss = np.where(np.arange(variables)[:, None] <= np.arange(variables), curve[:, None], np.inf)
        return cheapest(loss, whole("steps", steps))

    def bits_per_dimension(self, pictures: Any, *, orders: int = 1, seed: int = 0) -> float:
        """The mean of -log2 p over the number of values that a picture has."""
        return float(-self.log_prob(pictures, orders=orders, seed=seed).mean() / (self.core.variables * math.log(2)))

    @torch.no_grad()
    def _drawn(
        self,
        values: Float[Tensor, "draws variables"],
        known: Bool[Tensor, "draws variables"],
        steps: int | Budget | None,
        order: str,
        temperature: float,
        mode: str | None,
        seed: int,
    ) -> Float[Tensor, "draws variables"]:
        if order not in ("model", "confidence"):
            raise UserError(f"unknown order {order!r}; {nearest(order, ('model', 'confidence'))}")
        if order == "confidence" and self._coupled:
            raise UserError("order='confidence' is for grey pictures, or for channels as variables")
        if order == "confidence" and isinstance(steps, Budget):
            raise UserError("a measured budget belongs to the model's own order; give the number of steps")
        steps, temperature, generator = self._way(steps, temperature, seed)
        if bool(known.all()):
            return values
        device = self.core.device
        parts = []
        with self._in(mode):
            for rows in row_chunks(self.core, len(values)):
                query = Query(known[rows].to(device), ~known[rows].to(device))
                part = values[rows].to(device)
                if order == "confidence":
                    calls = None if isinstance(steps, Budget) else steps
                    parts.append(draw_by_confidence(self.core, part, query, calls, generator, temperature=temperature))
                    continue
                chain, starts = self._groups(self.core.chain(query, generator), steps)
                parts.append(draw_in_groups(self.core, part, chain, starts, generator, temperature=temperature))
        return torch.cat(parts).cpu()

    def _way(
        self, steps: int | Budget | None, temperature: float, seed: int
    ) -> tuple[int | Budget | None, float, torch.Generator]:
        """How pixels are drawn, checked."""
        if isinstance(steps, Budget):
            if self._coupled or steps.steps != self.core.variables:
                raise UserError("this budget was measured for another model; measure one with this model's budget(...)")
        elif steps is not None:
            steps = whole("steps", steps)
        generator = torch.Generator(self.core.device).manual_seed(whole("seed", seed, 0))
        return steps, positive("temperature", temperature), generator

    @property
    def _coupled(self) -> bool:
        """Whether the channels of a pixel depend on each other in one call's answers."""
        return isinstance(self.core.network, UNet) and bool(self.core.network.coupled)

    def _groups(self, chain: Chain, steps: int | Budget | None) -> tuple[Chain, tuple[int, ...]]:
        """The chain and where its calls begin. In coupled colour a group of pixels takes a call for each channel."""
        if isinstance(steps, Budget):
            # It was measured from nothing: what is known already is as much of its way.
            known = steps.steps - chain.steps
            return chain, (0, *(start - known for start in steps.starts if start > known))
        if not self._coupled:
            return chain, call_starts(chain.steps if steps is None else steps, chain.steps)
        pixels = chain.order.unflatten(1, (-1, 3))
        count = pixels.shape[1]
        starts = call_starts(count if steps is None else steps, count)
        parts = [pixels[:, start:end] for start, end in zip(starts, (*starts[1:], count), strict=True)]
        # Within a group all reds, then all greens, then all blues: three calls.
        order = torch.cat([part.transpose(1, 2).flatten(1) for part in parts], dim=1)
        begins = [
            3 * start + channel * (end - start)
            for start, end in zip(starts, (*starts[1:], count), strict=True)
            for channel in range(3)
        ]
        return Chain(chain.prefix, order, chain.variables), tuple(begins)

    def _question(
        self, picture: Any, known: Any
    ) -> tuple[UInt8[np.ndarray, "pictures *shape"], Bool[Tensor, "pictures variables"]]:
        """A stack of pictures, of one if need be, and their masks. What is unknown may be anything, NaN too."""
        array = one_array(picture)
        if array.ndim == len(self.shape) + 2 and array.shape[-1] == 1:
            array = array[..., 0]
        if array.shape == self.shape:
            array = array[None]
        elif array.shape[1:] != self.shape or not len(array):
            raise UserError(f"a picture of the shape {self.shape}, or a stack of such, was expected, got {array.shape}")
        given = self._masks(known, len(array))
        return self._checked(np.where(given.numpy().reshape(array.shape), array, 0)), given

    def _checked(self, pictures: Any) -> UInt8[np.ndarray, "pictures *shape"]:
        array, found = check_pictures(pictures)
        if array.shape[1:] != self.shape:
            raise UserError(f"pictures of the shape {self.shape} were expected, got {array.shape[1:]}")
        if found > self.levels and array.max() >= self.levels:
            raise UserError(
                f"this model's pixels are whole numbers from 0 to {self.levels - 1}, got some up to {array.max()}; "
                f"scale them by {self.levels - 1} / 255 and round, if they are bytes"
            )
        return array

    def _masks(self, known: Any, count: int) -> Bool[Tensor, "pictures variables"]:
        """One mask of pixels for each picture, for all of its channels."""
        if known is None:
            return torch.zeros(count, self.core.variables, dtype=torch.bool)
        array = np.asarray(known)
        if array.dtype != bool:
            raise UserError(f"known is an array of booleans, true where a pixel is known, got {array.dtype}")
        if array.shape == self.shape[:2]:
            array = np.broadcast_to(array, (count, *array.shape))
        if array.shape != (count, *self.shape[:2]):
            raise UserError(
                f"known must have the shape {self.shape[:2]}, or one such mask a picture; got {array.shape}"
            )
        channels = self.shape[2] if len(self.shape) == 3 else 1
        return torch.from_numpy(array.reshape(count, -1).repeat(channels, axis=1))

    @contextmanager
    def _in(self, mode: str | None) -> Iterator[None]:
        network = self.core.network
        if mode is None:
            yield
            return
        if not self.modes or not isinstance(network, UNet):
            raise UserError(f"this model knows of no masking modes, so it cannot be told {mode!r}; leave mode out")
        if mode not in self.modes:
            raise UserError(f"unknown masking mode {mode!r}; {nearest(mode, self.modes)}")
        with network.told(self.modes.index(mode)):
            yield
