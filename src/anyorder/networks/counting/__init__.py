"""Counting: how often stretches of symbols occur, probabilities from that, and answers given any evidence."""
