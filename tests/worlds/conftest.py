"""What tests of worlds need: parts by their words, a policy that stays the same, and its run in a world."""

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from fairall.config.compose import typed_config
from fairall.config.schema import Config
from fairall.data.features import Schema
from fairall.data.load import load_dataset
from fairall.data.people import People
from fairall.data.prepared import PreparedData
from fairall.models.learner import Learner
from fairall.online.evaluation import Evaluator, History
from fairall.online.training import Training
from fairall.runtime.randomness import SeedStreams
from fairall.worlds.part import WorldSetting
from tests.conftest import Shown, run_online, training_by

ALL_PARTS = (
    "world.capacity.share=0.5",
    "world.delay.mean=2",
    "world.delay.censored=0.2",
    "world.noise.disadvantaged={positive: 0.2, negative: 0.1}",
    "world.drift.advantaged_share=0.6",
    "world.drift.label.disadvantaged=0.3",
    "world.feedback.people=300",
)


class Fixed(Shown):
    """Accepts with a probability from 0.2 to 0.8 that depends on x and s, and keeps what it is shown."""

    def score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        return 0.5 + 0.3 * torch.sin(3.0 * x.sum(-1) + s)


def built(
    name: str, *words: str, data: Any = None, seeds: Sequence[int] = (0,), n: int = 64, steps: int = 100
) -> Any:
    """The part of a name for n applicants, `words` as after `world.NAME.`."""
    data = data or SimpleNamespace(schema=Schema([]))
    config = typed_config(*(f"world.{name}.{word}" for word in words))
    return config.parts[name].build(WorldSetting(data, list(seeds), n, steps))


def online(learner: Learner, config: Config, data: PreparedData, seeds: list[int]) -> Training:
    """A run in the world of a configuration, evaluated on few people, to be quick."""
    config = replace(config, seed=seeds[0], seeds=len(seeds))
    config.evaluation = replace(config.evaluation, decisions=True)
    training = training_by(learner, config, data)
    training.evaluation = Evaluator(data.test.rows(torch.arange(50)), 0.4, seeds)
    return training


def lived(config: Config, data: PreparedData, time_steps: int) -> tuple[list[Any], History]:
    """What the fixed policy of seeds 0 and 1 is shown in a world, and its history."""
    learner = Fixed()
    return learner.seen, run_online(online(learner, config, data, [0, 1]), time_steps)


def close(
    found: Tensor, expected: Tensor | float, standard_error: Tensor | float, times: float = 3.0
) -> bool:
    """Whether all of `found` are within some standard errors of what is expected."""
    return bool(((found - expected).abs() <= times * torch.as_tensor(standard_error)).all())


def often(events: Tensor, p: Tensor | float) -> bool:
    """Whether events of probability p are as frequent as that, up to some standard errors."""
    p = torch.as_tensor(p).double().expand(events.shape)
    return close(events.double().sum(), p.sum(), (p * (1.0 - p)).sum().sqrt(), 4.0)


def sampled(n: int, seeds: int = 1) -> People:
    """People of fair coins and a normal feature, fields of shape (seeds, n, ...)."""
    generator = torch.Generator().manual_seed(n)
    coins = torch.randint(2, (2, seeds, n), generator=generator).float()
    return People(torch.randn(seeds, n, 1, generator=generator), 2.0 * coins[0] - 1.0, coins[1])


@pytest.fixture(scope="session")
def fico() -> PreparedData:
    return load_dataset("fico", "dataset.advantaged_share=0.5").prepare()


@pytest.fixture
def data(name: str, request: pytest.FixtureRequest) -> PreparedData:
    """The data set of the parameter `name`."""
    found: PreparedData = request.getfixturevalue(name)
    return found
