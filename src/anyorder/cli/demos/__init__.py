"""The demonstrations: the main job on data that everyone has."""
