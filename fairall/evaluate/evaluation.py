"""Evaluate policies from a log of past decisions: value, fairness, bounds, overlap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from fairall.evaluate import bounds as limits
from fairall.evaluate import validation
from fairall.evaluate.contraction import Contraction, contraction
from fairall.evaluate.estimators import ESTIMATORS, LABELS, guaranteed_interval
from fairall.evaluate.fairness import MEASURES, VIEWS
from fairall.evaluate.gaps import gap_interval, share, wald
from fairall.evaluate.judgement import NO_MODEL, Judgement
from fairall.evaluate.log import DecisionLog
from fairall.evaluate.models import OPTIONS, Models
from fairall.evaluate.plain import NOTHING, as_plain, interval, without
from fairall.evaluate.policies import Target, target_policy
from fairall.metrics import effective_sample_size

DISAGREEING = 3.0  # standard errors between two estimators


class Evaluation(Judgement):
    """Estimates about one policy, as tables, page and evaluation.json show them."""

    def values(self) -> dict[str, dict[str, Any]]:
        """The value by estimator, with intervals; None where it is refused."""
        if self.refused_value is not None:
            return {name: NOTHING | {"why": self.refused_value} for name in ESTIMATORS}
        found = {}
        for name in ESTIMATORS:
            if name in ("dr", "sndr", "dm") and self.models.outcome is None:
                found[name] = without(NO_MODEL)
            else:
                found[name] = interval(wald(self.value(name)), self.no_interval(name))
        return found

    def guarantee(self) -> dict[str, Any]:
        """The interval of `estimators.guaranteed_interval`, where it holds."""
        log = self.log
        if self.refused_value is not None:
            return as_plain(low=None, high=None) | {"why": self.refused_value}
        if not log.labels_complete or log.propensity is None or log.cost is None:
            why = "it needs recorded propensities, labels of all accepted people, and one cost for all"
            return as_plain(low=None, high=None) | {"why": why}
        low, high = guaranteed_interval(self.people)
        return as_plain(low=low, high=high)

    def fairness(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Each measure of unfairness in each view, with its interval."""
        found: dict[str, dict[str, dict[str, Any]]] = {name: {} for name in MEASURES}
        for name, one in MEASURES.items():
            for view in VIEWS:
                may, why = self.gap(name, view)
                if may:
                    own = self.rates(view)[name][self.models.shown]
                    found[name][view] = interval(gap_interval(own, largest=one.largest), why)
                else:
                    found[name][view] = without(why)
        return found

    def bounds(self) -> dict[str, dict[str, float | None]]:
        """Bounds of utility and gaps without assumption (`bounds.manski`), and 95 % intervals of them."""
        return self._bounds(limits.manski(self.people))

    def _bounds(self, labels: limits.Labels) -> dict[str, dict[str, float | None]]:
        shown, log = self.models.shown, self.log
        found = {"utility": limits.value_bounds(self.people, labels, self.sample)}
        plain = {
            "utility": as_plain(
                low=found["utility"].low.value,
                high=found["utility"].high.value,
                interval_low=wald(found["utility"].low).low,
                interval_high=wald(found["utility"].high).high,
            )
        }
        if len(shown) < 2:
            return plain
        for name, one in MEASURES.items():
            low, high = limits.rate_bounds(
                name, self.people, labels, self.sample, log.group, len(log.groups), logged=self.logged
            )
            plain[name] = limits.gap_bounds(low[shown], high[shown], one.largest)
        return plain

    def sensitivity(self) -> dict[str, Any] | None:
        """Bounds by odds ratio Γ, where conclusions turn, and the Γ of hiding a feature of the log."""
        if self.refused_value is not None or self.models.outcome is None:
            return None
        log = self.log
        answered = ["utility", *(name for name in limits.SENSITIVE if self.gap(name, "dr") == (True, None))]
        by_gamma = {
            gamma: self._bounds(limits.odds_ratio(gamma, self.people, self.logged)) for gamma in limits.GAMMAS
        }
        points = limits.turning_points(
            self.people, self.sample, log.group, len(log.groups), self.logged, self.models.shown, answered
        )
        return {
            "bounds": {
                name: [{"gamma": gamma} | of[name] for gamma, of in by_gamma.items()] for name in answered
            },
            "turning_points": points,
            "benchmarks": limits.benchmarks(log, self.models.outcome.probability),
        }

    def overlap(self, rows: np.ndarray | None = None) -> dict[str, float | None]:
        """Effective sample size (Kish 1965), largest value and concentration of the weights of labels.

        Args:
            rows: a selection of people, shape (N,), bool; None for all.
        """
        chosen = self.log.revealed if rows is None else self.log.revealed & rows
        weight = np.sort(self.people.kept.value[chosen])
        total = weight.sum()
        if total <= 0:
            return as_plain(effective_sample_size=0.0, largest_weight=0.0, share_of_top_percent=None)
        top = weight[-max(1, round(len(weight) / 100)) :]
        return as_plain(
            effective_sample_size=effective_sample_size(weight),
            largest_weight=weight[-1],
            share_of_top_percent=top.sum() / total,
        )

    @cached_property
    def disagreement(self) -> str | None:
        """Which estimators differ by more than their errors, and the reason that is likely; None for none."""
        if (
            self.refused_value is not None
            or self.models.outcome is None
            or self.logged
            or self.target.sum() <= 0
        ):
            return None
        read = self.value("dr")
        for name in ("ips", "dm"):
            change = self.value(name) - read
            if abs(change.value) > max(DISAGREEING * change.error, read.error):
                reason = "the outcome model fails among the people whom the policy accepts"
                if name == "ips":
                    worst = validation.worst_balance(self.log, self.people)
                    reason = (
                        f"weighted people with labels are unlike all people{worst}: doubt the propensities"
                    )
                return (
                    f"{LABELS[name]} and doubly robust differ by {100 * abs(change.value):.1f} per 100 "
                    f"people (standard error {100 * change.error:.1f}): {reason}"
                )
        return None

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Doubts about the estimates, and what they lack."""
        told = [] if self.disagreement is None else [self.disagreement]
        hidden = [name for g, name in enumerate(self.log.groups) if g not in self.models.shown]
        if hidden:
            told.append(
                f"nothing is shown of groups with fewer than {self.models.smallest_cell} people, which are "
                f"no part of gaps: {', '.join(hidden)}"
            )
        if self.log.revealed.any():
            reasons: dict[str, list[str]] = {}
            for name in MEASURES:
                why = self.gap(name, "dr")[1]
                if why and why != self.refused_measure(name, "dr"):
                    reasons.setdefault(why, []).append(MEASURES[name].label)
            told += [f"no interval of {', '.join(names)}: {why}" for why, names in reasons.items()]
        return tuple(told)

    @cached_property
    def contraction(self) -> Contraction | None:
        """Failure rates beside those of the log's decision makers; None where it names none."""
        log = self.log
        if log.decision_maker is None or not log.revealed.any():
            return None
        order = self.models.acceptance if self.logged else self.target
        return contraction(
            order, log.accepted, log.label, log.decision_maker, log.person, self.models.seed,
            smallest=self.models.smallest_cell,
        )  # fmt: skip

    def to_plain(self) -> dict[str, Any]:
        """The content of evaluation.json."""
        log, models = self.log, self.models
        return {
            "policy": self.policy,
            "log": {
                "people": len(log),
                "accepted": int(log.accepted.sum()),
                "labelled": int(log.revealed.sum()),
                "persons": None if log.person is None else int(log.person.max()) + 1,
                "cost": log.cost,
                "propensities": "estimated" if log.propensity is None else "recorded",
            },
            "acceptance": float(self.target.mean()),
            "value": self.values(),
            "guarantee": self.guarantee(),
            "fairness": self.fairness(),
            "acceptance_ratio": validation.acceptance_ratio(self),
            "groups": self.group_rates(),
            "bounds": self.bounds(),
            "sensitivity": self.sensitivity(),
            "overlap": self.overlap(),
            "calibration": validation.calibration(self),
            "balance": validation.balance(self),
            "thresholds": validation.thresholds(self),
            "costs": validation.costs(self),
            "contraction": None if self.contraction is None else self.contraction.to_plain(),
            "models": {
                name: None
                if fitted is None
                else {"name": fitted.name} | as_plain(log_loss=fitted.log_loss, auc=fitted.auc)
                for name, fitted in (
                    ("propensity", models.propensity),
                    ("labelled", models.labelled),
                    ("outcome", models.outcome),
                )
            },
            "notes": [*log.notes, *self.notes],
            "warnings": list(self.warnings),
            "refused": self.refused,
        }

    def group_rates(self) -> dict[str, Any]:
        """By group: numbers of people, overlap, and rates in each view."""
        log, found = self.log, {}
        for code in self.models.shown:
            members = log.group == code
            of_rates: dict[str, dict[str, Any]] = {name: {} for name in MEASURES}
            for name in MEASURES:
                for view in VIEWS:
                    may, why = self.doubt(name, view, code)
                    own = interval(share(self.rates(view)[name], code), why) if may else without(why)
                    of_rates[name][view] = own
            found[log.groups[code]] = {
                "people": int(members.sum()),
                "accepted": int(log.accepted[members].sum()),
                "labelled": int(log.revealed[members].sum()),
                "acceptance": float(self.target[members].mean()),
                "overlap": self.overlap(members),
                "rates": of_rates,
            }
        return found


