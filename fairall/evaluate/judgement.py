"""A policy on the log of another one: what can be estimated, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
import pandas as pd

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
from fairall.evaluate.log import DecisionLog
from fairall.evaluate.models import NO_MODEL, Models
from fairall.tables.overlap import LEAST_EFFECTIVE, effective_sample_size

if TYPE_CHECKING:
    pass

T = TypeVar("T")
DISAGREEING = 3.0  # standard errors between two estimators
LIKELY = {
    "ips": "doubt the propensities: weighted people with labels may be unlike all people, see their balance",
    "dm": "the outcome model fails among the people whom the policy accepts",
}
# Measures about people of one label, accepted or not.
BY_LABEL = ("equal_opportunity", "false_positive")
AnyLog: TypeAlias = pd.DataFrame | str | Path | DecisionLog


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
        draw: seed of its drawn decisions; None where none is drawn by a seed.
    """

    models: Models
    policy: str
    target: np.ndarray
    logged: bool = False
    notes: tuple[str, ...] = ()
    rule: str = ""
    draw: int | None = None

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

    # Values and their refusals.

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
        models = self.models
        if self.target.sum() <= 0 or (self.logged and models.labelled is None):  # 0, or observed
            return None
        read = self.value("dr" if models.outcome else "ips")
        if self.logged:
            error, kept = float(read.error / self.log.stake.mean()), self.people.kept.value
            return checks.lacking(
                self.log, models.known, False, self.target, kept, "who were accepted", error
            )
        if models.impossible is not None:
            return models.impossible
        if not models.separable:  # else residuals of decision and policy hold the same error of the model
            knows = checks.knows_decision(self.log, models.acceptance, self.target, models.seed)
            if knows is not None:
                return knows
        reason = self.lacking(self.target, self.people.kept.value, "whom the policy accepts", read)
        possible = limits.value_bounds(self.people, self.labels(), self.sample)
        for name in ("ips", "dr") if models.outcome else ("ips",):
            reason = reason or checks.outside(self.value(name), possible, LABELS[name])
        return reason

    def lacking(self, wanted: np.ndarray, weight: np.ndarray, whom: str, estimate: Estimate) -> str | None:
        """`checks.lacking`, for an estimate that people of weight `wanted` enter."""
        models = self.models
        chance, error = models.acceptance * models.known, float(estimate.error / self.log.stake.mean())
        return checks.lacking(self.log, chance, models.separable, wanted, weight, whom, error)

    def refused_estimator(self, name: str) -> str | None:
        """Why the value has no estimate of that name; None where it has."""
        needs_model = name in ("dr", "sndr", "dm") and self.models.outcome is None
        return self.refused_value or (NO_MODEL if needs_model else None)

    def value(self, estimator: str) -> Estimate:
        """An estimate of the value; 0 where the policy accepts nobody."""
        people, nobody = self.people, self.target.sum() <= 0
        found = self.sample.mean(self.target) if nobody else ESTIMATORS[estimator](people, self.sample)
        return found.on(value_support(people, people.kept.value, self.sample))

    @cached_property
    def values(self) -> dict[str, Interval]:
        """The value by estimator."""
        found = {}
        for name in ESTIMATORS:
            refused = self.refused_estimator(name)
            estimate = NOTHING if refused else self.value(name).interval()
            found[name] = estimate.without_ends(refused or self.no_interval(name))
        return found

    @property
    def refused_guarantee(self) -> str | None:
        """Why the value has no guaranteed interval, of rows of different people; None where it has."""
        log, needs = self.log, None
        if not log.labels_complete or log.propensity is None or log.cost is None:
            needs = "it needs recorded propensities, labels of all accepted people, and one cost for all"
        return self.refused_value or needs

    @cached_property
    def guarantee(self) -> Interval:
        """The interval of `estimators.guaranteed_interval`, without an estimate, where it holds."""
        why = self.refused_guarantee
        if why is None and self.log.several_rows:
            why = "it needs rows of different people"
        if why is not None:
            return NOTHING.without_ends(why)
        return Interval(np.nan, *guaranteed_interval(self.people))

    @cached_property
    def few(self) -> str | None:
        """Why the value that is known has no interval for lack of people; None where it has one."""
        known = next((name for name in ESTIMATORS if self.refused_estimator(name) is None), None)
        return None if known is None else lacking(self.value(known))

    # Rates of groups, gaps, and their refusals.

    @cached_property
    def refused_rates(self) -> str | None:
        """Why the measures `BY_LABEL`, whose denominators hold the rejected too, cannot be estimated."""
        if self.refused_value is not None:
            return self.refused_value
        if self.models.impossible is not None:
            return self.models.impossible
        of_labels = columns("dr" if self.models.outcome else "ips", self.people).positive
        wanted = np.ones_like(self.target)
        return self.lacking(wanted, self.people.weight.value, "of the log", self.sample.mean(of_labels))

    def refused_measure(self, measure: str, view: View) -> str | None:
        """Why a measure of fairness has no estimate in a view; None where it has.

        The naive view needs a label. In the others acceptance is always known, measures about people of one
        label (`BY_LABEL`) need overlap for everybody, and the rest overlap for those whom the policy accepts.
        """
        if MEASURES[measure].labels == "none" and view != "naive":
            return None
        if not self.log.revealed.any():
            return self.refused_value
        if view == "naive":
            return None
        if view == "dr" and self.models.outcome is None:
            return NO_MODEL
        return self.refused_rates if measure in BY_LABEL else self.refused_value

    @cached_property
    def rates(self) -> dict[View, dict[str, Estimate]]:
        """The rate of each measure by group, shape (G,), by view and name."""
        # Without labels, or a model of them, only acceptance is read from the corrected views.
        corrected: View = "dr" if self.log.revealed.any() and self.models.outcome else "ips"
        used: dict[View, View] = {"naive": "naive", "ips": "ips", "dr": corrected}
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
        found = gap_interval(estimates[self.models.shown]) if code is None else estimates.interval(code)
        return found.without_ends(why)

    def doubt(self, measure: str, view: View, code: int | None = None) -> tuple[bool, str | None]:
        """Whether the rate of a group may be shown, and why it is not or has no interval.

        Args:
            measure: of `MEASURES`.
            view: of the labels.
            code: of the group; None for the gap over all shown groups.
        """
        least = self.models.smallest_cell
        if code is None:
            if self.log.probabilities is not None:
                return False, "of the groups only probabilities are known: see the bounds of adverse impact"
            if len(self.models.shown) < 2:
                return False, f"fewer than two groups have {least} people"
            doubts = [self.doubt(measure, view, group) for group in self.models.shown]
            doubts.sort(key=lambda doubt: doubt[0])  # what is not shown comes first
            return doubts[0][0], next((why for _, why in doubts if why), None)
        why = self.refused_measure(measure, view)
        if why is not None:
            return False, why
        needed, members = MEASURES[measure].labels, self.log.group == code
        if needed == "none" and view != "naive":
            return True, None
        what = f"{needed} labels" if needed in ("positive", "negative") else "labels"
        weights = support(MEASURES[measure], view, self.people)[members]
        may, why = self.few_labels(weights, what, f"group {self.log.groups[code]}")
        return may, why or self.no_interval(view, needed != "accepted")

    def few_labels(self, weights: np.ndarray, what: str, whose: str) -> tuple[bool, str | None]:
        """Whether an estimate from labels may be shown, and why it is not, or has no interval.

        Args:
            weights: of the labels, shape (K,), 0 for those that do not count.
            what: the labels, in words.
            whose: whose they are, likewise.
        """
        labels, effective = int(np.count_nonzero(weights)), effective_sample_size(np.abs(weights))
        if labels < self.models.smallest_cell:
            return False, f"{whose} has fewer than {self.models.smallest_cell} {what} that count"
        if effective >= LEAST_EFFECTIVE:
            return True, None
        below = math.floor(10 * effective) / 10  # 29.97 is below 30
        counted = f"count as {below} equally weighted ones, below {LEAST_EFFECTIVE}"
        return True, f"the {labels} {what} of {whose} {counted}"

    def no_interval(self, estimator: str, by_label: bool = False) -> str | None:
        """Why an estimator, or the rates of its view, have no interval.

        Args:
            estimator: of `ESTIMATORS`, or a view.
            by_label: whether the estimate rests on the labels of all people, not of accepted ones only.
        """
        models, needed = self.models, []
        if estimator == "dm":
            needed = [("outcome is", models.outcome)]
        if estimator in ("ips", "snips"):
            needed = [("known labels are", models.labelled)]
            if self.log.propensity is None and (by_label or not self.logged):
                needed.append(("propensities are", models.propensity))
        for what, fitted in needed:
            if fitted is not None and fitted.parametric is None:
                return f"the {what} modelled by {fitted.name}, whose error has no theory: read DR"
        return None

    def overlap(self, rows: np.ndarray | None = None) -> dict[str, float]:
        """Effective sample size (Kish 1965), largest value and concentration of the weights of labels.

        Args:
            rows: a selection of people, shape (N,), bool; None for all.
        """
        chosen = self.log.revealed if rows is None else self.log.revealed & rows
        weight = np.sort(self.people.kept.value[chosen])
        total = weight.sum()
        top = weight[-max(1, round(len(weight) / 100)) :]
        return {
            "effective_sample_size": effective_sample_size(weight),
            "largest_weight": weight.max(initial=0.0),
            "share_of_top_percent": top.sum() / total if total > 0 else np.nan,
        }

    # Bounds.

    def labels(self, assumption: float | str | None = None) -> limits.Labels:
        """Low and high labels by an odds ratio Γ, by decision makers (`OFFICERS`), or without assumption."""
        if assumption is None:
            return limits.manski(self.people)
        if isinstance(assumption, str):
            assert self.models.officers is not None
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
        self, assumption: float | str | None = None, names: Sequence[str] = ("utility", *MEASURES)
    ) -> dict[str, Limits]:
        """Bounds of utility and gaps by name; `assumption` as of `labels`."""
        labels = self.labels(assumption)
        return limits.limits_of(names, self.people, labels, self.by_group, self.models.shown)

    # Doubts.

    @cached_property
    def disagreement(self) -> str | None:
        """Which estimators differ by more than their errors, and the reason that is likely; None for none."""
        if self.refused_estimator("dr") is not None or self.logged or self.target.sum() <= 0 or self.few:
            return None
        read = self.value("dr")
        for name in ("ips", "dm"):
            change = self.value(name) - read
            if abs(change.value) > max(DISAGREEING * change.error, read.error):
                return (
                    f"{LABELS[name]} and doubly robust differ by {100 * abs(change.value):.1f} per 100 "
                    f"people (standard error {100 * change.error:.1f}): {LIKELY[name]}"
                )
        return None

    @cached_property
    def misfit(self) -> Misfit | None:
        """What the models of weights and outcome both leave over, so that the value is in doubt."""
        models, imbalance = self.models, self.people.kept.value - self.target
        estimated = models.propensity is not None or models.labelled is not None
        if self.refused_estimator("dr") is not None or not estimated or not imbalance.any():
            return None
        assert models.outcome is not None
        error = float(self.value("dr").error)
        return checks.misfit(self.log, models.outcome.probability, imbalance, error, models.seed)

    @property
    def in_doubt(self) -> list[str]:
        """Signs that the value is wrong."""
        misfit = self.misfit and self.misfit.sentence
        return [text for text in (misfit, self.disagreement) if text]

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Doubts about the estimates, and what they lack."""
        log, models, texts = self.log, self.models, self.in_doubt
        if self.few is not None:
            texts.append(f"no interval of the utility: {self.few}")
        if hidden := [name for code, name in enumerate(log.groups) if code not in models.shown]:
            texts.append(
                f"nothing is shown of groups with fewer than {models.smallest_cell} people, which are "
                f"no part of gaps: {', '.join(hidden)}"
            )
        if log.time is not None and log.several_rows:
            texts.append(
                "people have several rows: that intervals hold at every moment, and alarms are rare, is "
                "known of rows of different people only"
            )
        texts += models.changes
        if models.past is not None:
            texts += models.past.lacking
        reasons: dict[str, list[str]] = {}
        for name, measure in MEASURES.items() if log.revealed.any() else ():
            why = self.doubt(name, "dr")[1]
            if why and why != self.refused_measure(name, "dr"):
                reasons.setdefault(why, []).append(measure.label)
        texts += [f"no interval of {', '.join(names)}: {why}" for why, names in reasons.items()]
        return tuple(texts)
