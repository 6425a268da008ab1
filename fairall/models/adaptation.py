"""Unsupervised domain adaptation: a classifier of people without labels, by gradient reversal.

References:
    Ganin et al.: Domain-adversarial training of neural networks, JMLR 2016.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from fairall.data.features import FeatureInputs, Schema
from fairall.data.people import Decided
from fairall.models.classifier import accepted_cross_entropy
from fairall.models.objectives import masked_mean
from fairall.nn.stacked import StackedMLP
from fairall.runtime.randomness import SeedStreams


class AdaptedNet(nn.Module):
    """E generators of a representation of (x, s), each with a classifier of ỹ and a discriminator.

    The discriminator tells people with labels, the source, from people without, the target. Its gradient
    reaches the generator reversed, so that the classifier sees what both have in common.

    Args:
        generator: sizes of the generator's layers, all with ReLU; the last is the representation.
        classifier: hidden layers of the classifier.
        discriminator: hidden layers of the discriminator.
        gain: factor of the initial weights.
    """

    def __init__(
        self,
        schema: Schema,
        generator: Sequence[int],
        classifier: Sequence[int],
        discriminator: Sequence[int],
        streams: SeedStreams,
        *,
        gain: float,
    ) -> None:
        super().__init__()
        self.inputs = FeatureInputs(schema)
        *hidden, size = generator
        self.generator = StackedMLP(self.inputs.size_with_s, hidden, size, streams, gain=gain)
        self.classifier = StackedMLP(size, classifier, 1, streams, gain=gain)
        self.discriminator = StackedMLP(size, discriminator, 1, streams, gain=gain)

    def representation(self, x: Tensor, s: Tensor) -> Tensor:
        """The generator's output, shape (E, size, B), for x (E, B, D) and s (E, B)."""
        return self.generator.forward_transposed(self.inputs.columns_with_s(x, s)).relu()

    def logit(self, x: Tensor, s: Tensor) -> Tensor:
        """Logit of the classifier's p(ỹ = 1), shape (E, B), for x (E, B, D) and s (E, B)."""
        return self.classifier.forward_transposed(self.representation(x, s)).squeeze(1)

    def loss(self, source: Decided, target: Decided) -> Tensor:
        """Cross-entropy of the labels of the source and of telling source from target, shape (E,).

        Args:
            source: accepted people, fields (E, B, ...); all rejected in a replicate that has accepted nobody.
            target: any people, fields (E, B', ...); their decisions and labels are not used.
        """
        shared = self.representation(
            torch.cat([source.x, target.x], dim=1), torch.cat([source.s, target.s], dim=1)
        )
        n = source.s.shape[1]
        logit = self.classifier.forward_transposed(shared[..., :n]).squeeze(1)
        reversed_shared: Tensor = Reversed.apply(shared)
        guess = self.discriminator.forward_transposed(reversed_shared).squeeze(1)
        return accepted_cross_entropy(logit, source) + discriminator_loss(
            guess[:, :n], guess[:, n:], source.accepted
        )


def discriminator_loss(of_source: Tensor, of_target: Tensor, accepted: Tensor) -> Tensor:
    """Cross-entropy of the logits of being of the target, source and target with the same weight.

    >>> logit = torch.zeros(1, 3)
    >>> discriminator_loss(logit, logit[:, :2], torch.ones(1, 3).bool())  # 2·log 2
    tensor([1.3863])

    The logits have shapes (E, B) and (E, B'). All of the source are `accepted`, or none in a replicate that
    has accepted nobody, whose loss is 0.
    """
    known = accepted.any(-1)
    return masked_mean(F.softplus(of_source), accepted) + known * F.softplus(-of_target).mean(-1)


class Reversed(torch.autograd.Function):
    """Identity whose gradient is multiplied by −1 (Ganin et al. 2016, section 4.2, λ = 1)."""

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        """The values, any shape."""
        return values.view_as(values)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        """The gradient times −1, of its shape."""
        return -gradient
