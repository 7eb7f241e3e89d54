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
    from anyorder.estimate import Estimate
    from anyorder.evidence import MISSING, Between, OneOf
    from anyorder.image_fit import fit_images
    from anyorder.loading import load
    from anyorder.sklearn import AnyOrderDensity as AnyOrderDensity
    from anyorder.sklearn import AnyOrderImputer as AnyOrderImputer
    from anyorder.tables import TableModel, fit
    from anyorder.text import TextModel
    from anyorder.text_fit import fit_text

__version__ = "0.1.0"

__all__ = [
    "MISSING",
    "Answer",
    "Between",
    "Conditional",
    "Estimate",
    "OneOf",
    "OrderSpread",
    "TableModel",
    "TextModel",
    "UserError",
    "__version__",
    "fit",
    "fit_images",
    "fit_text",
    "load",
]

# Found on first use: importing torch takes seconds, and `anyorder --help` should not.
_HOMES = {
    "MISSING": "anyorder.evidence",
    "Answer": "anyorder.answer",
    "Between": "anyorder.evidence",
    "Conditional": "anyorder.conditional",
    "Estimate": "anyorder.estimate",
    "OneOf": "anyorder.evidence",
    "OrderSpread": "anyorder.conditional",
    "TableModel": "anyorder.tables",
    "TextModel": "anyorder.text",
    "UserError": "anyorder.errors",
    "fit": "anyorder.tables",
    "fit_images": "anyorder.image_fit",
    "fit_text": "anyorder.text_fit",
    "load": "anyorder.loading",
    # Not in __all__: scikit-learn is an optional extra, and `from anyorder import *` must not need it.
    "AnyOrderDensity": "anyorder.sklearn",
    "AnyOrderImputer": "anyorder.sklearn",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'anyorder' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*__all__, *_HOMES})
