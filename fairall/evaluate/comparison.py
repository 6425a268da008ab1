"""Compare two policies on the same people of a log: differences in value and in unfairness.

References:
    Guerdan, L., Coston, A., Holstein, K. and Wu, Z. S. (2024). Predictive performance comparison of decision
        policies under confounding. ICML.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fairall.evaluate.estimated import bounds
from fairall.evaluate.estimated.bounds import Bounds, Limits
from fairall.evaluate.estimated.estimates import NOTHING, Estimate, Interval, Z, gap_difference
from fairall.evaluate.estimated.estimators import ESTIMATORS, difference_support
from fairall.evaluate.estimated.fairness import MEASURES, VIEWS, View
from fairall.evaluate.estimated.officers import OFFICERS
from fairall.evaluate.judgement import Judgement

OVERALL = "equal_opportunity", "false_positive"  # whose rates of all people are bounded
SHOWN_GAMMAS = 1.5, 2.0


@dataclass(frozen=True)
class Difference:
    """Differences between two policies, second minus first, paired over people."""

    first: Judgement
    second: Judgement

    @cached_property
    def refused(self) -> str | None:
        """`Evaluation.refused` of the first of the two that has one, else why there is no difference."""
        for policy in (self.first, self.second):
            if policy.refused is not None:
                return f"{policy.policy}: {policy.refused}"
        return self.refused_value

    @cached_property
    def refused_value(self) -> str | None:
        """Why the difference in value cannot be estimated: overlap must hold where the policies differ."""
        for policy in (self.first, self.second):
            if policy.refused_value is not None:
                return f"{policy.policy}: {policy.refused_value}"
        models = self.second.models
        if models.impossible is not None:
            return models.impossible
        change = np.abs(self.second.target - self.first.target)
        weight, estimate = models.weight.value * change, self.difference("dr" if models.outcome else "ips")
        return self.second.lacking(change, weight, "whom only one policy accepts", estimate)

    def difference(self, estimator: str) -> Estimate:
        """Second value minus first, by an estimator of `ESTIMATORS`."""
        first, second = self.first.people, self.second.people
        weight = np.abs(second.kept.value - first.kept.value)
        support = difference_support(first, second, weight, self.first.sample)
        return (self.second.value(estimator) - self.first.value(estimator)).on(support)

    @cached_property
    def turning_point(self) -> float | None:
        """The odds ratio Γ up to which the sign of the difference in value is certain; None for any Γ."""
        if self.refused_value is not None or self.first.models.outcome is None:
            return None
        return bounds.turning_point(lambda gamma: self._bounds("utility", gamma).limits())

    @cached_property
    def bounds(self) -> dict[str, dict[str, Limits]]:
        """Bounds of differences in utility and in rates of all people, by what is assumed.

        The same labels count for both policies, so that those of people on whom they agree hardly matter,
        and bounds are much narrower than the difference of two (Guerdan et al. 2024). There are bounds
        without assumption, for odds ratios Γ where there is a model of the label, and by decision makers
        where the log names them; none of rates where one policy took the logged decisions.
        """
        models, names = self.first.models, ["utility", *OVERALL]
        assumptions: dict[str, float | str | None] = {"no assumption": None}
        if models.outcome is not None and self.refused_value is None:
            assumptions |= {f"Γ = {gamma:g}": gamma for gamma in SHOWN_GAMMAS}
        if models.why_no_officers is None:
            assumptions[OFFICERS] = OFFICERS
        if self.first.logged or self.second.logged:
            names = ["utility"]
        return {
            view: {name: self._bounds(name, assumption).limits() for name in names}
            for view, assumption in assumptions.items()
        }

    def _bounds(self, name: str, assumption: float | str | None) -> Bounds:
        """Bounds of the difference in utility or in a rate; `assumption` as of `Evaluation.labels`."""
        first, second = self.first, self.second
        if first.logged or second.logged:  # its value was observed
            before, after = (
                bounds.value_bounds(policy.people, policy.labels(assumption), policy.sample)
                for policy in (first, second)
            )
            return Bounds(after.low - before.high, after.high - before.low)
        log = first.people, second.people, second.labels(assumption), first.sample
        return bounds.difference_bounds("utility_gap" if name == "utility" else name, *log)

    @cached_property
    def values(self) -> dict[str, Interval]:
        """The difference in value by estimator, with the probability that it is above 0."""
        return {name: self.value(name) for name in ESTIMATORS}

    def value(self, estimator: str, k: float = Z) -> Interval:
        """The difference in value by an estimator of `ESTIMATORS`; k as of `Estimate.ends`."""
        refused = self.refused_value or self.first.refused_estimator(estimator)
        if refused is not None:
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
        doubts = [policy.doubt(measure, view) for policy in pair]
        why = next((reason for _, reason in doubts if reason), None)
        if not all(may for may, _ in doubts):
            return NOTHING.without_ends(why)
        if view != "naive" and MEASURES[measure].labels != "none" and self.refused_value is not None:
            return NOTHING.without_ends(self.refused_value)
        return gap_difference(*(policy.rates[view][measure][shown] for policy in pair)).without_ends(why)
