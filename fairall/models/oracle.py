"""Reference policies fitted to all labels: `Optimal` (appendix C.3) and `Oracle`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import torch
from omegaconf import MISSING
from threadpoolctl import threadpool_limits
from torch import Tensor, nn

from fairall.config.checks import at_least, one_of
from fairall.config.schema import BoundConfig, FairnessRule, ModelConfig, NetInputs
from fairall.data.features import FeatureInputs
from fairall.data.people import People, group_index
from fairall.data.prepared import PreparedData
from fairall.display.progress import ProgressCallback
from fairall.errors import FairAllError
from fairall.models.estimators import (
    TREES,
    Fitted,
    boosted_trees,
    fitted,
    log_odds,
    logistic,
)
from fairall.models.learner import (
    DECISIONS,
    DecisionRule,
    FixedPolicy,
    PretrainCurves,
    Setting,
)
from fairall.models.logistic import linear
from fairall.models.thresholds import ByGroup
from fairall.nn.native import blas
from fairall.nn.stacked import StackedLinear, in_chunks
from fairall.runtime.randomness import SeedStreams
from fairall.storage.checkpoint import Cache, Checkpoint, State, Stateful
from fairall.storage.identity import computation_key

STRENGTHS = (1e-3, 1e-2, 0.1, 1.0)  # C of the logistic regression, from strong to weak penalties
FOLDS = 5
CHOOSING = 10_000  # training rows on which the strength is chosen; all rows chose the same on five data sets
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


class Oracle(ByGroup, FixedPolicy):
    """Model of p(ỹ | x, s) fitted to the labels of all training rows, at most the first `ENOUGH`.

    It is a logistic regression or boosted trees, whichever has the smaller log loss on validation people,
    summed over splits. One fit serves all seeds with the same split. The penalty of the regression is
    selected by cross-validation in the first split and is the same in all.

    It is fitted to all folds but one, for each of `FOLDS` folds. Training people, who are the applicants of a
    run, have the estimate of the fit without them: boosted trees would know some labels by heart. Of other
    people one fit decides, which a hash of the person chooses, so that their estimates have the distribution
    that thresholds are chosen from.

    It accepts where p ≥ c, which maximises the utility if p is true, or from thresholds of each group on
    (`models.thresholds`), chosen from the training rows. People tied at a group's threshold are accepted with
    the probability that makes the rates of the training rows right.

    Attributes:
        fitted: boosted trees of all folds, of each split.
        weight: of the columns, of s, and the intercept of the regressions in their place, shape (splits,
            folds, size + 1), float64.
        boosted: whether these are boosted trees, shape ().
        known: log odds of the training people, and of others who come again.
    """

    two_groups = False
    takes_amounts = True
    config: OracleConfig
    config_type = OracleConfig
    boosted: Tensor
    weight: Tensor

    def __init__(self, config: OracleConfig, setting: Setting) -> None:
        super().__init__(config, setting)
        fairness = config.fairness
        self.bound = None if fairness.rule is FairnessRule.none else fairness
        # With a bound, people tied at a threshold have a probability.
        self.rule = DecisionRule(drawn=self.bound is not None)
        self.inputs = FeatureInputs(setting.schema.seen_as(NetInputs.one_hot))
        self.codes = FeatureInputs(setting.schema.seen_as(NetInputs.codes))
        n = len(setting.seeds) if setting.splits > 1 else 1
        self.known = Known(n)
        self.fitted = nn.ModuleList(Fitted(FOLDS) for _ in range(setting.splits))
        self.register_buffer("boosted", torch.zeros((), dtype=torch.bool))
        shape = setting.splits, FOLDS, self.inputs.size_with_s + 1
        self.register_buffer("weight", torch.zeros(shape, dtype=torch.float64))
        self.begin(n)

    def pretrain_units(self, data: PreparedData) -> int:
        """1: all splits are fitted together."""
        return 1

    def pretrain(self, data: PreparedData, cache: Cache, progress: ProgressCallback) -> PretrainCurves | None:
        """Fit to the training rows; raises as `fit`."""
        self.fit(data.train, data.validation, cache)
        self.remember([data.test], cache)
        progress()
        return None

    def fit(self, people: People, validation: People, cache: Cache) -> tuple[Tensor, Tensor, Tensor]:
        """Fit to all labels of N people, the same for all replicates or those of each split.

        The model is chosen on `validation` people. Fits are kept in `cache`: all runs with the same people
        have the same.

        Returns:
            Log odds, x and s of the people, at most `ENOUGH`, as `choose_thresholds` takes them.

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
        first, others = torch.arange(len(people)).tensor_split([ENOUGH])
        people, further = people.rows(first), people.rows(others)
        splits = [people.replicate(number) for number in range(self.setting.splits)]
        if any(own.label.min() == own.label.max() for own in splits):
            raise NoOracleError(f"model={name}: everybody has the same label: nothing to fit")
        left_out = [validation.replicate(number) for number in range(len(splits))]
        values = [of.numpy().tobytes() for own in (*splits, *left_out) for of in (own.x, own.s, own.label)]
        schema, trees = repr(self.setting.schema).encode(), repr(TREES).encode()
        self._fit = key = computation_key(blas().encode(), schema, trees, *values)
        with threadpool_limits(1):  # sums do not depend on the number of threads
            models = cache.part("oracles").result(key, lambda _: self._fits(splits, left_out))
        several = torch.arange(len(self.threshold)) % len(splits)
        self.boosted, self.weight = models["boosted"], models["weight"]
        self.fitted.load_state_dict(models["fitted"])
        log_odds, s = models["log_odds"][several], torch.stack([own.s for own in splits])[several]
        self.known = Known(len(self.threshold))
        self.known.add(models["hashes"][several], log_odds)
        if len(further):
            self.remember([further], cache)
        if self.bound is not None:
            self.choose_thresholds(log_odds, people.x, s)
        return log_odds, people.x, s

    def choose_thresholds(self, log_odds: Tensor, x: Tensor, s: Tensor) -> None:
        """Choose the thresholds of the bound from people of log odds and s, (R, N) or, of all, (N,).

        Their features x (R, N, D) or (N, D) have their amounts, where there are any.

        Raises:
            NoOracleError: where everybody belongs to one group.
        """
        n = len(self.threshold)
        estimates, groups = self.estimates(log_odds, x), group_index(s, self.n_groups)
        estimates = estimates.expand(n, *estimates.shape[-2:])
        for e, group in enumerate(groups.expand(n, -1)):
            if (group == group[0]).all():
                raise NoOracleError(
                    f"model={self.config.name}: all training rows have s = {s.flatten()[0]:+.0f}: no second "
                    "group whose acceptance rate could be the same"
                )
            self.choose_for(e, group, estimates[e])

    def log_odds(self, x: Tensor, s: Tensor, streams: SeedStreams | None = None) -> Tensor:
        """Log odds of p(ỹ = 1 | x, s) of people x (..., D) and s (...), shape (...), float64."""
        n = len(self.threshold)
        x, of_s = x.reshape(n, -1, x.shape[-1]), s.reshape(n, -1)
        hashed = hashes(x, of_s)
        log_odds = self.known.log_odds_of(hashed)
        for e, fold in np.ndindex(n, FOLDS):
            rows = (log_odds[e].isnan() & (hashed[e] % FOLDS == fold)).nonzero().squeeze(1)
            if len(rows):
                log_odds[e, rows] = self._of_fold(e, fold, x[e, rows], of_s[e, rows])
        return log_odds.view(s.shape)

    def remember(self, people: Sequence[People], cache: Cache) -> None:
        """Score people who will come again, and their counterfactuals where these are known, once for all.

        The scores are kept in `cache`: only the first run with the same people needs the classifiers.
        """
        asked = []
        for name, sign in (("x", 1.0), ("counterfactual_x", -1.0), ("counterfactual_x_y_held", -1.0)):
            if getattr(people[0], name) is not None:
                x = torch.cat([getattr(some, name) for some in people], -2)
                asked.append((x, sign * torch.cat([some.s for some in people], -1)))

        def scored(_: Checkpoint) -> State:
            shape = len(self.threshold), -1
            by = hashes, self.log_odds
            hashed, found = (torch.cat([of(x, s).view(shape) for x, s in asked], 1) for of in by)
            return {"hashes": hashed, "log_odds": found}

        values = [of.numpy().tobytes() for person in asked for of in person]
        key = computation_key(self._fit.encode(), str(len(self.threshold)).encode(), *values)
        self.known.add(**cache.part("oracles").result(key, scored))

    def _of_fold(self, e: int, fold: int, x: Tensor, s: Tensor) -> Tensor:
        """The same of people x (B, D) and s (B,) of a replicate by the fit without a fold, shape (B,)."""
        split, boosted = e % len(self.fitted), bool(self.boosted)

        def of_some(x: Tensor, s: Tensor) -> Tensor:
            inputs = self._inputs(x[0], s[0], boosted=boosted)
            if boosted:
                found = log_odds(cast(Fitted, self.fitted[split]).read()[fold], inputs)
            else:  # without an import of scikit-learn
                found = linear(inputs, self.weight[split, fold].numpy())
            return torch.from_numpy(found).unsqueeze(0)

        # The columns of all people at once would take more memory than the rest of a run.
        return in_chunks(of_some, x[None], s[None])[0]

    def _inputs(self, x: Tensor, s: Tensor, *, boosted: bool) -> np.ndarray:
        return self.codes.with_s(x, s).numpy() if boosted else self.inputs.with_s(x, s).double().numpy()

    def _fits(self, splits: Sequence[People], validation: Sequence[People]) -> dict[str, Any]:
        """The models of K splits: `fitted`, `weight` and `boosted`, and `hashes` and `log_odds` (K, N)."""
        labels = [own.label.numpy() for own in splits]
        columns = [[self._inputs(own.x, own.s, boosted=trees) for own in splits] for trees in (False, True)]
        strength = selected_strength(columns[0][0], labels[0])
        kinds = logistic(strength, standardises=True), boosted_trees()
        loss = np.zeros(2)
        for trees, kind in enumerate(kinds):
            for given, label, other in zip(columns[trees], labels, validation, strict=True):
                asked = self._inputs(other.x, other.s, boosted=bool(trees))
                loss[trees] += log_loss(log_odds(fitted(kind, given, label), asked), other.label.numpy())
        boosted = int(loss[1] < loss[0])
        of_splits, weights = nn.ModuleList(Fitted(FOLDS) for _ in splits), torch.zeros_like(self.weight)
        hashed = torch.stack([hashes(own.x, own.s) for own in splits])
        known = np.empty(hashed.shape)
        for k, (given, label) in enumerate(zip(columns[boosted], labels, strict=True)):
            fold = mixed_folds(label)
            n = fold.max() + 1
            found = list[Any]()
            for number in range(FOLDS):
                left_out = fold == number % n
                of = ~left_out if n > 1 else left_out  # one fold: a label that a single person has
                found.append(fitted(kinds[boosted], given[of], label[of], cost=self.setting.cost))
                known[k, left_out] = log_odds(found[number], given[left_out])
            if boosted:
                cast(Fitted, of_splits[k]).keep(found)
            else:
                weights[k] = torch.tensor(np.stack([model.weights_ for model in found]))
            _, kind_of = np.unique(hashed[k], return_inverse=True)
            # People who are alike have the mean.
            known[k] = (np.bincount(kind_of, known[k]) / np.bincount(kind_of))[kind_of]
        return {
            "fitted": of_splits.state_dict(),
            "weight": weights,
            "boosted": torch.tensor(bool(boosted)),
            "hashes": hashed,
            "log_odds": torch.from_numpy(known),
        }


