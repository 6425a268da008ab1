"""Few places: at most C of a time step's applicants are accepted."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import Enum

import torch
from omegaconf import MISSING
from torch import Tensor

from fairall.config.checks import (
    at_least,
    limited,
    number,
    positive_share,
    require,
)
from fairall.data.people import Decisions, People
from fairall.errors import count
from fairall.worlds.measures import utility_per_place
from fairall.worlds.part import Part, PartConfig, WorldSetting

CHUNK = 2**22  # complex numbers at once
ROUNDING = 1e-9
LEAST = 0.02  # propensity below which a decision says next to nothing: a weight of more than 50
MANY = 0.1  # share of the applicants who are left with less, of which a run warns


PlacesRule = Enum("PlacesRule", ["lottery", "top"])


@dataclass
class CapacityConfig(PartConfig):
    """Limit of the acceptances per time step, as a share of the applicants or a number; none by default."""

    causes = ("share", "number")
    share: float | None = positive_share()
    number: int | None = at_least(1)
    rule: PlacesRule = MISSING

    def validate(self) -> None:
        """Raise FairAllError for two limits at once."""
        allowed = (
            f"null beside world.capacity.share={self.share}; for a number instead add "
            "world.capacity.share=null"
        )
        require(None in (self.share, self.number), "world.capacity.number", self.number, allowed)


class Capacity(Part):
    """Limits acceptances to the places; a rule chooses among the selected people.

    The policy wants a person with probability π, independently of the others. With the rule `lottery` places
    are drawn among the people it wants. With `top` they go to the greatest π, of equal ones to the greatest
    `Learner.margin`, and are drawn among people who are equal in both. The propensity of a decision is the
    probability of both, to be wanted and to find a place, given π and margin of all applicants:

        lottery: π_i E[min(1, C / (1 + Σ_{j≠i} B_j))],    top: π_i P(Σ_{j before i} B_j < C),

    with independent B_j ~ Bernoulli(π_j), and the mean of the second over the orders of equal people, so that
    1/propensity weights are unbiased. They are exact, by the discrete Fourier transform of the Poisson
    binomial distribution (Hong 2013). Where π is 0 or 1, `top` leaves nothing else to chance than the order
    of equal people.

    A counterfactual is decided on with the others as they are.

    References:
        Hong, Y. (2013). On computing the distribution function for the Poisson binomial distribution.
        Computational Statistics & Data Analysis 59.
    """

    config_type = CapacityConfig
    two_groups = False
    purpose = "places"
    kept = ("counts",)
    measures = (utility_per_place,)
    config: CapacityConfig
    places: int

    def __init__(self, config: CapacityConfig, setting: WorldSetting) -> None:
        super().__init__(config, setting)
        key = "number" if config.share is None else "share"
        self.places = n_places(getattr(config, key), setting.applicants, f"world.capacity.{key}")
        self.values = {"places": torch.full((len(setting.seeds),), float(self.places))}
        self.by_rank = config.rule is PlacesRule.top  # which needs margins
        # Applicants to whom the policy gave at least `LEAST`, those of them whose propensity is now less, and
        # those who shared places with equal ones by lot.
        self.counts = torch.zeros(3, dtype=torch.long)

    def admit(self, people: People, wanted: Decisions, time_step: int) -> Decisions:
        """The decisions for which there are places, with their inclusion probabilities."""
        streams = self.streams.copy() if self.setting.fixed_luck else self.streams
        lot = streams.uniform(len(people))
        pi = wanted.propensity
        wants = wanted.accepted
        other = wanted.counterfactual
        if self.by_rank:
            rank, other_rank = ranks_of(wanted, other or wanted)
            inclusion = top(pi, self.places, rank)
        else:
            rank = other_rank = torch.zeros_like(pi)
            inclusion = lottery(pi, self.places)
        value = rank.double() + lot
        had = pi >= LEAST
        # Who has a place before all equal people and none after them shares it by lot.
        first, last = (finds_place(rank + of, wants, rank, self.places) for of in (0.5, -0.5))
        self.counts += torch.stack([had, had & (inclusion < LEAST), wants & first & ~last]).sum((1, 2))
        accepted = wants & finds_place(value, wants, value, self.places)
        if other is not None:
            found = finds_place(other_rank.double() + lot, wants, value, self.places)
            other = replace(other, accepted=other.accepted & found)
        return replace(wanted, propensity=inclusion, accepted=accepted, counterfactual=other)

    def notes(self, *, drawn: bool) -> list[str]:
        """A note where propensities are 0 and 1, and one where equal people have shared places."""
        shared = int(self.counts[2])
        notes = {
            "world.capacity.rule=top with a deterministic policy leaves nothing to chance but places "
            "that equal people share: other propensities are 0 and 1, and weighting by 1/propensity "
            "corrects for nothing": not drawn,
            f"world.capacity.rule=top: {count(shared, 'applicant')} of all seeds shared places "
            "with others of equal acceptance probability and equal log odds above the threshold: who of "
            "them was accepted was drawn, and propensities count that": shared > 0,
        }
        return [note for note, holds in notes.items() if self.by_rank and holds]

    def warnings(self, *, drawn: bool) -> list[str]:
        """A warning if many applicants have almost no chance of a place; `notes` has the case of none."""
        had, lost, _ = self.counts.tolist()
        if not drawn or lost <= MANY * had:
            return []
        return [
            f"world.capacity.rule={self.config.rule.name}: {lost / had:.0%} of the applicants whom the policy"
            f" wants with a probability of at least {LEAST:g} are accepted with one below {LEAST:g}, too"
            " small for weights of 1/propensity and for a log of the decisions;"
            " world.capacity.rule=lottery leaves everybody a chance"
        ]


def finds_place(value: Tensor, wants: Tensor, others: Tensor, places: int) -> Tensor:
    """Mask of the people of a given value who find one of some places; all shapes (E, N).

    Places go to the greatest values, of equal ones by position. Rivals are the applicants at other positions
    whom the policy `wants`, with values `others`.
    """
    position = torch.arange(value.shape[1])
    mine = value.unsqueeze(2)
    rival = others.unsqueeze(1)
    before = (rival > mine) | ((rival == mine) & (position < position.unsqueeze(1)))
    before &= wants.unsqueeze(1) & (position != position.unsqueeze(1))
    return before.sum(2) < places


def n_places(limit: object, n: int, key: str) -> int:
    """Places for n people, at most n.

    Args:
        limit: a number of places, or a share of the people: a float of at most 1, so that 1.0 is everybody
            and 1 is one place. Other numbers count as the int or float that they equal.
        n: how many people.
        key: name of `limit` in messages.

    Raises:
        FairAllError: where `limit` is neither, or less than one place.
    """
    allowed = "a whole number of at least 1, or a share above 0 and at most 1"
    possible = limited(allowed, lambda equal: equal > 0 and (equal <= 1 or equal % 1 == 0))
    equal = number(key, limit, possible)
    is_share = isinstance(equal, float) and equal <= 1
    places = math.floor(equal * n + ROUNDING) if is_share else int(equal)
    require(places >= 1, key, equal, f"a place for one of {n} people at least")
    return min(places, n)


def lottery(pi: Tensor, places: int) -> Tensor:
    """π_i E[min(1, C / (1 + Σ_{j≠i} B_j))], B_j ~ Bernoulli(π_j): selected, and drawn for one of C places.

    π and the result have shape (E, N).

    Examples:
        >>> lottery(torch.tensor([[1.0, 1.0, 0.5]]), 1)
        tensor([[0.4167, 0.4167, 0.1667]])
    """
    n = pi.shape[1]
    k = n + 1 + n % 2  # odd, so that no characteristic function is 0
    turn = torch.exp(torch.arange(k, dtype=torch.float64) * (2j * math.pi / k)) - 1.0
    chance = torch.clamp(places / torch.arange(1, k + 1, dtype=torch.float64), max=1.0)
    transformed = torch.fft.fft(chance) / k  # Σ_s g(s) ω^(−ms), m = 0..K−1
    shares = []
    for probabilities in pi.double():
        everybody = transformed
        parts = probabilities.unsqueeze(1).split(max(1, CHUNK // k))
        for part in parts:
            everybody = everybody * (1.0 + part * turn).prod(0)
        shares.append(torch.cat([(everybody / (1.0 + part * turn)).sum(1).real for part in parts]))
    return (pi * torch.stack(shares).clamp(0.0, 1.0)).to(pi.dtype)


def top(pi: Tensor, places: int, rank: Tensor) -> Tensor:
    """π_i P(Σ_{j before i} B_j < C): selected, and among the C selected of greatest rank; equal ones by lot.

    Args:
        pi: of all people, shape (E, N); people of equal rank have the same.
        places: C.
        rank: orders people, shape (E, N), from 0.

    Returns:
        Shape (E, N). People of equal rank are exchangeable, so that each has the mean of what they would have
        in any order.

    Examples:
        >>> pi = torch.tensor([[0.5, 1.0, 0.25, 0.5]])
        >>> top(pi, 1, rank=torch.tensor([[2, 1, 0, 2]]))
        tensor([[0.3750, 0.2500, 0.0000, 0.3750]])
    """
    order = rank.argsort(dim=1, descending=True, stable=True)
    p = pi.double().gather(1, order)
    if ((p == 0.0) | (p == 1.0)).all():
        free = (p.cumsum(1) - p < places).double()
    else:
        # P(so many places are taken), C or more last.
        taken = torch.zeros(len(pi), places + 1, dtype=torch.float64)
        taken[:, 0] = 1.0
        fewer = taken[:, :-1]  # the same memory
        chances = []
        for own in p.T:
            chances.append(fewer.sum(1))
            moved = fewer * own.unsqueeze(1)
            fewer -= moved
            taken[:, 1:] += moved
        free = torch.stack(chances, dim=1)
    share = (pi * free.gather(1, order.argsort(dim=1))).clamp(0.0, 1.0)
    means = share.new_zeros(len(pi), int(rank.max()) + 1)
    means = means.scatter_reduce(1, rank, share, "mean", include_self=False)
    return means.gather(1, rank).to(pi.dtype)


def ranks(*keys: Tensor) -> Tensor:
    """Numbers from 0 that order people by the first key, equal ones by the next; equal where all keys are.

    Keys and the result have shape (E, N).

    Examples:
        >>> ranks(torch.tensor([[1.0, 0.0, 1.0, 1.0]]), torch.tensor([[2.0, 3.0, 1.0, 2.0]]))
        tensor([[2, 0, 1, 2]])
    """
    people = torch.stack(keys, dim=-1)
    return torch.stack([torch.unique(replicate, dim=0, return_inverse=True)[1] for replicate in people])


def ranks_of(*wanted: Decisions) -> tuple[Tensor, ...]:
    """Ranks by π, then margin, where it is known, of the people of all `wanted`; shapes (E, N)."""
    keys = [(of.propensity, of.propensity if of.margin is None else of.margin) for of in wanted]
    return ranks(*(torch.cat(key, dim=1) for key in zip(*keys, strict=True))).chunk(len(wanted), dim=1)
