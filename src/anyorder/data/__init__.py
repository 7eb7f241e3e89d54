"""Tables, texts and images in: each becomes a schema and a flat ``[rows, variables]`` array."""
