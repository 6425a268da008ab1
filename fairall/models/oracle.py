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
from typing_extensions import override

from fairall.config.checks import at_least, one_of
from fairall.config.schema import BoundConfig, FairnessRule, ModelConfig, NetInputs
from fairall.data.features import FeatureInputs
from fairall.data.people import People, group_index
from fairall.data.prepared import PreparedData
from fairall.errors import FairAllError
from fairall.models.learner import (
    DECISIONS,
    DecisionRule,
    FixedPolicy,
    PretrainCurves,
    ProgressCallback,
    Setting,
)
from fairall.models.logistic import penalised
from fairall.models.thresholds import acceptance, fair_thresholds
from fairall.models.trees import TREES, BoostedTrees
from fairall.nn.native import blas
from fairall.nn.stacked import StackedLinear, in_chunks
from fairall.randomness import SeedStreams
from fairall.storage.cache import Cache
from fairall.storage.identity import computation_key

STRENGTHS = (1e-3, 1e-2, 0.1, 1.0)  # C of the logistic regression, from strong to weak penalties
FOLDS = 5
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
        FairAllError: if the features are not those that the reference reads, or, in `pretrain`, if all labels
            are the same.
    """

    config: OptimalConfig
    config_type = OptimalConfig

    def __init__(self, config: OptimalConfig, setting: Setting) -> None:
        super().__init__(config, setting)
        if config.reads is not None and setting.schema.names != config.reads:
            reads, features = ", ".join(config.reads), ", ".join(setting.schema.names)
            raise FairAllError(
                f"model={config.name} reads {reads}, and the data set has {features}; it is for "
                f"dataset=synthetic with dataset.observed=[{reads}]"
            )
        self.rule = DecisionRule(setting.cost, drawn=config.decision == "sample")
        self.inputs = FeatureInputs(setting.schema)
        n_in = self.inputs.size_with_s if config.sees_sensitive else self.inputs.size
        self.logistic = StackedLinear(n_in, 1, SeedStreams(setting.seeds, "optimal"))

    def pretrain_units(self, data: PreparedData) -> int:
        """Number of fits, one per seed."""
        return len(self.setting.seeds)

    def pretrain(self, data: PreparedData, cache: Cache, progress: ProgressCallback) -> PretrainCurves | None:
        """Fit each seed's model on `fit_rows` applicants, all of whose labels are known.

        Raises:
            FairAllError: where everybody has the same label.
        """
        people = data.applicants(self.config.fit_rows, self.setting.seeds, "optimal").next()
        if (people.label.min(1).values == people.label.max(1).values).any():
            raise FairAllError(f"model={self.config.name}: everybody has the same label: nothing to fit")
        from sklearn.linear_model import LogisticRegression  # takes a second

        inputs = self._inputs(people.x, people.s)
        for k in range(len(self.setting.seeds)):
            # Without a penalty, which would bias the estimate of p.
            fit = LogisticRegression(C=float("inf"), max_iter=10_000)
            fit.fit(inputs[k].double().numpy(), people.label[k].numpy())
            with torch.no_grad():
                self.logistic.weight[k] = torch.from_numpy(fit.coef_.T)
                self.logistic.bias[k] = float(fit.intercept_[0])
            progress()
        return None

    def score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """p, shape (E, B); draws nothing."""
        return torch.sigmoid(self.logistic(self._inputs(x, s))).squeeze(-1)

    def _inputs(self, x: Tensor, s: Tensor) -> Tensor:
        return self.inputs.with_s(x, s) if self.config.sees_sensitive else self.inputs(x)


class NoOracleError(FairAllError):
    """People to whose labels no oracle can be fitted."""


@dataclass
class OracleConfig(ModelConfig):
    """The bound that the thresholds keep, as for other methods (`models.fairness`)."""

    fairness: BoundConfig = field(default_factory=BoundConfig)


class Oracle(FixedPolicy):
    """Model of p(ỹ | x, s) fitted to the labels of all training rows, at most the first `ENOUGH`.

    It is a logistic regression or boosted trees, whichever has the smaller log loss on validation people,
    summed over splits. One fit serves all seeds with the same split. The penalty of the regression is
    selected by cross-validation in the first split and is the same in all.

    It accepts where p ≥ c, which maximises the utility if p is true, or from thresholds of each group on
    (`models.thresholds`), chosen from the training rows. People tied at a group's threshold are accepted with
    the probability that makes the rates of the training rows right.

    Attributes:
        trees: the boosted trees, of each seed with several splits, else one for all.
        boosted: whether these are the model, shape ().
        weight: of the columns, of s, and the intercept of the regression, with a leading axis of seeds with
            several splits, float64.
        threshold: least log odds accepted of each group, with a leading axis likewise, float64.
        tied_share: acceptance probability there.
    """

    two_groups = False
    config: OracleConfig
    config_type = OracleConfig
    boosted: Tensor
    weight: Tensor
    threshold: Tensor
    tied_share: Tensor

    def __init__(self, config: OracleConfig, setting: Setting) -> None:
        super().__init__(config, setting)
        # With a bound, people tied at a threshold have a probability.
        self.rule = DecisionRule(drawn=self.bound is not None)
        self.inputs = FeatureInputs(setting.schema.seen_as(NetInputs.one_hot))
        self.codes = FeatureInputs(setting.schema.seen_as(NetInputs.codes))
        self.n_groups = setting.schema.n_groups
        each = [len(setting.seeds)] if setting.splits > 1 else []
        self.trees = BoostedTrees(*each or [1])
        self.register_buffer("boosted", torch.zeros((), dtype=torch.bool))
        self.register_buffer("weight", torch.zeros(*each, self.inputs.size_with_s + 1, dtype=torch.float64))
        worth = torch.full((*each, self.n_groups), setting.cost, dtype=torch.float64).logit()
        self.register_buffer("threshold", worth)
        self.register_buffer("tied_share", torch.ones_like(worth))

    @property
    def bound(self) -> BoundConfig | None:
        """The bound on the gap between groups; None without one."""
        fairness = self.config.fairness
        return None if fairness.rule is FairnessRule.none else fairness

    def pretrain_units(self, data: PreparedData) -> int:
        """1: all splits are fitted together."""
        return 1

    def pretrain(self, data: PreparedData, cache: Cache, progress: ProgressCallback) -> PretrainCurves | None:
        """Fit to the training rows; raises as `fit`."""
        self.fit(data.train, data.validation, cache)
        progress()
        return None

    def fit(self, people: People, validation: People, cache: Cache) -> None:
        """Fit to all labels of N people, the same for all replicates or those of each split.

        The model is chosen on `validation` people. Fits are kept in `cache`: all runs with the same people
        have the same.

        Raises:
            NoOracleError: if a label is unknown, all are the same, or, with parity, a group is absent.
            FairAllError: if the folder of the cache cannot be written.
        """
        name, n_unknown = self.config.name, int((~people.labelled).sum())
        if people.label_weight is not None:
            raise NoOracleError(
                f"model={name} is fitted to the labels of all {len(people)} training rows, and {n_unknown} "
                "are unknown; choose another model"
            )
        people = people.rows(torch.arange(min(ENOUGH, len(people))))
        splits = [people.replicate(number) for number in range(self.setting.splits)]
        if any(own.label.min() == own.label.max() for own in splits):
            raise NoOracleError(f"model={name}: everybody has the same label: nothing to fit")
        left_out = [validation.replicate(number) for number in range(len(splits))]
        values = [of.numpy().tobytes() for own in (*splits, *left_out) for of in (own.x, own.s, own.label)]
        key = computation_key(blas().encode(), repr(self.setting.schema).encode(), repr(TREES).encode(), *values)
        with threadpool_limits(1, "blas"):  # sums do not depend on the number of threads
            fitted = cache.part("oracles").result(key, lambda _: self._fits(splits, left_out))
        several = torch.arange(len(self.setting.seeds) if people.by_replicate else 1) % len(splits)
        self.boosted = fitted["boosted"]
        self.weight = fitted["weight"][several] if people.by_replicate else fitted["weight"][0]
        self.trees.load_state_dict({name: values[several] for name, values in fitted["trees"].items()})
        if self.bound is not None:
            self.choose_thresholds(self.log_odds(people.x, people.s), people.s)

    def choose_thresholds(self, log_odds: Tensor, s: Tensor) -> None:
        """Choose the thresholds of the bound from people of log odds and s (N,), or (E, N) with splits.

        Raises:
            NoOracleError: where everybody belongs to one group.
        """
        assert self.bound is not None
        chosen = []
        for own, own_s in zip(log_odds.view(-1, log_odds.shape[-1]), s.view(-1, s.shape[-1]), strict=True):
            if own_s.min() == own_s.max():
                raise NoOracleError(
                    f"model={self.config.name}: all training rows have s = {own_s[0]:+.0f}: no second group "
                    "whose acceptance rate could be the same"
                )
            chosen.append(
                fair_thresholds(own, self._group(own_s), self.n_groups, self.bound, self.setting.cost)
            )
        self.threshold = torch.stack([one.threshold for one in chosen]).view_as(self.threshold)
        self.tied_share = torch.stack([one.tied_share for one in chosen]).view_as(self.threshold)

    def log_odds(self, x: Tensor, s: Tensor, streams: SeedStreams | None = None) -> Tensor:
        """Log odds of p(ỹ = 1 | x, s) of people x (..., D) and s (...), shape (...), float64."""
        if self.boosted:
            inputs = self.codes.with_s(x, s)
            return self.trees(inputs.view(len(self.trees.base), -1, inputs.shape[-1])).view(s.shape)
        slopes, intercept = self.weight[..., :-1], self.weight[..., -1:]
        if slopes.dim() == 1:
            return self._columns(x, s) @ slopes + intercept
        # The columns of all splits at once would take more memory than the rest of a run.
        product = in_chunks(lambda x, s: self._columns(x, s) @ slopes.unsqueeze(-1), x, s)
        return product.squeeze(-1) + intercept

    def score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """The acceptance probability, shape (E, B); draws nothing."""
        return self.accepted(self.log_odds(x, s), s).to(x.dtype)

    @override
    def compared(self, x: Tensor, s: Tensor, streams: SeedStreams) -> tuple[Tensor, Tensor]:
        """p(ỹ = 1 | x, s) and the threshold of the group, shapes (E, B)."""
        return self.log_odds(x, s).sigmoid(), self._of_group(self.threshold, s).sigmoid()

    def accepted(self, log_odds: Tensor, s: Tensor) -> Tensor:
        """Acceptance probability of people of given log odds and s, shapes (...), float64."""
        return acceptance(log_odds, self._of_group(self.threshold, s), self._of_group(self.tied_share, s))

    def _of_group(self, values: Tensor, s: Tensor) -> Tensor:
        """The value of each person's group, of the shape of s."""
        group = self._group(s)
        return values.gather(1, group) if values.dim() > 1 else values[group]

    def _group(self, s: Tensor) -> Tensor:
        return group_index(s, self.n_groups)

    def _columns(self, x: Tensor, s: Tensor) -> Tensor:
        return self.inputs.with_s(x, s).double()

    def _fits(self, splits: Sequence[People], validation: Sequence[People]) -> dict[str, Any]:
        """Both models of each of K splits, and whether trees have less loss on its validation people.

        Returns:
            `weight`, shape (K, size + 2), float64; the state of `trees`; `boosted`, shape ().
        """
        strength, weights, trees = None, [], BoostedTrees(len(splits))
        excess = 0.0  # of the loss of the trees
        for k, (own, other) in enumerate(zip(splits, validation, strict=True)):
            x, label = self._columns(own.x, own.s).numpy(), own.label.numpy()
            strength = strength or selected_strength(x, label)
            weights.append(ridge(x, label, strength))
            trees.fit(k, self.codes.with_s(own.x, own.s).numpy(), label)
            *slopes, intercept = weights[-1]
            linear = self._columns(other.x, other.s).numpy() @ slopes + intercept
            boosted = trees.of_replicate(k, self.codes.with_s(other.x, other.s)).numpy()
            of_models = [log_loss(odds, other.label.numpy()) for odds in (boosted, linear)]
            excess += of_models[0] - of_models[1]
        return {
            "weight": torch.from_numpy(np.stack(weights)),
            "trees": trees.state_dict(),
            "boosted": torch.tensor(excess < 0.0),
        }