def judge(
    policies: Sequence[Any],
    log: pd.DataFrame | DecisionLog,
    *,
    find: Callable[..., Target] = target_policy,
    **options: Any,
) -> list[Evaluation]:
    """Evaluate policies from one log, with the same models.

    Args:
        policies: as for `evaluate`.
        log: likewise.
        find: `policies.target_policy`, with what it needs to find runs.
        options: of `Models`, its `score` also as the name of a column; and of `DecisionLog.of` where the log
            is a DataFrame.

    Raises:
        FairAllError: where the log or a policy cannot be used.
    """
    of_models = {name: options.pop(name) for name in OPTIONS if name in options}
    score = of_models.pop("score", None)
    if not isinstance(log, DecisionLog):
        named = [one for one in (*policies, score) if isinstance(one, str) and one in log]
        log = DecisionLog.of(log, not_features=named, **options)
    targets = [find(policy, log) for policy in policies]
    if score is not None:
        score = find(score, log).probability
    held_out = [target.held_out for target in targets if target.held_out is not None]
    if held_out:  # what a policy has learnt from says too much good of it
        rows = np.logical_and.reduce(held_out)
        score = None if score is None else score[rows]
        targets, log = [target.rows(rows) for target in targets], log.rows(rows)
    models = Models(log, score=score, **of_models)
    return [Evaluation(models, one.name, one.probability, one.logged, one.notes) for one in targets]


