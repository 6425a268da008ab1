"""Data sets: tables with features and splits, and people as tensors."""
