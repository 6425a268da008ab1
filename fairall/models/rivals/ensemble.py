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
from fairall.runtime.randomness import SeedStreams


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

    @torch.no_grad()
    def score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """The quantile of the members' p(ỹ = 1 | x, s), shape (E, B)."""
        return self.pooled(lambda logit: self._quantile(logit.sigmoid()), x, s)

    @override
    @torch.no_grad()
    def log_odds(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """The quantile of the members' logits, shape (E, B)."""
        return self.pooled(self._quantile, x, s).double()

    def _quantile(self, of_members: Tensor) -> Tensor:
        return torch.quantile(of_members, self.config.quantile, dim=1)
