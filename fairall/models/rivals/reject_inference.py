"""Reject inference of credit scoring: regressions that differ in what they assume of rejected people.

Label 0 is the bad one, as a default. Every method fits the same penalised regression of the label on (x, s);
it chooses who is in it, with which label in [0, 1] and which weight. A row of label p and weight w adds to
the loss what two rows of weights p·w with label 1 and (1 − p)·w with label 0 add.

References:
    Hsia: Credit scoring and the Equal Credit Opportunity Act, Hastings Law Journal 30, 1978 (reweighting).
    Heckman: Sample selection bias as a specification error, Econometrica 47, 1979.
    Siddiqi: Credit risk scorecards, Wiley 2006, chapter 6 (parcelling, fuzzy augmentation).
    Kozodoi, Lessmann, Alamgir, Moreira-Matias, Papakonstantinou: Fighting sampling bias: a framework for
    training and evaluating credit scoring models, European Journal of Operational Research 324, 2025 (BASL).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import minimize
from scipy.special import expit, log_ndtr
from torch import Tensor
from typing_extensions import override

from fairall.config.checks import at_least, limited, open_unit, positive, positive_share
from fairall.models.learner import Setting
from fairall.models.logistic import linear, penalised
from fairall.models.refitted import EXACT, Refitted, RefittedConfig
from fairall.nn.stacked import in_chunks
from fairall.runtime.randomness import SeedStreams

SEEDS = 2**24  # of random numbers of a fit; a float32 below 1 has as many values
TREES = 100  # of an isolation forest


Targets = tuple[np.ndarray, np.ndarray]  # the label to learn, and the weight, of each person


@dataclass(frozen=True)
class Seen:
    """N people seen by a replicate, some of them rejected, and both labels among the accepted.

    Attributes:
        x: inputs, s among them, each with mean 0 and standard deviation 1, shape (N, F).
        accepted: the decisions, shape (N,), bool.
        label: 0 where it is unknown, shape (N,).
    """

    x: np.ndarray
    accepted: np.ndarray
    label: np.ndarray


@dataclass
class RejectInferenceConfig(RefittedConfig):
    """The inverse strength of the regression's penalty."""

    linear_c: float = positive()


