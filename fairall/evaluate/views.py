"""Columns whose sums within groups give all rates of `fairness`, in each view of the labels.

The views differ in who counts and with which label, in the symbols of `estimators`:

- naive: people whose label is revealed, as they are.
- ips: the same, weighted by r/p, so that rates are self-normalised (Hájek 1971).
- dr: all people, with the doubly robust pseudo-label q + r·(y − q)/p, which may leave [0, 1], as may rates of
  small groups.
- everyone: all people and no label, for rates that need none.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from fairall.evaluate.estimators import Rows
from fairall.evaluate.intervals import Columns, stacked

View = Literal["naive", "ips", "dr", "everyone"]
VIEWS: tuple[View, ...] = ("naive", "ips", "dr")  # those that need labels


def view_columns(
    view: View, rows: Rows, score: np.ndarray, *, score_slope: np.ndarray | None = None
) -> Columns:
    """Columns w, w·a, w·y, w·a·y and w·score.

    Args:
        view: which weight and label.
        rows: the people.
        score: of calibration, shape (N,).
        score_slope: its derivative by the log odds of the propensity, shape (N,); None for 0.
    """
    a, y, q = rows.target, rows.label, rows.outcome
    zero = np.zeros_like(a)
    slope = zero if score_slope is None else score_slope
    if view == "everyone":
        one = zero + 1.0
        return Columns(stacked([one, a, zero, zero, score]), stacked([zero, zero, zero, zero, slope]))
    if view == "naive":
        r = rows.revealed.astype(float)
        return Columns(stacked([r, r * a, r * y, r * a * y, r * score]), stacked([zero] * 4 + [r * slope]))
    inverse, weight, moves, weight_moves = rows.inverse, rows.weight, rows.inverse_slope, rows.weight_slope
    if view == "ips":
        return Columns(
            stacked([inverse, weight, inverse * y, weight * y, inverse * score]),
            stacked([moves, weight_moves, moves * y, weight_moves * y, moves * score + inverse * slope]),
        )
    error, q_slope = y - q, rows.outcome_slope
    return Columns(
        stacked([zero + 1.0, a, q + inverse * error, a * q + weight * error, score]),
        stacked([zero, zero, moves * error, weight_moves * error, slope]),
        stacked([zero, zero, q_slope * (1.0 - inverse), q_slope * (a - weight), zero]),
    )
