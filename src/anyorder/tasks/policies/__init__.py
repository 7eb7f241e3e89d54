"""Policies: which action, given the state, and given whatever part of the action somebody has decided already."""
