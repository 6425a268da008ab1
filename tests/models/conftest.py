"""People to learn from, decided by others, and small problems for methods that explore."""

import functools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any, TypeVar

import numpy as np
import pytest
import torch
from scipy.optimize import linprog
from torch import Tensor

from fairall.config import compose
from fairall.data.features import Feature, Kind, Schema
from fairall.data.people import Decided, People
from fairall.models import mixture
from fairall.models.estimators import boosted_trees
from fairall.models.learner import Learner, Setting
from fairall.runtime.randomness import SeedStreams

CENTRES = torch.tensor([[2.0, 0.0], [-2.0, 2.0], [-2.0, -2.0]])
WORTH = torch.tensor([0.95, 0.95, 0.05])  # p(ỹ = 1) of the three regions
CROSSED = [("a", "f"), ("a", "m"), ("b", "f"), ("b", "m"), ("c", "f")]
KNOWN, MISJUDGED, BAD = range(3)
AnyLearner = TypeVar("AnyLearner", bound=Learner)
typed_config = functools.cache(compose.typed_config)  # not to be changed

SMALL: dict[str, Any] = {
    "clf_arch": [8],
    "vae_arch": [8],
    "policy_arch": [8],
    "generator_arch": [8, 6],
    "head_arch": [5],
    "discriminator_arch": [4],
    "updates": 20,
    "clone_updates": 40,
    "batch_size": 32,
    "learning_rate": 0.02,
}


def setting_of(seeds: Sequence[int], *words: str, features: Sequence[str] = "ab", **schema: Any) -> Setting:
    """That of a learner for people with these real features."""
    config = typed_config("preset=quick", *words)
    schema_of = Schema([Feature(name, Kind.REAL) for name in features], **schema)
    return Setting(schema_of, config.cost.value, list(seeds), config.schedule, config.protocol)


def built(
    model: str, seeds: Sequence[int], *words: str, features: Sequence[str] = "ab", **changes: Any
) -> Any:
    """A small learner for people with real features, of the method of a configuration file."""
    words = f"model={model}", *words
    config = typed_config("preset=quick", *words).model
    small = {key: value for key, value in SMALL.items() if hasattr(config, key)}
    return replace(config, **{**small, **changes}).build(setting_of(seeds, *words, features=features))


@pytest.fixture
def draw() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def regional(streams: SeedStreams, n: int) -> tuple[People, Tensor]:
    """People of the three regions, and the region of each, shape (E, n)."""
    region = (3 * streams.uniform(n)).long()
    x = CENTRES[region] + 0.3 * streams.normal(n, 2)
    s = 2.0 * (streams.uniform(n) < 0.5) - 1.0
    return People(x, s, (streams.uniform(n) < WORTH[region]).float()), region


def first_decided(seeds: list[int]) -> Decided:
    """Ten accepted of each of two regions and three of `MISJUDGED`, who all have label 0 by bad luck."""
    streams = SeedStreams(seeds, "first people")
    region = torch.tensor([KNOWN] * 10 + [MISJUDGED] * 3 + [BAD] * 10).expand(len(seeds), -1)
    x = CENTRES[region] + 0.3 * streams.normal(23, 2)
    s = 2.0 * (streams.uniform(23) < 0.5) - 1.0
    return Decided(x, s, torch.ones_like(s), torch.ones_like(s).bool(), (region == KNOWN).float())


