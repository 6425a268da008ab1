"""Thresholds on top of a method that bound the gap between groups, chosen from everybody seen."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from typing_extensions import override

from fairall.config.schema import FairnessConfig
from fairall.data.people import Decided
from fairall.data.prepared import PreparedData
from fairall.display.progress import ProgressCallback
from fairall.errors import FairAllError, count
from fairall.models.classifier import ClassifierNet, Remembering
from fairall.models.learner import Learner, PretrainCurves
from fairall.models.memory import Memory
from fairall.models.objectives import cross_entropy, train_on
from fairall.models.thresholds import ByGroup, crossing
from fairall.nn.adam import Adam
from fairall.runtime.randomness import SeedStreams
from fairall.storage.checkpoint import Cache

FEW = 100  # people of a group: the standard error of their acceptance rate can be 5 points


@dataclass(frozen=True)
class Scored(Decided):
    """Decided people with the log odds of p(ỹ = 1 | x, s) by the learner, shape (E, B), float64."""

    log_odds: Tensor


class FairThresholds(ByGroup):
    """A learner that decides by one threshold per group on its estimate of p(ỹ = 1 | x, s).

    The thresholds are the ones of greatest estimated utility under a bound on the gap between the groups'
    acceptance rates, or true positive rates Σ π·p̂ / Σ p̂ (`models.thresholds`). They are chosen after every
    update from the last `window` people seen, the first of whom are of the unlabelled pool. That needs
    estimates and no labels, so that rejected people count too, and the rates are those of all applicants, not
    of those whom earlier policies have accepted.

    The whole window is estimated anew after each update that changes the learner's estimates: it can move all
    those of a group, and its acceptance rate with them.

    Args:
        fairness: rates that are compared, slack and window.
        learner: untrained; it is trained as without thresholds, on the decisions that these make.
        share: places per applicant; with few of them the best rates are those under the thresholds at which
            the expected number of accepted people is that of the places.

    Raises:
        FairAllError: where the learner has no estimate of p(ỹ = 1 | x, s).
    """

    # Estimates of the utility of nearly equal thresholds differ by more, and jumps are unfairness that labels
    # do not ask for.
    tolerance = 1e-3

    def __init__(self, fairness: FairnessConfig, learner: Learner, share: float = 1.0) -> None:
        seeds = learner.setting.seeds
        super().__init__(learner.config, learner.setting, fairness, len(seeds))
        self.asked = f"fairness={fairness.rule.name}"
        if not learner.estimates_label:
            raise FairAllError(
                f"{self.asked}: model={self.config.name} has no estimate of p(label = 1) that "
                "thresholds could be chosen for; take fairness=none, or for instance model=ensemble"
            )
        self.fairness = fairness
        self.learner = learner
        self.share = share
        self.two_groups = learner.two_groups
        self.takes_amounts = learner.takes_amounts
        self.seen = Memory("all", fairness.window, of=Scored)
        self.streams = SeedStreams(seeds, "scores of fairness")

    def shown(self, s: Tensor) -> Tensor:
        """The sensitive attribute as the learner gets it, 0 where decisions are blind, of the shape of s."""
        return torch.zeros_like(s) if self.fairness.blind else s

    @override
    def warm_up_epoch(self, decided: Decided, epoch: int) -> dict[str, float]:
        """Train the learner; after the last epoch choose the first thresholds."""
        if epoch == 0:
            self.see(decided)
        values = self.learner.warm_up_epoch(replace(decided, s=self.shown(decided.s)), epoch)
        if epoch == self.setting.schedule.warm_up_epochs - 1:
            self.choose_from_seen()
        return values

    @override
    def update(self, decided: Decided) -> None:
        """Remember the applicants, train the learner, and choose thresholds."""
        self.see(decided)
        self.learner.update(replace(decided, s=self.shown(decided.s)))
        self.choose_from_seen()

    def see(self, decided: Decided) -> None:
        """Remember people and the estimates of them."""
        self.seen.add(Scored(**vars(decided), log_odds=self.log_odds(decided.x, decided.s, self.streams)))

    def choose_from_seen(self) -> None:
        """Choose the thresholds of all replicates."""
        seen = self.seen.rows()
        assert isinstance(seen, Scored)
        if not self.learner.unchanged:
            # Into the memory, of which this is a view.
            seen.log_odds.copy_(self.log_odds(seen.x, seen.s, self.streams))
        self.choose(seen.log_odds, seen.x, seen.s)

    @override
    @torch.no_grad()
    def log_odds(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """Those of the learner, shape (E, B)."""
        return self.learner.log_odds(x, self.shown(s), streams)

    @override
    def notes(self, data: PreparedData) -> list[str]:
        """Those of the learner, and one for each group whose rate rests on few people."""
        lines = self.learner.notes(data)
        for s in data.train.s.unique():
            n = round((data.train.s == s).double().mean().item() * self.fairness.window)
            if n < FEW:
                lines.append(
                    f"{self.asked}: the threshold of {data.pool_table.group_name(s.item())} rests on about "
                    f"{count(n, 'person', 'people')} of the last fairness.window={self.fairness.window}, "
                    f"so that the group's rate has a standard error of {50 / max(n, 1) ** 0.5:.0f} points"
                )
        return lines

    @override
    def explore(self, x: Tensor, s: Tensor, propensity: Tensor, uniform: Tensor) -> Tensor:
        """As the learner explores, shape (E, N), among those whom the thresholds reject."""
        return self.learner.explore(x, self.shown(s), propensity, uniform)

    @override
    def pretrain(self, data: PreparedData, cache: Cache, progress: ProgressCallback) -> PretrainCurves | None:
        """Fill the window with people of the pool, without their labels, and pretrain the learner."""
        first = torch.arange(min(self.fairness.window, len(data.pool)))
        pool = data.pool.rows(first.expand(len(self.setting.seeds), -1))
        nothing = torch.zeros_like(pool.s)
        self.see(Decided.reveal(pool, nothing, nothing > 0))
        return self.learner.pretrain(data, cache, progress)

    @override
    def pretrain_units(self, data: PreparedData) -> int:
        """As the learner."""
        return self.learner.pretrain_units(data)

    @override
    def representation(self, x: Tensor, s: Tensor) -> Tensor | None:
        """As the learner."""
        return self.learner.representation(x, s)

    @override
    def reconstruction(self, x: Tensor, s: Tensor) -> Tensor | None:
        """As the learner."""
        return self.learner.reconstruction(x, s)


class BlindThresholds(FairThresholds):
    """Thresholds that depend on x alone, for where s may not be used to decide.

    The learner is trained with s = 0 for everybody. Among policies that depend on x alone, utility under a
    bound on the gap between the rates of two groups is maximised by accepting where
    p(ỹ = 1 | x) ≥ c + Σ_g λ_g·p(S = g | x), with λ_g = ±μ/P(S = g), + for S = +1
    (Menon and Williamson 2018, section 4); of true positive rates the sum is multiplied by p(ỹ = 1 | x), and
    P(S = g) is that of people with label 1. A second net with the classifier's architecture estimates
    p(S = +1 | x) from everybody seen. s is used to train that net and to choose μ, but not to decide.

    Attributes:
        group_net: its logit is that of p(S = +1 | x).
        price: λ of two policies, between which the gap passes the slack, float64, shape (E, 2, G).
        chance: probability of deciding by each of them, float64, shape (E, 2).

    Raises:
        FairAllError: where the learner has no classifier of remembered people, there are more than two
            groups, or places are few.
    """

    price: Tensor
    chance: Tensor

    def __init__(self, fairness: FairnessConfig, learner: Learner, share: float = 1.0) -> None:
        super().__init__(fairness, learner, share)
        asked = f"{self.asked} fairness.blind=true"
        self.takes_amounts = False
        if not isinstance(learner, Remembering):
            raise FairAllError(
                f"{asked}: model={self.config.name} is no classifier of remembered people; "
                "take greedy, ensemble or plot"
            )
        if self.n_groups > 2 or share < 1.0:
            raise FairAllError(
                f"{asked}: for two groups, and without world.capacity; leave fairness.blind out"
            )
        self.group_streams = SeedStreams(self.setting.seeds, "groups of fairness")
        self.group_net = ClassifierNet(self.setting, learner.config.clf_arch, self.group_streams)
        self.group_net.sees_s = False
        self.optimiser = Adam(self.group_net.parameters(), learner.config.learning_rate)
        chance = torch.full((len(self.threshold), 2), 0.5, dtype=torch.float64)
        self.register_buffer("chance", chance)
        self.register_buffer("price", torch.zeros_like(chance).unsqueeze(-1).repeat(1, 1, self.n_groups))

    @override
    def warm_up_epoch(self, decided: Decided, epoch: int) -> dict[str, float]:
        """Train the learner, and the net of p(S = +1 | x)."""
        values = super().warm_up_epoch(decided, epoch)
        self._learn_groups()
        return values

    @override
    def update(self, decided: Decided) -> None:
        """The same, before μ is chosen."""
        self._learn_groups()
        super().update(decided)

    def _learn_groups(self) -> None:
        def loss(batch: Decided) -> Tensor:
            return cross_entropy(self.group_net.logit(batch.x, batch.s), (batch.s > 0).float()).mean(-1)

        batches = self.seen.minibatches(self.config.updates, self.config.batch_size, self.group_streams)
        train_on(batches, loss, self.optimiser)

    @override
    @torch.no_grad()
    def columns(self, log_odds: Tensor, x: Tensor) -> Tensor:
        """p(ỹ = 1 | x), and that or 1, as people count in the rates, times p(S = g | x), (E, M, 1 + G)."""
        p = log_odds.sigmoid()
        of_s = self.group_net.logit(x, x[..., 0]).double().sigmoid()
        return torch.stack([p, self.counted(p) * (1.0 - of_s), self.counted(p) * of_s], -1)

    @override
    def choose_for(self, e: int, group: Tensor, columns: Tensor) -> None:
        p = columns[:, 0]
        members = columns[:, 1:]
        of_price_1 = torch.tensor([-1.0, 1.0], dtype=torch.float64) / members.mean(0)
        counted = self.counted(p)
        of_groups = [torch.where(group == g, counted, 0.0) / counted[group == g].sum() for g in (0, 1)]

        def gap(price: float) -> float:
            accepted = p >= self.setting.cost + price * (members @ of_price_1)
            first, second = ((of * accepted).sum().item() for of in of_groups)
            return second - first

        sign = math.copysign(1.0, gap(0.0))
        *prices, first = crossing(lambda price: sign * gap(sign * price), self.fairness.slack)
        self.price[e] = torch.outer(sign * torch.tensor(prices, dtype=torch.float64), of_price_1)
        self.chance[e] = torch.tensor([first, 1.0 - first], dtype=torch.float64)

    @override
    def score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """The acceptance probability, shape (E, B), which does not depend on s."""
        p, least = self._least(x, s, streams)
        return ((p >= least).double() @ self.chance.unsqueeze(-1)).squeeze(-1).to(x.dtype)

    @override
    def compared(self, x: Tensor, s: Tensor, streams: SeedStreams) -> tuple[Tensor, Tensor]:
        """p(ỹ = 1 | x), and the least accepted by the first policy, shapes (E, B)."""
        p, least = self._least(x, s, streams)
        return p[..., 0].to(x.dtype), least[..., 0].to(x.dtype)

    def _least(self, x: Tensor, s: Tensor, streams: SeedStreams) -> tuple[Tensor, Tensor]:
        """p(ỹ = 1 | x), shape (E, B, 1), and the least that each policy accepts, shape (E, B, 2)."""
        p, members = self.columns(self.log_odds(x, s, streams), x).split([1, self.n_groups], -1)
        return p, self.setting.cost + members @ self.price.mT
