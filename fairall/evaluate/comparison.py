"""Compare two policies on the same people of a log: differences in value and in unfairness.

References:
    Guerdan, L., Coston, A., Holstein, K. and Wu, Z. S. (2024). Predictive performance comparison of decision
        policies under confounding. ICML.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fairall.evaluate.estimated.bounds import Limits, turning_point, value_bounds
from fairall.evaluate.estimated.estimates import NOTHING, Estimate, Interval, Z, gap_difference
from fairall.evaluate.estimated.estimators import ESTIMATORS, value_support
from fairall.evaluate.estimated.fairness import MEASURES, VIEWS, View
from fairall.evaluate.judgement import Judgement, worst


@dataclass(frozen=True)
class Difference:
    """Differences between two policies, second minus first, paired over people."""

    first: Judgement
    second: Judgement

    @cached_property
    def refused(self) -> str | None:
        """`Judgement.refused` of the first of the two that has one, else why there is no difference."""
        for policy in (self.first, self.second):
            if policy.refused:
                return f"{policy.policy}: {policy.refused}"
        return self.refused_value

    @cached_property
    def refused_value(self) -> str | None:
        """Why the difference in value cannot be estimated: overlap must hold where the policies differ."""
        for policy in (self.first, self.second):
            if policy.refused_value:
                return f"{policy.policy}: {policy.refused_value}"
        models = self.second.models
        change = np.abs(self.second.target - self.first.target)
        weight, estimate = models.weight.value * change, self.difference(self.second.corrected)
        return models.impossible or self.second.lacking(
            change, weight, "whom only one policy accepts", estimate
        )

    def difference(self, estimator: str) -> Estimate:
        """Second value minus first, by an estimator of `ESTIMATORS`."""
        first, second = self.first.people, self.second.people
        change, weight = second.target - first.target, np.abs(second.kept.value - first.kept.value)
        support = value_support(first, change, weight, self.first.sample)
        return (self.second.value(estimator) - self.first.value(estimator)).on(support)

    @cached_property
    def turning_point(self) -> float | None:
        """The odds ratio Γ up to which the sign of the difference in value is certain; None for any Γ."""
        return turning_point(self.bounded) if self.by_odds else None

    @cached_property
    def bounds(self) -> dict[str, dict[str, Limits]]:
        """Those of `bounded` by what is assumed, as `Judgement.bounds`."""
        return {assumption: self.bounded(assumption) for assumption in self.first.models.assumptions}

    @cached_property
    def by_odds(self) -> dict[float, dict[str, Limits]]:
        """Bounds for two Γ; none where the difference is refused or there is no model of the label."""
        refused = self.refused_value or self.first.models.outcome is None
        return {} if refused else {gamma: self.bounded(gamma) for gamma in (1.5, 2.0)}

    def bounded(self, assumption: float | str) -> dict[str, Limits]:
        """Bounds of the difference in `utility`; `assumption` as of `Judgement.labels`.

        The same labels count for both policies, so that those of people on whom they agree hardly matter,
        and bounds are much narrower than the difference of two (Guerdan et al. 2024).
        """
        first, second = self.first, self.second
        before, after = first.labels(assumption), second.labels(assumption)
        # Those of the logged decisions know the labels of accepted people apart from the others.
        labels = (before if first.logged else after)._replace(target=after.target - before.target)
        people = second.with_target(second.target - first.target)
        return {"utility": value_bounds(people, labels, first.sample).limits()}

    @cached_property
    def values(self) -> dict[str, Interval]:
        """The difference in value by estimator, with the probability that it is above 0."""
        return {name: self.value(name) for name in ESTIMATORS}

    def value(self, estimator: str, k: float = Z) -> Interval:
        """The difference in value by an estimator of `ESTIMATORS`; k as of `Estimate.ends`."""
        if refused := self.refused_value or self.first.refused_estimator(estimator):
            return NOTHING.without_ends(refused)
        why = self.first.no_interval(estimator) or self.second.no_interval(estimator)
        return self.difference(estimator).difference_interval(k).without_ends(why)

    @cached_property
    def fairness(self) -> dict[str, dict[View, Interval]]:
        """The difference of each gap in each view."""
        return {name: {view: self.gap(name, view) for view in VIEWS} for name in MEASURES}

    def gap(self, measure: str, view: View) -> Interval:
        """The difference of the gap of a measure of `MEASURES` in a view."""
        pair, shown = (self.first, self.second), self.first.models.shown
        may, why = worst(policy.doubt(measure, view) for policy in pair)
        refused = None if view == "naive" or MEASURES[measure].labels == "none" else self.refused_value
        if refused or not may:
            return NOTHING.without_ends(refused or why)
        return gap_difference(*(policy.rates[view][measure][shown] for policy in pair)).without_ends(why)
