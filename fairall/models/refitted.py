"""Learners of classifiers of scikit-learn's shape, fitted anew when enough people have come."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, ClassVar

import numpy as np
import torch
from threadpoolctl import threadpool_limits
from torch import Tensor

from fairall.config.checks import one_of, optional, positive
from fairall.config.schema import ModelConfig, NetInputs
from fairall.data.features import Feature, FeatureInputs, Kind, Schema
from fairall.data.people import Decided
from fairall.data.prepared import PreparedData
from fairall.display.progress import ProgressCallback
from fairall.models.estimators import SEEDS, Fitted, fitted, log_odds
from fairall.models.latent_learner import LatentConfig, LatentLearner
from fairall.models.learner import DECISIONS, DecisionRule, Learner, PretrainCurves, Setting
from fairall.models.memory import Memory
from fairall.runtime.randomness import SeedStreams
from fairall.storage.checkpoint import Cache

# Groups of people whose estimates are kept: applicants, evaluated people and their counterfactuals.
RECENT = 4

# N people to fit to: inputs (N, F) of each of K classifiers, labels in [0, 1] and weights, shapes (N,).
Labelled = tuple[list[np.ndarray], np.ndarray, np.ndarray]


@dataclass
class LatentInputsConfig(LatentConfig):
    """FairAll or FairLab, whose VAE and Phase I are used alone."""

    kl_samples: int = 0


@dataclass
class RefittedConfig(ModelConfig):
    """By what share the number of people seen grows between fits, and how is decided.

    `latent_inputs`: a method whose latent of Phase I gives further inputs; null: there are none.
    """

    growth: float = positive()
    decision: str = one_of(DECISIONS)
    latent_inputs: LatentInputsConfig | None = optional()


class Refitted(Learner):
    """A method of `table` and `given`; accepts with p = p(ỹ = 1 | x, s), or where p is at least the cost.

    Args:
        config: of the method.
        setting: the problem that it learns in.
        models: the K classifiers, unfitted.
        trusted: packages whose types their archives may have, see `Fitted`.

    Attributes:
        memory: of people seen.
        schema: the features as classifiers have them, with those of the latent.
        inputs: of the classifiers.
        latent: learns Phase I alone; None without `config.latent_inputs`.
        fitted: the classifiers of the first replicate, then those of the second, and so on.
        streams: random numbers of fits.
        n_seen: number of people seen, shape ().
        n_fitted: number of people seen before the last fit, shape ().
    """

    two_groups = False
    takes_amounts = True
    weighs_labels = True
    net_inputs = NetInputs.one_hot
    config: RefittedConfig
    remembered: ClassVar[str] = "accepted"
    n_seen: Tensor
    n_fitted: Tensor

    def __init__(
        self, config: RefittedConfig, setting: Setting, models: list[Any], trusted: Collection[str] = ()
    ) -> None:
        super().__init__(config, setting)
        self.rule = DecisionRule(setting.cost, config.decision == "sample", setting.amounts)
        self.memory = Memory(self.remembered)
        self.schema = own = setting.schema
        self.latent, latent = None, config.latent_inputs
        if latent is not None:
            # It sees features as FairAll does, whose Phase I it shares.
            self.latent = LatentLearner(latent, replace(setting, schema=own.seen_as(NetInputs.codes)))
            z = Schema([Feature(f"latent {k}", Kind.REAL) for k in range(latent.latent_size)])
            self.schema = replace(
                own, features=[*own, *z], mean=[*own.mean, *z.mean], scale=[*own.scale, *z.scale]
            )
        self.inputs = FeatureInputs(self.schema.seen_as(NetInputs.one_hot))
        self.models = models
        self.fitted = Fitted(len(models) * len(setting.seeds), trusted)
        self.streams = SeedStreams(setting.seeds, "refits")
        for name in ("n_seen", "n_fitted"):
            self.register_buffer(name, torch.zeros((), dtype=torch.long))

    @abstractmethod
    def table(self, e: int, seen: Decided, seed: int) -> Labelled:
        """What the classifiers of replicate e are fitted to.

        Args:
            e: number of the replicate.
            seen: the people in its memory, fields (n, ...).
            seed: of random numbers.
        """

    @abstractmethod
    def given(self, e: int, x: Tensor, s: Tensor) -> list[np.ndarray]:
        """Inputs (B, F) of each of the K classifiers of replicate e for people x (B, D) and s (B,).

        Here and in `table` x has the features of `schema`.
        """

    def pretrain(self, data: PreparedData, cache: Cache, progress: ProgressCallback) -> PretrainCurves | None:
        """Train the latent, for which people need no labels, where there is one."""
        return None if self.latent is None else self.latent.pretrain(data, cache, progress)

    def pretrain_units(self, data: PreparedData) -> int:
        """Number of Phase I epochs, 0 without a latent."""
        return 0 if self.latent is None else self.latent.pretrain_units(data)

    @torch.no_grad()
    def features(self, x: Tensor, s: Tensor) -> Tensor:
        """X (E, B, D) with the features of `schema`: E[z | x, s] of Phase I is last, if there is a latent.

        It is 0 in replicates whose Phase I has diverged.
        """
        if self.latent is None:
            return x
        z = self.latent.model.vae.encode(x, s, torch.zeros_like(s))[0]  # of Phase I where ũ = 0
        return torch.cat([x, z.nan_to_num()], -1)

    def warm_up_epoch(self, decided: Decided, epoch: int) -> dict[str, float]:
        """Learn from the people of the warm-up in its first epoch."""
        if epoch == 0:
            Refitted.update(self, decided)
        return {}

    def update(self, decided: Decided) -> None:
        """Remember people, and fit anew to everybody in `memory` if enough have come since the last fit."""
        self.memory.add(decided)
        self.n_seen += decided.s.shape[1]
        self.unchanged = bool(self.n_seen < self.n_fitted * (1.0 + self.config.growth))
        if self.unchanged:
            return
        self.n_fitted.copy_(self.n_seen)
        rows, found = self.memory.rows(), list[Any]()
        columns = vars(replace(rows, x=self.features(rows.x, rows.s)))
        seeds = (self.streams.uniform(1).squeeze(-1) * SEEDS).long().tolist()
        with threadpool_limits(1):  # no number depends on the number of cores
            for e, (n, seed) in enumerate(zip(self.memory.counts, seeds, strict=True)):
                seen = Decided(**{name: of[e, :n] for name, of in columns.items()})
                found += self.fit(e, seen, seed)
        self.fitted.keep(found)

    def fit(self, e: int, seen: Decided, seed: int) -> list[Any]:
        """The K classifiers of replicate e, fitted to `table`; arguments as for that."""
        inputs, *labelled = self.table(e, seen, seed)
        return [
            fitted(model, x, *labelled, cost=self.setting.cost, seed=seed)
            for model, x in zip(self.models, inputs, strict=True)
        ]

    @torch.no_grad()
    def of_classifiers(self, x: Tensor, s: Tensor) -> Tensor:
        """Log odds of people x (E, B, D) and s (E, B) by each classifier, shape (E, B, K), float64.

        Those of the people asked for last are kept: evaluated people are the same at every time step.
        """
        classifiers, known = self.fitted.read(), self.fitted.known
        if not classifiers:  # before the first fit
            return torch.zeros(*s.shape, len(self.models), dtype=torch.float64)
        people = x.numpy().tobytes(), s.numpy().tobytes()
        if people not in known:
            x = self.features(x, s)
            given = chain.from_iterable(self.given(e, x[e], s[e]) for e in range(len(s)))
            columns = np.array([*map(log_odds, classifiers, given)])
            known[people] = columns.reshape(len(s), -1, s.shape[1]).swapaxes(1, 2).copy()
            for old in [*known][:-RECENT]:
                del known[old]
        return torch.from_numpy(known[people])

    def log_odds(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """Those of the only classifier, shape (E, B), float64; draws nothing."""
        return self.of_classifiers(x, s).squeeze(-1)

    def score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """p(ỹ = 1 | x, s), shape (E, B); draws nothing."""
        return self.log_odds(x, s, streams).sigmoid().to(x.dtype)
