"""Checkpoints of learners: what is part of them, and what is refused."""

import random
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from fairall.errors import FairAllError
from fairall.models.learner import Learner
from fairall.runtime.randomness import SeedStreams
from tests.models.conftest import built


@pytest.fixture
def learner() -> Any:
    """A learner with a net, an optimiser, streams and a memory."""
    return built("greedy", [0, 1])


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
    with pytest.raises(FairAllError, match="the checkpoint is of another Greedy: start anew"):
        learner.load_training_state(state)


@pytest.mark.parametrize(
    "hidden",
    [
        [SeedStreams([0], "any")],
        {"deep": ({nn.Linear(1, 1)},)},
        torch.zeros(3),
        {"mean": torch.zeros(3)},
        torch.Generator(),
        np.random.default_rng(0),
        np.random.RandomState(0),
        random.Random(0),
    ],
)
def test_state_that_would_be_lost_is_refused(hidden: object, learner: Any) -> None:
    learner.hidden = hidden
    with pytest.raises(FairAllError, match=r"Greedy\.hidden would not be part of a checkpoint"):
        learner.training_state()


def test_members_that_may_be_overridden() -> None:
    own = {name for name, of in vars(Learner).items() if name[0] != "_" and not hasattr(of, "__final__")}
    assert own == set(
        """
        config_type net_inputs rule warm_up_epoch update score explore pretrain pretrain_units notes
        representation reconstruction estimates_label log_odds compared two_groups unchanged learns
        takes_amounts weighs_labels reads_s
    """.split()
    )
