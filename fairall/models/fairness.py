"""Thresholds on top of a method that bound the gap between groups, chosen from everybody seen."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor
from typing_extensions import override

from fairall.config.schema import FairnessConfig, FairnessRule
from fairall.data.people import Decided, group_index
from fairall.data.prepared import PreparedData
from fairall.display.progress import ProgressCallback
from fairall.errors import FairAllError, count
from fairall.models.classifier import ClassifierNet, Remembering
from fairall.models.learner import DecisionRule, Learner, PretrainCurves
from fairall.models.memory import Memory
from fairall.models.objectives import train_on
from fairall.models.thresholds import ByGroup, price_of_gap
from fairall.nn.adam import Adam
from fairall.runtime.randomness import SeedStreams
from fairall.storage.checkpoint import Cache

FEW = 100  # people of a group: the standard error of their acceptance rate can be 5 points
# Utility per person that the nearest to the thresholds of the time step before may lose. Estimates of the
# utility of nearly equal thresholds differ by more, and jumps are unfairness that labels do not ask for.
TOLERANCE = 1e-3


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

    Attributes:
        least_rate: least of the groups' rates at the last choice, shape (E,); NaN before the first.

    Raises:
        FairAllError: where the learner has no estimate of p(ỹ = 1 | x, s).
    """

    least_rate: Tensor

    def __init__(self, fairness: FairnessConfig, learner: Learner, share: float = 1.0) -> None:
        super().__init__(learner.config, learner.setting)
        self.asked = f"fairness={fairness.rule.name}"
        if not learner.estimates_label:
            raise FairAllError(
                f"{self.asked}: model={self.config.name} has no estimate of p(label = 1) that "
                "thresholds could be chosen for; take fairness=none, or for instance model=ensemble"
            )
        self.bound = self.fairness = fairness
        self.learner, self.share = learner, share
        self.two_groups, self.takes_amounts = learner.two_groups, learner.takes_amounts
        self.rule = DecisionRule()  # people tied at a threshold have a probability
        self.seen = Memory("all", fairness.window, of=Scored)
        self.streams = SeedStreams(self.setting.seeds, "scores of fairness")
        n_seeds = len(self.setting.seeds)
        self.begin(n_seeds)
        self.register_buffer("least_rate", torch.full((n_seeds,), torch.nan, dtype=torch.float64))

    def seen_by_learner(self, s: Tensor) -> Tensor:
        """The sensitive attribute as the learner gets it, of the shape of s."""
        return s

    @override
    def warm_up_epoch(self, decided: Decided, epoch: int) -> dict[str, float]:
        """Train the learner; after the last epoch choose the first thresholds."""
        if epoch == 0:
            self.see(decided)
        values = self.learner.warm_up_epoch(replace(decided, s=self.seen_by_learner(decided.s)), epoch)
        if epoch == self.setting.schedule.warm_up_epochs - 1:
            self.choose()
        return values

    @override
    def update(self, decided: Decided) -> None:
        """Remember the applicants, train the learner, and choose thresholds."""
        self.see(decided)
        self.learner.update(replace(decided, s=self.seen_by_learner(decided.s)))
        self.choose()

    def see(self, decided: Decided) -> None:
        """Remember people and the estimates of them."""
        self.seen.add(Scored(**vars(decided), log_odds=self.log_odds(decided.x, decided.s, self.streams)))

    def choose(self) -> None:
        """Choose the thresholds of all replicates."""
        seen = self.seen.rows()
        assert isinstance(seen, Scored)
        if not self.learner.unchanged:
            # Into the memory, of which this is a view.
            seen.log_odds.copy_(self.log_odds(seen.x, seen.s, self.streams))
        estimates, groups = self.estimates(seen.log_odds, seen.x), group_index(seen.s, self.n_groups)
        for e, n in enumerate(self.seen.counts.tolist()):
            known, group = estimates[e, :n], groups[e, :n]
            # A group nobody of which has been seen, or a seed that has diverged, keeps the thresholds it has.
            if group.bincount(minlength=self.n_groups).all() and known.isfinite().all():
                self.choose_of(e, group, known)

    def choose_of(self, e: int, group: Tensor, estimates: Tensor) -> None:
        """Choose as `choose_for`, within the places and near the choice before."""
        n, before = len(group), float(self.least_rate[e])
        self.least_rate[e] = self.choose_for(
            e,
            group,
            estimates,
            places=self.share * n,
            before=None if math.isnan(before) else before,
            tolerance=TOLERANCE * n,
        )

    @override
    @torch.no_grad()
    def log_odds(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """Those of the learner, shape (E, B)."""
        return self.learner.log_odds(x, self.seen_by_learner(s), streams)

    @override
    def notes(self, data: PreparedData) -> list[str]:
        """Those of the learner, and one for each group whose rate rests on few people."""
        table, people = data.pool_table, data.train
        lines = self.learner.notes(data)
        for s in people.s.unique().tolist():
            share = (people.s == s).double().mean().item()
            if (n := round(share * self.fairness.window)) < FEW:
                known_to = 100 * (0.25 / max(n, 1)) ** 0.5
                lines.append(
                    f"{self.asked}: the threshold of {table.group_name(s)} rests on about "
                    f"{count(n, 'person', 'people')} of the last fairness.window={self.fairness.window}, "
                    f"so that the group's rate has a standard error of {known_to:.0f} points"
                )
        return lines

    @override
    def explore(self, x: Tensor, s: Tensor, propensity: Tensor, uniform: Tensor) -> Tensor:
        """As the learner explores, shape (E, N), among those whom the thresholds reject."""
        return self.learner.explore(x, self.seen_by_learner(s), propensity, uniform)

    @override
    def pretrain(self, data: PreparedData, cache: Cache, progress: ProgressCallback) -> PretrainCurves | None:
        """Fill the window with people of the pool, without their labels, and pretrain the learner."""
        pool = data.pool.rows(torch.arange(min(self.fairness.window, len(data.pool))))
        shape = len(self.setting.seeds), len(pool)
        nothing = torch.zeros(shape)
        x = pool.x.expand(*shape, pool.x.shape[-1])
        self.see(Decided(x, pool.s.expand(shape), nothing, nothing > 0, nothing))
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
    p(ỹ = 1 | x) ≥ c + μ·[p(S = +1 | x)/P(S = +1) − p(S = −1 | x)/P(S = −1)]
    (Menon and Williamson 2018, section 4). A second net with the classifier's architecture estimates
    p(S = +1 | x) from everybody seen. s is used to train that net and to choose μ, but not to decide.

    Attributes:
        group_net: its logit is that of p(S = +1 | x).
        price: two μ, between which the gap passes the slack, float64, shape (E, 2).
        second: probability of deciding by the second of them, shape (E,).
        benefit: mean of p(S = g | x), times p(ỹ = 1 | x) for true positive rates, shape (E, 2).

    Raises:
        FairAllError: where the learner has no classifier of remembered people, there are more than two
            groups, or places are few.
    """

    price: Tensor
    second: Tensor
    benefit: Tensor

    def __init__(self, fairness: FairnessConfig, learner: Learner, share: float = 1.0) -> None:
        super().__init__(fairness, learner, share)
        asked, self.takes_amounts = f"{self.asked} fairness.blind=true", False
        if not isinstance(learner, Remembering):
            raise FairAllError(
                f"{asked}: model={self.config.name} is no classifier of remembered people; "
                "take greedy, ensemble or plot"
            )
        if self.n_groups > 2 or share < 1.0:
            raise FairAllError(
                f"{asked}: for two groups, and without world.capacity; leave fairness.blind out"
            )
        self.remembering = learner.config
        self.group_streams = SeedStreams(self.setting.seeds, "groups of fairness")
        self.group_net = ClassifierNet(self.setting, self.remembering.clf_arch, self.group_streams)
        self.optimiser = Adam(self.group_net.parameters(), self.remembering.learning_rate)
        n_seeds = len(self.setting.seeds)
        self.register_buffer("price", torch.zeros(n_seeds, 2, dtype=torch.float64))
        self.register_buffer("second", torch.zeros(n_seeds, dtype=torch.float64))
        self.register_buffer("benefit", torch.ones(n_seeds, 2, dtype=torch.float64))

    @override
    def seen_by_learner(self, s: Tensor) -> Tensor:
        return torch.zeros_like(s)

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
        n_batches, size = self.remembering.updates, self.remembering.batch_size
        train_on(self.seen.minibatches(n_batches, size, self.group_streams), self._group_loss, self.optimiser)

    def _group_loss(self, batch: Decided) -> Tensor:
        logit = self.group_net.logit(batch.x, torch.zeros_like(batch.s))
        known = batch.s != 0  # not of a replicate that has seen nobody
        return F.binary_cross_entropy_with_logits(
            logit, (batch.s > 0).to(logit.dtype), weight=known.to(logit.dtype), reduction="none"
        ).mean(-1)

    @override
    @torch.no_grad()
    def estimates(self, log_odds: Tensor, x: Tensor) -> Tensor:
        """The log odds and p(S = +1 | x), shape (E, M, 2)."""
        return torch.stack([log_odds, self._advantaged(x)], -1)

    @override
    @torch.no_grad()
    def choose_of(self, e: int, group: Tensor, estimates: Tensor) -> None:
        p, q = estimates[:, 0].sigmoid(), estimates[:, 1]
        counted = p if self.fairness.rule is FairnessRule.equal_opportunity else torch.ones_like(p)
        self.benefit[e] = torch.stack([(counted * (1.0 - q)).mean(), (counted * q).mean()])
        weight = [torch.where(own, counted, 0.0) / counted[own].sum() for own in (group == 0, group == 1)]

        def gap(price: float) -> float:
            accepted = p >= self._least(p, q, self.benefit[e], price)
            return float((weight[1] * accepted).sum() - (weight[0] * accepted).sum())

        self.price[e], self.second[e] = price_of_gap(gap, self.fairness.slack)

    def _least(self, p: Tensor, q: Tensor, benefit: Tensor, price: Tensor | float) -> Tensor:
        """Least p accepted, for p and q = p(S = +1 | x) of people (..., B), and `benefit` (..., 2)."""
        moved = price * (q / benefit[..., 1:] - (1.0 - q) / benefit[..., :1])
        if self.fairness.rule is FairnessRule.equal_opportunity:
            moved = p * moved
        return self.setting.cost + moved

    @override
    @torch.no_grad()
    def score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """The acceptance probability, shape (E, B), which does not depend on s."""
        p, q = self.log_odds(x, s, streams).sigmoid(), self._advantaged(x)
        first, second = (p >= self._least(p, q, self.benefit, self.price[:, i : i + 1]) for i in (0, 1))
        share = self.second.unsqueeze(-1)
        return ((1.0 - share) * first + share * second).to(x.dtype)

    @override
    @torch.no_grad()
    def compared(self, x: Tensor, s: Tensor, streams: SeedStreams) -> tuple[Tensor, Tensor]:
        p = self.log_odds(x, s, streams).sigmoid()
        least = self._least(p, self._advantaged(x), self.benefit, self.price[:, :1])
        return p.to(x.dtype), least.to(x.dtype)

    def _advantaged(self, x: Tensor) -> Tensor:
        """p(S = +1 | x), shape (E, B), float64."""
        return self.group_net.logit(x, x.new_zeros(x.shape[:2])).double().sigmoid()
