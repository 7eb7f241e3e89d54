"""How a model learns: objectives, rows, the loop."""
