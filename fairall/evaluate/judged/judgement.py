"""A policy on the log of another one: what can be estimated, and what is refused."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from operator import itemgetter

import numpy as np

from fairall.evaluate.estimated import bounds as limits
from fairall.evaluate.estimated.estimators import ESTIMATORS, LABELS, People, value_support
from fairall.evaluate.estimated.fairness import MEASURES, VIEWS, View, columns, rates, support
from fairall.evaluate.estimated.influence import Estimate, Groups, Sample
from fairall.evaluate.judged import checks
from fairall.evaluate.judged.models import Models
from fairall.evaluate.log import DecisionLog
from fairall.tables.overlap import LEAST_EFFECTIVE, effective_sample_size

# Measures about people of one label, accepted or not.
BY_LABEL = ("equal_opportunity", "false_positive", "false_negative")
NO_MODEL = "a model of the label needs two people with either label"


@dataclass(frozen=True)
class Judgement:
    """A policy on a log, and what can be said of it.

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

    def labels(self, assumption: float | str | None = None) -> limits.Labels:
        """Low and high labels by an odds ratio Γ, by decision makers (`OFFICERS`), or without assumption."""
        if assumption is None:
            return limits.manski(self.people)
        if isinstance(assumption, str):
            assert self.models.officers is not None
            return self.models.officers.labels(self.people, self.logged)
        return limits.odds_ratio(assumption, self.people, self.logged)

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
            told = checks.knows_decision(self.log, models.acceptance, self.target, models.seed)
            if told is not None:
                return told
        told = self.lacking(self.target, self.people.kept.value, "whom the policy accepts", read)
        possible = limits.value_bounds(self.people, self.labels(), self.sample)
        for name in ("ips", "dr") if models.outcome else ("ips",):
            told = told or checks.outside(self.value(name), possible, LABELS[name])
        return told

    def lacking(self, wanted: np.ndarray, weight: np.ndarray, whom: str, estimate: Estimate) -> str | None:
        """`checks.lacking`, for an estimate that people of weight `wanted` enter."""
        models = self.models
        chance, error = models.acceptance * models.known, float(estimate.error / self.log.stake.mean())
        return checks.lacking(self.log, chance, models.separable, wanted, weight, whom, error)

    @property
    def refused_guarantee(self) -> str | None:
        """Why the value has no guaranteed interval, of rows of different people; None where it has."""
        log, needs = self.log, None
        if not log.labels_complete or log.propensity is None or log.cost is None:
            needs = "it needs recorded propensities, labels of all accepted people, and one cost for all"
        return self.refused_value or needs

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
    def rates(self) -> dict[View, dict[str, Estimate]]:
        """The rate of each measure by group, shape (G,), by view and name."""
        # Without labels, or a model of them, only acceptance is read from the corrected views.
        corrected: View = "dr" if self.log.revealed.any() and self.models.outcome else "ips"
        used: dict[View, View] = {"naive": "naive", "ips": "ips", "dr": corrected}
        return {view: rates(used[view], self.people, self.by_group) for view in VIEWS}

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
        if effective < LEAST_EFFECTIVE:
            below = math.floor(10 * effective) / 10  # 29.97 is below 30
            return True, (
                f"the {labels} {what} of {whose} count as {below} equally weighted ones, "
                f"below {LEAST_EFFECTIVE}"
            )
        return True, None

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
            # What is not shown comes first.
            doubts = sorted((self.doubt(measure, view, one) for one in self.models.shown), key=itemgetter(0))
            return doubts[0][0], next((why for _, why in doubts if why), None)
        why = self.refused_measure(measure, view)
        if why is not None:
            return False, why
        one, name, members = MEASURES[measure], self.log.groups[code], self.log.group == code
        if one.labels == "none" and view != "naive":
            return True, None
        what = {"positive": "positive labels", "negative": "negative labels"}.get(one.labels, "labels")
        may, why = self.few_labels(support(one, view, self.people)[members], what, f"group {name}")
        if why is not None:
            return may, why
        return True, self.no_interval(view, one.labels != "accepted")
