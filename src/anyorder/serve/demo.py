"""The sample model: the wines of scikit-learn's own data, fitted in a few seconds."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from anyorder.errors import UserError

if TYPE_CHECKING:
    from anyorder.modalities.tables.model import TableModel


def demo_model() -> TableModel:
    """A model of 178 wines: thirteen measurements and the cultivar. Coarse, since it has to be there at once."""
    try:
        from sklearn.datasets import load_wine
    except ImportError:
        raise UserError("the sample model needs scikit-learn: pip install 'anyorder[sklearn]'") from None
    from anyorder.modalities.tables.fit import fit

    data = load_wine(as_frame=True)
    cultivars = [f"cultivar {1 + number}" for number in data.target]
    frame = data.data.rename(columns=lambda name: name.replace("od280/od315_of_diluted_wines", "od280_od315"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # it could be better: that is known
        return fit(frame.assign(cultivar=cultivars), minutes=0.05, seed=0, progress=False, config={"folds": 1})
