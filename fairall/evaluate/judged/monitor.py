"""A policy on a log as it grows: estimates valid at every moment at once, and alarms.

At each moment the intervals of `sequences` are about the rows so far. Estimates, symbols and labels are those
of `estimators` and `fairness`, with predictions from earlier moments (`past`), so that cumulative sums give
them at all moments. Intervals of a quantity cover at all moments together with 95 %; different quantities
have 95 % each. They are not intersected over time, since decisions may change, and their mean with them.
Where people have several rows, standard errors are by person; guarantee and bets take rows to be independent.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from fairall.evaluate.estimated.estimators import People, clipped_gains
from fairall.evaluate.estimated.fairness import MEASURES, Sums, columns
from fairall.evaluate.estimated.gaps import Interval
from fairall.evaluate.estimated.influence import Column
from fairall.evaluate.estimated.past import FIRST_FIT, few_rows
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
from fairall.tables.overlap import LEAST_EFFECTIVE

if TYPE_CHECKING:
    from fairall.evaluate.evaluation import Evaluation

RATES = ("dpu", "equal_opportunity")  # whose rates and gaps are watched


class Course(NamedTuple):
    """An estimate with its confidence sequence at T moments, NaN where there is none.

    Attributes:
        estimate: shape (T,).
        low: lower ends.
        high: upper ends.
        why: the reason why there is no interval at the last moment.
    """

    estimate: np.ndarray
    low: np.ndarray
    high: np.ndarray
    why: str | None = None

    def at(self, moment: int) -> Interval:
        """The interval at a moment."""
        low, high = float(self.low[moment]), float(self.high[moment])
        early = "there are too few people or labels yet" if np.isnan(low) else None
        return Interval(float(self.estimate[moment]), low, high, self.why or early)


class Alarm(NamedTuple):
    """Whether a gap is above ε, with an error of 5 % over all moments together.

    Attributes:
        time: of the first alarm; None without one.
        rows: until then.
        why: the reason why there can be none.
    """

    time: Any
    rows: int | None
    why: str | None = None


class Monitor:
    """A judged policy of a log with times, at all moments.

    Args:
        judged: the policy.
    """

    def __init__(self, judged: Evaluation) -> None:
        assert judged.models.past is not None
        self.judged, self.past, self.models = judged, judged.models.past, judged.models
        self.log, target = judged.log.rows(self.past.order), judged.target[self.past.order]
        assert self.log.time is not None
        self.time = self.log.time
        kept = self.past.label_weight if judged.logged else self.past.weight * target
        columns = (Column(one) for one in (self.past.weight, kept, self.past.outcome))
        self.people = People.of(self.log, target, *columns)

    @property
    def moments(self) -> np.ndarray:
        """Times, shape (T,)."""
        return self.time[self.past.last]

    @cached_property
    def value(self) -> Course:
        """The doubly robust value of the rows so far."""
        why = self.judged.refused_value or few_rows(len(self.log))
        if why is not None:
            return self._nothing(why)
        counts, gain = np.isfinite(self.people.kept.value), self._columns.gain.value
        stake = self.people.stake.mean()
        mean, variance = self._ratio(gain, np.ones_like(gain), counts, stake**2)
        labels = self._started(self.people.kept.value, counts)
        return self._course(
            mean, variance, labels, f"the log has fewer than {LEAST_EFFECTIVE} labels that count", counts
        )

    @cached_property
    def guarantee(self) -> Course:
        """An empirical-Bernstein sequence of the value of a target policy, valid from the first row on."""
        cost, why = self.log.cost, self.judged.refused_guarantee
        if self.judged.logged:
            changed = "the decisions may have changed, and the value with them"
            why = self.judged.refused_value or changed
        if why is not None:
            return self._nothing(why)
        assert cost is not None
        lower, upper = clipped_gains(self.people)
        error, most = (1.0 - LEVEL) / 2.0, 1.0 - cost
        low = bernstein_low(lower + cost, error)[self.past.last] - cost
        high = most - bernstein_low(most - upper, error)[self.past.last]
        return Course(np.full(len(low), np.nan), np.maximum(low, -cost), np.minimum(high, most))

    @cached_property
    def rates(self) -> dict[str, dict[str, Course]]:
        """Acceptance and true-positive rate of the rows so far, by shown group."""
        return {name: {self.log.groups[g]: self._rate(name, g) for g in self.models.shown} for name in RATES}

    @cached_property
    def gaps(self) -> dict[str, Course]:
        """Largest difference of each rate between shown groups."""
        return {name: self._gap(name) for name in RATES}

    @cached_property
    def alarms(self) -> dict[str, Alarm]:
        """First moments at which each gap is above ε for certain.

        Of acceptance by betting, after every row; of the true-positive rate by its confidence sequence.
        """
        found, epsilon = {}, self.models.largest_gap
        for name, gap in self.gaps.items():
            at = self.past.last[gap.low > epsilon]
            if name == "dpu" and self.judged.doubt(name, "dr")[0]:
                wealth = gap_wealth(self.people.target, self.log.group, self.models.shown, epsilon)
                at = np.flatnonzero(wealth >= ALARM)
            found[name] = Alarm(self.time[at[0]], int(at[0]) + 1) if len(at) else Alarm(None, None, gap.why)
        return found

    def named(self) -> dict[str, Course]:
        """All confidence sequences, by what they are about."""
        found = {"utility": self.value, "guaranteed utility": self.guarantee}
        for name in RATES:
            rate = MEASURES[name].rate
            found |= {f"{rate}, {group}": own for group, own in self.rates[name].items()}
            found[f"gap of {rate}s"] = self.gaps[name]
        return found

    def to_plain(self) -> dict[str, Any]:
        """The content of evaluation.json."""
        alarms = {name: one._replace(time=spelt(one.time)) for name, one in self.alarms.items()}
        return plain(
            {
                "moments": [spelt(time) for time in self.moments],
                "rows": self.past.last + 1,
                "largest_gap": self.models.largest_gap,
                "value": self.value,
                "guarantee": self.guarantee._asdict() | {"estimate": None},
                "rates": self.rates,
                "gaps": self.gaps,
                "alarms": {name: {"time": None, "rows": None} | plain(one) for name, one in alarms.items()},
            }
        )

    @cached_property
    def _columns(self) -> Sums:
        return columns("dr", self.people)

    def _nothing(self, why: str) -> Course:
        nothing = np.full(len(self.moments), np.nan)
        return Course(nothing, nothing, nothing, why)

    def _so_far(self, values: np.ndarray) -> np.ndarray:
        """Sums over the rows until each moment, shape (T,)."""
        return np.cumsum(values)[self.past.last]

    def _ratio(
        self, over: np.ndarray, under: np.ndarray, rows: np.ndarray, square: float = 1.0
    ) -> tuple[np.ndarray, np.ndarray]:
        """Σ over / Σ under and its variance at each moment, shape (T,), NaN without a positive Σ under."""
        over, under = np.where(rows, over, 0.0), np.where(rows, under, 0.0)
        below = self._so_far(under)
        below = np.where(below > 0, below, np.nan)
        ratio = self._so_far(over) / below
        squares, products, others = (
            self._so_far(one * (other + self._of_person(other)) + self._of_person(one) * other)
            for one, other in ((over, over), (over, under), (under, under))
        )
        left = np.maximum(squares - 2 * ratio * products + ratio**2 * others, 0.0)
        return ratio, (left + OBSERVATIONS * square) / below**2

    def _of_person(self, values: np.ndarray) -> np.ndarray:
        """Sums over earlier rows of the same person, whose errors depend on each other, shape (N,)."""
        if self.log.person is None:
            return np.zeros(len(values))
        return (pd.Series(values).groupby(self.log.person).cumsum() - values).to_numpy()

    def _started(self, weights: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Whether weights have counted as `LEAST_EFFECTIVE` equal ones at a moment so far, shape (T,).

        Never before `FIRST_FIT` rows.
        """
        weights = np.where(rows, weights, 0.0)
        squares = self._so_far(weights**2)
        effective = self._so_far(weights) ** 2 / np.where(squares > 0, squares, np.inf)
        return np.maximum.accumulate(effective >= LEAST_EFFECTIVE) & (self.past.last + 1 >= FIRST_FIT)

    def _course(
        self,
        estimate: np.ndarray,
        variance: np.ndarray,
        started: np.ndarray,
        lacking: str,
        rows: np.ndarray,
    ) -> Course:
        half = half_width(np.maximum(self._so_far(rows), 1.0))
        half = np.where(started, half * np.sqrt(variance), np.nan)
        why = None if started[-1] else lacking
        return Course(np.where(started, estimate, np.nan), estimate - half, estimate + half, why)

    def _of_rate(self, name: str, code: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """A rate of a group, its variance, whether it has started, and the rows (N,) that count."""
        members, of = self.log.group == code, self._columns
        if name == "dpu":
            one = np.ones(len(members))
            return *self._ratio(of.accepted.value, one, members), self._started(one, members), one > 0
        counts = np.isfinite(of.positive.value) & np.isfinite(of.accepted_positive.value)
        members = members & counts
        labels = self._started(self.people.weight.value * self.people.label, members)
        return *self._ratio(of.accepted_positive.value, of.positive.value, members), labels, counts

    def _lacking(self, name: str, code: int) -> str:
        what = "people" if name == "dpu" else "positive labels that count"
        return f"group {self.log.groups[code]} has fewer than {LEAST_EFFECTIVE} {what}"

    def _rate(self, name: str, code: int) -> Course:
        if (why := self._refused(name, code)) is not None:
            return self._nothing(why)
        rate, variance, started, rows = self._of_rate(name, code)
        found = self._course(rate, variance, started, self._lacking(name, code), rows)
        return found._replace(low=np.clip(found.low, 0.0, 1.0), high=np.clip(found.high, 0.0, 1.0))

    def _gap(self, name: str) -> Course:
        if (why := self._refused(name)) is not None:
            return self._nothing(why)
        codes = self.models.shown.tolist()
        rates, variances, started, counts = zip(*(self._of_rate(name, code) for code in codes), strict=True)
        known = np.where(started, rates, np.nan)
        rows = self._so_far(counts[0])  # the same of all groups
        late = (self._lacking(name, code) for code, one in zip(codes, started, strict=True) if not one[-1])
        return Course(*largest_gap(known, np.stack(variances), rows), next(late, None))

    def _refused(self, name: str, code: int | None = None) -> str | None:
        """Why there is no rate of a group or, without a group, no gap."""
        may, why = self.judged.doubt(name, "dr", code)
        return few_rows(len(self.log)) if may else why or ""