def evaluate(policy: Any, log: pd.DataFrame | DecisionLog, **options: Any) -> Evaluation:
    """Evaluate a policy from a log of another policy's decisions.

    Args:
        policy: its acceptance probabilities: a column of the log, an array, a scikit-learn-like predictor
            with `predict_proba`, a function of a DataFrame, a `fairall.policy.Policy`, the folder or id of a
            run; None for the policy that took the logged decisions.
        log: a row per person, as a DataFrame whose columns `options` describe, or read already.
        options: of `Models`, and of `DecisionLog.of`: decision, label, sensitive, ...

    Raises:
        FairAllError: where the log or the policy cannot be used.

    Examples:
        >>> import numpy as np, pandas as pd
        >>> random = np.random.default_rng(0)
        >>> score = random.normal(size=2000)
        >>> propensity = 1 / (1 + np.exp(-score))
        >>> accepted = random.random(2000) < propensity
        >>> repaid = np.where(accepted, random.random(2000) < propensity, np.nan)
        >>> log = pd.DataFrame({"score": score, "sex": random.choice(["f", "m"], 2000), "p": propensity,
        ...                     "granted": accepted.astype(int), "repaid": repaid})
        >>> found = evaluate(lambda people: (people["score"] > 0).astype(float), log, decision="granted",
        ...                  label="repaid", sensitive="sex", propensity="p")
        >>> plain = found.to_plain()
        >>> plain["value"]["dr"]["low"] < 0.1 < plain["value"]["dr"]["high"]
        True
    """
    return judge([policy], log, **options)[0]
