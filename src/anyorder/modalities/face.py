"""What every fitted model has, whatever it is a model of: a core, a card, a file.

A face speaks in the units of its modality (columns, characters, pixels) and asks the core, which knows only flat
``[batch, variables]`` tensors. The card says how the model came to be, and of which modality it is.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any, ClassVar, Self

from anyorder.errors import UserError
from anyorder.modalities.card import SECTIONS
from anyorder.model import AnyOrderModel
from anyorder.model.checkpoint import model_from_bytes, model_to_bytes, save_model
from anyorder.support.boundary import field
from anyorder.variables.schema import Schema


class FittedModel:
    """The shared half of :class:`TableModel`, :class:`TextModel` and :class:`ImageModel`.

    A final subclass has a ``modality``, the name that its card carries, and says in ``noun`` what it is a model of.
    """

    modality: ClassVar[str]
    noun: ClassVar[str]

    def __init__(self, core: AnyOrderModel, card: dict[str, Any]) -> None:
        self.core = core
        self.card = {"modality": self.modality, **card}  # every file names it

    @classmethod
    def of_file(cls, core: AnyOrderModel, card: dict[str, Any]) -> Self:
        """The model of a file, once its card is known to hold what is read from it later."""
        for name in SECTIONS:
            if not isinstance(card.get(name, {}), dict):
                raise UserError(f"card.{name}: expected an object, got {card[name]!r:.80}")
        model = cls(core, card)
        with field("card"):
            model._check()
        return model

    def _check(self) -> None:
        """Refuse a card that does not go with the core."""

    def __getstate__(self) -> bytes:
        # Processes of a parallel cross-validation hand models to each other: as bytes of a model file, never as code.
        return model_to_bytes(self.core, self.card)

    def __setstate__(self, state: bytes) -> None:
        self.core, self.card = model_from_bytes(state)

    @property
    def schema(self) -> Schema:
        """The variables of the model."""
        return self.core.schema

    def save(self, path: str | Path) -> None:
        """Write the model as one ``.anyorder`` file, atomically: a file that is there already is replaced whole or not
        at all.

        Parameters
        ----------
        path
            Where to. The file holds no code; :func:`anyorder.load` reads it, and answers stay bit-identical.

        Examples
        --------
        >>> model.save(folder / "house.anyorder")
        >>> ao.load(folder / "house.anyorder").schema.names
        ('rooms', 'river', 'door', 'price')
        """
        save_model(self.core, self.card, path)

    def explore(self, *, given: Any = None, target: str | None = None, height: int | None = 720) -> Any:
        """Explore the model by clicking, in a notebook (Jupyter, VS Code, marimo).

        It needs the extra ``notebook``. The page is that of ``anyorder serve``, answered here, by the same code.

        Parameters
        ----------
        given
            What is known at the beginning, as ``given`` takes it; of tables.
        target
            The column that is to be learned about; of tables.
        height
            Pixels, beyond which the page scrolls; None for as high as it is.

        Returns
        -------
        Explorer
            A widget: the last line of a cell shows it. Its ``given`` is what was said by clicking, as the model's own
            ``given`` takes it. See :func:`anyorder.explore`, which shows several models on one page.

        Examples
        --------
        >>> page = model.explore(given={"rooms": ao.Between(4, 6)}, target="price")
        >>> model.given(page.given)
        p(... | rooms=4..6)
        >>> page.close()
        """
        # What surrounds a model is above it in the tree, and found when it is called for.
        found: Any = importlib.import_module("anyorder.serve.explore")
        return found.explore(self, given=given, target=target, height=height)

    def compress(self, data: Any, **options: Any) -> bytes:
        """The data in as few bytes as the model can; the same model gives them back."""
        raise UserError(f"a model of {self.noun} cannot compress; texts and tables can be compressed")

    def decompress(self, data: bytes) -> Any:
        """What :meth:`compress` compressed with this model."""
        raise UserError(f"a model of {self.noun} cannot decompress; texts and tables can be compressed")


def compress(model: FittedModel, data: Any, **options: Any) -> bytes:
    """A text, or the rows of a frame, in as few bytes as the model can, without loss.

    Parameters
    ----------
    model
        A model of texts, or of a table.
    data
        The text, or the frame.
    **options
        Of texts, ``calls``: see :meth:`TextModel.compress`.

    Returns
    -------
    bytes

    Examples
    --------
    >>> ao.decompress(texts, ao.compress(texts, "the quick brown fox"))
    'the quick brown fox'
    """
    return model.compress(data, **options)


def decompress(model: FittedModel, data: bytes) -> Any:
    """What :func:`compress` compressed with this model.

    Parameters
    ----------
    model
        The same model.
    data
        What :func:`compress` returned.

    Returns
    -------
    str or DataFrame

    Examples
    --------
    >>> ao.decompress(model, ao.compress(model, frame.head(4))).shape
    (4, 4)
    """
    return model.decompress(data)
