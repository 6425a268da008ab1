"""Measures of a run: what its identity covers besides training."""

from fairall.measuring.diagnostics import APART, OPPOSED, READABLE
from fairall.measuring.latent_quality import label_directions

__all__ = ["APART", "OPPOSED", "READABLE", "label_directions"]
