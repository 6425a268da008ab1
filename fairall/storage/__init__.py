"""Files that survive crashes: atomic writes, checkpoints, caches and the folder of a run."""
