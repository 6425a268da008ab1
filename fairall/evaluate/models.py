"""The models of a log: propensities of decisions and of known labels, and the outcome."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from fairall.config.checks import between, number, whole_number
from fairall.errors import FairAllError
from fairall.evaluate import checks
from fairall.evaluate.estimated.estimates import Column, Sample
from fairall.evaluate.estimated.nuisance import Fitted, fit
from fairall.evaluate.estimated.officers import OFFICERS, officers, why_not
from fairall.evaluate.estimated.past import Past, past
from fairall.evaluate.log import DecisionLog
from fairall.measuring.sequences import LARGEST_GAP
from fairall.tables.cells import spelling

NO_MODEL = "a model of the label needs two people with either label"


@dataclass(eq=False)
class Models:
    """The models of a log, which serve any number of policies.

    Args:
        log: of past decisions.
        propensity_model: of decisions without recorded propensities, and of which labels are known where some
            of the accepted have none: `auto`, `logistic` or a scikit-learn classifier (`nuisance.fit`).
        outcome_model: of the labels, likewise.
        folds: of the cross-fitting.
        seed: of folds, blocks and permutations.
        smallest_cell: people of a group, or with a label, below which nothing about them is shown.
        score: probability of a positive label by a model to be validated, shape (N,); None without one.
        largest_gap: ε, the gap between groups above which a monitor gives an alarm.
        reference: name or value of the group beside which adverse impact is, where 1 is 1.0 and True, or the
            values of a combination; by default that of the highest rate, of those with at least 30 people and
            2 % of all.

    Attributes:
        shown: codes of the groups with people enough.
        acceptance: π, the probability that the logged decision was acceptance, estimated where not recorded,
            shape (N,).
        propensity: the model of the decision; None where all are recorded.
        labelled: of known labels of accepted people; None where all are known, or none.
        known: ℓ, the probability that the label of an accepted person is known, shape (N,), or 1 for all.
        outcome: of the label; None where fewer than two labels are of one value.
        fitted: these models by name.
        separable: whether the features tell nearly every decision, so that rejected people had no chance.
        sample: the rows.
        by_decision: `nuisance.fit` of a log, a target and its name, by the propensity model.
        by_label: likewise by the outcome model.
        label_weight: r/ℓ, the weight of a revealed label among accepted people.
        weight: r/p, that among all people.

    Raises:
        FairAllError: where a model or number cannot be used, all labels are of one person, or `reference` is
            not shown.
    """

    log: DecisionLog
    propensity_model: Any = "auto"
    outcome_model: Any = "auto"
    folds: int = 5
    seed: int = 0
    smallest_cell: int = 10
    score: np.ndarray | None = None
    largest_gap: float = LARGEST_GAP
    reference: Any = None

    def __post_init__(self) -> None:
        log = self.log
        self.folds, self.seed = whole_number("folds", self.folds, 2), whole_number("seed", self.seed)
        self.smallest_cell = whole_number("smallest_cell", self.smallest_cell, 1)
        self.largest_gap = number("largest_gap", self.largest_gap, between(0, 1))
        self.shown: np.ndarray = np.flatnonzero(np.bincount(log.group) >= self.smallest_cell)
        if self.reference is not None:
            wanted = spelling(", ".join(map(str, np.array([self.reference], dtype=object).ravel())))
            shown = log.probable_groups or [log.groups[code] for code in self.shown.tolist()]
            names = {spelling(name): name for name in shown}
            if wanted not in names:
                listed = ", ".join(shown)
                raise FairAllError(f"reference {self.reference!r}: no such group; there are {listed}")
            self.reference = names[wanted]
        what = "labels" if log.revealed.any() else "rows"
        counted = log.revealed | (what == "rows")
        if log.person is not None and np.ptp(log.person[counted]) == 0:
            raise FairAllError(
                f"person: all {counted.sum()} {what} are of one person, from whom nothing follows for "
                "others; leave out label to compare acceptance rates, or person if rows are of different "
                "people"
            )
        self.by_decision, self.by_label = (
            partial(fit, model=model, folds=self.folds, seed=self.seed)
            for model in (self.propensity_model, self.outcome_model)
        )
        recorded = np.full(len(log), np.nan) if log.propensity is None else log.propensity
        self.acceptance, self.propensity, self.separable = recorded, None, False
        if np.isnan(recorded).any():
            decisions = self.by_decision(log, log.accepted.astype(float), "decision")
            if decisions is None:
                raise FairAllError("a model of the decision needs two people with either decision")
            if log.policy_version is not None:  # of which no logistic regression is right
                decisions = replace(decisions, parametric=None)
            self.propensity = decisions
            self.acceptance = np.where(np.isnan(recorded), decisions.probability, recorded)
            self.separable = log.propensity is None and decisions.auc > checks.SEPARABLE
        self.labelled = self.by_decision(log, np.where(log.accepted, log.revealed, np.nan), "known label")
        self.known = 1.0 if self.labelled is None else self.labelled.probability
        self.outcome = self.by_label(log, log.label, "label")
        self.fitted = {"propensity": self.propensity, "labelled": self.labelled, "outcome": self.outcome}
        parametric = {
            name: model.parametric for name, model in self.fitted.items() if model and model.parametric
        }
        self.sample = Sample(len(log), parametric, log.person, self.seed)
        self.label_weight = _inverse("labelled", self.labelled) * log.revealed.astype(float)
        if log.propensity is None:
            self.weight = self.label_weight * _inverse("propensity", self.propensity)
        else:
            self.weight = self.label_weight * (1.0 / np.where(log.revealed, log.propensity, 1.0))

    @cached_property
    def past(self) -> Past:
        """Predictions from earlier moments, of a log with times."""
        return past(self.log, self.by_decision, self.by_label)

    @cached_property
    def outcome_column(self) -> Column | None:
        """Q with its derivative."""
        if self.outcome is None:
            return None
        q = self.outcome.probability
        return Column(q, {"outcome": q * (1.0 - q)} if self.outcome.parametric else {})

    @cached_property
    def impossible(self) -> str | None:
        """`checks.impossible` of the propensities of the decisions."""
        recorded = self.log.propensity
        return checks.impossible(self.log, self.acceptance if recorded is None else recorded)

    @cached_property
    def officers(self) -> np.ndarray | None:
        """Ends of labels (2, N) by the decision makers of the log; None where they bound nothing."""
        return None if why_not(self.log) else officers(self.log, self.folds, self.seed)

    @cached_property
    def why_no_officers(self) -> str | None:
        """Why decision makers bound nothing; None where they do."""
        if self.officers is None:
            return why_not(self.log)
        low, high = self.officers
        if self.sample.mean(high - low).interval().high < 0:  # a test of instruments (Kitagawa 2015)
            return (
                "those of different decision makers exclude each other: cases are not assigned at random "
                "given the features, or who decides changes the label"
            )
        return None

    @property
    def assumptions(self) -> list[str]:
        """By which unknown labels are bounded, whatever the model of the label: none, and `OFFICERS`."""
        return ["no assumption"] if self.why_no_officers else ["no assumption", OFFICERS]


def _inverse(name: str, fitted: Fitted | None) -> Column:
    """1/p of each row with its derivative; 1 without a model."""
    if fitted is None:
        return Column(np.array(1.0))
    inverse = fitted.inverse()
    return Column(inverse, {name: -inverse * (1.0 - fitted.probability)} if fitted.parametric else {})
