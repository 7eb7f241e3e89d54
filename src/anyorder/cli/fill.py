"""``anyorder fill``: unknown cells of a table, holes of a text or of a picture, filled once or by many draws."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from anyorder.cli.images import fill_image
from anyorder.cli.loading import load_any, read, write
from anyorder.cli.options import Json, Missing, ModelFile, Seed, UnseenValues
from anyorder.cli.paths import check_apart, check_image, check_picture, check_table, check_writable
from anyorder.cli.texts import fill_text
from anyorder.errors import UserError
from anyorder.questions.grammar import write_set


def fill(
    model: ModelFile,
    table: Annotated[
        Path | None,
        typer.Argument(metavar="TABLE", help="CSV, CSV.gz, Parquet, -; or a picture", show_default=False),
    ] = None,
    text: Annotated[
        str | None, typer.Option(metavar="TEXT", help="a text with holes, for a model of texts", show_default=False)
    ] = None,
    mark: Annotated[str, typer.Option(help="what stands for a hole in --text")] = "_",
    plot: Annotated[
        Path | None, typer.Option(metavar="PICTURE", help="of --text: draw how sure each filled character is")
    ] = None,
    mask: Annotated[
        Path | None, typer.Option(metavar="PICTURE", help="of pictures: white where to fill in, black where known")
    ] = None,
    steps: Annotated[
        int | None, typer.Option(min=1, help="of pictures: so many network calls; one a pixel if none")
    ] = None,
    temperature: Annotated[float, typer.Option(help="of pictures: below 1 nearer to the likeliest")] = 1.0,
    mode: Annotated[str | None, typer.Option(help="of pictures: the masking mode, such as interior_patch")] = None,
    strip: Annotated[Path | None, typer.Option(metavar="PICTURE", help="of pictures: how it comes to be")] = None,
    film: Annotated[Path | None, typer.Option(metavar="GIF", help="of pictures: the same as a film")] = None,
    out: Annotated[Path | None, typer.Option("-o", "--out", metavar="FILE", help="standard output if none")] = None,
    draws: Annotated[
        int | None, typer.Option(help="this many random fills, stacked, told apart by a first column 'draw'")
    ] = None,
    intervals: Annotated[
        Path | None,
        typer.Option(metavar="CSV", help="also write an interval for every filled cell here; needs --held-out"),
    ] = None,
    held_out: Annotated[
        Path | None,
        typer.Option(metavar="TABLE", help="rows not used in training, by which the intervals are made honest"),
    ] = None,
    level: Annotated[float, typer.Option(help="how often an interval is to hold the value")] = 0.9,
    seed: Seed = 0,
    missing: Missing = None,
    unseen: UnseenValues = "refuse",
    as_json: Json = False,
) -> None:
    """Fill the unknown cells of a table, or the holes of a text; what is known stays as it is."""
    if draws is not None and draws < 1:
        raise UserError(f"--draws must be at least 1, got {draws}")
    if (intervals is None) != (held_out is None):
        raise UserError("--intervals CSV and --held-out TABLE belong together: rows that the model has not seen")
    if not 0 < level < 1:
        raise UserError(f"--level must lie between 0 and 1, got {level:g}")
    if text is not None:
        from anyorder.modalities.texts.model import TextModel

        check_writable(out)
        check_picture(plot)
        found = load_any(model)
        if table is not None or not isinstance(found, TextModel):
            raise UserError("--text TEXT is for a model of texts (anyorder fit-text), and takes no TABLE")
        if intervals is not None or missing or unseen != "refuse":
            raise UserError("--intervals, --held-out, --missing and --unseen are for tables; texts have --mark")
        fill_text(found, text, mark=mark, draws=draws, seed=seed, out=out, plot=plot, as_json=as_json)
        return
    if plot is not None:
        raise UserError("--plot goes with --text; anyorder ask draws answers about tables")
    if as_json:
        raise UserError("--json goes with --text; a filled table is written as a table")
    check_table(intervals)
    check_apart(**{"--out": out, "--intervals": intervals})
    found = load_any(model)
    from anyorder.modalities.images.model import ImageModel
    from anyorder.modalities.texts.model import TextModel

    if isinstance(found, ImageModel):
        if table is None or mask is None or out is None:
            raise UserError("pictures are filled with: anyorder fill MODEL picture.png --mask mask.png -o filled.png")
        if intervals is not None or missing or unseen != "refuse":
            raise UserError("--intervals, --held-out, --missing and --unseen are for tables; pictures have --mask")
        check_image(out, exact=draws in (None, 1))
        check_image(strip)
        check_writable(film)
        if film is not None and film.suffix.lower() != ".gif":
            raise UserError(f"--film is a GIF: the name must end in .gif, got {str(film)!r}")
        check_apart(**{"the picture": table, "--mask": mask, "--out": out, "--strip": strip, "--film": film})
        fill_image(
            found,
            table,
            mask,
            out=out,
            draws=draws or 1,
            steps=steps,
            temperature=temperature,
            mode=mode,
            strip=strip,
            film=film,
            seed=seed,
        )
        return
    if isinstance(found, TextModel):
        raise UserError(f"{str(model)!r} is a model of texts: fill --text 'the q__ck br_wn f_x'")
    if any(option is not None for option in (mask, steps, mode, strip, film)) or temperature != 1:
        raise UserError("--mask, --steps, --mode, --temperature, --strip and --film are for pictures")
    check_table(out)
    loaded = found
    if table is None:
        raise UserError("name the TABLE to fill, or - for standard input")
    marks = (*loaded.schema.missing, *(missing or ()))
    frame = read(table, marks)
    if intervals is not None and held_out is not None:
        adjusted = loaded.conformal(read(held_out, marks), seed=seed, like=frame, unseen=unseen)
        lines = adjusted.intervals(frame, level, unseen=unseen)
        for end in ("low", "high"):
            lines[end] = lines[end].astype(object).map(lambda value: None if _endless(value) else value)
        # A set of levels in the words of the questions: {no, yes}.
        lines["levels"] = [write_set(map(str, found)) if isinstance(found, list) else None for found in lines["levels"]]
        write(lines, intervals)
    if draws is None:
        write(loaded.fill(frame, seed=seed, unseen=unseen), out)
        return
    if "draw" in frame.columns:
        raise UserError("the table has a column 'draw', which is what --draws would add: rename it first")
    import pandas as pd

    filled = loaded.fill(frame, draws=draws, seed=seed, unseen=unseen)
    for index, one in enumerate(filled):
        one.insert(0, "draw", index)
    write(pd.concat(filled, ignore_index=True), out)


def _endless(end: Any) -> bool:
    """Whether an interval goes on without end there: an empty cell says so."""
    import pandas as pd

    return bool(end in (-math.inf, math.inf, pd.Timestamp.min, pd.Timestamp.max))
