"""Bounds of actions: what is given must lie within them, what is drawn is moved to the nearest of them.

Draws are clipped one by one, before the next action is drawn given them: each action follows from what will be done,
and not from what was drawn beyond a bound. So a bound has a probability of its own, that of all that lies behind it,
as in demonstrations whose actuators saturate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from anyorder.errors import UserError, nearest
from anyorder.variables.codecs import Codec, Space
from anyorder.variables.encoding import Encoding


@dataclass(frozen=True)
class Bounds:
    """The bounds of actions, by name in the units of the data, and of all variables in model units.

    ``rounded``: those whose values, back in the units of the data, may lie past a bound by a rounding error.
    """

    by_name: Mapping[str, tuple[float, float]]
    limits: tuple[Float[Tensor, " variables"], Float[Tensor, " variables"]] | None
    rounded: frozenset[str] = frozenset()

    @classmethod
    def read(cls, said: Any, actions: Sequence[str], encoding: Encoding) -> Bounds:
        """From a mapping of pairs by name, or one pair for all actions that are numbers."""
        if said is None:
            return cls({}, None)
        if not isinstance(said, Mapping):
            numbers = [name for name in actions if _can_be_bounded(encoding, name)]
            said = dict.fromkeys(numbers, said)
            if not numbers:
                raise UserError("bounds are for actions that are numbers, and none of the actions is one")
        found: dict[str, tuple[float, float]] = {}
        low, high = np.full(len(encoding.schema), -np.inf), np.full(len(encoding.schema), np.inf)
        for name, pair in said.items():
            if name not in actions:
                raise UserError(f"bounds: no action {name!r}; {nearest(name, actions)}")
            if not _can_be_bounded(encoding, name):
                raise UserError(f"bounds: {name!r} is no number, so it has none; leave it out of bounds=")
            found[name] = ends = _pair(name, pair)
            codec, index = encoding.codec(name), encoding.schema.index(name)
            if codec.space is Space.LEVELS:
                low[index], high[index] = _levels(codec, *ends)
                continue
            if codec.space is Space.LATTICE:
                ends = _whole(name, *ends)
            for side, end in zip((low, high), ends, strict=True):
                if math.isfinite(end):
                    side[index] = codec.from_measure(np.array([end]))[0]
        rounded = frozenset(name for name in found if encoding.codec(name).space is Space.LINE)
        return cls(found, (torch.from_numpy(low), torch.from_numpy(high)), rounded)

    def check(self, name: str, values: Float[np.ndarray, " rows"]) -> None:
        """Refuse values that were given for an action and lie outside its bounds; NaN is not given."""
        if name not in self.by_name:
            return
        low, high = self.by_name[name]
        if ((values < low) | (values > high)).any():
            row = int(np.argmax((values < low) | (values > high)))
            where = "" if len(values) == 1 else f" in row {row} (counted from 0)"
            raise UserError(
                f"the action {name!r} is given as {values[row]:g}{where}, outside its bounds {low:g} to {high:g}; "
                "give it inside of them, or leave it out to have it chosen"
            )

    def clip(self, name: str, value: Any) -> Any:
        """A value of an action, or a column of them, without what rounding carried past a bound.

        A level or a whole number within the limits is within the bounds, which need be none of them themselves.
        """
        if name not in self.rounded:
            return value
        low, high = self.by_name[name]
        return value.clip(low, high) if hasattr(value, "clip") else min(max(value, low), high)


def _can_be_bounded(encoding: Encoding, name: str) -> bool:
    return encoding.schema[name].numeric


def _pair(name: str, pair: Any) -> tuple[float, float]:
    try:
        low, high = (float(end) for end in pair)
    except (TypeError, ValueError):
        raise UserError(f"bounds of {name!r} must be a pair of numbers such as (-1, 1), got {pair!r:.80}") from None
    if not low < high:
        raise UserError(f"bounds of {name!r} must be two numbers that increase, got {pair!r:.80}")
    return low, high


def _levels(codec: Codec, low: float, high: float) -> tuple[float, float]:
    """The codes of the least and the greatest level within, of a column that has a few numbers as its levels."""
    codes = np.flatnonzero(_within(codec.measure(np.arange(len(codec.variable.levels), dtype=np.float64)), low, high))
    if not len(codes):
        raise UserError(f"bounds of {codec.variable.name!r}: none of its values lies between {low:g} and {high:g}")
    return float(codes[0]), float(codes[-1])


def _within(values: Float[np.ndarray, " values"], low: float, high: float) -> Bool[np.ndarray, " values"]:
    return (values >= low) & (values <= high)


def _whole(name: str, low: float, high: float) -> tuple[float, float]:
    """The least and the greatest whole number within."""
    first = math.ceil(low) if math.isfinite(low) else low
    last = math.floor(high) if math.isfinite(high) else high
    if first > last:
        raise UserError(f"bounds of {name!r}: no whole number lies between {low:g} and {high:g}")
    return float(first), float(last)
