"""``anyorder info``: what a model file holds."""

from __future__ import annotations

import typer

from anyorder.cli import show
from anyorder.cli.loading import load_any
from anyorder.cli.options import Json, ModelFile


def info(model: ModelFile, as_json: Json = False) -> None:
    """What a model file holds: its variables or alphabet, and how it was trained."""
    loaded = load_any(model)
    from anyorder.modalities.images.model import ImageModel
    from anyorder.modalities.texts.model import TextModel

    if isinstance(loaded, TextModel | ImageModel):
        if as_json:
            show.print_json({"card": loaded.card})
        else:
            show.print_facts(show.plain(loaded.card))
        return
    variables = [
        {"name": variable.name, "kind": variable.kind, "levels": list(variable.levels)}
        for variable in loaded.schema.variables
    ]
    if as_json:
        show.print_json({"variables": variables, "card": loaded.card})
    else:
        show.print_variables([show.plain(variable) for variable in variables])
        typer.echo()
        show.print_facts(show.plain(loaded.card))
