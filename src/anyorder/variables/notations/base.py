"""The contract of a notation: how people write the numbers of a column, and how to write new ones in the same way."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Self


class Notation(ABC):
    """Texts of one column <-> numbers.

    A new one is one new file in this package: a frozen dataclass whose fields are plain values, which go into a model
    file as JSON. Texts come without surrounding spaces. What :meth:`write` writes, :meth:`read` reads back.
    """

    name: ClassVar[str]
    priority: ClassVar[int] = 0
    """Notations with more are tried first."""

    @classmethod
    @abstractmethod
    def find(cls, texts: Sequence[str], *, decimal_comma: bool = False) -> Self | None:
        """The notation of this kind in which all these different texts are written; None if there is none.

        ``decimal_comma``: the file leaves room for decimal commas, so that ``1,234`` more likely is one.
        """

    @abstractmethod
    def read(self, text: str) -> float | None:
        """The number that is meant; None where the text is not written in this notation."""

    @abstractmethod
    def write(self, value: float) -> str:
        """The text for a number, rounded to what the notation can say."""

    def shown(self, value: float) -> str:
        """The text for a number that was computed, such as a mean: without digits that say nothing."""
        return self.write(value)

    @property
    @abstractmethod
    def meaning(self) -> str:
        """What the column holds, in a few words for people: "an amount in $", "a time of day"."""

    @property
    def unit(self) -> str:
        """In what the numbers are counted; empty where nothing is said of it. Only equal units can be compared."""
        return self.name

    @property
    def doubt(self) -> str:
        """What else the texts could mean, where they leave that open; empty where they do not."""
        return ""

    @property
    def other(self) -> str:
        """How that other reading is asked for, as the form behind a kind; empty where there is none."""
        return ""

    @property
    def plain(self) -> bool:
        """Whether the texts are numbers as programs write them, so that nothing has to be read."""
        return False

    @property
    def digits(self) -> bool:
        """Whether the texts are whole numbers that mean other ones (202404), so that numbers of a column do as well."""
        return False

    @property
    def bounds(self) -> tuple[float | None, float | None]:
        """The least and the greatest number that can be meant."""
        return None, None
