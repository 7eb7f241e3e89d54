"""A small corpus and the quickest training of a text, for tests that need a model and not a good one."""

from __future__ import annotations

QUICK = {"training": {"minutes": None, "steps": 6, "threads": 1, "batch": 8, "validation_queries": 8}}
CORPUS = "the quick brown fox jumps over the lazy dog. " * 40