def log_loss(log_odds: np.ndarray, label: np.ndarray) -> float:
    """Mean cross-entropy of log odds (N,) and labels in {0, 1} (N,)."""
    return float(np.mean(np.logaddexp(0.0, log_odds) - label * log_odds))


def selected_strength(x: np.ndarray, label: np.ndarray) -> float:
    """C of `STRENGTHS` whose `ridge` has the least loss in `FOLDS` folds; arguments as for `ridge`."""
    folds = min(FOLDS, int(np.bincount(label.astype(int)).min()))
    if folds == 1:
        return STRENGTHS[0]
    fold = stratified_folds(label, folds)
    losses = np.zeros(len(STRENGTHS))
    for number in range(folds):
        fitted, left_out = fold != number, fold == number
        for i, strength in enumerate(STRENGTHS):
            *slopes, intercept = ridge(x[fitted], label[fitted], strength)
            losses[i] += log_loss(x[left_out] @ slopes + intercept, label[left_out])
    return STRENGTHS[losses.argmin()]


def stratified_folds(label: np.ndarray, folds: int) -> np.ndarray:
    """The fold of each person, shape (N,): in each the same share of both labels, as far as possible.

    The first people of a label are in fold 0, as scikit-learn's `StratifiedKFold` has them.
    """
    other = label != label[0]
    in_order, fold = np.sort(other), np.empty(len(label), dtype=int)
    for kind in (False, True):
        sizes = [np.count_nonzero(in_order[number::folds] == kind) for number in range(folds)]
        fold[other == kind] = np.repeat(np.arange(folds), sizes)
    return fold


