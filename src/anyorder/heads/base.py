"""The contract of a head: features in, a normalised one-dimensional distribution out.

Nothing runs until it is asked for: ``head(features)`` returns a :class:`Distribution` over the batch shape
``features.shape[:-1]``. Heads are normalised over the values a variable can really take; there is no
"mask" symbol to leak probability to.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar, Self

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from anyorder.distributions.base import Distribution
from anyorder.variables.codecs import Space
from anyorder.variables.lattice import Lattice


class Head(nn.Module, ABC):
    """A one-dimensional family. A final subclass is a ``@dataclass(eq=False)`` with a ``name``.

    Its dataclass fields are its options. It may hold parameters of its own (an energy network, say).
    """

    name: ClassVar[str]

    space: ClassVar[Space] = Space.LINE
    """Where the values that it answers for lie: it can answer for variables whose codec says the same."""

    wraps: ClassVar[bool] = False
    """Whether it is put around another head by what a column is (its atoms, its bounds), not chosen by a user."""

    couples: ClassVar[bool] = False
    """Whether its features can be shared by the channels of a pixel (:mod:`anyorder.networks.parts.colour`)."""

    own_components: ClassVar[bool] = False
    """Whether its option ``components`` means something of its own, and not the size of a mixture of numbers."""

    @classmethod
    def suits(cls, levels: int) -> bool:
        """Whether it can answer for so many levels; 0 for numbers."""
        return True

    def __new__(cls, *args: object, **options: object) -> Self:
        # Before the dataclass sets its fields, since one of them may be another head.
        head = super().__new__(cls)
        nn.Module.__init__(head)
        return head

    def __post_init__(self) -> None:
        """Subclasses check their options here."""

    @property
    @abstractmethod
    def size(self) -> int:
        """How many features it reads."""

    @property
    def levels(self) -> int:
        """For values that are codes 0..levels-1; 0 where values are numbers on a line."""
        return 0

    @property
    def locations(self) -> tuple[int, ...]:
        """Which features are locations: they move with the line. None for families without that notion."""
        return ()

    @property
    def log_scales(self) -> tuple[int, ...]:
        """Which features are log scales: stretching the line by c adds log c to them."""
        return ()

    @property
    def points(self) -> Lattice | None:
        """The lattice on which its values lie; None where they are levels or a line."""
        return None

    @property
    def blended(self) -> tuple[Head, ...]:
        """The heads whose distributions it mixes, each for features of its own; none for a family by itself."""
        return ()

    def part(self, number: int) -> Head:
        """One of the heads that it mixes; itself where it is a context's, whatever the others are made of."""
        return self.blended[number] if self.size else self

    def only(self, parts: Sequence[int], widths: Sequence[int]) -> Head:
        """This head with some of the heads that it mixes alone, and their shares.

        ``widths``: how many features the network has for each of those that it mixes now, one block after the other.
        """
        return self

    @property
    def free(self) -> bool:
        """Whether every level has a logit of its own, so that it can have any probabilities of its levels."""
        return False

    @property
    def atom_count(self) -> int:
        """How many single values have a probability beside a continuum."""
        return 0

    def classes(self, values: Float[Tensor, "*batch"]) -> tuple[Int[Tensor, "*batch"], int]:
        """Which class each value is, and how many there are: its levels, or its atoms and then the bins of the rest."""
        if not self.levels:
            raise TypeError(f"the values of a {self.name} head are no classes; see with_family")
        return values.long(), self.levels

    def with_family(
        self, family: Callable[[Head, Float[np.ndarray, " values"]], Head], values: Float[np.ndarray, " values"]
    ) -> Head:
        """This head with another family inside its atoms and bounds.

        ``family`` makes it from the one that is there now and from those of ``values`` that it answers for.
        """
        return family(self, values)

    def blurred(self, blur: float) -> Head:
        """The head with softer edges between its bins, for the same features; itself where there are no bins."""
        return self

    @abstractmethod
    def forward(self, features: Float[Tensor, "*batch size"]) -> Distribution:
        """The distribution that these features stand for."""

    def start(self) -> Float[Tensor, " size"]:
        """Features of a broad, sensible distribution for values of about unit scale: where training begins."""
        return torch.zeros(self.size)
