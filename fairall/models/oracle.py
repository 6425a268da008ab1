"""Reference policies fitted to all labels: `Optimal` (appendix C.3) and `Oracle`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from omegaconf import MISSING
from threadpoolctl import threadpool_limits
from torch import Tensor

from fairall.config.checks import at_least, one_of
from fairall.config.schema import BoundConfig, FairnessRule, ModelConfig, NetInputs
from fairall.data.features import FeatureInputs
from fairall.data.people import People
from fairall.data.prepared import PreparedData
from fairall.display.progress import ProgressCallback
from fairall.errors import FairAllError
from fairall.models.estimators import Fitted, boosted_trees, fitted, log_odds, logistic
from fairall.models.known import Known, hashes
from fairall.models.learner import (
    DECISIONS,
    DecisionRule,
    FixedPolicy,
    PretrainCurves,
    Setting,
)
from fairall.models.thresholds import ByGroup
from fairall.nn.native import blas
from fairall.nn.stacked import AT_ONCE
from fairall.runtime.randomness import SeedStreams
from fairall.storage.checkpoint import Cache, State
from fairall.storage.identity import computation_key

STRENGTHS = (1e-3, 1e-2, 0.1, 1.0)  # C of the logistic regression, from strong to weak penalties
FOLDS = 5
CHOOSING = 10_000  # training rows on which the strength is chosen; all rows chose the same on five data sets
CERTAIN = 6.0  # log odds from which on people tie: trees end beyond it where labels agree, each fit elsewhere
ENOUGH = 50_000  # a regression on some hundreds of columns is fitted to at most so many training rows


@dataclass
class OptimalConfig(ModelConfig):
    """Features, decisions and sample size of `Optimal`."""

    reads: list[str] | None = MISSING
    sees_sensitive: bool = MISSING
    decision: str = one_of(DECISIONS)
    fit_rows: int = at_least(100)


class Optimal(FixedPolicy):
    """Logistic model of p(ỹ | x) or p(ỹ | x, s), fitted for each seed on other people.

    OPT-UNFAIR reads x and s; OPT-FAIR reads K alone, which has to be the only feature
    (`dataset.observed=[K]`). It accepts where p ≥ c, or with probability p.

    Raises:
        FairAllError: if the features are not those that the reference reads.
    """

    config: OptimalConfig
    config_type = OptimalConfig

    def __init__(self, config: OptimalConfig, setting: Setting) -> None:
        super().__init__(config, setting)
        if config.reads is not None and setting.schema.names != config.reads:
            raise FairAllError(
                f"model={config.name} reads {', '.join(config.reads)}, and the data set has "
                f"{', '.join(setting.schema.names)}; it is for the features of dataset=synthetic "
                "dataset.observed=[K]"
            )
        self.rule = DecisionRule(setting.cost, drawn=config.decision == "sample")
        self.inputs = FeatureInputs(setting.schema)
        self.fitted = Fitted(len(setting.seeds))

    def pretrain(self, data: PreparedData, cache: Cache, progress: ProgressCallback) -> PretrainCurves | None:
        """Fit each seed's model on `fit_rows` applicants, all of whose labels are known."""
        from sklearn.linear_model import LogisticRegression  # takes a second

        people = data.applicants(self.config.fit_rows, self.setting.seeds, "optimal").next()
        # Without a penalty, which would bias the estimate of p.
        kind = LogisticRegression(C=float("inf"), max_iter=10_000)
        given = zip(self._inputs(people.x, people.s), people.label.numpy(), strict=True)
        self.fitted.keep([fitted(kind, *own) for own in given])
        return None

    def score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """p, shape (E, B); draws nothing."""
        of_seeds = np.array([*map(log_odds, self.fitted.read(), self._inputs(x, s))])
        return torch.from_numpy(of_seeds).sigmoid().to(x.dtype)

    def _inputs(self, x: Tensor, s: Tensor) -> np.ndarray:
        inputs = self.inputs.with_s(x, s) if self.config.sees_sensitive else self.inputs(x)
        return inputs.double().numpy()


class NoOracleError(FairAllError):
    """People to whose labels no oracle can be fitted."""


@dataclass
class OracleConfig(ModelConfig):
    """The bound that the thresholds keep, as for other methods (`models.fairness`)."""

    fairness: BoundConfig = field(default_factory=BoundConfig)


