"""Thresholds per group that earn most under a bound on the gap between the groups' rates.

Among policies that see s, the one of greatest utility under such a bound accepts a group's people from some
p(ỹ = 1 | x, s) on (Hardt, Price and Srebro 2016; Corbett-Davies et al. 2017; Menon and Williamson 2018), so
that what is left to choose is a rate per group. With amounts by person the order of a group is that of what
acceptance brings per person, or per expected label 1 where true positive rates are compared.

References:
    Hardt, M., Price, E. and Srebro, N. (2016). Equality of opportunity in supervised learning. NeurIPS.
    Corbett-Davies, S., Pierson, E., Feller, A., Goel, S. and Huq, A. (2017). Algorithmic decision making and
    the cost of fairness. KDD.
    Menon, A. K. and Williamson, R. C. (2018). The cost of fairness in binary classification. FAT*.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from scipy.special import logit
from torch import Tensor
from typing_extensions import override

from fairall.config.schema import BoundConfig, FairnessRule, ModelConfig
from fairall.data.people import group_index
from fairall.models.learner import Learner, Setting
from fairall.runtime.randomness import SeedStreams

TIED = 1e-6  # log odds no further apart are equal: those of a net in float32 differ with the number of rows
HALVINGS = 40  # bisection steps for a price
LEAST_LOG_ODDS = -700.0  # so that no p is 0, and true positive rates ascend
FEWEST = 20  # people of a kind with thresholds of their own


class ByGroup(Learner):
    """A learner that decides by a threshold for each group on its estimate of p(ỹ = 1 | x, s).

    At first it accepts where it pays, in all groups.

    Args:
        config: of the method.
        setting: the problem.
        bound: rates that are compared, and the slack; None without a bound.
        n_replicates: R, of the thresholds: one for each seed, or 1 for all.

    Attributes:
        share: places per applicant.
        tolerance: utility per person that thresholds near those before may lose.
        n_kinds: C, of people who have thresholds of their own, each with equal rates of the groups.
        threshold: `ordered` from which on people of a kind and group are accepted, float64, shape (R, C, G).
        tied_share: acceptance probability there, shape (R, C, G).
        least_rate: least of the groups' rates at the last choice, shape (R, C); NaN before the first.
    """

    n_kinds: int = 1
    share: float = 1.0
    tolerance: float = 0.0
    threshold: Tensor
    tied_share: Tensor
    least_rate: Tensor

    def __init__(
        self, config: ModelConfig, setting: Setting, bound: BoundConfig | None, n_replicates: int
    ) -> None:
        super().__init__(config, setting)
        self.bound = bound
        self.n_groups = setting.schema.n_groups
        # From where on p − c is not negative.
        pays = float(logit(setting.cost)) if setting.amounts is None else 0.0
        threshold = torch.full((n_replicates, self.n_kinds, self.n_groups), pays, dtype=torch.float64)
        self.register_buffer("threshold", threshold)
        self.register_buffer("tied_share", torch.ones_like(threshold))
        self.register_buffer("least_rate", threshold[..., 0] * torch.nan)

    def columns(self, log_odds: Tensor, x: Tensor) -> Tensor:
        """What thresholds are chosen by, of people with log odds (...) and features x (..., D).

        Returns:
            What a group's people are accepted in the order of, what they count in the rates, p in true
            positive rates and else 1, and what they earn, stake·(p − cost), float64, shape (..., 3). The
            order is that of what they earn per count, the same as that of the log odds if there are no
            amounts by person.
        """
        p = log_odds.double().clamp(min=LEAST_LOG_ODDS).sigmoid()
        stake, cost = self.setting.stake_and_cost(x)
        true_positives = self.bound is not None and self.bound.rule is FairnessRule.equal_opportunity
        counted, earned = p if true_positives else torch.ones_like(p), stake * (p - cost)
        ordered = log_odds.double() if self.setting.amounts is None else earned / counted
        return torch.stack([ordered, counted, earned], -1)

    @torch.no_grad()
    def choose(self, columns: Tensor, s: Tensor, kind: int = 0) -> None:
        """Choose the thresholds of each replicate for a kind of people, and those after it.

        Replicates in which a group has nobody, or that have diverged, keep those that they have. So do all
        kinds but the first with fewer than `FEWEST` people.

        Args:
            columns: of people, shape (R, N, 3); the first is NaN of those who do not count.
            s: sensitive attribute, shape (R, N).
            kind: number of the kind.
        """
        groups = group_index(s, self.n_groups)
        for e, counts in enumerate(~columns[..., 0].isnan()):
            group, own = groups[e][counts], columns[e][counts]
            known = group.bincount(minlength=self.n_groups).all() and len(group) >= kind * FEWEST
            if known and own.isfinite().all():
                self.choose_for(e, group, own, kind)

    def choose_for(self, e: int, group: Tensor, columns: Tensor, kind: int) -> None:
        """Choose the thresholds of replicate e from n people.

        Args:
            e: number of the replicate.
            group: 0..G−1, each present, shape (n,).
            columns: of the people, shape (n, 3).
            kind: number of the kind of people.
        """
        assert self.bound is not None
        groups = [Ranking.of(columns[group == g].numpy()) for g in range(self.n_groups)]
        rates, price = fair_rates(
            groups,
            self.bound.slack,
            places=self.share * len(group),
            before=float(self.least_rate[e, kind]),
            tolerance=self.tolerance * len(group),
        )
        self.least_rate[e, kind] = rates.min()
        pays = price if self.setting.amounts else float(logit(min(self.setting.cost + price, 1.0)))
        for g, (one, rate) in enumerate(zip(groups, rates, strict=True)):
            place = e, slice(kind, None), g
            self.threshold[place], self.tied_share[place] = one.threshold(rate, pays, price)

    def ordered(self, log_odds: Tensor, x: Tensor) -> Tensor:
        """What is compared with `threshold`, of people with log odds (...) and features x, shape (...)."""
        return self.columns(log_odds, x)[..., 0]

    def accepted(self, log_odds: Tensor, x: Tensor, s: Tensor, kind: int = 0) -> Tensor:
        """Acceptance probability of people of a kind, of given log odds (...), x and s (...), float64."""
        beyond = self.ordered(log_odds, x) - self.of_group(self.threshold, s, kind)
        tied = self.of_group(self.tied_share, s, kind)
        return torch.where(beyond.abs() <= TIED, tied, (beyond > 0).double())

    def of_group(self, values: Tensor, s: Tensor, kind: int = 0) -> Tensor:
        """The value (R, C, G) of each person's group, of people of a kind, of the shape of s."""
        group = group_index(s, self.n_groups)
        return values[:, kind].gather(1, group.reshape(len(values), -1)).view(s.shape)

    @torch.no_grad()
    def score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """The acceptance probability, shape (E, B); 0 or 1 but at a threshold."""
        return self.accepted(self.log_odds(x, s, streams), x, s).to(x.dtype)

    @override
    @torch.no_grad()
    def compared(self, x: Tensor, s: Tensor, streams: SeedStreams) -> tuple[Tensor, Tensor]:
        """σ of `ordered` and of the threshold of the group, shapes (E, B)."""
        ordered = self.ordered(self.log_odds(x, s, streams), x)
        return ordered.sigmoid().to(x.dtype), self.of_group(self.threshold, s).sigmoid().to(x.dtype)


