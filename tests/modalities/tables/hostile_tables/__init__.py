"""Tables as people have them, and what must become of each: one function a table."""

from __future__ import annotations

from hostile_tables import dtypes, missing, names_and_shapes, numbers, objects, texts, times
from hostile_tables.record import TABLES, with_column

__all__ = ["TABLES", "dtypes", "missing", "names_and_shapes", "numbers", "objects", "texts", "times", "with_column"]
