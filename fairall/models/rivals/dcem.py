"""DCEM: expectation-maximisation with labels of rejected people as the missing data.

References:
    Chang, Warrenburg, Park, Parikh, Makar, Wiens: From biased selective labels to pseudo-labels: an
    expectation-maximization framework for learning from biased decisions, ICML 2024.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, replace

import torch
from omegaconf import MISSING
from torch import Tensor
from typing_extensions import override

from fairall.config.checks import at_least, not_negative
from fairall.data.people import Decided
from fairall.models.classifier import ClassifierNet, Remembering, RememberingConfig
from fairall.models.learner import Setting
from fairall.models.objectives import cross_entropy, train_on
from fairall.nn.adam import Adam
from fairall.runtime.randomness import SeedStreams


@dataclass
class DCEMConfig(RememberingConfig):
    """Rounds of EM per time step, each of `updates` minibatches; the weight of the observed labels' loss."""

    rounds: int = at_least(1)
    regularisation: float = not_negative()
    protected_as_feature: bool = MISSING


class DCEM(Remembering):
    """A classifier p of everybody so far by EM, with a model e of whose labels are seen.

    E-step: ŷ = ỹ where it is known, else p(ỹ = 1 | x). M-step: minimise the mean over everybody of
    CE(ŷ, p) + ρ·ŷ·CE(seen and ỹ = 1, p·e), CE the cross-entropy, ρ `regularisation`. Selection may depend on
    s, the label not, so that p does not see s unless it is asked for.

    Where E[ỹ | x] = q, the M-step leaves p as it is at a root of
    (p − q) − ρ·q·(1 − p) + ρ·(1 − e)·p²·(1 − p)/(1 − p·e), which is q for ρ = 0 and greater than q otherwise
    (2·q/(1 + q) for ρ = e = 1).
    """

    two_groups = False
    config: DCEMConfig
    config_type = DCEMConfig
    remembered = "all"

    def __init__(self, config: DCEMConfig, setting: Setting) -> None:
        super().__init__(config, setting)
        self.classifier.sees_s = config.protected_as_feature
        self.selection = ClassifierNet(setting, config.clf_arch, SeedStreams(setting.seeds, "selection"))
        self.selection_optimiser = Adam(self.selection.parameters(), config.learning_rate)

    @override
    def minibatches(self) -> Iterable[Decided]:
        """Minibatches of everybody, on which e is trained, then by rounds, completed by an E-step each."""
        config = self.config
        rounds = [
            self.memory.minibatches(config.updates, config.batch_size, self.streams)
            for _ in range(config.rounds)
        ]
        train_on(itertools.chain(*rounds), self.selection_loss, self.selection_optimiser)
        for batches in rounds:
            yield from [self.completed(batch) for batch in batches]

    def selection_loss(self, batch: Decided) -> Tensor:
        """Cross-entropy of e, shape (E,)."""
        logit = self.selection.logit(batch.x, batch.s)
        return cross_entropy(logit, batch.accepted.to(logit.dtype)).mean(-1)

    def completed(self, batch: Decided) -> Decided:
        """The E-step: E[ỹ] in place of the labels."""
        return replace(
            batch,
            label=torch.where(batch.accepted, batch.label, self.score(batch.x, batch.s, self.streams)),
        )

    @override
    def loss(self, batch: Decided) -> Tensor:
        """The loss of the M-step for people after an E-step, shape (E,)."""
        logit = self.classifier.logit(batch.x, batch.s)
        expected = batch.label
        with torch.no_grad():
            seen = self.selection.logit(batch.x, batch.s)
        of_label = cross_entropy(logit, expected)
        of_observed = cross_entropy(logit_of_product(logit, seen), batch.accepted * expected)
        return (of_label + self.config.regularisation * expected * of_observed).mean(-1)


def logit_of_product(first: Tensor, second: Tensor) -> Tensor:
    """Logit of the product of two probabilities whose logits have the same shape.

    >>> logit_of_product(torch.tensor([0.0, 50.0]), torch.tensor([0.0, 50.0])).sigmoid()
    tensor([0.2500, 1.0000])
    """
    return -torch.stack([-first, -second, -first - second]).logsumexp(0)
