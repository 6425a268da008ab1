"""Multiple imputation: classifiers trained on labels that each draws for the rejected from itself.

References:
    Rubin: Multiple imputation for nonresponse in surveys, Wiley 1987 (pooling, section 3.1; proper
    imputation, chapter 4).
    Tanner, Wong: The calculation of posterior distributions by data augmentation, Journal of the American
    Statistical Association 82, 1987.
    Fogarty: Multiple imputation as a missing data approach to reject inference on consumer credit scoring,
    InterStat, 2006.
    Carpenter, Kenward: Multiple imputation and its application, Wiley 2013 (sensitivity analysis: labels that
    are not missing at random, chapter 10).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from typing_extensions import override

from fairall.config.checks import at_least, optional
from fairall.data.people import Decided
from fairall.models.logistic import mixture_odds
from fairall.models.members import Members, MembersConfig


@dataclass
class MultipleImputationConfig(MembersConfig):
    """What is assumed of the labels of people whom the initial policy rejected.

    `odds_ratio` is Γ ≥ 1, the odds of label 1 of people whom the initial policy accepted over those of people
    of equal features and group whom it rejected; null, and not stored with runs, where labels are missing at
    random.
    """

    odds_ratio: float | None = optional(at_least(1))


class MultipleImputation(Members):
    """K classifiers of everybody so far; decides by the mean of their p(ỹ = 1 | x, s).

    Each member is trained on its own bootstrap sample, with observed labels of the accepted, and labels of
    the rejected drawn from the member's p(ỹ = 1 | x, s) before every update (data augmentation, Tanner and
    Wong 1987). With `odds_ratio` the probability is lower for people whom the initial policy rejected
    (`imputation_probability`).

    The propensity that is remembered is that of the initial policy, and 0 for people of later policies.
    """

    config: MultipleImputationConfig
    config_type = MultipleImputationConfig
    remembered = "all"

    @override
    def update(self, decided: Decided) -> None:
        super().update(replace(decided, propensity=torch.zeros_like(decided.propensity)))

    @override
    def minibatches(self) -> Iterable[Decided]:
        return [self.imputed(batch) for batch in super().minibatches()]

    @torch.no_grad()
    def imputed(self, batch: Decided) -> Decided:
        """People all of whom have labels (E, B, K), those of rejected ones drawn for each member."""
        uniform = self.streams.uniform(batch.s.shape[1], self.config.members)
        drawn = (uniform < self.imputation_probability(batch)).float()
        label = torch.where(batch.accepted.unsqueeze(-1), batch.label.unsqueeze(-1), drawn)
        return replace(batch, label=label, accepted=torch.ones_like(batch.accepted))

    def imputation_probability(self, batch: Decided) -> Tensor:
        """Each member's probability that the label of a rejected person is 1, shape (E, B, K).

        p = p(ỹ = 1 | x, s) is that of all people, accepted or not. Where the initial policy accepted with
        probability π, and accepted people have Γ times the odds of rejected ones, these have the odds o with
        π·Γo/(1 + Γo) + (1 − π)·o/(1 + o) = p, so that for people of later policies, who have π = 0, it is p.
        """
        p = self.member_logits(batch.x, batch.s).sigmoid()
        if self.config.odds_ratio is None:
            return p
        share = batch.propensity.double().unsqueeze(-1)
        odds = mixture_odds(p.double(), share, self.config.odds_ratio)
        return (odds / (1.0 + odds)).to(p.dtype)
