"""A file for each question about a log: its estimates, table, figure and sentences."""
