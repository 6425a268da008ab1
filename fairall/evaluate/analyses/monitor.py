"""A policy on a log as it grows, with alarms, and the log by policy version.

At each moment the intervals of `sequences` are about the rows so far. Estimates, symbols and labels are those
of `estimators` and `fairness`, with predictions from earlier moments (`past`), so that cumulative sums give
them at all moments. Intervals of a quantity cover at all moments together with 95 %; different quantities
have 95 % each. They are not intersected over time, since decisions may change, and their mean with them.
Where people have several rows, standard errors are by person; guarantee and bets take rows to be independent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from fairall.data.drift import drift_by_column
from fairall.evaluate.analysis import STABILITY, Analysis, Picture, Record, of_each
from fairall.evaluate.estimated.estimates import Column, Interval, gap_interval
from fairall.evaluate.estimated.estimators import People, clipped_gains
from fairall.evaluate.estimated.fairness import columns
from fairall.evaluate.estimated.past import FIRST_FIT
from fairall.evaluate.estimated.periods import numbered
from fairall.evaluate.models import Models
from fairall.evaluate.plain import spelt
from fairall.measuring.sequences import (
    ALARM,
    LEVEL,
    OBSERVATIONS,
    bernstein_low,
    gap_wealth,
    half_width,
    largest_gap,
)
from fairall.tables.overlap import LEAST_EFFECTIVE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fairall.evaluate.analysis import Shown
    from fairall.evaluate.judgement import Judgement

UTILITY = "utility"
GAPS = "gap of acceptance rates", "gap of true-positive rates"


class Monitor(NamedTuple):
    """A policy at T moments of a log.

    Attributes:
        moments: times, shape (T,).
        rows: until each, likewise.
        courses: by name estimates and ends of the confidence sequences of the utility, also guaranteed, and
            of gaps, where they are not refused, NaN until they begin, shape (3, T).
        alarms: by gap the time from which on it is above ε for certain, where there is one; with an error of
            5 % over all rows together.
    """

    moments: np.ndarray
    rows: np.ndarray
    courses: dict[str, np.ndarray]
    alarms: dict[str, Any]


def watch(judged: Judgement) -> Monitor:
    """Estimate value, rates and gaps of a policy at all moments of a log with times."""
    models = judged.models
    past = models.past
    last = past.last
    log = judged.log.rows(past.order)
    target = judged.target[past.order]
    time = np.asarray(log.time)
    weight = Column(past.weight)
    kept = Column(past.label_weight) if judged.logged else weight * target
    label, outcome = np.nan_to_num(log.label), Column(past.outcome)
    people = People(target, log.revealed, label, weight, kept, outcome, log.stake, log.break_even)
    sums = columns("dr", people)
    stake = people.stake.mean()
    everybody = sums.weight.value
    courses = {}
    alarms = {}
    if judged.refused_value is None:
        gain = [sums.gain.value / stake, everybody, kept.value]
        value, variance, rows = ratio(last, log.person, gain)
        half = half_width(rows) * np.sqrt(variance)
        courses[UTILITY] = stake * np.stack([value, value - half, value + half])
    if judged.guarantee.why is None and not judged.logged:  # the decisions taken may have changed
        courses["guaranteed utility"] = guarantee(people, last)
    # What is divided by what, and the weights of the outcomes that a rate rests on.
    for gap, measure, *parts in (
        (GAPS[0], "dpu", target, everybody, everybody),
        (
            GAPS[1],
            "equal_opportunity",
            sums.accepted_positive.value,
            sums.positive.value,
            past.weight * people.label,
        ),
    ):
        if judged.doubt(measure, "dr")[0]:
            by_group = [ratio(last, log.person, np.stack(parts) * (log.group == g)) for g in models.shown]
            value, variance, rows = np.stack(by_group, 1)
            courses[gap] = np.stack(largest_gap(value, variance, rows[0]))
            if measure == "dpu":  # by betting, after every row
                wealth = gap_wealth(target, log.group, models.shown, models.largest_gap)
                above = np.flatnonzero(wealth >= ALARM)
            else:
                above = last[courses[gap][1] > models.largest_gap]
            if len(above):
                alarms[gap] = time[above[0]]
    return Monitor(time[last], last + 1, courses, alarms)


def ratio(last: np.ndarray, person: np.ndarray | None, parts: Sequence[np.ndarray]) -> np.ndarray:
    """Σ a / Σ b of the rows until each of T moments, with errors by person.

    The variance is Σ (Σ a − ratio·Σ b)² / (Σ b)², with the outer sum over persons and the inner ones over
    their rows, and `OBSERVATIONS` squares more: few rows that are alike look more certain than they are.

    Args:
        last: row of each moment, shape (T,).
        person: of each row, shape (N,); None for a row each.
        parts: a, b, and weights of the outcomes that the ratio rests on, shape (N,) each, NaN where a row
            does not count.

    Returns:
        The ratio, its variance, and the number of rows that count, shape (3, T); NaN until there are
        `FIRST_FIT` rows and the weights have counted as more than `LEAST_EFFECTIVE` equal ones.
    """
    counts = np.isfinite(parts).all(0)
    now = np.where(counts, parts, 0.0)
    after = now if person is None else pd.DataFrame(now.T).groupby(person).cumsum().to_numpy().T
    before = after - now  # of the same person
    first, second = np.triu_indices(2)  # a², a·b, b²
    products = after[first] * after[second] - before[first] * before[second]
    until = np.vstack([now, now[2] ** 2, products, counts]).cumsum(1)[:, last]
    begun = (until[2] ** 2 > LEAST_EFFECTIVE * until[3]) & (last + 1 >= FIRST_FIT)
    until = np.where(np.maximum.accumulate(begun), until, np.nan)
    over, under, _, _, over_over, over_under, under_under, rows = until
    value = over / under
    squares = over_over - 2.0 * value * over_under + value**2 * under_under + OBSERVATIONS
    return np.stack([value, squares / under**2, rows])


def guarantee(people: People, last: np.ndarray) -> np.ndarray:
    """No estimate and an empirical-Bernstein sequence of the value, valid from the first row on, (3, T)."""
    lower, upper = clipped_gains(people)
    cost = people.break_even[0]
    distances = np.stack([lower + cost, 1.0 - cost - upper])
    low, high = bernstein_low(distances, (1.0 - LEVEL) / 2.0)[:, last].clip(0.0)
    return np.stack([np.nan * low, low - cost, 1.0 - cost - high])


def by_version(models: Models) -> Iterator[Record]:
    """Decisions, known labels and drift of each policy version, in the order of first rows."""
    log = models.log
    if log.policy_version is None:
        return
    code, names = numbered(log)
    everybody = models.sample.everybody
    groups = models.sample.by(log.group, len(log.groups))
    periods = [
        {"period": f"version {name}, {n} rows", "version": name}
        for name, n in zip(names, np.bincount(code), strict=True)
    ]
    for k, period in enumerate(periods):
        rows = (code == k).astype(float)
        for what, by, outcome, counted in (
            ("acceptance rate", everybody, log.accepted, rows),
            (GAPS[0], groups, log.accepted, rows),
            ("positive labels", everybody, np.nan_to_num(log.label), rows * log.revealed),
        ):
            share = (by.mean(outcome * counted) / by.mean(counted)).on(by.support(counted))
            share = share[share.support.rows >= models.smallest_cell]
            if len(share.value) > (by is groups):
                value = gap_interval(share) if by is groups else share.interval(0)
                yield period | {"what": what, "value": value}
    first, *later = (log.cells[rows] for rows in log.people_of(code, len(names)))
    drifts = drift_by_column(
        {
            (k, feature.name): (first[feature.name], part[feature.name], not feature.codes)
            for k, part in enumerate(later, 1)
            for feature in log.features
        }
    )
    # The page shows the last one of a version.
    for (k, column), drift in sorted(drifts.items(), key=lambda item: (-item[1].p, item[1].psi)):
        cell = f"{column} {drift.psi:.3f} (p = {drift.p:.2g})"
        yield periods[k] | drift._asdict() | {"what": "drift", "column": column, "value": cell}


def over_time(judged: Judgement) -> list[Record]:
    """Estimates at all moments, of which the page shows the last, and first alarms."""
    moments, rows, courses, alarms = judged.once(watch)
    estimates = [
        {
            "period": "all rows so far",
            "time": spelt(time),
            "rows": n,
            "what": what,
            "value": Interval(*ends) if np.isfinite(ends).any() else "not yet",
        }
        for what, course in courses.items()
        for time, n, *ends in zip(moments, rows, *course, strict=True)
    ]
    first = [{"period": "first alarm", "what": gap, "value": spelt(time)} for gap, time in alarms.items()]
    return estimates + first


def records(shown: Shown) -> Iterator[Record]:
    """What the log says over time, and of each policy version."""
    if shown.log.time is not None:
        yield from of_each(over_time)(shown)
    yield from by_version(shown.first.models)


def draw(shown: Shown) -> Figure:
    """Draw utility and gaps with their confidence sequences, ε, and first alarms; a panel each."""
    from fairall.display.style import GREY, date_axis, handles_of, legend_below
    from fairall.evaluate.drawing import POLICIES, grid

    figure, panels = grid(1 + len(GAPS), height=1.7)
    for axes, what in zip(panels, (UTILITY, *GAPS), strict=True):
        axes.set_title(f"{what} ×100")
        if what in GAPS:
            axes.axhline(100 * shown.first.models.largest_gap, color=GREY, lw=0.7)
        for (policy, judged), colour in zip(shown.evaluations.items(), POLICIES, strict=False):
            moments, _, courses, alarms = judged.once(watch)
            if what in courses:
                estimate, low, high = 100 * courses[what]
                axes.plot(moments, estimate, color=colour, label=policy)
                axes.fill_between(moments, low, high, color=colour, alpha=0.25, lw=0)
            if what in alarms:
                axes.axvline(alarms[what], color=colour, ls=":", lw=1.2)
            if moments.dtype.kind == "M":
                date_axis(axes)
    legend_below(figure, handles_of(panels), 2)
    return figure


MONITOR = Analysis(
    key="monitor",
    section=STABILITY,
    title="Over time, and by policy version ×100",
    note="all rows so far: doubly robust, with 95 % intervals of each quantity that hold at all moments at "
    "once; they begin with 100 rows and, in each group, more than 30 people or labels that count; the files "
    "have all moments. Labels of a policy version without recorded propensities count from its 100th row on. "
    "first alarm: since when a gap is above ε for certain, if it is. version: of the "
    "decisions taken by a policy version, with 95 % intervals; positive labels: their share among the known "
    "ones; drift: population stability index of the column that differs most surely from the first version, "
    "and p of no change, corrected for all columns and versions.",
    records=records,
    line="period",
    column="what",
    picture=Picture(
        key="monitor",
        title="Over time",
        note="Of the rows until each moment, doubly robust, with 95 % confidence sequences, which cover at "
        "all moments at once. Grey: ε. Dotted: first moment at which the gap is above ε for certain.",
        draw=draw,
        there=lambda shown: shown.log.time is not None,
    ),
)
