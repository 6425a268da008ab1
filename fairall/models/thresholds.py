"""Thresholds per group that earn most under a bound on the gap between the groups' rates.

With amounts by person the order of a group is that of what acceptance brings per person, or per expected
label 1 where true positive rates are compared (`merit`), and the rest is the same.

Among policies that see s, the one of greatest utility under such a bound accepts a group's people from some
p(ỹ = 1 | x, s) on (Hardt, Price and Srebro 2016; Corbett-Davies et al. 2017; Menon and Williamson 2018), so
that what is left to choose is a rate per group.

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
from typing import Any

import numpy as np
import torch
from scipy.special import expit, logit
from torch import Tensor
from typing_extensions import override

from fairall.config.schema import BoundConfig, FairnessRule
from fairall.data.people import group_index
from fairall.models.learner import Learner
from fairall.runtime.randomness import SeedStreams

TIED = 1e-6  # log odds no further apart are equal: those of a net in float32 differ with the number of rows
HALVINGS = 40  # bisection steps for the price of a gap
MOST_EXPENSIVE = 64.0  # upper end of the bisection; at this price nobody of the favoured group is accepted


@dataclass(frozen=True)
class Thresholds:
    """From which log odds on people are accepted, by group.

    Attributes:
        threshold: log odds, or with amounts `merit`, float64, shape (G,).
        tied_share: acceptance probability there, float64, shape (G,).
        least_rate: least of the groups' rates among the people that the thresholds were chosen from.
    """

    threshold: Tensor
    tied_share: Tensor
    least_rate: float


def merit(log_odds: Tensor, stake: Tensor, cost: Tensor, *, true_positives: bool) -> Tensor:
    """What people with amounts are ordered by, float64: at any rate of a group the first earn most.

    The expected amount stake·(p − cost) of an acceptance, 0 where it just pays; over p where true positive
    rates are compared, since a person is p of such a rate. Stake g + l and cost l / (g + l) have the shape of
    the log odds of p(ỹ = 1 | x, s), any one.

    Examples:
        >>> p, stake, cost = torch.tensor([[0.5, 0.8], [10.0, 1.0], [0.25, 0.25]])
        >>> merit(p.logit(), stake, cost, true_positives=True)
        tensor([5.0000, 0.6875], dtype=torch.float64)
    """
    p = log_odds.double().clamp(min=-700.0).sigmoid()
    amount = stake * (p - cost)
    return amount / p if true_positives else amount


def acceptance(log_odds: Tensor, threshold: Tensor, tied_share: Tensor) -> Tensor:
    """π of people with log odds, threshold and `tied_share` of their group, float64, shapes (...)."""
    beyond = log_odds - threshold
    return torch.where(beyond.abs() <= TIED, tied_share, (beyond > 0).double())


class ByGroup(Learner):
    """A learner that decides by a threshold for each group on its estimate of p(ỹ = 1 | x, s).

    Attributes:
        bound: rates that are compared, and the slack; None without a bound.
        threshold: log odds, or with amounts `merit`, from which on a group's people are accepted, float64,
            shape (R, G), of each replicate or of one for all.
        tied_share: acceptance probability there, shape (R, G).
    """

    bound: BoundConfig | None
    threshold: Tensor
    tied_share: Tensor

    def begin(self, n_replicates: int) -> None:
        """Accept where it pays, in all groups of R replicates."""
        self.n_groups = self.setting.schema.n_groups
        pays = torch.full((n_replicates, self.n_groups), self.setting.cost, dtype=torch.float64).logit()
        pays = pays if self.setting.amounts is None else torch.zeros_like(pays)
        self.register_buffer("threshold", pays)
        self.register_buffer("tied_share", torch.ones_like(pays))

    def choose_for(self, e: int, group: Tensor, estimates: Tensor, **near: Any) -> float:
        """Choose the thresholds of replicate e from n people of `group` (n,).

        Args:
            e: number of the replicate.
            group: 0..G−1, each present, shape (n,).
            estimates: log odds, and with amounts stake and cost, shape (n, 1 or 3).
            near: further arguments of `fair_thresholds`.

        Returns:
            The least of the groups' rates.
        """
        assert self.bound is not None
        log_odds, *amounts = estimates.unbind(-1)
        stake, cost = amounts or (None, self.setting.cost)
        chosen = fair_thresholds(log_odds, group, self.n_groups, self.bound, cost, stake=stake, **near)
        self.threshold[e], self.tied_share[e] = chosen.threshold, chosen.tied_share
        return chosen.least_rate

    def estimates(self, log_odds: Tensor, x: Tensor) -> Tensor:
        """What thresholds are chosen by, shape (..., 1 or 3): the log odds, and stake and cost by person."""
        amounts = () if self.setting.amounts is None else self.setting.stake_and_cost(x)
        return torch.stack(torch.broadcast_tensors(log_odds, *amounts), -1)

    def ordered(self, log_odds: Tensor, x: Tensor) -> Tensor:
        """What is compared with `threshold`: log odds (...), or with amounts the `merit` of people x."""
        if self.setting.amounts is None:
            return log_odds
        true_positives = self.bound is not None and self.bound.rule is FairnessRule.equal_opportunity
        return merit(log_odds, *self.setting.stake_and_cost(x), true_positives=true_positives)

    def accepted(self, ordered: Tensor, s: Tensor) -> Tensor:
        """Acceptance probability of people of given `ordered` and s, shapes (...), float64."""
        return acceptance(ordered, self.of_group(self.threshold, s), self.of_group(self.tied_share, s))

    def of_group(self, values: Tensor, s: Tensor) -> Tensor:
        """The value (R, G) of each person's group, of the shape of s."""
        group = group_index(s, self.n_groups)
        return values.gather(1, group.reshape(len(values), -1)).view(s.shape)

    @torch.no_grad()
    def score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """The acceptance probability, shape (E, B); 0 or 1 but at a threshold."""
        return self.accepted(self.ordered(self.log_odds(x, s, streams), x), s).to(x.dtype)

    @override
    @torch.no_grad()
    def compared(self, x: Tensor, s: Tensor, streams: SeedStreams) -> tuple[Tensor, Tensor]:
        """σ of `ordered` and of the threshold of the group, shapes (E, B)."""
        ordered = self.ordered(self.log_odds(x, s, streams), x)
        return ordered.sigmoid().to(x.dtype), self.of_group(self.threshold, s).sigmoid().to(x.dtype)


