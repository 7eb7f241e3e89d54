"""The pieces that networks are made of."""