class Known(Stateful):
    """Log odds of known people, of R replicates; people who are alike have the same.

    Attributes:
        hashes: of the people, ascending, shape (R, N).
        log_odds: theirs, float64, shape (R, N).
    """

    kept = ("hashes", "log_odds")

    def __init__(self, n_replicates: int) -> None:
        # One person whose log odds are not known, so that there is always a nearest one.
        self.hashes = torch.zeros(n_replicates, 1, dtype=torch.long)
        self.log_odds = torch.full((n_replicates, 1), torch.nan, dtype=torch.float64)

    def add(self, hashes: Tensor, log_odds: Tensor) -> None:
        """Add people with hashes (R, B) and log odds (R, B), equal for people who are alike."""
        self.hashes, order = torch.cat([self.hashes, hashes], 1).sort(-1)
        self.log_odds = torch.cat([self.log_odds, log_odds], 1).gather(1, order)

    def log_odds_of(self, hashed: Tensor) -> Tensor:
        """Log odds of people with hashes (R, B), NaN of those who are not known."""
        place = torch.searchsorted(self.hashes, hashed).clamp(max=self.hashes.shape[1] - 1)
        return torch.where(self.hashes.gather(1, place) == hashed, self.log_odds.gather(1, place), torch.nan)


def hashes(x: Tensor, s: Tensor) -> Tensor:
    """A number of each person that equal x (..., D) and s (...) share, shape (...), int64."""
    values = torch.cat([x, s.unsqueeze(-1)], -1).float() + 0.0  # no negative zeros
    odd = torch.randint(2**62, values.shape[-1:], generator=torch.Generator().manual_seed(0)) * 2 + 1
    return (values.view(torch.int32).long() * odd).sum(-1)


