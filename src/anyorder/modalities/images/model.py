"""Pictures: the public face of a fitted model in arrays of pixels.

A picture with a mask of what is known of it goes in; filled ones come out, many at once, in as many network calls as
there are unknown pixels or in far fewer. What is known is never touched: it comes out bit by bit as it went in.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, UInt8
from torch import Tensor

from anyorder.data.images import Pictures, check_pictures, one_array
from anyorder.errors import UserError, nearest
from anyorder.modalities.face import FittedModel
from anyorder.modalities.images.core import decoded, encoded, mode_masking, shades
from anyorder.modalities.images.surprise import between, check_surprise, elements, measured_surprise
from anyorder.modalities.images.trajectory import Trajectory
from anyorder.model import AnyOrderModel
from anyorder.model.few_steps import Budget, InGroups, cheapest_in_random_order, sampler_for
from anyorder.model.likelihood import along, log_prob
from anyorder.model.sampling import draws as drawn_rows
from anyorder.query import Query
from anyorder.support.boundary import field
from anyorder.support.checks import checked_seed, whole
from anyorder.support.memory import check_room

MOST_LEVELS = 256  # of a pixel, which is a byte


@dataclass(frozen=True, repr=False)
class Moment:
    """A picture on its way: ``picture`` counts where ``known``; ``expected`` is what is known, or else expected."""

    picture: Pictures
    known: Bool[np.ndarray, "*shape"]
    expected: Float[np.ndarray, "*shape"]

    def __repr__(self) -> str:
        return f"Moment({int(self.known.sum())} of {self.known.size} values known)"


class ImageModel(FittedModel):
    """A fitted model of pictures: fills, draws and scores them.

    Made by :func:`anyorder.fit_images` or :func:`anyorder.load`. Pixels are whole numbers, 0 .. :attr:`levels` - 1.
    """

    modality = "images"
    noun = "pictures"

    def __repr__(self) -> str:
        return f"ImageModel({' x '.join(map(str, self.shape))}, {self.levels} levels)"

    def _check(self) -> None:
        listed = self.core.encoding.codecs[0].listed()
        values = 0 if listed is None else len(listed)
        if len(self.shape) not in (2, 3) or not self.schema.alike or not 2 <= values <= MOST_LEVELS:
            raise UserError(f"this is not a model of pictures: its variables lie in a grid of {self.shape}")
        with field("pictures"):
            if type(self.card["pictures"]["levels"]) is not int or self.levels != values:
                raise UserError(
                    f"levels: a pixel of this model has {values}, got {self.card['pictures']['levels']!r:.80}"
                )
            if not all(isinstance(mode, str) for mode in self.modes) or len(self.modes) > self.core.network.modes:
                raise UserError(f"modes: the network knows {self.core.network.modes}, got {self.modes!r:.80}")
            check_surprise(self.card["pictures"].get("surprise"), elements(self.core))

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
        """The masking modes that the model can answer in."""
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
        """Fill in the unknown part of a picture; known pixels come out exactly as they went in.

        Parameters
        ----------
        picture
            An array of the model's :attr:`shape`, or a stack of such, which is filled as quickly as one.
        known
            Booleans [height, width], true where a pixel is known; one for all pictures of a stack, or one each.
        draws
            How many fills of each picture.
        steps
            So many network calls, the pixels of one call drawn side by side (SFARM section 4.3.1): much quicker, and
            not the model's own distribution. They begin where that costs least, by what was measured on held-out
            pictures after training (in equal groups if a mode is named, or the model's order is fixed). A
            :meth:`budget` says it otherwise; None takes a call for every pixel.
        order
            ``"confidence"`` draws first where the model is surest, which is not the model's own distribution either.
        temperature
            Below 1 narrows every draw.
        mode
            The masking mode to answer in, one of :attr:`modes`; a picture of which nothing is known is then drawn along
            the mode's own trajectory (SFARM Algorithm 2).
        seed
            Decides the draws.

        Returns
        -------
        array
            [draws, height, width], or [draws, pictures, height, width] of a stack.

        Examples
        --------
        >>> import numpy as np
        >>> left = np.zeros((8, 8), dtype=bool)
        >>> left[:, :4] = True
        >>> filled = pictures.fill(digits[0], left, draws=2, steps=8, seed=0)
        >>> filled.shape, bool((filled[:, left] == digits[0][left]).all())
        ((2, 8, 8), True)
        """
        stack, given = self._question(picture, known)
        draws = whole("draws", draws)
        check_room("draws", draws, stack.size)
        core = self._in(mode)
        sampler = sampler_for(core, steps, order, temperature, noun="steps", surprise=self._surprise(mode))
        values, query = encoded(core, stack).repeat(draws, 1), Query(given, ~given).repeat(draws)
        filled = drawn_rows(core, values, query, seed=seed, sampler=sampler)
        out = decoded(core, torch.from_numpy(filled)).reshape(draws, *stack.shape)
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
        """Draw pictures from nothing.

        Parameters
        ----------
        n
            How many.
        steps, order, temperature, mode, seed
            As in :meth:`fill`.

        Returns
        -------
        array
            [n, height, width].

        Examples
        --------
        >>> pictures.sample(3, steps=8, seed=0).shape
        (3, 8, 8)
        """
        blank = np.zeros(self.shape, dtype=np.uint8)
        nothing = np.zeros(self.shape[:2], dtype=bool)
        return self.fill(
            blank, nothing, draws=n, steps=steps, order=order, temperature=temperature, mode=mode, seed=seed
        )

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

        For looking at; :meth:`fill` gives the same picture without the way there.

        Parameters
        ----------
        picture, known, steps, temperature, mode, seed
            As in :meth:`fill`, of one picture.

        Returns
        -------
        list of Moment
            The last one is the finished picture.

        Examples
        --------
        >>> import numpy as np
        >>> len(pictures.trace(digits[0], np.zeros((8, 8), dtype=bool), steps=4))
        5
        """
        stack, given = self._question(picture, known)
        if len(stack) != 1:
            raise UserError(f"only one picture can be traced at a time, got {len(stack)}")
        if bool(given.all()):
            raise UserError("every pixel of this picture is known, so there is nothing to trace")
        core = self._in(mode)
        sampler = sampler_for(core, steps, temperature=temperature, noun="steps", surprise=self._surprise(mode))
        seen: list[tuple[Tensor, Tensor, Tensor]] = []
        assert isinstance(sampler, InGroups)  # a trace is taken in the model's own order
        sampler = replace(sampler, watch=lambda *now: seen.append(now))
        drawn = drawn_rows(core, encoded(core, stack), Query(given, ~given), seed=seed, sampler=sampler)
        moments = []
        for so_far, there, features in seen:
            expected = self.core.heads.distribution(features, 0).mean().to(so_far.dtype)
            now = shades(self.core, torch.where(there, so_far, expected))[0].reshape(self.shape)
            moments.append(Moment(decoded(self.core, so_far)[0], there[0].cpu().numpy().reshape(self.shape), now))
        last = decoded(self.core, torch.from_numpy(drawn))[0]
        return [*moments, Moment(last, np.ones(self.shape, dtype=bool), last.astype(np.float64))]

    def log_prob(
        self, pictures: Any, *, known: Any = None, orders: int = 1, mode: str | None = None, seed: int = 0
    ) -> Float[np.ndarray, " pictures"]:
        """The log-likelihood of each picture, in nats: of what is not ``known`` given the rest.

        Not for judging how good a picture looks: a smooth, empty picture may well be more likely than a sharp one.

        Parameters
        ----------
        pictures
            A stack of pictures.
        known
            Booleans [height, width], or one such mask a picture; None scores whole pictures.
        orders
            Average the probability over so many orders (SFARM eq. 14), fixed by the seed before a picture is seen, so
            that the average is a normalised density. Its logarithm rises with the number of orders; each costs a pass a
            pixel.
        mode
            The masking mode to answer in; whole pictures are then scored along the mode's own trajectories.
        seed
            Decides the orders.

        Returns
        -------
        array
            One number a picture.

        Examples
        --------
        >>> pictures.log_prob(digits[:2]).shape
        (2,)
        """
        array = self._checked(pictures)
        given = self._masks(known, len(array))
        values, query = encoded(self.core, array), Query(given, ~given)
        if mode is None:
            return log_prob(self.core, values, query, orders=orders, seed=seed)
        # Orders are drawn once for all rows, and only whole pictures have a trajectory.
        nats, whole = np.zeros(len(array)), ~given.any(dim=1)
        for core, rows in ((self._in(mode), whole), (self._in(mode, walking=False), ~whole)):
            if bool(rows.any()):
                nats[rows.numpy()] = log_prob(core, values[rows], query.rows(rows), orders=orders, seed=seed)
        return nats

    def budget(self, pictures: Any, steps: int, *, points: int = 24, seed: int = 0) -> Budget:
        """Where ``steps`` calls for a whole picture should begin, measured on held-out pictures, and what they cost.

        Under a random order the mean surprise of a pixel depends on how many are known alone (ARDM), so it is measured
        at some ``points`` and read off between them. Numbers of ``steps`` are served by such a measurement that was
        made after training; this makes another one, on these pictures.

        Parameters
        ----------
        pictures
            Held-out pictures.
        steps
            How many network calls a picture may take.
        points
            At how many sizes of what is known the surprise is measured, 2 or more.
        seed
            Decides which pixels are known then.

        Returns
        -------
        Budget

        Examples
        --------
        >>> pictures.budget(digits[:8], 6).calls
        6
        """
        steps, points = whole("steps", steps), whole("points", points, 2)  # a curve has two ends at least
        known, nats = measured_surprise(self.core, self._checked(pictures), points, checked_seed(seed))
        return cheapest_in_random_order(np.array(between(known, nats, elements(self.core))), steps)

    def _surprise(self, mode: str | None) -> tuple[float, ...]:
        """What was measured after training, for every number of known pixels; nothing for other orders than random."""
        found = self.card["pictures"].get("surprise")
        if found is None or mode is not None:
            return ()
        return between(found["known"], found["nats"], elements(self.core))

    def bits_per_dimension(self, pictures: Any, *, orders: int = 1, seed: int = 0) -> float:
        """The mean of -log2 p of pictures, over the number of values that a picture has.

        Parameters
        ----------
        pictures
            Held-out pictures.
        orders, seed
            As in :meth:`log_prob`.

        Returns
        -------
        float

        Examples
        --------
        >>> pictures.bits_per_dimension(digits[:2]) > 0
        True
        """
        return float(-self.log_prob(pictures, orders=orders, seed=seed).mean() / (self.core.variables * math.log(2)))

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
            raise UserError(
                f"expected a picture of the shape {self.shape} or a stack of such pictures, got {array.shape}"
            )
        given = self._masks(known, len(array))
        return self._checked(np.where(given.numpy().reshape(array.shape), array, 0)), given

    def _checked(self, pictures: Any) -> UInt8[np.ndarray, "pictures *shape"]:
        array, found = check_pictures(pictures)
        if array.shape[1:] != self.shape:
            raise UserError(f"expected pictures of the shape {self.shape}, got {array.shape[1:]}")
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
            raise UserError(f"known must be an array of booleans, true where a pixel is known, got {array.dtype}")
        if array.shape == self.shape[:2]:
            array = np.broadcast_to(array, (count, *array.shape))
        if array.shape != (count, *self.shape[:2]):
            raise UserError(
                f"known must have the shape {self.shape[:2]}, or hold one such mask per picture; got {array.shape}"
            )
        channels = self.shape[2] if len(self.shape) == 3 else 1
        return torch.from_numpy(array.reshape(count, -1).repeat(channels, axis=1))

    def _in(self, mode: str | None, *, walking: bool = True) -> AnyOrderModel:
        """The core, answering in this masking mode; ``walking``: whole pictures along its trajectories."""
        if mode is None:
            return self.core
        if not self.modes:
            raise UserError(f"this model has no masking modes, so it cannot answer in {mode!r}; leave mode out")
        if mode not in self.modes:
            raise UserError(f"unknown masking mode {mode!r}; {nearest(mode, self.modes)}")
        view = self.core.in_mode(self.modes.index(mode))
        if not walking:
            return view
        made = mode_masking(self.card, mode, self.shape, together=self.core.channels_in_turn > 1)
        return along(view, Trajectory(made, view.protocol))