def fair_thresholds(
    log_odds: Tensor,
    group: Tensor,
    n_groups: int,
    bound: BoundConfig,
    cost: Tensor | float,
    *,
    stake: Tensor | None = None,
    places: float = math.inf,
    before: float | None = None,
    tolerance: float = 0.0,
) -> Thresholds:
    """The thresholds that earn most of N people under a bound.

    Args:
        log_odds: of p(ỹ = 1 | x, s), shape (N,).
        group: 0..G−1, each present, shape (N,).
        n_groups: G.
        bound: the rates that are compared, and the slack.
        cost: c; with amounts l / (g + l) of each person, shape (N,).
        stake: g + l of each person, shape (N,); None without amounts. Others as for `fair_rates`.
        places: number of people who may be accepted.
        before: least rate of an earlier choice.
        tolerance: Σ (p − c) that may be lost to stay near it.
    """
    true_positives = bound.rule is FairnessRule.equal_opportunity
    log_odds = log_odds.double()
    own, groups = [group == g for g in range(n_groups)], list[Ranking]()
    if stake is None or not isinstance(cost, Tensor):
        of_all = float(cost)
        groups += (Ranking.of(log_odds[one].numpy(), true_positives=true_positives) for one in own)
    else:
        of_all = 0.0
        people = ([of[one] for of in (log_odds, stake, cost)] for one in own)
        groups += (AmountRanking.of_amounts(*of, true_positives=true_positives) for of in people)
    rates, price = fair_rates(groups, of_all, bound.slack, places=places, before=before, tolerance=tolerance)
    chosen = [one.threshold(rate, price) for one, rate in zip(groups, rates, strict=True)]
    threshold, tied_share = torch.tensor(chosen, dtype=torch.float64).T
    return Thresholds(threshold, tied_share, min(rates))


