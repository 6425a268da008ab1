"""Compare two policies on the same people of a log: differences in value and in unfairness."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr

from fairall.evaluate import bounds
from fairall.evaluate.estimators import ESTIMATORS
from fairall.evaluate.evaluation import Evaluation, judge
from fairall.evaluate.fairness import MEASURES, VIEWS
from fairall.evaluate.gaps import gap_difference, wald
from fairall.evaluate.influence import Estimate
from fairall.evaluate.judgement import NO_MODEL
from fairall.evaluate.log import DecisionLog
from fairall.evaluate.plain import as_plain, interval, without


@dataclass(frozen=True)
class Comparison:
    """Differences between two policies, second minus first, paired over people."""

    first: Evaluation
    second: Evaluation

    @cached_property
    def refused(self) -> str | None:
        """`Evaluation.refused` of the first of the two that has one, else why there is no difference."""
        told = [
            f"{one.policy}: {one.refused}" for one in (self.first, self.second) if one.refused is not None
        ]
        return told[0] if told else self.refused_value

    @cached_property
    def refused_value(self) -> str | None:
        """Why the difference in value cannot be estimated: overlap must hold where the policies differ."""
        for one in (self.first, self.second):
            if one.refused_value is not None:
                return f"{one.policy}: {one.refused_value}"
        models = self.second.models
        if models.impossible is not None:
            return models.impossible
        change = np.abs(self.second.target - self.first.target)
        read = self.difference("dr" if models.outcome else "ips")
        return self.second.lacking(change, models.weight.value * change, "whom only one policy accepts", read)

    def difference(self, estimator: str) -> Estimate:
        """Second value minus first."""
        return self.second.value(estimator) - self.first.value(estimator)

    def _certain(self, gamma: float) -> bool:
        """Whether the sign of the difference in value is certain for an odds ratio Γ."""
        first, second = self.first, self.second
        if first.logged or second.logged:  # its value was observed
            own, other = (
                bounds.value_bounds(one.people, bounds.odds_ratio(gamma, one.people, one.logged), one.sample)
                for one in (second, first)
            )
            return bounds.one_sided(bounds.Bounds(own.low - other.high, own.high - other.low))
        labels = bounds.odds_ratio(gamma, second.people)
        return bounds.one_sided(bounds.difference_bounds(first.people, second.people, labels, first.sample))

    def value(self, estimator: str) -> dict[str, Any]:
        """The difference in value, with its interval and the probability that it is above 0."""
        if self.refused_value is not None:
            return without(self.refused_value) | {"probability_better": None}
        if estimator in ("dr", "sndr", "dm") and self.first.models.outcome is None:
            return without(NO_MODEL) | {"probability_better": None}
        found = self.difference(estimator)
        why = self.first.no_interval(estimator) or self.second.no_interval(estimator)
        better = None if why else ndtr(found.value / found.error) if found.error > 0 else 0.5
        return interval(wald(found), why) | as_plain(probability_better=better)

    def gap(self, measure: str, view: Any) -> dict[str, Any]:
        """The difference of a gap, with its interval and the probability that it is below 0."""
        standing = [one.gap(measure, view) for one in (self.first, self.second)]
        why = next((reason for _, reason in standing if reason), None)
        nothing = {"probability_fairer": None}
        if not all(may for may, _ in standing):
            return without(why) | nothing
        if view != "naive" and MEASURES[measure].labels != "none" and self.refused_value is not None:
            return without(self.refused_value) | nothing
        shown = self.first.models.shown
        first, second = (one.rates(view)[measure][shown] for one in (self.first, self.second))
        found, fairer = gap_difference(first, second)
        return interval(found, why) | as_plain(probability_fairer=None if why else fairer)

    def to_plain(self) -> dict[str, Any]:
        """The content of evaluation.json: both policies, and differences, second minus first.

        `turning_point` is the odds ratio Γ up to which the sign of the difference in value is certain,
        `probability_better` and `probability_fairer` the level at which a one-sided interval of the
        difference ends at 0.
        """
        answered = self.refused_value is None and self.first.models.outcome is not None
        return {
            "first": self.first.to_plain(),
            "second": self.second.to_plain(),
            "difference": {
                "acceptance": float(self.second.target.mean() - self.first.target.mean()),
                "value": {name: self.value(name) for name in ESTIMATORS},
                "fairness": {name: {view: self.gap(name, view) for view in VIEWS} for name in MEASURES},
                "turning_point": bounds.turning_point(self._certain) if answered else None,
            },
            "refused": self.refused,
        }


def compare(first: Any, second: Any, log: pd.DataFrame | DecisionLog, **options: Any) -> Comparison:
    """Compare two policies on the people of a log, with the same models.

    Args:
        first: a policy, as for `evaluate`; None for the one that took the logged decisions.
        second: likewise.
        log: as for `evaluate`.
        options: of `evaluate`.

    Raises:
        FairAllError: where the log or a policy cannot be used.
    """
    return Comparison(*judge([first, second], log, **options))
