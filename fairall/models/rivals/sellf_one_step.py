"""SELLF without dynamics: a policy made fair on labels that a predictor imputes for rejected people.

References:
    Valdrighi, Valera, Raimundo: Long-term fairness with selective labels, PMLR 306, 2026 (arXiv 2605.22291).
    Vitter: Random sampling with a reservoir, ACM Transactions on Mathematical Software 11, 1985.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor
from typing_extensions import override

from fairall.config.checks import at_least, copies, hidden_sizes, limited, not_negative, one_of, positive
from fairall.data.people import Decided
from fairall.models.classifier import ClassifierNet, Remembering, RememberingConfig
from fairall.models.learner import DecisionRule, Setting
from fairall.models.memory import Memory
from fairall.models.objectives import ips_weight, masked_mean
from fairall.nn.adam import Adam
from fairall.nn.stacked import StackedMLP
from fairall.runtime.randomness import SeedStreams
from fairall.storage.checkpoint import Stateful

FAIRNESS = ("tpr", "accuracy")
SMALLEST = 1e-8  # in place of denominators of 0


@dataclass
class SellfOneStepConfig(RememberingConfig):
    """Training of the label predictor (`RememberingConfig`) and of the policy."""

    policy_learning_rate: float = positive()
    policy_arch: list[int] = hidden_sizes()
    policy_updates: int = at_least(1)
    past_policies: int = copies(1)
    fairness: str = one_of(FAIRNESS)
    beta_1: float = not_negative()
    beta_2: float = not_negative()
    omega: float = limited("at least 0 and at most 2", lambda omega: 0 <= omega <= 2)


class PastPolicies(Stateful):
    """The nets of at most K policies of each seed: a uniform sample of all added (reservoir, Vitter 1985).

    An attribute of a learner, it is part of checkpoints.

    Args:
        make: makes nets, whose output is a logit; net k of seed e is replicate e·K + k.
        seeds: the E seeds.
        most: K.
    """

    kept = ("added",)

    def __init__(self, make: Callable[[SeedStreams], StackedMLP], seeds: Sequence[int], most: int) -> None:
        copies = [seed for seed in seeds for _ in range(most)]
        self.net = make(SeedStreams(copies, "placeholders")).requires_grad_(False)
        self.streams = SeedStreams(seeds, "past policies")
        self.most = most
        self.added = 0
        self.net.last.bias.fill_(-torch.inf)  # a policy that is not there yet accepts nobody

    def add(self, policy: StackedMLP) -> None:
        """Add a policy of every seed to the sample, in which it may replace another or be dropped."""
        place = torch.full((len(self.streams),), self.added)
        if self.added >= self.most:
            place = (self.streams.uniform(1).squeeze(-1) * (self.added + 1)).long()
        (seed,) = torch.where(place < self.most)
        row = seed * self.most + place[seed]
        for own, new in zip(self.net.parameters(), policy.parameters(), strict=True):
            own[row] = new.detach()[seed]
        self.added += 1

    def any_accepts(self, columns: Tensor) -> Tensor:
        """1 − Π_k (1 − π_k), shape (E, B), of people in columns (E, inputs, B); 0 without any policy."""
        if self.added == 0:
            return torch.zeros_like(columns[:, 0])
        logit = self.net.forward_transposed(columns.repeat_interleave(self.most, dim=0)).squeeze(1)
        rejects = F.logsigmoid(-logit).unflatten(0, (-1, self.most)).sum(1)
        return -torch.expm1(rejects)


class SellfOneStep(Remembering):
    """A net π = σ(net(x, s)) trained for utility, fairness on imputed labels, and their reliability.

    The classifier of `Remembering` is the label predictor m(x, s). It is trained on all accepted people so
    far to be right where the policy rejects: with weights (1 − π)/π_all, normalised in each group, where
    π_all = 1 − Π_k (1 − π_k) is the probability that one of the past policies accepts. The policy minimises

        −Û + β₁·max(0, |Δ̂| − ω/2) + β₂·Σ_g c_g·E_g[(1 − π)²/π_all],

    Û the IPS estimate of the utility, Δ̂ the gap between the groups of the true-positive rate or accuracy with
    imputed labels, and c_g > 0, Σ_g c_g = 1. The third term bounds the error of m on rejected people: it is
    the second moment of m's weights.

    The method of the paper is reinforcement learning (PPO) in an environment with dynamics; this is its loss
    for one step. docs/methods/sellf_one_step.md lists what else differs.
    """

    config: SellfOneStepConfig
    config_type = SellfOneStepConfig

    def __init__(self, config: SellfOneStepConfig, setting: Setting) -> None:
        super().__init__(config, setting)
        self.memory = Memory("all")
        self.rule = DecisionRule()
        make = partial(ClassifierNet, setting, config.policy_arch)
        self.policy = make(SeedStreams(setting.seeds, "policy"))
        self.policy_optimiser = Adam(self.policy.parameters(), config.policy_learning_rate)
        self.past = PastPolicies(make, setting.seeds, config.past_policies)

    def accepts(self, x: Tensor, s: Tensor) -> Tensor:
        """π(d=1 | x, s) with its gradient, shape (E, B)."""
        return torch.sigmoid(self.policy.logit(x, s))

    @torch.no_grad()
    def score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """π(d=1 | x, s), shape (E, B); ½ is where the utility of accepting is 0. Draws nothing."""
        return self.accepts(x, s)

    @override
    @torch.no_grad()
    def log_odds(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """Those of the label predictor m, shape (E, B); draws nothing."""
        return self.classifier.logit(x, s).double()

    def update(self, decided: Decided) -> None:
        """Remember the policy and the applicants, then train label predictor and policy.

        In the warm-up the predictor alone is trained.
        """
        self.past.add(self.policy)
        super().update(decided)
        for _ in range(self.config.policy_updates):
            batch = self.memory.sample(self.config.batch_size, self.streams)
            self.policy_optimiser.minimise(self.policy_loss(batch))

    @torch.no_grad()
    def inverse_any(self, batch: Decided) -> Tensor:
        """1/π_all, shape (E, B), at most `protocol.max_ips_weight`.

        π_all is not below the propensity that a person was decided with: that policy is one of the past ones
        too, even where it is no net (the initial policy, exploration) or not in the sample.
        """
        known = torch.maximum(self.past.any_accepts(self.policy.columns(batch.x, batch.s)), batch.propensity)
        everybody = torch.ones_like(batch.accepted)
        return ips_weight(known.clamp(min=SMALLEST), everybody, self.setting.protocol.max_ips_weight)

    def loss(self, batch: Decided) -> Tensor:
        """Loss of the label predictor: cross-entropy with weights (1 − π)/π_all, a mean per group, (E,)."""
        logit = self.classifier.logit(batch.x, batch.s)
        loss = F.binary_cross_entropy_with_logits(logit, batch.label, reduction="none")
        rejects = 1.0 - self.score(batch.x, batch.s, self.streams)
        weight = batch.accepted * rejects * self.inverse_any(batch) * groups(batch.s)
        return ((weight * loss).sum(-1) / weight.sum(-1).clamp(min=SMALLEST)).sum(0)

    def policy_loss(self, batch: Decided) -> Tensor:
        """Loss of the policy on people accepted or not, shape (E,)."""
        config, setting, inverse_any = self.config, self.setting, self.inverse_any(batch)
        accepts = self.accepts(batch.x, batch.s)
        weight = ips_weight(batch.propensity, batch.accepted, setting.protocol.max_ips_weight)
        utility = (batch.accepted * weight * (batch.label - setting.cost) * accepts).mean(-1)
        with torch.no_grad():
            predicted = torch.sigmoid(self.classifier.logit(batch.x, batch.s))
            imputed = torch.where(batch.accepted, batch.label, predicted)
        gap = fairness_gap(config.fairness, accepts, imputed, batch.s)
        share = confidence_weights(config.fairness, accepts.detach(), imputed, inverse_any, batch.s)
        moments = masked_mean((1.0 - accepts).square() * inverse_any, groups(batch.s))
        unfair = F.relu(gap - config.omega / 2)
        return -utility + config.beta_1 * unfair + config.beta_2 * (share * moments).sum(0)


def groups(s: Tensor) -> Tensor:
    """Who is of S = +1 and of S = −1, shape (2, E, B); rows without a person have s = 0."""
    return torch.stack([s > 0, s < 0])


def fairness_gap(fairness: str, accepts: Tensor, label: Tensor, s: Tensor) -> Tensor:
    """|Δ̂|, the difference between the groups of the true-positive rate or the accuracy, shape (E,).

    `label` is ỹ or P(ỹ = 1), shape (E, B). It is 0 where a group is absent or has no label of 1 to compute a
    rate from.

    Examples:
        >>> accepts, label = torch.tensor([[0.9, 0.1, 0.5, 0.5]]), torch.tensor([[1.0, 0.0, 1.0, 0.5]])
        >>> fairness_gap("tpr", accepts, label, torch.tensor([[1.0, 1.0, -1.0, -1.0]]))
        tensor([0.4000])
    """
    right, of = accepts * label, label
    if fairness == "accuracy":
        right, of = right + (1.0 - accepts) * (1.0 - label), torch.ones_like(label)
    mass = (groups(s) * of).sum(-1)
    rate = (groups(s) * right).sum(-1) / mass.clamp(min=SMALLEST)
    return torch.where((mass > 0).all(0), (rate[0] - rate[1]).abs(), 0.0)


def confidence_weights(
    fairness: str, accepts: Tensor, label: Tensor, inverse_any: Tensor, s: Tensor
) -> Tensor:
    """c_g of S = +1 and S = −1, shape (2, E): E_g[π_all]/E_g[1 − π] up to a factor that makes Σ_g c_g = 1.

    A mean over the rejected is one over the remembered with weights of second moment
    E_g[π_all]/E_g[1 − π]²·E_g[(1 − π)²/π_all]; times the share of rejected, which is how much of the group's
    rate they make up, that is the term of the loss. For the true-positive rate c_g is also divided by the
    rate of labels 1, the denominator of that rate. `inverse_any` is 1/π_all; the other arguments are as for
    `fairness_gap`.
    """
    of = masked_mean(1.0 - accepts, groups(s))
    if fairness == "tpr":
        of = of * masked_mean(label, groups(s))
    weight = masked_mean(1.0 / inverse_any, groups(s)) / (of + SMALLEST)
    return weight / weight.sum(0).clamp(min=SMALLEST)
