"""Data sets made from raw files that cannot be redistributed."""
