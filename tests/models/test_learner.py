"""Checkpoints of learners: what is part of them, and what is refused."""

import random
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from fairall.config.schema import ModelConfig
from fairall.data.people import Decided
from fairall.errors import FairAllError
from fairall.models.learner import Learner, Setting
from fairall.nn.adam import Adam
from fairall.nn.stacked import StackedLinear
from fairall.runtime.randomness import SeedStreams
from tests.conftest import MakeSetting

NOBODY = Decided(*[torch.zeros(1, 0)] * 5)


class Small(Learner):
    """A layer, its optimiser and streams, and an optimiser in a module of its own."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(ModelConfig(), setting)
        self.streams = SeedStreams(setting.seeds, "small")
        self.layer = StackedLinear(2, 1, self.streams)
        self.optimiser = Adam(self.layer.parameters(), 0.1)
        self.inner = nn.Module()
        self.inner.optimiser = Adam(self.layer.parameters(), 0.2)  # type: ignore[assignment]
        self.sizes = [1, 2]

    def warm_up_epoch(self, decided: Decided, epoch: int) -> dict[str, float]:
        return {}

    def update(self, decided: Decided) -> None:
        for optimiser in (self.optimiser, self.inner.optimiser):
            loss = self.layer(self.streams.normal(4, 2)).square().sum()
            self.layer.zero_grad()
            loss.backward()
            optimiser.step()  # type: ignore[union-attr]

    def score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        return torch.full_like(s, 0.5)


def test_parts_are_named_and_training_continues_from_their_state(setting: MakeSetting) -> None:
    first, second = Small(setting([0, 1])), Small(setting([0, 1]))
    first.update(NOBODY)
    state = first.training_state()
    assert list(state["parts"]) == ["inner.optimiser", "optimiser", "streams"]
    second.load_training_state(state)
    for own in (first, second):
        own.update(NOBODY)
    assert torch.equal(first.layer.weight, second.layer.weight)


def test_a_state_with_other_parts_is_refused(setting: MakeSetting) -> None:
    learner = Small(setting([0]))
    state = learner.training_state()
    learner.renamed = learner.optimiser  # type: ignore[assignment]
    del learner.optimiser
    with pytest.raises(FairAllError, match=r"Small has inner\.optimiser, renamed, streams; start anew"):
        learner.load_training_state(state)


@pytest.mark.parametrize(
    "hidden",
    [
        lambda own: [own.optimiser],
        lambda own: {"streams": (own.streams,)},
        lambda own: [own.layer],
        lambda own: torch.zeros(3),
        lambda own: {"mean": torch.zeros(3)},
        lambda own: torch.Generator(),
        lambda own: np.random.default_rng(0),
        lambda own: random.Random(0),
    ],
)
def test_state_that_would_be_lost_is_refused(hidden: Callable[[Small], object], setting: MakeSetting) -> None:
    learner = Small(setting([0]))
    learner.hidden = hidden(learner)  # type: ignore[assignment]
    with pytest.raises(FairAllError, match=r"Small\.hidden would not be part of a checkpoint"):
        learner.training_state()


def test_nineteen_members_may_be_overridden() -> None:
    def may_be(member: object) -> bool:
        return not getattr(getattr(member, "fget", member), "__final__", False)

    own = {name for name, member in vars(Learner).items() if not name.startswith("_") and may_be(member)}
    assert own - {"extra_repr"} == set(
        """
        config_type net_inputs rule warm_up_epoch update score explore pretrain pretrain_units notes
        representation reconstruction estimates_label log_odds compared two_groups unchanged
        takes_amounts weighs_labels
    """.split()
    )


def test_printing_shows_sizes_seeds_and_features(setting: MakeSetting) -> None:
    shown = repr(Small(setting([0, 1])))
    assert "seeds=[0, 1], features=['height', 'visits'" in shown
    assert "StackedLinear(E=2, in=2, out=1)" in shown
