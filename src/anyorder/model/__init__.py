"""The model: one joint distribution that answers every conditional query about its variables."""

from anyorder.model.any_order import AnyOrderModel, layout_of, row_chunks

__all__ = ["AnyOrderModel", "layout_of", "row_chunks"]
