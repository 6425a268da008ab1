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
from fairall.display.format import number
from fairall.evaluate.analysis import STABILITY, Analysis, Picture, Record, text
from fairall.evaluate.estimated.estimates import NOTHING, Column, Estimate, Groups, Interval, gap_interval
from fairall.evaluate.estimated.estimators import People, clipped_gains
from fairall.evaluate.estimated.fairness import MEASURES, columns
from fairall.evaluate.estimated.past import FIRST_FIT
from fairall.evaluate.estimated.periods import numbered
from fairall.evaluate.models import Models
from fairall.evaluate.plain import plain, spelt
from fairall.measuring.sequences import (
    ALARM,
    LEVEL,
    OBSERVATIONS,
    bernstein_low,
    gap_wealth,
    half_width,
    largest_gap,
)
from fairall.tables.features import DISCRETE
from fairall.tables.overlap import LEAST_EFFECTIVE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fairall.evaluate.analysis import Shown
    from fairall.evaluate.judgement import Judgement

UTILITY, GUARANTEED = "utility", "guaranteed utility"
ACCEPTANCE, POSITIVE, DRIFT = "acceptance rate", "positive labels", "drift"
GAPS = "gap of acceptance rates", "gap of true-positive rates"
CHOSEN = 5  # moments of the page's table
EARLY = f"it begins with {FIRST_FIT} rows and, in each group, {LEAST_EFFECTIVE} people or labels that count"


class Monitor(NamedTuple):
    """A policy at T moments of a log.

    Attributes:
        moments: times, shape (T,).
        rows: until each, likewise.
        courses: by name the T intervals of the utility, also guaranteed, of rates by group, and of gaps.
        alarms: by gap the time from which on it is above ε for certain, None without one, and that in words;
            with an error of 5 % over all rows together.
    """

    moments: np.ndarray
    rows: np.ndarray
    courses: dict[str, list[Interval]]
    alarms: dict[str, tuple[Any, str]]


def watch(judged: Judgement) -> Monitor | None:
    """Estimate value, rates and gaps of a policy at all moments; None for a log without times."""
    models, past = judged.models, judged.models.past
    if past is None:
        return None
    last, target = past.last, judged.target[past.order]
    log, weight = judged.log.rows(past.order), Column(past.weight)
    kept = Column(past.label_weight) if judged.logged else weight * target
    people = People.of(log, target, weight, kept, Column(past.outcome))
    sums, time, everybody = columns("dr", people), np.asarray(log.time), np.ones(len(log))
    gain = ratio(last, log.person, [sums.gain.value, everybody, kept.value], people.stake.mean())
    changing = "the decisions may have changed, and the value with them"
    refused = changing if judged.logged else judged.guarantee.why
    courses = {
        UTILITY: course(sequence(*gain), judged.refused_value is None, judged.refused_value),
        GUARANTEED: course(guarantee(people, last), refused is None, refused),
    }
    alarms, labels = {}, past.weight * people.label
    # What is divided by what, and the weights of the outcomes that a rate rests on.
    parts = {
        "dpu": [target, everybody, everybody],
        "equal_opportunity": [sums.accepted_positive.value, sums.positive.value, labels],
    }
    for measure, of_rows in parts.items():
        ratios, rate, epsilon = [], MEASURES[measure].rate, models.largest_gap
        for g in models.shown.tolist():
            ratios.append(ratio(last, log.person, np.stack(of_rows) * (log.group == g)))
            rates = np.clip(sequence(*ratios[-1]), 0.0, 1.0)
            courses[f"{rate}, {log.groups[g]}"] = course(rates, *judged.doubt(measure, "dr", g))
        gaps, above = np.full((3, len(last)), np.nan), last[:0]
        may, why = judged.doubt(measure, "dr")
        if may:
            values, variances, rows = np.stack(ratios, axis=1)
            gaps = np.stack(largest_gap(values, variances, rows[0]))
            above = last[gaps[1] > epsilon]
            if measure == "dpu":  # by betting, after every row
                above = np.flatnonzero(gap_wealth(target, log.group, models.shown, epsilon) >= ALARM)
        gap = f"gap of {rate}s"
        courses[gap], alarms[gap] = course(gaps, may, why), (None, "none")
        for row in above[:1]:
            alarms[gap] = time[row], f"{spelt(time[row])}, after {row + 1} rows"
    return Monitor(time[last], last + 1, courses, alarms)


