"""OPT-FAIR and OPT-UNFAIR: reference policies fitted with everybody's label (appendix C.3)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from omegaconf import MISSING
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from fairall.config.checks import at_least, one_of
from fairall.config.schema import ModelConfig
from fairall.data.encoding import FeatureInputs
from fairall.data.people import Decided
from fairall.data.prepared import PreparedData
from fairall.errors import FairAllError
from fairall.models.learner import DECISIONS, Learner, PretrainCurves, ProgressCallback, Setting, as_decided
from fairall.nn.stacked import StackedLinear
from fairall.randomness import SeedStreams
from fairall.storage.cache import Cache


@dataclass
class OptimalConfig(ModelConfig):
    """Features, decisions and sample size of a reference policy."""

    reads: list[str] | None = MISSING
    sees_sensitive: bool = MISSING
    decision: str = MISSING
    fit_rows: int = MISSING

    def validate(self) -> None:
        """See `ModelConfig.validate`."""
        one_of("model.decision", self.decision, DECISIONS)
        at_least("model.fit_rows", self.fit_rows, 100)


class Optimal(Learner):
    """Logistic model of p(ỹ | x) or p(ỹ | x, s), fitted for each seed on other people.

    It learns nothing online. OPT-UNFAIR reads x and s; OPT-FAIR reads K alone, which has to be the only
    feature (`dataset.observed=[K]`). It accepts where p ≥ c, or with probability p.

    Raises:
        FairAllError: if the features are not those that the reference reads, or, in `pretrain`, if all labels
            are the same.
    """

    config: OptimalConfig
    config_type = OptimalConfig

    def __init__(self, config: OptimalConfig, setting: Setting) -> None:
        super().__init__(config, setting)
        if config.reads is not None and setting.schema.names != config.reads:
            reads, features = ", ".join(config.reads), ", ".join(setting.schema.names)
            raise FairAllError(
                f"model={config.name} reads {reads}, and the data set has {features}; it is for "
                f"dataset=synthetic with dataset.observed=[{reads}]"
            )
        self.inputs = FeatureInputs(setting.schema)
        n_in = self.inputs.size + int(config.sees_sensitive)
        self.logistic = StackedLinear(n_in, 1, SeedStreams(setting.seeds, "optimal"))

    def pretrain_units(self, data: PreparedData) -> int:
        """Number of fits, one per seed."""
        return len(self.setting.seeds)

    def pretrain(self, data: PreparedData, cache: Cache, progress: ProgressCallback) -> PretrainCurves | None:
        """Fit each seed's model on `fit_rows` applicants, all of whose labels are known."""
        people = data.applicants(self.config.fit_rows, self.setting.seeds, "optimal").next()
        if (people.label.min(1).values == people.label.max(1).values).any():
            raise FairAllError(f"model={self.config.name}: everybody has the same label: nothing to fit")
        inputs = self._inputs(people.x, people.s)
        for k in range(len(self.setting.seeds)):
            # Without a penalty, which would bias the estimate of p.
            fit = LogisticRegression(C=float("inf"), max_iter=10_000)
            fit.fit(inputs[k].double().numpy(), people.label[k].numpy())
            with torch.no_grad():
                self.logistic.weight[k] = torch.from_numpy(fit.coef_.T)
                self.logistic.bias[k] = float(fit.intercept_[0])
            progress()
        return None

    def warm_up_epoch(self, decided: Decided, epoch: int) -> dict[str, float]:
        """Do nothing."""
        return {}

    def update(self, decided: Decided) -> None:
        """Do nothing."""

    @torch.no_grad()
    def propensity(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """See `Learner.propensity`; draws nothing."""
        probability = torch.sigmoid(self.logistic(self._inputs(x, s))).squeeze(-1)
        return as_decided(probability, self.config.decision, threshold=self.setting.cost)

    @property
    def decision_threshold(self) -> float:
        """The cost c, since π estimates p(y = 1 | x, s)."""
        return self.setting.cost

    def _inputs(self, x: Tensor, s: Tensor) -> Tensor:
        features = self.inputs(x)
        if not self.config.sees_sensitive:
            return features
        return torch.cat([features, s.unsqueeze(-1)], dim=-1)