def applicants_of(learner: Any, n: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """x, s and region of people, and the propensities of the policy."""
    people, region = regional(SeedStreams(learner.setting.seeds, "crowd"), n)
    return people.x, people.s, region, learner.propensity(people.x, people.s, learner.streams)


def warmed(learner: AnyLearner, epochs: int = 2) -> AnyLearner:
    """After a warm-up on `first_decided`, so that the regions `MISJUDGED` and `BAD` are rejected."""
    for epoch in range(epochs):
        learner.warm_up_epoch(first_decided(list(learner.setting.seeds)), epoch)
    return learner


def online_step(learner: Learner, applicants: People, uniform: Tensor) -> tuple[Decided, Tensor]:
    """Decide on applicants (E, N), and update; the decisions and the policy's propensities."""
    seeds = learner.setting.seeds
    policy = learner.propensity(applicants.x, applicants.s, SeedStreams(seeds, "propensity"))
    propensity = learner.explore(applicants.x, applicants.s, policy, uniform)
    decided = Decided.reveal(applicants, propensity, uniform < propensity)
    learner.update(decided)
    return decided, policy


def same(left: object, right: object) -> bool:
    """Whether two states are equal to the last bit."""
    try:
        torch.testing.assert_close(left, right, rtol=0, atol=0, equal_nan=True)
    except AssertionError:
        return False
    return True


def someone(people: People, step: int, seeds: list[int], rate: float = 0.5) -> Decided:
    """A time step: some 16 of the people in an order of the seed's own, accepted with probability `rate`."""
    streams = SeedStreams(seeds, f"step {step}")
    rows = (streams.uniform(16) * len(people)).long()
    propensity = torch.full((len(seeds), 16), rate)
    return Decided.reveal(people.rows(rows), propensity, streams.uniform(16) < propensity)


def taught(learner: AnyLearner, people: People, steps: range) -> AnyLearner:
    """The learner after its warm-up, if `steps` begins with 0, and updates on people of further steps."""
    for step in steps:
        decided = someone(people, step, list(learner.setting.seeds))
        if step == 0:
            for epoch in range(2):
                learner.warm_up_epoch(decided, epoch)
        else:
            learner.update(decided)
    return learner


def propensities(learner: Learner, people: People) -> Tensor:
    """Those of all people, shape (E, N)."""
    n_seeds = len(learner.setting.seeds)
    x, s = people.x.expand(n_seeds, -1, -1), people.s.expand(n_seeds, -1)
    return learner.propensity(x, s, SeedStreams(learner.setting.seeds, "p"))


def decided_on(
    people: People,
    n_seeds: int = 1,
    *,
    least: float = 0.1,
    share: float | Tensor = 2 / 3,
    first: float | None = None,
) -> Decided:
    """The same people for every replicate, a share of them accepted with propensities from `least` on.

    The first person is accepted with the propensity `first`, if given.
    """
    everyone = people.rows(torch.arange(len(people)).expand(n_seeds, -1))
    generator = torch.Generator().manual_seed(7)
    propensity = least + 0.9 * torch.rand(n_seeds, len(people), generator=generator)
    accepted = torch.rand(n_seeds, len(people), generator=generator) < share
    if first is not None:
        propensity[:, 0], accepted[:, 0] = first, True
    return Decided.reveal(everyone, propensity, accepted)


def swayed(n: int, start: int, rate: float = 0.7, interaction: float = 0.0) -> Decided:
    """People of two seeds with two features, whose label depends on the first and s, or on a product.

    The first feature sways acceptance.
    """
    draw = torch.Generator().manual_seed(start)
    x, s = torch.randn(2, n, 2, generator=draw), 2.0 * (torch.rand(2, n, generator=draw) < 0.6) - 1.0
    odds = (1.0 - interaction) * (x[..., 0] + 0.5 * s) + 4.0 * interaction * x.prod(-1)
    label = (torch.rand(2, n, generator=draw) < odds.sigmoid()).float()
    p = (torch.tensor(rate).logit() + 0.5 * x[..., 0]).sigmoid()
    return Decided.reveal(People(x, s, label), p, torch.rand(2, n, generator=draw) < p)


def stacked(people: People) -> tuple[Tensor, Tensor]:
    """x and s of the same people for two seeds."""
    return people.x.expand(2, -1, -1), people.s.expand(2, -1)


def rates_of(counted: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Weights with which π of people, or cells, adds up to the rates of their groups, shape (G, N)."""
    own = np.where(group == np.unique(group)[:, None], counted, 0.0)
    return own / own.sum(1, keepdims=True)


def most_within(worth: np.ndarray, rates: np.ndarray, slack: float, *limits: tuple[Any, float]) -> float:
    """Greatest Σ π·worth over π in [0, 1] whose rates differ by at most the slack, by a linear program.

    Further `limits` are weights of π and the most that these may add up to.
    """
    gaps = [(one - other, slack) for one, other in permutations(rates, 2)]
    weights, most = zip(*gaps, *limits, strict=True)
    solved = linprog(-worth, A_ub=weights, b_ub=most, bounds=(0.0, 1.0))
    assert solved.success
    return float(-solved.fun)


@pytest.fixture(scope="module")
def few_trees() -> Iterator[None]:
    """Mixtures with few boosted trees, for what does not depend on their number."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mixture, "boosted_trees", lambda: boosted_trees().set_params(max_iter=8))
        yield