def ridge(x: np.ndarray, label: np.ndarray, c: float) -> np.ndarray:
    """Weights of a logistic model that minimise Σ loss + |w|²/(2c), w of standardised columns.

    Args:
        x: columns, shape (N, D); standardised, so that the penalty does not depend on their units.
        label: in {0, 1}, both present, shape (N,).
        c: inverse strength of the penalty.

    Returns:
        Shape (D + 1,): the weights of the columns as given, and the intercept, without a penalty, last.
    """
    mean, scale = x.mean(0), np.where((x == x[0]).all(0), 1.0, x.std(0))
    weights = penalised((x - mean) / scale, label, c)
    slopes = weights[:-1] / scale
    return np.append(slopes, weights[-1] - slopes @ mean)


def oracles(people: People, validation: People, setting: Setting, cache: Cache) -> dict[str, Oracle]:
    """The oracles without and with parity, by name, from one fit; arguments and errors as of `Oracle.fit`."""

    def oracle(name: str, rule: FairnessRule) -> Oracle:
        return Oracle(OracleConfig(name=name, fairness=BoundConfig(rule=rule, slack=0.0)), setting)

    free = oracle("oracle", FairnessRule.none)
    equal = oracle("oracle_fair", FairnessRule.demographic_parity)
    free.fit(people, validation, cache)
    equal.load_state_dict(free.state_dict())
    equal.choose_thresholds(equal.log_odds(people.x, people.s), people.s)
    return {"oracle": free, "oracle_fair": equal}
