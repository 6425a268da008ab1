"""Estimates from a log: models of decisions and labels, values, rates, gaps and bounds, with their errors."""
