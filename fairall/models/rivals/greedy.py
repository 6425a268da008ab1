"""Greedy decisions by a classifier of the accepted people."""

from __future__ import annotations

from fairall.models.classifier import Remembering


class Greedy(Remembering):
    """Cross-entropy on all accepted people so far, unweighted; accepts where p(ỹ = 1 | x, s) ≥ c.

    Where it rejects it never learns that it is wrong: with `exploration=none` false rejections last. Adam
    starts anew at every time step, as in the comparisons of PLOT and AdOpt.
    """

    weighs_labels = True
    two_groups = False
    takes_amounts = True
    fresh_adam = True
