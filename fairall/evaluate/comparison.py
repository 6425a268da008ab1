"""Compare two policies on the same people of a log: differences in value and in unfairness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fairall.evaluate.bounds import pseudo_labels, turning_point, value_bounds
from fairall.evaluate.estimators import ESTIMATORS
from fairall.evaluate.evaluation import NOTHING, Evaluation, evaluator_of
from fairall.evaluate.fairness import MEASURES, gap
from fairall.evaluate.intervals import interval
from fairall.evaluate.log import DecisionLog
from fairall.evaluate.views import VIEWS, View


@dataclass(frozen=True)
class Comparison:
    """Differences between two policies, second minus first, paired over people."""

    first: Evaluation
    second: Evaluation

    @property
    def refused(self) -> str | None:
        """`Evaluation.refused` of the first of the two that has one."""
        told = [
            f"{one.policy}: {one.refused}" for one in (self.first, self.second) if one.refused is not None
        ]
        return told[0] if told else None

    def value_bounds(self, gamma: float) -> tuple[float, float]:
        """Bounds of the difference in value for an odds ratio Γ between rejected and accepted people.

        The same labels of the rejected count for both policies. The value of logged decisions was observed
        and has no bounds.
        """
        if self.first.logged or self.second.logged:
            first, second = (one.value_bounds(gamma) for one in (self.first, self.second))
            return second[0] - first[1], second[1] - first[0]
        _, label, q, p, _, cost = self.first.bounded
        difference = self.second.target - self.first.target
        return value_bounds(difference, *pseudo_labels(gamma, label, q, p), cost)

    def to_plain(self) -> dict[str, Any]:
        """The content of evaluation.json: both policies, and differences, second minus first.

        `turning_point` is the odds ratio Γ at which the sign of the difference in value is no longer certain,
        `probability_better` the share of bootstrap samples in which the second has the greater value;
        `probability_fairer` that in which its gap is smaller.
        """
        answered = self.first.refused_value is None and self.second.refused_value is None
        value = {}
        for name in ESTIMATORS:
            if not answered:
                value[name] = NOTHING | {"probability_better": None}
                continue
            (first, first_draws), (second, second_draws) = self.first.value(name), self.second.value(name)
            draws = second_draws - first_draws
            value[name] = interval(second - first, draws) | {"probability_better": _share_below_zero(-draws)}
        fairness: dict[str, dict[str, Any]] = {name: {} for name in MEASURES if name != "calibration_error"}
        for view in VIEWS:
            for name, of_view in fairness.items():
                if not (self.first.answers(name, view) and self.second.answers(name, view)):
                    of_view[view] = NOTHING | {"probability_fairer": None}
                    continue
                used: View = view if MEASURES[name].needs_label or view == "naive" else "everyone"
                gaps = [float(gap(one.rates(used)[name])) for one in (self.first, self.second)]
                draws = np.subtract(*(gap(one.rate_draws(used)[name]) for one in (self.second, self.first)))
                # Gaps of resamples are too wide by noise, and not alike for both policies.
                draws = draws[np.isfinite(draws)]
                if len(draws):
                    draws = draws + (gaps[1] - gaps[0] - draws.mean())
                of_view[view] = interval(gaps[1] - gaps[0], draws) | {
                    "probability_fairer": _share_below_zero(draws)
                }
        return {
            "first": self.first.to_plain(),
            "second": self.second.to_plain(),
            "difference": {
                "acceptance": float(self.second.target.mean() - self.first.target.mean()),
                "value": value,
                "fairness": fairness,
                "turning_point": turning_point(self.value_bounds) if answered else None,
            },
            "refused": self.refused,
        }


def _share_below_zero(draws: np.ndarray) -> float | None:
    """Share of the draws with a value that are below 0, ties half; None where none has one."""
    finite = draws[np.isfinite(draws)]
    return float(((finite < 0) + 0.5 * (finite == 0)).mean()) if len(finite) else None


def compare(first: Any, second: Any, log: pd.DataFrame | DecisionLog, **options: Any) -> Comparison:
    """Compare two policies on the people of a log, with the same models and bootstrap samples.

    Args:
        first: a policy, as for `evaluate`; None for the one that took the logged decisions.
        second: likewise.
        log: as for `evaluate`.
        options: of `evaluate`.

    Raises:
        FairAllError: where the log or a policy cannot be used.
    """
    evaluator = evaluator_of(log, [first, second], **options)
    return Comparison(evaluator.evaluate(first), evaluator.evaluate(second))
