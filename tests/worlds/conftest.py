"""What tests of worlds need: a policy that stays the same, and its run in a world."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from fairall.config.schema import Config
from fairall.data.load import load_dataset
from fairall.data.people import People
from fairall.data.prepared import PreparedData
from fairall.models.learner import Learner
from fairall.online.evaluation import Evaluator
from fairall.online.loop import OnlineLearning
from fairall.runtime.randomness import SeedStreams
from fairall.worlds.part import WorldSetting
from fairall.worlds.world import World
from tests.conftest import Shown

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


def evaluation_of(data: PreparedData, seeds: list[int]) -> Evaluator:
    """On few people, to be quick."""
    return Evaluator(data.test.rows(torch.arange(50)), 0.4, seeds)


def online(learner: Learner, config: Config, data: PreparedData, seeds: list[int]) -> OnlineLearning:
    """The loop in the world of a configuration."""
    return OnlineLearning(
        learner, World.of(config, data, seeds), evaluation_of(data, seeds), seeds, keep_propensity=True
    )


def setting_of(data: Any, seeds: list[int], applicants: int = 64, time_steps: int = 100) -> WorldSetting:
    return WorldSetting(data, seeds, applicants, time_steps)


def close(
    found: Tensor, expected: Tensor | float, standard_error: Tensor | float, times: float = 3.0
) -> bool:
    """Whether all of `found` are within some standard errors of what is expected."""
    return bool(((found - expected).abs() <= times * torch.as_tensor(standard_error)).all())


def share_error(p: float, n: int) -> float:
    """Standard error of a share of n draws."""
    return math.sqrt(p * (1.0 - p) / n)


def sampled(n: int, seeds: int = 1, dimensions: int = 1) -> People:
    """People of fair coins and normal features, fields of shape (seeds, n, ...)."""
    generator = torch.Generator().manual_seed(n)
    coins = torch.randint(2, (2, seeds, n), generator=generator).float()
    return People(torch.randn(seeds, n, dimensions, generator=generator), 2.0 * coins[0] - 1.0, coins[1])


@pytest.fixture(scope="session")
def fico() -> PreparedData:
    return load_dataset("fico", "dataset.advantaged_share=0.5").prepare()


@pytest.fixture(scope="session")
def synthetic() -> PreparedData:
    return load_dataset("synthetic").prepare()


@pytest.fixture
def data(name: str, request: pytest.FixtureRequest) -> PreparedData:
    """The data set of the parameter `name`."""
    found = request.getfixturevalue(name)
    assert isinstance(found, PreparedData)
    return found
