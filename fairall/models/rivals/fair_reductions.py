"""A contextual bandit over fair policies: explores by the coordinate descent of ILOVETOCONBANDITS.

References:
    Bechavod, Ligett, Roth, Waggoner, Wu: Equal opportunity in online classification with partial feedback,
    NeurIPS 2019, arXiv 1902.02242.
    Agarwal, Beygelzimer, Dudík, Langford, Wallach: A reductions approach to fair classification, ICML 2018.
    Agarwal, Hsu, Kale, Langford, Li, Schapire: Taming the monster: a fast and simple algorithm for contextual
    bandits, ICML 2014.
    Böhning, Lindsay: Monotonicity of quadratic-approximation algorithms, Annals of the Institute of
    Statistical Mathematics 40, 1988.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from fairall.config.checks import at_least, between, limited, not_negative, one_of
from fairall.config.schema import ModelConfig, NetInputs
from fairall.data.features import FeatureInputs
from fairall.data.people import Decided, take
from fairall.models.learner import Learner, Setting
from fairall.models.memory import Memory
from fairall.models.objectives import by_group, ips_weight
from fairall.runtime.randomness import SeedStreams

FAIRNESS = "demographic_parity", "equal_opportunity"
# B of the exponentiated gradient, whose step η₀/B is 1, and its multipliers: of both signs of the gap, and of
# no constraint.
LARGEST_MULTIPLIER = 2.0
SIGNS = torch.tensor([1.0, -1.0, 0.0])
RIDGE = 1e-3  # of the logistic regressions, whose weights add up to 1
FIRST_STEPS, NEXT_STEPS = 20, 3  # of a regression from zero, and from the one before


@dataclass
class FairReductionsConfig(ModelConfig):
    """Length of the phase that accepts everybody, smoothing, constraint, and schedule of new solutions."""

    alpha: float = between(0.25, 0.5)
    mu: float = limited("above 0 and below 0.5", lambda mu: 0 < mu < 0.5)
    fairness: str = one_of(FAIRNESS)
    slack: float = not_negative()
    iterations: int = at_least(1)
    rounds: int = at_least(1)
    solve_every: int = at_least(1)


class FairReductions(Learner):
    """Accepts everybody at first, then by a distribution over fair policies with smoothed decisions.

    The first T^(2α) of T applicants, all accepted, measure fairness: |rate_g − rate| ≤ slack for both groups
    g, of acceptance (demographic parity) or of acceptance where ỹ = 1 (equal opportunity). Policies are
    randomised linear classifiers that respect it, found on everybody decided so far with losses
    (c − ỹ)/propensity. Their distribution Q makes no policy's loss hard to estimate, and puts little on
    policies of large loss. After the first applicants every decision has a probability of at least μ_m.

    Attributes:
        first_people: T^(2α) of the T applicants of the run, who are all accepted.
        psi: ψ = 4(e − 2)·ln T.
        seen: applicants learned from, shape ().
        found: distributions found so far, shape ().
        policy: as for `accepted`, shape (E, C, inputs + 3); its columns are of the inputs, s, the intercept
            and the probability.
    """

    config: FairReductionsConfig
    config_type = FairReductionsConfig
    estimates_label = False
    net_inputs = NetInputs.standardised
    seen: Tensor
    found: Tensor
    policy: Tensor

    def __init__(self, config: FairReductionsConfig, setting: Setting) -> None:
        super().__init__(config, setting)
        self.inputs = FeatureInputs(setting.schema)
        self.memory = Memory("all")
        horizon = setting.schedule.time_steps * setting.schedule.applicants
        self.first_people = math.ceil(horizon ** (2.0 * config.alpha))
        self.psi = 4.0 * (math.e - 2.0) * math.log(max(horizon, 2))
        shape = len(setting.seeds), 2 * (config.rounds + 1), self.inputs.size_with_s + 2
        for name, size in (("seen", ()), ("found", ()), ("policy", shape)):
            self.register_buffer(name, torch.zeros(size))

    @property
    def smoothing(self) -> float:
        """μ_m = min(μ, μ·√(2/m)), m the number of distributions found before the present one."""
        return self.config.mu * math.sqrt(2.0 / max(int(self.found) - 1, 2))

    def warm_up_epoch(self, decided: Decided, epoch: int) -> dict[str, float]:
        """Remember the people, in the first one; nothing is learned before all were accepted for a while."""
        if epoch == 0:
            self.remember(decided, first=False)
        return {}

    def update(self, decided: Decided) -> None:
        """Remember the applicants, and find the distribution over policies anew at the time steps for that.

        Counted from the end of the phase that accepts everybody these are 0, the powers of two up to
        `solve_every`, and its multiples.
        """
        self.remember(decided, first=not self.found)
        applicants = decided.s.shape[1]
        every = self.config.solve_every
        self.seen += applicants
        step = (int(self.seen) - self.first_people) // applicants
        if step >= 0 and (step % every == 0 or (step < every and step & (step - 1) == 0)):
            self.found += 1
            self.policy = self.distribution(*self.problem())

    def problem(self) -> tuple[Tensor, Tensor, Tensor]:
        """Inputs of the N people remembered, and the loss and the gap of accepting each.

        Summed over the people whom a policy accepts, the losses are an estimate of its loss per person, and
        the gaps are the larger |rate_g − rate| of the two groups, with the sign of rate_{+1} − rate_{−1}.

        Returns:
            Shapes (E, N, inputs + 2), (E, N) and (E, N).
        """
        known = self.memory.rows()
        weight = ips_weight(known.propensity, known.accepted, self.setting.protocol.max_ips_weight)
        weight = weight * known.accepted
        loss = weight * (self.setting.cost - known.label) / weight.sum(-1, keepdim=True).clamp(min=1.0)
        counted = known.label if self.config.fairness == "equal_opportunity" else 1.0
        gap = largest_deviation(known.weighted(weight * counted), known.s)
        return self.columns(known.x, known.s), loss, gap

    def cheapest(self, columns: Tensor, gap: Tensor, cost: Tensor) -> Tensor:
        """A randomised classifier of least cost among those that respect the constraint.

        The exponentiated gradient of Agarwal et al. (2018): the multipliers of the constraint and the best
        response to them, a weighted logistic regression, in turn. Of the classifiers found, and those that
        accept everybody and nobody, the best mixture of two is returned; since there is one difference of
        rates to bound, no mixture of more has a smaller cost.

        The regressions minimise Σ_i |k_i|·log(1 + exp(sign(k_i)·f_i)), k the costs of acceptance plus
        multipliers times constraint. All steps use one upper bound of the curvature (Böhning and Lindsay
        1988), so that no step increases the sum.

        Args:
            columns: inputs of N people, shape (E, N, D).
            gap: of acceptance, shape (E, N); its sum is at most `slack` in size.
            cost: of acceptance, shape (E, N), may be negative.

        Returns:
            As `accepted` takes it, with C = 2.
        """
        gap = gap.unsqueeze(-1)
        # The weights of a classification error, for which B is meant.
        cost = (cost / cost.abs().sum(-1, keepdim=True).clamp(min=1e-12)).unsqueeze(-1)
        # Inverse of an upper bound of all Hessians of the regressions, shape (E, D, D).
        bound = 0.25 * (columns * (cost.abs() + LARGEST_MULTIPLIER * gap.abs())).mT @ columns
        unit = torch.eye(columns.shape[-1])
        step = torch.linalg.inv(bound + RIDGE * unit)
        everybody = unit[-1:].expand(len(columns), 1, -1)
        found = [-everybody, everybody]
        classifier = 0.0 * everybody.mT
        theta = 0.0 * SIGNS
        for iteration in range(self.config.iterations):
            multiplier = LARGEST_MULTIPLIER * (theta.softmax(-1) * SIGNS).sum(-1, keepdim=True)
            charge = cost + multiplier * gap
            for _ in range(NEXT_STEPS if iteration else FIRST_STEPS):
                slope = charge * torch.sigmoid(charge.sign() * (columns @ classifier))
                classifier = classifier - step @ (columns.mT @ slope + RIDGE * classifier)
            found.append(classifier.mT)
            own = (gap * (columns @ classifier > 0)).sum(1, keepdim=True)
            theta = theta + (own * SIGNS - self.config.slack * SIGNS.abs())
        classifiers = torch.cat(found, dim=1)
        accepts = classifiers @ columns.mT > 0
        costs, gaps = ((of.mT * accepts).sum(-1) for of in (cost, gap))
        pair, probability = best_mixture(costs, gaps, self.config.slack)
        return torch.cat([take(classifiers, pair), probability.unsqueeze(-1)], dim=-1)

    def distribution(self, columns: Tensor, loss: Tensor, gap: Tensor) -> Tensor:
        """The distribution Q over fair policies, with the remaining weight on the policy of least loss.

        Coordinate descent (Agarwal et al. 2014, algorithm 2, for two actions): with q the smoothed
        probability of a decision under Q, V_π = mean of 1/q over the decisions of π, and
        b_π = regret(π)/(ψμ), a policy with D_π = V_π − b_π − 4 > 0 is added until there is none, at most
        `rounds`; ΣQ(4 + b) ≤ 4 bounds the regret of Q. Two classifiers are returned for each of `rounds` + 1
        policies. Arguments are as `problem` returns them.
        """
        rounds = self.config.rounds
        mu = self.smoothing
        scale = self.psi * mu
        best = self.cheapest(columns, gap, loss)
        least = (accepted(best, columns) * loss).sum(-1)
        policies = best.unsqueeze(1).repeat(1, rounds + 1, 1, 1)
        q = loss.new_zeros(len(loss), rounds + 1)
        b = torch.zeros_like(q)
        pi = loss.new_zeros(*loss.shape, rounds + 1)
        number = 0
        while number < rounds:
            accepts = (pi @ q.unsqueeze(-1)).squeeze(-1)
            yes, no = (smoothed(own, mu) for own in (accepts, q[:, :number].sum(-1, keepdim=True) - accepts))
            found = self.cheapest(columns, gap, loss / scale - (1.0 / yes - 1.0 / no) / loss.shape[1])
            own = accepted(found, columns)
            v, s = ((own / yes**k + (1.0 - own) / no**k).mean(-1) for k in (1, 2))
            regret = ((own * loss).sum(-1) - least).clamp(min=0.0) / scale
            d = v - regret - 4.0
            if (d <= 0).all():
                break
            policies[:, number] = found
            pi[..., number] = own
            b[:, number] = regret
            q[:, number] = torch.where(d > 0, (v + d) / (2.0 * (1.0 - 2.0 * mu) * s), 0.0)
            number += 1
            q *= (4.0 / (q * (4.0 + b))[:, :number].sum(-1, keepdim=True)).clamp(max=1.0)
        q[:, number] = 1.0 - q[:, :number].sum(-1)
        policies[..., -1] *= q.unsqueeze(-1)
        return policies.flatten(1, 2)

    def columns(self, x: Tensor, s: Tensor) -> Tensor:
        """Inputs of linear classifiers, shape (E, B, inputs + 2)."""
        return F.pad(self.inputs.with_s(x, s), (0, 1), value=1.0)

    def score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """(1 − 2μ_m)·Σ Q_π·π + μ_m, and 1 in the phase that accepts everybody, shape (E, B)."""
        if not self.found:
            return torch.ones_like(s)
        return smoothed(accepted(self.policy, self.columns(x, s)).clamp(0.0, 1.0), self.smoothing)

    def remember(self, decided: Decided, *, first: bool) -> None:
        """Remember people, who have a weight in the rates if they are of the phase that accepts everybody."""
        self.memory.add(replace(decided, weight=torch.full_like(decided.label, first)))


def accepted(policy: Tensor, columns: Tensor) -> Tensor:
    """Acceptance probabilities by a randomised classifier of people of given inputs, shape (E, N).

    Args:
        policy: linear classifiers and, in the last column, the probability that each is chosen with, shape
            (E, C, D + 1).
        columns: shape (E, N, D).
    """
    decides = (columns @ policy[..., :-1].mT > 0).to(columns.dtype)
    return (decides @ policy[..., -1:]).squeeze(-1)


def smoothed(probability: Tensor, mu: float) -> Tensor:
    """The probability of a decision that is taken with at least μ, of the same shape."""
    return (1.0 - 2.0 * mu) * probability + mu


def largest_deviation(measured: Tensor, s: Tensor) -> Tensor:
    """Contribution of accepting each person to (rate_+ − rate_−)·max(share_+, share_−).

    With two groups |rate_g − rate| is |rate_+ − rate_−| times the share of the other group, so the sum over
    accepted people is the larger of the two. `measured` is the weight of each person in the rates, shape
    (E, N); a replicate with one group only has 0.

    Examples:
        >>> s = torch.tensor([[1.0, 1.0, 1.0, -1.0]])
        >>> largest_deviation(torch.ones(1, 4), s)
        tensor([[ 0.2500,  0.2500,  0.2500, -0.7500]])
    """
    own = measured * by_group(s)
    total = own.sum(-1, keepdim=True)
    largest = total.amax(0) / total.sum(0).clamp(min=1e-12)
    below, above = own / total.clamp(min=1e-12)
    return (above - below) * largest * (total > 0).all(0)


def best_mixture(cost: Tensor, gap: Tensor, slack: float) -> tuple[Tensor, Tensor]:
    """The cheapest mixture of two of C classifiers with |gap| ≤ slack.

    It is a single one, or a mixture whose gap is slack or −slack.

    Args:
        cost: of each classifier, shape (E, C).
        gap: of each, shape (E, C); at most slack in size for one at least.
        slack: 0 or more.

    Returns:
        Two classifiers and their probabilities, shape (E, 2) each.

    Examples:
        >>> best_mixture(torch.tensor([[0.0, -1.0]]), torch.tensor([[0.0, 0.4]]), 0.1)
        (tensor([[0, 1]]), tensor([[0.7500, 0.2500]]))
    """
    first = gap.unsqueeze(-1)
    second = gap.unsqueeze(-2)
    # Of the first of each pair: where the gap is a bound, and 1 where the gap of the first is within both.
    shares = [(bound - second) / (first - second) for bound in (slack, -slack)]
    shares.append(torch.where(first.abs() <= slack, 1.0, torch.nan).expand_as(shares[0]))
    share = torch.stack(shares, dim=1)
    total = share * cost[:, None, :, None] + (1.0 - share) * cost[:, None, None]
    place = torch.where((share >= 0) & (share <= 1), total, torch.inf).flatten(1).argmin(-1)
    _, *pair = torch.unravel_index(place, share.shape[1:])
    share = share.flatten(1).gather(-1, place.unsqueeze(-1))
    return torch.stack(pair, dim=-1), torch.cat([share, 1.0 - share], dim=-1)
