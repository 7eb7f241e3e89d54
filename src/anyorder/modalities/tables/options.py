"""How to fit a table: every option and its default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from anyorder.errors import UserError
from anyorder.modalities.options import MOST_COMPONENTS, FitOptions, section
from anyorder.modalities.tables.heads import checked_heads
from anyorder.networks.blend import MOST_FOLDS
from anyorder.support.checks import check_fields
from anyorder.training.options import Options
from anyorder.training.trees.options import TreeOptions
from anyorder.variables.codecs import WarpName

ENCODINGS = ("auto", *get_args(WarpName))


@dataclass(frozen=True)
class TableOptions(FitOptions):
    """How to fit a table.

    ``engine``: ``neural``, ``trees``, or ``auto``: both and quick regressions, blended by held-out rows.
    ``encoding``: how numbers enter the model: ``standard`` shifts and scales, ``normal_scores`` bends each column to
    a normal and lets the network predict relative to a closed-form Gaussian; ``auto`` tries both and keeps the
    better one on held-out rows. ``trial`` is the share of the budget that each try gets.
    ``folds``: a table below ``folds_below`` rows is fitted in so many parts, each from the rows outside one fold of it
    (see :mod:`~anyorder.modalities.tables.folds`); 1 for a single split into rows to learn from and rows to judge by.
    ``heads``: by kind, a head other than the default one, such as ``{"continuous": {"name": "spline", "bins": 16}}``.
    ``network``, ``protocol``, ``masking``, ``objective`` are a ``name`` and options; masking and objective may be
    ``auto``: single edges beside each other for mask networks, whole chains of evidence and asked for chain networks.
    ``schema_rows``, ``training_rows``: of a table in many files, from how many rows the schema comes, and all else that
    needs them in memory; and from how many at most networks learn (0: as many as there is time to look at).
    ``dependencies``: look for columns that fix others, and answer them so.
    """

    engine: str = "auto"
    encoding: str = "auto"
    components: int = 10  # of the mixture that a number's distribution is made of
    trial: float = 0.35
    folds: int = 4
    folds_below: int = 5_000
    most_validation_rows: int = 10_000
    heads: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    trees: TreeOptions = field(default_factory=TreeOptions)
    training: Options = field(
        default_factory=lambda: Options(learning_rate=2e-3, warmup=20, validate_every=30, falls=2, noise=0.5)
    )
    schema_rows: int = 200_000
    training_rows: int = 0
    dependencies: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(
            self,
            whole={"components": 1, "most_validation_rows": 2, "folds": 1, "folds_below": 0, "training_rows": 0}
            | {"schema_rows": 100},
            most={"components": MOST_COMPONENTS, "folds": MOST_FOLDS},
            within={"trial": "(0, 0.5]"},
            one_of={"encoding": ENCODINGS},
        )
        if not isinstance(self.dependencies, bool):
            raise UserError(f"dependencies must be true or false, got {self.dependencies!r}")
        object.__setattr__(self, "heads", checked_heads(section(self.heads, "heads")))
