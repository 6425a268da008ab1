"""Processor time, wall time and memory of whole commands and of their parts."""
