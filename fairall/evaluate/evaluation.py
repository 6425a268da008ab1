"""Evaluate policies from a log of past decisions: value, fairness, bounds, overlap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from sklearn.base import ClassifierMixin

from fairall.data.csv.selective_labels import DEVIATIONS, LEAST_EFFECTIVE, TOTAL_TOLERANCE
from fairall.errors import count
from fairall.evaluate.bounds import (
    bounds,
    label_bounds,
    pseudo_labels,
    sensitivity,
    turning_points,
    value_bounds,
)
from fairall.evaluate.contraction import Contraction, contraction
from fairall.evaluate.estimators import ESTIMATORS, Rows, ValueSums, value_columns
from fairall.evaluate.fairness import (
    BINS,
    MEASURES,
    bins,
    calibration_errors,
    calibration_interval,
    gap,
    gap_interval,
    rates,
    reliability,
    undefined,
)
from fairall.evaluate.intervals import (
    Bootstrap,
    Sums,
    as_plain,
    guaranteed_interval,
    interval,
)
from fairall.evaluate.log import DecisionLog
from fairall.evaluate.nuisance import Fitted, fit_outcome, fit_propensity, for_inverse
from fairall.evaluate.policies import target_probabilities
from fairall.evaluate.views import VIEWS, View, view_columns
from fairall.metrics import effective_sample_size

LOGGED = "the logged decisions"
UNLIKELY = 0.01  # propensity below which acceptance is too rare to learn from
MOST_UNLIKELY = 0.05  # share of people concerned that may be so unlikely
# Measures about people of one label, accepted or not, or about the label of everybody.
BY_LABEL = ("equal_opportunity", "false_positive", "false_negative", "calibration_error")
NOTHING: dict[str, float | None] = {"estimate": None, "low": None, "high": None}
Model: TypeAlias = str | ClassifierMixin
OPTIONS = ("propensity_model", "outcome_model", "folds", "seed")  # of `Evaluator`


class Evaluator:
    """Evaluates any number of policies from one log, whose models are fitted once.

    Args:
        log: of past decisions.
        propensity_model: of decisions without recorded propensities: `auto`, `logistic`, `boosting` or a
            scikit-learn classifier (`nuisance.fit_propensity`).
        outcome_model: of the labels, likewise.
        folds: of the cross-fitting.
        seed: of folds and bootstrap.
    """

    def __init__(
        self,
        log: DecisionLog,
        *,
        propensity_model: Model = "auto",
        outcome_model: Model = "auto",
        folds: int = 5,
        seed: int = 0,
    ) -> None:
        self.log = log
        self.fitted_propensity: Fitted | None = None
        if log.propensity is None:
            self.fitted_propensity = fit_propensity(log, propensity_model, folds, seed)
        self.fitted_outcome: Fitted | None = None
        if log.revealed.any():
            self.fitted_outcome = fit_outcome(log, outcome_model, folds, seed)
        self.bootstrap = Bootstrap(len(log.group), self.fitted_propensity, self.fitted_outcome, seed=seed)

    @cached_property
    def acceptance_propensity(self) -> np.ndarray:
        """Probability that the logged decision was acceptance, shape (N,); NaN where it is not known."""
        if self.log.propensity is not None:
            return self.log.propensity
        assert self.fitted_propensity is not None
        return self.fitted_propensity.probability

    @cached_property
    def weighting_propensity(self) -> np.ndarray:
        """The same for weights 1/p, see `nuisance.for_inverse`."""
        fitted = self.fitted_propensity
        return self.acceptance_propensity if fitted is None else for_inverse(fitted)

    def evaluate(self, policy: Any = None) -> Evaluation:
        """Evaluate a policy.

        Args:
            policy: of `policies.target_probabilities`; None for the one that took the logged decisions.

        Raises:
            FairAllError: where the policy cannot be applied to the log.
        """
        if policy is None:
            return Evaluation(self, LOGGED, self.log.accepted.astype(float), logged=True)
        target, name = target_probabilities(policy, self.log)
        return Evaluation(self, name, target)


@dataclass(frozen=True)
class Evaluation:
    """Estimates about one policy.

    Attributes:
        evaluator: with the log and its models.
        policy: its name.
        target: its acceptance probabilities, shape (N,).
        logged: whether it is the policy of the log.
    """

    evaluator: Evaluator
    policy: str
    target: np.ndarray
    logged: bool = False

    @property
    def log(self) -> DecisionLog:
        """The log."""
        return self.evaluator.log

    @cached_property
    def rows(self) -> Rows:
        """What the estimators see of the log's people."""
        log, fitted = self.log, self.evaluator.fitted_outcome
        labelled = log.revealed.sum() / max(log.accepted.sum(), 1)
        outcome = np.full(len(self.target), np.nan) if fitted is None else fitted.probability
        return Rows(
            self.target,
            self.evaluator.weighting_propensity * labelled,
            log.revealed,
            np.nan_to_num(log.label),
            outcome,
            labelled,
            self.logged,
        )

    @cached_property
    def refused(self) -> str | None:
        """What cannot be estimated, and why; None where everything can."""
        if self.refused_value is not None:
            return self.refused_value
        if self.refused_rates is not None:
            return f"no {', '.join(MEASURES[name].label for name in BY_LABEL)}: {self.refused_rates}"
        return None

    @cached_property
    def refused_value(self) -> str | None:
        """Why the value cannot be estimated; None where it can."""
        if not self.log.revealed.any():
            return "the log has no labels: only acceptance rates are known"
        if self.logged or self.target.sum() <= 0:  # observed, or 0
            return None
        return self._lacking(self.target, self.rows.weight, "whom the policy accepts")

    @cached_property
    def refused_rates(self) -> str | None:
        """Why the measures `BY_LABEL`, whose denominators hold the rejected too, cannot be estimated."""
        if self.refused_value is not None:
            return self.refused_value
        return self._lacking(np.ones_like(self.target), self.rows.inverse, "of the log")

    def _lacking(self, wanted: np.ndarray, weight: np.ndarray, whom: str) -> str | None:
        """What overlap is missing for estimates about people weighted by `wanted` (N,); None for nothing.

        Args:
            wanted: shares of people that count, shape (N,).
            weight: of their labels, shape (N,).
            whom: which people, in words.
        """
        log = self.log
        lacking = log.regions_without_acceptance(wanted)
        if lacking:
            told = "; ".join(f"none of {count(int(rows.sum()), 'row')} {name}" for name, rows in lacking[:5])
            return f"no overlap: {told} was accepted with a known label"
        unlikely = wanted * (self.evaluator.acceptance_propensity < UNLIKELY)
        if unlikely.sum() > MOST_UNLIKELY * wanted.sum():
            shares = [
                f"{unlikely[log.group == g].sum() / max(wanted[log.group == g].sum(), 1e-300):.0%} of {name}"
                for g, name in enumerate(log.groups)
            ]
            return (
                f"no overlap: {unlikely.sum() / wanted.sum():.0%} of the people {whom} had a propensity "
                f"below {UNLIKELY:g} ({', '.join(shares)})"
            )
        size = effective_sample_size(weight)
        if size < LEAST_EFFECTIVE:
            return (
                f"the effective sample size of the weights is {size:.0f}, below {LEAST_EFFECTIVE}: too "
                f"few accepted people are like those {whom}"
            )
        return None

    def answers(self, measure: str, view: View) -> bool:
        """Whether a measure of fairness has an estimate in a view.

        The naive view needs a label. In the others acceptance is always known, measures about people of one
        label (`BY_LABEL`) need overlap for everybody, and the rest overlap for those whom the policy accepts.
        """
        if not MEASURES[measure].needs_label and view != "naive":
            return True
        if view == "naive":
            return bool(self.log.revealed.any())
        return (self.refused_rates if measure in BY_LABEL else self.refused_value) is None

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Doubts about the estimates."""
        if not self.log.revealed.any():
            return ()
        weight, told = self.rows.weight, []
        total, expected = weight.sum(), self.target.sum()
        noise = np.sqrt((weight**2).sum())
        if expected > 0 and abs(total - expected) > max(TOTAL_TOLERANCE * expected, DEVIATIONS * noise):
            told.append(
                f"the weights of the accepted sum to {total / expected:.2g} times the number of people whom "
                "the policy accepts instead of 1: the propensities may not be those of these decisions"
            )
        for g, name in enumerate(self.log.groups):
            size = self.overlap(self.log.group == g)["effective_sample_size"]
            if size is not None and 0 < size < LEAST_EFFECTIVE and self.refused_value is None:
                told.append(
                    f"the labels of group {name} count as {size:.0f} equally weighted ones, below "
                    f"{LEAST_EFFECTIVE}: its rates, and all gaps, may err by more than their intervals say"
                )
        return (*told, *undefined(self.rates("dr"), self.log.groups))

    @cached_property
    def value_sums(self) -> Sums:
        """Sums of `value_columns` over all people."""
        columns = value_columns(self.rows, self.log.cost)
        return self.evaluator.bootstrap.sums(columns, np.zeros(len(self.target), dtype=int), 1).overall

    def value(self, estimator: str) -> tuple[float, np.ndarray]:
        """An estimate of the value, and its bootstrap draws (draws,)."""
        function, cost = ESTIMATORS[estimator], self.log.cost
        with np.errstate(invalid="ignore", divide="ignore"):
            estimate = function(ValueSums.of(self.value_sums.total), cost)
            return float(estimate), function(ValueSums.of(self.value_sums.draws), cost)

    @cached_property
    def _score(self) -> tuple[np.ndarray, np.ndarray | None]:
        """What calibration is of, and its derivative by the log odds of the propensity, both shape (N,).

        The probability of acceptance; of the logged decisions themselves where some propensity is unknown.
        """
        propensity = self.evaluator.acceptance_propensity
        if not self.logged or np.isnan(propensity).any():
            return self.target, None
        return propensity, propensity * (1.0 - propensity)

    def view_sums(self, view: View) -> Sums:
        """Sums of `view_columns` by group and bin of the score, (groups·BINS, 5)."""
        if view not in self._views:
            score, slope = self._score
            self._views[view] = self.evaluator.bootstrap.sums(
                view_columns(view, self.rows, score, score_slope=slope),
                self.log.group * BINS + bins(score),
                len(self.log.groups) * BINS,
            )
        return self._views[view]

    @cached_property
    def _views(self) -> dict[str, Sums]:
        return {}

    def _by_group(self, view: View, of: str) -> tuple[np.ndarray, np.ndarray | None]:
        """Sums of a view by group, `total` (G, 4) or `draws` (draws, G, 4), and those of all people."""

        def summed(sums: Sums) -> np.ndarray:
            cells = getattr(sums, of)[..., :4]
            return cells.reshape(*cells.shape[:-2], len(self.log.groups), BINS, -1).sum(-2)

        everyone = None if view == "naive" else summed(self.view_sums("everyone"))
        return summed(self.view_sums(view)), everyone

    def rates(self, view: View) -> dict[str, np.ndarray]:
        """The rate of each measure by group, shape (G,), by name."""
        sums, everyone = self._by_group(view, "total")
        return rates(sums, self.log.cost, everyone)

    def rate_draws(self, view: View) -> dict[str, np.ndarray]:
        """Bootstrap draws of `rates`, shape (draws, G)."""
        sums, everyone = self._by_group(view, "draws")
        return rates(sums, self.log.cost, everyone)

    def _bins(self, view: View, of: str = "total") -> np.ndarray:
        cells = getattr(self.view_sums(view), of)[..., [0, 4, 2]]
        return cells.reshape(*cells.shape[:-2], len(self.log.groups), BINS, 3)

    def fairness(self, view: View) -> dict[str, dict[str, float | None]]:
        """Each measure of unfairness with its interval."""
        own, draws = self.rates(view), self.rate_draws(view)
        found = {}
        for name, values in own.items():
            low, high = gap_interval(values, draws[name], largest=MEASURES[name].largest)
            found[name] = as_plain(estimate=float(gap(values)), low=low, high=high)
        error = float(calibration_errors(self._bins(view)).max(-1))
        low, high = calibration_interval(self._bins(view), self._bins(view, "draws"))
        return found | {"calibration_error": as_plain(estimate=error, low=low, high=high)}

    def overlap(self, rows: np.ndarray | None = None) -> dict[str, float | None]:
        """Effective sample size (Kish 1965), largest value and concentration of the weights a/p of labels.

        Args:
            rows: a selection of people, shape (N,), bool; None for all.
        """
        weight = np.sort(self.rows.weight[self.log.revealed if rows is None else self.log.revealed & rows])
        total = weight.sum()
        if total <= 0:
            return as_plain(effective_sample_size=0.0, largest_weight=0.0, share_of_top_percent=np.nan)
        top = weight[-max(1, round(len(weight) / 100)) :]
        return as_plain(
            effective_sample_size=effective_sample_size(weight),
            largest_weight=weight[-1],
            share_of_top_percent=top.sum() / total,
        )

    @cached_property
    def sensitivity(self) -> pd.DataFrame:
        """Bounds by odds ratio Γ (`bounds.sensitivity`)."""
        return sensitivity(*self.bounded, score=self._score[0], **self._decided)

    @property
    def bounded(self) -> tuple[Any, ...]:
        """Positional arguments of `bounds.sensitivity`."""
        log, rows = self.log, self.rows
        label = np.where(log.revealed, rows.label, np.nan)
        return self.target, label, rows.outcome, rows.propensity, log.group, log.cost

    def value_bounds(self, gamma: float) -> tuple[float, float]:
        """Bounds of the value for an odds ratio Γ (`bounds.pseudo_labels`)."""
        target, label, q, p, group, cost = self.bounded
        return value_bounds(target, *pseudo_labels(gamma, label, q, p, group=group, **self._decided), cost)

    @property
    def _decided(self) -> dict[str, Any]:
        return {"decisions": self.log.accepted, "labelled": self.rows.labelled} if self.logged else {}

    def values(self) -> dict[str, dict[str, float | None]]:
        """The value by estimator, with intervals; None where it is refused."""
        if self.refused_value is not None:
            return dict.fromkeys(ESTIMATORS, NOTHING)
        return {name: interval(*self.value(name)) for name in ESTIMATORS}

    def guarantee(self) -> dict[str, float | None]:
        """The interval of `intervals.guaranteed_interval`; None where the value is refused."""
        if self.refused_value is not None:
            return as_plain(low=np.nan, high=np.nan)
        rows = self.rows
        low, high = guaranteed_interval(rows.target, rows.weight, rows.label, self.log.cost, clip=rows.clip)
        return as_plain(low=low, high=high)

    def gaps(self) -> dict[str, dict[str, dict[str, float | None]]]:
        """`fairness` by measure and view; None where it is refused."""
        labelled = self.log.revealed.any()
        views: list[View] = [view for view in VIEWS if labelled]
        found = {view: self.fairness(view) for view in views} | {"everyone": self.fairness("everyone")}
        return {
            name: {
                view: found[view if labelled else "everyone"][name] if self.answers(name, view) else NOTHING
                for view in VIEWS
            }
            for name in MEASURES
        }

    def bounds(self) -> dict[str, dict[str, float | None]]:
        """Bounds of utility and gaps without assumption (`bounds.bounds`)."""
        label = np.where(self.log.revealed, self.rows.label, np.nan)
        found = bounds(self.target, *label_bounds(label), self.log.group, self.log.cost, score=self._score[0])
        return {name: as_plain(low=low, high=high) for name, (low, high) in found.items()}

    def to_plain(self) -> dict[str, Any]:
        """The content of evaluation.json."""
        log = self.log
        labelled, answered = bool(log.revealed.any()), self.refused_value is None
        return {
            "policy": self.policy,
            "log": self._log_plain(),
            "acceptance": float(self.target.mean()),
            "value": self.values(),
            "guarantee": self.guarantee(),
            "fairness": self.gaps(),
            "groups": self._groups_plain(labelled),
            "bounds": self.bounds(),
            "sensitivity": self._sensitivity_plain() if answered else None,
            "overlap": self.overlap()
            if labelled
            else as_plain(effective_sample_size=0.0, largest_weight=np.nan, share_of_top_percent=np.nan),
            "contraction": self._contraction_plain(),
            "models": {
                name: None
                if fitted is None
                else {"name": fitted.name} | as_plain(log_loss=fitted.log_loss, auc=fitted.auc)
                for name, fitted in (
                    ("propensity", self.evaluator.fitted_propensity),
                    ("outcome", self.evaluator.fitted_outcome),
                )
            },
            "notes": list(log.notes),
            "warnings": list(self.warnings),
            "refused": self.refused,
        }

    def _log_plain(self) -> dict[str, Any]:
        log = self.log
        return {
            "people": len(log.group),
            "accepted": int(log.accepted.sum()),
            "labelled": int(log.revealed.sum()),
            "cost": log.cost,
            "propensities": "estimated" if log.propensity is None else "recorded",
        }

    def _groups_plain(self, labelled: bool) -> dict[str, Any]:
        """By group: numbers of people, overlap, rates in each view, and the reliability curve."""
        log = self.log
        views: tuple[View, ...] = VIEWS if labelled else ("everyone",)
        own = {view: (self.rates(view), self.rate_draws(view)) for view in views}
        curves = {
            view: reliability(self._bins(view)) for view in views if self.answers("calibration_error", view)
        }
        found: dict[str, Any] = {}
        for g, name in enumerate(log.groups):
            members = log.group == g
            found[name] = {
                "people": int(members.sum()),
                "accepted": int(log.accepted[members].sum()),
                "labelled": int(log.revealed[members].sum()),
                "acceptance": float(self.target[members].mean()),
                "overlap": self.overlap(members) if labelled else None,
                "rates": {
                    measure: {
                        view: interval(of[measure][g], draws[measure][:, g])
                        for view, (of, draws) in own.items()
                        if self.answers(measure, view)
                    }
                    for measure in own[views[0]][0]
                },
                "reliability": {
                    view: [
                        as_plain(score=score, label=label, share=share)
                        for score, label, share in zip(
                            curve.score[g], curve.label[g], curve.share[g], strict=True
                        )
                    ]
                    for view, curve in curves.items()
                },
            }
        return found

    def _sensitivity_plain(self) -> dict[str, Any]:
        table = self.sensitivity
        by_measure = {
            str(name): [
                as_plain(gamma=row.gamma, low=row.low, high=row.high) for row in of.itertuples(index=False)
            ]
            for name, of in table.groupby("measure", sort=False)
            if self._is_sensitive(str(name))
        }
        points = turning_points(*self.bounded, **self._decided)
        return {
            "bounds": by_measure,
            "turning_points": {name: point for name, point in points.items() if self._is_sensitive(name)},
        }

    def _is_sensitive(self, quantity: str) -> bool:
        return quantity == "utility" or self.answers(quantity, "dr")

    @cached_property
    def contraction(self) -> Contraction | None:
        """Failure rates beside those of the log's decision makers; None where it names none.

        Raises:
            FairAllError: as `contraction.contraction`.
        """
        log = self.log
        if log.decision_maker is None or not log.revealed.any():
            return None
        label = np.where(log.revealed, self.rows.label, np.nan)
        return contraction(self._score[0], log.accepted, label, log.decision_maker)

    def _contraction_plain(self) -> dict[str, Any] | None:
        if self.contraction is None:
            return None
        makers = self.contraction.decision_makers
        return {
            "most_lenient": self.contraction.most_lenient,
            "policy": self.contraction.curve.to_dict("records"),
            "decision_makers": makers.astype(object).where(makers.notna(), None).to_dict("records"),
        }


def evaluate(
    policy: Any,
    log: pd.DataFrame | DecisionLog,
    *,
    propensity_model: Model = "auto",
    outcome_model: Model = "auto",
    folds: int = 5,
    seed: int = 0,
    **columns: Any,
) -> Evaluation:
    """Evaluate a policy from a log of another policy's decisions.

    Args:
        policy: its acceptance probabilities: a column of the log, an array, a scikit-learn-like predictor
            with `predict_proba`, a function of a DataFrame, a `fairall.policy.Policy`, the folder or id of a
            run; None for the policy that took the logged decisions.
        log: a row per person, as a DataFrame whose columns `columns` describes, or read already.
        propensity_model: see `Evaluator`.
        outcome_model: see `Evaluator`.
        folds: of the cross-fitting.
        seed: of folds and bootstrap.
        columns: of `DecisionLog.of`: decision, label, sensitive, ...

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
    evaluator = evaluator_of(
        log, [policy], propensity_model=propensity_model, outcome_model=outcome_model, folds=folds, seed=seed,
        **columns,
    )  # fmt: skip
    return evaluator.evaluate(policy)


def evaluator_of(log: pd.DataFrame | DecisionLog, policies: Sequence[Any], **options: Any) -> Evaluator:
    """An evaluator of a log.

    Args:
        log: as for `evaluate`.
        policies: those that are to be evaluated, whose columns are no features.
        options: of `Evaluator`, and of `DecisionLog.of` where the log is a DataFrame.
    """
    models = {name: options.pop(name) for name in OPTIONS if name in options}
    if not isinstance(log, DecisionLog):
        named = [policy for policy in policies if isinstance(policy, str) and policy in log]
        log = DecisionLog.of(log, not_features=named, **options)
    return Evaluator(log, **models)
