"""Data sets built from raw files that cannot be redistributed."""
