"""Any classifier of the accepted, and reject inference: what is assumed of rejected people in addition.

Label 0 is the bad one, as a default. Every method fits the same classifier of (x, s), a penalised logistic
regression or any other of scikit-learn's shape. It chooses the table that this is fitted to: who is in it,
with which label in [0, 1] and which weight. A row of label p and weight w is one of weight p·w with label 1
and one of weight (1 − p)·w with label 0.

References:
    Hsia: Credit scoring and the Equal Credit Opportunity Act, Hastings Law Journal 30, 1978 (reweighting).
    Heckman: Sample selection bias as a specification error, Econometrica 47, 1979.
    Siddiqi: Credit risk scorecards, Wiley 2006, chapter 6 (parcelling, fuzzy augmentation).
    Rubin: Multiple imputation for nonresponse in surveys, Wiley 1987.
    Kozodoi, Lessmann, Alamgir, Moreira-Matias, Papakonstantinou: Fighting sampling bias: a framework for
    training and evaluating credit scoring models, European Journal of Operational Research 324, 2025 (BASL).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from scipy.optimize import minimize
from scipy.special import expit, log_ndtr
from torch import Tensor
from typing_extensions import override

from fairall.config.checks import at_least, limited, open_unit, positive, positive_share
from fairall.data.people import Decided
from fairall.models.estimators import (
    SEEDS,
    estimator_of,
    fitted,
    log_odds,
    logistic,
    packages,
)
from fairall.models.learner import Setting
from fairall.models.refitted import Refitted, RefittedConfig

TREES = 100  # of an isolation forest
EXACT = 1e-6  # of the gradient of the mean loss of a probit


class Table(NamedTuple):
    """N people to fit a classifier to.

    Attributes:
        x: inputs, s among them, mean 0 and standard deviation 1 among all seen, shape (N, F).
        label: in [0, 1], shape (N,).
        weight: not negative, shape (N,).
    """

    x: np.ndarray
    label: np.ndarray
    weight: np.ndarray


@dataclass(frozen=True)
class Seen:
    """N people seen by a replicate, some of them rejected, and both labels among the accepted.

    Attributes:
        everybody: the label is 0 where it is unknown.
        accepted: the decisions, shape (N,), bool.
        seed: of random numbers.
    """

    everybody: Table
    accepted: np.ndarray
    seed: int

    @property
    def known(self) -> Table:
        """The accepted."""
        return Table(*(column[self.accepted] for column in self.everybody))

    def imputed(self, label: np.ndarray) -> Table:
        """Everybody, the rejected with these labels, shape (N,)."""
        return self.everybody._replace(label=np.where(self.accepted, self.everybody.label, label))


@dataclass
class EstimatorConfig(RefittedConfig):
    """The classifier (`estimators.estimator_of`), or {} for a regression with an inverse penalty."""

    estimator: dict[str, Any] = field(default_factory=dict)
    linear_c: float = positive()


class AcceptedOnly(Refitted):
    """A classifier of the accepted people so far.

    It ignores rejected people, and is what the other methods are compared with. These derive from it and
    override `table`.

    Attributes:
        model: the classifier, unfitted.
        mean: of the inputs among the people seen, float64, shape (E, F).
        scale: their standard deviations.
    """

    remembered = "all"
    further: ClassVar[int] = 0  # inputs of the table that are 0 for new people
    config: EstimatorConfig
    config_type = EstimatorConfig
    mean: Tensor
    scale: Tensor

    def __init__(self, config: EstimatorConfig, setting: Setting) -> None:
        node, n_seeds = config.estimator, len(setting.seeds)
        super().__init__(config, setting, packages(node))
        self.model = estimator_of(node, "model.estimator") if node else logistic(config.linear_c)
        shape = n_seeds, self.inputs.size_with_s
        self.register_buffer("mean", torch.zeros(shape, dtype=torch.float64))
        self.register_buffer("scale", torch.ones(shape, dtype=torch.float64))

    @override
    def fit(self, e: int, seen: Decided, seed: int) -> list[Any]:
        inputs, one = self.inputs.with_s(seen.x, seen.s).double(), torch.ones((), dtype=torch.float64)
        self.mean[e] = inputs.mean(0)
        self.scale[e] = torch.where((inputs == inputs[0]).all(0), one, inputs.std(0, correction=0))
        weight = torch.ones_like(seen.label) if seen.weight is None else seen.weight
        columns = (inputs - self.mean[e]) / self.scale[e], seen.label.double(), weight.double()
        people = Seen(Table(*(column.numpy() for column in columns)), seen.accepted.numpy(), seed)
        table = people.known
        if not people.accepted.all() and 0.0 < table.label.sum() < len(table.label):
            table = self.table(people)
        else:
            table = table._replace(x=np.pad(table.x, ((0, 0), (0, self.further))))
        used = Table(*(column[table.weight > 0] for column in table))
        return [fitted(self.model, *used, cost=self.setting.cost, seed=seed)]

    def table(self, seen: Seen) -> Table:
        """The people whom the classifier is fitted to; those of weight 0 are left out."""
        return seen.known

    def odds(self, of: Table, seen: Seen) -> np.ndarray:
        """Log odds of everybody seen by the classifier of a table, shape (N,)."""
        return log_odds(fitted(self.model, *of, seed=seen.seed), seen.everybody.x)

    @override
    def given(self, e: int, x: Tensor, s: Tensor) -> list[np.ndarray]:
        columns = (self.inputs.with_s(x, s).double() - self.mean[e]) / self.scale[e]
        return [np.pad(columns.numpy(), ((0, 0), (0, self.further)))]


@dataclass
class ReweightingConfig(EstimatorConfig):
    """The least probability of acceptance that is divided by."""

    least: float = positive_share()


class Reweighting(AcceptedOnly):
    """The accepted, weighted by 1 / P(d = 1 | x, s), which a classifier of the decisions estimates."""

    config: ReweightingConfig
    config_type = ReweightingConfig

    @override
    def table(self, seen: Seen) -> Table:
        p = expit(self.odds(seen.everybody._replace(label=seen.accepted.astype(float)), seen))
        weight = seen.known.weight / np.maximum(p[seen.accepted], self.config.least)
        # The sum of weights is as without them, so that a penalty is as strong.
        return seen.known._replace(weight=weight * (seen.known.weight.sum() / weight.sum()))


@dataclass
class ParcellingConfig(EstimatorConfig):
    """The number of bands of the score, and how many times as bad as the accepted the rejected are."""

    bands: int = at_least(1)
    uplift: float = positive()


class Parcelling(AcceptedOnly):
    """Everybody; the rejected of a band of the score have the bad rate of its accepted, times `uplift`.

    The score is that of the classifier of the accepted, its bands are quantiles of theirs.
    """

    config: ParcellingConfig
    config_type = ParcellingConfig

    @override
    def table(self, seen: Seen) -> Table:
        risk = 1.0 - expit(self.odds(seen.known, seen))
        inner = np.linspace(0.0, 1.0, self.config.bands + 1)
        bounds = np.unique(np.quantile(risk[seen.accepted], inner))[1:-1]
        band = np.searchsorted(bounds, risk, side="right")
        _, label, weight = seen.known
        known, bad = band[seen.accepted], 1.0 - label
        people, bads = (np.bincount(known, of, len(bounds) + 1) for of in (weight, weight * bad))
        average = np.average(bad, weights=weight)
        rate = np.divide(bads, people, out=np.full(len(people), average), where=people > 0)
        return seen.imputed(1.0 - np.minimum(self.config.uplift * rate[band], 1.0))


@dataclass
class FuzzyAugmentationConfig(EstimatorConfig):
    """The number of labels drawn for a rejected person; null: both labels, with weights p and 1 − p."""

    imputations: int | None = at_least(1)


class FuzzyAugmentation(AcceptedOnly):
    """Everybody; a rejected person counts as p of label 1 and 1 − p of label 0.

    p is that of the classifier of the accepted, which is what comes out again for a regression: at its
    weights the gradient of the loss of the rejected is 0, and a convex loss has no other minimum. Another
    kind of classifier may differ. With `imputations` labels are drawn with p (multiple imputation, Rubin
    1987), in as many copies of everybody.
    """

    config: FuzzyAugmentationConfig
    config_type = FuzzyAugmentationConfig

    @override
    def table(self, seen: Seen) -> Table:
        p, n = expit(self.odds(seen.known, seen)), self.config.imputations
        if n is None:
            return seen.imputed(p)
        drawn = np.random.default_rng(seen.seed).random((n, len(p))) < p
        copies = [seen.imputed(labels.astype(float)) for labels in drawn]
        x, label, weight = (np.concatenate(column) for column in zip(*copies, strict=True))
        return Table(x, label, weight / n)


class Heckman(AcceptedOnly):
    """The accepted, with the inverse Mills ratio of a probit of the decisions as one more input.

    The ratio λ(z) = φ(z)/Φ(z) is the mean of the standard normal error of the decision, given acceptance at
    the probit's index z. Its weight stands for the correlation of that error with the one of the label.
    Predictions are for everybody, accepted or not, and have λ = 0.
    """

    further = 1

    @override
    def table(self, seen: Seen) -> Table:
        x, known = seen.everybody.x, seen.known
        weights = probit(x, seen.accepted, self.config.linear_c)
        index = known.x @ weights[:-1] + weights[-1]
        ratio = np.exp(-(index**2) / 2 - math.log(2 * math.pi) / 2 - log_ndtr(index))
        # Not centred: the intercept is that of λ = 0.
        return known._replace(x=np.column_stack([known.x, ratio / (ratio.std() or 1.0)]))


@dataclass
class BaslConfig(EstimatorConfig):
    """Whom to label, how many in each iteration, and how many of them bad."""

    similar: list[float] = limited(
        "two shares in ascending order, from 0 to 1",
        lambda shares: len(shares) == 2 and 0 <= shares[0] < shares[1] <= 1,
    )
    sample: float = positive_share()
    labelled: float = open_unit()
    imbalance: float = at_least(1)
    iterations: int = at_least(1)


class Basl(AcceptedOnly):
    """The accepted, and rejected people whom self-learning labels (Kozodoi et al. 2025).

    Rejected people who are most or least like the accepted, by an isolation forest of these, are left out.
    In each iteration a classifier of all with a label scores a sample of the others. Those of it with the
    least p get label 0 and those with the largest label 1, `imbalance` times as many 0 as 1, if they are
    beyond quantiles of the first iteration. It ends early where nobody is.
    """

    config: BaslConfig
    config_type = BaslConfig

    @override
    def table(self, seen: Seen) -> Table:
        label, labelled = seen.everybody.label.copy(), seen.accepted.copy()
        random = np.random.default_rng(seen.seed)
        left = self.filtered(seen, int(random.integers(SEEDS)))
        shares = self.config.labelled, self.config.labelled / self.config.imbalance  # of bad and good
        low, high = math.nan, math.nan
        for iteration in range(self.config.iterations):
            asked = random.permutation(left)[: math.ceil(self.config.sample * len(left))]
            of = Table(*(column[labelled] for column in seen.everybody._replace(label=label)))
            odds = self.odds(of, seen)[asked]
            if iteration == 0:
                low, high = np.quantile(odds, [shares[0], 1.0 - shares[1]])
            order, (bads, goods) = odds.argsort(), (math.ceil(share * len(asked)) for share in shares)
            bad, good = order[:bads], order[len(order) - goods :]
            bad, good = asked[bad[odds[bad] <= low]], asked[good[odds[good] >= high]]
            label[bad], label[good] = 0.0, 1.0
            labelled[bad] = labelled[good] = True
            left = left[~labelled[left]]
            if not len(bad) + len(good) or not len(left):
                break
        return seen.everybody._replace(label=label, weight=labelled * seen.everybody.weight)

    def filtered(self, seen: Seen, seed: int) -> np.ndarray:
        """Rows of the rejected whose similarity to the accepted is between the quantiles `similar`."""
        from sklearn.ensemble import IsolationForest  # takes a second

        forest = IsolationForest(n_estimators=TREES, random_state=seed)
        similarity = forest.fit(seen.known.x).score_samples(seen.everybody.x[~seen.accepted])
        least, most = np.quantile(similarity, self.config.similar)
        return np.flatnonzero(~seen.accepted)[(similarity >= least) & (similarity <= most)]


def probit(x: np.ndarray, decision: np.ndarray, c: float) -> np.ndarray:
    """Slopes w and intercept of P(decision) = Φ(x·w + b) that minimise Σ loss + |w|²/(2c).

    Args:
        x: columns, shape (N, F).
        decision: both among them, shape (N,), bool.
        c: inverse strength of the penalty.

    Returns:
        Shape (F + 1,), the intercept last.
    """
    columns, sign = np.column_stack([x, np.ones(len(x))]), np.where(decision, 1.0, -1.0)
    penalty = np.append(np.full(x.shape[1], 1.0 / (c * len(x))), 0.0)

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        margin = sign * (columns @ weights)
        log_p = log_ndtr(margin)
        slope = -sign * np.exp(-(margin**2) / 2 - math.log(2 * math.pi) / 2 - log_p)
        return penalty @ weights**2 / 2 - log_p.mean(), columns.T @ slope / len(x) + penalty * weights

    found = minimize(loss, np.zeros(columns.shape[1]), jac=True, method="L-BFGS-B", options={"gtol": EXACT})
    return np.asarray(found.x)