@dataclass(frozen=True)
class Ranking:
    """What a group of n ≥ 1 people earns if they are accepted in their order.

    Attributes:
        ordered: what they are accepted in the order of, descending, shape (n,).
        rate: the rate that is compared, of 0..n accepted people; ascends from 0 to 1, shape (n + 1,).
        earned: Σ over the accepted; concave in the rate, shape (n + 1,).
    """

    ordered: np.ndarray
    rate: np.ndarray
    earned: np.ndarray

    @classmethod
    def of(cls, columns: np.ndarray) -> Ranking:
        """The group of people with `ByGroup.columns` (n, 3)."""
        first = columns[np.argsort(-columns[:, 0], kind="stable")]
        counted, earned = np.cumsum(np.pad(first[:, 1:], [(1, 0), (0, 0)]), axis=0).T
        return cls(first[:, 0], counted / counted[-1], earned)

    def number(self, rate: float) -> float:
        """How many people are accepted at a rate."""
        return float(np.interp(rate, self.rate, np.arange(len(self.rate))))

    def net(self, price: float) -> np.ndarray:
        """What 0..n people earn if each pays a price, shape (n + 1,)."""
        return self.earned - price * np.arange(len(self.rate))

    def best(self, price: float) -> float:
        """The greatest of the rates at which most is earned if each accepted person pays a price."""
        return float(self.rate[::-1][self.net(price)[::-1].argmax()])

    def threshold(self, rate: float, pays: float, price: float = 0.0) -> tuple[float, float]:
        """Where in the order people are accepted from at a rate, and the acceptance probability there.

        At the best rate at a price that is where it `pays`, not the place of the last person accepted: a
        bound that does not bind then changes nothing for new people either.
        """
        below = pays - self.ordered
        if rate == self.best(price) and not ((below > 0.0) & (below <= TIED)).any():
            return pays, 1.0
        accepted = self.number(rate)
        # A multiple of 1/n times n may exceed a whole number by rounding.
        threshold = self.ordered[max(math.ceil(accepted - TIED), 1) - 1]
        beyond = self.ordered - threshold
        surely, tied = (beyond > TIED).sum(), (np.abs(beyond) <= TIED).sum()
        return float(threshold), float(np.clip((accepted - surely) / tied, 0.0, 1.0))


