"""Bootstrap classifiers whose disagreement makes the policy optimistic.

References:
    Wei: Decision-making under selective labels: optimal finite-domain policies and beyond, ICML 2021.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from typing_extensions import override

from fairall.config.checks import open_unit
from fairall.models.members import Members, MembersConfig


@dataclass
class EnsembleConfig(MembersConfig):
    """The quantile of the members' probabilities that decides."""

    quantile: float = open_unit()


class Ensemble(Members):
    """Classifiers of samples of the accepted; decides by a quantile of their p(ỹ = 1 | x, s)."""

    weighs_labels = True
    takes_amounts = True
    config: EnsembleConfig
    config_type = EnsembleConfig

    @override
    def pooled_probability(self, logit: Tensor) -> Tensor:
        return self.pooled_log_odds(logit.sigmoid())

    @override
    def pooled_log_odds(self, logit: Tensor) -> Tensor:
        """The quantile of the members' log odds (E, B, K), or of whatever else, shape (E, B)."""
        return torch.quantile(logit, self.config.quantile, dim=-1)
