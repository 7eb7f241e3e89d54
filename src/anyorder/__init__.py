"""anyorder: one any-order autoregressive model, every conditional question.

>>> import anyorder as ao
>>> model = ao.fit(frame, minutes=2, seed=0)
>>> model.given(rooms=6, river="yes")["price"].quantile([0.05, 0.95])
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anyorder.answer import Answer
    from anyorder.conditional import Conditional, OrderSpread
    from anyorder.errors import UserError
    from anyorder.tables import TableModel, fit, load

__version__ = "0.1.0"

__all__ = ["Answer", "Conditional", "OrderSpread", "TableModel", "UserError", "__version__", "fit", "load"]

# Found on first use: importing torch takes seconds, and `anyorder --help` should not.
_HOMES = {
    "Answer": "anyorder.answer",
    "Conditional": "anyorder.conditional",
    "OrderSpread": "anyorder.conditional",
    "TableModel": "anyorder.tables",
    "UserError": "anyorder.errors",
    "fit": "anyorder.tables",
    "load": "anyorder.tables",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'anyorder' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
