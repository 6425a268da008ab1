"""Consequential learning: stochastic policies that maximise the utility of their own decisions.

References:
    Kilbertus, Gomez Rodriguez, Schölkopf, Muandet, Valera: Fair decisions despite imperfect predictions,
    AISTATS 2020.
    Swaminathan, Joachims: The self-normalized estimator for counterfactual learning, NeurIPS 2015.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from omegaconf import MISSING
from torch import Tensor
from typing_extensions import override

from fairall.config.checks import even, not_negative, one_of
from fairall.data.people import Decided, group_index
from fairall.models.classifier import Remembering, RememberingConfig
from fairall.models.learner import DecisionRule, Setting
from fairall.models.memory import Memory
from fairall.models.objectives import ips_weight

DATA = "recent", "all"
FAIRNESS = "none", "demographic_parity", "equal_opportunity"


# Classes of policies (Kilbertus et al. 2020, section 5). The objective of two contains the cost, so that ½
# decides; the third is a model of the label, for which c decides.
DRAWN = {"logistic": DecisionRule(), "semi_logistic": DecisionRule(certain=0.5)}
POLICIES = (*DRAWN, "threshold")


@dataclass
class ConsequentialConfig(RememberingConfig):
    """The class of policies, whether it sees s, the people it is trained on, the fairness term and its λ."""

    batch_size: int = even()  # see `Consequential.penalty`
    policy: str = one_of(POLICIES)
    protected_as_feature: bool = MISSING
    data: str = one_of(DATA)
    fairness: str = one_of(FAIRNESS)
    lambda_: float = not_negative()


class Consequential(Remembering):
    """Maximises E[π(x, s)·(ỹ − c)] − λ/2·Δb² over policies π (Kilbertus et al. 2020, section 4).

    Expectations under the policy π that is trained are estimated from people accepted by earlier policies:
    E[π·f(ỹ)] is the mean of w·π·f(ỹ) over them, w = 1/(propensity at the time), divided by the mean of w.
    Δb is the difference between the groups of E[π | s] (demographic parity) or E[ỹ·π | s] (equal
    opportunity). The threshold rule maximises the likelihood of the labels of the accepted, without weights,
    and accepts where p(ỹ = 1 | x, s) ≥ c, as `Greedy` does; the fairness term is not for it.

    Attributes:
        total: Σ w of the people remembered by group, shape (G, E).
    """

    two_groups = False
    config: ConsequentialConfig
    config_type = ConsequentialConfig
    total: Tensor

    def __init__(self, config: ConsequentialConfig, setting: Setting) -> None:
        super().__init__(config, setting)
        self.rule = DRAWN.get(config.policy, self.rule)
        self.classifier.sees_s = config.protected_as_feature
        if config.fairness != "none":
            setting.schema.require_two_groups(f"model.fairness={config.fairness}", "choose none, or ")
        self.register_buffer("total", torch.zeros(setting.schema.n_groups, len(setting.seeds)))

    @override
    def remember(self, decided: Decided) -> None:
        """Remember the applicants, and with `data=recent` nobody else."""
        if self.config.data == "recent":
            self.memory = Memory("accepted")
        super().remember(decided)
        self.total.copy_(self.weights(self.memory.rows()).sum(-1))

    def loss(self, batch: Decided) -> Tensor:
        """Minus the objective, or the cross-entropy of the model of a threshold rule, shape (E,)."""
        if self.config.policy == "threshold":
            return super().loss(batch)
        logit = self.classifier.logit(batch.x, batch.s)
        acceptance = self.rule.propensity(torch.sigmoid(logit), batch.x)
        share = self.memory.counts / self.total.sum(0).clamp(min=1.0)
        weight = self.weights(batch).sum(0) * share.unsqueeze(-1)
        utility = (weight * acceptance * (batch.label - self.setting.cost)).mean(-1)
        return -utility if self.config.fairness == "none" else self.penalty(acceptance, batch) - utility

    def penalty(self, acceptance: Tensor, batch: Decided) -> Tensor:
        """λ/2·Δb² of acceptance probabilities (E, B), shape (E,); 0 while one of two groups is unknown.

        The square is the product of the Δb of two halves of the minibatch, which are independent: the square
        of one noisy Δb would also penalise its variance, and so acceptance.
        """
        label = batch.label if self.config.fairness == "equal_opportunity" else 1.0
        share = self.memory.counts / self.total.clamp(min=1.0)
        in_halves = (self.weights(batch) * acceptance * label).unflatten(-1, (2, -1)).mean(-1)
        (gap,) = (share.unsqueeze(-1) * in_halves).diff(dim=0)
        return 0.5 * self.config.lambda_ * gap.prod(-1) * (self.total > 0).all(0)

    def weights(self, decided: Decided) -> Tensor:
        """1/propensity of the accepted of each group, 0 of others, shape (G, E, B).

        At most `protocol.max_ips_weight`.
        """
        n_groups = self.setting.schema.n_groups
        of_group = group_index(decided.s, n_groups) == torch.arange(n_groups).view(-1, 1, 1)
        own = decided.accepted & of_group
        return own * ips_weight(decided.propensity, own, self.setting.protocol.max_ips_weight)