def fair_rates(
    groups: Sequence[Ranking],
    slack: float,
    *,
    places: float = math.inf,
    before: float = math.nan,
    tolerance: float = 0.0,
) -> tuple[np.ndarray, float]:
    """Rates r_g at which most is earned with max r − min r ≤ slack, and the price of a place.

    With the least rate ℓ given, a group's rate is its best one between ℓ and ℓ + slack, since what it earns
    is concave; the sum over groups is concave and piecewise linear in ℓ, so that one of the ℓ at which some
    group's slope changes is best. With few places each accepted person pays a price; at the price at which
    the number of accepted people jumps over the places, a mixture of the two solutions is feasible and best.

    Args:
        groups: of the same kind of rates.
        slack: ε in [0, 1], the greatest gap; 1 is no bound.
        places: number of people, at least 0, who may be accepted of all groups together.
        before: least rate ℓ of an earlier choice, to which the new one is as near as `tolerance` allows; NaN
            for none.
        tolerance: what may be lost for it.

    Returns:
        The rates, shape (G,), and the price, 0 where there are places enough.

    Examples:
        >>> people = [0.9, 0.1], [0.8, 0.7, 0.6, 0.1]
        >>> groups = [Ranking.of(np.array([[logit(p), 1.0, p - 0.5] for p in own])) for own in people]
        >>> fair_rates(groups, slack=0.0)
        (array([0.5, 0.5]), 0.0)
        >>> fair_rates(groups, slack=0.25)
        (array([0.5 , 0.75]), 0.0)
    """
    bends = np.concatenate([group.rate - shift for group in groups for shift in (0.0, slack)])
    least = np.unique(bends.clip(0.0, 1.0 - slack))

    @cache
    def at(price: float) -> np.ndarray:
        own = np.array([group.best(price) for group in groups])
        if np.ptp(own) <= slack:
            return own
        both = zip(groups, own, strict=True)
        earned = sum(
            np.interp(best.clip(least, least + slack), group.rate, group.net(price)) for group, best in both
        )
        near = least[earned >= np.max(earned) - tolerance]
        chosen = least[np.argmax(earned)] if math.isnan(before) else np.clip(before, near[0], near[-1])
        return own.clip(chosen, chosen + slack)

    def number(price: float) -> float:
        return sum(group.number(rate) for group, rate in zip(groups, at(price), strict=True))

    low, high, share = crossing(number, places)
    return at(high) + share * (at(low) - at(high)), high


def crossing(quantity: Callable[[float], float], limit: float) -> tuple[float, float, float]:
    """Where a quantity that falls with a price passes a limit.

    Args:
        quantity: of a price, at last within the limit, as the number of people who earn as much is.
        limit: the greatest allowed.

    Returns:
        Two prices next to each other, and the probability of the first at which the expected quantity is the
        limit. Both prices are 0 where the quantity is within the limit without a price.

    Examples:
        >>> low, high, share = crossing(lambda price: 3.0 if price < 5 else 1.0, limit=2.0)
        >>> round(low, 6), round(high, 6), round(share, 6)
        (5.0, 5.0, 0.5)
    """
    if quantity(0.0) <= limit:
        return 0.0, 0.0, 1.0
    low, high = 0.0, 1.0
    while quantity(high) > limit:  # with amounts a person can earn more than 1
        low, high = high, 2.0 * high
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if quantity(middle) > limit else (low, middle)
    return low, high, float(np.interp(limit, [quantity(high), quantity(low)], [0.0, 1.0]))
