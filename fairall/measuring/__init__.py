"""Measures of a run: what its identity covers besides training."""