def mixed_folds(label: np.ndarray) -> np.ndarray:
    """One of `n_folds` of each person, shape (N,): in each both labels have the same share, if possible.

    People are mixed by chance: in a sorted table folds of neighbours would differ.
    """
    from sklearn.model_selection import StratifiedKFold  # takes a second

    order, fold = np.random.default_rng(0).permutation(len(label)), np.zeros(len(label), dtype=int)
    if (folds := n_folds(label)) > 1:
        for number, (_, left_out) in enumerate(StratifiedKFold(folds).split(label, label[order])):
            fold[order[left_out]] = number
    return fold


def log_loss(log_odds: np.ndarray, label: np.ndarray) -> float:
    """Mean cross-entropy of log odds (N,) and labels in {0, 1} (N,)."""
    return float(np.mean(np.logaddexp(0.0, log_odds) - label * log_odds))


def selected_strength(x: np.ndarray, label: np.ndarray) -> float:
    """C of `STRENGTHS` whose `ridge` has the least loss in `FOLDS` folds; arguments as for `ridge`.

    It is the first, the strongest penalty, where fewer than two of the first `CHOOSING` people have a label.
    """
    from sklearn.model_selection import GridSearchCV  # takes a second

    x, label = x[:CHOOSING], label[:CHOOSING]
    if (folds := n_folds(label)) < 2:
        return STRENGTHS[0]
    model = logistic(1.0, standardises=True)
    search = GridSearchCV(model, {"c": STRENGTHS}, scoring="neg_log_loss", cv=folds, refit=False)
    return float(search.fit(x, label).best_params_["c"])


def n_folds(label: np.ndarray) -> int:
    """`FOLDS`, or as many as people of the rarer label in {0, 1}."""
    return min(FOLDS, int(np.bincount(label.astype(int), minlength=2).min()))


def oracles(people: People, validation: People, setting: Setting, cache: Cache) -> dict[str, Oracle]:
    """The oracles without and with parity, by name, from one fit; arguments and errors as of `Oracle.fit`."""

    def oracle(name: str, rule: FairnessRule) -> Oracle:
        return Oracle(OracleConfig(name=name, fairness=BoundConfig(rule=rule, slack=0.0)), setting)

    free = oracle("oracle", FairnessRule.none)
    equal = oracle("oracle_fair", FairnessRule.demographic_parity)
    found = free.fit(people, validation, cache)
    for name in ("boosted", "weight", "fitted", "known"):
        setattr(equal, name, getattr(free, name))
    equal.choose_thresholds(*found)
    return {"oracle": free, "oracle_fair": equal}
