"""Texts: one position of a window a variable."""
