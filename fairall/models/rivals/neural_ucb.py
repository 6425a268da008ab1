"""NeuralUCB: an upper confidence bound from the last hidden layer of a classifier.

References:
    Zhou, Li, Gu: Neural contextual bandits with UCB-based exploration, ICML 2020.
    Riquelme, Tucker, Snoek: Deep Bayesian bandits showdown, ICLR 2018 (the last layer as features).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from typing_extensions import override

from fairall.config.checks import hidden_sizes, not_negative, positive, positive_share
from fairall.data.people import Decided
from fairall.models.classifier import Remembering, RememberingConfig
from fairall.models.learner import Setting


@dataclass
class NeuralUcbConfig(RememberingConfig):
    """Width α of the confidence bound, and the `ridge` and `discount` of A; f has a hidden layer at least."""

    clf_arch: list[int] = hidden_sizes()
    alpha: float = not_negative()
    ridge: float = positive()
    discount: float = positive_share()


class NeuralUcb(Remembering):
    """A classifier f of all accepted people so far; also accepts where an upper bound of f is at least c.

    φ(x, s) are the units of the last hidden layer of f. The bound is σ(logit f + α·sqrt(φᵀ A⁻¹ φ)) with
    A = ridge·I + `gram`: the fewer people like this one have been accepted, the higher it is.

    Attributes:
        gram: Σ φφᵀ of accepted people, of time steps before the last times discount per time step, shape
            (E, K, K), float64. φ are those of f after the update with these people.
    """

    two_groups = False
    fresh_adam = True  # as in the public code of PLOT, which compares with it
    config: NeuralUcbConfig
    config_type = NeuralUcbConfig
    gram: Tensor

    def __init__(self, config: NeuralUcbConfig, setting: Setting) -> None:
        super().__init__(config, setting)
        size = config.clf_arch[-1]
        self.register_buffer("gram", torch.zeros(len(setting.seeds), size, size, dtype=torch.float64))

    @override
    def warm_up_epoch(self, decided: Decided, epoch: int) -> dict[str, float]:
        """As `Remembering`; `gram` is then that of the people of the warm-up."""
        losses = super().warm_up_epoch(decided, epoch)
        self.gram.zero_()
        self.observe(decided)
        return losses

    @override
    def update(self, decided: Decided) -> None:
        super().update(decided)
        self.observe(decided)

    def observe(self, decided: Decided) -> None:
        """Discount `gram` and add φφᵀ of the accepted; where nobody is accepted `gram` stays as it is."""
        features = self.features(decided.x, decided.s) * decided.accepted.unsqueeze(1)
        kept = self.config.discount ** decided.accepted.any(-1).double()
        self.gram.mul_(kept[:, None, None]).add_(features @ features.mT)

    @torch.no_grad()
    def features(self, x: Tensor, s: Tensor) -> Tensor:
        """φ of people (E, B, D), shape (E, K, B), float64."""
        return self.classifier.hidden(self.classifier.columns(x, s)).double()

    def bonus(self, x: Tensor, s: Tensor) -> Tensor:
        """α·sqrt(φᵀ A⁻¹ φ), shape (E, B), float64."""
        a = self.gram + self.config.ridge * torch.eye(self.gram.shape[1]).double()
        whitened = torch.linalg.solve_triangular(torch.linalg.cholesky(a), self.features(x, s), upper=False)
        return self.config.alpha * whitened.square().sum(1).sqrt()

    @override
    @torch.no_grad()
    def explore(self, x: Tensor, s: Tensor, propensity: Tensor, uniform: Tensor) -> Tensor:
        """1 also where the upper bound is at least c, shape (E, N); `uniform` is not used."""
        bound = torch.sigmoid(self.classifier.logit(x, s) + self.bonus(x, s)).to(propensity.dtype)
        return torch.maximum(propensity, self.rule.propensity(bound, x))
