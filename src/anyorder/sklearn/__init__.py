"""scikit-learn estimators around a table model, for pipelines and cross-validation: one estimator a file.

Thin wrappers, whose every answer is one of the fitted :class:`~anyorder.modalities.tables.model.TableModel`.
"""

from anyorder.sklearn.base import TableEstimator
from anyorder.sklearn.classifier import AnyOrderClassifier
from anyorder.sklearn.density import AnyOrderDensity
from anyorder.sklearn.imputer import AnyOrderImputer
from anyorder.sklearn.regressor import AnyOrderRegressor

__all__ = ["AnyOrderClassifier", "AnyOrderDensity", "AnyOrderImputer", "AnyOrderRegressor", "TableEstimator"]
