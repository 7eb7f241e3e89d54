"""``anyorder sample``: rows, or texts, drawn from the model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from anyorder.cli.images import sample_images
from anyorder.cli.loading import check_names, load_any, write
from anyorder.cli.options import ModelFile, Seed
from anyorder.cli.paths import check_image, check_table, check_writable
from anyorder.cli.texts import sample_text
from anyorder.errors import UserError
from anyorder.questions.grammar import parse_evidence


def sample(
    model: ModelFile,
    count: Annotated[
        int | None, typer.Option("-n", "--count", help="how many; else 100 rows, 1 text, 16 pictures")
    ] = None,
    given: Annotated[str, typer.Option(metavar="EVIDENCE", help="e.g. 'rooms=6, river=yes'", show_default=False)] = "",
    seed: Seed = 0,
    holes: Annotated[
        bool, typer.Option("--holes", help="leave cells empty as in the data (fit with --missingness joint)")
    ] = False,
    out: Annotated[Path | None, typer.Option("-o", "--out", metavar="FILE", help="standard output if none")] = None,
    beginning: Annotated[str | None, typer.Option(metavar="TEXT", help="of texts: how they begin")] = None,
    length: Annotated[int | None, typer.Option(help="of texts: characters; a whole window if none")] = None,
    drafts: Annotated[
        int | None, typer.Option(min=1, help="of texts: draft this many characters a call and check them; still exact")
    ] = None,
    calls: Annotated[
        int | None, typer.Option(min=1, help="of texts and pictures: only so many network calls; not exact")
    ] = None,
    held_out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="of texts: measure on this text where the calls should go")
    ] = None,
    order: Annotated[
        str, typer.Option(help="of texts, pictures: model, or confidence (surest first; not the model's distribution)")
    ] = "model",
    temperature: Annotated[float, typer.Option(help="of pictures: below 1 nearer to the likeliest")] = 1.0,
) -> None:
    """Draw full rows, with what is given kept fixed; or texts, with their beginning kept; or a grid of pictures."""
    if count is not None and count < 1:
        raise UserError(f"-n must be at least 1, got {count}")
    evidence = parse_evidence(given)
    found = load_any(model)
    from anyorder.modalities.images.model import ImageModel
    from anyorder.modalities.texts.model import TextModel

    if isinstance(found, TextModel):
        if given or holes or temperature != 1:
            raise UserError("--given and --holes are for tables, --temperature for pictures; texts take --beginning")
        check_writable(out)
        sample_text(
            found,
            1 if count is None else count,
            beginning=beginning or "",
            length=length,
            drafts=drafts,
            calls=calls,
            held_out=held_out,
            order=order,
            seed=seed,
            out=out,
        )
        return
    if isinstance(found, ImageModel):
        if given or holes or any(option is not None for option in (beginning, length, drafts, held_out)):
            raise UserError("pictures are drawn with -n, --calls, --order, --temperature and --seed alone")
        if out is None:
            raise UserError("pictures need a file to go to: -o grid.png")
        check_image(out)
        sample_images(found, count or 16, out=out, steps=calls, temperature=temperature, seed=seed, order=order)
        return
    if temperature != 1:
        raise UserError("--temperature is for pictures")
    if order != "model" or any(option is not None for option in (beginning, length, drafts, calls, held_out)):
        raise UserError("--beginning, --length, --drafts, --calls, --held-out and --order are for models of texts")
    check_table(out)
    check_names(found, evidence)
    write(found.given(evidence).sample(100 if count is None else count, seed=seed, holes=holes), out)
