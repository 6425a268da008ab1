"""Periods of a log, and warnings that its policies or its labels have changed between them.

A period is a policy version or, in a log with times only, a quarter of its rows.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from scipy.stats import kstwobign, norm

from fairall.evaluate.estimated.nuisance import Fitted
from fairall.evaluate.log import DecisionLog
from fairall.evaluate.plain import spelt

QUARTERS = 4
SURPRISING = 0.01  # p, of all periods together, below which a change is told
TINY = np.finfo(float).tiny


def numbered(log: DecisionLog) -> tuple[np.ndarray, list[str]]:
    """Number of the period of each row, shape (N,), and their names, versions in the order of first rows."""
    code = np.zeros(len(log), dtype=int)
    if log.policy_version is not None:
        order = np.argsort(np.zeros(len(log)) if log.time is None else log.time, kind="stable")
        code[order], versions = pd.factorize(log.policy_version[order])
        return code, versions.tolist()
    if log.time is None:
        return code, []
    ends = np.unique(np.sort(log.time)[np.linspace(0, len(log), QUARTERS + 1)[1:].astype(int) - 1])
    code = np.searchsorted(ends, log.time)
    times = (log.time[code == k] for k in range(len(ends)))
    return code, [f"{spelt(time.min())} to {spelt(time.max())}" for time in times]


def changes(log: DecisionLog, propensity: Fitted | None, outcome: Fitted | None) -> Iterator[str]:
    """Warnings of a log whose policies or labels have changed.

    Args:
        log: the people.
        propensity: model of the decision, where one is needed.
        outcome: of the label; None if there is none.
    """
    if log.policy_version is None:
        if log.time is not None and log.propensity is None and propensity is not None:
            yield from _changed(log.time, log.accepted - propensity.probability)
        return
    if outcome is None:
        return
    code, names = numbered(log)
    # Σ (y − q) over the revealed labels of a version is about normal if labels do not depend on it.
    error = np.where(log.revealed, np.nan_to_num(log.label) - outcome.probability, 0.0)
    total = np.bincount(code, error)
    deviation = total / np.sqrt(np.maximum(np.bincount(code, error**2), TINY))
    worst = int(np.abs(deviation).argmax())
    p = len(names) * 2.0 * norm.sf(abs(deviation[worst]))
    if p < SURPRISING:
        points = 100.0 * total[worst] / np.bincount(code, log.revealed)[worst]
        yield (
            f"labels of policy version {names[worst]} are positive more often than its features tell by "
            f"{points:+.1f} points (p = {p:.1g}): the label has changed with the versions, or its model "
            "fails; labels of one version then say little of others"
        )


def _changed(time: np.ndarray, error: np.ndarray) -> Iterator[str]:
    """Whether decisions changed with time given the features: the largest deviation of a cumulative sum.

    The sum of the errors d − π (N,) in the order of time, less its straight line, is about a Brownian bridge
    where decisions do not depend on time (Brown, Durbin and Evans 1975, "Techniques for testing the constancy
    of regression relationships over time").
    """
    order = np.argsort(time, kind="stable")
    error = error[order] - error.mean()
    deviation = np.abs(error.cumsum()) / np.sqrt(len(error)) / max(error.std(), TINY)
    most = int(deviation.argmax())
    p = float(kstwobign.sf(deviation[most]))
    if p < SURPRISING:
        yield (
            "decisions on people of equal features changed with time, most about "
            f"{spelt(time[order[most]])} (p = {p:.1g}), and propensities are estimated as averages over "
            "time: if the policy was changed, give policy_version=COLUMN"
        )
