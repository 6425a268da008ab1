"""Data sets: tables, their features and splits, and the people made of them."""
