"""Evaluations as sentences, tables, figures and a page."""
