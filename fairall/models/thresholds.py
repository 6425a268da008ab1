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
from collections.abc import Callable
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
MOST_EXPENSIVE = 64.0  # price of a gap, at which nobody of the favoured group is accepted
LEAST_LOG_ODDS = -700.0  # so that no p is 0, and true positive rates ascend


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
        threshold: `ordered` from which on a group's people are accepted, float64, shape (R, G).
        tied_share: acceptance probability there, shape (R, G).
        least_rate: least of the groups' rates at the last choice, shape (R,); NaN before the first.
    """

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
        self.pays = float(logit(setting.cost)) if setting.amounts is None else 0.0
        threshold = torch.full((n_replicates, self.n_groups), self.pays, dtype=torch.float64)
        self.register_buffer("threshold", threshold)
        self.register_buffer("tied_share", torch.ones_like(threshold))
        self.register_buffer("least_rate", threshold[:, 0] * torch.nan)

    def counted(self, p: Tensor) -> Tensor:
        """What people of probability p (...) count in the rates: p in true positive rates, else 1."""
        true_positives = self.bound is not None and self.bound.rule is FairnessRule.equal_opportunity
        return p if true_positives else torch.ones_like(p)

    def columns(self, log_odds: Tensor, x: Tensor) -> Tensor:
        """What thresholds are chosen by, of people with log odds (...) and features x (..., D).

        Returns:
            What a group's people are accepted in the order of, what they count in the rates, and what they
            earn, stake·(p − cost), float64, shape (..., 3). The order is that of what they earn per count,
            the same as that of the log odds if there are no amounts by person.
        """
        p = log_odds.double().clamp(min=LEAST_LOG_ODDS).sigmoid()
        stake, cost = self.setting.stake_and_cost(x)
        counted = self.counted(p)
        earned = stake * (p - cost)
        ordered = log_odds.double() if self.setting.amounts is None else earned / counted
        return torch.stack([ordered, counted, earned], -1)

    def choose(self, log_odds: Tensor, x: Tensor, s: Tensor) -> None:
        """Choose the thresholds of each replicate from people of given log odds.

        Replicates in which a group has nobody, or that have diverged, keep those that they have.

        Args:
            log_odds: shape (R, N).
            x: their features, shape (R, N, D).
            s: sensitive attribute, shape (R, N).
        """
        columns = self.columns(log_odds, x)
        groups = group_index(s, self.n_groups)
        for e, (group, own) in enumerate(zip(groups, columns, strict=True)):
            if group.bincount(minlength=self.n_groups).all() and own.isfinite().all():
                self.choose_for(e, group, own)

    def choose_for(self, e: int, group: Tensor, columns: Tensor) -> None:
        """Choose the thresholds of replicate e from n people, by the rates r_g at which most is earned.

        With the least rate ℓ given, a group's rate under max r − min r ≤ slack is its best one between ℓ and
        ℓ + slack, since what it earns is concave; the sum over groups is concave and piecewise linear in ℓ,
        so that one of the ℓ at which some group's slope changes is best. ℓ is as near to that of the last
        choice as `tolerance` allows. With few places each accepted person pays a price; at the price at which
        the number of accepted people jumps over the places, a mixture of the two solutions is feasible and
        best.

        Args:
            e: number of the replicate.
            group: 0..G−1, each present, shape (n,).
            columns: of the people, shape (n, 3).
        """
        assert self.bound is not None
        slack = self.bound.slack
        before = float(self.least_rate[e])
        n = len(group)
        groups = [Ranking(columns[group == g].numpy()) for g in range(self.n_groups)]
        bends = np.concatenate([one.rate - shift for one in groups for shift in (0.0, slack)])
        least = np.unique(bends.clip(0.0, 1.0 - slack))

        @cache
        def at(price: float) -> np.ndarray:
            """The rates r_g, shape (G,)."""
            own = np.array([one.best(price) for one in groups])
            if np.ptp(own) <= slack:
                return own
            earned = sum(
                np.interp(best.clip(least, least + slack), one.rate, one.net(price))
                for one, best in zip(groups, own, strict=True)
            )
            near = least[earned >= np.max(earned) - self.tolerance * n]
            chosen = least[np.argmax(earned)] if math.isnan(before) else np.clip(before, near[0], near[-1])
            return own.clip(chosen, chosen + slack)

        def number(price: float) -> float:
            return sum(one.number(rate) for one, rate in zip(groups, at(price), strict=True))

        low, high, share = crossing(number, self.share * n)
        rates = at(high) + share * (at(low) - at(high))
        self.least_rate[e] = rates.min()
        for g, (one, rate) in enumerate(zip(groups, rates, strict=True)):
            self.threshold[e, g], self.tied_share[e, g] = one.threshold(rate, self.pays)

    def ordered(self, log_odds: Tensor, x: Tensor) -> Tensor:
        """What is compared with `threshold`, of people with log odds (...) and features x, shape (...)."""
        return self.columns(log_odds, x)[..., 0]

    def accepted(self, ordered: Tensor, s: Tensor) -> Tensor:
        """Acceptance probability of people of given `ordered` and s, shapes (...), float64."""
        beyond = ordered - self.of_group(self.threshold, s)
        return torch.where(beyond.abs() <= TIED, self.of_group(self.tied_share, s), (beyond > 0).double())

    def of_group(self, values: Tensor, s: Tensor) -> Tensor:
        """The value (R, G) of each person's group, of the shape of s."""
        return values.gather(1, group_index(s, self.n_groups).reshape(len(values), -1)).view(s.shape)

    def score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """The acceptance probability, shape (E, B); 0 or 1 but at a threshold."""
        return self.accepted(self.ordered(self.log_odds(x, s, streams), x), s).to(x.dtype)

    @override
    def compared(self, x: Tensor, s: Tensor, streams: SeedStreams) -> tuple[Tensor, Tensor]:
        """σ of `ordered` and of the threshold of the group, shapes (E, B)."""
        ordered = self.ordered(self.log_odds(x, s, streams), x)
        return ordered.sigmoid().to(x.dtype), self.of_group(self.threshold, s).sigmoid().to(x.dtype)


