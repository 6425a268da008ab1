"""A policy on the log of another one: what can be estimated, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from fairall.evaluate import checks
from fairall.evaluate.checks import Misfit
from fairall.evaluate.estimated import bounds as limits
from fairall.evaluate.estimated.bounds import Limits
from fairall.evaluate.estimated.estimates import (
    NOTHING,
    Estimate,
    Groups,
    Interval,
    Sample,
    gap_interval,
    lacking,
)
from fairall.evaluate.estimated.estimators import (
    ESTIMATORS,
    LABELS,
    People,
    guaranteed_interval,
    value_support,
)
from fairall.evaluate.estimated.fairness import MEASURES, VIEWS, View, columns, rates, support
from fairall.evaluate.estimated.officers import OFFICERS
from fairall.evaluate.estimated.periods import changes
from fairall.evaluate.log import DecisionLog
from fairall.evaluate.models import NO_MODEL, Models
from fairall.tables.overlap import LEAST_EFFECTIVE, effective_sample_size

T = TypeVar("T")
DISAGREEING = 3.0  # standard errors between two estimators
LIKELY = {
    "ips": "doubt the propensities: weighted people with labels may be unlike all people, see their balance",
    "dm": "the outcome model fails among the people whom the policy accepts",
}
BY_LABEL = "positive", "negative"  # `labels` of measures about people of one label, accepted or not


@dataclass(frozen=True)
class Judgement:
    """A policy on a log: estimates about it, and why some are refused.

    Attributes:
        models: of the log.
        policy: its name.
        target: its acceptance probabilities, shape (N,).
        logged: whether it is the policy of the log.
        notes: on the policy.
        rule: how its probabilities become acceptances, in words.
    """

    models: Models
    policy: str
    target: np.ndarray
    logged: bool = False
    notes: tuple[str, ...] = ()
    rule: str = ""

    def once(self, compute: Callable[[Judgement], T]) -> T:
        """What a function of an evaluation gives of this one, computed once."""
        if compute not in self._known:
            self._known[compute] = compute(self)
        return self._known[compute]

    @cached_property
    def _known(self) -> dict[Callable[[Judgement], Any], Any]:
        return {}

    @property
    def log(self) -> DecisionLog:
        """The log."""
        return self.models.log

    @property
    def sample(self) -> Sample:
        """The rows of the log."""
        return self.models.sample

    @property
    def by_group(self) -> Groups:
        """The rows by their groups."""
        return self.sample.by(self.log.group, len(self.log.groups))

    @cached_property
    def people(self) -> People:
        """What the estimators see of the log's people."""
        people = self.with_target(self.target)
        return replace(people, kept=self.models.label_weight) if self.logged else people

    def with_target(self, target: np.ndarray) -> People:
        """The log's people, judged by other acceptance probabilities (N,)."""
        models = self.models
        return People.of(self.log, target, models.weight, models.weight * target, models.outcome_column)

    @property
    def corrected(self) -> View:
        """The view whose labels are of all people: `dr`, without a model of the label `ips`."""
        return "dr" if self.models.outcome else "ips"

    # Values and their refusals.

    @cached_property
    def refused(self) -> str | None:
        """What cannot be estimated, and why; None where everything can."""
        return self.refused_value or (self.refused_rates and f"no rates by label: {self.refused_rates}")

    @cached_property
    def refused_value(self) -> str | None:
        """Why the value cannot be estimated; None where it can."""
        log, models = self.log, self.models
        if not log.revealed.any():
            return "the log has no labels: only acceptance rates are known"
        if self.target.sum() <= 0 or (self.logged and models.labelled is None):  # 0, or observed
            return None
        reason, estimate = None, self.value(self.corrected)
        if not self.logged:
            reason = models.impossible
            if not models.separable:  # else residuals of decision and policy hold the same error of the model
                reason = reason or checks.knows_decision(log, models.acceptance, self.target, models.seed)
        kept, possible = self.people.kept.value, limits.value_bounds(self.people, self.labels(), self.sample)
        reason = reason or self.lacking(self.target, kept, "whom the policy accepts", estimate)
        for name in () if self.logged else ("ips", self.corrected):
            reason = reason or checks.outside(self.value(name), possible, LABELS[name])
        return reason

    def lacking(self, wanted: np.ndarray, weight: np.ndarray, whom: str, estimate: Estimate) -> str | None:
        """`checks.lacking`, for an estimate that people of weight `wanted` enter."""
        models, error = self.models, float(estimate.error / self.log.stake.mean())
        chance = models.acceptance * models.known
        return checks.lacking(self.log, chance, models.separable, wanted, weight, whom, error)

    def refused_estimator(self, name: str) -> str | None:
        """Why the value has no estimate of that name; None where it has."""
        needs_model = name not in ("ips", "snips") and self.models.outcome is None
        return self.refused_value or (NO_MODEL if needs_model else None)

    def value(self, estimator: str) -> Estimate:
        """An estimate of the value; 0 where the policy accepts nobody."""
        people, nobody = self.people, self.target.sum() <= 0
        estimate = self.sample.mean(self.target) if nobody else ESTIMATORS[estimator](people, self.sample)
        return estimate.on(value_support(people, people.kept.value, self.sample))

    @cached_property
    def values(self) -> dict[str, Interval]:
        """The value by estimator."""
        refused = {name: self.refused_estimator(name) for name in ESTIMATORS}
        return {
            name: NOTHING.without_ends(why)
            if why
            else self.value(name).interval().without_ends(self.no_interval(name))
            for name, why in refused.items()
        }

    @cached_property
    def guarantee(self) -> Interval:
        """The interval of `estimators.guaranteed_interval`, without an estimate, where it holds."""
        log, why = self.log, self.refused_value
        if not log.labels_complete or log.propensity is None or log.cost is None or log.several_rows:
            why = why or (
                "it needs recorded propensities, labels of all accepted people, one cost for all, and rows "
                "of different people"
            )
        return NOTHING.without_ends(why) if why else Interval(np.nan, *guaranteed_interval(self.people))

    @cached_property
    def few(self) -> str | None:
        """Why the value has no interval for lack of people; None where it has one, or is refused."""
        return None if self.refused_value else lacking(self.value("ips"))

    # Rates of groups, gaps, and their refusals.

    @cached_property
    def refused_rates(self) -> str | None:
        """Why the measures of `BY_LABEL`, whose denominators hold the rejected too, cannot be estimated."""
        if reason := self.refused_value or self.models.impossible:
            return reason
        positive = self.sample.mean(columns(self.corrected, self.people).positive)
        return self.lacking(np.ones_like(self.target), self.people.weight.value, "of the log", positive)

    @cached_property
    def rates(self) -> dict[View, dict[str, Estimate]]:
        """The rate of each measure by group, shape (G,), by view and name; `dr` is `corrected`."""
        used: dict[View, View] = {"naive": "naive", "ips": "ips", "dr": self.corrected}
        return {view: rates(used[view], self.people, self.by_group) for view in VIEWS}

    @cached_property
    def fairness(self) -> dict[str, dict[View, Interval]]:
        """Each measure of unfairness in each view."""
        return {name: {view: self.rate(name, view) for view in VIEWS} for name in MEASURES}

    def rate(self, name: str, view: View, code: int | None = None) -> Interval:
        """A group's rate of a measure in a view or, without a group, the gap."""
        may, why = self.doubt(name, view, code)
        if not may:
            return NOTHING.without_ends(why)
        estimates = self.rates[view][name]
        interval = gap_interval(estimates[self.models.shown]) if code is None else estimates.interval(code)
        return interval.without_ends(why)

    def doubt(self, measure: str, view: View, code: int | None = None) -> tuple[bool, str | None]:
        """Whether the rate of a group may be shown, and why it is not or has no interval.

        In the views `ips` and `dr` acceptance is always known, measures of `BY_LABEL` need overlap for
        everybody, and the rest overlap for those whom the policy accepts.

        Args:
            measure: of `MEASURES`.
            view: of the labels.
            code: of the group; None for the gap over all shown groups.
        """
        models = self.models
        if code is None:
            if self.log.probabilities is not None:
                return False, "of the groups only probabilities are known: see the bounds of adverse impact"
            if len(models.shown) < 2:
                return False, f"fewer than two groups have {models.smallest_cell} people"
            doubts = [self.doubt(measure, view, group) for group in models.shown]
            return min(doubts, key=lambda doubt: (doubt[0], doubt[1] is None))  # what is not shown first
        needed = MEASURES[measure].labels
        by_label = needed in BY_LABEL
        if view != "naive":
            if needed == "none":
                return True, None
            why = self.refused_rates if by_label else self.refused_value
            if why := why or (NO_MODEL if view == "dr" and models.outcome is None else None):
                return False, why
        what = f"{needed} labels" if by_label else "labels"
        weights = support(MEASURES[measure], view, self.people)[self.log.group == code]
        may, why = self.few_labels(weights, what, f"group {self.log.groups[code]}")
        return may, why or self.no_interval(view, by_label)

    def few_labels(self, weights: np.ndarray, what: str, whose: str) -> tuple[bool, str | None]:
        """Whether an estimate from labels may be shown, and why it is not, or has no interval.

        Args:
            weights: of the labels, shape (K,), 0 for those that do not count.
            what: the labels, in words.
            whose: whose they are, likewise.
        """
        least = self.models.smallest_cell
        few = np.count_nonzero(weights) < least
        if not few and effective_sample_size(np.abs(weights)) >= LEAST_EFFECTIVE:
            return True, None
        limit = least if few else f"{LEAST_EFFECTIVE} equally weighted"
        return not few, f"{whose} has fewer than {limit} {what} that count"

    def no_interval(self, estimator: str, by_label: bool = False) -> str | None:
        """Why an estimator, or the rates of its view, have no interval.

        Args:
            estimator: of `ESTIMATORS`, or a view.
            by_label: whether the estimate rests on the labels of all people, not of accepted ones only.
        """
        weights = [self.models.labelled]
        if self.log.propensity is None and (by_label or not self.logged):
            weights.append(self.models.propensity)
        used = {"dm": [self.models.outcome], "ips": weights, "snips": weights}
        for fitted in used.get(estimator, ()):
            if fitted is not None and fitted.parametric is None:
                return "it rests on a model whose error has no theory: read DR"
        return None

    def effective(self, rows: np.ndarray | bool = True) -> float:
        """How many equally weighted labels those of some people, a mask (N,), count as (Kish 1965)."""
        return effective_sample_size(self.people.kept.value[self.log.revealed & rows])

    # Bounds.

    def labels(self, assumption: float | str | None = None) -> limits.Labels:
        """Low and high labels by an odds ratio Γ, by decision makers (`OFFICERS`), or without assumption."""
        if assumption is None:
            return limits.manski(self.people)
        if isinstance(assumption, str):
            return self.models.officers.labels(self.people, self.logged)
        return limits.odds_ratio(assumption, self.people, self.logged)

    @cached_property
    def bounds(self) -> dict[str, Limits]:
        """Bounds of utility and gaps without assumption (`bounds.manski`), and 95 % intervals of them."""
        return self.bounded()

    @cached_property
    def officers(self) -> dict[str, Limits]:
        """The same by decision makers as an instrument (`officers`); empty where they bound nothing."""
        return {} if self.models.why_no_officers else self.bounded(OFFICERS)

    def bounded(
        self, assumption: float | str | None = None, measures: Sequence[str] = tuple(MEASURES)
    ) -> dict[str, Limits]:
        """Bounds of the utility and of gaps by measure; `assumption` as of `labels`."""
        labels = self.labels(assumption)
        return limits.limits_of(measures, self.people, labels, self.by_group, self.models.shown)

    # Doubts.

    @cached_property
    def misfit(self) -> Misfit | None:
        """What the models of weights and outcome both leave over, so that the value is in doubt."""
        models, imbalance = self.models, self.people.kept.value - self.target
        if models.outcome is None or self.refused_value or not imbalance.any():
            return None
        if models.propensity is None and models.labelled is None:  # all weights are recorded
            return None
        error = float(self.value("dr").error)
        return checks.misfit(self.log, models.outcome.probability, imbalance, error, models.seed)

    @cached_property
    def in_doubt(self) -> list[str]:
        """Signs that the value is wrong: a misfit, and estimators that differ by more than their errors."""
        texts = [self.misfit.sentence] if self.misfit else []
        if self.logged or self.few or self.refused_estimator("dr"):
            return texts
        read = self.value("dr")
        for name, reason in LIKELY.items():
            change = self.value(name) - read
            if abs(change.value) > max(DISAGREEING * change.error, read.error):
                size = f"{100 * abs(change.value):.1f} per 100 people"
                texts.append(f"{LABELS[name]} and doubly robust differ by {size}: {reason}")
        return texts

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Doubts about the estimates, and what they lack."""
        models, texts = self.models, [*self.in_doubt]
        if hidden := len(self.log.groups) - len(models.shown):
            texts.append(
                f"nothing is shown of groups with fewer than {models.smallest_cell} people, {hidden} in "
                "number, which are no part of gaps"
            )
        if models.past is not None:
            texts += models.past.lacking
        return (*texts, *changes(self.log, models.propensity, models.outcome))