class AcceptedOnly(Refitted):
    """Logistic regression of the accepted people so far.

    It ignores rejected people, and is what the other methods are compared with. These derive from it and
    override `targets`.

    Attributes:
        slopes: of the inputs, and the intercept last, shape (E, F + 1), float64.
        streams: random numbers of fits.
    """

    config: RejectInferenceConfig
    config_type = RejectInferenceConfig
    slopes: Tensor

    def __init__(self, config: RejectInferenceConfig, setting: Setting) -> None:
        super().__init__(config, setting, "all")
        self.streams = SeedStreams(setting.seeds, "reject inference")
        shape = len(setting.seeds), self.inputs.size_with_s + 1
        self.register_buffer("slopes", torch.zeros(shape, dtype=torch.float64))

    @override
    def refit(self) -> None:
        """Fit the regression of each replicate."""
        rows = self.memory.rows()
        inputs = self.inputs.with_s(rows.x, rows.s).double().numpy()
        seeds = (self.streams.uniform(1).squeeze(-1) * SEEDS).long().tolist()
        for e, n in enumerate(self.memory.counts.tolist()):
            accepted, label = rows.accepted[e, :n].numpy(), rows.label[e, :n].double().numpy()
            self.slopes[e] = torch.from_numpy(self.fitted(inputs[e, :n], accepted, label, seeds[e]))

    def fitted(self, inputs: np.ndarray, accepted: np.ndarray, label: np.ndarray, seed: int) -> np.ndarray:
        """Slopes of inputs (N, F) and the intercept, shape (F + 1,), from decisions and labels (N,)."""
        ones, known = label[accepted].sum(), accepted.sum()
        if ones in (0.0, known):
            # Labels that are all the same: one p for everybody, c where there are none.
            p = (ones + 2.0 * self.setting.cost) / (known + 2.0)
            return np.append(np.zeros(inputs.shape[1]), math.log(p / (1.0 - p)))
        mean, scale = inputs.mean(0), np.where((inputs == inputs[0]).all(0), 1.0, inputs.std(0))
        seen = Seen((inputs - mean) / scale, accepted, label)
        if accepted.all():  # nobody's label is to be inferred
            weights = self.regression(seen.x, label)
        else:
            weights = self.weights(seen, np.random.default_rng(seed))
        slopes = weights[:-1] / scale
        return np.append(slopes, weights[-1] - slopes @ mean)

    def weights(self, seen: Seen, random: np.random.Generator) -> np.ndarray:
        """Weights of standardised inputs and the intercept, shape (F + 1,)."""
        target, weight = self.targets(seen, random)
        used = weight > 0
        return self.regression(seen.x[used], target[used], weight[used])

    def targets(self, seen: Seen, random: np.random.Generator) -> Targets:
        """The label to learn, in [0, 1], and the weight of each person, shapes (N,)."""
        return seen.label, seen.accepted.astype(float)

    def regression(self, x: np.ndarray, label: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
        """Weights (F + 1,) of the penalised regression of labels in [0, 1] (N,) on x (N, F)."""
        return penalised(x, label, self.config.linear_c, weight, exact=EXACT)

    def accepted_only(self, seen: Seen) -> np.ndarray:
        """p(ỹ = 1 | x, s) of everybody by the regression of the accepted, shape (N,)."""
        return expit(linear(seen.x, self.regression(seen.x[seen.accepted], seen.label[seen.accepted])))

    @override
    @torch.no_grad()
    def log_odds(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """Those of the regression, shape (E, B), float64; draws nothing."""
        return in_chunks(self._of_people, x, s)

    def _of_people(self, x: Tensor, s: Tensor) -> Tensor:
        inputs = self.inputs.with_s(x, s).double()
        return (inputs @ self.slopes[:, :-1, None] + self.slopes[:, None, -1:]).squeeze(-1)


@dataclass
class ReweightingConfig(RejectInferenceConfig):
    """The least probability of acceptance that is divided by."""

    least: float = positive_share()


class Reweighting(AcceptedOnly):
    """The accepted, weighted by 1 / P(d = 1 | x, s), which a regression of the decisions estimates."""

    config: ReweightingConfig
    config_type = ReweightingConfig

    @override
    def targets(self, seen: Seen, random: np.random.Generator) -> Targets:
        decisions = self.regression(seen.x, seen.accepted.astype(float))
        weight = seen.accepted / np.maximum(expit(linear(seen.x, decisions)), self.config.least)
        # The mean weight of the accepted is 1, so that the penalty is as strong as without weights.
        return seen.label, weight * (seen.accepted.sum() / weight.sum())


@dataclass
class ParcellingConfig(RejectInferenceConfig):
    """The number of bands of the score, and how many times as bad as the accepted the rejected are."""

    bands: int = at_least(1)
    uplift: float = positive()


class Parcelling(AcceptedOnly):
    """Everybody; the rejected of a band of the score have the bad rate of its accepted, times `uplift`.

    The score is that of the regression of the accepted, its bands are quantiles of theirs.
    """

    config: ParcellingConfig
    config_type = ParcellingConfig

    @override
    def targets(self, seen: Seen, random: np.random.Generator) -> Targets:
        risk = 1.0 - self.accepted_only(seen)
        inner = np.linspace(0.0, 1.0, self.config.bands + 1)
        bounds = np.unique(np.quantile(risk[seen.accepted], inner))[1:-1]
        band = np.searchsorted(bounds, risk, side="right")
        bad, known = 1.0 - seen.label[seen.accepted], band[seen.accepted]
        people, bads = (np.bincount(known, of, len(bounds) + 1) for of in (None, bad))
        rate = np.where(people > 0, bads / np.maximum(people, 1), bad.mean())
        inferred = 1.0 - np.minimum(self.config.uplift * rate[band], 1.0)
        return np.where(seen.accepted, seen.label, inferred), np.ones(len(band))


class FuzzyAugmentation(AcceptedOnly):
    """Everybody; a rejected person counts as p of label 1 and 1 − p of label 0.

    p is that of the regression of the accepted, which is what comes out again: at its weights the gradient of
    the loss of the rejected is 0, and a convex loss has no other minimum. Another kind of model may differ.
    """

    @override
    def targets(self, seen: Seen, random: np.random.Generator) -> Targets:
        return np.where(seen.accepted, seen.label, self.accepted_only(seen)), np.ones(len(seen.x))


class Heckman(AcceptedOnly):
    """The accepted, with the inverse Mills ratio of a probit of the decisions as one more input.

    The ratio λ(z) = φ(z)/Φ(z) is the mean of the standard normal error of the decision, given acceptance at
    the probit's index z. Its weight stands for the correlation of that error with the one of the label.
    Predictions are for everybody, accepted or not, and leave the term out.
    """

    @override
    def weights(self, seen: Seen, random: np.random.Generator) -> np.ndarray:
        index = linear(seen.x, probit(seen.x, seen.accepted, self.config.linear_c))[seen.accepted]
        ratio = np.exp(-(index**2) / 2 - math.log(2 * math.pi) / 2 - log_ndtr(index))
        # Not centred: the intercept is that of λ = 0.
        columns = np.column_stack([seen.x[seen.accepted], ratio / (ratio.std() or 1.0)])
        return np.delete(self.regression(columns, seen.label[seen.accepted]), -2)


@dataclass
class BaslConfig(RejectInferenceConfig):
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
    In each iteration a regression of all with a label scores a sample of the others. Those of it with the
    least p get label 0 and those with the largest label 1, `imbalance` times as many 0 as 1, if they are
    beyond quantiles of the first iteration. It ends early where nobody is.
    """

    config: BaslConfig
    config_type = BaslConfig

    @override
    def targets(self, seen: Seen, random: np.random.Generator) -> Targets:
        label, labelled = seen.label.copy(), seen.accepted.copy()
        left = self.filtered(seen, random)
        shares = self.config.labelled, self.config.labelled / self.config.imbalance  # of bad and good
        low, high = math.nan, math.nan
        for iteration in range(self.config.iterations):
            asked = random.permutation(left)[: math.ceil(self.config.sample * len(left))]
            odds = linear(seen.x[asked], self.regression(seen.x[labelled], label[labelled]))
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
        return label, labelled.astype(float)

    def filtered(self, seen: Seen, random: np.random.Generator) -> np.ndarray:
        """Rows of the rejected whose similarity to the accepted is between the quantiles `similar`."""
        from sklearn.ensemble import IsolationForest  # takes a second

        forest = IsolationForest(n_estimators=TREES, random_state=int(random.integers(SEEDS)))
        similarity = forest.fit(seen.x[seen.accepted]).score_samples(seen.x[~seen.accepted])
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
