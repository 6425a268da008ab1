"""Thresholds on top of a method that bound the gap between groups, chosen from everybody seen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits
from torch import Tensor, nn
from typing_extensions import override

from fairall.config.schema import FairnessConfig
from fairall.data.people import Decided, group_index
from fairall.data.prepared import PreparedData
from fairall.display.progress import ProgressCallback
from fairall.errors import FairAllError, count
from fairall.models.learner import DECISIONS, Learner, PretrainCurves
from fairall.models.memory import Memory
from fairall.models.mixture import APART, Mixture, MixtureConfig
from fairall.models.prices import TEMPERATURE, fair_prices
from fairall.models.thresholds import ByGroup
from fairall.runtime.randomness import SeedStreams
from fairall.storage.checkpoint import Cache

FEW = 100  # people of a group: the standard error of their acceptance rate can be 5 points
GROUPS = MixtureConfig(  # classifiers of groups
    name="groups", growth=1.0, decision=DECISIONS[0], linear_c=[0.01, 1.0], evidence=1000.0, optimism=0.0
)


@dataclass(frozen=True)
class Scored(Decided):
    """Decided people with the log odds of p(ỹ = 1 | x, s) as of each kind, shape (E, B, C), float64."""

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

    Applicants with labels of their own, of whom a `Mixture` knows more than of new ones, are a second kind
    with thresholds of its own, since equal rates of both together would not be equal for new people. Those of
    new people, which are those of the policy, are chosen from everybody, estimated as if they were new. With
    few places all are new.

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
        self.n_kinds = 1 + isinstance(learner, Mixture)
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
        self.seen.add(Scored(**vars(decided), log_odds=self.of_kinds(decided.x, decided.s)))

    def choose_from_seen(self) -> None:
        """Choose the thresholds of all replicates."""
        seen = self.seen.rows()
        assert isinstance(seen, Scored)
        if not self.learner.unchanged:
            # Into the memory, of which this is a view.
            seen.log_odds.copy_(self.of_kinds(seen.x, seen.s))
        for kind, log_odds in enumerate(seen.log_odds.unbind(-1)):
            self.choose(self.columns_of(log_odds, seen), seen.s, kind)

    def columns_of(self, log_odds: Tensor, seen: Scored) -> Tensor:
        """`columns` of people seen, of given log odds (E, B)."""
        return self.columns(log_odds, seen.x)

    @torch.no_grad()
    def of_kinds(self, x: Tensor, s: Tensor) -> Tensor:
        """Log odds of people as of each kind, NaN of those who do not count, shape (E, B, C)."""
        if not isinstance(self.learner, Mixture):
            return self.log_odds(x, s, self.streams).unsqueeze(-1)
        new, own, known = self.learner.of_known(x, self.shown(s))
        count = known | (self.learner.worth > APART)
        return torch.stack([new, own.where(count, torch.nan)], -1)

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
        """As the learner explores, shape (E, N), or of known people by thresholds of their own."""
        if not isinstance(self.learner, Mixture):
            return self.learner.explore(x, self.shown(s), propensity, uniform)
        if self.share < 1.0:
            return propensity
        _, own, known = self.learner.of_known(x, self.shown(s))
        return torch.where(known, self.accepted(own, x, s, 1).to(x.dtype), propensity)

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
        return self.learner.representation(x, self.shown(s))

    @override
    def reconstruction(self, x: Tensor, s: Tensor) -> Tensor | None:
        """As the learner."""
        return self.learner.reconstruction(x, self.shown(s))


@dataclass(frozen=True)
class Grouped(Scored):
    """Scored people with q of p(S = g | x), shape (E, B, G − 1), float64."""

    members: Tensor


class GroupMixture(Mixture):
    """Classifiers of a group; people count as often as they come, so that p is that among people seen."""

    counts_once = False

    @override
    def given(self, e: int, x: Tensor, s: Tensor) -> list[np.ndarray]:
        """An indicator per category for trees too."""
        return [super().given(e, x, s)[0]] * len(self.models)


class BlindThresholds(FairThresholds):
    """Decisions by x alone, for where s may not be used to decide.

    The learner is trained with s = 0 for everybody. Among policies that depend on x alone, utility under a
    bound on the gaps between the groups' rates is maximised by accepting whoever earns more than
    ν + Σ_g λ_g·p(S = g | x), the sum times p(ỹ = 1 | x) for true positive rates, with a price λ_g of each
    group and ν of a place (`models.prices`). s is used to estimate p(S = g | x) and to choose prices, but not
    to decide.

    Logistic regressions and boosted trees, mixed, are fitted to everybody seen, accepted or not, to tell each
    group but the last from the others. What counts is p(S = g) among those who earn the same. So it is
    calibrated among the people seen, estimated as new ones, by the regression of 1[S = g] of all groups on
    these estimates q, the earnings e, all e·q and 1.

    Attributes:
        group_mixtures: of G − 1 groups.
        price: Σ_g λ_g·p(S = g | x) as a linear function of e, q, e·q and 1, then ν; of each of C kinds of
            people, float64, shape (E, C, 2·G + 1).
    """

    reads_s = False
    group_mixtures: Any  # torch has no list of one class of modules
    price: Tensor

    def __init__(self, fairness: FairnessConfig, learner: Learner, share: float = 1.0) -> None:
        super().__init__(fairness, learner, share)
        self.group_mixtures = nn.ModuleList(
            GroupMixture(GROUPS, learner.setting) for _ in range(self.n_groups - 1)
        )
        self.seen = Memory("all", fairness.window, of=Grouped)
        price = torch.zeros(len(self.threshold), self.n_kinds, 2 * self.n_groups + 1, dtype=torch.float64)
        self.register_buffer("price", price)

    @override
    def see(self, decided: Decided) -> None:
        """Learn the groups of people, and remember these and the estimates of them."""
        nothing, everybody = self.shown(decided.s), torch.ones_like(decided.s)
        group = group_index(decided.s, self.n_groups)
        for number, mixture in enumerate(self.group_mixtures):
            label = (group == number).to(nothing.dtype)
            mixture.update(Decided(decided.x, nothing, everybody, everybody > 0, label))
        x, log_odds = decided.x, self.of_kinds(decided.x, decided.s)
        self.seen.add(Grouped(**vars(decided), log_odds=log_odds, members=self.members(x)))
        if not self.group_mixtures[0].unchanged:
            seen: Any = self.seen.rows()
            seen.members.copy_(self.members(seen.x))

    @torch.no_grad()
    def members(self, x: Tensor, *, applicants: bool = True) -> Tensor:
        """Estimates q of p(S = g | x) of people x (E, B, D), shape (E, B, G − 1).

        Applicants whom these were fitted to are estimated as new ones, for what is remembered of a person
        would tell s.
        """
        nothing = torch.zeros_like(x[..., 0])
        odds = [
            mixture.of_known(x, nothing)[0] if applicants else mixture.log_odds(x, nothing, self.streams)
            for mixture in self.group_mixtures
        ]
        return torch.stack(odds, -1).sigmoid()

    @override
    def choose_from_seen(self) -> None:
        with threadpool_limits(1):  # sums do not depend on the number of threads
            super().choose_from_seen()

    @override
    def columns_of(self, log_odds: Tensor, seen: Any) -> Tensor:
        return self.with_members(log_odds, seen.x, seen.members)

    def with_members(self, log_odds: Tensor, x: Tensor, members: Tensor) -> Tensor:
        """e, q, e·q and 1, and what people count in the rates, shape (E, B, 2·G + 1)."""
        _, counted, earned = self.columns(log_odds, x).split(1, -1)
        return torch.cat([earned, members, earned * members, torch.ones_like(earned), counted], -1)

    @override
    def choose_for(self, e: int, group: Tensor, columns: Tensor, kind: int) -> None:
        inputs, counted = columns[:, :-1].numpy(), columns[:, -1:].numpy()
        of_groups = np.linalg.lstsq(inputs, np.eye(self.n_groups)[group], rcond=None)[0]
        counted = np.column_stack([counted * (inputs @ of_groups), inputs[:, -1]])
        prices = fair_prices(inputs[:, 0], counted, self.fairness.slack, self.share)
        price = np.append(of_groups @ prices[:-1], prices[-1])
        self.price[e, kind:] = torch.from_numpy(price)  # of known people too, where few are known

    def beyond(self, log_odds: Tensor, x: Tensor, kind: int = 0) -> Tensor:
        """What people of a kind, of whom known ones are applicants, earn beyond their prices, (E, B)."""
        columns = self.with_members(log_odds, x, self.members(x, applicants=kind > 0))
        price = self.price[:, kind].unsqueeze(1)
        of_groups = columns[..., -1] * (columns * price)[..., :-1].sum(-1)
        return columns[..., 0] - of_groups - price[..., -1]

    @override
    def accepted(self, log_odds: Tensor, x: Tensor, s: Tensor, kind: int = 0) -> Tensor:
        """Acceptance probability, which does not depend on s, shape (E, B)."""
        return (self.beyond(log_odds, x, kind) / TEMPERATURE).sigmoid()

    @override
    @torch.no_grad()
    def compared(self, x: Tensor, s: Tensor, streams: SeedStreams) -> tuple[Tensor, Tensor]:
        """σ of what a person earns beyond the prices, and ½, shapes (E, B)."""
        score = self.beyond(self.log_odds(x, s, streams), x).sigmoid().to(x.dtype)
        return score, torch.full_like(score, 0.5)