class Ranking:
    """What a group of n ≥ 1 people earns if they are accepted in their order.

    Args:
        columns: of `ByGroup.columns`, shape (n, 3).

    Attributes:
        ordered: what they are accepted in the order of, descending, shape (n,).
        accepted: 0..n, shape (n + 1,).
        rate: the rate that is compared, of so many accepted people; ascends from 0 to 1, shape (n + 1,).
        earned: Σ over the accepted; concave in the rate, shape (n + 1,).
    """

    def __init__(self, columns: np.ndarray) -> None:
        first = columns[np.argsort(-columns[:, 0], kind="stable")]
        counted, self.earned = np.cumsum(np.pad(first[:, 1:], [(1, 0), (0, 0)]), axis=0).T
        self.ordered = first[:, 0]
        self.rate = counted / counted[-1]
        self.accepted = np.arange(len(counted))

    def number(self, rate: float) -> float:
        """How many people are accepted at a rate."""
        return float(np.interp(rate, self.rate, self.accepted))

    def net(self, price: float) -> np.ndarray:
        """What 0..n people earn if each pays a price, shape (n + 1,)."""
        return self.earned - price * self.accepted

    def best(self, price: float) -> float:
        """The greatest of the rates at which most is earned if each accepted person pays a price."""
        return float(self.rate[::-1][self.net(price)[::-1].argmax()])

    def threshold(self, rate: float, pays: float) -> tuple[float, float]:
        """Where in the order people are accepted from at a rate, and the acceptance probability there.

        At the best rate that is where it `pays`, not the place of the last person accepted: a bound that does
        not bind then changes nothing for new people either.
        """
        below = pays - self.ordered
        if rate == self.best(0.0) and not ((below > 0.0) & (below <= TIED)).any():
            return pays, 1.0
        accepted = self.number(rate)
        # A multiple of 1/n times n may exceed a whole number by rounding.
        threshold = self.ordered[max(math.ceil(accepted - TIED), 1) - 1]
        beyond = self.ordered - threshold
        surely = (beyond > TIED).sum()
        tied = (np.abs(beyond) <= TIED).sum()
        return float(threshold), float(np.clip((accepted - surely) / tied, 0.0, 1.0))


def crossing(quantity: Callable[[float], float], limit: float) -> tuple[float, float, float]:
    """Where a quantity that falls with a price passes a limit.

    Args:
        quantity: of a price.
        limit: the greatest allowed.

    Returns:
        Two prices next to each other, and the probability of the first at which the expected quantity is the
        limit. Both prices are 0 where the quantity is within the limit without a price.

    Examples:
        >>> low, high, share = crossing(lambda price: 0.3 if price < 3 else -0.1, limit=0.1)
        >>> round(low, 6), round(high, 6), round(share, 6)
        (3.0, 3.0, 0.5)
    """
    if quantity(0.0) <= limit:
        return 0.0, 0.0, 1.0
    low = 0.0
    high = 1.0
    while quantity(high) > limit and high < MOST_EXPENSIVE:
        low, high = high, 2.0 * high
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if quantity(middle) > limit else (low, middle)
    return low, high, float(np.interp(limit, [quantity(high), quantity(low)], [0.0, 1.0]))
