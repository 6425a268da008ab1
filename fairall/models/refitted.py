"""Learners of classifiers of scikit-learn's shape, fitted anew when enough people have come."""

from __future__ import annotations

import weakref
from abc import abstractmethod
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, cast

import numpy as np
import torch
from threadpoolctl import threadpool_limits
from torch import Tensor, nn
from typing_extensions import override

from fairall.config.checks import one_of, positive
from fairall.config.schema import ModelConfig, NetInputs
from fairall.data.features import FeatureInputs
from fairall.data.people import Decided
from fairall.models.estimators import SEEDS, Fitted
from fairall.models.learner import DECISIONS, DecisionRule, Learner, Setting
from fairall.models.memory import Memory
from fairall.runtime.randomness import SeedStreams

RECENT = (
    4  # groups of people whose estimates are kept: applicants, evaluated people and their counterfactuals
)


@dataclass
class RefittedConfig(ModelConfig):
    """By what share the number of people seen grows between fits, and how is decided."""

    growth: float = positive()
    decision: str = one_of(DECISIONS)


class Refitted(Learner):
    """A method of `fit` and `given`; accepts with p = p(ỹ = 1 | x, s), or where p is at least the cost.

    Attributes:
        memory: of people seen.
        inputs: of the classifiers.
        fitted: classifiers of each replicate.
        n_models: number K of these.
        streams: random numbers of fits.
        n_seen: number of people seen, shape ().
        n_fitted: number of people seen before the last fit, shape ().
    """

    two_groups = False
    takes_amounts = True
    weighs_labels = True
    net_inputs = NetInputs.one_hot
    config: RefittedConfig
    remembered: ClassVar[Literal["accepted", "all"]] = "accepted"
    n_models: int = 1
    n_seen: Tensor
    n_fitted: Tensor

    def __init__(self, config: RefittedConfig, setting: Setting, trusted: Collection[str] = ()) -> None:
        super().__init__(config, setting)
        drawn = config.decision == "sample"
        self.rule = DecisionRule(setting.cost, drawn, None if drawn else setting.amounts)
        self.memory = Memory(self.remembered)
        self.inputs = FeatureInputs(setting.schema.seen_as(NetInputs.one_hot))
        self.fitted = nn.ModuleList(Fitted(self.n_models, trusted) for _ in setting.seeds)
        self.streams = SeedStreams(setting.seeds, "refits")
        self.register_buffer("n_seen", torch.zeros((), dtype=torch.long))
        self.register_buffer("n_fitted", torch.zeros((), dtype=torch.long))
        self._recent, self._readable = Recent(), set[type]()

    @abstractmethod
    def fit(self, e: int, seen: Decided, seed: int) -> list[Any]:
        """The K classifiers of replicate e, fitted to the people in memory, fields (n, ...).

        A seed for random numbers is given.
        """

    @abstractmethod
    def given(self, e: int, x: Tensor, s: Tensor) -> list[np.ndarray]:
        """Inputs of each of the K classifiers of replicate e for people x (B, D) and s (B,)."""

    @override
    def warm_up_epoch(self, decided: Decided, epoch: int) -> dict[str, float]:
        """Learn from the people of the warm-up in its first epoch."""
        if epoch == 0:
            self.learn(decided)
        return {}

    @override
    def update(self, decided: Decided) -> None:
        """Learn from the applicants of a time step."""
        self.learn(decided)

    def learn(self, decided: Decided) -> None:
        """Remember people, and fit anew if enough have come since the last fit."""
        self.memory.add(decided)
        self.n_seen += decided.s.shape[1]
        self.unchanged = bool(self.n_seen < self.n_fitted * (1.0 + self.config.growth))
        if not self.unchanged:
            self.n_fitted.copy_(self.n_seen)
            self.refit()

    def refit(self) -> None:
        """Fit anew to the people in `memory`."""
        columns = {name: of for name, of in vars(self.memory.rows()).items() if of is not None}
        seeds = (self.streams.uniform(1).squeeze(-1) * SEEDS).long().tolist()
        with threadpool_limits(1):  # no number depends on the number of cores
            for e, n in enumerate(self.memory.counts.tolist()):
                seen = Decided(**{name: of[e, :n] for name, of in columns.items()})
                own, classifiers = cast(Fitted, self.fitted[e]), self.fit(e, seen, seeds[e])
                own.keep(classifiers)
                if not (kinds := set(map(type, classifiers))) <= self._readable:
                    own.require_readable()
                    self._readable |= kinds

    @torch.no_grad()
    def of_classifiers(self, x: Tensor, s: Tensor) -> Tensor:
        """Log odds of people x (E, B, D) and s (E, B) by each classifier, shape (E, B, K), float64.

        Those of the people asked for last are kept: evaluated people are the same at every time step.
        """
        changes = sum(cast(Fitted, own).changes for own in self.fitted)
        return self._recent.of(self._of_classifiers, changes, x, s)

    def _of_classifiers(self, x: Tensor, s: Tensor) -> Tensor:
        of_seeds = [
            cast(Fitted, own).log_odds(self.given(e, x[e], s[e])) for e, own in enumerate(self.fitted)
        ]
        return torch.from_numpy(np.stack(of_seeds))

    @override
    def log_odds(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """Those of the only classifier, shape (E, B), float64; draws nothing."""
        return self.of_classifiers(x, s).squeeze(-1)

    def score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """p(ỹ = 1 | x, s), shape (E, B); draws nothing."""
        return self.log_odds(x, s, streams).sigmoid().to(x.dtype)


class Recent:
    """Values of the people asked for last."""

    def __init__(self) -> None:
        self._kept: list[tuple[weakref.ref[Tensor], int, Tensor, Tensor]] = []

    def __reduce__(self) -> tuple[type[Recent], tuple[()]]:
        """Copies begin with none: weak references cannot be pickled."""
        return Recent, ()

    def of(self, compute: Callable[[Tensor, Tensor], Tensor], changes: int, x: Tensor, s: Tensor) -> Tensor:
        """The values of people x (E, B, D) and s (E, B).

        They are computed unless the same x was asked for after as many `changes` of what computes them.
        """
        for known, before, of_s, values in self._kept:
            if known() is x and before == changes and torch.equal(of_s, s):
                return values
        values = compute(x, s)
        self._kept = [*self._kept, (weakref.ref(x), changes, s, values)][-RECENT:]
        return values
