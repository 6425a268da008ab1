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
import pandas as pd
import torch
from scipy.optimize import minimize
from scipy.special import expit, log_ndtr
from torch import Tensor

from fairall.config.checks import at_least, limited, open_unit, positive, positive_share
from fairall.config.choices import targets
from fairall.data.people import Decided
from fairall.errors import FairAllError
from fairall.models.estimators import SEEDS, estimator_of, fitted, log_odds, logistic
from fairall.models.learner import Setting
from fairall.models.logistic import linear
from fairall.models.refitted import Labelled, Refitted, RefittedConfig

EXACT = 1e-6  # of the gradient of the mean loss of a probit


class Table(NamedTuple):
    """N people to fit a classifier to, or all who were seen.

    Attributes:
        x: inputs, s among them, mean 0 and standard deviation 1 among all seen, shape (N, F).
        label: in [0, 1], shape (N,); 0 where it is unknown.
        weight: not negative, shape (N,).
        known: whose label is known, since they were accepted, shape (N,), bool.
    """

    x: np.ndarray
    label: np.ndarray
    weight: np.ndarray
    known: np.ndarray

    def rows(self, which: np.ndarray) -> Table:
        """The people at these places, or of this mask."""
        return Table(*(column[which] for column in self))

    def imputed(self, label: np.ndarray) -> Table:
        """The same people, and labels (N,) of those whose label is not known."""
        return self._replace(label=np.where(self.known, self.label, label))


@dataclass
class EstimatorConfig(RefittedConfig):
    """The classifier (`estimators.estimator_of`), or {} for a regression with an inverse penalty."""

    estimator: dict[str, Any] = field(default_factory=dict)
    linear_c: float = positive()


class AcceptedOnly(Refitted):
    """A classifier of the accepted people so far.

    It ignores rejected people, and is what the other methods are compared with. These derive from it and
    override `inferred`.

    Attributes:
        moments: mean and standard deviation of the inputs among the people seen, float64, shape (E, 2, F).

    Raises:
        FairAllError: where the classifier has no `predict_proba`; and as `estimator_of`.
    """

    remembered = "all"
    further: ClassVar[int] = 0  # inputs of the table that are 0 for new people
    config: EstimatorConfig
    config_type = EstimatorConfig
    moments: Tensor

    def __init__(self, config: EstimatorConfig, setting: Setting) -> None:
        node = config.estimator
        model = estimator_of(node, "model.estimator") if node else logistic(config.linear_c)
        if not hasattr(model, "predict_proba"):
            raise FairAllError(f"model.estimator: {type(model).__name__} has no predict_proba to decide by")
        # Types of scikit-learn are known one by one.
        trusted = {name.partition(".")[0] for name in targets(node)} - {"sklearn", "fairall"}
        super().__init__(config, setting, [model], trusted)
        standard = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
        self.register_buffer("moments", standard.repeat(len(setting.seeds), 1, self.inputs.size_with_s))

    def table(self, e: int, seen: Decided, seed: int) -> Labelled:
        """Those of `inferred`, where people were rejected and labels differ; without those of weight 0."""
        inputs = self.inputs.with_s(seen.x, seen.s).double()
        scale = torch.where((inputs == inputs[0]).all(0), 1.0, inputs.std(0, correction=0))
        self.moments[e] = torch.stack([inputs.mean(0), scale])
        weight = seen.weighted(torch.ones_like(seen.label)).double().numpy()
        (x,), label = self.given(e, seen.x, seen.s), seen.label.double().numpy()
        everybody = Table(x, label, weight, seen.accepted.clone().numpy())
        used = accepted = everybody.rows(everybody.known)
        if len(accepted.x) < len(x) and 0.0 < accepted.label.sum() < len(accepted.x):
            used = self.inferred(everybody, accepted, seed)
        used = used.rows(used.weight > 0)
        return [used.x], used.label, used.weight

    def inferred(self, everybody: Table, accepted: Table, seed: int) -> Table:
        """The people whom the classifier is fitted to.

        Args:
            everybody: who was seen, some of them rejected; to be changed at will, as the next.
            accepted: those of them with a label, of which there are both.
            seed: of random numbers.
        """
        return accepted

    def odds(self, of: Table, asked: Table, seed: int) -> np.ndarray:
        """Log odds of all who are asked for by the classifier of a table, shape (N,)."""
        return log_odds(fitted(self.models[0], *of[:3], seed=seed), asked.x)

    def given(self, e: int, x: Tensor, s: Tensor) -> list[np.ndarray]:
        """Inputs (B, F) of which people seen have mean 0 and standard deviation 1, and `further` zeros."""
        mean, scale = self.moments[e]
        columns = (self.inputs.with_s(x, s).double() - mean) / scale
        return [np.pad(columns.numpy(), ((0, 0), (0, self.further)))]


@dataclass
class ReweightingConfig(EstimatorConfig):
    """The least probability of acceptance that is divided by."""

    least: float = positive_share()