def ratio(
    last: np.ndarray, person: np.ndarray | None, parts: Sequence[np.ndarray], scale: float = 1.0
) -> np.ndarray:
    """Σ a / Σ b of the rows until each of T moments, with errors by person.

    The variance is Σ (Σ a − ratio·Σ b)² / (Σ b)², with the outer sum over persons and the inner ones over
    their rows, and `OBSERVATIONS` squares more: few rows that are alike look more certain than they are.

    Args:
        last: row of each moment, shape (T,).
        person: of each row, shape (N,); None for a row each.
        parts: a, b, and weights of the outcomes that the ratio rests on, shape (N,) each, NaN where a row
            does not count.
        scale: of an outcome.

    Returns:
        The ratio, NaN until there are `FIRST_FIT` rows and the weights have counted as `LEAST_EFFECTIVE`
        equal ones; its variance; and the number of rows that count, shape (3, T).
    """

    def until(values: np.ndarray) -> np.ndarray:
        return np.cumsum(values, axis=-1)[..., last]

    counts = np.all(np.isfinite(parts), axis=0)
    now = np.where(counts, parts, 0.0)
    after = now if person is None else pd.DataFrame(now.T).groupby(person).cumsum().to_numpy().T
    before, first, second = after - now, [0, 0, 1], [0, 1, 1]  # of the same person, and pairs of parts
    squares, products, others = until(after[first] * after[second] - before[first] * before[second])
    over, under, total = until(now)
    under = np.where(under > 0, under, np.nan)
    value = over / under
    left = np.maximum(squares - 2 * value * products + value**2 * others, 0.0)
    enough = (total > 0) & (total**2 >= LEAST_EFFECTIVE * until(now[2] ** 2))
    begun = np.maximum.accumulate(enough) & (last + 1 >= FIRST_FIT)
    variance = (left + OBSERVATIONS * scale**2) / under**2
    return np.stack([np.where(begun, value, np.nan), variance, until(counts)])


