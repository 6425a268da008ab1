"""Worlds other than the paper's: few places, late or false labels, people who change."""