class Oracle(ByGroup, FixedPolicy):
    """Model of p(ỹ | x, s) fitted to the labels of all training rows, at most the first `ENOUGH`.

    It is a logistic regression or boosted trees, whichever has the smaller log loss on validation people,
    summed over splits. One fit serves all seeds with the same split. The penalty of the regression is
    selected by cross-validation in the first split and is the same in all.

    It is fitted to all folds but one, for each of `FOLDS` folds. Training people, who are the applicants of a
    run, have the estimate of the fit without them: boosted trees would know some labels by heart. Other
    people have the mean of the log odds of all fits. Log odds end at ±`CERTAIN`.

    It accepts where p ≥ c, which maximises the utility if p is true, or from thresholds of each group on
    (`models.thresholds`), chosen from the training rows. People tied at a group's threshold are accepted with
    the probability that makes the rates of the training rows right.

    Attributes:
        fitted: classifiers of all folds of the first split, then of the second, and so on.
        known: log odds of the training people, and of others who come again.
    """

    two_groups = False
    takes_amounts = True
    config: OracleConfig
    config_type = OracleConfig

    def __init__(self, config: OracleConfig, setting: Setting) -> None:
        bound = None if config.fairness.rule is FairnessRule.none else config.fairness
        super().__init__(config, setting, bound, len(setting.seeds) if setting.splits > 1 else 1)
        # With a bound, people tied at a threshold have a probability.
        self.rule = DecisionRule(drawn=bound is not None)
        self.inputs = FeatureInputs(setting.schema.seen_as(NetInputs.one_hot))
        self.codes = FeatureInputs(setting.schema.seen_as(NetInputs.codes))
        self.fitted = Fitted(setting.splits * FOLDS)
        self.known = Known(1)

    def pretrain(self, data: PreparedData, cache: Cache, progress: ProgressCallback) -> PretrainCurves | None:
        """Fit to all labels of the training rows, of all replicates or of each split, and choose thresholds.

        The model is chosen on validation people. Fits are kept in `cache`: all runs with the same people have
        the same.

        Raises:
            NoOracleError: if a label is unknown, all are the same but for one, or, with a bound, a group is
                absent.
            FairAllError: if the folder of the cache cannot be written.
        """
        train = data.train
        people = train.rows(torch.arange(min(ENOUGH, len(train))))
        splits, validation = (
            [of.replicate(k) for k in range(self.setting.splits)] for of in (people, data.validation)
        )
        if train.label_weight is not None or any(n_folds(own.label.numpy()) < 2 for own in splits):
            raise NoOracleError(
                f"model={self.config.name} is fitted to all training rows, whose labels have to be "
                "known, two at least 0 and two 1; choose another model"
            )
        self._fit = computation_key(data.fingerprint().encode(), blas().encode())
        with threadpool_limits(1):  # sums do not depend on the number of threads
            models = cache.part("oracles").result(self._fit, lambda _: self._fits(splits, validation))
        self.fitted.load_state_dict(models["fitted"])
        self.known.load_state_dict(models["known"])
        self.remember([train, data.test], cache)
        if self.bound is not None:
            self.choose_thresholds(train, self.log_odds(train.x, train.s))
        return None

    def choose_thresholds(self, people: People, log_odds: Tensor) -> None:
        """Choose the thresholds of the bound from people, of all replicates or of each, of log odds (..., N).

        Raises:
            NoOracleError: where a group has nobody.
        """
        n = len(self.threshold)
        self.choose(self.columns(log_odds.expand(n, -1), people.x.expand(n, -1, -1)), people.s.expand(n, -1))
        if self.least_rate.isnan().any():
            raise NoOracleError(f"model={self.config.name}: a group has nobody among the training rows")

    def log_odds(self, x: Tensor, s: Tensor, streams: SeedStreams | None = None) -> Tensor:
        """Log odds of p(ỹ = 1 | x, s) of people x (..., D) and s (...), shape (...), float64."""
        person, split = self._person_and_split(x, s)
        found = self.known.of(person).squeeze(-1)
        new = found.isnan()
        found[new] = self._by_fits(split[new], x[new], s[new])
        return found.clip(-CERTAIN, CERTAIN)

    def remember(self, people: Sequence[People], cache: Cache) -> None:
        """Score people who will come again, and their counterfactuals where these are known, once for all.

        The scores are kept in `cache`: only the first run with the same people needs the classifiers.
        """
        asked = [
            (x, s)
            for own in people
            for x, s in (
                (own.x, own.s),
                (own.counterfactual_x, -own.s),
                (own.counterfactual_x_y_held, -own.s),
            )
            if x is not None
        ]
        of_x, of_s = zip(*asked, strict=True)
        x = torch.cat(of_x, -2)
        s = torch.cat(of_s, -1)
        person, _ = self._person_and_split(x, s)
        key = computation_key(self._fit.encode(), person.numpy().tobytes())
        scored = cache.part("oracles").result(key, lambda _: {"log_odds": self.log_odds(x, s)})
        self.known.add(person.flatten(), scored["log_odds"].view(-1, 1))

    def _person_and_split(self, x: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
        """A number of each person, as of `known`, and that of their split."""
        n = len(self.threshold)
        split = (torch.arange(n) % self.setting.splits).repeat_interleave(s.numel() // n).view(s.shape)
        return hashes(x, s) + split, split

    def _by_fits(self, split: Tensor, x: Tensor, s: Tensor) -> Tensor:
        """Log odds of people x (B, D) and s (B,), the mean of those by all fits of their `split` (B,)."""
        found = torch.empty(len(s), dtype=torch.float64)
        for number in split.unique().tolist():
            models = self.fitted.read()[number * FOLDS :][:FOLDS]
            # The columns of all people at once would take more memory than the rest of a run.
            for rows in (split == number).nonzero().squeeze(1).split(AT_ONCE):
                inputs = self._inputs(models[0], x[rows], s[rows])
                found[rows] = torch.from_numpy(np.mean([log_odds(model, inputs) for model in models], 0))
        return found

    def _inputs(self, kind: Any, x: Tensor, s: Tensor) -> np.ndarray:
        """Inputs of a kind of classifier for people x (N, D) and s (N,), shape (N, F)."""
        from fairall.models.ridge import Ridge  # imports scikit-learn

        inputs = self.inputs if isinstance(kind, Ridge) else self.codes
        return inputs.with_s(x, s).double().numpy()

    def _given(self, kind: Any, splits: list[People]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Inputs of a kind of classifier (N, F), and labels (N,), of the people of each split."""
        return [(self._inputs(kind, own.x, own.s), own.label.numpy()) for own in splits]

    def _fits(self, splits: list[People], validation: list[People]) -> State:
        """State of `fitted` and `known` after the choice of a kind of classifier, and fits of it."""
        from sklearn.metrics import log_loss  # takes a second

        regression = logistic(1.0, standardises=True)
        regression.set_params(c=selected_strength(*self._given(regression, splits)[0]))

        def loss(kind: Any) -> float:
            """Log loss on validation people, summed over splits."""
            of_splits = zip(self._given(kind, splits), self._given(kind, validation), strict=True)
            return sum(
                log_loss(label, fitted(kind, *given).predict_proba(x), labels=[0, 1])
                for given, (x, label) in of_splits
            )

        kind = min((regression, boosted_trees()), key=loss)
        models = list[Any]()
        for k, (x, label) in enumerate(self._given(kind, splits)):
            fold, estimate = mixed_folds(label), np.empty(len(label))
            for number in range(FOLDS):
                own = fold == number % (fold.max() + 1)
                models.append(fitted(kind, x[~own], label[~own]))
                estimate[own] = log_odds(models[-1], x[own])
            person = hashes(splits[k].x, splits[k].s) + k
            # People who are alike have the mean.
            _, kind_of = np.unique(person, return_inverse=True)
            mean = np.bincount(kind_of, estimate) / np.bincount(kind_of)
            self.known.add(person, torch.from_numpy(mean[kind_of]).unsqueeze(-1))
        self.fitted.keep(models)
        return {"fitted": self.fitted.state_dict(), "known": self.known.state_dict()}


def mixed_folds(label: np.ndarray) -> np.ndarray:
    """One of `n_folds` of each person, shape (N,): in each both labels have the same share, if possible.

    People are mixed by chance: in a sorted table folds of neighbours would differ.
    """
    from sklearn.model_selection import StratifiedKFold  # takes a second

    order = np.random.default_rng(0).permutation(len(label))
    fold = np.zeros(len(label), dtype=int)
    for number, (_, left_out) in enumerate(StratifiedKFold(n_folds(label)).split(label, label[order])):
        fold[order[left_out]] = number
    return fold


def selected_strength(x: np.ndarray, label: np.ndarray) -> float:
    """C of `STRENGTHS` whose `ridge` has the least loss in `FOLDS` folds; arguments as for `ridge`.

    It is the first, the strongest penalty, where fewer than two of the first `CHOOSING` people have a label.
    """
    from sklearn.model_selection import GridSearchCV  # takes a second

    x = x[:CHOOSING]
    label = label[:CHOOSING]
    if (folds := n_folds(label)) < 2:
        return STRENGTHS[0]
    search = GridSearchCV(
        logistic(1.0, standardises=True), {"c": STRENGTHS}, scoring="neg_log_loss", cv=folds, refit=False
    )
    return float(search.fit(x, label).best_params_["c"])


def n_folds(label: np.ndarray) -> int:
    """`FOLDS`, or as many as people of the rarer label in {0, 1}."""
    return min(FOLDS, int(np.bincount(label.astype(int), minlength=2).min()))


def oracles(data: PreparedData, setting: Setting, cache: Cache) -> dict[str, Oracle]:
    """The oracles without and with parity, by name, from one fit.

    Raises:
        NoOracleError: as `Oracle.pretrain`.
    """
    free = Oracle(OracleConfig(name="oracle", fairness=BoundConfig(rule=FairnessRule.none)), setting)
    parity = BoundConfig(rule=FairnessRule.demographic_parity, slack=0.0)
    equal = Oracle(OracleConfig(name="oracle_fair", fairness=parity), setting)
    free.pretrain(data, cache, lambda **_: None)
    equal.fitted = free.fitted
    equal.known = free.known
    equal.choose_thresholds(data.train, free.log_odds(data.train.x, data.train.s))
    return {"oracle": free, "oracle_fair": equal}
