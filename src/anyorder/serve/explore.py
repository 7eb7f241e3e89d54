"""``explore``: the explorer where one is working already, in a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from anyorder.errors import UserError
from anyorder.support.checks import whole

if TYPE_CHECKING:
    from anyorder.modalities.face import FittedModel
    from anyorder.serve.notebook import Explorer

HEIGHT = 720
"""Pixels: about what a notebook shows at once."""

TALLEST = 100_000


def explore(
    models: FittedModel | Mapping[str, FittedModel],
    *,
    given: Any = None,
    target: str | None = None,
    height: int | None = HEIGHT,
) -> Explorer:
    """Explore a model, or several, by clicking, in a notebook (Jupyter, VS Code, marimo).

    It needs the extra ``notebook``. The page is that of ``anyorder serve``, and its answers are computed here, by the
    same code; see the guide *Explore a model by clicking*.

    Parameters
    ----------
    models
        A model, or models by name, among which the page lets one choose.
    given
        What is known of the first one's columns at the beginning, as its ``given`` takes it; of tables.
    target
        The column that is to be learned about, by which cards are sorted; of tables.
    height
        Pixels, beyond which the page scrolls; None for as high as it is.

    Returns
    -------
    Explorer
        A widget. Its ``given`` is what was said by clicking, as the model's ``given`` takes it; setting it changes the
        page. ``close()`` takes it away and ends the threads that answer.

    Examples
    --------
    >>> page = ao.explore({"houses": model, "letters": texts}, given={"rooms": ao.Between(4, 6)})
    >>> page.given = {**page.given, "river": "yes"}  # as a click would do
    >>> model.given(page.given)
    p(... | rooms=4..6, river='yes')
    >>> page.close()
    """
    named = dict(models) if isinstance(models, Mapping) else {"model": models}
    if not named:
        raise UserError("explore needs a model, or models by name; got none")
    first = next(iter(named.values()))
    known: dict[str, Any] = {}
    if first.modality == "table":
        table: Any = first
        known = table.given({} if given is None else given).evidence
        if target is not None:
            first.schema.asked(target)
    elif given is not None or target is not None:
        raise UserError(f"given and target are for models of tables; the first one is of {first.noun}: leave them out")
    if height is not None:
        height = whole("height", height, 100, TALLEST)
    try:
        from anyorder.serve.notebook import Explorer
    except ImportError as error:
        raise UserError(
            f"exploring in a notebook needs more packages: pip install 'anyorder[notebook]' ({error})"
        ) from None
    return Explorer(named, given=known, target=target, height=height)
