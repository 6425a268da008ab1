"""Grids of runs whose results are kept in an Optuna database, shared by every process that works on them."""
