"""Hyperparameter studies (sweeps) with Optuna."""
