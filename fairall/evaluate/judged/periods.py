"""A log by period: who came, who was accepted, and whether decisions or labels changed on the way.

A period is a policy version or, in a log with times only, a quarter of its rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from fairall.data.drift import Stability, drift_by_column
from fairall.evaluate.estimated.gaps import NOTHING, Interval, gap_interval, interval
from fairall.evaluate.estimated.influence import Estimate, Groups, Sample
from fairall.evaluate.estimated.periods import numbered
from fairall.evaluate.log import DecisionLog
from fairall.tables.features import DISCRETE


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
