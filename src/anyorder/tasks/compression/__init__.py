"""Lossless compression by the model's own probabilities: texts and the rows of tables in as few bytes as it can."""

from anyorder.tasks.compression.tables import compress_table, decompress_table
from anyorder.tasks.compression.texts import compress_text, decompress_text

__all__ = ["compress_table", "compress_text", "decompress_table", "decompress_text"]
