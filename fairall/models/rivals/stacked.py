"""Linear models and boosted trees, mixed by how well they have foretold labels.

References:
    Dawid: Present position and potential developments: some personal views, statistical theory, the
    prequential approach, Journal of the Royal Statistical Society A 147, 1984.
    Genest, Zidek: Combining probability distributions: a critique and an annotated bibliography, Statistical
    Science 1, 1986 (the logarithmic opinion pool).
    Friedman: Greedy function approximation: a gradient boosting machine, Annals of Statistics 29, 2001.
    Ke et al.: LightGBM: a highly efficient gradient boosting decision tree, NeurIPS 2017 (histograms).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from fairall.config.checks import limited, not_negative, positive
from fairall.config.schema import NetInputs
from fairall.data.features import FeatureInputs
from fairall.data.people import Decided
from fairall.models.estimators import boosted_trees, logistic
from fairall.models.learner import Setting
from fairall.models.refitted import Labelled, Refitted, RefittedConfig
from fairall.runtime.randomness import SeedStreams


@dataclass
class StackedConfig(RefittedConfig):
    """Which classifiers there are, how they are weighed, and the optimism."""

    linear_c: list[float] = limited(
        "a list of one or more positive numbers", lambda values: len(values) > 0 and min(values) > 0
    )
    evidence: float = positive()
    optimism: float = not_negative()


class Stacked(Refitted):
    """Mixture of classifiers of all accepted people.

    The classifiers are logistic regressions, each with another penalty, and boosted trees. All are fitted
    anew when the number of people seen has grown by a share. The label of an accepted person, before it is
    learnt from, tells how well each classifier foretells: classifiers have weights proportional to
    exp(−Σ cross-entropy), in which earlier labels count exponentially less. The log odds of the mixture are
    the weighted mean of those of the classifiers, and a share of their weighted standard deviation more.

    That is optimism where classifiers of which none has proved wrong disagree. Without it, classifiers with a
    strong penalty, which say nearly the same of everybody, may reject so many that it takes long to learn
    better from the few accepted.

    Attributes:
        evidence: Σ log p(label) by each classifier, shape (E, L + 1), float64; the trees are last.
        share: weights of the classifiers since the last fit, shape (E, L + 1), float64.
    """

    config: StackedConfig
    config_type = StackedConfig
    evidence: Tensor
    share: Tensor

    def __init__(self, config: StackedConfig, setting: Setting) -> None:
        models = [*(logistic(c, standardises=True) for c in config.linear_c), boosted_trees()]
        super().__init__(config, setting, models)
        self.codes = FeatureInputs(setting.schema.seen_as(NetInputs.standardised))
        self.register_buffer("evidence", torch.zeros(len(setting.seeds), len(models), dtype=torch.float64))
        self.register_buffer("share", self.evidence.softmax(-1))

    def update(self, decided: Decided) -> None:
        """Judge the classifiers by the labels of the applicants, and learn from these."""
        logit, known = self.of_classifiers(decided.x, decided.s), decided.accepted.double()
        label = decided.label.double().unsqueeze(-1).expand_as(logit)
        loss = F.binary_cross_entropy_with_logits(logit, label, known.unsqueeze(-1), reduction="none").sum(1)
        self.evidence.mul_(torch.exp(-known.sum(-1, keepdim=True) / self.config.evidence)).sub_(loss)
        super().update(decided)
        if not self.unchanged:
            self.share.copy_(self.evidence.softmax(-1))

    def table(self, e: int, seen: Decided, seed: int) -> Labelled:
        """The accepted, as all classifiers see them."""
        weight = seen.weighted(torch.ones_like(seen.label))
        return self.given(e, seen.x, seen.s), seen.label.numpy(), weight.numpy()

    def given(self, e: int, x: Tensor, s: Tensor) -> list[np.ndarray]:
        """An indicator per category for linear models, and standardised codes for the trees, (B, F) each."""
        linear = self.inputs.with_s(x, s).double().numpy()
        return [linear] * len(self.config.linear_c) + [self.codes.with_s(x, s).numpy()]

    def log_odds(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """Those of the mixture, shape (E, B), float64; draws nothing."""
        logit, share = self.of_classifiers(x, s), self.share.unsqueeze(1)
        mean = (share * logit).sum(-1)
        variance = (share * (logit - mean.unsqueeze(-1)) ** 2).sum(-1)
        return mean + self.config.optimism * variance.sqrt()
