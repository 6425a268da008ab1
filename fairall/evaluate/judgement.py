"""A policy on the log of another one: what can be estimated, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

import numpy as np

from fairall.evaluate import checks
from fairall.evaluate.checks import Misfit
from fairall.evaluate.estimated.bounds import (
    GAMMAS,
    Labels,
    Limits,
    manski,
    odds_ratio,
    rate_bounds,
    turning_point,
    value_bounds,
)
from fairall.evaluate.estimated.estimates import (
    NOTHING,
    Estimate,
    Groups,
    Interval,
    Sample,
    gap_interval,
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
Doubt: TypeAlias = tuple[bool, str | None]  # whether an estimate may be shown; why not, or without interval
DISAGREEING = 3.0  # standard errors between two estimators
LIKELY = {
    "ips": "doubt the propensities: weighted people with labels may be unlike all people, see their balance",
    "dm": "the outcome model fails among the people whom the policy accepts",
}
BY_LABEL = "positive", "negative"  # `labels` of measures about people of one label, accepted or not


def worst(doubts: Iterable[Doubt]) -> Doubt:
    """A doubt that forbids the estimate, else one that forbids its interval, else one without a reason."""
    return min(doubts, key=lambda doubt: (doubt[0], doubt[1] is None))


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
        log, models, target = self.log, self.models, self.target
        return People(
            target=target,
            revealed=log.revealed,
            label=np.nan_to_num(log.label),
            weight=models.weight,
            kept=models.label_weight if self.logged else models.weight * target,
            outcome=models.outcome_column,
            stake=log.stake,
            break_even=log.break_even,
        )

    def with_target(self, target: np.ndarray) -> People:
        """The log's people, judged by other acceptance probabilities (N,)."""
        return replace(self.people, target=target, kept=self.models.weight * target)

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
        if not self.target.any() or (self.logged and models.labelled is None):  # 0, or observed
            return None
        reason = None if self.logged else models.impossible
        # Residuals of decision and policy may hold the same error of a model that nearly tells decisions.
        if not (self.logged or models.separable):
            reason = reason or checks.knows_decision(log, models.acceptance, self.target, models.seed)
        reason = reason or self.lacking(
            self.target, self.people.kept.value, "whom the policy accepts", self.value(self.corrected)
        )
        possible = value_bounds(self.people, manski(self.people), self.sample)
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
        people, sample = self.people, self.sample
        if self.target.any():
            support = value_support(people, self.target, people.kept.value, sample)
            return ESTIMATORS[estimator](people, sample).on(support)
        everybody = np.ones_like(self.target)  # whom it might have accepted
        return sample.mean(self.target).on(value_support(people, everybody, everybody, sample))

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
        return Interval(np.nan, *guaranteed_interval(self.people)).without_ends(why)

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
        return {
            view: rates(self.corrected if view == "dr" else view, self.people, self.by_group)
            for view in VIEWS
        }

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

    def doubt(self, measure: str, view: View, code: int | None = None) -> Doubt:
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
            return worst(self.doubt(measure, view, group) for group in models.shown)
        needed = MEASURES[measure].labels
        by_label = needed in BY_LABEL
        if view != "naive":
            if needed == "none":
                return True, None
            if why := (by_label and self.refused_rates) or self.refused_estimator(view):
                return False, why
        what = f"{needed} labels" if by_label else "labels"
        weights = support(MEASURES[measure], view, self.people)[self.log.group == code]
        may, why = self.few_labels(weights, what, f"group {self.log.groups[code]}")
        return may, why or self.no_interval(view, by_label)

    def few_labels(self, weights: np.ndarray, what: str, whose: str) -> Doubt:
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
            if fitted and not fitted.parametric:
                return "it rests on a model whose error has no theory: read DR"
        return None

    def effective(self, rows: np.ndarray | bool = True) -> float:
        """How many equally weighted labels those of some people, a mask (N,), count as (Kish 1965)."""
        return effective_sample_size(self.people.kept.value[self.log.revealed & rows])

    # Bounds.

    def labels(self, assumption: float | str) -> Labels:
        """Low and high labels by an odds ratio Γ, by decision makers (`OFFICERS`), or without assumption."""
        people = self.people
        if isinstance(assumption, float):
            return odds_ratio(assumption, people, self.logged)
        if assumption == OFFICERS and self.models.officers is not None:
            labels = Labels(people.target, self.models.officers, 1.0)
            return labels.observed(people.label, people.target) if self.logged else labels
        return manski(people)

    @cached_property
    def bounds(self) -> dict[str, dict[str, Limits]]:
        """Those of `bounded` without assumption, and by decision makers where they bound something."""
        return {assumption: self.bounded(assumption) for assumption in self.models.assumptions}

    def bounded(self, assumption: float | str, measures: Iterable[str] = MEASURES) -> dict[str, Limits]:
        """Bounds of the utility and, where two groups are shown, of gaps by measure.

        Args:
            assumption: as of `labels`.
            measures: of `MEASURES`.
        """
        labels, shown = self.labels(assumption), self.models.shown
        limits = {"utility": value_bounds(self.people, labels, self.sample).limits()}
        for name in measures if len(shown) >= 2 else ():
            limits[name] = rate_bounds(name, self.people, labels, self.by_group).gap(shown)
        return limits

    @cached_property
    def by_odds(self) -> dict[float, dict[str, Limits]]:
        """Bounds for each Γ of `GAMMAS`; none where the value is refused or has no interval."""
        if self.values["dr"].why:
            return {}
        measures = [name for name in MEASURES if self.doubt(name, "dr") == (True, None)]
        return {gamma: self.bounded(gamma, measures) for gamma in GAMMAS}

    @cached_property
    def turning_point(self) -> float | None:
        """The odds ratio Γ up to which the sign of the value is certain; None for any Γ."""
        return turning_point(lambda gamma: self.bounded(gamma, ())) if self.by_odds else None

    # Doubts.

    @cached_property
    def misfit(self) -> Misfit | None:
        """What the models of weights and outcome both leave over, so that the value is in doubt."""
        models, imbalance = self.models, self.people.kept.value - self.target
        if self.refused_value or models.outcome is None or not imbalance.any():
            return None
        if not (models.propensity or models.labelled):  # all weights are recorded
            return None
        error = float(self.value("dr").error)
        return checks.misfit(self.log, models.outcome.probability, imbalance, error, models.seed)

    @cached_property
    def in_doubt(self) -> list[str]:
        """Signs that the value is wrong: a misfit, and estimators that differ by more than their errors."""
        texts = [self.misfit.sentence] if self.misfit else []
        if self.logged or self.values["dr"].why:
            return texts
        read = self.value("dr")
        for name, reason in LIKELY.items():
            change = self.value(name) - read
            if abs(change.value) > max(DISAGREEING * change.error, read.error):
                texts.append(
                    f"{LABELS[name]} and doubly robust differ by {100 * abs(change.value):.1f} per 100 "
                    f"people: {reason}"
                )
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
        return (*texts, *changes(self.log, models.acceptance, models.outcome))
