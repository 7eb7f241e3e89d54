"""``anyorder look``: what every column of a table would be taken for, and what is odd about it."""

from __future__ import annotations

import sys

from anyorder.cli import show
from anyorder.cli.column_options import BoundTexts, Dropped, Kinds, LevelTexts, column_arguments
from anyorder.cli.files import read_frame
from anyorder.cli.options import Json, Missing, TableFile
from anyorder.support.visible import visible


def look(
    table: TableFile,
    kind: Kinds = None,
    bounds: BoundTexts = None,
    levels: LevelTexts = None,
    missing: Missing = None,
    drop: Dropped = None,
    as_json: Json = False,
) -> None:
    """Look at a table before fitting: what each column is taken for and why, what is odd, what is left out."""
    arguments = column_arguments(kind, bounds, levels, missing, drop)
    frame = read_frame(table, arguments.get("missing", ()))
    from anyorder.data.look import look as look_at

    found = look_at(frame, **arguments)
    if as_json:
        show.print_json(found.to_json(command_line=True))
    else:
        sys.stdout.write("".join(f"{visible(line)}\n" for line in found.text(command_line=True).splitlines()))
