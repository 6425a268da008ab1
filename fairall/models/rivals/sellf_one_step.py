"""SELLF without dynamics: a policy made fair on labels that a predictor imputes for rejected people.

References:
    Valdrighi, Valera, Raimundo: Long-term fairness with selective labels, PMLR 306, 2026 (arXiv 2605.22291).
    Vitter: Random sampling with a reservoir, ACM Transactions on Mathematical Software 11, 1985.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor
from typing_extensions import override

from fairall.config.checks import at_least, between, copies, hidden_sizes, not_negative, one_of, positive
from fairall.data.people import Decided
from fairall.models.classifier import ClassifierNet, Remembering, RememberingConfig
from fairall.models.learner import DecisionRule, Setting
from fairall.models.objectives import by_group, cross_entropy, ips_weight, train_on
from fairall.models.past import PastNets
from fairall.nn.adam import Adam
from fairall.runtime.randomness import SeedStreams

SMALLEST = 1e-8  # in place of denominators of 0


@dataclass
class SellfOneStepConfig(RememberingConfig):
    """Training of the label predictor (`RememberingConfig`) and of the policy."""

    policy_learning_rate: float = positive()
    policy_arch: list[int] = hidden_sizes()
    policy_updates: int = at_least(1)
    past_policies: int = copies(1)
    fairness: str = one_of(("tpr", "accuracy"))
    beta_1: float = not_negative()
    beta_2: float = not_negative()
    omega: float = between(0, 2)


class PastPolicies(PastNets):
    """A uniform sample of all policies of each seed (reservoir, Vitter 1985)."""

    def add(self, policy: ClassifierNet, streams: SeedStreams) -> None:
        """Add a policy of every seed to the sample, in which it may replace another or be dropped."""
        place = self.added.expand(len(streams))
        if self.added >= len(self.nets):
            place = (streams.uniform(1).squeeze(-1) * (self.added + 1)).long()
        for number, net in enumerate(self.nets):
            for own, new in zip(net.parameters(), policy.parameters(), strict=True):
                own[place == number] = new.detach()[place == number]
        self.added += 1


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
    remembered = "all"

    def __init__(self, config: SellfOneStepConfig, setting: Setting) -> None:
        super().__init__(config, setting)
        self.rule = DecisionRule()
        self.policy = ClassifierNet(setting, config.policy_arch, SeedStreams(setting.seeds, "policy"))
        self.policy_optimiser = Adam(self.policy.parameters(), config.policy_learning_rate)
        self.past = PastPolicies(self.policy, config.past_policies)
        self.past_streams = SeedStreams(setting.seeds, "past policies")

    @torch.no_grad()
    def score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """π(d=1 | x, s), shape (E, B); ½ is where the utility of accepting is 0. Draws nothing."""
        return self.policy.logit(x, s).sigmoid()

    @override
    @torch.no_grad()
    def log_odds(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """Those of the label predictor m, shape (E, B); draws nothing."""
        return self.classifier.logit(x, s).double()

    def update(self, decided: Decided) -> None:
        """Remember the policy and the applicants, then train label predictor and policy.

        In the warm-up the predictor alone is trained.
        """
        self.past.add(self.policy, self.past_streams)
        super().update(decided)
        batches = self.memory.minibatches(self.config.policy_updates, self.config.batch_size, self.streams)
        train_on(batches, self.policy_loss, self.policy_optimiser)

    def inverse_any(self, batch: Decided) -> Tensor:
        """1/π_all, shape (E, B), at most `protocol.max_ips_weight`.

        π_all is not below the propensity that a person was decided with: that policy is one of the past ones
        too, even where it is no net (the initial policy, exploration) or not in the sample.
        """
        logits = self.past.logits(self.policy.columns(batch.x, batch.s), int(self.past.added))
        rejects = sum((F.logsigmoid(-logit) for logit in logits), torch.zeros_like(batch.s))
        known = torch.maximum(-torch.expm1(rejects), batch.propensity).clamp(min=SMALLEST)
        return ips_weight(known, known > 0, self.setting.protocol.max_ips_weight)

    def loss(self, batch: Decided) -> Tensor:
        """Loss of the label predictor: cross-entropy with weights (1 − π)/π_all, a mean per group, (E,)."""
        loss = cross_entropy(self.classifier.logit(batch.x, batch.s), batch.label)
        rejects = 1.0 - self.score(batch.x, batch.s, self.streams)
        weight = batch.accepted * rejects * self.inverse_any(batch) * by_group(batch.s)
        return weighted_mean(loss, weight).sum(0)

    def policy_loss(self, batch: Decided) -> Tensor:
        """Loss of the policy on people accepted or not, shape (E,)."""
        config = self.config
        inverse_any = self.inverse_any(batch)
        accepts = self.policy.logit(batch.x, batch.s).sigmoid()
        weight = ips_weight(batch.propensity, batch.accepted, self.setting.protocol.max_ips_weight)
        utility = (batch.accepted * weight * (batch.label - self.setting.cost) * accepts).mean(-1)
        imputed = torch.where(batch.accepted, batch.label, super().score(batch.x, batch.s, self.streams))
        right = accepts
        counted = imputed
        if config.fairness == "accuracy":
            right = accepts * imputed + (1.0 - accepts) * (1.0 - imputed)
            counted = torch.ones_like(imputed)
        group = by_group(batch.s).to(accepts.dtype)
        share = confidence_weights(accepts.detach(), counted, inverse_any, group)
        moments = weighted_mean((1.0 - accepts).square() * inverse_any, group)
        unfair = F.relu(gap_of_rates(right, group * counted) - config.omega / 2)
        return -utility + config.beta_1 * unfair + config.beta_2 * (share * moments).sum(0)


def weighted_mean(values: Tensor, weight: Tensor) -> Tensor:
    """Σ weight·values / Σ weight over people, shape (..., E), for (..., E, B); 0 without any weight."""
    return (weight * values).sum(-1) / weight.sum(-1).clamp(min=SMALLEST)


def gap_of_rates(values: Tensor, weight: Tensor) -> Tensor:
    """|Δ̂|, the difference of the groups' weighted means of values (E, B), shape (E,).

    `weight` is that of a person in the rate of each group, shape (2, E, B). The gap is 0 where a group is
    absent or has no weight.

    Examples:
        >>> label = torch.tensor([[1.0, 0.0, 1.0, 0.5], [1.0, 1.0, 0.0, 0.0]])
        >>> weight = label * by_group(torch.tensor([[1.0, 1.0, -1.0, -1.0]]))
        >>> gap_of_rates(torch.tensor([[0.9, 0.1, 0.5, 0.5]]), weight)
        tensor([0.4000, 0.0000])
    """
    first, second = weighted_mean(values, weight)
    return (first - second).abs() * (weight > 0).any(-1).all(0)


def confidence_weights(accepts: Tensor, counted: Tensor, inverse_any: Tensor, group: Tensor) -> Tensor:
    """c_g of the groups, shape (2, E): E_g[π_all]/E_g[1 − π] up to a factor that makes Σ_g c_g = 1.

    A mean over the rejected is one over the remembered with weights of second moment
    E_g[π_all]/E_g[1 − π]²·E_g[(1 − π)²/π_all]; times the share of rejected, which is how much of the group's
    rate they make up, that is the term of the loss. c_g is also divided by the mean of `counted`, what a
    person counts in that rate: P(ỹ = 1) in the true-positive rate, 1 in the accuracy.

    Args:
        accepts: π, shape (E, B).
        counted: shape (E, B).
        inverse_any: 1/π_all, shape (E, B).
        group: 1 for people of the group and 0 for others, shape (2, E, B).
    """
    of = weighted_mean(1.0 - accepts, group) * weighted_mean(counted, group)
    weight = weighted_mean(1.0 / inverse_any, group) / (of + SMALLEST)
    return weight / weight.sum(0).clamp(min=SMALLEST)
