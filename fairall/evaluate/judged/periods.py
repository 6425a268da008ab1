"""A log by period: who came, who was accepted, and whether decisions or labels changed on the way.

A period is a policy version or, in a log with times only, a quarter of its rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import kstwobign, norm

from fairall.data.drift import Stability, drift_by_column
from fairall.errors import count
from fairall.evaluate.estimated.gaps import NOTHING, Interval, gap_interval, interval
from fairall.evaluate.estimated.influence import Estimate, Groups, Sample
from fairall.evaluate.estimated.nuisance import Fitted
from fairall.evaluate.log import DecisionLog
from fairall.evaluate.plain import spelt
from fairall.tables.features import DISCRETE

QUARTERS = 4
SURPRISING = 0.01  # p, of all periods together, below which a change is told


class Period(NamedTuple):
    """The rows of a period.

    Attributes:
        name: of the policy version, or the first and last time.
        rows: number of people.
        acceptance: rate.
        groups: acceptance rate by group, of groups with people enough.
        gap: largest difference of these.
        positive: share of positive labels among the known ones.
        drift: by feature, the stability of these people against those of the first period, with p corrected
            for all features and periods.
    """

    name: str
    rows: int
    acceptance: Interval
    groups: dict[str, Interval]
    gap: Interval
    positive: Interval
    drift: dict[str, Stability] = {}  # noqa: RUF012  a new one replaces it


def periods(log: DecisionLog, sample: Sample, smallest_cell: int) -> list[Period]:
    """The periods of a log, versions in the order of their first row; none without versions and times.

    Args:
        log: the people.
        sample: its rows.
        smallest_cell: people of a group below which nothing about them is shown.
    """
    code, names = numbered(log)
    if len(names) < 2:
        return []
    columns = {one.name: (log.cells if one.kind in DISCRETE else log.x)[one.name] for one in log.features}
    columns["group"] = pd.Series(np.array(log.groups)[log.group])
    numeric = {one.name for one in log.features if one.kind not in DISCRETE}
    first, *later = log.people_of(code, len(names))
    drifts = drift_by_column(
        {
            (k, name): (column[first], column[rows], name in numeric)
            for k, rows in enumerate(later, start=1)
            for name, column in columns.items()
        }
    )
    return [
        _period(log, sample, smallest_cell, code == k, name)._replace(
            drift={column: drifts[k, column] for column in columns if k}
        )
        for k, name in enumerate(names)
    ]


def numbered(log: DecisionLog) -> tuple[np.ndarray, list[str]]:
    """Number of the period of each row, shape (N,), and their names."""
    code = np.zeros(len(log), dtype=int)
    if log.policy_version is not None:
        order = np.arange(len(log)) if log.time is None else np.argsort(log.time, kind="stable")
        code[order], versions = pd.factorize(log.policy_version[order])
        return code, versions.tolist()
    if log.time is None:
        return code, []
    ends = np.unique(np.sort(log.time)[np.linspace(0, len(log), QUARTERS + 1)[1:].astype(int) - 1])
    code = np.searchsorted(ends, log.time)
    spans = (log.time[code == k] for k in range(len(ends)))
    return code, [f"{spelt(own.min())} to {spelt(own.max())}" for own in spans]


def _period(log: DecisionLog, sample: Sample, smallest_cell: int, own: np.ndarray, name: str) -> Period:
    """A period with the rows `own` (N,), without its drift."""
    shown = [g for g in range(len(log.groups)) if (own & (log.group == g)).sum() >= smallest_cell]

    def rate(of: np.ndarray, rows: np.ndarray, among: Sample | Groups = sample) -> Estimate:
        """The share of some of the rows."""
        weight = rows.astype(float)
        found = among.mean(np.where(rows, of, 0.0)) / among.mean(weight)
        return found.on(among.support(weight))

    rates = rate(log.accepted, own, sample.by(log.group, len(log.groups)))
    known = own & log.revealed
    positive = interval(rate(log.label, known)) if known.sum() >= smallest_cell else NOTHING
    gap = gap_interval(rates[shown]) if len(shown) > 1 else NOTHING
    by_group = {log.groups[g]: interval(rates, g) for g in shown}
    return Period(name, int(own.sum()), interval(rate(log.accepted, own)), by_group, gap, positive)


def changes(log: DecisionLog, propensity: Fitted | None, outcome: Fitted | None) -> Iterator[str]:
    """Warnings of a log whose policies or labels have changed.

    Args:
        log: the people.
        propensity: model of the decision, where one is needed.
        outcome: of the label; None if there is none.
    """
    if log.policy_version is None:
        if log.time is not None and log.propensity is None and propensity is not None:
            yield from _changed(log, propensity.probability)
        return
    code, names = numbered(log)
    sizes = np.bincount(code)
    for k in np.flatnonzero(np.bincount(code, log.accepted) == 0):
        yield (
            f"nobody was accepted by policy version {names[k]} ({count(int(sizes[k]), 'row')}): what would "
            "have become of its people is known from people of other versions only"
        )
    if outcome is None:
        return
    # Σ (y − q) over the revealed labels of a version is about normal if labels do not depend on it.
    error = np.where(log.revealed, np.nan_to_num(log.label) - outcome.probability, 0.0)
    total, square = np.bincount(code, error), np.bincount(code, error**2)
    deviation = total / np.sqrt(np.maximum(square, np.finfo(float).tiny))
    worst = int(np.abs(deviation).argmax())
    p = len(names) * 2.0 * norm.sf(abs(deviation[worst]))
    if p < SURPRISING:
        points = 100.0 * total[worst] / np.bincount(code, log.revealed)[worst]
        yield (
            f"labels of policy version {names[worst]} are positive {abs(points):.1f} points "
            f"{'more' if points > 0 else 'less'} often than its features tell (p = {p:.1g}): the label has "
            "changed with the versions, or its model fails; labels of one version then say little of others"
        )


def _changed(log: DecisionLog, acceptance: np.ndarray) -> Iterator[str]:
    """Whether decisions changed with time given the features: the largest deviation of a cumulative sum.

    The sum of d − π over the rows in the order of time, less its straight line, is about a Brownian bridge
    where decisions do not depend on time (Brown, Durbin and Evans 1975, "Techniques for testing the constancy
    of regression relationships over time").
    """
    assert log.time is not None
    order = np.argsort(log.time, kind="stable")
    error = (log.accepted - acceptance)[order]
    error = error - error.mean()
    course = np.abs(error.cumsum()) / np.sqrt(len(error)) / max(error.std(), np.finfo(float).tiny)
    most = int(course.argmax())
    p = float(kstwobign.sf(course[most]))
    if p < SURPRISING:
        yield (
            "decisions on people of equal features changed with time, most about "
            f"{spelt(log.time[order[most]])} (p = {p:.1g}), and propensities are estimated as averages over "
            "time: if the policy was changed, give policy_version=COLUMN"
        )
