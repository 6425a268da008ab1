"""Linear models and boosted trees, mixed by how well they have foretold labels.

References:
    Dawid: Present position and potential developments: some personal views, statistical theory, the
    prequential approach, Journal of the Royal Statistical Society A 147, 1984.
    Genest, Zidek: Combining probability distributions: a critique and an annotated bibliography, Statistical
    Science 1, 1986 (the logarithmic opinion pool).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor
from typing_extensions import override

from fairall.config.checks import limited, not_negative, positive
from fairall.config.schema import NetInputs
from fairall.data.features import FeatureInputs
from fairall.data.people import Decided
from fairall.models.learner import Setting
from fairall.models.logistic import ridge
from fairall.models.refitted import EXACT, Refitted, RefittedConfig
from fairall.models.trees import BoostedTrees
from fairall.nn.stacked import in_chunks
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
        slopes: of the linear models, and their intercepts last, shape (E, L, inputs + 1), float64.
        evidence: Σ log p(label) by each classifier, shape (E, L + 1), float64; the trees are last.
        share: weights of the classifiers since the last fit, shape (E, L + 1), float64.
    """

    weighs_labels = True
    config: StackedConfig
    config_type = StackedConfig
    slopes: Tensor
    evidence: Tensor
    share: Tensor

    def __init__(self, config: StackedConfig, setting: Setting) -> None:
        super().__init__(config, setting, "accepted")
        n_seeds, n_linear = len(setting.seeds), len(config.linear_c)
        self.codes = FeatureInputs(setting.schema.seen_as(NetInputs.standardised))
        self.trees = BoostedTrees(n_seeds)
        shape = n_seeds, n_linear, self.inputs.size_with_s + 1
        self.register_buffer("slopes", torch.zeros(shape, dtype=torch.float64))
        self.register_buffer("evidence", torch.zeros(n_seeds, n_linear + 1, dtype=torch.float64))
        self.register_buffer("share", self.evidence.softmax(-1))

    @override
    def update(self, decided: Decided) -> None:
        """Judge the classifiers by the labels of the applicants, and learn from these."""
        logit = self.of_classifiers(decided.x, decided.s)
        label = decided.label.double().unsqueeze(-1).expand_as(logit)
        loss = F.binary_cross_entropy_with_logits(logit, label, reduction="none")
        loss = torch.where(decided.accepted.unsqueeze(-1), loss, 0.0).sum(1)
        kept = torch.exp(-decided.accepted.sum(-1, keepdim=True).double() / self.config.evidence)
        self.evidence.mul_(kept).sub_(loss)
        self.learn(decided)

    @override
    def refit(self) -> None:
        """Fit all classifiers, and weigh them anew."""
        rows = self.memory.rows()
        for e, n in enumerate(self.memory.counts.tolist()):
            weight = None if rows.weight is None else rows.weight[e, :n].numpy()
            self.fit(e, rows.x[e, :n], rows.s[e, :n], rows.label[e, :n].numpy(), weight)
        self.share.copy_(self.evidence.softmax(-1))

    def fit(
        self, e: int, x: Tensor, s: Tensor, label: np.ndarray, sample_weight: np.ndarray | None = None
    ) -> None:
        """Fit the classifiers of replicate e to accepted people."""
        ones = float(label.sum())
        if ones in (0.0, len(label)):
            # Labels that are all the same: one p for everybody, c where there are none.
            p = (ones + 2.0 * self.setting.cost) / (len(label) + 2.0)
            self.slopes[e].zero_()
            self.slopes[e, :, -1] = self.trees.base[e] = math.log(p / (1.0 - p))
            return
        inputs = self.inputs.with_s(x, s).double().numpy()
        weights = None
        for i, c in enumerate(self.config.linear_c):
            weights = ridge(inputs, label, c, sample_weight, start=weights, exact=EXACT)
            self.slopes[e, i] = torch.from_numpy(weights)
        self.trees.fit(e, self.codes.with_s(x, s).numpy(), label, sample_weight)

    @torch.no_grad()
    def of_classifiers(self, x: Tensor, s: Tensor) -> Tensor:
        """Log odds of people x (E, B, D) and s (E, B) by each classifier, shape (E, B, L + 1), float64."""
        linear = in_chunks(self._linear, x, s)
        return torch.cat([linear, self.trees(self.codes.with_s(x, s)).unsqueeze(-1)], -1)

    def _linear(self, x: Tensor, s: Tensor) -> Tensor:
        inputs = self.inputs.with_s(x, s).double()
        return inputs @ self.slopes[..., :-1].mT + self.slopes[..., -1:].mT

    @override
    def log_odds(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """Those of the mixture, shape (E, B); draws nothing."""
        logit, share = self.of_classifiers(x, s), self.share.unsqueeze(1)
        mean = (share * logit).sum(-1)
        variance = (share * (logit - mean.unsqueeze(-1)) ** 2).sum(-1)
        return mean + self.config.optimism * variance.sqrt()
