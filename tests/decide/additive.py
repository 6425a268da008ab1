"""A policy whose probabilities and contributions are known."""

from pathlib import Path

import torch
from torch import Tensor

from fairall.config.compose import checked, compose_config
from fairall.models.constant import ConstantPolicy
from fairall.models.learner import Setting
from fairall.policy import Policy, schema_of
from fairall.runtime.randomness import SeedStreams
from fairall.tables.features import Kind
from fairall.tables.groups import Sensitive
from fairall.tables.people import LearntFeature, PeopleReader

HERE = Path(__file__).parent
READER = PeopleReader(
    (
        LearntFeature("income", Kind.REAL, mean=0, scale=1, lowest=-3, highest=3),
        LearntFeature("debt", Kind.COUNT, mean=1, scale=1, lowest=0, highest=4),
        LearntFeature("home", Kind.CATEGORICAL, (1, 2, 3), ("rent", "own", "none"), fill=1, mean=2, scale=1),
    ),
    Sensitive("sex", ("male",), ("female",)),
)


class Additive(ConstantPolicy):
    """Score ½ + 0.3·income + (−0.2·debt + 0.05·home + 0.1·s) / (e + 1) of seed number e, within [0, 1].

    Decisions are drawn with `model=random`, and by the threshold ½ with `model=accept_all`. With c = 0.6 the
    label probability is another one.
    """

    estimates_label = True
    weight = torch.tensor([0.3, -0.2, 0.05, 0.1])

    def score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """The score, shape (E, B)."""
        size = torch.arange(1.0, 1.0 + len(x)).reshape(-1, 1)
        of_income, *others = (torch.cat([x, s.unsqueeze(-1)], -1) * self.weight).unbind(-1)
        return (0.5 + of_income + sum(others) / size).clamp(0, 1)


def additive(folder: Path, model: str = "random", *, seeds: int = 3) -> Policy:
    """A policy, also in a folder."""
    words = f"model={model} model._target_={__name__}.Additive seeds={seeds} cost.value=0.6"
    config = checked(compose_config(*words.split()))
    learner = config.model.build(Setting.of(schema_of(READER), config))
    policy = Policy(learner, READER, torch.zeros(seeds, 0, 1))
    policy.save(folder, config)
    return policy
