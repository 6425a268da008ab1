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

SURPRISING = 0.01  # p, of all periods together, below which there is a warning


def numbered(log: DecisionLog) -> tuple[np.ndarray, list[str]]:
    """Number of the period of each row, shape (N,), and their names, versions in the order of first rows."""
    time = np.zeros(len(log)) if log.time is None else log.time
    order = np.argsort(time, kind="stable")
    if log.policy_version is not None:
        code, versions = pd.factorize(log.policy_version[order])
        return code[np.argsort(order)], versions.tolist()
    ends = np.unique([quarter[-1] for quarter in np.array_split(time[order], 4)])
    code = np.searchsorted(ends, time)
    return code, [f"{spelt(time[code == k].min())} to {spelt(end)}" for k, end in enumerate(ends)]


def changes(log: DecisionLog, acceptance: np.ndarray, outcome: Fitted | None) -> Iterator[str]:
    """Warnings of a log whose policies or labels have changed.

    With versions, Σ (y − q) over the revealed labels of one is about normal if labels do not depend on it.
    With times only, the sum of the errors d − π in their order, less its straight line, is about a Brownian
    bridge if decisions do not depend on time (Brown, Durbin and Evans 1975, "Techniques for testing the
    constancy of regression relationships over time").

    Args:
        log: the people.
        acceptance: π of each, estimated where it is not recorded, shape (N,).
        outcome: model of the label; None if there is none.
    """
    version = log.policy_version
    if version is not None and outcome:
        error = pd.Series(log.label - outcome.probability)
        labels = error.groupby(version)
        deviation = (labels.sum() / np.sqrt((error**2).groupby(version).sum())).abs()
        worst = deviation.idxmax()
        p = len(deviation) * 2.0 * norm.sf(deviation.max())
        text = (
            f"labels of policy version {worst} are positive more often than its features tell by "
            f"{100.0 * labels.mean()[worst]:+.1f} points: the label has changed with the "
            "versions, or its model fails; labels of one version then say little of others"
        )
    elif version is None and log.time is not None and log.propensity is None:
        error = pd.Series(log.accepted - acceptance, log.time).sort_index()
        error -= error.mean()
        sums = error.cumsum().abs()
        p = kstwobign.sf(sums.max() / np.linalg.norm(error))
        text = (
            "decisions on people of equal features changed with time, most about "
            f"{spelt(sums.index.values[sums.argmax()])}, and propensities are estimated as "
            "averages over time: if the policy was changed, give policy_version=COLUMN"
        )
    else:
        return
    if p < SURPRISING:
        yield f"{text}; p = {p:.1g}"
