"""What all pictures of the library share: one palette, figures outside pyplot, the formats they are written in.

Matplotlib is an extra and is imported only when a picture is asked for.
"""

from __future__ import annotations

import io
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from anyorder.errors import UserError
from anyorder.support.atomic import atomic_path

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# One palette for all pictures of the library; it stays legible in grey and for the colour-blind.
INK = "#22303c"


SOFT = "#8b98a5"


GRID = "#e4e9ed"


BLUE = "#2f6f9f"


ORANGE = "#d9822b"


RED = "#b5484b"


FORMATS = (".png", ".svg", ".pdf", ".jpg", ".jpeg", ".webp")


def require_matplotlib() -> None:
    """Fail early, in words, where the extra is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise UserError("plots need matplotlib, which is not installed: pip install 'anyorder[plots]'") from error


def new_figure(width: float, height: float) -> Figure:
    """A figure outside pyplot: no global state, nothing to close, no display needed; a notebook shows it."""
    require_matplotlib()
    return _picture()(figsize=(width, height), layout="constrained", facecolor="white")


@cache
def _picture() -> type[Figure]:
    from matplotlib.figure import Figure

    class Picture(Figure):
        """Shown by a notebook without pyplot, which would otherwise have to be asked to."""

        def _repr_png_(self) -> bytes:
            content = io.BytesIO()
            self.savefig(content, dpi=96, format="png")
            return content.getvalue()

    return Picture


def style(axes: Axes) -> None:
    """The house look: no box, faint grid, dark grey text."""
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(SOFT)
    axes.tick_params(colors=INK, labelsize=9, length=0)
    axes.set_axisbelow(True)
    axes.grid(visible=True, color=GRID, linewidth=0.8)


def save_figure(figure: Figure, path: Path) -> None:
    """Write the picture, whole or not at all; its ending says the format."""
    check_format(path)
    content = io.BytesIO()  # writers of pictures do not notice every disk that is full
    figure.savefig(content, dpi=144, format=path.suffix[1:].lower())
    with atomic_path(path) as beside:
        beside.write_bytes(content.getvalue())


def check_format(path: Path) -> None:
    """Refuse an ending that no picture has, before any work is done."""
    if path.suffix.lower() not in FORMATS:
        raise UserError(f"cannot draw into {str(path)!r}: the name must end in one of {', '.join(FORMATS)}")
