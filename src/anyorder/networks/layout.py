"""What a network must know about the variables: how values come in and how many features go out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Layout:
    """One entry per variable.

    ``levels``: 0 for a real value, K for a code in 0..K-1. ``sizes``: how many features its head reads, 0 where the
    variable is context, which is read and never answered.
    ``groups``: variables of one group (all characters, all pixels) share value embedding and read-out.
    ``grid``: the shape in which the flat variables lie, for networks that reshape. ``locations`` and
    ``log_scales``: which features of a location-scale head move with its location and its scale, so that a
    network can predict relative to a closed-form expert (empty for other heads). ``partners``: the variable that must
    be hidden from each (-1 for none): a column and the indicator of its holes (:mod:`anyorder.variables.missingness`).
    ``members``: the layouts of the members of a blend.
    """

    levels: tuple[int, ...]
    sizes: tuple[int, ...]
    groups: tuple[int, ...]
    grid: tuple[int, ...]
    locations: tuple[tuple[int, ...], ...] = ()
    log_scales: tuple[tuple[int, ...], ...] = ()
    partners: tuple[int, ...] = ()
    members: tuple[Layout, ...] = ()

    @cached_property
    def variables(self) -> int:
        return len(self.levels)

    @cached_property
    def answered(self) -> tuple[int, ...]:
        """The variables that are no context."""
        return tuple(index for index, size in enumerate(self.sizes) if size)

    @cached_property
    def width(self) -> int:
        """The feature width of the widest head; narrower heads read the first of these."""
        return max(self.sizes)