def sequence(value: np.ndarray, variance: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """A `ratio` and the ends of its confidence sequence, shape (3, T)."""
    half = half_width(np.maximum(rows, 1.0)) * np.sqrt(variance)
    return np.stack([value, value - half, value + half])


def guarantee(people: People, last: np.ndarray) -> np.ndarray:
    """No estimate and an empirical-Bernstein sequence of the value, valid from the first row on, (3, T)."""
    gains, cost, error = clipped_gains(people), people.break_even[0], (1.0 - LEVEL) / 2.0
    distances = np.stack([gains[0] + cost, 1.0 - cost - gains[1]])
    low, high = np.maximum(bernstein_low(distances, error)[:, last], 0.0)
    return np.stack([np.full_like(low, np.nan), low - cost, 1.0 - cost - high])


def course(ends: np.ndarray, may: bool, why: str | None) -> list[Interval]:
    """Intervals (3, T), or the reasons why they may not be shown, or are NaN."""
    lacking = NOTHING.without_ends(EARLY if may else why)
    return [Interval(*row) if may and row[1] == row[1] else lacking for row in ends.T.tolist()]


def by_version(models: Models) -> Iterator[Record]:
    """Decisions, known labels and drift of each policy version, in the order of first rows."""
    log, sample, least = models.log, models.sample, models.smallest_cell
    if log.policy_version is None:
        return
    code, names = numbered(log)
    groups, label = sample.by(log.group, len(log.groups)), np.nan_to_num(log.label)
    numeric = {one.name: one.kind not in DISCRETE for one in log.features} | {"group": False}
    cells = log.cells.assign(group=np.array(log.groups)[log.group])
    parts = [cells[part] for part in log.people_of(code, len(names))]
    for k, name in enumerate(names):
        rows = code == k
        n = int(rows.sum())
        period = {"period": f"version {name}, {n} rows", "version": name, "rows": n}
        rates, large = share(groups, log.accepted, rows), np.bincount(log.group[rows]) >= least
        values = {f"{ACCEPTANCE}, {log.groups[g]}": rates.interval(g) for g in np.flatnonzero(large).tolist()}
        if len(values) > 1:
            values[GAPS[0]] = gap_interval(rates[np.flatnonzero(large)])
        for what, outcome, counted in (
            (ACCEPTANCE, log.accepted, rows),
            (POSITIVE, label, rows & log.revealed),
        ):
            if counted.sum() >= least:
                values[what] = share(sample.everybody, outcome, counted).interval(0)
        yield from (period | {"what": what, "value": value} for what, value in values.items())
        pairs = {column: (parts[0][column], parts[k][column], kind) for column, kind in numeric.items()}
        drifts = drift_by_column(pairs).items() if k else ()
        # The page shows the last one.
        for column, drift in sorted(drifts, key=lambda item: (-item[1].p, item[1].psi)):
            p = min(1.0, drift.p * (len(parts) - 1))
            value = f"{column} {drift.psi:.3f} (p = {p:.2g})"
            yield period | plain(drift) | {"what": DRIFT, "column": column, "p": p, "value": value}


def share(groups: Groups, outcome: np.ndarray, rows: np.ndarray) -> Estimate:
    """The mean of an outcome (N,) over some of the rows (N,), by group, shape (G,)."""
    weight = rows.astype(float)
    return (groups.mean(outcome * weight) / groups.mean(weight)).on(groups.support(weight))


def watched(shown: Shown) -> dict[str, Monitor]:
    """Each policy over time by its name; none in a log without times."""
    known = {name: evaluation.once(watch) for name, evaluation in shown.evaluations.items()}
    return {name: monitor for name, monitor in known.items() if monitor is not None}


def records(shown: Shown) -> Iterator[Record]:
    """Estimates of each policy at all moments, some of which the page shows, alarms, and each version."""
    for policy, (moments, rows, courses, alarms) in watched(shown).items():
        chosen = np.linspace(0, len(rows) - 1, CHOSEN).round()
        for k, n in enumerate(rows.tolist()):
            time = spelt(moments[k])
            period = {"policy": policy, "period": f"until {time}, {n} rows", "time": time, "rows": n}
            for what, values in courses.items():
                hidden = {} if k in chosen else {"value": None} | plain(values[k])
                yield period | {"what": what, "value": values[k]} | hidden
        for gap, (_, alarm) in alarms.items():
            yield {"policy": policy, "period": "first alarm", "what": gap, "value": alarm}
    yield from by_version(shown.first.models)


def told(shown: Shown) -> Iterator[str]:
    """The last intervals, and the first alarms."""
    for policy, (moments, _, courses, alarms) in watched(shown).items():
        epsilon = number(shown.first.models.largest_gap)
        known = [f"{what}: {text(values[-1], {})}" for what, values in courses.items() if not values[-1].why]
        known += [f"{gap} above ε = {epsilon}: first alarm {alarm}" for gap, (_, alarm) in alarms.items()]
        yield (
            f"{policy}: over all rows until {spelt(moments[-1])}, ×100, with 95 % intervals that hold at "
            f"every moment at once: {'; '.join(known)}"
        )


def draw(shown: Shown) -> Figure:
    """Draw utility and gaps with their confidence sequences, ε, and first alarms; a panel each."""
    from fairall.display.style import GREY, date_axis, legend_below
    from fairall.evaluate.drawing import POLICIES, band, grid

    figure, panels = grid(1 + len(GAPS), height=1.7)
    handles: dict[str, Any] = {}
    for colour, (policy, (moments, _, courses, alarms)) in zip(
        POLICIES, watched(shown).items(), strict=False
    ):
        lines = {what: np.array([value[:3] for value in values]).T for what, values in courses.items()}
        for axes, what in zip(panels, (UTILITY, *GAPS), strict=True):
            estimate, low, high = lines[what]
            handles[policy] = band(axes, moments, estimate, low, high, colour)
            axes.set_title(f"{what} ×100")
            if moments.dtype.kind == "M":
                date_axis(axes)
        if not courses[GUARANTEED][-1].why:
            ends = 100 * lines[GUARANTEED][1:].T
            handles["guaranteed"] = panels[0].plot(moments, ends, color=colour, ls="--", lw=0.7)[0]
        for axes, (time, _) in zip(panels[1:], alarms.values(), strict=True):
            handles["ε"] = axes.axhline(100 * shown.first.models.largest_gap, color=GREY, lw=0.7)
            if time is not None:
                handles["first alarm"] = axes.axvline(time, color=colour, ls=":", lw=1.2)
    legend_below(figure, handles, 4)
    return figure


MONITOR = Analysis(
    key="monitor",
    section=STABILITY,
    title="Over time, and by policy version ×100",
    note="until: of the rows so far, doubly robust, with 95 % intervals of each quantity that hold at all "
    "moments at once; the files have all moments, and rates by group. version: of the decisions taken by a "
    "policy version, with 95 % intervals; positive labels: their share among the known ones; drift: "
    "population stability index of the column that differs most surely from the first version, and p of no "
    "change, corrected for all columns and versions.",
    records=records,
    line="period",
    column="what",
    columns={what: what for what in (UTILITY, GUARANTEED, *GAPS, ACCEPTANCE, POSITIVE, DRIFT)},
    picture=Picture(
        key="monitor",
        title="Over time",
        note="Of the rows until each moment, doubly robust, with 95 % confidence sequences, which cover at "
        "all moments at once. Dashed: valid from the first row on if the propensities are right. Dotted: "
        "first moment at which the gap is above ε for certain.",
        draw=draw,
        there=lambda shown: shown.log.time is not None,
    ),
    told=told,
)
