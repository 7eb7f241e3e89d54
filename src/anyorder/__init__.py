"""anyorder: one any-order autoregressive model, every conditional question.

>>> import anyorder as ao
>>> model = ao.fit(frame, minutes=2, seed=0)
>>> model.given(rooms=6, river="yes")["price"].quantile([0.05, 0.95])
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anyorder.data.look import look
    from anyorder.errors import UserError
    from anyorder.modalities.face import compress, decompress
    from anyorder.modalities.images.fit import fit_images
    from anyorder.modalities.images.model import ImageModel
    from anyorder.modalities.load import load
    from anyorder.modalities.tables.fit import fit
    from anyorder.modalities.tables.model import TableModel
    from anyorder.modalities.texts.fit import fit_text
    from anyorder.modalities.texts.model import TextModel
    from anyorder.questions.answer import Answer
    from anyorder.questions.batch import RowConditionals
    from anyorder.questions.conditional import Conditional
    from anyorder.questions.estimate import Estimate
    from anyorder.questions.evidence import MISSING, Between, OneOf
    from anyorder.questions.joint import OrderSpread
    from anyorder.questions.most_probable import MostProbable
    from anyorder.questions.row_answers import RowAnswers
    from anyorder.serve.explore import explore
    from anyorder.sklearn import AnyOrderClassifier as AnyOrderClassifier
    from anyorder.sklearn import AnyOrderDensity as AnyOrderDensity
    from anyorder.sklearn import AnyOrderImputer as AnyOrderImputer
    from anyorder.sklearn import AnyOrderRegressor as AnyOrderRegressor
    from anyorder.tasks.policies.policy import Policy
    from anyorder.tasks.pooling import pool

__version__ = "0.1.0"

__all__ = [
    "MISSING",
    "Answer",
    "Between",
    "Conditional",
    "Estimate",
    "ImageModel",
    "MostProbable",
    "OneOf",
    "OrderSpread",
    "Policy",
    "RowAnswers",
    "RowConditionals",
    "TableModel",
    "TextModel",
    "UserError",
    "__version__",
    "compress",
    "decompress",
    "explore",
    "fit",
    "fit_images",
    "fit_text",
    "load",
    "look",
    "pool",
]

# Found on first use: importing torch takes seconds, and `anyorder --help` should not.
_HOMES = {
    "MISSING": "questions.evidence",
    "Answer": "questions.answer",
    "Between": "questions.evidence",
    "Conditional": "questions.conditional",
    "Estimate": "questions.estimate",
    "ImageModel": "modalities.images.model",
    "OneOf": "questions.evidence",
    "MostProbable": "questions.most_probable",
    "OrderSpread": "questions.joint",
    "Policy": "tasks.policies.policy",
    "RowAnswers": "questions.row_answers",
    "RowConditionals": "questions.batch",
    "TableModel": "modalities.tables.model",
    "TextModel": "modalities.texts.model",
    "UserError": "errors",
    "compress": "modalities.face",
    "decompress": "modalities.face",
    "explore": "serve.explore",
    "fit": "modalities.tables.fit",
    "fit_images": "modalities.images.fit",
    "fit_text": "modalities.texts.fit",
    "load": "modalities.load",
    "look": "data.look",
    "pool": "tasks.pooling",
    # Not in __all__: scikit-learn is an optional extra, and `from anyorder import *` must not need it.
    "AnyOrderClassifier": "sklearn",
    "AnyOrderDensity": "sklearn",
    "AnyOrderImputer": "sklearn",
    "AnyOrderRegressor": "sklearn",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'anyorder' has no attribute {name!r}")
    return getattr(importlib.import_module(f"anyorder.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*__all__, *_HOMES})