@dataclass(frozen=True)
class Ranking:
    """What a group of n people earns if those of greatest p(ỹ = 1 | x, s) are accepted first.

    Attributes:
        log_odds: of p, descending, shape (n,).
        accepted: numbers of people 0..n, shape (n + 1,).
        rate: the rate that is compared, of so many accepted people: the acceptance rate, or the expected true
            positive rate Σ p over the accepted / Σ p. Ascends from 0 to 1, shape (n + 1,).
        gain: Σ p over the accepted, shape (n + 1,).
    """

    log_odds: np.ndarray
    accepted: np.ndarray
    rate: np.ndarray
    gain: np.ndarray

    @classmethod
    def of(cls, log_odds: np.ndarray, *, true_positives: bool) -> Ranking:
        """The group of n ≥ 1 people with log odds (n,), compared by true positive or acceptance rates."""
        ordered = np.sort(log_odds)[::-1]
        accepted = np.arange(len(ordered) + 1.0)
        # No p is 0, so that the true positive rate ascends.
        gain = np.append(0.0, np.cumsum(expit(ordered.clip(-700.0))))
        return cls(ordered, accepted, (gain / gain[-1]) if true_positives else accepted / len(ordered), gain)

    def best(self, cost: float) -> float:
        """The rate of greatest Σ (p − cost), which accepts where p ≥ cost."""
        return float(self.rate[np.searchsorted(-self.log_odds, -self.at(cost), side="right")])

    def at(self, cost: float) -> float:
        """The place of a cost among the `log_odds`."""
        return float(logit(cost))

    def earned(self, rate: np.ndarray, cost: float) -> np.ndarray:
        """Greatest Σ (p − cost) at rates of any shape; concave, and linear between the values of `rate`."""
        return np.interp(rate, self.rate, self.gain - cost * self.accepted)

    def threshold(self, rate: float, cost: float) -> tuple[float, float]:
        """Log odds from which on people are accepted at a rate, and the acceptance probability there.

        At the rate `best` these are the log odds of `cost`, not those of the last person accepted: a bound
        that does not bind then changes nothing for new people either. A price of places is often within
        TIED of the first person left out, who would be accepted with it.
        """
        at_cost = self.at(cost)
        below = at_cost - self.log_odds
        if rate == self.best(cost) and not ((below > 0.0) & (below <= TIED)).any():
            return at_cost, 1.0
        return threshold_of(self.log_odds, float(np.interp(rate, self.rate, self.accepted)))


class AmountRanking(Ranking):
    """The same of people with amounts: `log_odds` holds their `merit`, `gain` what the accepted bring.

    The cost of an acceptance is therefore 0 and not c.
    """

    @classmethod
    def of_amounts(
        cls, log_odds: Tensor, stake: Tensor, cost: Tensor, *, true_positives: bool
    ) -> AmountRanking:
        """The group of n ≥ 1 people with log odds, stakes and break-even probabilities of shape (n,)."""
        merits = merit(log_odds, stake, cost, true_positives=true_positives)
        order = merits.argsort(descending=True, stable=True)
        p = log_odds.clamp(min=-700.0).sigmoid()
        counted = p if true_positives else torch.ones_like(p)
        rate, gain = (np.append(0.0, of[order].cumsum(0).numpy()) for of in (counted, counted * merits))
        return cls(merits[order].numpy(), np.arange(len(order) + 1.0), rate / rate[-1], gain)

    def at(self, cost: float) -> float:
        """The cost itself."""
        return cost