class Reweighting(AcceptedOnly):
    """The accepted, weighted by 1 / P(d = 1 | x, s), which a classifier of the decisions estimates."""

    config: ReweightingConfig
    config_type = ReweightingConfig

    def inferred(self, everybody: Table, accepted: Table, seed: int) -> Table:
        """The accepted with their new weights, whose sum is the old one."""
        decisions = everybody._replace(label=everybody.known.astype(float))
        p = expit(self.odds(decisions, everybody, seed))[everybody.known]
        weight = accepted.weight / np.maximum(p, self.config.least)
        # The sum of weights is as without them, so that a penalty is as strong.
        return accepted._replace(weight=weight * (accepted.weight.sum() / weight.sum()))


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

    def inferred(self, everybody: Table, accepted: Table, seed: int) -> Table:
        """Everybody, the rejected with labels between 0 and 1."""
        risk = 1.0 - expit(self.odds(accepted, everybody, seed))
        inner = np.linspace(0.0, 1.0, self.config.bands + 1)
        bounds = np.unique(np.quantile(risk[everybody.known], inner))[1:-1]
        band = np.searchsorted(bounds, risk, side="right")
        people = pd.DataFrame({"bad": (1.0 - accepted.label) * accepted.weight, "all": accepted.weight})
        sums = people.groupby(band[everybody.known]).sum()
        # A band without accepted people has the rate of all.
        rate = (sums["bad"] / sums["all"]).reindex(band).fillna(people["bad"].sum() / people["all"].sum())
        return everybody.imputed(1.0 - np.minimum(self.config.uplift * rate.to_numpy(), 1.0))


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

    def inferred(self, everybody: Table, accepted: Table, seed: int) -> Table:
        """Everybody, once with labels between 0 and 1 or in copies with labels that are drawn."""
        p, n = expit(self.odds(accepted, everybody, seed)), self.config.imputations
        if n is None:
            return everybody.imputed(p)
        drawn = np.random.default_rng(seed).random((n, len(p))) < p
        copies = everybody.rows(np.tile(np.arange(len(p)), n))
        return copies.imputed(drawn.ravel())._replace(weight=copies.weight / n)


class Heckman(AcceptedOnly):
    """The accepted, with the inverse Mills ratio of a probit of the decisions as one more input.

    The ratio φ(z)/Φ(z) is the mean of the standard normal error of the decision, given acceptance at the
    probit's index z. Its weight stands for the correlation of that error with the one of the label.
    Predictions are for everybody, accepted or not, and have the ratio 0.
    """

    further = 1

    def inferred(self, everybody: Table, accepted: Table, seed: int) -> Table:
        """The accepted with the ratio in the last column."""
        weights = probit(everybody.x[:, :-1], everybody.known, self.config.linear_c)
        index = linear(accepted.x[:, :-1], weights)
        ratio = np.exp(-(index**2) / 2 - math.log(2 * math.pi) / 2 - log_ndtr(index))
        # Not centred: the intercept is that of a ratio of 0.
        accepted.x[:, -1] = ratio / (ratio.std() or 1.0)
        return accepted


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

    def inferred(self, everybody: Table, accepted: Table, seed: int) -> Table:
        """The accepted, and those who were labelled."""
        from sklearn.ensemble import IsolationForest  # takes a second

        random = np.random.default_rng(seed)
        forest = IsolationForest(random_state=int(random.integers(SEEDS)))
        rejected = np.flatnonzero(~everybody.known)
        similarity = forest.fit(accepted.x).score_samples(everybody.x[rejected])
        least, most = np.quantile(similarity, self.config.similar)
        left = rejected[(similarity >= least) & (similarity <= most)]
        of_bad, of_good = self.config.labelled, self.config.labelled / self.config.imbalance
        bounds: Any = None
        n = 0
        for _ in range(self.config.iterations):
            if len(left) in (0, n):  # nobody was labelled
                break
            n = len(left)
            asked = random.permutation(left)[: math.ceil(self.config.sample * n)]
            odds = self.odds(everybody.rows(everybody.known), everybody, seed)[asked]
            asked, odds = asked[odds.argsort()], np.sort(odds)
            if bounds is None:
                bounds = np.quantile(odds, [of_bad, 1.0 - of_good])
            bad = asked[odds <= bounds[0]][: math.ceil(of_bad * len(odds))]
            good = asked[odds >= bounds[1]][-math.ceil(of_good * len(odds)) :]
            everybody.label[good] = 1.0  # and 0 of those who are bad, as before
            everybody.known[bad] = everybody.known[good] = True
            left = left[~everybody.known[left]]
        return everybody.rows(everybody.known)


def probit(x: np.ndarray, decision: np.ndarray, c: float) -> np.ndarray:
    """Slopes w and intercept of P(decision) = Φ(x·w + b) that minimise Σ loss + |w|²/(2c).

    Args:
        x: columns, shape (N, F).
        decision: both among them, shape (N,), bool.
        c: inverse strength of the penalty.

    Returns:
        Shape (F + 1,), the intercept last.
    """
    columns = np.column_stack([x, np.ones(len(x))])
    columns[~decision] *= -1.0
    signed = torch.from_numpy(columns)

    def loss(at: np.ndarray) -> tuple[float, np.ndarray]:
        weights = torch.tensor(at, requires_grad=True)
        penalty = weights[:-1].square().sum() / (2 * c * len(x))
        mean = penalty - torch.special.log_ndtr(signed @ weights).mean()
        return mean.item(), torch.autograd.grad(mean, weights)[0].numpy()

    found = minimize(loss, np.zeros(columns.shape[1]), jac=True, method="L-BFGS-B", options={"gtol": EXACT})
    return np.asarray(found.x)
