"""anyorder: one any-order autoregressive model, every conditional question.

>>> import anyorder as ao
>>> model = ao.fit(frame, minutes=2, seed=0)
>>> model.given(rooms=6, river="yes")["price"].quantile([0.05, 0.95])
"""

from anyorder.answer import Answer
from anyorder.conditional import Conditional, OrderSpread
from anyorder.errors import UserError
from anyorder.tables import TableModel, fit, load

__version__ = "0.1.0"

__all__ = ["Answer", "Conditional", "OrderSpread", "TableModel", "UserError", "__version__", "fit", "load"]