def fair_rates(
    groups: Sequence[Ranking],
    cost: float,
    slack: float,
    *,
    places: float = math.inf,
    before: float | None = None,
    tolerance: float = 0.0,
) -> tuple[list[float], float]:
    """Rates r_g of greatest Σ (p − c) over the accepted with max r − min r ≤ slack, and what they cost.

    With the least rate ℓ given, a group's rate is its best one between ℓ and ℓ + slack, since what it earns
    is concave; the sum over groups is concave and piecewise linear in ℓ, so that one of the ℓ at which some
    group's slope changes is best. Few places add a price to the cost of all; at the price at which the number
    of accepted people jumps over the places, a mixture of the two solutions is feasible and best.

    Args:
        groups: of the same kind of rates.
        cost: c in (0, 1).
        slack: ε in [0, 1], the greatest gap; 1 is no bound.
        places: number of people, at least 0, who may be accepted of all groups together.
        before: least rate ℓ of an earlier choice, to which the new one is as near as `tolerance` allows.
        tolerance: Σ (p − c) that may be lost for it.

    Returns:
        The rates in the order of the groups, and the cost plus the price of a place.

    Examples:
        >>> people = [0.9, 0.1], [0.8, 0.7, 0.6, 0.1]
        >>> groups = [Ranking.of(logit(np.array(p)), true_positives=False) for p in people]
        >>> fair_rates(groups, cost=0.5, slack=0.0)
        ([0.5, 0.5], 0.5)
        >>> fair_rates(groups, cost=0.5, slack=0.25)
        ([0.5, 0.75], 0.5)
    """

    def at(cost: float) -> list[float]:
        own = [group.best(cost) for group in groups]
        if max(own) - min(own) <= slack:
            return own
        bends = np.concatenate([group.rate - shift for group in groups for shift in (0.0, slack)])
        least = np.unique(np.append(bends[(bends >= 0.0) & (bends <= 1.0 - slack)], 1.0 - slack))
        earned = sum(
            group.earned(np.clip(best, least, least + slack), cost)
            for group, best in zip(groups, own, strict=True)
        )
        assert isinstance(earned, np.ndarray)
        chosen = least[earned.argmax()]
        if before is not None:
            near = least[earned >= earned.max() - tolerance]
            chosen = min(max(before, near[0]), near[-1])
        return [float(min(max(best, chosen), chosen + slack)) for best in own]

    def number(rates: list[float]) -> float:
        return sum(float(np.interp(r, g.rate, g.accepted)) for g, r in zip(groups, rates, strict=True))

    rates = at(cost)
    if number(rates) <= places:
        return rates, cost
    low, high = cost, 1.0
    below = [0.0] * len(groups)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        found = at(middle)
        if number(found) > places:
            low, rates = middle, found
        else:
            high, below = middle, found
    over, under = number(rates), number(below)
    share = (places - under) / (over - under)
    return [share * r + (1 - share) * b for r, b in zip(rates, below, strict=True)], high


def price_of_gap(gap: Callable[[float], float], slack: float) -> tuple[Tensor, float]:
    """Prices of a gap between two groups' rates that bring it within the slack.

    Args:
        gap: of the policy with a price, which decreases in it.
        slack: ε in [0, 1].

    Returns:
        Two prices, shape (2,), float64, and the probability of the second that makes the expected gap that of
        the slack; both are 0 where there is no larger gap without a price.

    Examples:
        >>> prices, second = price_of_gap(lambda price: 0.3 if price < 1 else -0.1, slack=0.1)
        >>> [round(price, 6) for price in prices.tolist()], round(second, 6)
        ([1.0, 1.0], 0.5)
    """
    free = gap(0.0)
    if abs(free) <= slack:
        return torch.zeros(2, dtype=torch.float64), 0.0
    sign = math.copysign(1.0, free)
    low, high = 0.0, 1.0
    while sign * gap(sign * high) > slack and high < MOST_EXPENSIVE:
        low, high = high, 2.0 * high
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if sign * gap(sign * middle) > slack else (low, middle)
    over, under = sign * gap(sign * low), sign * gap(sign * high)
    prices = torch.tensor([sign * low, sign * high], dtype=torch.float64)
    return prices, min(1.0, (over - slack) / (over - under)) if over > under else 1.0


def threshold_of(score: np.ndarray, accepted: float) -> tuple[float, float]:
    """Least accepted score, and acceptance probability at that score, for so many accepted of n people.

    Args:
        score: descending, shape (n,).
        accepted: in [0, n], not necessarily whole.

    Examples:
        >>> threshold_of(np.array([2.0, 1.0, 1.0, 1.0]), 2.0)
        (1.0, 0.3333333333333333)
    """
    # A multiple of 1/n times n may exceed a whole number by rounding.
    threshold = float(score[max(math.ceil(accepted - TIED), 1) - 1])
    beyond = score - threshold
    surely, tied = int((beyond > TIED).sum()), int((np.abs(beyond) <= TIED).sum())
    return threshold, min(max((accepted - surely) / tied, 0.0), 1.0)
