"""Boosted trees: the engine that is grown, not trained."""
