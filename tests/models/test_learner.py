"""Checkpoints of learners: what is part of them, and what is refused."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from fairall.errors import FairAllError
from fairall.models.learner import Learner
from fairall.runtime.randomness import SeedStreams
from tests.conftest import ComposeConfig, MakeSetting


@pytest.fixture
def learner(compose_config: ComposeConfig, setting: MakeSetting) -> Any:
    """A learner with a net, an optimiser, streams and a memory."""
    return compose_config("model=greedy").model.build(setting([0, 1]))


def test_parts_of_modules_within_are_named_and_restored(learner: Any) -> None:
    inner = learner.classifier.inner = SeedStreams([0, 1], "inner")
    state = learner.training_state()
    assert list(state["parts"]) == ["classifier.inner", "memory", "optimiser", "streams"]
    drawn = inner.uniform(4)
    learner.load_training_state(state)
    assert torch.equal(inner.uniform(4), drawn)


def test_a_state_with_other_parts_is_refused(learner: Any) -> None:
    state = learner.training_state()
    learner.renamed = learner.optimiser
    del learner.optimiser
    with pytest.raises(FairAllError, match=r"Greedy has memory, renamed, streams; start anew"):
        learner.load_training_state(state)


@pytest.mark.parametrize(
    "hidden",
    [
        lambda own: [own.optimiser],
        lambda own: {"streams": (own.streams,)},
        lambda own: [own.classifier],
        lambda own: torch.zeros(3),
        lambda own: {"mean": torch.zeros(3)},
        lambda own: torch.Generator(),
        lambda own: np.random.default_rng(0),
        lambda own: random.Random(0),
    ],
)
def test_state_that_would_be_lost_is_refused(hidden: Callable[[Any], object], learner: Any) -> None:
    learner.hidden = hidden(learner)
    with pytest.raises(FairAllError, match=r"Greedy\.hidden would not be part of a checkpoint"):
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


def test_printing_shows_sizes_seeds_and_features(learner: Any) -> None:
    shown = repr(learner)
    assert "seeds=[0, 1], features=['height', 'visits'" in shown
    assert "StackedLinear(E=2, in=64, out=1)" in shown
