"""Measures of a run; their code is part of its identity, that of `fairall.results` is not."""

from fairall.measuring.diagnostics import APART, OPPOSED, READABLE
from fairall.measuring.latent_quality import label_directions

__all__ = ["APART", "OPPOSED", "READABLE", "label_directions"]
