"""Questions to a model and its answers, in the units of the data."""
