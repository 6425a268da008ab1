"""Crash-safe storage: atomic writes, checkpoints, caches and the folder of a run."""
