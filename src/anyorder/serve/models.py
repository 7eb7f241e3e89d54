"""The models that are served, by name. One that cannot be loaded says why, and the others answer.

A name is what a request calls a model by: a key of a dictionary and nothing else. No request can name a file.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyorder.errors import UserError, nearest
from anyorder.serve.errors import ServiceError

if TYPE_CHECKING:
    from anyorder.modalities.face import FittedModel
    from anyorder.questions.marginals import Marginal, Marginals
    from anyorder.tasks.anomalies import OwnRows

log = logging.getLogger("anyorder.serve")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass
class Served:
    """One model: what it is called, and the model, or why there is none."""

    name: str
    model: Any = None
    problem: str | None = None
    _own_rows: OwnRows | None = field(default=None, repr=False)

    @cached_property
    def marginals(self) -> Marginals:
        """Answers about all columns at once; of a table."""
        from anyorder.questions.marginals import Marginals

        return Marginals(self.model.core)

    @cached_property
    def prior(self) -> dict[str, Marginal]:
        """All columns of a table with nothing known."""
        from anyorder.serve.columns import prior_of

        return prior_of(self.model, self.marginals)

    @cached_property
    def schema(self) -> dict[str, Any]:
        """What is known of every column, as the service answers it."""
        from anyorder.serve.columns import schema_facts

        return schema_facts(self.name, self.model, self.marginals, self.prior)

    def own_rows(self, seed: int) -> OwnRows:
        """Rows that the model draws by itself, to compare others with; those of the last seed are kept."""
        from anyorder.tasks.anomalies import OwnRows

        kept = self._own_rows
        if kept is None or kept.seed != seed:
            kept = self._own_rows = OwnRows(seed=seed)
        return kept

    @property
    def status(self) -> str:
        return "failed" if self.model is None else "ready"


@dataclass
class Models:
    """All of them."""

    served: dict[str, Served] = field(default_factory=dict)

    @classmethod
    def of(cls, models: Mapping[str, FittedModel]) -> Models:
        """Models that are loaded already."""
        return cls({checked_name(name): Served(name, model) for name, model in models.items()})

    @classmethod
    def read(cls, files: Iterable[str | Path], failed: Callable[[str], None] = log.error) -> Models:
        """The models in these files: ``house.anyorder`` is called "house", ``name=FILE`` what stands before the sign.

        A file that is not there, or holds no model, is one that failed; ``failed`` is told why.
        """
        from anyorder.modalities.load import load

        served: dict[str, Served] = {}
        for said in files:
            name, path = named(said)
            if name in served:
                raise UserError(f"two models are called {name!r}: name one of them otherwise, as in other={path}")
            try:
                served[name] = Served(name, load(path))
            except (UserError, OSError, MemoryError) as error:
                # A path is nobody's business but that of whoever started the service, who is told of it here.
                failed(f"{name} cannot be loaded: {error}")
                served[name] = Served(name, problem=str(error).replace(str(path), path.name))
        return cls(served)

    def get(self, name: str, modality: str | None = None) -> Served:
        """The model of that name, which must be there and of that modality."""
        found = self.served.get(name)
        if found is None:
            raise ServiceError(
                404, f"no model {name!r:.120}; {nearest(name[:120], self.served, noun='models')}", where="name"
            )
        if found.model is None:
            raise ServiceError(
                503, f"the model {name!r} could not be loaded: {found.problem}", kind="model_failed", where="name"
            )
        if modality is not None and found.model.modality != modality:
            raise ServiceError(
                409,
                f"{name!r} is a model of {found.model.noun}, which this question is not for; see GET /openapi.json",
                kind="wrong_modality",
                where="name",
            )
        return found

    @property
    def ready(self) -> bool:
        """Whether any model can be asked: one that cannot does not take the others down."""
        return any(one.model is not None for one in self.served.values())


def named(said: str | Path) -> tuple[str, Path]:
    """The name and the file of a model: said, as ``name=FILE``, or the name of the file without its ending."""
    name, equals, file = str(said).partition("=")
    if equals and NAME.fullmatch(name):
        return name, Path(file)
    path = Path(said)
    return checked_name(re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem).strip("-._") or "model"), path


def checked_name(name: str) -> str:
    """A name that can stand in an address."""
    if not NAME.fullmatch(name):
        raise UserError(f"a model's name may have letters, digits, '.', '-' and '_', 100 at most; got {name!r:.120}")
    return name
