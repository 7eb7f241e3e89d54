"""How one answer is shown: in a line, in a notebook, as a histogram, as a picture."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anyorder.errors import UserError
from anyorder.questions.doubt import jackknife
from anyorder.questions.one_variable import OneVariable
from anyorder.questions.outline import histogram
from anyorder.questions.units import shown
from anyorder.support import html
from anyorder.support.checks import whole
from anyorder.support.threads import answering

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_CELLS = 1 << 16
MOST_LEVELS = 12  # that are listed in a notebook


class ShownAnswer(OneVariable):
    """The half of an :class:`~anyorder.questions.answer.Answer` that shows it."""

    parts: Callable[[], Sequence[Any]] | None
    given: str
    """What is known, in words: "rooms = 6, river = yes"."""

    @property
    def kind(self) -> str:
        """The kind of the variable: ``continuous``, ``categorical``, ..."""
        return str(self.variable.kind)

    @property
    @abstractmethod
    def discrete(self) -> bool:
        """Whether probabilities are asked for, and not densities."""

    @abstractmethod
    def measured_quantiles(self, levels: NDArray[np.float64]) -> NDArray[np.float64]:
        """Quantiles as numbers in the units of the data: days since 1970 for times."""

    @abstractmethod
    def measured_cdf(self, values: NDArray[np.float64], *, below: bool = False) -> NDArray[np.float64]:
        """P(variable <= value) for such numbers."""

    def __repr__(self) -> str:
        if self.variable.levels:
            best = sorted(self.probs().items(), key=lambda item: -item[1])[:3]
            return f"Answer({self.variable.name}: " + ", ".join(f"{k!r} {p:.3f}{_doubt(p)}" for k, p in best) + ")"
        low, middle, high = map(self.written, self.quantile([0.05, 0.5, 0.95]))
        return f"Answer({self.variable.name}: median {middle}{self._doubt_of_median()}, 90 % in {low} .. {high})"

    def _repr_html_(self) -> str:
        title = html.with_remark(self.variable.name, f"given {self.given}" if self.given else "")
        foot = [html.remark(f"estimated: {self.method}")] if hasattr(self, "method") else []
        return html.titled(title, *(self._levels_html() if self.variable.levels else self._numbers_html()), *foot)

    def _levels_html(self) -> list[object]:
        pairs = list(self.probs().items())
        if self.kind not in ("atoms", "ordinal") or len(pairs) > MOST_LEVELS:
            pairs.sort(key=lambda pair: -pair[1])
        lines: list[list[object]] = [
            [self.written(level), html.bar(float(share)), f"{share:.3f}{_doubt(share)}"] for level, share in pairs
        ]
        if len(pairs) > MOST_LEVELS:
            rest = sum(float(share) for _, share in pairs[MOST_LEVELS:])
            lines[MOST_LEVELS:] = [[f"{len(pairs) - MOST_LEVELS} others", html.bar(rest), f"{rest:.3f}"]]
        return [html.table(["", "", ""], lines, [2])]

    def _numbers_html(self) -> list[object]:
        low, middle, high = map(self.written, self.quantile([0.05, 0.5, 0.95]))
        facts: list[list[object]] = [
            ["median", f"{middle}{self._doubt_of_median()}"],
            ["90 % in", f"{low} .. {high}"],
        ]
        facts.insert(1, ["mean", self.written(self.mean())])
        atoms = self.probs().items() if self.kind == "spiked" else ()
        facts += [[f"P({self.written(atom)})", f"{share:.3f}{_doubt(share)}"] for atom, share in atoms]
        return [html.columns(self.histogram(40)[1].tolist(), 240, 48), html.table(["", ""], facts)]

    def _doubt_of_median(self) -> str:
        if self.parts is None or self.kind == "datetime":
            return ""
        return f" ± {jackknife([float(part.quantile(0.5)) for part in self.parts()]):.2g}"

    def written(self, value: Any) -> str:
        """A value of the variable as its column writes it: an amount with its sign, a time in its form.

        For people to read; a number without a notation is shown in four digits.

        Parameters
        ----------
        value
            A number, a time or a level.

        Returns
        -------
        str

        Examples
        --------
        >>> model.given(rooms=6)["price"].written(36.0625)
        '36.06'
        """
        return shown(self.variable, value)

    @answering
    def histogram(self, cells: int = 24) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """How much lies where in the central 99 %: exact probabilities of cells of equal width.

        The cells of a positive column with a long upper tail grow in proportion to their values. For levels ask for
        :meth:`probs`.

        Parameters
        ----------
        cells
            How many at most; whole numbers and days share them out evenly.

        Returns
        -------
        tuple of array
            The edges, ascending, and the probability between each and the next; days since 1970 for times.

        Examples
        --------
        >>> edges, shares = model.given(rooms=6)["price"].histogram(20)
        >>> len(edges), len(shares), bool(0.98 < shares.sum() < 1)
        (21, 20, True)
        """
        if self.variable.levels:
            raise UserError(f"{self.variable.name!r} is {self.variable.kind}: it has levels, ask for probs()")
        return histogram(self, whole("cells", cells, 1, MOST_CELLS))

    def plot(self, path: str | Path | None = None, *, axes: Axes | None = None) -> Any:
        """Draw the distribution: a density with its median and central 90 %, or bars for levels.

        The central 99 % is drawn, on a logarithmic scale where a positive column has a long upper tail; atoms are
        stems. Needs the extra ``plots``; nothing of pyplot is touched.

        Parameters
        ----------
        path
            A file to write the picture to; its suffix says the format.
        axes
            Matplotlib axes to draw into; a figure of its own by default.

        Returns
        -------
        Figure, or the axes that were given

        Examples
        --------
        >>> figure = model.given(rooms=6)["price"].plot(folder / "price.png")
        >>> figure.axes[0].get_title(loc="left")
        'price'
        """
        from anyorder.questions.plots import plot_answer
        from anyorder.support.plotting import check_format, new_figure, save_figure

        if path is not None:
            check_format(Path(path))
        figure: Any = new_figure(5.0, 3.2) if axes is None else axes.figure
        whole_answer: Any = self
        plot_answer(figure.add_subplot() if axes is None else axes, whole_answer, self.variable.name)
        if path is not None:
            save_figure(figure, Path(path))
        return figure if axes is None else axes


def _doubt(probability: float) -> str:
    doubt = getattr(probability, "doubt", 0.0)
    return f" ± {doubt:.2g}" if doubt else ""
