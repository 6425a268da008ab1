"""Initial policies, which decide on the people of the warm-up (appendix D.1).

References:
    Rosenbaum, P. (2002). Observational studies. Chapter 4.
    Tan, Z. (2006). A distributional approach for causal inference using propensity scores. Journal of the
        American Statistical Association.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from omegaconf import MISSING
from scipy.special import expit
from typing_extensions import override

from fairall.config.checks import (
    at_least,
    check_values,
    numpy_seed,
    one_of,
    open_unit,
    optional,
    positive_share,
)
from fairall.config.schema import InitialPolicyConfig, NetInputs
from fairall.data.features import FeatureInputs
from fairall.data.splits import shifted
from fairall.data.table import Logged, Table
from fairall.errors import FairAllError
from fairall.tables.groups import sides

FOLDS = 5  # of the model of labels that keeps the propensity given x where reasons are hidden


class InitialPolicy(ABC):
    """Decisions on a whole table, the same for every seed as in the authors' data; chosen by `_target_`.

    Attributes:
        config_type: dataclass of the `initial_policy` node; every key of the node is one of its fields.
    """

    config_type: ClassVar[type[InitialPolicyConfig]] = InitialPolicyConfig

    def __init__(self, config: Any) -> None:
        self.config = config

    def of_split(self, number: int) -> InitialPolicy:
        """The policy for the pool of a split, 0 for the first."""
        return self

    @abstractmethod
    def propensity(self, table: Table) -> np.ndarray:
        """p(d=1) of each row, shape (N,)."""

    @abstractmethod
    def decide(self, table: Table) -> np.ndarray:
        """Decisions on all rows, shape (N,), bool; people without a label count as rejected."""


@dataclass
class DrawnPolicyConfig(InitialPolicyConfig):
    """Random state of the decisions, and the strength of reasons that the table does not hold.

    `hidden` is Γ ≥ 1, the odds of being accepted of people with label 1 over those of people with label 0, of
    equal features and group; null, and not stored with runs, where decisions depend on these alone.
    """

    random_state: int = numpy_seed()
    hidden: float | None = optional(at_least(1))


class DrawnPolicy(InitialPolicy):
    """Decisions drawn from acceptance probabilities that a subclass computes.

    With `hidden` the deciders know more than the table, as an interview may tell: they accept people of label
    1 with greater probability than those of label 0. The propensity remains that given features and group,
    which is all that a log can record; see `hidden_acceptance`.
    """

    config: DrawnPolicyConfig
    config_type = DrawnPolicyConfig

    @override
    def of_split(self, number: int) -> DrawnPolicy:
        """The same with decisions drawn anew."""
        random_state = shifted(self.config.random_state, number)
        return type(self)(replace(self.config, random_state=random_state))

    @abstractmethod
    def acceptance(self, table: Table) -> np.ndarray:
        """Acceptance probability of each row in [0, 1], shape (N,)."""

    @override
    def propensity(self, table: Table) -> np.ndarray:
        """Acceptance probability (N,), times that of the logged decisions where these revealed the labels.

        Only people accepted by both can then be accepted.
        """
        return self.acceptance(table) * table.label_propensity

    @override
    def decide(self, table: Table) -> np.ndarray:
        p = self.acceptance(table)
        if self.config.hidden is not None:
            p = hidden_acceptance(p, self.config.hidden, table)
        drawn = np.random.RandomState(self.config.random_state).binomial(1, p, len(p))
        return (drawn == 1) & table.labelled


def hidden_acceptance(p: np.ndarray, gamma: float, table: Table) -> np.ndarray:
    """Acceptance probabilities given features, group and label, whose mean given features and group is p.

    The model of a sensitivity analysis (Rosenbaum 2002; Tan 2006): the odds of being accepted are o for label
    0 and Γ·o for label 1, where o is such that

        q · Γo / (1 + Γo) + (1 − q) · o / (1 + o) = p.

    As odds ratios are symmetric, the labels of the accepted have Γ times the odds of those of rejected people
    of equal features, which is what `fairall.evaluate.estimated.bounds.odds_ratio` assumes. q, the chance of
    label 1, is that of a logistic model of the other folds, so that o does not depend on a person's own
    label, and the odds ratio is exactly Γ. The mean is p as far as this model is right.

    Args:
        p: acceptance probability given features and group, shape (N,).
        gamma: Γ ≥ 1.
        table: the people.

    Returns:
        Shape (N,).

    Raises:
        FairAllError: where not all labels are known, or nearly all are the same.
    """
    from sklearn.model_selection import PredefinedSplit, cross_val_predict  # of no other policy

    from fairall.models.logistic import mixture_odds
    from fairall.models.ridge import Ridge

    unknown = int((~table.labelled).sum())
    if unknown:
        raise FairAllError(
            f"initial_policy.hidden={gamma}: decisions would depend on labels, and {unknown} of {len(table)} "
            "people have none; choose a data set with all labels, or leave it out"
        )
    fold = np.arange(len(table)) % FOLDS
    if min(len({*fold[table.label == y]}) for y in (0, 1)) < 2:
        raise FairAllError(
            f"initial_policy.hidden={gamma}: nearly all people have the same label, which then is no "
            "reason to accept some of them; leave it out"
        )
    encode = FeatureInputs(table.schema.seen_as(NetInputs.one_hot))
    inputs = encode.with_s(torch.tensor(table.features), torch.tensor(table.s, dtype=torch.float64)).numpy()
    folds = PredefinedSplit(fold)
    q = cross_val_predict(Ridge(), inputs, table.label, cv=folds, method="predict_proba")[:, 1]
    odds = mixture_odds(p, q, gamma) * np.where(table.label == 1, gamma, 1.0)
    return odds / (1.0 + odds)


@dataclass
class LogisticPolicyConfig(DrawnPolicyConfig):
    """Coefficients of a logistic policy."""

    score: dict[str, float] = MISSING
    slope: float = MISSING
    intercept: float = MISSING
    advantaged: float = MISSING


class LogisticPolicy(DrawnPolicy):
    """p(d=1) = σ(intercept + advantaged·[S = +1] + slope·Σ_j score_j·x_j), on unscaled features.

    With more than two groups the first one takes the place of S = +1.
    """

    config: LogisticPolicyConfig
    config_type = LogisticPolicyConfig

    @override
    def acceptance(self, table: Table) -> np.ndarray:
        """Shape (N,); raises FairAllError without a score, or if a scored column is not in the table."""
        if not self.config.score:
            raise FairAllError(
                f"initial_policy={self.config.name} needs a score, which this data set does not have: "
                "give 'dataset.initial_policies.score={COLUMN: WEIGHT}', or choose initial_policy=random"
            )
        for name in self.config.score:
            check_values(name, "initial_policy.score", one_of([*table.x]))
        score = sum(weight * table.x[name].to_numpy() for name, weight in self.config.score.items())
        advantaged = self.config.advantaged * (table.s == sides(table.schema.n_groups)[0])
        return expit(self.config.intercept + advantaged + self.config.slope * score)


@dataclass
class RandomPolicyConfig(DrawnPolicyConfig):
    """Acceptance probability of everybody."""

    acceptance_rate: float = positive_share()


class RandomPolicy(DrawnPolicy):
    """Acceptance of everybody with the same probability."""

    config: RandomPolicyConfig
    config_type = RandomPolicyConfig

    @override
    def acceptance(self, table: Table) -> np.ndarray:
        return np.full(len(table), self.config.acceptance_rate)


@dataclass
class LoggedPolicyConfig(InitialPolicyConfig):
    """Least propensity of an accepted row, which bounds the weight of one person."""

    min_propensity: float = open_unit()


class LoggedPolicy(InitialPolicy):
    """Decisions that the data set records."""

    config: LoggedPolicyConfig
    config_type = LoggedPolicyConfig

    @override
    def propensity(self, table: Table) -> np.ndarray:
        """The logged acceptance probability, at least `min_propensity` where accepted, shape (N,)."""
        logged = _logged(table)
        raised = np.maximum(logged.propensity, self.config.min_propensity)
        return np.where(logged.accepted, raised, logged.propensity)

    @override
    def decide(self, table: Table) -> np.ndarray:
        return _logged(table).accepted & table.labelled


def _logged(table: Table) -> Logged:
    if table.logged is None:
        raise FairAllError(
            "initial_policy=logged: the data set records no decisions; "
            "with dataset=csv give their column, dataset.decision=COLUMN"
        )
    return table.logged
